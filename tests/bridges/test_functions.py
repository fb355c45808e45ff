"""What the bridges share, without any framework: names, shapes, refusals, how extras are told."""

import importlib
import re
import sys

import numpy as np
import pytest

from adjoint.bridges.functions import Images, Rollout
from adjsim import stack
from render.picture import Picture
from tests.bridges.functions import CASES, MODEL, SPRINGS, X


@pytest.mark.parametrize(
    ("case", "dtype"), [*((case, np.float64) for case in CASES), (CASES[0], np.float32)]
)
def test_outputs_have_the_names_and_shapes_that_were_told(case, dtype):
    function, values = case.function(dtype=dtype), case.values(dtype)
    run, recorded = function.run(values), function.record(values)
    for outputs in (run, recorded.outputs):
        assert {name: value.shape for name, value in outputs.items()} == function.outputs
        assert {value.dtype for value in outputs.values()} == {np.dtype(dtype)}
    for name, value in run.items():
        np.testing.assert_array_equal(value, recorded.outputs[name])
    assert {path: value.shape for path, value in values.items()}.items() <= function.shapes.items()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives_are_transposed(case, rng):
    recorded = case.function().record(values := case.values())
    tangents = {path: rng.standard_normal(value.shape) for path, value in values.items()}
    pushed = recorded.push(tangents)
    adjoints = {name: rng.standard_normal(np.shape(value)) for name, value in pushed.items()}
    pulled = recorded.pull(adjoints, case.wrt)
    assert pulled.keys() == values.keys()
    ahead = sum(np.sum(adjoints[name] * value) for name, value in pushed.items())
    back = sum(np.sum(tangents[path] * value) for path, value in pulled.items())
    size = sum(np.sum(np.abs(adjoints[name] * value)) for name, value in pushed.items())
    assert abs(ahead - back) <= 1e-12 * size


@pytest.mark.parametrize(
    ("path", "shape", "dtype", "message"),
    [
        ("net.stifness", (), "float64", "Did you mean `net.stiffness`?"),
        ("state.v", (2, 3), "float64", "`values['state.v']` must have shape (3, 3)"),
        ("state.v", (3, 3), "float32", "must be float64, the `dtype` of the rollout, got float32"),
        ("state.v", (3, 3), "int64", "must be float64, the `dtype` of the rollout, got int64"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(path, shape, dtype, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Rollout(*SPRINGS).check_value(path, shape, dtype)


def test_what_is_no_function_of_tensors_is_refused():
    with pytest.raises(TypeError, match="`model` must be of one world, got a batch of 2"):
        Rollout(stack([MODEL, MODEL]), *SPRINGS[1:])
    with pytest.raises(ValueError, match="`on_device` must be False here, got True"):
        Rollout(*SPRINGS, on_device=True)
    with pytest.raises(ValueError, match="`dtype` must be float64 or float32, got float16"):
        Rollout(*SPRINGS, dtype="float16")
    scene, *rest = CASES[-1].arguments
    with pytest.raises(TypeError, match="`scene` must be a Scene, got dict"):
        Images(Picture({}, *rest), np.float64)
    with pytest.raises(TypeError, match="`vertices` must be a mapping"):
        Images(Picture(scene, *rest[:2], X, rest[3]), np.float64)


def test_a_step_that_is_chosen_is_chosen_once():
    function = Rollout(*SPRINGS[:2], "auto", 20)
    stiff = {"net.stiffness": np.array(4000.0)}
    fixed = Rollout(*SPRINGS[:2], 0.5 * MODEL.stable_dt(), 20)
    np.testing.assert_array_equal(function.run(stiff)["x"], fixed.run(stiff)["x"])


@pytest.mark.parametrize(("name", "package"), [("torch", "PyTorch"), ("jax", "JAX")])
def test_a_bridge_without_its_package_says_how_to_install_it(name, package, monkeypatch):
    monkeypatch.delitem(sys.modules, f"adjoint.bridges.{name}", raising=False)
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    message = f"needs {package}, which is not installed. pip install -e '.[{name}]' in your clone"
    with pytest.raises(ModuleNotFoundError, match=re.escape(message)):
        importlib.import_module(f"adjoint.bridges.{name}")
