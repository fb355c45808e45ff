"""From the table `free` of a scene file to free parameters, and nuisances with Gaussian priors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjoint.render.shape_losses import shape_loss_vjp
from adjsim import checks
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency, ShapeLoss
from studies.problem.observers import Observer
from studies.problem.parameters import COLORS, FreeParameter, Log, Parameters, Scaled, nuisance
from studies.problem.pixels import UNITS, camera_names
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.shape import SHAPE
from studies.scene.building import BuiltScene
from studies.scene.components import component_of, split_component
from studies.scene.maps import Value


WIDE = 100.0  # default bounds of a positive parameter: its start divided and multiplied by this
NEAR_BLACK = 1e-3
GROUPS = {"pose": ("rotation", "translation")}  # what stands for several paths
COLOR_ERROR, DIRECTION_ERROR = 0.3, 0.5  # of colours and directions before they are fitted
VERTICES = ".vertices"


def make_free(
    declared_free: Mapping[str, declared.Free],
    values: Mapping[str, Any],
    nuisances: tuple[FreeParameter, ...],
    views: Mapping[str, FreeParameter] | None = None,
) -> Parameters:
    """Return the parameters of a scene file's table `free`, and nuisances beside them.

    `values` is everything that may be free, by path; nuisances that the table names are left to it.
    `views` are cameras, lights, looks and errors of shapes with their default priors, by path.
    Where the table names one, or the start of an observation, beside parameters of the motion, it
    is a nuisance too: the question is the motion.
    """
    table = _ungrouped(declared_free, values)
    ties, answers = {}, []
    wholes: dict[str, np.ndarray] = {}
    for path, row in table.items():
        owner, index = split_component(path)
        if owner not in values:
            raise StudyError(f"Unknown path in `free` `{path}`.{checks.known_names(path, values)}")
        value = values[owner]
        if index is not None:
            if owner in table:
                raise StudyError(
                    f'`free."{path}"` is a component of `free."{owner}"`, which is free already. '
                    "Leave one of them out."
                )
            wholes[owner] = np.asarray(value.value, np.float64)
            value = replace(value, value=component_of(f'free."{path}"', path, value.value))
        if row.tied_to is None:
            answers.append(_answer(path, row, value, (views or {}).get(path)))
            continue
        if row.tied_to not in table or table[row.tied_to].tied_to is not None:
            raise StudyError(
                f'`free."{path}".tied_to` must be another free path that is not tied itself, got '
                f"{row.tied_to!r}. Free ones: {', '.join(p for p in table if p != path) or 'none'}."
            )
        ties[path] = (row.tied_to, row.factor)
    others = tuple(parameter for parameter in nuisances if parameter.path not in {*table, *wholes})
    if not answers:
        raise StudyError(
            "`free` must name at least one parameter to find, e.g. "
            f'[free."{next(iter(values))}"]. Known: {", ".join(values)}.'
        )
    viewed = [parameter for parameter in answers if parameter.is_view or parameter.is_shape_error]
    moving = [parameter for parameter in answers if parameter not in viewed]
    if not all(parameter.is_start_time for parameter in moving):
        moving = [replace(parameter, is_answer=not parameter.is_start_time) for parameter in moving]
    if moving:
        viewed = [replace(parameter, is_answer=False) for parameter in viewed]
    else:  # the question itself: only a prior that was asked for counts
        viewed = [
            parameter
            if table[parameter.path].prior or parameter.is_shape_error
            else replace(parameter, prior=None)
            for parameter in viewed
        ]
    return Parameters((*moving, *viewed, *others), ties, wholes)


def start_values(
    declared_free: Mapping[str, declared.Free], values: Mapping[str, Value]
) -> dict[str, np.ndarray]:
    """Return where the table `free` has the values of a built scene start, by path of the whole.

    What the table cannot be is left out: a run refuses it.
    """
    table = {
        path: row
        for path, row in _ungrouped(declared_free, values).items()
        if {split_component(name)[0] for name in (path, row.tied_to or path)} <= set(values)
    }
    try:
        parameters = make_free(table, values, ())
    except StudyError:
        return {}
    return parameters.scene_values(parameters.start)


def _ungrouped(
    declared_free: Mapping[str, declared.Free], values: Mapping[str, Any]
) -> dict[str, declared.Free]:
    """Return the table with groups such as "cameras.front.pose" replaced by their paths."""
    table: dict[str, declared.Free] = {}
    for path, row in declared_free.items():
        owner, _, name = path.rpartition(".")
        members = [f"{owner}.{key}" for key in GROUPS.get(name, ())]
        if path not in values and members and all(member in values for member in members):
            table |= dict.fromkeys(members, row)
        else:
            table[path] = row
    return table


def _answer(
    path: str, given: declared.Free, value: Any, view: FreeParameter | None = None
) -> FreeParameter:
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
    low, high = given.bounds or value.bounds
    if given.bounds is None and kind == "log":  # two decades either way, or what is allowed
        low, high = max(float(start.min()) / WIDE, low), min(float(start.max()) * WIDE, high)
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
    scale = value.scale
    if scale is None:  # the unit of theta: a tenth of its bounds, or its size
        is_bounded = np.isfinite(high - low)
        scale = (high - low) / 10.0 if is_bounded else max(float(np.abs(start).max()), 1.0)
    width = np.broadcast_to(np.asarray(scale, np.float64), start.shape).copy()
    transform = Log() if kind == "log" else Scaled(width)
    prior = None if given.prior is None else _prior(f"{key}.prior", given.prior, kind, width)
    return FreeParameter(path, start, (low, high), transform, value.unit, prior)


def _prior(
    key: str, given: declared.Prior, kind: str, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    mean = np.asarray(given.mean, np.float64)
    if mean.shape not in {(), width.shape[1:], width.shape}:
        raise StudyError(f"`{key}.mean` must be one number or {width.size}, got {mean.size}.")
    mean = np.broadcast_to(mean, width.shape)
    if kind == "log":
        return np.log(mean), given.error / mean
    return mean / width, given.error / width


def more_values(observers: Sequence[Observer]) -> dict[str, Value]:
    """Return what may be free beside the system: cameras, looks, lights and start times."""
    return {path: value for observer in observers for path, value in observer.values().items()}


def camera_nuisances(
    file: declared.SceneFile, observers: Sequence[Observer]
) -> tuple[FreeParameter, ...]:
    """Return pose and lens of every camera of an observer, with priors as wide as declared.

    What is declared with an error of 0 is known, and not fitted.
    """
    cameras = {
        observer.camera_path: observer.camera
        for observer in observers
        if observer.camera is not None
    }
    out: list[FreeParameter] = []
    for path, camera in cameras.items():
        spec = file.cameras[path.partition(".")[2]]
        parameters = camera.parameters()
        distance = float(np.linalg.norm(camera.translation))
        angle = np.radians(spec.angle_error)
        # the middle of what is filmed moves sideways by position and by view
        sideways = distance * np.hypot(spec.position_error, angle)
        errors = {
            "rotation": np.hypot(angle, spec.position_error),
            "translation": np.array([sideways, sideways, distance * spec.position_error]),
        }
        for name in camera_names(camera):
            error = errors.get(name, spec.fov_error * parameters[name])
            if np.any(error):
                out.append(nuisance(f"{path}.{name}", parameters[name], error, UNITS[name]))
    return tuple(out)


def views(
    cameras: Sequence[FreeParameter], values: Mapping[str, Value]
) -> dict[str, FreeParameter]:
    """Return cameras, colours, directions of light and errors of shapes, with priors, by path."""
    out = {camera.path: camera for camera in cameras}
    for path, value in values.items():
        if path.endswith((".look.ambient", ".look.diffuse")):
            out[path] = nuisance(path, value.value, COLOR_ERROR)
        elif path.startswith("lights."):
            out[path] = nuisance(path, value.value, DIRECTION_ERROR)
        elif path.endswith(SHAPE):
            out[path] = nuisance(path, value.value, value.scale, value.unit)
    return out


def look_nuisances(
    file: declared.SceneFile, built: BuiltScene, observers: Sequence[Observer]
) -> tuple[FreeParameter, ...]:
    """Return the looks that are fitted to the first frames: of films in RGB."""
    free, values = set(file.free), more_values(observers)
    looks = {**file.bodies, **{k: v for k, v in file.obstacles.items() if v.draw}}
    fitted = [
        name
        for name, spec in looks.items()
        if name in built.meshes
        and hasattr(spec, "look")
        and file.is_fitted(spec.look)
        and not free & {f"{name}.look{kind}" for kind in COLORS}  # they hold the colour
    ]
    of_looks = [f"{name}.look.{key}" for name in fitted for key in ("ambient", "diffuse")]
    of_lights = [f"lights.{name}.{key}" for name in built.lights if fitted
                 for key in ("direction", "coefficients")]  # fmt: skip
    return tuple(
        nuisance(path, values[path].value, error)
        for paths, error in ((of_looks, COLOR_ERROR), (of_lights, DIRECTION_ERROR))
        for path in paths
        if path in values and path not in free
    )


@dataclass(frozen=True, eq=False)
class ShapeLosses:
    """Weighted losses of the vertices of one body, beside the loss of the pictures.

        loss = sum over pictures of their mean square of differences in colour / SEEN^2
               + n / SEEN^2 (laplacian L(x/s) + edge_length E(x/s) + normals N(x))

    with n the sum of the weights of the pictures, s half of the body's longest side, and L, E and N
    as in `render/shape_losses.py`: a weight depends neither on the size of the body nor on how many
    pictures there are.
    """

    path: str  # "BODY.vertices"
    weighted: Sequence[tuple[float, ShapeLoss]]

    def value(self, x: np.ndarray) -> float:
        """Return their sum at vertices x, (n, 3) [m]."""
        return sum((weight * loss(x) for weight, loss in self.weighted), start=0.0)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return its gradient, (n, 3) [1/m]."""
        parts = [shape_loss_vjp(loss, x, weight) for weight, loss in self.weighted]
        return sum(parts, start=np.zeros_like(x))


def shape_losses(free: Mapping[str, declared.Free], built: BuiltScene) -> tuple[ShapeLosses, ...]:
    """Return the losses of shape of all bodies whose vertices are free."""
    out = []
    for path, row in free.items():
        if not path.endswith(VERTICES) or path not in built.values:
            continue
        vertices = built.values[path]
        points, size = vertices.value, float(vertices.scale)
        faces = np.asarray(built.meshes[path.removesuffix(VERTICES)].faces)
        laplacian, edges = Laplacian(faces), EdgeLength(faces)
        ends = points[edges.ends]
        length = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean())
        weighted = [
            (row.laplacian / size**2, laplacian),
            (row.edge_length / size**2, EdgeLength(faces, length)),
            (row.normals, NormalConsistency(faces)),
        ]
        out.append(ShapeLosses(path, [pair for pair in weighted if pair[0]]))
    return tuple(out)
