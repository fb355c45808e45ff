r"""Numbers that a scene declares and does not fit, each with its standard uncertainty.

An answer is only as true as what was declared. What is measured with a ruler, a watch or a balance
has a standard uncertainty: it is declared by the key below, or chosen, and 0 means exact.

    key               of                                        chosen
    scale_error       size of a body, lengths of a pendulum     2 % of it
    mass_error        density or mass of a body                 3 % of it
    position_error    place of a body at the start, each axis   0.5 % of its size [m]
    gravity_error     direction of gravity, to two sides        1 degree
    place_error       distance of an obstacle                   1 % of the largest body's size [m]
    tilt_error        direction of a plane, to two sides        2 degrees
    fps_error         rate of a film, or of points in pixels    0.5 % if its file has times, or 2 %

Pictures check a size as well as the camera is known: where the errors of a camera that is fitted
are larger than their defaults, the uncertainty of a size that is chosen grows with them. Where all
that was observed is simulated nothing is chosen: all is exact that is not declared.

`studies/answer/budget.py` counts them in the intervals of an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from studies.problem.forward import start_surfaces
from studies.problem.observations.films import FilmData
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.building import BuiltScene, build
from studies.scene.gravity import DIRECTION, GRAVITY
from studies.scene.obstacles import nearest_point, shifted, signed_distance, tilted


SCALE, MASS, POSITION, GRAVITY_LEANS, DISTANCE, TILT = 0.02, 0.03, 0.005, 1.0, 0.01, 2.0
STAMPED, TYPED = 0.005, 0.02  # of a rate of frames
NEARLY = 0.15  # a typed rate that differs less from that of the file may be a mistake
MASSES = ("density", "mass", "vertex_mass")
CAMERA = declared.Camera()  # with its errors by default
Moved = Callable[[SceneProblem, float], SceneProblem]


@dataclass(frozen=True, eq=False)
class DeclaredNumber:
    """A number that is declared and not fitted."""

    name: str  # in words, e.g. "the size of `beam`"
    key: str  # of the scene file, which declares its uncertainty
    error: float  # its standard uncertainty
    unit: str  # of this; "" where it is a part of the value
    is_chosen: bool  # whether the scene file does not say it
    moved: Moved  # moved(problem, amount) is the problem with the number larger by an amount


def declared_numbers(
    file: declared.SceneFile,
    built: BuiltScene,
    films: Mapping[str, FilmData],
    parameters: Parameters,
) -> list[DeclaredNumber]:
    """Return what a scene file declares that is neither free nor exact.

    Raises
    ------
    StudyError
        If an uncertainty is declared of what is free or has no derivative, or if it is larger than
        a body.
    """
    if file.purpose == "control":
        return []
    scene = _Declared(file, built, films, frozenset((*parameters.paths, *parameters.ties)))
    return [number for number in scene.numbers() if number.error > 0.0]


class _Error(NamedTuple):
    """A standard uncertainty: its key, what the scene file says, and what is chosen otherwise."""

    key: str
    given: float | None
    chosen: float
    unit: str = ""


@dataclass(frozen=True, eq=False)
class _Declared:
    """A scene file, and what is known of it."""

    file: declared.SceneFile
    built: BuiltScene
    films: Mapping[str, FilmData]
    free: frozenset[str]  # paths that are free or tied

    def numbers(self) -> Iterator[DeclaredNumber]:
        """Yield all declared numbers, exact ones too."""
        for name, body in self.file.bodies.items():
            match body:
                case declared.Smoke():
                    self._refuse_rates(name)
                    return
                case declared.Pendulum():
                    yield from self._of_pendulum(name, body)
                case _:
                    yield from self._of_mesh(name, body)
            yield from self._of_mass(name, body)
        if GRAVITY not in self.free:
            given = self.file.world.gravity_error
            error = _Error("world.gravity_error", given, GRAVITY_LEANS, "deg")
            yield from self._components(DIRECTION, "the direction of gravity", error)
        for name, obstacle in self.file.obstacles.items():
            if obstacle.fixed_to is None:
                yield from self._of_obstacle(name, obstacle)
        for name, observation in self.file.observations.items():
            yield from self._of_observation(name, observation)

    def _of_pendulum(self, name: str, body: declared.Pendulum) -> Iterator[DeclaredNumber]:
        length, center = f"{name}.length", f"{name}.center_of_mass"
        moved = _times([path for path in (length, center) if path in self.built.values])
        error = _Error(f"bodies.{name}.scale_error", body.scale_error, SCALE)
        yield from self._unless_free(length, f"the length of `{name}`", error, moved)

    def _of_mesh(self, name: str, body: Any) -> Iterator[DeclaredNumber]:
        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            return _rebuilt(problem, self.file, {name: 1.0 + amount})

        chosen, size = SCALE * self._looser_cameras(), self._size(name)
        error = _Error(f"bodies.{name}.scale_error", body.scale_error, chosen)
        yield from self._unless_free(f"{name}.vertices", f"the size of `{name}`", error, moved)
        key = f"bodies.{name}.position_error"
        error = _Error(key, _length(key, body.position_error, size), POSITION * size, "m")
        yield from self._components(f"{name}.position", f"where `{name}` starts", error)

    def _of_mass(self, name: str, body: Any) -> Iterator[DeclaredNumber]:
        for what in MASSES:
            if (path := f"{name}.{what}") in self.built.values:
                error = _Error(f"bodies.{name}.mass_error", body.mass_error, MASS)
                words = f"the {what.replace('_', ' of a ')} of `{name}`"
                yield from self._unless_free(path, words, error, _times([path]))

    def _of_obstacle(self, name: str, obstacle: declared.Obstacle) -> Iterator[DeclaredNumber]:
        surfaces = start_surfaces(self.built)
        names = [key for key in obstacle.bodies or self.file.bodies if key in surfaces]
        points = np.concatenate([surfaces[other] for other in names])
        near = points[np.argmin(signed_distance(name, obstacle, points))]
        foot, outward = nearest_point(name, obstacle, near)
        size, key = max(map(self._size, names)), f"obstacles.{name}.place_error"
        error = _Error(key, _length(key, obstacle.place_error, size), DISTANCE * size, "m")
        moved = self._with_obstacle(name, lambda amount: shifted(obstacle, amount * outward))
        yield from self._unless_free(f"{name}.height", f"the distance of `{name}`", error, moved)
        if isinstance(obstacle, declared.PlaneObstacle):
            error = _Error(f"obstacles.{name}.tilt_error", obstacle.tilt_error, TILT, "deg")
            for axis in np.linalg.svd(outward[None])[2][1:]:
                moved = self._with_obstacle(name, partial(tilted, obstacle, foot, axis))
                yield self._number(f"the direction of `{name}`", error, moved)

    def _of_observation(self, name: str, given: Any) -> Iterator[DeclaredNumber]:
        chosen = 0.0
        if isinstance(given, declared.Film):
            film = self.films[name]
            if len(film.times) == 1 and given.start == 0.0:
                return
            chosen = STAMPED if given.fps is None else _of_typed(given.fps, film.own_fps)
        elif isinstance(given, declared.Points) and given.camera is not None:
            chosen = STAMPED
        error = _Error(f"observations.{name}.fps_error", given.fps_error, chosen)
        yield self._number(f"the frame rate of `{name}`", error, partial(_faster, name))

    def _number(self, name: str, error: _Error, moved: Moved) -> DeclaredNumber:
        """Return a number whose uncertainty is given, or else chosen."""
        chosen = 0.0 if self.file.is_twin else error.chosen
        size = chosen if error.given is None else error.given
        return DeclaredNumber(name, error.key, size, error.unit, error.given is None, moved)

    def _unless_free(
        self, path: str, name: str, error: _Error, moved: Moved
    ) -> Iterator[DeclaredNumber]:
        """Yield a number unless this path is free."""
        if any(free == path or free.startswith(f"{path}[") for free in self.free):
            _refuse(error, path)
        else:
            yield self._number(name, error, moved)

    def _components(self, path: str, name: str, error: _Error) -> Iterator[DeclaredNumber]:
        """Yield the components of a vector that are not free."""
        if path in self.free:
            _refuse(error, path)
        elif path in self.built.values:
            for i in range(self.built.values[path].value.size):
                if f"{path}[{i}]" not in self.free:
                    yield self._number(name, error, partial(_with_component, path, i))

    def _with_obstacle(self, name: str, changed: Callable[[float], declared.Obstacle]) -> Moved:
        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            obstacles = {**self.file.obstacles, name: changed(amount)}
            return _rebuilt(problem, replace(self.file, obstacles=obstacles), {})

        return moved

    def _size(self, name: str) -> float:
        return float(np.ptp(start_surfaces(self.built)[name], axis=0).max())

    def _refuse_rates(self, name: str) -> None:
        for key, given in self.file.observations.items():
            if given.fps_error:
                raise StudyError(
                    f"`observations.{key}.fps_error` must be left out: `bodies.{name}` is smoke, "
                    "which moves from frame to frame and has no derivative by their rate."
                )

    def _looser_cameras(self) -> float:
        """Return by what factor errors of cameras that are fitted exceed their defaults."""
        fitted = [one for one in self.file.cameras.values() if self.file.is_fitted(one)]
        factors = [one.position_error / CAMERA.position_error for one in fitted]
        factors += [one.fov_error / CAMERA.fov_error for one in fitted]
        return max([1.0, *factors])


def _refuse(error: _Error, path: str) -> None:
    if error.given:
        raise StudyError(
            f"`{error.key}` is the uncertainty of a declared number, but `{path}` is free. Leave "
            f'it out; what is known of a free number is `free."{path}".prior`.'
        )


def _length(key: str, error: float | None, size: float) -> float | None:
    """Return an uncertainty of a place that is no larger than a body."""
    if (error or 0.0) > size:
        raise StudyError(
            f"`{key}` must be at most the size of the body, {size:.3g} m, got {error:g}. Give one "
            "standard deviation in metres."
        )
    return error


def _rebuilt(
    problem: SceneProblem, file: declared.SceneFile, sizes: Mapping[str, float]
) -> SceneProblem:
    return replace(problem, built=build(file, at_rest=problem.is_still, sizes=sizes))


def _faster(name: str, problem: SceneProblem, amount: float) -> SceneProblem:
    """Return the problem with an observation whose rate of frames is larger."""
    observers = [
        replace(one, times=one.times / (1.0 + amount)) if one.name == name else one
        for one in problem.observers
    ]
    return replace(problem, observers=tuple(observers))


def _of_typed(fps: float, own: float | None) -> float:
    """Return the uncertainty of a rate that was typed, where the file may have one of its own."""
    off = abs(fps / own - 1.0) if own else np.inf
    if off < STAMPED:
        return STAMPED
    return max(TYPED, off) if off < NEARLY else TYPED


def _times(paths: Sequence[str]) -> Moved:
    def moved(problem: SceneProblem, amount: float) -> SceneProblem:
        return _with_values(problem, paths, lambda value: (1.0 + amount) * value)

    return moved


def _with_component(path: str, i: int, problem: SceneProblem, amount: float) -> SceneProblem:
    def changed(value: np.ndarray) -> np.ndarray:
        return value + amount * (np.arange(value.size) == i).reshape(value.shape)

    return _with_values(problem, [path], changed)


def _with_values(
    problem: SceneProblem, paths: Sequence[str], changed: Callable[[np.ndarray], np.ndarray]
) -> SceneProblem:
    """Return the problem with other values by path, of which components may be free."""
    parameters, fixed = problem.parameters, dict(problem.fixed)
    wholes = dict(parameters.wholes)
    for path in paths:
        known = wholes if path in wholes else fixed
        value = known.get(path, problem.built.values[path].value)
        known[path] = changed(np.asarray(value, np.float64))
    parameters = Parameters(parameters.free, parameters.ties, wholes)
    return replace(problem, fixed=fixed, parameters=parameters)
