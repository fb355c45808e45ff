"""A rollout and a picture as functions of named arrays: what the bridges to frameworks share.

Tests: `tests/bridges/`.
"""

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjoint.system import cotangents_of, fields_of, require_one_world
from adjsim import checks
from adjsim.jit.devices import Device, check_device
from adjsim.model import State
from adjsim.rigid.pose import BodyTrajectory
from adjsim.rollout import StepSize, check_frames, check_rollout, rollout, step_size
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from render.picture import Picture
from render.raster.packing import check_cameras, pack
from render.soft_raster import check_rasterizer, rasterize


Arrays = Mapping[str, np.ndarray]
IMAGES = "images"  # the name of the only output of a picture
SECOND = (
    "`values` must be differentiated once, got a second derivative of a rollout or a picture: a "
    "bridge has first ones alone. `adjoint.Record.hvp` has products with the Hessian of a rollout."
)


class RecordedFunction(NamedTuple):
    """The outputs of a function, and its derivatives there."""

    outputs: dict[str, Any]
    push: Callable[[Arrays], Mapping[str, Any]]  # tangents by path -> tangents of all outputs
    pull: Callable[[Arrays, Sequence[str]], Mapping[str, Any]]  # cotangents by name, wanted paths


class Function(ABC):
    """A function of parameters by path, whose outputs have names.

    Attributes
    ----------
    dtype : numpy.dtype
        Of all parameters and outputs, float64 or float32.
    shapes, outputs : dict
        The shape of each parameter by path, and of each output by name.
    """

    KIND: str  # what a message calls it
    dtype: np.dtype
    shapes: dict[str, tuple[int, ...]]
    outputs: dict[str, tuple[int, ...]]

    @abstractmethod
    def run(self, values: Arrays) -> dict[str, Any]:
        """Return the outputs."""

    @abstractmethod
    def record(self, values: Arrays) -> RecordedFunction:
        """Return the outputs and what their derivatives need."""

    def check_value(self, path: str, shape: Sequence[int], dtype: str) -> None:
        """Raise a ValueError if a parameter is unknown, or its shape or precision is another."""
        expected = self.shapes[checks.known_key("path in `values`", path, self.shapes)]
        if tuple(shape) != expected:
            raise ValueError(
                f"`values[{path!r}]` must have shape {expected}, which it had when the {self.KIND} "
                f"was made, got {tuple(shape)}."
            )
        if dtype != self.dtype.name:
            is_one = dtype in ("float32", "float64")
            other = f", or make the {self.KIND} with `dtype={dtype!r}`" if is_one else ""
            raise ValueError(
                f"`values[{path!r}]` must be {self.dtype}, the `dtype` of the {self.KIND}, got "
                f"{dtype}. Convert it{other}."
            )


class Rollout(Function):
    """The frames of a rollout as a function of parameters and initial state."""

    KIND = "rollout"

    def __init__(self, model: Any, state: Any, dt: StepSize, n_steps: int, **settings: Any):
        require_one_world("model", model)
        if settings.get("on_device"):
            raise ValueError(
                "`on_device` must be False here, got True: a bridge returns tensors of the CPU."
            )
        for name in settings:
            checks.known_key("setting", name, inspect.getfullargspec(record).kwonlyargs)
        check_device(settings.get("device", Device.CPU))
        dt = step_size(model, dt, settings.get("step", SEMI_IMPLICIT))
        n_steps = check_rollout(model, state, dt, n_steps)
        n_frames = len(check_frames(settings.get("frames"), n_steps))
        self.dtype = checks.float_dtype(settings.get("dtype", np.float64))
        known = {**model.parameters(), **model.state_parameters(state)}
        self.shapes = {path: np.shape(x) for path, x in known.items()}
        self.outputs = {name: (n_frames, *x) for name, x in _state_shapes(model, state).items()}
        self._settings = settings
        self._start = model, state
        self._steps = dt, n_steps

    def _at(self, values: Arrays) -> tuple[Any, Any]:
        model, state = self._start
        return model.with_values(state, values)

    def run(self, values: Arrays) -> dict[str, Any]:
        """Return the frames by the names of their fields."""
        settings = {key: value for key, value in self._settings.items() if key != "checkpoint"}
        model, state = self._at(values)
        return fields_of(rollout(model, state, *self._steps, **settings))

    def record(self, values: Arrays) -> RecordedFunction:
        """Return the frames by the names of their fields, and their derivatives."""
        model, state = self._at(values)
        run = record(model, state, *self._steps, **self._settings)

        def pull(adjoints: Arrays, wrt: Sequence[str]) -> Mapping[str, Any]:
            return run.vjp(**cotangents_of(adjoints), wrt=wrt)

        return RecordedFunction(
            fields_of(run.trajectory), lambda tan: fields_of(run.jvp(tan)), pull
        )


def _state_shapes(model: Any, state: Any) -> dict[str, tuple[int, ...]]:
    """Return the shape of a state in each field of a trajectory."""
    if not isinstance(state, State):
        values = model.state_parameters(state)
        return {path.removeprefix("state."): np.shape(x) for path, x in values.items()}
    shapes = {"x": state.x.shape, "v": state.v.shape}
    for name, body_state in state.bodies.items():
        n = len(body_state.position)
        for field in dataclasses.fields(BodyTrajectory):
            shapes[f"{name}.{field.name}"] = (n, 4 if field.name == "orientation" else 3)
    return shapes


class Images(Function):
    """Pictures as a function of vertices and everything else that they show."""

    KIND = "picture"

    def __init__(self, picture: Picture, dtype: Any, **settings: Any):
        self.dtype = checks.float_dtype(dtype)
        check_rasterizer(picture.rasterizer)
        cameras, many = check_cameras(picture.scene, picture.camera)
        vertices = checks.mapping("vertices", picture.vertices, "{'ball': points}")
        vertices = {name: np.asarray(x, self.dtype) for name, x in vertices.items()}
        job = pack(picture.scene, cameras, picture.rasterizer, vertices, picture.size)[0]
        of_views = (len(cameras),) if many else ()
        of_frames = (len(job.x),) if job.batched else ()
        self.outputs = {IMAGES: (*of_views, *of_frames, *picture.size, 4)}
        self._picture, self._settings = dataclasses.replace(picture, vertices=vertices), settings
        self.shapes = {path: x.shape for path, x in self._picture.parameters().items()}

    def run(self, values: Arrays) -> dict[str, Any]:
        """Return the images by their only name."""
        return {IMAGES: rasterize(*self._picture.at(values).arguments, **self._settings)}

    def record(self, values: Arrays) -> RecordedFunction:
        """Return the images by their only name, and their derivatives."""
        run = record_images(*self._picture.at(values).arguments, **self._settings)
        return RecordedFunction(
            {IMAGES: run.images},
            lambda tangents: {IMAGES: run.jvp(tangents)},
            lambda adjoints, wrt: run.vjp(adjoints[IMAGES], wrt),
        )
