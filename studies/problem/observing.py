"""Observations of a scene file as observers: cameras, scenes to draw, and where points are."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjsim.reduced.smoke import SmokeState
from render.annealing import softness
from render.blending import Hard
from render.camera import AnyCamera
from render.posed_camera import PosedCamera
from render.scene import Material, Mesh, Scene, SphericalHarmonics
from render.soft_raster import SoftRasterizer
from studies.problem.films import FilmObserver
from studies.problem.observations.films import FilmData
from studies.problem.observations.simulated import blank_points, clock_of
from studies.problem.observers import Observer
from studies.problem.points import to_pixels
from studies.problem.smoke import smoke_observer
from studies.problem.start import start_surfaces
from studies.problem.tracked import point_observer, state_observer
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.building import Built
from studies.scene.cameras import make_camera, require_outside


VISIBLE = 4.0  # pixels that the bodies must cover in the first frame


def camera_name(file: declared.SceneFile, one: declared.Film | declared.Points) -> str:
    """Return the name of the camera of an observation: the only one, if it names none."""
    return one.camera or next(iter(file.cameras))


def camera_of(file: declared.SceneFile, one: declared.Film) -> declared.Camera | None:
    """Return the camera of a film; None of a film of smoke, which has none."""
    return file.cameras[camera_name(file, one)] if file.cameras else None


def make_observers(
    file: declared.SceneFile, built: Built, films: Mapping[str, FilmData]
) -> list[Observer]:
    """Return what is observed; films are still without a background."""
    center = _center(file, built)
    found: list[Observer] = []
    for name, one in file.observations.items():
        times = None
        if one.simulate is not None:
            times = clock_of(one, file.world, f"observations.{name}").times
        if isinstance(one, declared.Film) and isinstance(built.state, SmokeState):
            levels = file.search.levels if file.search.loss == "pyramid" else 1
            grid = built.state.density.shape
            found.append(smoke_observer(name, one, films[name], grid=grid, levels=levels))
        elif isinstance(one, declared.Film):
            found.append(_film_observer(file, built, name, data=films[name], center=center))
        elif isinstance(one, declared.Points):
            camera = _point_camera(file, one, films, center)
            spec = None if one.camera is None else file.cameras[one.camera]
            blank = None if times is None else blank_points(one, times, f"observations.{name}")
            found.append(
                point_observer(name, one, built, camera, center=center, spec=spec, data=blank)
            )
        else:
            found.append(state_observer(name, one, built, times))
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
    known: dict[str, Any] = {"blend": Hard()}
    if one.softness:
        sigma = softness(one.softness, data.frames.shape[1])
        known = {"sigma": sigma, "seamless": not one.seams}
    if one.simulate is not None and data.backdrop is not None:  # else it is found in the film
        known["background"] = data.backdrop if is_rgb else np.zeros_like(data.backdrop)
    observer = FilmObserver(
        name,
        one.weight,
        data.times,
        one.start,
        np.arange(len(data.times)),
        data.frames,
        file.search.levels if file.search.loss == "pyramid" else 1,
        data.frames[0],
        scene,
        camera,
        center,
        f"cameras.{which}",
        SoftRasterizer(**known),
        _look_paths(built) if is_rgb else {},
        growth=file.search.growth,
    )
    if one.simulate is None:
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
        raise StudyError(unseen(one, points))


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


def look_value(scene: Scene, target: str) -> np.ndarray:
    """Return the value of a path of a look or a light, as the renderer calls it."""
    owner, _, name = target.rpartition(".")
    if owner in scene.lights:
        return np.asarray(getattr(scene.lights[owner], name), np.float64)
    mesh = scene.objects[owner]
    part: Any = {"texels": mesh.texture, "vertex_colors": mesh}.get(name, mesh.material)
    return np.asarray(getattr(part, name), np.float64)


def _look_paths(built: Built) -> dict[str, str]:
    """Return the scene paths of looks and lights by the renderer's.

    A sky takes the place of the material.
    """
    in_sky = any(isinstance(light, SphericalHarmonics) for light in built.lights.values())
    paths: dict[str, str] = {}
    for name, mesh in built.meshes.items():
        keys = [] if in_sky else ["ambient", "diffuse"]
        keys += ["specular", "shininess"] if mesh.material.specular is not None else []
        keys += ["texels"] if mesh.texture is not None else []
        keys += ["vertex_colors"] if mesh.vertex_colors is not None else []
        paths |= {f"{name}.{key}": f"{name}.look.{key}" for key in keys}
    for name in built.lights:
        keys = ["coefficients"] if in_sky else ["direction", "color"]
        paths |= {f"{name}.{key}": f"lights.{name}.{key}" for key in keys}
    return paths


def unseen(one: FilmObserver, points: np.ndarray) -> str:
    low, high = (end.round(4).tolist() for end in (points.min(axis=0), points.max(axis=0)))
    return (
        f"`{one.camera_path}` does not see the bodies: they cover less than {VISIBLE:g} pixels of "
        f"the first frame of `observations.{one.name}`. They reach from {low} to {high} m. Check "
        "eye and target, the bodies' `position` and `scale`, or run `adjsim preview`."
    )
