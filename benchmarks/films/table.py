"""Fits every film of a folder, and compares the answers with the truth."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


ADJSIM = Path(sys.executable).with_name("adjsim")
HEADER = (
    "film", "parameter", "law", "truth", "start", "estimate", "error", "verdict",
    "interval with model error", "covers", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What came out for one parameter of a film.

    Attributes
    ----------
    film, parameter, law : str
    truth, start, estimate : tuple of float
        One number, or the components; an estimate is empty where no result was found.
    verdict : str
    interval : tuple
        (lower, upper) of every component, with model error.
    seconds : float
    """

    film: str
    parameter: str
    law: str
    truth: tuple[float, ...]
    start: tuple[float, ...]
    estimate: tuple[float, ...]
    verdict: str
    interval: tuple[tuple[float, float], ...]
    seconds: float

    @property
    def error(self) -> float:
        """Distance of the estimate from the truth, by the truth's length; NaN without one."""
        if len(self.estimate) != len(self.truth):
            return float("nan")
        off = np.subtract(self.estimate, self.truth)
        return float(np.linalg.norm(off) / np.linalg.norm(self.truth))

    @property
    def covers(self) -> tuple[bool, ...]:
        """Whether the interval holds the truth, by component."""
        pairs = zip(self.interval, self.truth, strict=False)
        return tuple(low <= value <= high for (low, high), value in pairs)

    def cells(self) -> list[str]:
        """Return the row as text."""
        covers = "/".join("yes" if inside else "no" for inside in self.covers)
        interval = " ".join(f"[{low:.3g}, {high:.3g}]" for low, high in self.interval)
        numbers = [" ".join(f"{n:.4g}" for n in n) for n in (self.truth, self.start, self.estimate)]
        error = "" if np.isnan(self.error) else f"{100 * self.error:.1f} %"
        return [
            self.film, self.parameter, self.law, *numbers, error, self.verdict,
            interval, covers, "" if np.isnan(self.seconds) else f"{self.seconds:.0f}",
        ]  # fmt: skip


def run(folder: Path, scene: str, *options: str) -> float:
    """Fit the film of a folder, and return the seconds it took.

    Beside the run's folder are its log and its seconds; the run before it is deleted.
    """
    began = time.perf_counter()
    out = run_folder(folder, scene)
    shutil.rmtree(out, ignore_errors=True)
    command = [str(ADJSIM), "run", str(folder / scene), "--out", str(out), *options]
    with (folder / f"{out.name}.log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    seconds = time.perf_counter() - began
    (folder / f"{out.name}.seconds.json").write_text(json.dumps(seconds))
    return seconds


def run_folder(folder: Path, scene: str) -> Path:
    """Return the folder of a film's run."""
    return folder / f"run-{Path(scene).stem}"


def rows_of(folder: Path, scene: str) -> list[Row]:
    """Return a row for every free parameter of a film, from truth.json and result.json."""
    truth = json.loads((folder / "truth.json").read_text())
    out = run_folder(folder, scene)
    result = loaded(out / "result.json", {})
    seconds = loaded(folder / f"{out.name}.seconds.json", float("nan"))
    verdict = result.get("verdict", {}).get("kind", "no result")
    rows = []
    for path, value in truth["parameters"].items():
        entries = entries_of(path, result.get("parameters", []))
        rows.append(
            Row(
                folder.name,
                path,
                truth["law"],
                numbers(value),
                numbers(truth["start"][path]),
                numbers([entry["estimate"] for entry in entries]),
                verdict,
                intervals([entry.get("interval") for entry in entries]),
                seconds,
            )
        )
    return rows


def loaded(path: Path, default: Any) -> Any:
    """Return the content of a JSON file, or a default if there is no file."""
    return json.loads(path.read_text()) if path.exists() else default


def entries_of(path: str, parameters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a path: one, or those of its components "path[0]", "path[1]"."""
    return [p for p in parameters if p["name"] == path or p["name"].startswith(f"{path}[")]


def numbers(value: Any) -> tuple[float, ...]:
    """Return a number, or numbers in lists, as one tuple."""
    return tuple(float(n) for n in np.ravel(np.asarray(value, float)))


def intervals(values: Sequence[Any]) -> tuple[tuple[float, float], ...]:
    """Return the (lower, upper) of all components; none where one is missing."""
    if any(value is None for value in values):
        return ()
    flat = [n for value in values for n in numbers(value)]
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def table(rows: Sequence[Row]) -> str:
    """Return a table in Markdown, and a summary below it."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join([*lines, "", *summary(rows)])


def summary(rows: Sequence[Row]) -> list[str]:
    """Return how many films were found within 5 % (12 %), wrong ones, and the coverage."""
    films = sorted({row.film for row in rows})
    own = {film: [row for row in rows if row.film == film] for film in films}
    good = [
        film
        for film in films
        if all(
            row.verdict == "found" and row.error <= (0.05 if row.law == "same" else 0.12)
            for row in own[film]
        )
    ]
    found = [row for row in rows if row.verdict == "found"]
    wrong = sorted({row.film for row in found if row.error > 0.2})
    covers = [inside for row in rows for inside in row.covers]
    return [
        f"{len(good)} of {len(films)} films are *found* within 5 %, "
        "or within 12 % where the law differs.",
        f"*found* and more than 20 % off: {', '.join(wrong) or 'none'}.",
        f"Intervals with model error that hold the truth: {sum(covers)} of {len(covers)}.",
    ]
