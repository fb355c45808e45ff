"""Rollouts and pictures as functions of PyTorch's tensors, with reverse and forward derivatives.

On the CPU nothing is copied but parameters, by the model that takes them.

Tests: `tests/bridges/test_torch.py`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from adjoint.bridges.functions import (
    IMAGES,
    SECOND,
    Arrays,
    Function,
    Images,
    RecordedFunction,
    Rollout,
)
from adjsim import checks
from adjsim.extras import how_to_install
from adjsim.rollout import StepSize
from render.picture import Picture


try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"`adjoint.bridges.torch` needs PyTorch, which is not installed. "
        f"{how_to_install('torch')}.",
        name=error.name,
    ) from error

Tensors = Mapping[str, Tensor]


def rollout(
    model: Any, state: Any, dt: StepSize, n_steps: int, **settings: Any
) -> Callable[[Tensors], dict[str, Tensor]]:
    """Return a rollout as a function of tensors: parameters by path to frames by name.

        swim = rollout(model, state, dt, n_steps, frames=[50, 100])
        x = swim({"beam.mu": mu, "state.v": v})["x"]    # (2, n_nodes, 3)

    Parameters
    ----------
    model, state, dt, n_steps
        As `adjoint.record` takes them; a batch of worlds is refused. Parameters that are not given
        to the function keep the values that they have here. "auto" is chosen once.
    **settings
        What else `record` takes, such as `frames`, `checkpoint`, and `dtype`, float64 by default:
        the precision of the rollout and of all tensors.

    Returns
    -------
    callable
        It takes a mapping of tensors by path, each in the shape that the parameter has in the
        model, contiguous and on the CPU. It returns the fields of the trajectory: "x" and "v", for
        bodies "cube.position" and so on, or the fields of another system.

    Raises
    ------
    ValueError, TypeError
        As `record`; the function, of a tensor that does not fit.
    """
    function = Rollout(model, state, dt, n_steps, **settings)
    return lambda values: _apply(function, values)


def rasterize(
    scene: Any,
    camera: Any,
    rasterizer: Any,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    *,
    dtype: Any = np.float64,
    **settings: Any,
) -> Callable[[Tensors], Tensor]:
    """Return pictures as a function of tensors: parameters by path to RGBA.

        draw = rasterize(scene, camera, SoftRasterizer(), {"ball": points}, (64, 64))
        images = draw({"ball.vertices": x, "sun.direction": light})

    Parameters
    ----------
    scene, camera, rasterizer, vertices, size, **settings
        As `render.rasterize` takes them, the vertices with all frames. Parameters that are not
        given to the function keep the values that they have here.
    dtype : dtype
        Precision of the pictures and of all tensors, float64 or float32.

    Returns
    -------
    callable
        It takes a mapping of tensors by path, as `ImageRecord.vjp` names them, each in the shape
        that the parameter has here, contiguous and on the CPU. It returns the images in the shape
        of `render.rasterize`.

    Raises
    ------
    ValueError, TypeError
        As `render.rasterize`; the function, of a tensor that does not fit.
    """
    picture = Picture(scene, camera, rasterizer, vertices, size)
    function = Images(picture, dtype, **settings)
    return lambda values: _apply(function, values)[IMAGES]


def _apply(function: Function, values: Tensors) -> dict[str, Tensor]:
    """Return the outputs of a function of tensors, which are checked."""
    given = checks.mapping("values", values, "{'gravity': torch.zeros(3)}")
    for path, value in given.items():
        _check(function, path, value)
    is_recorded = torch.is_grad_enabled() and any(x.requires_grad for x in given.values())
    outputs = _Forward.apply(_Call(function, tuple(given), is_recorded), *given.values())
    return dict(zip(function.outputs, outputs, strict=True))


def _check(function: Function, path: str, value: Any) -> None:
    """Raise if a tensor is none, or does not fit."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"`values[{path!r}]` must be a tensor, got {type(value).__name__}. What is not "
            "differentiated belongs into the model or the scene."
        )
    if value.device.type != "cpu":
        raise ValueError(
            f"`values[{path!r}]` must be on the CPU, got a tensor on {value.device}. Pass "
            'it as `.cpu()`, which takes its gradient back too; `device="cuda"` runs the rollout '
            "itself on a GPU."
        )
    function.check_value(path, value.shape, str(value.dtype).removeprefix("torch."))
    if not value.is_contiguous():
        raise ValueError(
            f"`values[{path!r}]` must be contiguous, got strides {tuple(value.stride())} of shape "
            f"{tuple(value.shape)}. Pass it as `.contiguous()`."
        )


class _Call:
    """One call of a function: its parameters, and what its derivatives need."""

    def __init__(self, function: Function, paths: Sequence[str], is_recorded: bool):
        self.function, self.paths = function, paths
        self._is_recorded = is_recorded
        self._values: Arrays = {}
        self._recorded: RecordedFunction | None = None

    @property
    def _derivatives(self) -> RecordedFunction:
        """The record, made where it is first needed: in forward mode that may be later."""
        if self._recorded is None:
            self._recorded = self.function.record(self._values)
        return self._recorded

    def run(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs."""
        self._values = _given(self.paths, tensors)
        function = self.function
        outputs = self._derivatives.outputs if self._is_recorded else function.run(self._values)
        return self._tensors(function.outputs, outputs)

    def push(self, *tangents: Any) -> tuple[Tensor, ...]:
        """Return the tangents of the outputs."""
        pushed = self._derivatives.push(_given(self.paths, tangents))
        return self._tensors(self.function.outputs, pushed)

    def pull(self, wrt: Sequence[str], *adjoints: Any) -> tuple[Tensor, ...]:
        """Return the gradients of wanted parameters."""
        pulled = self._derivatives.pull(_given(self.function.outputs, adjoints), wrt)
        return self._tensors(wrt, pulled)

    def _tensors(self, names: Iterable[str], arrays: Mapping[str, Any]) -> tuple[Tensor, ...]:
        dtype = self.function.dtype
        return tuple(torch.from_numpy(np.require(arrays[n], dtype, ["C", "W"])) for n in names)


def _given(names: Iterable[str], tensors: Sequence[Any]) -> dict[str, np.ndarray]:
    pairs = zip(names, tensors, strict=True)
    return {name: x.detach().numpy() for name, x in pairs if x is not None}


BATCH = (
    "`values` must be tensors, got a batch of them from `torch.func.vmap`, `hessian` or `jacrev`: "
    "call the function once for each, in a loop."
)


class _Forward(torch.autograd.Function):
    """A function, with both derivatives."""

    @staticmethod
    def vmap(*_: Any) -> None:
        """Refuse a batch of tensors."""
        raise NotImplementedError(BATCH)

    @staticmethod
    def forward(call: _Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs."""
        return call.run(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the derivatives need; a parameter that is changed in place is refused."""
        del output
        ctx.call, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *adjoints: Any) -> tuple[Any, ...]:
        """Pull cotangents back."""
        call = ctx.call
        wrt = [p for p, need in zip(call.paths, ctx.needs_input_grad[1:], strict=True) if need]
        if not wrt or all(adj is None for adj in adjoints):
            return (None,) * (1 + len(call.paths))
        pull = partial(call.pull, wrt)
        gradients = _Derivative.apply(pull, len(adjoints), *adjoints, *ctx.saved_tensors)
        gradient = dict(zip(wrt, gradients, strict=True))
        return (None, *(gradient.get(path) for path in call.paths))

    @staticmethod
    def jvp(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, _: None, *tangents: Any
    ) -> tuple[Tensor, ...]:
        """Push tangents forward."""
        return _Derivative.apply(ctx.call.push, len(tangents), *tangents, *ctx.saved_tensors)


class _Derivative(torch.autograd.Function):
    """A derivative as a function of cotangents or tangents, and of parameters behind them."""

    @staticmethod
    def vmap(*_: Any) -> None:
        """Refuse a batch of tensors."""
        raise NotImplementedError(BATCH)

    @staticmethod
    def forward(derivative: Callable[..., Any], n: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the derivative of n cotangents or tangents."""
        return derivative(*tensors[:n])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep nothing: there is no second derivative."""

    @staticmethod
    def backward(ctx: Any, *adjoints: Tensor) -> None:
        """Raise a NotImplementedError: there is no second derivative."""
        raise NotImplementedError(SECOND)

    jvp = backward  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
