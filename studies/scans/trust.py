r"""How far the gradient can be trusted at a point: beside central differences.

Along an axis p with a step h the derivative a of the adjoint stands beside the central difference

    d = (L(p + h) - L(p - h)) / (2 h),   relative difference = |a - d| / s,
    s = max(|a|, |d|, |L(p + h) - L(p)|/h, |L(p) - L(p - h)|/h, r L(p)/h)

in float64. s keeps the one-sided slopes, since at a minimum a and d are 0 up to rounding, and
r L/h, what rounding leaves of a difference: where a loss does not move, a gradient of 0 is right.
Where a touch moves to another step within p - h .. p + h, d looks across a kink and a does not.
So it does where a pixel jumps, as where two soft faces swap their depth order; then a shorter step
agrees. Such points are counted by themselves; a step so short that rounding could hide what the
first one showed says nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.answer.kinks import margins
from studies.problem.problem import SceneProblem
from studies.problem.steps import Steps
from studies.problem.worlds import Sample
from studies.scans.terrain import Grid, Terrain


# Of a difference, as a part of the value or of the axis's spacing. In float32 at a minimum the
# gradient is what rounding leaves, about 1e-6 of slopes nearby: s must be more than that.
STEP = {"float64": 1e-6, "float32": 1e-3}
AGREES = {"float64": 1e-4, "float32": 1e-2}  # relative difference of what agrees
SHORTER = (1 / 8, 1 / 64, 1 / 512)  # parts of the step that are tried where it disagrees
HIDDEN = 0.1  # of what a and d are apart: a larger rounding hides whether they agree
ROUNDING = 64.0 * np.finfo(np.float64).eps / AGREES["float64"]  # r


@dataclass(frozen=True, eq=False)
class Trust:
    """A gradient beside differences, along each axis that is a parameter: (n_axes,) each."""

    difference: np.ndarray  # d; NaN where a neighbour has no loss
    relative: np.ndarray
    shorter: np.ndarray  # bool: whether they agree with a shorter step though not with this one
    crosses: np.ndarray  # bool: whether a touch moves to another step within the two steps


def _step_sizes(grid: Grid, natural: np.ndarray) -> np.ndarray:
    """Return the step of the differences along each axis that is a parameter."""
    found, part = [], STEP[grid.scan.options.dtype]
    for k, i in zip(grid.on_problem, grid.scanned, strict=True):
        axis = grid.axes[k]
        spacing = (axis.stop - axis.start) / max(axis.count - 1, 1)
        found.append(part * max(abs(natural[i]), spacing) or part)
    return np.array(found)


def compare(
    grid: Grid,
    terrain: Terrain,
    points: Sequence[np.ndarray],
    samples: Sequence[Sample],
    *,
    steps: Sequence[Steps],
) -> list[Trust]:
    """Return how the gradients of samples stand beside differences, in float64.

    `steps` are the time steps of the points, and of those around them.
    """
    exact = replace(terrain, problem=terrain.problem.with_dtype("float64"))
    tolerance = AGREES[terrain.problem.dtype]
    sizes = np.array([_step_sizes(grid, point) for point in points])
    adjoints = np.array([sample.gradient[grid.scanned] for sample in samples])
    difference, scale, _ = _differences(exact, grid, points, sizes, steps=steps)
    relative = _relative(adjoints, difference, scale)
    found = []
    for k, point in enumerate(points):
        shorter = np.zeros(len(grid.scanned), bool)
        apart = np.abs(adjoints[k] - difference[k])
        for part in SHORTER if (relative[k] > tolerance).any() else ():
            own = part * sizes[k : k + 1]
            *again, least = _differences(exact, grid, [point], own, steps=[steps[k]])
            told = AGREES["float64"] * least[0] < HIDDEN * apart
            shorter |= told & (_relative(adjoints[k : k + 1], *again)[0] <= tolerance)
        crosses = _crosses(replace(exact.problem, steps=steps[k]), grid, point, sizes[k])
        found.append(Trust(difference[k], relative[k], shorter, crosses))
    return found


def _relative(adjoints: np.ndarray, difference: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return |a - d| / s; 0 where all of it is."""
    apart, size = np.abs(adjoints - difference), np.maximum(np.abs(adjoints), scale)
    return np.divide(apart, size, out=np.zeros_like(apart), where=size != 0.0)


def _differences(
    exact: Terrain,
    grid: Grid,
    points: Sequence[np.ndarray],
    sizes: np.ndarray,
    *,
    steps: Sequence[Steps],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d of points with their steps, s without |a|, and r L/h, (n_points, n_axes) each."""
    moved = [
        _moved(point, i, sign * h)
        for point, own in zip(points, sizes, strict=True)
        for i, h in zip(grid.scanned, own, strict=True)
        for sign in (1.0, -1.0)
    ]
    around = 2 * sizes.shape[1]
    own = [*steps, *(step for step in steps for _ in range(around))]
    values = _losses(exact, [*points, *moved], own)
    here, pairs = values[: len(points), None], values[len(points) :].reshape(*sizes.shape, 2)
    difference = (pairs[..., 0] - pairs[..., 1]) / (2.0 * sizes)
    one_sided = np.abs(pairs - here[..., None]).max(axis=-1) / sizes
    least = ROUNDING * np.abs(here) / sizes
    return difference, np.max([np.abs(difference), one_sided, least], axis=0), least


def _moved(point: np.ndarray, i: int, by: float) -> np.ndarray:
    out = point.copy()
    out[i] += by
    return out


def _losses(terrain: Terrain, points: Sequence[np.ndarray], steps: Sequence[Steps]) -> np.ndarray:
    """Return the losses of many points; NaN where there is none."""
    found = terrain.samples(points, with_gradient=False, steps=steps)
    return np.array([one.loss if isinstance(one, Sample) else np.nan for one in found])


def _crosses(problem: SceneProblem, grid: Grid, point: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return whether a touch moves to another step within the step of each axis."""
    crosses, here = np.zeros(len(sizes), bool), _touches(problem, point)
    if not here:
        return crosses
    for n, (i, h) in enumerate(zip(grid.scanned, sizes, strict=True)):
        try:
            ahead, behind = (_touches(problem, _moved(point, i, by)) for by in (h, -h))
            crosses[n] = not ahead == here == behind
        except (ValueError, ArithmeticError):  # the motion ends there
            crosses[n] = True
    return crosses


def _touches(problem: SceneProblem, natural: np.ndarray) -> list[list[bool]]:
    """Return which points touch in which steps, by contact; empty where nothing can touch."""
    return [(own.touch > 0.0).tolist() for own in margins(problem.motion_at(natural)).values()]
