r"""Numbers that a scene declares and does not fit, each with its standard uncertainty.

An answer is only as true as what was declared. What is measured with a ruler, a watch or a balance
has a standard uncertainty: it is declared by the key below, or chosen, and 0 means exact.

    key               of                                        chosen
    scale_error       size of a body, lengths of a pendulum     2 % of it
    mass_error        density or mass of a body                 3 % of it
    shape_error       surface of a soft body                    0 [m]
    nu_error          Poisson's ratio                           0.03, or 0.05 where it is chosen
    thickness_error   thickness of a cloth                      5 % of it
    position_error    place of a body at the start, each axis   0.5 % of its size [m]
    gravity_error     direction of gravity, to two sides        1 degree
    distance_error    distance of an obstacle                   1 % of the largest body's size [m]
    tilt_error        direction of a plane, to two sides        2 degrees
    friction_error    coefficient of friction                   20 % of it
    path_error        how far a grip or an obstacle goes        1 % of that
    force_error       known force                               2 % of it
    motor_error       torque or force of a motor                3 % of it
    fps_error         rate of a film, or of points in pixels    0.5 % if its file has times, or 2 %
                      rate of a folder of clouds                2 %

Pictures check a size as well as the camera is known: where the errors of a camera that is fitted
are larger than their defaults, the uncertainty of a size that is chosen grows with them. Where all
that was observed is simulated nothing is chosen: all is exact that is not declared.

`studies/answer/budget.py` counts them in the intervals of an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from studies.problem.forward import start_surfaces
from studies.problem.observations.films import FilmData
from studies.problem.observing import make_observers
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.shape import SHAPE
from studies.scene.building import BuiltScene, build
from studies.scene.gravity import DIRECTION, GRAVITY
from studies.scene.grips import Poses
from studies.scene.motion import Settled
from studies.scene.obstacle_shapes import shape_of
from studies.scene.series import Series


SCALE, MASS, POSITION, GRAVITY_LEANS, DISTANCE, TILT = 0.02, 0.03, 0.005, 1.0, 0.01, 2.0
POISSON, CHOSEN_POISSON, THICKNESS = 0.03, 0.05, 0.05
FRICTION, PATH, FORCE, MOTOR = 0.2, 0.01, 0.02, 0.03
STAMPED, TYPED = 0.005, 0.02  # of a rate of frames
NEARLY = 0.15  # a typed rate that differs less from that of the file may be a mistake
PARTS = (  # of the value: perhaps percent
    "scale_error", "mass_error", "fps_error", "thickness_error", "path_error", "force_error",
    "motor_error",
)  # fmt: skip
DOUBTFUL = 0.1
ON_BODIES = ("contacts", "pushes", "joints", "grips")
MASSES = {"density": "density", "mass": "mass", "vertex_mass": "mass of the vertices"}
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
    prior_of: str = ""  # the free number whose prior it is the mean of, which moves nothing else
    paths: tuple[str, ...] = ()  # the values to a component of which it is added, all alike
    component: int = 0


def declared_numbers(
    file: declared.SceneFile,
    built: BuiltScene,
    films: Mapping[str, FilmData],
    parameters: Parameters,
) -> list[DeclaredNumber]:
    """Return what a scene file declares that is neither free nor exact.

    Raise a StudyError if an uncertainty is declared of what is free or changes nothing, or if it is
    larger than a body.
    """
    free = frozenset((*parameters.paths, *parameters.ties))
    numbers = list(_Declared(file, built, films, free).numbers())
    if file.purpose == "control":
        numbers = []
    known = {number.key for number in numbers}
    for key, error in _given_errors(file):
        if error and key not in known:
            owner = key.split(".")[1]
            others = sorted(path for path in free if path.startswith((f"{owner}.", "world.")))
            why = (
                "smoke moves from frame to frame, and has no derivative by it"
                if not numbers
                else f"{', '.join(f'`{path}`' for path in others)} is free"
                if others
                else "it changes nothing in this scene"
            )
            raise StudyError(
                f"`{key}` is the uncertainty of a declared number, but {why}. Leave it out; what "
                "is known of a free number beforehand is its `prior`."
            )
    return [number for number in numbers if number.error > 0.0]


def _given_errors(file: declared.SceneFile) -> Iterator[tuple[str, float | None]]:
    """Yield the uncertainties of a scene file with their keys, None where it says nothing."""
    yield "world.gravity_error", file.world.gravity_error
    for table, keys in (
        ("bodies", ("scale_error", "mass_error", "position_error", "nu_error", "thickness_error")),
        ("obstacles", ("distance_error", "tilt_error", "friction_error", "path_error")),
        ("contacts", ("friction_error",)),
        ("pushes", ("force_error",)),
        ("joints", ("motor_error",)),
        ("grips", ("path_error",)),
        ("observations", ("fps_error",)),
    ):
        for name, entry in getattr(file, table).items():
            for key in keys:
                shared = _shared_name(name, entry, file.bodies if table in ON_BODIES else {})
                yield f"{table}.{shared}.{key}", getattr(entry, key, None)
    for name, body in file.bodies.items():
        if (held := getattr(body, "held", None)) is not None:
            yield f"bodies.{_shared_name(name, body)}.held.path_error", held.path_error


def notes_on_errors(file: declared.SceneFile) -> list[str]:
    """Return what is doubtful about uncertainties: parts of a value that may be percent."""
    return [
        f"`{key} = {error:g}` says that the value may well be {100.0 * error:.3g} % off. If you "
        f"know it to {error:g} %, write {error / 100.0:g}."
        for key, error in _given_errors(file)
        if key.endswith(PARTS) and error is not None and error >= DOUBTFUL
    ]


def copies_of(
    table: Mapping[str, Any], bodies: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Return the names of an entry and its copies in other takes, by its name in the scene file.

    `table` has bodies, or what acts on some of `bodies`, such as pushes.
    """
    copies: dict[str, list[str]] = {}
    for name, entry in table.items():
        copies.setdefault(_shared_name(name, entry, bodies), []).append(name)
    return copies


def _shared_name(name: str, entry: Any, bodies: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return the name in the scene file of a body, or of what is on one; takes have copies."""
    on = (getattr(entry, "body", ""), *getattr(entry, "between", ()))
    takes = [getattr(each, "take", "") for each in (entry, *(bodies.get(body) for body in on))]
    take = next(filter(None, takes), "")
    return name.removesuffix(f"_{take}") if take else name


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

    @cached_property
    def surfaces(self) -> dict[str, np.ndarray]:
        """The vertices of everything that is drawn at the start, by name."""
        return start_surfaces(self.built)

    def numbers(self) -> Iterator[DeclaredNumber]:
        """Yield all declared numbers, exact ones too."""
        if any(isinstance(body, declared.Smoke) for body in self.file.bodies.values()):
            return
        for shared, names in copies_of(self.file.bodies).items():
            yield from self._of_body(shared, names)
        error = _Error("world.gravity_error", self.file.world.gravity_error, GRAVITY_LEANS, "deg")
        if not any(path == GRAVITY or path.startswith(f"{GRAVITY}[") for path in self.free):
            yield from self._components([DIRECTION], "the direction of gravity", error)
        for name, obstacle in self.file.obstacles.items():
            if obstacle.fixed_to is None:
                yield from self._of_obstacle(name, obstacle)
        yield from self._of_loads_and_frictions()
        yield from self._of_paths()
        for name, observation in self.file.observations.items():
            yield from self._of_observation(name, observation)

    def _of_body(self, shared: str, names: Sequence[str]) -> Iterator[DeclaredNumber]:
        """Yield the numbers of a body and of its copies in other takes, which it is the size of."""
        body: Any = self.file.bodies[names[0]]
        key = f"bodies.{shared}"
        size_error = _Error(f"{key}.scale_error", body.scale_error, SCALE)
        if isinstance(body, declared.Pendulum):
            lengths = (f"{shared}.length", f"{shared}.center_of_mass")
            yield from self._scaled(lengths, f"the length of `{shared}`", size_error)
        else:
            yield from self._of_mesh(shared, names, size_error)
        for what, words in MASSES.items():
            error = _Error(f"{key}.mass_error", body.mass_error, MASS)
            paths = [f"{name}.{what}" for name in names]
            yield from self._scaled(paths, f"the {words} of `{shared}`", error)
        paths = [f"{name}.nu" for name in names]
        if self._fixed(paths[0]):
            most = 0.5 * (0.5 - float(self.built.values[paths[0]].value))  # below 0.5 with it
            elastic: Any = body
            chosen = min(CHOSEN_POISSON if elastic.nu is None else POISSON, max(most, 0.0))
            error = _Error(f"{key}.nu_error", elastic.nu_error, chosen, "-")
            yield from self._components(paths, f"nu of `{shared}`", error)
        if isinstance(body, declared.Cloth) and f"{names[0]}.E" in self.built.values:
            error = _Error(f"{key}.thickness_error", body.thickness_error, THICKNESS)
            moved = self._with_bodies(names, "thickness")
            yield self._number(f"the thickness of `{shared}`", error, moved)

    def _of_mesh(
        self, shared: str, names: Sequence[str], size_error: _Error
    ) -> Iterator[DeclaredNumber]:
        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            return self._rebuilt(problem, self.file, dict.fromkeys(names, 1.0 + amount))

        size_error = size_error._replace(chosen=SCALE * self._looser_cameras())
        if not any(path.startswith(f"{shared}.vertices") for path in self.free):
            yield self._number(f"the size of `{shared}`", size_error, moved)
        if shape := self.built.shapes.get(shared):
            error = _Error(f"bodies.{shared}.shape_error", shape.error, 0.0, "m")
            paths = [f"{name}{SHAPE}" for name in names]
            yield from self._components(paths, f"the shape of `{shared}`", error)
            if shape.path in self.free:
                mean = self._number(f"the shape of `{shared}`", error, lambda problem, _: problem)
                for k in np.ndindex(shape.value.value.shape):
                    yield replace(mean, prior_of=f"{shape.path}{list(k)}")
        for name in names:
            body: Any = self.file.bodies[name]
            size, key = self._size(name), f"bodies.{shared}.position_error"
            error = _Error(key, _length(key, body.position_error, size), POSITION * size, "m")
            yield from self._components([f"{name}.position"], f"where `{shared}` starts", error)

    def _of_obstacle(self, name: str, obstacle: declared.Obstacle) -> Iterator[DeclaredNumber]:
        names = [key for key in obstacle.bodies or self.file.bodies if key in self.surfaces]
        points = np.concatenate([self.surfaces[other] for other in names])
        shape = shape_of(name, obstacle)
        foot, outward = shape.nearest(points[np.argmin(shape.distance(points))])
        size, key = max(map(self._size, names)), f"obstacles.{name}.distance_error"
        error = _Error(key, _length(key, obstacle.distance_error, size), DISTANCE * size, "m")
        if f"{name}.height" not in self.free:
            moved = self._with_obstacle(name, lambda amount: shape.about(-amount * outward))
            yield self._number(f"the distance of `{name}`", error, moved)
        for tilted in shape.tilts(foot, outward):
            error = _Error(f"obstacles.{name}.tilt_error", shape.spec.tilt_error, TILT, "deg")
            moved = self._with_obstacle(name, tilted)
            yield self._number(f"the direction of `{name}`", error, moved)

    def _of_loads_and_frictions(self) -> Iterator[DeclaredNumber]:
        """Yield forces, motors and frictions, each one for all takes, constant or a series."""
        for table, what, prefix, chosen in (
            ("obstacles", "friction", "", FRICTION),
            ("contacts", "friction", "", FRICTION),
            ("pushes", "force", "pushes.", FORCE),
            ("joints", "motor", "", MOTOR),
        ):
            entries = getattr(self.file, table)
            for shared, names in copies_of(entries, self.file.bodies).items():
                key, words = f"{table}.{shared}.{what}_error", f"the {what} of `{shared}`"
                error = _Error(key, getattr(entries[names[0]], f"{what}_error", None), chosen)
                yield from self._scaled([f"{prefix}{name}.{what}" for name in names], words, error)
                targets = [f"{name}.{what}" for name in names]
                varying = [t for t in targets if isinstance(self.built.varying.get(t), Series)]
                if varying:
                    yield self._number(words, error, _with_series(varying))

    def _of_paths(self) -> Iterator[DeclaredNumber]:
        """Yield how far grips and obstacles go, each as a part of the way from its start."""
        led: list[tuple[str, str, Any]] = [
            (f"obstacles.{name}", f"{name}.position", each)
            for name, each in self.file.obstacles.items()
        ]
        for name, grip in self.file.every_grip.items():
            shared = _shared_name(name, grip, self.file.bodies)
            key = f"bodies.{shared}.held" if grip.body == name else f"grips.{shared}"
            led.append((key, f"grips.{name}.position", grip))
        for key, path, spec in led:
            if spec.path is not None and self._fixed(path):
                start = Poses.of(f"{key}.path", spec, turns=False).positions[0]
                error = _Error(f"{key}.path_error", spec.path_error, PATH)
                words = f"how far `{key.split('.')[1]}` goes"
                yield self._number(words, error, self._farther(path, start))

    def _farther(self, path: str, start: np.ndarray) -> Moved:
        """Return what makes places of a path farther from its start, by a part of that."""
        indices = self._fixed(path)
        first = np.resize(start, self.built.values[path].value.size)[indices]

        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            return _with_value(
                problem, path, indices, lambda x: first + (1.0 + amount) * (x - first)
            )

        return moved

    def _of_observation(self, name: str, given: Any) -> Iterator[DeclaredNumber]:
        chosen = 0.0
        if (film := self.films.get(name)) is not None:
            chosen = STAMPED if given.fps is None else _of_typed(given.fps, film.own_fps)
            if not film.times.any():
                return
        elif getattr(given, "fps", None) is not None:
            chosen = TYPED
        elif given.NEEDS_CAMERA or getattr(given, "camera", None) is not None:
            chosen = STAMPED
        if not isinstance(self.built.system, Settled):

            def faster(problem: SceneProblem, amount: float) -> SceneProblem:
                observers = [
                    replace(observer, times=observer.times / (1.0 + amount))
                    if observer.name == name
                    else observer
                    for observer in problem.observers
                ]
                return replace(problem, observers=tuple(observers))

            error = _Error(f"observations.{name}.fps_error", given.fps_error, chosen)
            yield self._number(f"the frame rate of `{name}`", error, faster)

    def _number(self, name: str, error: _Error, moved: Moved) -> DeclaredNumber:
        chosen = 0.0 if self.file.is_twin else error.chosen
        size = chosen if error.given is None else error.given
        return DeclaredNumber(name, error.key, size, error.unit, error.given is None, moved)

    def _fixed(self, path: str) -> list[int]:
        """Return the components of a value that are not free; none where there is no such value."""
        if path in self.free or path not in self.built.values:
            return []
        size = self.built.values[path].value.size
        return [i for i in range(size) if f"{path}[{i}]" not in self.free]

    def _scaled(self, paths: Sequence[str], name: str, error: _Error) -> Iterator[DeclaredNumber]:
        fixed = {path: each for path in paths if (each := self._fixed(path))}

        def scaled(problem: SceneProblem, amount: float) -> SceneProblem:
            for path, indices in fixed.items():
                problem = _with_value(problem, path, indices, lambda value: (1.0 + amount) * value)
            return problem

        if fixed:
            yield self._number(name, error, scaled)

    def _components(
        self, paths: Sequence[str], name: str, error: _Error
    ) -> Iterator[DeclaredNumber]:
        """Yield the components that are not free, each the same of all paths."""
        for i in self._fixed(paths[0]):

            def moved(problem: SceneProblem, amount: float, i: int = i) -> SceneProblem:
                for path in paths:
                    problem = _with_value(problem, path, [i], lambda x: x + amount)
                return problem

            number = self._number(name, error, moved)
            yield replace(number, paths=tuple(paths), component=i)

    def _with_obstacle(self, name: str, changed: Callable[[float], declared.Obstacle]) -> Moved:
        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            obstacles = {**self.file.obstacles, name: changed(amount)}
            return self._rebuilt(problem, replace(self.file, obstacles=obstacles), {})

        return moved

    def _with_bodies(self, names: Sequence[str], key: str) -> Moved:
        """Return what makes a number of bodies larger by a part of it."""

        def moved(problem: SceneProblem, amount: float) -> SceneProblem:
            bodies: dict[str, Any] = dict(self.file.bodies)
            for name in names:
                more = (1.0 + amount) * getattr(bodies[name], key)
                bodies[name] = replace(bodies[name], **{key: more})
            return self._rebuilt(problem, replace(self.file, bodies=bodies), {})

        return moved

    def _rebuilt(
        self, problem: SceneProblem, file: declared.SceneFile, sizes: Mapping[str, float]
    ) -> SceneProblem:
        """Return the problem of a scene with bodies of other sizes.

        What is measured at places of a body, as of markers, stays at these places.
        """
        built = build(file, at_rest=problem.is_still, sizes=sizes)
        names = [observer.name for observer in problem.observers if sizes and observer.IS_CARRIED]
        carried = {
            observer.name: observer
            for observer in make_observers(file, built, self.films, names=names)
        }
        observers = tuple(
            observer.carried_as(carried[observer.name]) if observer.name in carried else observer
            for observer in problem.observers
        )
        return replace(problem, built=built, observers=observers)

    def _size(self, name: str) -> float:
        return float(np.ptp(self.surfaces[name], axis=0).max())

    def _looser_cameras(self) -> float:
        """Return by what factor errors of cameras that are fitted exceed their defaults."""
        fitted = [camera for camera in self.file.cameras.values() if self.file.is_fitted(camera)]
        factors = [camera.position_error / CAMERA.position_error for camera in fitted]
        factors += [camera.fov_error / CAMERA.fov_error for camera in fitted]
        return max([1.0, *factors])


def _length(key: str, error: float | None, size: float) -> float | None:
    """Return an uncertainty of a place that is no larger than a body."""
    if (error or 0.0) > size:
        raise StudyError(
            f"`{key}` must be at most the size of the body, {size:.3g} m, got {error:g}. Give one "
            "standard deviation in metres."
        )
    return error


def _of_typed(fps: float, file_fps: float | None) -> float:
    """Return the uncertainty of a rate that was typed, where the file may have one of its own."""
    off = abs(fps / file_fps - 1.0) if file_fps else np.inf
    if off < STAMPED:
        return STAMPED
    return max(TYPED, off) if off < NEARLY else TYPED


def _with_series(targets: Sequence[str]) -> Moved:
    """Return what makes series larger by a part of them."""

    def moved(problem: SceneProblem, amount: float) -> SceneProblem:
        varying: dict[str, Any] = dict(problem.built.varying)
        for target in targets:
            varying[target] = replace(
                varying[target], values=(1.0 + amount) * varying[target].values
            )
        return replace(problem, built=replace(problem.built, varying=varying))

    return moved


def _with_value(
    problem: SceneProblem,
    path: str,
    indices: Sequence[int],
    changed: Callable[[np.ndarray], np.ndarray],
) -> SceneProblem:
    """Return the problem with other components of a value, of which others may be free."""
    parameters, fixed, wholes = problem.parameters, dict(problem.fixed), {}
    values = fixed
    if path in parameters.wholes:
        values = wholes = dict(parameters.wholes)
    value = np.array(values.get(path, problem.built.values[path].value), np.float64)
    value.ravel()[list(indices)] = changed(value.ravel()[list(indices)])
    values[path] = value
    if wholes:
        parameters = Parameters(parameters.free, parameters.ties, wholes)
    return replace(problem, fixed=fixed, parameters=parameters)
