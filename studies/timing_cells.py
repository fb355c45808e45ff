"""What the tables of a timing run are made of: rows found by their labels, cells of text."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Title, names of columns, rows of texts, a note below, and what the numbers say."""

    title: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)
    note: str = ""
    conclusion: list[str] = field(default_factory=list)


def pick(rows: list[dict[str, Any]], **labels: Any) -> list[dict[str, Any]]:
    """Return the rows with these labels."""
    return [row for row in rows if all(row.get(key) == value for key, value in labels.items())]


def fastest(rows: list[dict[str, Any]], key: str = "ns_min") -> dict[str, Any] | None:
    """Return the row with the least time, None of none."""
    return min(rows, key=lambda row: row[key], default=None)


def cell(rows: list[dict[str, Any]], unit: str = "ns", digits: int = 1) -> str:
    """Return minimum (median) of the first row, "-" of none."""
    if not rows:
        return "-"
    return f"{rows[0][f'{unit}_min']:.{digits}f} ({rows[0][f'{unit}_median']:.{digits}f})"


def threads_of(row: dict[str, Any]) -> str:
    """Return how many threads, or the GPU."""
    return f"{row['threads']} thr" if row["threads"] else "GPU"
