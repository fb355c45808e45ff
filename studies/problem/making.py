"""From a scene file to a problem: read what was observed, fit what is not asked for, put together.

Cameras, lights and colours are nuisances: they are fitted to the first frames, where every body is
where the scene has it, and cameras go on being fitted with the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.ndimage

from adjsim.reduced.smoke import SmokeState
from render.annealing import softness
from render.camera import AnyCamera
from render.posed_camera import PosedCamera
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer
from studies.errors import StudyError
from studies.observations.advice import advice_on_film, check_lengths
from studies.observations.films import FilmData, plate_of, read_film, silhouettes
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Stall
from studies.problem.free import Free, FreeParameters, make_free, nuisance
from studies.problem.observers import FilmObserver, Observer, camera_names, to_pixels
from studies.problem.own import OwnResiduals, own_observer
from studies.problem.problem import SceneProblem
from studies.problem.smoke import smoke_observer
from studies.problem.start import start_surfaces
from studies.problem.steps import Steps, first_steps
from studies.problem.tracked import point_observer, state_observer
from studies.scene import declared
from studies.scene.building import Built, build
from studies.scene.cameras import make_camera, require_outside
from studies.scene.maps import Value


COLORS = (".texels", ".vertex_colors")  # paths of values between 0 and 1
SAME_TIME = 1e-6  # [s]: instants that are nearer are one
VISIBLE = 4.0  # pixels that the bodies must cover in the first frame
MARGIN = 0.03  # of the height: how far a body may be from where an unfitted camera sees it
ELSEWHERE = 0.02  # of the size of the bodies
COLOR_ERROR, DIRECTION_ERROR = 0.3, 0.5  # of colours and directions before they are fitted
FIRST_EVALUATIONS, FIRST_TOLERANCE = 400, 1e-4
INTERVAL = 1.0 / 30.0  # between instants where there is no film [s]

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Made:
    """A problem, and what was found on the way to it.

    Attributes
    ----------
    problem : SceneProblem
    validation : SceneProblem, optional
        Of the observations that are predicted, not fitted.
    notes : list of str
        What a user should know: defaults that were taken, what the first frame shows.
    refitted : callable
        refitted(problem, say) is a problem whose backgrounds, cameras and looks are fitted to the
        first frames again, with bodies where its start has them.
    """

    problem: SceneProblem
    validation: SceneProblem | None
    notes: list[str]
    refitted: Callable[[SceneProblem, Say], SceneProblem]


def make_problem(
    file: declared.SceneFile,
    own: Mapping[str, OwnResiduals] | None = None,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    checkpoint: str = "1GB",
    say: Say = lambda _text: None,
) -> Made:
    """Return the problem of a scene file.

    Parameters
    ----------
    file : SceneFile
    own : mapping of str to OwnResiduals, optional
        Residuals of the user's own, by name.
    dtype, device, checkpoint : str
        As the command line takes them.
    say : callable
        Gets a line about what is done.

    Raises
    ------
    ValueError
        If something in it does not fit; the message names its key.
    FileNotFoundError
        If a file is missing.
    """
    own = own or {}
    if not file.observations and not own:
        raise StudyError(
            "`observations` must hold at least one film, table of points or states, got none."
        )
    declared_films = {
        name: one for name, one in file.observations.items() if isinstance(one, declared.Film)
    }
    films = {
        name: read_film(one, _camera_of(file, one), f"observations.{name}")
        for name, one in declared_films.items()
    }
    built = build(file)
    notes = list(built.notes)
    for name, data in films.items():
        notes += advice_on_film(data, f"observations.{name}")
    check_lengths(
        {f"observations.{name}": (one, films[name]) for name, one in declared_films.items()}
    )
    observers = _observers(file, built, films)
    observers = [
        replace(one, device=device) if isinstance(one, FilmObserver) else one for one in observers
    ]
    observers += [own_observer(name, one, start_surfaces(built)) for name, one in own.items()]
    is_held = {k for k, one in {**file.observations, **own}.items() if one.validate}
    if len(is_held) == len(observers):
        raise StudyError("`observations` must hold one without `validate`, to be fitted.")
    cameras = _cameras(file, observers)
    values = {**built.values, **_more_values(observers)}
    fitted_beside = _nuisances(file, observers, cameras)
    parameters = make_free(file.free, values, fitted_beside)
    shared = {"dtype": dtype, "device": device, "checkpoint": checkpoint}
    problem = _problem(file, built, observers, parameters, **shared)
    problem = problem.with_steps_for(problem.parameters.start)
    looks = _look_nuisances(file, built, observers)

    def refitted(problem: SceneProblem, say: Say) -> SceneProblem:
        return fit_first_frames(problem, films, file, looks, say=say)

    problem = refitted(problem, say)
    fitted = [one for one in problem.observers if one.name not in is_held]
    held = [one for one in problem.observers if one.name in is_held]
    validation = _on_one_timeline(problem, held) if held else None
    return Made(_on_one_timeline(problem, fitted), validation, notes, refitted)


def camera_name(file: declared.SceneFile, one: declared.Film | declared.Points) -> str:
    """Return the name of the camera of an observation: the only one, if it names none."""
    return one.camera or next(iter(file.cameras))


def _camera_of(file: declared.SceneFile, one: declared.Film) -> declared.Camera | None:
    """Return the camera of a film; None of a film of smoke, which has none."""
    return file.cameras[camera_name(file, one)] if file.cameras else None


def _problem(
    file: declared.SceneFile,
    built: Built,
    observers: Sequence[Observer],
    parameters: FreeParameters,
    **shared: Any,
) -> SceneProblem:
    gaps = [np.diff(one.times).min() for one in observers if len(one.times) > 1]
    steps = first_steps(float(min(gaps, default=INTERVAL)), file.world.dt)
    if built.dt is not None:  # of smoke
        steps = Steps(built.dt, 1, is_given=True)
    return _on_one_timeline(
        SceneProblem(built, tuple(observers), parameters, steps, **shared), observers
    )


def _on_one_timeline(problem: SceneProblem, observers: Sequence[Observer]) -> SceneProblem:
    """Return a problem of these observers, whose instants are counted together."""
    instants = np.sort(np.concatenate([one.start + one.times for one in observers]))
    new = np.concatenate([[True], np.diff(instants) > SAME_TIME])
    timeline = instants[new]
    placed = tuple(
        replace(
            one,
            index=np.searchsorted(timeline, one.start + one.times + SAME_TIME, side="right") - 1,
        )
        for one in observers
    )
    return replace(problem, observers=placed, n_frames=len(timeline))


def _observers(
    file: declared.SceneFile, built: Built, films: Mapping[str, FilmData]
) -> list[Observer]:
    """Return what is observed; films are still without a background."""
    center = _center(file, built)
    found: list[Observer] = []
    for name, one in file.observations.items():
        if isinstance(one, declared.Film) and isinstance(built.state, SmokeState):
            levels = file.search.levels if file.search.loss == "pyramid" else 1
            grid = built.state.density.shape
            found.append(smoke_observer(name, one, films[name], grid=grid, levels=levels))
        elif isinstance(one, declared.Film):
            found.append(_film_observer(file, built, name, data=films[name], center=center))
        elif isinstance(one, declared.Points):
            camera = _point_camera(file, one, films, center)
            spec = None if one.camera is None else file.cameras[one.camera]
            found.append(point_observer(name, one, built, camera, center=center, spec=spec))
        else:
            found.append(state_observer(name, one, built))
    return found


def _center(file: declared.SceneFile, built: Built) -> np.ndarray:
    """Return the middle of everything that moves at the start, (3,) [m]."""
    surfaces = start_surfaces(built)
    if not surfaces:  # smoke
        return np.zeros(3)
    points = np.concatenate([surfaces[name] for name in file.bodies])
    return 0.5 * (points.min(axis=0) + points.max(axis=0))


def posed(camera: AnyCamera, center: np.ndarray) -> PosedCamera:
    """Return a camera as one that looks at points minus `center`, so that it turns about there."""
    eye, axes = camera.pose()
    nominal = axes * [[1.0], [1.0], [-1.0]]
    fov_y = camera.fov_y if camera.lens is None else None
    return PosedCamera(
        np.zeros(3),
        nominal @ (center - eye),
        nominal,
        fov_y=fov_y,
        near=camera.near,
        far=camera.far,
        lens=camera.lens,
    )


def _film_observer(
    file: declared.SceneFile, built: Built, name: str, *, data: FilmData, center: np.ndarray
) -> FilmObserver:
    one = file.observations[name]
    assert isinstance(one, declared.Film)
    which = camera_name(file, one)
    seen_from = make_camera(which, file.cameras[which], data.full_size, center)
    surfaces = start_surfaces(built)
    drawn = {body: (built.meshes[body].faces, surfaces[body]) for body in file.bodies}
    require_outside(which, seen_from, drawn)
    camera = posed(seen_from, center)
    is_rgb = one.compare == "rgb"
    scene = Scene(built.meshes, built.lights) if is_rgb else _white(built.meshes)
    sigma = softness(one.softness, data.frames.shape[1])
    observer = FilmObserver(
        name,
        one.weight,
        data.times,
        one.start,
        np.arange(len(data.times)),
        data.frames,
        scene,
        camera,
        center,
        f"cameras.{which}",
        SoftRasterizer(sigma=sigma, seamless=True),
        file.search.levels if file.search.loss == "pyramid" else 1,
        _look_paths(built) if is_rgb else {},
        data.frames[0],
    )
    _require_in_picture(observer, np.concatenate([surfaces[body] for body in file.bodies]))
    return observer


def _require_in_picture(one: FilmObserver, points: np.ndarray) -> None:
    """Raise if no point is in the picture, or all of them are in too few pixels."""
    eye, axes = one.camera.pose()
    ahead = points[(points - one.center - eye) @ axes[2] > 0.0]
    ends = np.zeros((2, 2))
    if len(ahead):
        shown = to_pixels(one.camera, ahead - one.center, one.size)
        height, width = one.size
        ends = np.clip([shown.min(axis=0), shown.max(axis=0)], -0.5, [width - 0.5, height - 0.5])
    sides = ends[1] - ends[0]
    if not sides.all() or np.prod(sides + 1.0) < VISIBLE:
        raise StudyError(_unseen(one, points))


def _point_camera(
    file: declared.SceneFile,
    one: declared.Points,
    films: Mapping[str, FilmData],
    center: np.ndarray,
) -> tuple[str, PosedCamera, tuple[int, int]] | None:
    """Return path, camera and size of the picture that points are given in; None in space."""
    if one.camera is None:
        return None
    for name, data in films.items():
        film = file.observations[name]
        if isinstance(film, declared.Film) and camera_name(file, film) == one.camera:
            camera = make_camera(one.camera, file.cameras[one.camera], data.full_size, center)
            return f"cameras.{one.camera}", posed(camera, center), data.full_size
    spec = file.cameras[one.camera]
    if spec.K is None:
        raise StudyError(
            f"`cameras.{one.camera}` must have a film, or K, R and t, for points in its pixels: "
            "without them the size of its picture is not known."
        )
    size = (round(2 * spec.K[1][2]) + 1, round(2 * spec.K[0][2]) + 1)
    return f"cameras.{one.camera}", posed(make_camera(one.camera, spec, size, center), center), size


def _white(meshes: Mapping[str, Mesh]) -> Scene:
    """Return the bodies in white, whatever the light."""
    white = Material(ambient=np.ones(3), diffuse=np.zeros(3))
    return Scene({name: Mesh(mesh.faces, material=white) for name, mesh in meshes.items()})


def look_names(mesh: Mesh) -> tuple[str, ...]:
    """Return what of a look may be free."""
    names = ["ambient", "diffuse"]
    if mesh.material.specular is not None:
        names += ["specular", "shininess"]
    if mesh.texture is not None:
        names.append("texels")
    if mesh.vertex_colors is not None:
        names.append("vertex_colors")
    return tuple(names)


def look_value(scene: Scene, target: str) -> np.ndarray:
    """Return the value of a path of a look or a light, as the renderer calls it."""
    owner, _, name = target.rpartition(".")
    if owner in scene.lights:
        return np.asarray(getattr(scene.lights[owner], name), np.float64)
    mesh = scene.objects[owner]
    part: Any = {"texels": mesh.texture, "vertex_colors": mesh}.get(name, mesh.material)
    return np.asarray(getattr(part, name), np.float64)


def _look_paths(built: Built) -> dict[str, str]:
    """Return the scene paths of looks and lights by the renderer's."""
    paths = {
        f"{name}.{key}": f"{name}.look.{key}"
        for name, mesh in built.meshes.items()
        for key in look_names(mesh)
    }
    lights = {
        f"{name}.{key}": f"lights.{name}.{key}"
        for name in built.lights
        for key in ("direction", "color")
    }
    return paths | lights


# Nuisances


def _cameras(
    file: declared.SceneFile, observers: Sequence[Observer]
) -> dict[str, tuple[declared.Camera, PosedCamera]]:
    """Return the cameras that observers look through, by path, as declared and as drawn."""
    found = {}
    for one in observers:
        camera = getattr(one, "camera", None)
        if camera is not None:
            path = one.camera_path  # pyright: ignore[reportAttributeAccessIssue]
            found[path] = (file.cameras[path.partition(".")[2]], camera)
    return found


def _more_values(observers: Sequence[Observer]) -> dict[str, Value]:
    """Return what may be free beside the system: cameras, looks, lights and start times."""
    out: dict[str, Value] = {}
    wide = (-np.inf, np.inf)
    for one in observers:
        out[one.start_path] = Value(np.asarray(one.start), "s", "linear", (-1e3, 1e3))
        if isinstance(one, FilmObserver):
            for target, path in one.paths.items():
                value = look_value(one.scene, target)
                bounds = (0.0, 1.0) if path.endswith(COLORS) else wide
                out[path] = Value(value, "-", "linear", bounds)
        camera = getattr(one, "camera", None)
        if camera is not None:
            known = camera.parameters()
            units = {"rotation": "rad", "translation": "m", "fov_y": "deg", "focal": "pixels"}
            for name in camera_names(camera):
                path = f"{one.camera_path}.{name}"  # pyright: ignore[reportAttributeAccessIssue]
                out[path] = Value(known[name], units[name], "linear", wide)
    return out


def _nuisances(
    file: declared.SceneFile,
    observers: Sequence[Observer],
    cameras: Mapping[str, tuple[declared.Camera, PosedCamera]],
) -> tuple[Free, ...]:
    """Return what is fitted beside the answers: pose and lens of every camera with `fit`."""
    del file, observers
    out: list[Free] = []
    for path, (spec, camera) in cameras.items():
        if not spec.fit:
            continue
        known = camera.parameters()
        distance = float(np.linalg.norm(camera.translation))
        angle = np.radians(spec.angle_error)
        # the middle of what is filmed moves sideways by position and by view
        sideways = distance * np.hypot(spec.position_error, angle)
        errors = {
            "rotation": np.hypot(angle, spec.position_error),
            "translation": np.array([sideways, sideways, distance * spec.position_error]),
        }
        for name in camera_names(camera):
            error = errors.get(name, spec.fov_error * known[name])
            out.append(nuisance(f"{path}.{name}", known[name], error))
    return tuple(out)


def _look_nuisances(
    file: declared.SceneFile, built: Built, observers: Sequence[Observer]
) -> tuple[Free, ...]:
    """Return the looks that are fitted to the first frames: of films in RGB."""
    films = [one for one in observers if isinstance(one, FilmObserver) and one.paths]
    if not films:
        return ()
    asked = set(file.free)
    values = _more_values(films)
    looks = {**file.bodies, **{k: v for k, v in file.obstacles.items() if v.draw}}
    out = [
        nuisance(path, values[path].value, COLOR_ERROR)
        for name, one in looks.items()
        if name in built.meshes and hasattr(one, "look") and one.look.fit
        for path in (f"{name}.look.ambient", f"{name}.look.diffuse")
        if path not in asked
    ]
    if out:
        out += [
            nuisance(path, values[path].value, DIRECTION_ERROR * np.ones(3))
            for path in (f"lights.{name}.direction" for name in built.lights)
            if path not in asked
        ]
    return tuple(out)


# First frames


def fit_first_frames(
    problem: SceneProblem,
    films: Mapping[str, FilmData],
    file: declared.SceneFile,
    looks: tuple[Free, ...],
    *,
    say: Say,
) -> SceneProblem:
    """Return the problem with backgrounds, cameras and looks as the first frames show them.

    Two rounds: the background is found around where the cameras see the bodies, then cameras and
    looks are fitted; then both again.

    Raises
    ------
    StudyError
        If a camera does not see the bodies.
    """
    cameras = tuple(one for one in problem.parameters.free if not one.is_answer)
    if not any(isinstance(one, FilmObserver) for one in problem.observers):
        return problem
    for margin in (MARGIN, MARGIN / 3.0):
        problem = _with_backgrounds(problem, films, file, margin)
        free = (*cameras, *looks)
        if not free:
            return problem
        say("fitting cameras and looks to the first frame")
        nuisances = FreeParameters(free).held_at_values(problem.fixed)
        first = replace(_first_of_films(problem), parameters=nuisances)
        found = minimize(
            first,
            nuisances.start,
            Method.GAUSS_NEWTON,
            max_evaluations=FIRST_EVALUATIONS,
            tolerance=FIRST_TOLERANCE,
            stall=Stall(1e-3, 3),
        )
        values = nuisances.scene_values(found.theta)
        problem = replace(
            problem,
            fixed={**problem.fixed, **values},
            parameters=problem.parameters.held_at_values(values),
        )
    return _with_backgrounds(problem, films, file, MARGIN / 3.0)


def first_frames_differ(problem: SceneProblem, theta: np.ndarray, other: np.ndarray) -> bool:
    """Whether bodies are elsewhere in the first frames for one theta than for another."""
    if not any(isinstance(one, FilmObserver) for one in problem.observers):
        return False
    first = _first_of_films(problem)
    places = []
    for at in (theta, other):
        _, motion, samplings = first.with_steps_for(at)._moment(at)
        moved = first._moved(motion, motion.run())
        places += [
            np.concatenate([sampling.at(rows)[0] for rows in moved.surfaces.values()])
            for sampling in samplings
        ]
    half = len(places) // 2
    size = max(float(np.ptp(place, axis=0).max()) for place in places)
    pairs = zip(places[:half], places[half:], strict=True)
    return max(float(np.abs(a - b).max()) for a, b in pairs) > ELSEWHERE * size


def _first_of_films(problem: SceneProblem) -> SceneProblem:
    """Return the problem of the first frame of every film."""
    firsts = [
        replace(one.between(np.arange(len(one.times)) == 0))
        for one in problem.observers
        if isinstance(one, FilmObserver)
    ]
    return _on_one_timeline(problem, firsts)


def _with_backgrounds(
    problem: SceneProblem,
    films: Mapping[str, FilmData],
    file: declared.SceneFile,
    margin: float,
) -> SceneProblem:
    """Return the problem with the background of every film found outside the bodies."""
    values = problem._values(problem.parameters.start)
    first = _first_of_films(problem)
    _, motion, samplings = first._moment(problem.parameters.start)
    moved = first._moved(motion, motion.run())
    found = {}
    for one, at in zip(first.observers, samplings, strict=True):
        assert isinstance(one, FilmObserver)
        declared_film = file.observations[one.name]
        assert isinstance(declared_film, declared.Film)
        alpha = one.as_images(one.predict(moved, at, values))[0, ..., 3]
        if alpha.sum() < VISIBLE:
            points = np.concatenate([moved.surfaces[name][0] for name in file.bodies])
            raise StudyError(_unseen(one, points))
        reach = max(int(np.ceil(margin * one.size[0])), 2)
        covered = scipy.ndimage.binary_dilation(alpha > 0.01, iterations=reach)
        plate = plate_of(declared_film, films[one.name], covered)
        frames = films[one.name].frames
        if declared_film.compare == "silhouette":
            mask = silhouettes(films[one.name], plate)
            frames = np.repeat(mask[..., None], 3, axis=-1)
            plate = np.zeros_like(plate)
        found[one.name] = (frames, plate)
    observers = tuple(
        replace(
            one,
            frames=found[one.name][0],
            first=found[one.name][0][0],
            rasterizer=replace(one.rasterizer, background=found[one.name][1]),
        )
        if isinstance(one, FilmObserver)
        else one
        for one in problem.observers
    )
    return replace(problem, observers=observers)


def _unseen(one: FilmObserver, points: np.ndarray) -> str:
    low, high = (end.round(4).tolist() for end in (points.min(axis=0), points.max(axis=0)))
    return (
        f"`{one.camera_path}` does not see the bodies: they cover less than {VISIBLE:g} pixels of "
        f"the first frame of `observations.{one.name}`. They reach from {low} to {high} m. Check "
        "eye and target, the bodies' `position` and `scale`, or run `adjsim preview`."
    )
