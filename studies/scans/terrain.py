"""The problem of a scene as a function of its natural values, and where a scan stands in it.

    point of the grid -> settings -> problem of a scene -> natural values -> loss, gradient

An axis is a value by its path in the scene, in its own unit, or a number of the scene file. The
latter makes another problem, with observations of its own if they are simulated; so points that
share such settings are neighbours.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from studies.problem.free import more_values
from studies.problem.making import make_problem
from studies.problem.many_thetas import samples
from studies.problem.problem import SceneProblem
from studies.problem.steps import TimeSteps
from studies.problem.worlds import Failure, Sample
from studies.runs.errors import StudyError
from studies.scans.spec import Axis, Scan
from studies.scene.components import component_of, split_component
from studies.scene.declared import Free, SceneFile
from studies.scene.maps import Value
from studies.scene.overrides import set_override
from studies.scene.reading import scene_from_dict
from studies.scene.tables import unknown


SHOWN = 8  # labels that a message names
Points = Sequence[np.ndarray]  # natural values, (n,) each
Steps = Sequence[TimeSteps]
MOST_KEPT = 16  # natural values whose gradient is kept, where none of the others is scanned


@dataclass(frozen=True, eq=False)
class Terrain:
    """A problem whose theta are its natural values, so that gradients are per unit of each."""

    problem: SceneProblem
    base: np.ndarray  # natural values where nothing is scanned, (n,)
    truth: np.ndarray | None  # the hidden ones, (n,)
    positive: frozenset[str]  # labels of values that must be above 0

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the natural values."""
        return self.problem.parameters.labels

    def unit(self, label: str) -> str:
        """Return the unit of a natural value; empty where it has none."""
        units = self.problem.parameters.units()
        unit = units.get(label) or units.get(split_component(label)[0], "")
        return "" if unit == "-" else unit

    def why_not(self, natural: np.ndarray) -> str:
        """Return why no scene can have these values, such as a mass below 0; empty if one can."""
        for label, value in zip(self.labels, natural, strict=True):
            if label in self.positive and value <= 0.0:
                return f"`{label}` must be above 0, got {value:g}."
        return ""

    def samples(
        self, points: Points, *, with_gradient: bool = True, steps: Steps | None = None
    ) -> list[Sample | Failure]:
        """Return loss and gradient at natural values; else as `many_thetas.samples`."""
        reasons = [self.why_not(point) for point in points]
        good = [k for k, reason in enumerate(reasons) if not reason]
        good_steps = None if steps is None else [steps[k] for k in good]
        possible = [points[k] for k in good]
        evaluated = iter(
            samples(self.problem, possible, with_gradient=with_gradient, steps=good_steps)
        )
        return [Failure(reason) if reason else next(evaluated) for reason in reasons]


@dataclass(frozen=True, eq=False)
class ScanPoints:
    """The points of a scan, in the order in which they are evaluated."""

    scan: Scan
    first: Terrain  # of the scene as it is
    on_problem: tuple[int, ...]  # which axes are values of the scene; the others are settings

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes."""
        return self.scan.axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis."""
        return tuple(axis.count for axis in self.axes)

    @property
    def on_settings(self) -> tuple[int, ...]:
        """Which axes are settings."""
        return tuple(k for k in range(len(self.axes)) if k not in self.on_problem)

    @property
    def scanned(self) -> list[int]:
        """Which natural values the axes of the problem are, in their order."""
        return [self.first.labels.index(self.axes[k].key) for k in self.on_problem]

    @property
    def kept(self) -> list[int]:
        """Which natural values have their gradient kept: all, or of many the scanned ones."""
        n = len(self.first.labels)
        return list(range(n)) if n <= MOST_KEPT else self.scanned

    def order(self) -> list[tuple[int, ...]]:
        """Return the index of each point: settings change slowest."""
        index = np.indices(self.shape).reshape(len(self.shape), -1).T
        slow = [index[:, k] for k in (*self.on_settings, *self.on_problem)]
        return [tuple(row) for row in index[np.lexsort(slow[::-1])].tolist()]

    def settings(self, index: Sequence[int]) -> dict[str, Any]:
        """Return the settings of a point that are axes, by key."""
        return {self.axes[k].key: self.axes[k].numbers[index[k]] for k in self.on_settings}

    def natural(self, terrain: Terrain, index: Sequence[int]) -> np.ndarray:
        """Return the natural values at a point."""
        values = terrain.base.copy()
        for k in self.on_problem:
            values[terrain.labels.index(self.axes[k].key)] = self.axes[k].values[index[k]]
        return values

    def terrain(self, changed: Mapping[str, Any]) -> Terrain:
        """Return the problem of the points with these settings."""
        return _terrain(self.scan, _scene(self.scan, changed)) if changed else self.first


def make_grid(scan: Scan) -> ScanPoints:
    """Return the points of a scan; raise where an axis, a subset or all points are impossible."""
    first = _terrain(scan, _scene(scan, {}))
    on_problem = tuple(k for k, axis in enumerate(scan.axes) if axis.key in first.labels)
    grid = ScanPoints(scan, first, on_problem)
    n_frames = first.problem.n_frames
    for name, frames in scan.subsets.items():
        if max(frames, default=0) > n_frames or not frames:
            raise StudyError(
                f"`subsets.{name}` must name frames from 1 to {n_frames}, got {list(frames)}."
            )
    if grid.on_settings:
        return grid
    reasons = (first.why_not(grid.natural(first, index)) for index in grid.order())
    reason = next(reasons)
    if reason and all(reasons):
        axes = " ".join(f"--over {axis.text}" for axis in grid.axes)
        raise StudyError(f"`{axes}`: no point of it can have a loss. {reason} Scan other values.")
    return grid


def _scene(scan: Scan, changed: Mapping[str, Any]) -> SceneFile:
    values = tomllib.loads(scan.scene)
    for key, value in changed.items():
        set_override(values, f"{key}={value!r}")
    return scene_from_dict(values)


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a scene file, by dotted key."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    for name, item in value.items() if isinstance(value, Mapping) else ():
        if path or name not in ("free", "truth", "instances", "goal", "published"):
            yield from _numbers(item, f"{path}.{name}" if path else name)


def _terrain(scan: Scan, file: SceneFile) -> Terrain:
    """Return the problem of a scene in natural values: those that it asks for, and those scanned.

    What else is fitted, such as cameras, stays where the scan holds it.
    """
    options = scan.options
    shared: dict[str, Any] = {
        key: getattr(options, key) for key in ("dtype", "device", "checkpoint")
    }
    prepared = make_problem(file, fits_first=False, **shared)
    values = {**prepared.everything.built.values, **more_values(prepared.everything.observers)}
    keys = _on_problem(scan.axes, file, values)
    labels = prepared.everything.parameters.labels
    more = {key: _free(axis, values) for key, axis in keys.items() if key not in labels}
    if more or not prepared.is_twin:
        prepared = make_problem(replace(file, free={**file.free, **more}), **shared)
    everything = prepared.everything
    parameters = everything.parameters
    base = parameters.natural(parameters.start)
    truth = None if prepared.truth is None else prepared.truth.flat(parameters.paths)
    if scan.at == "truth" and truth is not None:
        base = truth.copy()
    for k, label in enumerate(parameters.labels):
        base[k] = scan.values.get(label, base[k])
    if scan.values and not scan.values.keys() & set(parameters.labels):
        raise StudyError(
            f"`--at` {scan.at} holds {', '.join(scan.values)}, and the scan none of these: it is "
            "the run of another scene."
        )
    scanned = (parameters.labels.index(key) for key in keys)
    held = everything.at(parameters.theta(base), keep=(*parameters.answers, *scanned))
    reduced = held.parameters
    kept = [parameters.labels.index(label) for label in reduced.labels]
    return Terrain(
        replace(held, parameters=reduced.as_natural()),
        base[kept],
        None if truth is None else truth[kept],
        frozenset(x for x in reduced.labels if values[split_component(x)[0]].transform == "log"),
    )


def _on_problem(
    axes: Sequence[Axis], file: SceneFile, values: Mapping[str, Value]
) -> dict[str, Axis]:
    """Return the axes that are values of the scene, by key; the others are numbers of its file."""
    numbers, on_problem = dict(_numbers(file)), {}
    for axis in axes:
        owner = split_component(axis.key)[0]
        if owner in values:
            if component_of("--over", axis.key, values[owner].value).ndim:
                raise StudyError(
                    f"`--over {axis.text}`: `{axis.key}` has several numbers. Name one, as in "
                    f"{axis.key}[0]={axis.start:g}:{axis.stop:g}:{axis.count}."
                )
            on_problem[axis.key] = axis
        elif axis.key not in numbers:
            names = [*values, *numbers]
            hint = unknown("axis", axis.key, names).split(" Known:", 1)[0]
            near = difflib.get_close_matches(axis.key, names, n=SHOWN, cutoff=0.0)
            raise StudyError(
                f"{hint} `--over` takes a value of the scene by its path, or a number of its file. "
                f"The nearest ones: {', '.join(near)}."
            )
        elif isinstance(numbers[axis.key], int):
            axis.require_whole()
    return on_problem


def _free(axis: Axis, values: Mapping[str, Value]) -> Free:
    """Return how a value is free that the scene does not ask for: wide, as a scan has no bounds."""
    value = float(component_of("--over", axis.key, values[split_component(axis.key)[0]].value))
    span = abs(axis.stop - axis.start) + abs(value) + 1.0
    bounds = (min(value, axis.start) - span, max(value, axis.stop) + span)
    return Free(bounds=bounds, transform="linear")
