"""What records and tangents need to know of a system: the twins of `adjsim/system.py`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from adjsim import checks
from adjsim.jit.devices import module_of
from adjsim.system import Fields, RolloutError, System
from adjsim.worlds import Batch


S = TypeVar("S")
T = TypeVar("T")


class Sweep(ABC):
    """Cotangents on their way from the last frame to the initial state."""

    @abstractmethod
    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps down to `start`; `rows[k]` of the fields holds state start + k."""

    @abstractmethod
    def adjoint(self) -> Fields:
        """Return the adjoint of the state that is reached, without its frame, on the host."""

    def by_force(self, row: int, fields: Fields) -> dict[str, Fields]:
        """Return what each force added to it in the step undone last, whose state is in `row`."""
        del row, fields
        return {}

    @abstractmethod
    def gradient(self, wanted: Sequence[str]) -> Any:
        """Return by path the gradient of the steps that are undone, of wanted parameters."""

    @abstractmethod
    def finish(self) -> Any:
        """Return the wanted gradient by path, once state 0 is reached."""


class Tangent(ABC):
    """A direction on its way from the initial state to the last frame."""

    initial: Sequence[Any]  # the tangent of the initial state, by field

    def load(self, tan_fields: Fields, row: int) -> None:
        """Write the tangent of the initial state to a row."""
        for field, values in zip(tan_fields, self.initial, strict=True):
            field[row] = values

    @abstractmethod
    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run states and their tangents from state k0; `rows` as in `Stepper.advance`.

        Raise a RolloutError if the state leaves the finite numbers, unless the stepper marks that.
        """


class SystemTwin(Generic[S, T]):
    """The adjoint and the tangent of one class of systems.

    Attributes
    ----------
    FIELDS : tuple of str
        Of a trajectory, those that have cotangents.
    sweep : callable
        (stepper, state, steps, adj_frames, wanted): begins a reverse sweep towards `state`. Only
        the frames have cotangents, all others are zero.
    tangent : callable
        (stepper, state, tangents): begins a tangent from checked directions by path; missing ones
        are zero.
    """

    FIELDS: ClassVar[tuple[str, ...]]
    sweep: Callable[..., Sweep]
    tangent: Callable[..., Tangent]

    def in_order(self, adjoints: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the cotangents given in order or by name, None for those left out.

        Raise a ValueError if there are too many, one is given twice, or a name is unknown.
        """
        names = [f"adj_{field}" for field in self.FIELDS]
        if len(adjoints) > len(names):
            raise ValueError(
                f"The cotangents must be {' and '.join(f'`{n}`' for n in names)}, got "
                f"{len(adjoints)}. Those of bodies go by `bodies=`."
            )
        by_name = dict(zip(names, adjoints, strict=False))
        for name, value in named.items():
            if checks.known_key("cotangent", name, names) in by_name:
                raise ValueError(f"`{name}` must be given once, in order or by name, got both.")
            by_name[name] = value
        return [by_name.get(name) for name in names]

    def parts(self, system: Any, fields: Fields) -> dict[str, np.ndarray]:
        """Return the fields of an adjoint, or of cotangents of frames, by name."""
        del system
        return dict(zip(self.FIELDS, fields, strict=True))

    def check_wrt(self, system: Any, state: Any, wrt: Sequence[str] | None) -> list[str]:
        """Return the wanted paths; None is all of them."""
        return check_paths(wrt, known_paths(system, state))

    def check_tangents(self, system: Any, state: Any, tangents: Any) -> Any:
        """Return the tangents as checked arrays in the shapes of their parameters."""
        return check_tangents(system, state, tangents)

    def check_gradient(self, gradient: Any, *, marks: bool) -> Any:
        """Return a gradient whose every entry is finite, or, if it `marks`, is NaN."""
        return check_gradient(gradient, marks=marks)

    def cotangents(self, trajectory: T, given: Sequence[Any], dtype: np.dtype) -> Fields:
        """Return the cotangents of the frames, one array per field, from what a user gave."""
        frames = {name: getattr(trajectory, name) for name in self.FIELDS}
        return check_cotangents(frames, given, dtype)


def check_cotangents(
    frames: Mapping[str, np.ndarray], given: Sequence[Any], dtype: np.dtype
) -> Fields:
    """Return the cotangents of named fields of a trajectory; None is zero.

    Raise a ValueError if all are None, or one has the wrong shape or is not finite, or bodies are
    given that the system does not have.
    """
    if len(given) > len(frames):
        raise ValueError(
            f"`bodies` must not be given: only a Model has them, and this system has "
            f"{' and '.join(frames)}."
        )
    if all(value is None for value in given):
        names = " or ".join(f"`adj_{name}`" for name in frames)
        raise ValueError(f"A cotangent must be given, {names}, got None for all.")
    fields = []
    for (name, frame), value in zip(frames.items(), given, strict=True):
        if value is None:
            adj = module_of(frame).zeros(frame.shape, dtype)
        elif module_of(value) is np:
            checked = checks.array(f"adj_{name}", value, frame.shape, dtype=dtype)
            # A read-only array is of another type to compiled loops.
            adj = np.require(checked, requirements="W")
        else:
            adj = value.reshape(frame.shape).astype(dtype)
        fields.append(adj)
    return tuple(fields)


def frames_of(steps: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Return for the states start + 1 to stop which frame shows each, or -1, int64."""
    states = np.arange(start + 1, stop + 1)
    index = np.searchsorted(steps, states)
    shown = steps[np.minimum(index, len(steps) - 1)] == states
    return np.where(shown, index, -1).astype(np.int64)


def fields_of(trajectory: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a trajectory by name; bodies have "BODY.FIELD"."""
    fields = {
        name: value for name, value in vars(trajectory).items()
        if name != "steps" and isinstance(value, np.ndarray)
    }  # fmt: skip
    for body, states in getattr(trajectory, "bodies", {}).items():
        fields |= {f"{body}.{name}": np.asarray(value) for name, value in vars(states).items()}
    return fields


def cotangents_of(fields: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return cotangents of fields, by the names of `fields_of`, as arguments of `Record.vjp`."""
    arguments: dict[str, Any] = {}
    for name, adj in fields.items():
        body, _, field = name.rpartition(".")
        if body:
            arguments.setdefault("bodies", {}).setdefault(body, {})[field] = adj
        else:
            arguments[f"adj_{field}"] = adj
    return arguments


def require_one_world(name: str, system: Any) -> None:
    """Raise where there is a batch of worlds; the message calls it by `name`."""
    if isinstance(system, Batch):
        raise TypeError(
            f"`{name}` must be of one world, got a batch of {system.n_worlds}. Take each world "
            "alone."
        )


def known_paths(system: System[S, T], state: S) -> list[str]:
    """Return the paths of all parameters of a system and its initial state."""
    return [*system.parameters(), *system.state_parameters(state)]


def check_paths(wrt: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Return the wanted paths, all of them known; None is all that are."""
    known = list(known)
    if wrt is None:
        return known
    return [checks.known_key("parameter", path, known) for path in checks.paths("wrt", wrt)]


def check_tangents(
    system: System[S, T], state: S, tangents: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return the tangents as checked arrays in the shapes of their parameters."""
    tangents = checks.mapping("tangents", tangents, "{'gravity': (0, 1, 0)}")
    values = {**system.parameters(), **system.state_parameters(state)}
    shapes = {path: np.shape(value) for path, value in values.items()}
    checked = {}
    for path, value in tangents.items():
        shape = shapes[checks.known_key("parameter", path, shapes)]
        checked[path] = checks.array(f"tangents[{path!r}]", value, shape)
    return checked


def check_gradient(
    gradient: dict[str, np.ndarray], where: str = "", *, marks: bool
) -> dict[str, np.ndarray]:
    """Return a gradient whose every entry is finite; if it `marks`, one that is not is all NaN.

    Raise a RolloutError if the adjoint grew beyond the finite numbers on its way back, unless it
    `marks`.
    """
    for path, value in gradient.items():
        if not np.isfinite(value).all():
            if marks:
                return {name: np.full_like(entries, np.nan) for name, entries in gradient.items()}
            raise RolloutError(
                f"The gradient of `{path}`{where} left the finite numbers: the motion depends on "
                "it too strongly for so long a rollout.",
                "Try fewer steps, a smaller {dt}, or smaller cotangents.",
            )
    return gradient
