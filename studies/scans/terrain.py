"""A study's problem as a function of its natural values, and where a scan stands in it.

    point of the grid -> settings -> study's problem -> natural values -> loss, gradient

An axis is a parameter of the problem, in its own unit, or a setting of the study. A setting
makes another problem, with its own target; so points that share their settings are neighbours.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim import checks
from studies import config
from studies.config import StudySettings
from studies.errors import StudyError
from studies.image_fit import ImageFit
from studies.image_problem import ImageProblem
from studies.instances import Instances
from studies.registry import RunOptions, find_study
from studies.scans.axes import Axis
from studies.scans.spec import Scan


@dataclass(frozen=True, eq=False)
class Terrain:
    """A problem whose theta are its natural values.

    Attributes
    ----------
    problem : ImageProblem
        In natural values, so that gradients are per unit of each.
    fit : ImageFit
        The study's own, in its own theta.
    base : numpy.ndarray
        Natural values where nothing is scanned, (n,).
    truth : numpy.ndarray, optional
        The hidden ones, (n,).
    """

    problem: Any
    fit: ImageFit
    base: np.ndarray
    truth: np.ndarray | None

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the natural values."""
        return self.fit.problem.parameters.labels

    def unit(self, label: str) -> str:
        """Return the unit of a natural value; empty where it is not known."""
        return self.fit.units.get(label.split("[", maxsplit=1)[0], "")

    def check(self, natural: np.ndarray) -> None:
        """Complain of values that the study's search could not have, such as a mass below 0."""
        self.fit.problem.parameters.theta(natural)


def changed_values(settings: StudySettings, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a study with some changed, by dotted key."""
    values = copy.deepcopy(settings.values)
    for key, value in changed.items():
        *tables, last = key.split(".")
        here = values
        for table in tables:
            here = here[table]
        here[last] = value
    return values


def make_terrain(
    settings: StudySettings, options: RunOptions, at: str, changed: Mapping[str, Any]
) -> Terrain:
    """Return the problem of a study whose settings are changed, by dotted key.

    Raises
    ------
    StudyError
        If the study has no such problem, or more than one.
    ValueError
        If a setting is out of range.
    """
    values = changed_values(settings, changed)
    job = find_study(settings.kind).prepare(values, options)
    if not isinstance(job, ImageFit):
        if isinstance(job, Instances):
            hint = "Scan one of its instances: `instances=1`."
        else:
            hint = "Scan one that does, e.g. `beam` or `rigid-mass`."
        raise StudyError(
            f"A scan needs a study that fits one problem to images, not `{settings.kind}`. {hint}"
        )
    problem: ImageProblem = job.problem
    parameters = problem.parameters
    truth = None if job.truth is None else job.truth.flat(parameters.paths)
    start = parameters.natural(parameters.start)
    base = truth if at == "truth" and truth is not None else start
    natural = replace(problem, parameters=parameters.as_natural())  # pyright: ignore[reportArgumentType]
    return Terrain(natural, job, base, truth)


@dataclass(frozen=True, eq=False)
class Grid:
    """The points of a scan, in the order in which they are evaluated.

    Attributes
    ----------
    scan : Scan
    first : Terrain
        Of the study's settings as they are.
    on_problem : tuple of int
        Which axes are parameters of the problem; the others are settings.
    """

    scan: Scan
    first: Terrain
    on_problem: tuple[int, ...]

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

    def order(self) -> np.ndarray:
        """Return the index of each point, (n_points, n_axes): settings change slowest."""
        index = np.indices(self.shape).reshape(len(self.shape), -1).T
        slow = [index[:, k] for k in (*self.on_settings, *self.on_problem)]
        return index[np.lexsort(slow[::-1])]

    def settings(self, index: Sequence[int]) -> dict[str, Any]:
        """Return the settings of a point that are axes, by key."""
        found: dict[str, Any] = {}
        for k in self.on_settings:
            axis = self.axes[k]
            own = config.get(self.scan.settings.values, axis.key)
            found[axis.key] = (
                axis.whole_values()[index[k]]
                if isinstance(own, int)
                else float(axis.values[index[k]])
            )
        return found

    def natural(self, terrain: Terrain, index: Sequence[int]) -> np.ndarray:
        """Return the natural values at a point."""
        values = terrain.base.copy()
        for k in self.on_problem:
            values[terrain.labels.index(self.axes[k].key)] = self.axes[k].values[index[k]]
        return values

    def terrain(self, changed: Mapping[str, Any]) -> Terrain:
        """Return the problem of the points with these settings."""
        if not changed:
            return self.first
        scan = self.scan
        return make_terrain(scan.settings, scan.options, scan.at, changed)


def make_grid(scan: Scan) -> Grid:
    """Return the points of a scan.

    Raises
    ------
    StudyError
        If an axis is neither a parameter of the problem nor a number of its settings, or a
        subset names a frame that is not there, or no point is possible.
    """
    first = make_terrain(scan.settings, scan.options, scan.at, {})
    numbers = [
        key
        for key, value in config.flatten(scan.settings.values).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    for axis in scan.axes:
        check_key(axis, first.labels, numbers)
        if axis.key not in first.labels:
            own = config.get(scan.settings.values, axis.key)
            if isinstance(own, int):
                axis.whole_values()
    n_frames = len(first.problem.targets)
    for name, frames in scan.subsets.items():
        if max(frames, default=0) > n_frames or not frames:
            raise StudyError(
                f"`subsets.{name}` must name frames from 1 to {n_frames}, got {list(frames)}."
            )
    on_problem = tuple(k for k, axis in enumerate(scan.axes) if axis.key in first.labels)
    grid = Grid(scan, first, on_problem)
    if not grid.on_settings:
        require_possible(grid)
    return grid


def require_possible(grid: Grid) -> None:
    """Complain of a grid none of whose points the study's search could have."""
    reasons = []
    for index in grid.order().tolist():
        try:
            grid.first.check(grid.natural(grid.first, index))
        except ValueError as error:
            reasons.append(str(error))
        else:
            return
    axes = " ".join(f"--over {axis.text}" for axis in grid.axes)
    raise StudyError(f"`{axes}`: no point of it can have a loss. {reasons[0]} Scan other values.")


def check_key(axis: Axis, labels: Sequence[str], numbers: Sequence[str]) -> None:
    """Complain of an axis that is neither a parameter nor a number of the settings."""
    try:
        checks.known_key("axis", axis.key, [*labels, *numbers])
    except ValueError as error:
        hint = str(error).split(" Known:", 1)[0]
        shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
        raise StudyError(
            f"{hint} `--over` takes a parameter of the problem ({shown}) or a number of the "
            f"study's settings ({', '.join(numbers)})."
        ) from error
