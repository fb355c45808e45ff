"""Tables of what was found in films, beside what was measured and what others published."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.iris.folder import Film


PUBLISHED = json.loads((Path(__file__).parent / "published.json").read_text("utf-8"))
HEADER = (
    "class", "setting", "number", "truth", "takes", "found (95 % interval)", "error",
    "truth in interval", "verdict", "errors published for real films",
)  # fmt: skip
UNITS = {
    "g": "m/s²", "speed": "m/s", "rope_length": "m", "rope_length_1": "m", "rope_length_2": "m",
    "angle_deg": "°", "angular_damping": "1/s", "angular_stiffness": "1/s²",
}  # fmt: skip
FAILED = "failed"
Fitted = tuple[Film, Mapping[str, Any]]  # a film and its answer, as `fit_film` returns it


def table(fitted: Iterable[Fitted]) -> list[list[str]]:
    """Return the header and a row for each class, setting and number.

    Errors are absolute, in the unit of the number, which is behind its name. Where there are
    several takes, the error is their median, and the answer that of the take whose error, or else
    value, is the median one. The published errors are means over ten takes of the real films; those
    of a film without a setting, the range over the class.
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for film, answer in fitted:
        for name, number in answer["numbers"].items():
            groups.setdefault((film.kind, film.setting, name), []).append(number)
    return [[*HEADER], *(_row(key, numbers) for key, numbers in groups.items())]


def _row(key: tuple[str, str, str], numbers: Sequence[Mapping[str, Any]]) -> list[str]:
    done = [each for each in numbers if each["verdict"] != FAILED]
    cells, truth = ["", "", ""], numbers[0].get("truth")
    if done:
        errors = np.array([_error(each) for each in done])
        order = np.argsort([each["value"] for each in done] if np.isnan(errors).any() else errors)
        middle = done[order[(len(done) - 1) // 2]]
        ends = f"{middle['low']:.4g} to {middle['high']:.4g}"
        cells = [f"{middle['value']:.4g} ({ends})", "", ""]
        if not np.isnan(errors).any():
            inside = sum(each["low"] <= each["truth"] <= each["high"] for each in done)
            cells[1:] = f"{np.median(errors):.2g}", f"{inside} of {len(done)}"
    kinds = [str(each["verdict"]) for each in numbers]
    verdicts = ", ".join(
        kind if len(kinds) == 1 else f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)
    )
    truth_text = "" if truth is None else f"{truth:.4g}"
    name = key[2]
    unit = f" [{UNITS[name]}]" if name in UNITS else ""
    first = [*key[:2], name + unit, truth_text, str(len(numbers))]
    return [*first, *cells, verdicts, published(*key)]


def _error(number: Mapping[str, Any]) -> float:
    truth = number["truth"]
    return float("nan") if truth is None else abs(number["value"] - truth)


def published(kind: str, setting: str, name: str) -> str:
    """Return the errors of the authors' three methods as a text, "" without any."""
    errors = PUBLISHED["errors"]
    if setting:
        return " / ".join(f"{error:.2g}" for error in errors.get(f"{kind}/{setting}/{name}", ()))
    rows = [
        each
        for key, each in errors.items()
        if key.startswith(f"{kind}/") and key.endswith(f"/{name}")
    ]
    return " / ".join(f"{min(c):.2g} to {max(c):.2g}" for c in zip(*rows, strict=True))


def summary(fitted: Sequence[Fitted]) -> dict[str, str]:
    """Return how many numbers are *found*, right, wrong and held by their interval."""
    numbers = [number for _, answer in fitted for number in answer["numbers"].values()]
    comparable = [
        each for each in numbers if each["verdict"] != FAILED and each["truth"] is not None
    ]
    good = [each for each in comparable if each["verdict"] == "found"]
    parts = [_error(each) / abs(each["truth"]) for each in comparable]
    wrong = sum(_error(each) > 0.2 * abs(each["truth"]) for each in good)
    inside = sum(each["low"] <= each["truth"] <= each["high"] for each in comparable)
    return {
        "found": f"{len(good)} of {len(numbers)}",
        "median": f"{100 * np.median(parts):.1f} %" if parts else "",
        "wrong": str(wrong) if wrong else "none",
        "covered": f"{inside} of {len(comparable)}",
    }
