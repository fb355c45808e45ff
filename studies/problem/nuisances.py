"""What is fitted beside the answers: cameras, looks and lights, each with a Gaussian prior."""

from collections.abc import Mapping, Sequence

import numpy as np

from studies.answer.verdict import COLORS
from studies.problem.films import FilmObserver, camera_names
from studies.problem.observers import Observer
from studies.problem.observing import look_value
from studies.problem.parameters import Free, nuisance
from studies.scene import declared
from studies.scene.building import Built
from studies.scene.maps import Value


UNITS = {"rotation": "rad", "translation": "m", "fov_y": "deg", "focal": "pixels"}
START = 0.25  # of its length: how far the start of a film is searched; of a picture, seconds
COLOR_ERROR, DIRECTION_ERROR = 0.3, 0.5  # of colours and directions before they are fitted


def more_values(observers: Sequence[Observer]) -> dict[str, Value]:
    """Return what may be free beside the system: cameras, looks, lights and start times."""
    out: dict[str, Value] = {}
    wide = (-np.inf, np.inf)
    for one in observers:
        around = START * (float(np.ptp(one.times)) or 1.0)
        bounds = (one.start - around, one.start + around)
        out[one.start_path] = Value(np.asarray(one.start), "s", "linear", bounds)
        if isinstance(one, FilmObserver):
            for target, path in one.paths.items():
                value = look_value(one.scene, target)
                bounds = (0.0, 1.0) if path.endswith(COLORS) else wide
                out[path] = Value(value, "-", "linear", bounds)
        camera = getattr(one, "camera", None)
        if camera is not None:
            known = camera.parameters()
            for name in camera_names(camera):
                path = f"{one.camera_path}.{name}"  # pyright: ignore[reportAttributeAccessIssue]
                out[path] = Value(known[name], UNITS[name], "linear", wide)
    return out


def camera_nuisances(file: declared.SceneFile, observers: Sequence[Observer]) -> tuple[Free, ...]:
    """Return pose and lens of every camera of an observer, with priors as wide as declared."""
    cameras = {}
    for one in observers:
        if (camera := getattr(one, "camera", None)) is not None:
            cameras[one.camera_path] = camera  # pyright: ignore[reportAttributeAccessIssue]
    out: list[Free] = []
    for path, camera in cameras.items():
        spec = file.cameras[path.partition(".")[2]]
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
            out.append(nuisance(f"{path}.{name}", known[name], error, UNITS[name]))
    return tuple(out)


def views(cameras: Sequence[Free], values: Mapping[str, Value]) -> dict[str, Free]:
    """Return cameras, colours and directions of light that may be free, with priors, by path."""
    looks = {
        path: nuisance(path, one.value, COLOR_ERROR)
        for path, one in values.items()
        if path.endswith((".look.ambient", ".look.diffuse"))
    }
    lights = {
        path: nuisance(path, one.value, DIRECTION_ERROR)
        for path, one in values.items()
        if path.startswith("lights.")
    }
    return {one.path: one for one in cameras} | looks | lights


def look_nuisances(
    file: declared.SceneFile, built: Built, observers: Sequence[Observer]
) -> tuple[Free, ...]:
    """Return the looks that are fitted to the first frames: of films in RGB."""
    films = [one for one in observers if isinstance(one, FilmObserver) and one.paths]
    if not films:
        return ()
    asked = set(file.free)
    values = more_values(films)
    looks = {**file.bodies, **{k: v for k, v in file.obstacles.items() if v.draw}}
    fitted = [
        name
        for name, one in looks.items()
        if name in built.meshes
        and hasattr(one, "look")
        and file.is_fitted(one.look)
        and not asked & {f"{name}.look{kind}" for kind in COLORS}  # they hold the colour
    ]
    of_looks = [f"{name}.look.{key}" for name in fitted for key in ("ambient", "diffuse")]
    of_lights = [f"lights.{name}.{key}" for name in built.lights if fitted
                 for key in ("direction", "coefficients")]  # fmt: skip
    return tuple(
        nuisance(path, values[path].value, error)
        for paths, error in ((of_looks, COLOR_ERROR), (of_lights, DIRECTION_ERROR))
        for path in paths
        if path in values and path not in asked
    )
