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

from benchmarks.publish import in_markdown


ADJSIM = Path(sys.executable).with_name("adjsim")
HEADER = (
    "film", "parameter", "law", "truth", "start", "estimate", "error", "verdict",
    "interval with model error", "covers", "seconds",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row:
    """What came out for one parameter of a film, of one component or more."""

    film: str
    parameter: str
    law: str
    truth: np.ndarray
    start: np.ndarray
    estimate: np.ndarray  # empty where no result was found
    verdict: str
    interval: np.ndarray  # lower and upper with model error, (n_components, 2); or empty
    seconds: float | None

    @property
    def error(self) -> float:
        """Distance of the estimate from the truth, by the truth's length; NaN without one."""
        if len(self.estimate) != len(self.truth):
            return float("nan")
        return float(np.linalg.norm(self.estimate - self.truth) / np.linalg.norm(self.truth))

    @property
    def covers(self) -> list[bool]:
        """Whether the interval holds the truth, by component."""
        pairs = zip(self.interval, self.truth, strict=False)
        return [bool(low <= value <= high) for (low, high), value in pairs]

    def cells(self) -> list[str]:
        """Return the row as text."""
        numbers = [" ".join(f"{n:.4g}" for n in n) for n in (self.truth, self.start, self.estimate)]
        return [
            self.film, self.parameter, self.law, *numbers,
            "" if np.isnan(self.error) else f"{100 * self.error:.1f} %",
            self.verdict,
            " ".join(f"[{low:.3g}, {high:.3g}]" for low, high in self.interval),
            "/".join("yes" if inside else "no" for inside in self.covers),
            "" if self.seconds is None else f"{self.seconds:.0f}",
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
    result = _loaded(out / "result.json") or {"verdict": {"kind": "no result"}, "parameters": []}
    seconds = _loaded(folder / f"{out.name}.seconds.json")
    rows = []
    for path, value in truth["parameters"].items():
        # One entry, or those of the components "path[0]", "path[1]".
        entries = [
            entry
            for entry in result["parameters"]
            if entry["name"] == path or entry["name"].startswith(f"{path}[")
        ]
        estimate = np.ravel([entry["estimate"] for entry in entries])
        intervals = [entry.get("interval") for entry in entries]
        interval = np.reshape([] if None in intervals else intervals, (-1, 2))
        start = np.ravel(truth["start"][path])
        kind = result["verdict"]["kind"]
        rows.append(
            Row(folder.name, path, truth["law"], np.ravel(value), start, estimate, kind,
                interval, seconds)
        )  # fmt: skip
    return rows


def _loaded(path: Path) -> Any:
    """Return the content of a JSON file, None without it."""
    return json.loads(path.read_text()) if path.exists() else None


def table(rows: Sequence[Row]) -> str:
    """Return a table in Markdown, and below it what was found, wrong and covered."""
    counts = summary(rows)
    return "\n".join(
        [
            in_markdown([HEADER, *(row.cells() for row in rows)]),
            "",
            f"{counts['found']} films are *found* within 5 %, or 12 % where the law differs.",
            f"*found* and more than 20 % off: {counts['wrong']}.",
            f"Intervals with model error that hold the truth: {counts['covered']}.",
        ]
    )


def summary(rows: Sequence[Row]) -> dict[str, str]:
    """Return what was found, wrong and covered."""
    films = dict.fromkeys(row.film for row in rows)
    missed = {
        row.film
        for row in rows
        if row.verdict != "found" or not row.error <= (0.05 if row.law == "same" else 0.12)
    }
    wrong = sorted({row.film for row in rows if row.verdict == "found" and row.error > 0.2})
    covers = [inside for row in rows for inside in row.covers]
    return {
        "found": f"{len(films) - len(missed)} of {len(films)}",
        "wrong": ", ".join(wrong) or "none",
        "covered": f"{sum(covers)} of {len(covers)}",
    }
