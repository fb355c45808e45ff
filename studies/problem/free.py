"""What is free in a scene: paths with start, bounds, transform and prior, as one vector theta."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim import checks
from studies.answer.verdict import COLORS
from studies.problem.parameters import Block, Parameters
from studies.problem.transforms import Identity, Log, Scaled, Transform
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.components import component_of, split_component, with_components


WIDE = 100.0  # default bounds of a positive parameter: its start divided and multiplied by this
NEAR_BLACK = 1e-3
GROUPS = {"pose": ("rotation", "translation")}  # what stands for several paths


@dataclass(frozen=True, eq=False)
class Free:
    """One free path."""

    path: str
    unit: str
    start: np.ndarray  # () or (n,)
    bounds: tuple[float, float]
    transform: Transform
    prior: tuple[np.ndarray, np.ndarray] | None = None  # mean and standard deviation of theta
    is_answer: bool = True  # whether it is asked for; a nuisance such as a camera is not

    @property
    def is_shape(self) -> bool:
        """Whether it is the vertices of a body."""
        return self.path.endswith(".vertices")

    @property
    def is_view(self) -> bool:
        """Whether it is of a camera, a light or a look: what one frame shows, without motion."""
        return self.path.startswith(("cameras.", "lights.")) or ".look." in self.path

    def block(self) -> Block:
        """Return the block of parameters."""
        start = np.asarray(self.start, np.float64)[None]
        low, high = (np.broadcast_to(end, start.shape) for end in self.bounds)
        return Block((self.path,), self.transform, start, low, high)


class FreeParameters(Parameters):
    """Free parameters of a scene; paths that are tied follow others.

    `ties` gives the path that a tied one follows, and the factor; `wholes` gives values by path of
    which only components are free or tied. The prior of theta has the mean `prior_mean` and the
    error `prior_error`, (size,), infinite where there is none.
    """

    def __init__(
        self,
        free: tuple[Free, ...],
        ties: Mapping[str, tuple[str, float]] | None = None,
        wholes: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        super().__init__([one.block() for one in free])
        self.free, self.ties, self.wholes = free, dict(ties or {}), dict(wholes or {})
        mean, error = [], []
        for one, block in zip(free, self.blocks, strict=True):
            shape = block.start.shape
            known = one.prior or (np.zeros(shape), np.full(shape, np.inf))
            mean.append(np.broadcast_to(known[0], shape).ravel())
            error.append(np.broadcast_to(known[1], shape).ravel())
        self.prior_mean, self.prior_error = np.concatenate(mean), np.concatenate(error)

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are asked for."""
        flags = [np.full(one.start.size, one.is_answer) for one in self.free]
        return tuple(np.flatnonzero(np.concatenate(flags)).tolist())

    @property
    def first_answers(self) -> tuple[int, ...]:
        """Components that are searched first: those of the motion, or all if there are none."""
        flags = [np.full(one.start.size, one.is_answer and not one.is_view) for one in self.free]
        found = tuple(np.flatnonzero(np.concatenate(flags)).tolist())
        return found or self.answers

    def units(self) -> dict[str, str]:
        """Return the unit of every free path."""
        return {one.path: one.unit for one in self.free}

    def scene_values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the value of every free and tied path at theta, by path of the whole."""
        return with_components(self._with_tied(self.values(theta)), self.wholes)

    def scene_tangents(self, theta: np.ndarray, tan_theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tangent of every path that moves with a tangent of theta."""
        tangents = self.natural_tangents(theta, tan_theta)
        moved = self._with_tied({path: tan for path, tan in tangents.items() if np.any(tan)})
        return with_components(moved, {k: np.zeros_like(one) for k, one in self.wholes.items()})

    def scene_gradient(self, theta: np.ndarray, adjoints: Mapping[str, Any]) -> np.ndarray:
        """Return the gradient in theta from cotangents by path; missing ones are 0."""
        values = self.values(theta)
        gathered = {
            path: _cotangent(path, adjoints) + np.zeros_like(value)
            for path, value in values.items()
        }
        for path, (source, factor) in self.ties.items():
            gathered[source] = gathered[source] + factor * _cotangent(path, adjoints)
        return self.gradient(theta, gathered)

    def held_at(self, theta: np.ndarray, keep: tuple[int, ...] | None = None) -> "FreeParameters":
        """Return the parameters that start at theta; with `keep`, only blocks that it touches."""
        values = self.values(theta)
        free = tuple(replace(one, start=_inside(values[one.path], one)) for one in self.free)
        if keep is not None:
            ends = np.cumsum([one.start.size for one in free])
            which = {int(np.searchsorted(ends, i, side="right")) for i in keep}
            free = tuple(one for k, one in enumerate(free) if k in which)
        kept = {one.path for one in free}
        ties = {path: tie for path, tie in self.ties.items() if tie[0] in kept}
        whole = self.scene_values(theta)
        wholes = {path: whole.get(path, one) for path, one in self.wholes.items()}
        return FreeParameters(free, ties, wholes)

    def held_at_values(self, values: Mapping[str, np.ndarray]) -> "FreeParameters":
        """Return the parameters that start at these values, where there are any."""
        free = []
        for one in self.free:
            owner, index = split_component(one.path)
            known = owner in values
            start = values[owner][index] if known and index else values.get(owner)
            free.append(replace(one, start=_inside(np.asarray(start), one)) if known else one)
        wholes = {path: values.get(path, one) for path, one in self.wholes.items()}
        return FreeParameters(tuple(free), self.ties, wholes)

    def as_natural(self) -> "FreeParameters":
        """Return the parameters whose theta are their natural values, without bounds or priors."""
        wide = (-np.inf, np.inf)
        free = [replace(one, transform=Identity(), bounds=wide, prior=None) for one in self.free]
        return FreeParameters(tuple(free), self.ties, self.wholes)

    def _with_tied(self, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        tied = {
            path: factor * values[source]
            for path, (source, factor) in self.ties.items()
            if source in values
        }
        return {**values, **tied}


def _cotangent(path: str, adjoints: Mapping[str, Any]) -> np.ndarray:
    """Return that of a path, which may be a component; 0 where there is none."""
    owner, index = split_component(path)
    adj = np.asarray(adjoints.get(owner, 0.0), np.float64)
    return adj[index] if index and adj.ndim else adj


def _inside(value: np.ndarray, one: Free) -> np.ndarray:
    """Return a value strictly inside the bounds, which a search may have ended at."""
    low, high = one.bounds
    span = high - low if np.isfinite(high - low) else 1.0
    margin = 1e-9 * (span if one.bounds[0] <= 0.0 else min(span, low))
    return np.clip(value, low + margin, high - margin)


def make_free(
    given: Mapping[str, declared.Free],
    values: Mapping[str, Any],
    nuisances: tuple[Free, ...],
    views: Mapping[str, Free] | None = None,
) -> FreeParameters:
    """Return the parameters of a scene file's table `free`, and nuisances beside them.

    `values` is everything that may be free, by path; nuisances that the table names are left to it.
    `views` are cameras, lights and looks with their default priors, by path. Where the table names
    one beside parameters of the motion, it is a nuisance too: the question is the motion.
    """
    table = _ungrouped(given, values)
    ties, answers = {}, []
    wholes: dict[str, np.ndarray] = {}
    for path, one in table.items():
        owner, index = split_component(path)
        if owner not in values:
            raise StudyError(_unknown(path, values))
        value = values[owner]
        if index is not None:
            if owner in table:
                raise StudyError(
                    f'`free."{path}"` is a component of `free."{owner}"`, which is free already. '
                    "Leave one of them out."
                )
            wholes[owner] = np.asarray(value.value, np.float64)
            value = replace(value, value=component_of(f'free."{path}"', path, value.value))
        if one.tied_to is None:
            answers.append(_answer(path, one, value, (views or {}).get(path)))
            continue
        if one.tied_to not in table or table[one.tied_to].tied_to is not None:
            raise StudyError(
                f'`free."{path}".tied_to` must be another free path that is not tied itself, got '
                f"{one.tied_to!r}. Free ones: {', '.join(p for p in table if p != path) or 'none'}."
            )
        ties[path] = (one.tied_to, one.factor)
    others = tuple(one for one in nuisances if one.path not in {*table, *wholes})
    if not answers:
        raise StudyError(
            "`free` must name at least one parameter to find, e.g. "
            f'[free."{next(iter(values))}"]. Known: {", ".join(values)}.'
        )
    moving = [one for one in answers if not one.is_view]
    viewed = [one for one in answers if one.is_view]
    if moving:
        viewed = [replace(one, is_answer=False) for one in viewed]
    else:  # the question itself: only a prior that was asked for counts
        viewed = [one if table[one.path].prior else replace(one, prior=None) for one in viewed]
    return FreeParameters((*moving, *viewed, *others), ties, wholes)


def _ungrouped(
    given: Mapping[str, declared.Free], values: Mapping[str, Any]
) -> dict[str, declared.Free]:
    """Return the table with groups such as "cameras.front.pose" replaced by their paths."""
    table: dict[str, declared.Free] = {}
    for path, one in given.items():
        owner, _, name = path.rpartition(".")
        members = [f"{owner}.{part}" for part in GROUPS.get(name, ())]
        if path not in values and members and all(member in values for member in members):
            table |= dict.fromkeys(members, one)
        else:
            table[path] = one
    return table


def _unknown(path: str, values: Mapping[str, Any]) -> str:
    try:
        checks.known_key("path in `free`", path, values)
    except ValueError as error:
        return str(error)
    return path


def _answer(path: str, given: declared.Free, value: Any, view: Free | None = None) -> Free:
    """Return a free path from the table's row and what the scene says of it.

    `view` is the default of a camera, a light or a look, whose prior and unit stay unless the row
    says otherwise.
    """
    key = f'free."{path}"'
    if view is not None and given.start is given.bounds is given.transform is given.prior is None:
        return replace(view, is_answer=True)
    default = np.asarray(value.value, np.float64)
    start = default if given.start is None else np.asarray(given.start, np.float64)
    if start.shape not in {default.shape, default.shape[1:], ()}:
        raise StudyError(f"`{key}.start` must be one number or {default.size}, got {start.size}.")
    start = np.broadcast_to(start, default.shape).copy()
    if given.start is None and path.endswith(COLORS):  # black and white are at the bounds
        start = np.clip(start, NEAR_BLACK, 1.0 - NEAR_BLACK)
    kind = given.transform or value.transform
    low, high = given.bounds or _default_bounds(start, kind, value.bounds)
    if not low < high:
        raise StudyError(f"`{key}.bounds` must be [lower, upper], got [{low:g}, {high:g}].")
    if not ((low < start) & (start < high)).all():
        raise StudyError(
            f"`{key}.bounds` = [{low:g}, {high:g}] must have the start inside, got "
            f"{np.array2string(start, precision=6)}. Widen the bounds, or move `{key}.start`."
        )
    if kind == "log" and low <= 0.0:
        raise StudyError(
            f"`{key}.bounds` must be positive for a parameter that is searched in its logarithm, "
            f'got [{low:g}, {high:g}]. Raise the lower one, or set `{key}.transform = "linear"`.'
        )
    scale = _width(start, (low, high)) if value.scale is None else value.scale
    width = np.broadcast_to(np.asarray(scale, np.float64), start.shape).copy()
    transform = Log() if kind == "log" else Scaled(width[None])
    prior = None if given.prior is None else _prior(given.prior, kind, width)
    return Free(path, value.unit, start, (low, high), transform, prior)


def _default_bounds(
    start: np.ndarray, kind: str, allowed: tuple[float, float]
) -> tuple[float, float]:
    """Return bounds for a parameter that has none: two decades either way, or what is allowed."""
    if kind != "log":
        return allowed
    low, high = float(start.min()) / WIDE, float(start.max()) * WIDE
    return max(low, allowed[0]), min(high, allowed[1])


def _width(start: np.ndarray, bounds: tuple[float, float]) -> float:
    """Return the unit of theta of a linear parameter: a tenth of its bounds, or its size."""
    span = bounds[1] - bounds[0]
    return span / 10.0 if np.isfinite(span) else max(float(np.abs(start).max()), 1.0)


def _prior(given: declared.Prior, kind: str, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of theta."""
    mean = np.broadcast_to(np.asarray(given.mean, np.float64), width.shape)
    if kind == "log":
        return np.log(mean), given.error / mean
    return mean / width, given.error / width


def nuisance(path: str, value: Any, error: Any, unit: str = "-") -> Free:
    """Return a parameter that is fitted beside the answers, with a Gaussian prior around its start.

    Theta is the deviation from 0 in units of `error`, the standard deviation.
    """
    start = np.asarray(value, np.float64)
    width = np.broadcast_to(np.asarray(error, np.float64), start.shape).copy()
    transform = Scaled(width[None]) if start.ndim else Scaled(width.reshape(1))
    mean = start / width
    bounds = (-np.inf, np.inf)
    return Free(path, unit, start, bounds, transform, (mean, np.ones_like(mean)), is_answer=False)
