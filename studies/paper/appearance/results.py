"""What the searches of `appearance` say: when an error stays small, medians, a table, a CSV.

Curves are raw: an evaluation counts with its own error, not with the best before it. A search that
swings through the truth is next to it for one evaluation; so an error is reached where it is not
exceeded any more.
"""

import csv
import io
from typing import Any

import numpy as np

from studies.instances import failures_told


REACHED = (1e-2, 1e-4)  # relative errors whose evaluations are counted
Records = list[dict[str, Any]]


def errors(record: dict[str, Any], one: dict[str, Any]) -> np.ndarray:
    """Return the relative error of the mass at each evaluation of a search, (n,)."""
    return np.abs(np.array(one["masses"]) / record["mass"] - 1.0)


def settled(spent: np.ndarray, error: np.ndarray, bar: float) -> float:
    """Return the evaluation from which on the error is at most `bar`; inf if there is none."""
    above = np.flatnonzero(error > bar)
    first = above[-1] + 1 if above.size else 0
    return float(spent[first]) if first < len(spent) else np.inf


def held(spent: np.ndarray, error: np.ndarray, budget: int) -> np.ndarray:
    """Return the error of the last evaluation made, for every evaluation of the budget."""
    at = np.searchsorted(spent, np.arange(1, budget + 1), side="right") - 1
    return error[np.maximum(at, 0)]


def searches(records: Records, kind: str, method: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return evaluations and errors of a method with a kind, a search for each body."""
    return [
        (np.array(one["spent"]), errors(record, one))
        for record in records
        for one in record["searches"]
        if (one["kind"], one["method"]) == (kind, method)
    ]


def summed_up(records: Records, kinds: list[str], methods: list[str]) -> list[dict[str, Any]]:
    """Return a row for each method and kind: medians over the bodies."""
    rows = []
    for method in methods:
        for kind in kinds:
            found = searches(records, kind, method)
            last = [error[-1] for _, error in found]
            counts = {bar: [settled(*one, bar) for one in found] for bar in REACHED}
            rows.append(
                {
                    "method": method,
                    "kind": kind,
                    "reached": [_reached(bar, many) for bar, many in counts.items()],
                    "median_error": float(np.median(last)),
                    "worst_error": float(np.max(last)),
                }
            )
    return rows


def _reached(bar: float, evaluations: list[float]) -> dict[str, Any]:
    # The upper of two in the middle, so that no median lies halfway to infinity.
    median = sorted(evaluations)[len(evaluations) // 2]
    return {
        "error": bar,
        "median": int(median) if np.isfinite(median) else None,
        "count": int(np.isfinite(evaluations).sum()),
    }


def explained(records: Records, kinds: list[str]) -> list[dict[str, Any]]:
    """Return for each kind what the loss is like at the truth: medians over the bodies."""
    rows = []
    for kind in kinds:
        looked = [record["kinds"][kind] for record in records]
        rows.append(
            {
                "kind": kind,
                "curvature": float(np.median([one["curvature"] for one in looked])),
                "inside": float(np.median([one["inside"] for one in looked])),
                "falling": int(sum(one["is_falling"] for one in looked)),
            }
        )
    return rows


def is_falling(relative: np.ndarray, losses: np.ndarray, start: float) -> bool:
    """Whether a loss over masses falls all the way from the start to the truth.

    `relative` are the masses, increasing, and `start` that of the start, in parts of the truth.
    """
    low, high = sorted((1.0, start))
    rises = np.diff(losses[(relative >= low) & (relative <= high)])
    return bool((rises > 0.0).all() if start > 1.0 else (rises < 0.0).all())


def told(result: dict[str, Any]) -> list[str]:
    """Return the table in a few lines."""
    lines = [f"relative errors of the mass, medians over {result['instances']} bodies:"]
    for row in result["table"]:
        parts = [f"{one['error']:.0e} {after(one)}" for one in row["reached"]]
        lines.append(
            f"  {row['method']}, {row['kind']}: {', '.join(parts)}, at the end "
            f"{row['median_error']:.1e}, worst {row['worst_error']:.1e}"
        )
    failed = result.get("failed", [])
    return lines + failures_told(failed, result["instances"] + len(failed))


def after(reached: dict[str, Any]) -> str:
    """Return when an error was reached, in words."""
    if reached["median"] is None:
        return "not reached"
    return f"after {reached['median']} evaluations"


def as_csv(records: Records) -> str:
    """Return every evaluation of every search in a line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["instance", "kind", "method", "evaluation", "mass [kg]", "relative error", "loss"]
    )
    for record in records:
        for one in record["searches"]:
            rows = zip(one["spent"], one["masses"], errors(record, one), one["losses"], strict=True)
            for spent, mass, error, loss in rows:
                known = "" if loss is None else loss
                key = (record["instance"], one["kind"], one["method"])
                writer.writerow([*key, spent, mass, float(error), known])
    return out.getvalue()
