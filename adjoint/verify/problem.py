"""A problem whose derivatives are checked: a map from named parameters to numbers.

A problem knows nothing of how it is checked, and the checks know nothing of physics.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np


Values: TypeAlias = Mapping[str, np.ndarray]
NO_MARGINS = np.empty(0)


def no_margins(values: Values) -> np.ndarray:
    """Return no margins: smooth everywhere."""
    del values
    return NO_MARGINS


def changed(values: Values, point: Values) -> dict[str, np.ndarray]:
    """Return the values that differ from the point: what depends on these is made again."""
    return {path: value for path, value in values.items() if value is not point[path]}


def no_event() -> str:
    """Say nothing: nothing touches."""
    return ""


@dataclass(frozen=True)
class Problem:
    """A differentiable map at a point, with its tangent and its adjoint there.

    Attributes
    ----------
    point : mapping
        Every differentiable parameter by its path.
    owners : mapping
        For each path, the class that declares the parameter and its name there.
    forward : callable
        Takes values for all paths, returns a flat array of numbers of order 1.
    jvp : callable
        Takes tangents for some paths, returns the tangent of `forward` at the point.
    vjp : callable
        Takes a cotangent of `forward` and a sequence of paths, returns their gradient.
    margins : callable
        Takes values, returns numbers each of which changes sign at a kink; NaN: none there.
    dot_tolerance : float
        Bar of the dot test: 1e-12 for a kernel, 1e-10 for a rollout.
    kernel : Problem, optional
        The same over one step, held to the bar of a kernel.
    inert : sequence of str
        Paths that do not act here by the equations: their derivatives must be exactly 0.
    event : callable
        Returns a sentence on the touch that is nearest to happening in another step, or "".
    """

    point: Values
    owners: Mapping[str, tuple[str, str]]
    forward: Callable[[Values], np.ndarray]
    jvp: Callable[[Values], np.ndarray]
    vjp: Callable[[np.ndarray, Sequence[str]], Values]
    margins: Callable[[Values], np.ndarray] = no_margins
    dot_tolerance: float = 1e-12
    kernel: "Problem | None" = None
    inert: Sequence[str] = ()
    event: Callable[[], str] = no_event


def known_at_point(problem: Problem) -> Problem:
    """Return the problem with its outputs and margins at the point computed once for all checks."""

    def once(f: Callable[[Values], np.ndarray]) -> Callable[[Values], np.ndarray]:
        at_point = cache(lambda: f(problem.point))

        def remembered(values: Values) -> np.ndarray:
            moved = changed(values, problem.point).items()
            is_point = all(np.array_equal(value, problem.point[path]) for path, value in moved)
            return at_point() if is_point else f(values)

        return remembered

    return replace(problem, forward=once(problem.forward), margins=once(problem.margins))


@dataclass(frozen=True)
class System:
    """A named problem, made when it is needed.

    Systems of one `family` share compiled code: the first that is checked compiles it. Where
    `make` takes `n_steps`, corruptions of the adjoints ask for few.
    """

    name: str
    make: Callable[..., Problem]
    family: str = "pixels"


def systems(
    family: str, make: Callable[..., Problem], builds: Mapping[str, Any], **options: Any
) -> tuple[System, ...]:
    """Return the systems of scenes by name: `make` turns what builds a scene into its problem."""
    return tuple(
        System(name, partial(make, build, **options), family) for name, build in builds.items()
    )
