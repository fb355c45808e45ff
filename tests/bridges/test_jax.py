"""The bridge to JAX: values, both derivatives, compiled and mapped, and what is refused."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from adjoint import record
from tests.bridges.functions import CASES, SPRINGS


jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")

from jax.test_util import check_grads  # noqa: E402

from adjoint.bridges.jax import rasterize, rollout  # noqa: E402


@pytest.fixture(autouse=True)
def _x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def made(case, **settings):
    make = rasterize if case.is_picture else rollout
    function = make(*case.arguments, **case.settings, **settings)
    values = case.values(settings.get("dtype", np.float64))
    return function, {path: jax.numpy.asarray(value) for path, value in values.items()}


def loss_of(function):
    return lambda values: sum((x**2).sum() for x in jax.tree.leaves(function(values)))


@pytest.fixture(scope="module")
def swing():
    """The positions of the springs, by their stiffness."""
    function = rollout(*SPRINGS)
    return lambda k: function({"net.stiffness": k})["x"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_passes_check_grads_forward_and_reverse(case):
    function, values = made(case)
    check_grads(function, (values,), order=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_and_again_it_has_the_same_bits(case):
    function, values = made(case)
    gradient = jax.grad(loss_of(function))
    first = gradient(values)
    for other in (gradient, jax.jit(gradient), jax.jit(gradient)):
        jax.tree.map(np.testing.assert_array_equal, other(values), first)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float32_is_kept_and_near_float64(case):
    results = []
    for dtype in (np.float32, np.float64):
        function, values = made(case, dtype=dtype)
        gradient = jax.grad(loss_of(function))(values)
        arrays = jax.tree.leaves((function(values), gradient))
        assert {x.dtype for x in arrays} == {np.dtype(dtype)}
        results.append(gradient)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), *results)


def test_values_and_gradient_are_those_of_the_package_to_the_bit(swing):
    model, state, dt, n_steps = SPRINGS
    run = record(*model.with_values(state, {"net.stiffness": 37.0}), dt, n_steps)
    np.testing.assert_array_equal(swing(37.0), run.trajectory.x)
    slope = jax.grad(lambda k: 0.5 * (swing(k) ** 2).sum())(37.0)
    assert slope == run.vjp(run.trajectory.x, wrt=["net.stiffness"])["net.stiffness"]


def test_a_gradient_runs_the_rollout_once(monkeypatch):
    runs = []
    monkeypatch.setattr(
        "adjoint.bridges.functions.record", lambda *a, **k: runs.append(1) or record(*a, **k)
    )
    gradient = jax.jit(jax.grad(loss_of(rollout(*SPRINGS))))
    for k in (30.0, 40.0):
        gradient({"net.stiffness": k})
    assert len(runs) == 2


def test_it_is_mapped_one_by_one(swing):
    k = jax.numpy.array([30.0, 40.0])
    for function in (swing, jax.grad(lambda k: swing(k).sum())):
        expected = jax.numpy.stack([function(value) for value in k])
        np.testing.assert_array_equal(jax.vmap(function)(k), expected)
        np.testing.assert_array_equal(jax.jit(jax.vmap(function))(k), expected)


def test_jacobians_forward_and_reverse_agree():
    function = rollout(*SPRINGS, frames=[10, 20])
    x = lambda v: function({"state.v": v})["x"]  # noqa: E731
    v = jax.numpy.zeros((3, 3))
    forward, reverse = jax.jacfwd(x)(v), jax.jacrev(x)(v)
    assert forward.shape == (2, 3, 3, 3, 3)
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (None, TypeError, "`values` must be a mapping, such as"),
        ({"net.stifness": 40.0}, ValueError, "Did you mean `net.stiffness`?"),
        ({"net.stiffness": np.ones(2)}, ValueError, "must have shape (), which it had when the"),
        ({"net.stiffness": np.float32(40)}, ValueError, "must be float64, the `dtype` of the"),
        ({"net.stiffness": 40}, ValueError, "got int64. Convert it."),
        (
            {"net.stiffness": None},
            TypeError,
            "must be an array of JAX or NumPy, or a number, got N",
        ),
        (
            {"net.stiffness": "40"},
            TypeError,
            "must be an array of JAX or NumPy, or a number, got s",
        ),
        ({"net.stiffness": -1.0}, Exception, "`stiffness` must not be negative, got -1"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(values, error, message):
    with pytest.raises(error, match=re.escape(message)):
        rollout(*SPRINGS)(values)


@pytest.mark.parametrize("values", [{}, {"net.stiffness": np.float64(40)}])
def test_float64_without_jaxs_is_refused(values):
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ValueError, match="`dtype` of the rollout must be float32 while JAX has no"):
        rollout(*SPRINGS)(values)


DEVICES = """
import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from adjoint.bridges.jax import rollout
from tests.bridges.functions import SPRINGS

jax.config.update("jax_enable_x64", True)
first, second = jax.devices()
function = rollout(*SPRINGS)
k = jax.device_put(40.0, second)
v = jax.device_put(jax.numpy.zeros((3, 3)), first)
slope = jax.grad(lambda k: function({"net.stiffness": k})["x"].sum())(k)
assert slope.devices() == {second}, slope.devices()
spread = jax.device_put(v, NamedSharding(Mesh([first, second], "a"), PartitionSpec()))
for call in (
    lambda: function({"net.stiffness": k, "state.v": v}),
    lambda: jax.grad(lambda v: function({"state.v": v})["x"].sum())(spread),
):
    try:
        call()
    except ValueError as error:
        print(error)
"""


def test_arrays_on_several_devices_are_refused():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run(
        [sys.executable, "-c", DEVICES], env={**os.environ, **flags},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, second = done.stdout.splitlines()
    start = "`values` must lie on one device, got"
    assert re.match(rf"{start} 'net.stiffness' on \S+1, 'state.v' on \S+0\. A rollout", first)
    assert re.match(rf"{start} 'state.v' on \S+0 and \S+1\. A rollout or a picture", second)


@pytest.mark.parametrize("outer", ["jacfwd", "grad"])
def test_a_second_derivative_is_refused(swing, outer):
    slope = jax.grad(lambda k: (swing(k) ** 2).sum())
    with pytest.raises(NotImplementedError, match=r"must be differentiated once.*Record\.hvp"):
        getattr(jax, outer)(slope)(40.0)
    tangent = lambda k: jax.jvp(swing, (k,), (1.0,))[1].sum()  # noqa: E731
    with pytest.raises(NotImplementedError, match="must be differentiated once"):
        getattr(jax, outer)(tangent)(40.0)
