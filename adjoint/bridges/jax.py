"""Rollouts and pictures as functions of JAX's arrays, with reverse and forward derivatives.

They run on the host, in `jax.pure_callback`, also from compiled functions. A derivative needs the
record of the call before it: each function keeps the last one, and makes those that it has not.

Tests: `tests/bridges/test_jax.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
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
    import jax
    from jax.core import ShapedArray
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"`adjoint.bridges.jax` needs JAX, which is not installed. {how_to_install('jax')}.",
        name=error.name,
    ) from error


def rollout(
    model: Any, state: Any, dt: StepSize, n_steps: int, **settings: Any
) -> Callable[[Mapping[str, Any]], dict[str, jax.Array]]:
    """Return a rollout as a function of JAX's arrays: parameters by path to frames by name.

        swim = rollout(model, state, dt, n_steps, frames=[50, 100])
        x = swim({"beam.mu": mu, "state.v": v})["x"]    # (2, n_nodes, 3)

    It can be compiled, mapped (one call after another) and differentiated once. Parameters, result
    and errors as of `adjoint.bridges.torch.rollout`, with arrays in the place of tensors.
    """
    return _differentiable(Rollout(model, state, dt, n_steps, **settings))


def rasterize(
    scene: Any,
    camera: Any,
    rasterizer: Any,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    *,
    dtype: Any = np.float64,
    **settings: Any,
) -> Callable[[Mapping[str, Any]], jax.Array]:
    """Return pictures as a function of JAX's arrays: parameters by path to RGBA.

        draw = rasterize(scene, camera, SoftRasterizer(), {"ball": points}, (64, 64))
        images = draw({"ball.vertices": x, "sun.direction": light})

    Parameters, result and errors as of `adjoint.bridges.torch.rasterize`, with arrays in the place
    of tensors.
    """
    picture = Picture(scene, camera, rasterizer, vertices, size)
    function = _differentiable(Images(picture, dtype, **settings))
    return lambda values: function(values)[IMAGES]


class _Host:
    """A function on the host, which keeps its last record."""

    def __init__(self, function: Function):
        self.function = function
        self._lock = Lock()
        self._last: tuple[dict[str, bytes], RecordedFunction] | None = None

    def recorded(self, values: Arrays) -> RecordedFunction:
        """Return the record at these values, the last one if it is."""
        key = {path: value.tobytes() for path, value in values.items()}
        with self._lock:
            if self._last is None or self._last[0] != key:
                self._last = None  # before there are two
                self._last = key, self.function.record(values)
            return self._last[1]

    def call(self, compute: Callable[..., Mapping[str, Any]], names: Mapping[str, tuple]) -> Any:
        """Return a function that calls `compute` on the host; `names`: shapes of its results."""
        dtype = self.function.dtype
        shapes = {name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in names.items()}

        def on_host(*inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
            arrays = [{name: np.asarray(x) for name, x in mapping.items()} for mapping in inputs]
            computed = compute(*arrays)
            return {name: np.asarray(computed[name], dtype) for name in names}

        def call(*inputs: Mapping[str, Any]) -> Any:
            for mapping in inputs:
                _require_one_device(mapping)
            return jax.pure_callback(on_host, shapes, *inputs, vmap_method="sequential")

        return call


def _differentiable(function: Function) -> Callable[[Mapping[str, Any]], dict[str, jax.Array]]:
    host = _Host(function)
    evaluate = jax.custom_jvp(host.call(function.run, function.outputs))
    record = jax.custom_jvp(
        host.call(lambda values: host.recorded(values).outputs, function.outputs)
    )

    @record.defjvp
    @evaluate.defjvp
    def push(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (values,), (pushed,) = primals, tangents
        paths, names = tuple(values), tuple(function.outputs)
        derivatives = derivative.bind(
            *values.values(), *(pushed[path] for path in paths),
            host=host, paths=paths, inputs=paths, wanted=names, is_reverse=False,
        )  # fmt: skip
        return record(values), dict(zip(names, derivatives, strict=True))

    def checked(values: Mapping[str, Any]) -> dict[str, jax.Array]:
        arrays = checks.mapping("values", values, "{'gravity': jax.numpy.zeros(3)}")
        arrays = {path: _array(path, value) for path, value in arrays.items()}
        if function.dtype == np.float64 and not jax.config.jax_enable_x64:
            raise ValueError(
                f"`dtype` of the {function.KIND} must be float32 while JAX has no float64, got "
                'float64. Call jax.config.update("jax_enable_x64", True) first, or make the '
                f'{function.KIND} with `dtype="float32"`.'
            )
        for path, value in arrays.items():
            function.check_value(path, value.shape, value.dtype.name)
        return evaluate(arrays)

    return checked


def _array(path: str, value: Any) -> jax.Array:
    """Return a value as an array of JAX."""
    try:
        return jax.numpy.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # a tensor of PyTorch raises the last one
        raise TypeError(
            f"`values[{path!r}]` must be an array of JAX or NumPy, or a number, got "
            f"{type(value).__name__}."
        ) from None


def _require_one_device(values: Mapping[str, Any]) -> None:
    """Raise if arrays lie on several devices; where nothing is computed yet, JAX itself does."""
    arrays = {name: x for name, x in values.items() if not isinstance(x, jax.core.Tracer)}
    places = {
        name: sorted(map(str, x.devices())) for name, x in arrays.items() if hasattr(x, "devices")
    }
    if len({device for devices in places.values() for device in devices}) > 1:
        placement = ", ".join(
            f"{name!r} on {' and '.join(devices)}" for name, devices in places.items()
        )
        raise ValueError(
            f"`values` must lie on one device, got {placement}. A rollout or a picture runs on the "
            "host: pass each as `jax.device_put(x, jax.devices()[0])`."
        )


# Arguments: the values by `paths`, and what it is linear in by `inputs`: tangents of parameters,
# or in reverse cotangents of outputs. Results: by `wanted`.
derivative = Primitive("adjsim_derivative")
derivative.multiple_results = True


@derivative.def_impl
def _call(
    *args: Any,
    host: _Host,
    paths: Sequence[str],
    inputs: Sequence[str],
    wanted: Sequence[str],
    is_reverse: bool,
) -> list[Any]:
    """Return tangents of outputs, or in reverse gradients."""

    def compute(values: Arrays, linear: Arrays) -> Mapping[str, Any]:
        recorded = host.recorded(values)
        return recorded.pull(linear, wanted) if is_reverse else recorded.push(linear)

    shapes = host.function.shapes if is_reverse else host.function.outputs
    call = host.call(compute, {name: shapes[name] for name in wanted})
    values = dict(zip(paths, args[: len(paths)], strict=True))
    derivatives = call(values, dict(zip(inputs, args[len(paths) :], strict=True)))
    return [derivatives[name] for name in wanted]


@derivative.def_abstract_eval
def _shapes(*_: Any, host: _Host, wanted: Sequence[str], is_reverse: bool, **__: Any) -> list[Any]:
    shapes = host.function.shapes if is_reverse else host.function.outputs
    return [ShapedArray(shapes[name], host.function.dtype) for name in wanted]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **settings: Any) -> tuple[Any, Any]:
    """Push tangents of its linear arguments; tangents of the values need second derivatives."""
    n = len(settings["paths"])
    if not all(type(tangent) is ad.Zero for tangent in tangents[:n]):
        raise NotImplementedError(SECOND)
    linear = [ad.instantiate_zeros(tangent) for tangent in tangents[n:]]
    return derivative.bind(*primals, **settings), derivative.bind(*primals[:n], *linear, **settings)


def _transpose(cotangents: Sequence[Any], *args: Any, **settings: Any) -> list[Any]:
    """Return the cotangents of what it is linear in, by the other derivative."""
    n, inputs, wanted = len(settings["paths"]), settings["inputs"], settings["wanted"]
    linear = dict(zip(inputs, args[n:], strict=True))
    sought = tuple(name for name, arg in linear.items() if ad.is_undefined_primal(arg))
    adjoints = {
        name: adj for name, adj in zip(wanted, cotangents, strict=True) if type(adj) is not ad.Zero
    }
    turned = {
        **settings, "inputs": tuple(adjoints), "wanted": sought,
        "is_reverse": not settings["is_reverse"],
    }  # fmt: skip
    pulled = derivative.bind(*args[:n], *adjoints.values(), **turned) if adjoints else []
    return [*[None] * n, *map(dict(zip(sought, pulled, strict=False)).get, inputs)]


def _one_by_one(args: Sequence[Any], axes: Sequence[Any], **settings: Any) -> tuple[Any, Any]:
    """Map over an axis of some arguments, one call after another."""
    mapped = {
        k: jax.numpy.moveaxis(args[k], axis, 0)
        for k, axis in enumerate(axes) if axis is not None
    }  # fmt: skip

    def call(slices: Mapping[int, Any]) -> list[Any]:
        return derivative.bind(*(slices.get(k, arg) for k, arg in enumerate(args)), **settings)

    outputs = jax.lax.map(call, mapped)
    return outputs, [0] * len(outputs)


ad.primitive_jvps[derivative] = _jvp
ad.primitive_transposes[derivative] = _transpose
batching.primitive_batchers[derivative] = _one_by_one
mlir.register_lowering(derivative, mlir.lower_fun(_call, multiple_results=True))
