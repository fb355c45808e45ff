r"""How far the gradient can be trusted at a point: against differences, and to the next kink.

Along an axis p with a step h the derivative a of the adjoint stands beside the central difference

    d = (L(p + h) - L(p - h)) / (2 h),   relative difference = |a - d| / s,
    s = max(|a|, |d|, |L(p + h) - L(p)|/h, |L(p) - L(p - h)|/h, r L(p)/h)

in float64. s keeps the one-sided slopes, since at a minimum a and d are 0 up to rounding, and
r L/h, what rounding leaves of a difference: where a loss does not move, a gradient of 0 is right.
Where a touch moves to another step within p - h .. p + h, d looks across a kink and a does not.
So it does where a pixel jumps, as where two soft faces swap their depth order; then a shorter step
agrees. Such points are counted by themselves; a step so short that rounding could hide what the
first one showed says nothing. To first order the nearest kink along p is where a penetration c
reaches 0,

    min over steps and contacts of |c| / |dc/dp|,   dc/dp by the same differences.

The estimate of a black box (REINFORCE with the mean of its samples for a baseline; Williams,
Machine Learning 8 (1992)) takes values of the loss alone, at p + sigma |p| e_k with e_k normal:

    g = sum_k (L_k - mean L) e_k / ((K - 1) sigma |p|).

Where two neighbours of a grid differ in what touches in which step, a touch has moved to another
step somewhere between them, and the loss has a kink there, or with contact damping a jump. Where
they differ in which faces are seen in which frame, one has come into view or left it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim.forces.margins import ContactMargins
from render.blending import Hard
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.answer.kinks import margins
from studies.problem.problem import SceneProblem
from studies.problem.worlds import Sample
from studies.scans.terrain import Points, ScanPoints, Steps, Terrain


# Of a difference, as a part of the value or of the axis's spacing. In float32 at a minimum the
# gradient is what rounding leaves, about 1e-6 of slopes nearby: s must be more than that.
STEP = {"float64": 1e-6, "float32": 1e-3}
AGREES = {"float64": 1e-4, "float32": 1e-2}  # relative difference of what agrees
SHORTER = (1 / 8, 1 / 64, 1 / 512)  # parts of the step that are tried where it disagrees
HIDDEN = 0.1  # of what a and d are apart: a larger rounding hides whether they agree
ROUNDING = 64.0 * np.finfo(np.float64).eps / AGREES["float64"]  # r
SEED_OF_ESTIMATE = 3
DIGITS = 12  # of the name of a set


@dataclass(frozen=True, eq=False)
class Trust:
    """A gradient beside differences, along each axis that is a parameter: (n_axes,) each."""

    difference: np.ndarray  # d; NaN where a neighbour has no loss
    relative: np.ndarray
    shorter: np.ndarray  # bool: whether they agree with a shorter step though not with this one
    crosses: np.ndarray  # bool: whether a touch moves to another step within the two steps
    kink: np.ndarray  # how far the nearest kink is, in the axis's unit; inf where nothing is near


def _step_sizes(grid: ScanPoints, natural: np.ndarray) -> np.ndarray:
    """Return the step of the differences along each axis that is a parameter."""
    sizes, relative = [], STEP[grid.scan.options.dtype]
    for k, i in zip(grid.on_problem, grid.scanned, strict=True):
        axis = grid.axes[k]
        spacing = (axis.stop - axis.start) / max(axis.count - 1, 1)
        sizes.append(relative * max(abs(natural[i]), spacing) or relative)
    return np.array(sizes)


def compare(
    grid: ScanPoints, terrain: Terrain, points: Points, samples: Sequence[Sample], *, steps: Steps
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
    comparisons = []
    for k, point in enumerate(points):
        shorter = np.zeros(len(grid.scanned), bool)
        apart = np.abs(adjoints[k] - difference[k])
        for factor in SHORTER if (relative[k] > tolerance).any() else ():
            shorter_sizes = factor * sizes[k : k + 1]
            *again, least = _differences(exact, grid, [point], shorter_sizes, steps=[steps[k]])
            is_clear = AGREES["float64"] * least[0] < HIDDEN * apart
            shorter |= is_clear & (_relative(adjoints[k : k + 1], *again)[0] <= tolerance)
        kinks = _kinks(replace(exact.problem, steps=steps[k]), grid, point, sizes[k])
        comparisons.append(Trust(difference[k], relative[k], shorter, *kinks))
    return comparisons


def _relative(adjoints: np.ndarray, difference: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return |a - d| / s; 0 where all of it is."""
    apart, size = np.abs(adjoints - difference), np.maximum(np.abs(adjoints), scale)
    return np.divide(apart, size, out=np.zeros_like(apart), where=size != 0.0)


def _differences(
    exact: Terrain, grid: ScanPoints, points: Points, sizes: np.ndarray, *, steps: Steps
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return d of points with their steps, s without |a|, and r L/h, (n_points, n_axes) each."""
    moved = [
        _moved(point, i, sign * h)
        for point, size in zip(points, sizes, strict=True)
        for i, h in zip(grid.scanned, size, strict=True)
        for sign in (1.0, -1.0)
    ]
    around = 2 * sizes.shape[1]
    all_steps = [*steps, *(step for step in steps for _ in range(around))]
    values = _losses(exact, [*points, *moved], all_steps)
    here, pairs = values[: len(points), None], values[len(points) :].reshape(*sizes.shape, 2)
    difference = (pairs[..., 0] - pairs[..., 1]) / (2.0 * sizes)
    one_sided = np.abs(pairs - here[..., None]).max(axis=-1) / sizes
    least = ROUNDING * np.abs(here) / sizes
    return difference, np.max([np.abs(difference), one_sided, least], axis=0), least


def _moved(point: np.ndarray, i: int, by: float) -> np.ndarray:
    out = point.copy()
    out[i] += by
    return out


def _losses(terrain: Terrain, points: Points, steps: Steps) -> np.ndarray:
    """Return the losses of many points; NaN where there is none."""
    samples = terrain.samples(points, with_gradient=False, steps=steps)
    return np.array([sample.loss if isinstance(sample, Sample) else np.nan for sample in samples])


def _kinks(
    problem: SceneProblem, grid: ScanPoints, point: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether a touch moves within each step, and how far the nearest one is from it."""
    crosses, kink = np.zeros(len(sizes), bool), np.full(len(sizes), np.inf)
    here = margins(problem.motion_at(point))
    if not here:
        return crosses, kink
    for n, (i, h) in enumerate(zip(grid.scanned, sizes, strict=True)):
        try:
            ahead, behind = (margins(problem.motion_at(_moved(point, i, s))) for s in (h, -h))
        except (ValueError, ArithmeticError):
            crosses[n], kink[n] = True, 0.0  # the motion ends there
            continue
        crosses[n] = len({touch_set(touches) for touches in (ahead, here, behind)}) > 1
        for name, contact in here.items():
            slope = np.abs(ahead[name].touch - behind[name].touch) / (2.0 * h)
            away = np.full(slope.shape, np.inf)
            np.divide(np.abs(contact.touch), slope, out=away, where=slope > 0.0)
            kink[n] = min(kink[n], away.min(initial=np.inf))
    return crosses, kink


def estimates(
    grid: ScanPoints, terrain: Terrain, points: Points, numbers: Sequence[int], *, steps: Steps
) -> list[np.ndarray]:
    """Return the estimate of a black box at points, (n_axes,) each; NaN where a sample has none.

    `numbers` are those of the points in the grid, which seed their samples.
    """
    box = grid.scan.black_box
    assert box is not None
    drawn, moved, sizes = [], [], []
    for point, number in zip(points, numbers, strict=True):
        rng = np.random.default_rng([grid.scan.options.seed, SEED_OF_ESTIMATE, number])
        e = rng.standard_normal((box.samples, len(grid.scanned)))
        size = box.sigma * np.maximum(np.abs(point[grid.scanned]), np.finfo(float).tiny)
        around = np.tile(point, (box.samples, 1))
        around[:, grid.scanned] += size * e
        moved += list(around)
        drawn.append(e)
        sizes.append(size)
    all_steps = [step for step in steps for _ in range(box.samples)]
    losses = _losses(terrain, moved, all_steps).reshape(len(points), box.samples)
    return [
        ((loss - loss.mean()) @ e) / ((box.samples - 1) * size)
        for loss, e, size in zip(losses, drawn, sizes, strict=True)
    ]


def events(problem: SceneProblem, natural: np.ndarray) -> dict[str, Any]:
    """Return what touches and what is seen at natural values; None where nothing can.

    `touches` counts pairs of a point and a step, `faces` pairs of a face and a frame. The sets
    have names that are equal where the sets are: of the pairs, and of the points that touch at all.
    """
    record: dict[str, Any] = dict.fromkeys(
        ("touches", "touch_set", "contact_set", "faces", "face_set")
    )
    if seen := [_seen(*scenery) for scenery in problem.sceneries_at(natural).values()]:
        record |= {"faces": sum(int(visible.sum()) for visible in seen), "face_set": _name(seen)}
    if contacts := margins(problem.motion_at(natural)):
        touching = [contact.touch > 0.0 for contact in contacts.values()]
        record["touches"] = int(sum(touches.sum() for touches in touching))
        record["touch_set"] = touch_set(contacts)
        record["contact_set"] = _name(np.any(touches, axis=0) for touches in touching)
    return record


def touch_set(contacts: Mapping[str, ContactMargins]) -> str:
    """Return the name of the set of points and steps that touch."""
    return _name(contact.touch > 0.0 for contact in contacts.values())


def _seen(scene: Scene, camera: Any, vertices: Mapping[str, np.ndarray], size: Any) -> np.ndarray:
    """Return which faces are nearest at the middle of some pixel, (n_frames, n_faces)."""
    total = sum(len(mesh.faces) for mesh in scene.objects.values())
    objects, first = {}, 1
    for name, mesh in scene.objects.items():
        number = np.arange(first, first + len(mesh.faces)) / total
        first += len(mesh.faces)
        colors = np.repeat(number[:, None], 3, axis=1)
        objects[name] = Mesh(mesh.faces, face_colors=colors, material=Material(1.0, 0.0))
    exact = {name: np.asarray(x, np.float64) for name, x in vertices.items()}
    drawn = rasterize(
        Scene(objects, scene.lights), camera, SoftRasterizer(blend=Hard()), exact, size
    )
    frames = np.rint(drawn[..., 0] * total).astype(np.int64)
    frames = frames.reshape(-1, frames.shape[-2] * frames.shape[-1])
    seen = np.zeros((len(frames), total + 1), bool)
    np.put_along_axis(seen, frames, values=True, axis=1)
    return seen[:, 1:]


def _name(sets: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for mask in sets:
        digest.update(repr(mask.shape).encode())
        digest.update(np.packbits(mask).tobytes())
    return digest.hexdigest()[:DIGITS]
