"""Do intervals hold the truth, where what the scene declares is as uncertain as it says?

    python -m benchmarks.coverage --films 20 --data docs/data

Every film is simulated with declared numbers that are drawn from their own uncertainties: another
size, density, place, frame rate and direction of gravity than the scene file has. Then it is
searched and judged as footage. The table has, by number, how many 95 % intervals hold the truth.

Intervals count more than was drawn: a floor for errors of a model that leave no trace, of which
such a film has none. So it also has how many would hold it without that part.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import publish
from studies.answer.budget import NAMES
from studies.fitting.solve import solve
from studies.problem.making import PreparedProblem, make_problem
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.reading import scene_from_dict


NOISE = 1.0 / 255.0  # of a pixel, where white is 1
HEADER = ("scene", "number", "films", "intervals that hold the truth", "without the floor",
          "median error", "*found*", "median half-width of these")  # fmt: skip
CAMERA = {"fov_y": 34.0, "fit": False}
LOOK = {"color": [0.8, 0.4, 0.2], "fit": False}


def film(frames: int, duration: float) -> dict[str, Any]:
    """Return the observation of a small simulated film."""
    size = {"height": 60, "width": 80, "frames": frames, "duration": duration}
    return {"simulate": size, "background": {"color": [0.3, 0.35, 0.4]}}


SCENES: dict[str, dict[str, Any]] = {
    "beam that falls from its clamp": {
        "bodies": {
            "beam": {
                "kind": "soft", "mesh": "box", "size": [0.4, 0.05, 0.05], "cells": [8, 1, 1],
                "E": 1.5e5, "nu": 0.4, "viscosity": 20.0, "look": LOOK,
                "held": {"plane": {"point": [-0.199, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}},
            }
        },
        "cameras": {"front": CAMERA | {"eye": [0.2, 0.1, 1.1], "target": [0.0, -0.08, 0.0]}},
        "observations": {"film": film(14, 0.35)},
        "free": {"beam.E": {"start": 3e5, "bounds": [2e4, 2e6]}},
    },
    "box that slides": {
        "bodies": {
            "box": {
                "kind": "rigid", "mesh": "box", "size": [0.12, 0.06, 0.12], "mass": 0.3,
                "position": [-0.35, 0.03, 0.0], "velocity": [1.6, 0.0, 0.0], "look": LOOK,
            }
        },
        "obstacles": {"table": {"kind": "plane", "friction": 0.3, "tilt_error": 0.0,
                                "distance_error": 0.0}},
        "cameras": {"front": CAMERA | {"eye": [0.3, 0.7, 1.5], "target": [0.0, 0.0, 0.0]}},
        "observations": {"film": film(14, 0.5)},
        "free": {"table.friction": {"start": 0.5, "bounds": [0.05, 1.5]},
                 "box.velocity[0]": {"start": 1.3, "bounds": [0.2, 4.0]}},
    },
    "ball that is thrown": {
        "bodies": {
            "ball": {
                "kind": "rigid", "mesh": "shape:sphere", "size": [0.06], "mass": 0.1,
                "position": [-0.4, 0.0, 0.0], "velocity": [1.2, 2.0, 0.4], "look": LOOK,
            }
        },
        "cameras": {"front": CAMERA | {"eye": [0.2, 0.5, 1.6], "target": [0.0, 0.1, 0.0]}},
        "observations": {"film": film(12, 0.5)},
        "free": {"ball.velocity": {"start": [1.0, 1.8, 0.2], "bounds": [-5.0, 5.0]}},
    },
}  # fmt: skip


def made_with_errors(tables: Mapping[str, Any], rng: np.random.Generator) -> PreparedProblem:
    """Return the problem of a film whose declared numbers are off, as footage."""
    made = make_problem(scene_from_dict({**tables, "blind": True}))
    hidden, truth = made.hidden, made.true_values
    assert hidden is not None
    assert truth is not None
    for number in made.declared:
        hidden = number.moved(hidden, number.error * rng.standard_normal())
    rows = hidden.predictions({**hidden.fixed, **truth})
    observers = tuple(
        observer.simulated(
            np.c_[exact[:, :3] + NOISE * rng.standard_normal((len(exact), 3)), exact[:, 3]]
        )
        for observer, exact in zip(made.everything.observers, rows, strict=True)
    )
    return replace(made, everything=replace(made.everything, observers=observers))


def measured(name: str, seed: int) -> dict[str, dict[str, Any]]:
    """Return what one film says of each number, by label."""
    tables = SCENES[name]
    truth = {path: _declared(tables, path) for path in tables["free"]}
    made = made_with_errors({**tables, "truth": truth}, np.random.default_rng(seed))
    how = scene_from_dict(dict(tables)).search
    with tempfile.TemporaryDirectory() as folder, EvaluationProgress(how.max_evaluations) as bar:
        solved = solve(made.without_truth(), how, RunFolder(Path(folder)), bar, seed=seed)
    parameters = solved.problem.parameters
    value = parameters.natural(solved.result.theta)
    low, high = solved.intervals.model
    true = np.concatenate([np.ravel(truth[path]) for path in parameters.paths if path in truth])
    scale = {path: np.linalg.norm(_declared(tables, path.partition("[")[0])) for path in truth}
    budget = solved.budget
    assert budget is not None
    out = {}
    for i, label in enumerate(parameters.labels[: len(true)]):
        far = high[i] if true[i] > value[i] else low[i]
        as_searched = np.log if budget.is_log[i] else float
        answer = as_searched(value[i])
        distance = (as_searched(true[i]) - answer) / (as_searched(far) - answer)
        floor = budget.parts[NAMES["floor"]][i] / budget.half_width[i]
        path = label if label in scale else label.partition("[")[0]
        out[f"{label}"] = {
            "holds": bool(low[i] <= true[i] <= high[i]),
            "holds_without_floor": bool(distance**2 <= 1.0 - floor**2),
            "error": abs(value[i] - true[i]) / scale[path],
            "half_width": 0.5 * (high[i] - low[i]) / scale[path],
            "found": solved.verdicts.get(label, str(solved.verdict.kind)) == "found",
        }
    return out


def _declared(tables: Mapping[str, Any], path: str) -> Any:
    """Return the number that a scene declares for a path, which is the truth."""
    owner, _, key = path.partition(".")
    key, _, index = key.partition("[")
    table = "bodies" if owner in tables["bodies"] else "obstacles"
    value = tables[table][owner][key]
    return value[int(index[:-1])] if index else value


def main(
    films: Annotated[int, typer.Option(help="Films of each scene.")] = 20,
    data: Annotated[Path | None, typer.Option(help="Folder of the data file.")] = None,
) -> None:
    """Print how many intervals hold the truth, by number."""
    rows, shares = [HEADER], {"holds": [], "holds_without_floor": []}
    for name in SCENES:
        results = [measured(name, seed) for seed in range(films)]
        for label in results[0]:
            each = [result[label] for result in results]
            widths = [result["half_width"] for result in each if result["found"]]
            held = {key: sum(result[key] for result in each) for key in shares}
            for key, count in held.items():
                shares[key].append(count / films)
            rows.append((
                name, f"`{label}`", f"{films}", *map(str, held.values()),
                f"{100 * np.median([result['error'] for result in each]):.2g} %",
                f"{len(widths)}", f"{100 * np.median(widths):.2g} %" if widths else "",
            ))  # fmt: skip
            typer.echo("  ".join(rows[-1]))
    share, calibrated = (f"{100 * np.mean(each):.0f} %" for each in shares.values())
    typer.echo(f"all numbers: {share}, without the floor {calibrated}")
    if data is not None:
        command = f"python -m benchmarks.coverage --films {films}"
        publish.record(
            data, "coverage", {"table": rows, "share": share, "calibrated": calibrated}, command
        )


if __name__ == "__main__":
    typer.run(main)
