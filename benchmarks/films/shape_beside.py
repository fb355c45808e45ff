"""E and nu of a body without a mesh after one more step, on a finer mesh and with its shape free.

With the residuals r' of the finer mesh at the answer theta of a run, and the Jacobian J of the
run's mesh by theta and the amplitudes of the hull's error (`studies.scene.bodies.shape`),

    d = -J^+ r'

with the priors of the amplitudes among the rows. A whole fit with some 45 amplitudes beside theta
takes an hour or more of a core; this takes as long as one of its steps.
"""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.films import table as tables
from benchmarks.films.hulls import cells_of, is_shown
from studies.answer.intervals import intervals
from studies.problem.clusters import clusters_of_rows
from studies.problem.making import make_problem
from studies.problem.problem import SceneProblem
from studies.scene.reading import scene_from_dict


FINER = 0.02  # edge over the diagonal


def beside_rows(folder: Path, name: str, count: int) -> list[tuple[str, ...]]:
    """Return the cells of `hulls.FITS` but the verdict after the step; none without an answer."""
    scene, estimates = f"scene-{count}.toml", {}
    for row in tables.rows_of(folder, scene):
        if not len(row.estimate):
            return []
        estimates[row.parameter.removeprefix(f"{name}.")] = np.squeeze(row.estimate).tolist()
    text: dict[str, Any] = tomllib.loads((folder / scene).read_text())
    body = text["bodies"][name] | estimates

    def at_answer(**changes: Any) -> SceneProblem:
        changed = text | {"bodies": {name: body | changes}}
        problem = make_problem(scene_from_dict(changed, str(folder))).everything
        return problem.with_steps_for(problem.parameters.start)

    finer = at_answer(edge_length=FINER)
    r = finer.residuals(finer.parameters.start)[: -finer.parameters.size]
    text["free"][f"{name}.shape"] = {}
    problem = at_answer()
    theta, parameters = problem.parameters.start, problem.parameters
    before, J = problem.residuals_and_jacobian(theta)
    r = np.append(r, before[-parameters.size :])  # priors
    step = -J.solve(r)
    theta, left = theta + step, r + J @ step
    spread = intervals(parameters, theta, left, J, frames=clusters_of_rows(problem))
    after, labels = parameters.natural(theta), parameters.labels
    rows = []
    for row in filter(is_shown, tables.rows_of(folder, scene)):
        k = labels.index(row.parameter)
        ends = np.reshape([end[k] for end in spread.model], (1, 2))
        moved = replace(row, estimate=after[k : k + 1], interval=ends)
        rows.append(cells_of(moved, count)[:-1])  # a verdict is of a run
    return rows
