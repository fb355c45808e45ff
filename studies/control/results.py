"""What searches for a control say: raw curves, how they ended, tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from studies.answer.verdict import Kind
from studies.runs.evaluations import Evaluation


class Measure(NamedTuple):
    """What the end of a motion is measured by: its unit, and whether more of it is better."""

    unit: str
    is_gain: bool

    @property
    def is_length(self) -> bool:
        """Whether it is in metres."""
        return self.unit == "m"


MEASURES: Mapping[str, Measure] = {
    "distance": Measure("m", False),
    "gain": Measure("m", True),
    "cover": Measure("", True),
}
CURVES = ("distance", "cover")  # the measures that are drawn
COMPARISON = "comparison.json"
Records = list[dict[str, Any]]


def curve(status: str, history: Sequence[Evaluation]) -> dict[str, Any]:
    """Return every evaluation of a search, and which one it returns: that of the lowest loss."""
    losses = np.array([evaluation.loss for evaluation in history])
    names = [name for name in MEASURES if any(name in evaluation.values for evaluation in history)]
    spent = np.diff([0, *(evaluation.spent for evaluation in history)])
    seconds = np.diff([0.0, *(evaluation.seconds for evaluation in history)])
    return {
        "status": status,
        "chosen": int(np.argmin(losses)),
        "seconds": history[-1].seconds,
        "evaluation": float(np.median(seconds / spent)),  # the first may compile
        "spent": [evaluation.spent for evaluation in history],
        "losses": [
            evaluation.loss if np.isfinite(evaluation.loss) else None for evaluation in history
        ],
        **{name: [evaluation.values.get(name) for evaluation in history] for name in names},
    }


def measures_of(records: Records) -> list[str]:
    """Return what searches were measured by, the foremost first."""
    search = next(iter(records[0]["searches"].values()))
    return [name for name in MEASURES if name in search]


def chosen(search: dict[str, Any], measure: str) -> float:
    """Return a measure of the evaluation that a search returns."""
    return search[measure][search["chosen"]]


def summed_up(records: Records) -> list[dict[str, Any]]:
    """Return a row for each kind of supervision: mean, median and worst over the instances."""
    rows = []
    for kind in records[0]["searches"]:
        searches = [record["searches"][kind] for record in records]
        seconds = float(np.median([search["evaluation"] for search in searches]))
        stats = {name: _summed_up(records, kind, name) for name in measures_of(records)}
        reached = sum(search["verdict"] == Kind.REACHED for search in searches)
        rows.append({"kind": kind, **stats, "reached": reached, "seconds": seconds})
    return rows


def _summed_up(records: Records, kind: str, name: str) -> dict[str, Any]:
    """Return mean, median and worst of a measure, and what other evaluations have of it.

    `last` is the mean at the last evaluation, whatever its loss, and `nearest` that at the best
    one, which no search can know.
    """
    searches = [record["searches"][kind] for record in records]
    ends = np.array([chosen(search, name) for search in searches])
    measured = [[value for value in search[name] if value is not None] for search in searches]
    gain = MEASURES[name].is_gain
    at = int(ends.argmin() if gain else ends.argmax())
    return {
        "mean": float(ends.mean()),
        "median": float(np.median(ends)),
        "worst": float(ends[at]),
        "worst_instance": records[at]["instance"],
        "last": float(np.mean([many[-1] for many in measured])),
        "nearest": float(np.mean([max(many) if gain else min(many) for many in measured])),
    }


def worst(records: Records, kind: str) -> int:
    """Return the instance that ends worst by the foremost measure, under a kind of supervision."""
    return _summed_up(records, kind, measures_of(records)[0])["worst_instance"]


def ends_lines(records: Records, failed: Records) -> list[list[Any]]:
    """Return a line for each search, below a head: how the evaluation that it returns ended.

    An instance that failed has one line, with nothing but the reason.
    """
    head = [*_head(records), "reason"]
    lines = [
        [
            record["instance"],
            kind,
            search["spent"][at],
            search["losses"][at],
            *_measures(search, at),
            None,
        ]
        for record in records
        for kind, search in record["searches"].items()
        for at in (search["chosen"],)
    ]
    lines += [
        [failure["instance"], *[None] * (len(head) - 2), failure["reason"]] for failure in failed
    ]
    return [head, *sorted(lines, key=lambda line: line[0])]


def curves_lines(records: Records) -> list[list[Any]]:
    """Return a line for each evaluation of every search; one that blew up has no numbers."""
    lines = [
        [record["instance"], kind, spent, search["losses"][at], *_measures(search, at)]
        for record in records
        for kind, search in record["searches"].items()
        for at, spent in enumerate(search["spent"])
    ]
    return [_head(records), *lines]


def _head(records: Records) -> list[Any]:
    units = {
        name: f" [{measure.unit}]" if measure.unit else "" for name, measure in MEASURES.items()
    }
    names = [f"{name}{units[name]}" for name in measures_of(records)]
    return ["instance", "supervision", "evaluation", "loss", *names]


def _measures(search: dict[str, Any], at: int) -> list[float | None]:
    return [search[name][at] for name in MEASURES if name in search]
