"""What searches for a policy say: raw curves, how they ended, a table, two CSVs."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.optimizers.evaluations import Evaluation


MEASURES = ("distance", "cover")  # of the end of a motion [m], [-]
Records = list[dict[str, Any]]


def video(kind: str) -> str:
    """Return the name of the video of what a kind of supervision found."""
    return f"{kind}.mp4"


def curve(status: str, history: Sequence[Evaluation]) -> dict[str, Any]:
    """Return every evaluation of a search, and which one it returns: that of the lowest loss."""
    losses = np.array([one.loss for one in history])
    return {
        "status": status,
        "chosen": int(np.argmin(losses)),
        "seconds": history[-1].seconds,
        "spent": [one.spent for one in history],
        "losses": [one.loss if np.isfinite(one.loss) else None for one in history],
        **{name: [one.values.get(name) for one in history] for name in MEASURES},
    }


def chosen(search: dict[str, Any], measure: str) -> float:
    """Return a measure of the evaluation that a search returns."""
    return search[measure][search["chosen"]]


def summed_up(records: Records) -> list[dict[str, Any]]:
    """Return a row for each kind of supervision: mean, median and worst over the instances.

    `last` is the mean distance of the last evaluation, whatever its loss, and `nearest` that of
    the nearest one, which no search can know.
    """
    rows = []
    for kind in records[0]["searches"]:
        found = [record["searches"][kind] for record in records]
        away = np.array([chosen(one, "distance") for one in found])
        cover = np.array([chosen(one, "cover") for one in found])
        known = [[d for d in one["distance"] if d is not None] for one in found]
        rows.append(
            {
                "kind": kind,
                "distance": {
                    "mean": float(away.mean()),
                    "median": float(np.median(away)),
                    "worst": float(away.max()),
                    "worst_instance": records[int(away.argmax())]["instance"],
                    "last": float(np.mean([many[-1] for many in known])),
                    "nearest": float(np.mean([min(many) for many in known])),
                },
                "cover": {
                    "mean": float(cover.mean()),
                    "median": float(np.median(cover)),
                    "worst": float(cover.min()),
                    "worst_instance": records[int(cover.argmin())]["instance"],
                },
                "seconds": float(np.median([one["seconds"] / one["spent"][-1] for one in found])),
            }
        )
    return rows


def worst(records: Records, kind: str) -> int:
    """Return the instance that ends farthest from its goal under a kind of supervision."""
    away = [chosen(record["searches"][kind], "distance") for record in records]
    return records[int(np.argmax(away))]["instance"]


def told(result: dict[str, Any]) -> list[str]:
    """Return the table in a few lines for the terminal."""
    count = result["instances"]
    over = "of the instance" if count == 1 else f"over {count} instances"
    lines = [f"distance of the centre of mass from the goal, and cover (IoU), {over}:"]
    for row in result["table"]:
        away, cover = row["distance"], row["cover"]
        lines.append(
            f"  {row['kind']}: mean {away['mean']:.3g} m, median {away['median']:.3g} m, worst "
            f"{away['worst']:.3g} m (instance {away['worst_instance']}); cover median "
            f"{cover['median']:.3f}, worst {cover['worst']:.3f} (instance "
            f"{cover['worst_instance']}); {row['seconds']:.2g} s an evaluation"
        )
    return lines


def ends_csv(records: Records) -> str:
    """Return a line for each search: how the evaluation that it returns ended."""
    head = ["instance", "supervision", "evaluation", "loss", "distance [m]", "cover"]
    lines = [
        [record["instance"], kind, one["spent"][at], one["losses"][at], *measures(one, at)]
        for record in records
        for kind, one in record["searches"].items()
        for at in (one["chosen"],)
    ]
    return _csv(head, lines)


def curves_csv(records: Records) -> str:
    """Return a line for each evaluation of every search; one that blew up has no numbers."""
    head = ["instance", "supervision", "evaluation", "loss", "distance [m]", "cover"]
    lines = [
        [record["instance"], kind, spent, one["losses"][at], *measures(one, at)]
        for record in records
        for kind, one in record["searches"].items()
        for at, spent in enumerate(one["spent"])
    ]
    return _csv(head, lines)


def measures(search: dict[str, Any], at: int) -> list[float | None]:
    """Return the measures of an evaluation of a search."""
    return [search[name][at] for name in MEASURES]


def _csv(head: list[str], lines: list[list[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([["" if cell is None else cell for cell in line] for line in lines])
    return out.getvalue()
