"""The renderer on CUDA: in the simulator without a GPU, and on one."""

import numpy as np
import pytest

from adjoint.render.outputs import rasterize_outputs_jvp, record_outputs
from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjsim.jit.devices import cuda_problem
from render.outputs import rasterize_outputs
from render.soft_raster import rasterize
from tests.cuda.processes import run
from tests.cuda.render_scenes import (
    BLENDS,
    ZERO,
    all_outputs,
    all_scenes,
    empty,
    everything,
    outputs_of_scenes,
    toy,
)
from tests.cuda.rounding import tolerances


needs_gpu = pytest.mark.skipif(
    cuda_problem() is not None, reason=f"no GPU to use: {cuda_problem()}"
)
DRAWS = [rasterize, record_images, rasterize_outputs, record_outputs]


# Two views from the second on, no lights in the third, kappa in the fourth. Of outputs there
# are four pictures, drawn twice, and four tangents, in place of one each. The planes of a camera
# have gradients in the second, and in all outputs.
@pytest.mark.nightly  # the emulated device sees the same
@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("render", 29 + 35 + 27 + 30 + 29 + 29 + 2 * 2),
        ("outputs", 29 + 35 + 27 + 30 + 29 + 29 + 6 * 9 + 2 * 11),
    ],
)
def test_the_simulator_draws_and_differentiates_like_the_cpu(what, count):
    # The same Python operations, but for the exponential in the coverage (two roundings) and
    # the order in which parts are summed: about a hundred terms of the size of the sum, or ten
    # times it where they cancel, at eps = 2.2e-16 each. Images and tangents have no such sums.
    report = run("tests.cuda.simulate", what, NUMBA_ENABLE_CUDASIM="1", NUMBA_DISABLE_JIT="1")
    assert {name.split()[0] for name in report} == set(BLENDS)
    assert len(report) == count
    for name, row in report.items():
        assert row["alike"], name
        if name in ZERO:
            assert row["largest"] == row["difference"] == 0.0, (name, row)
            continue
        assert row["largest"] > 0.0, f"{name} is zero: nothing was compared"
        tolerance = 1e-13 if "vjp" in name else 1e-14
        assert row["difference"] <= tolerance * row["largest"], (name, row)


@pytest.mark.parametrize("draw", DRAWS)
def test_an_unknown_device_is_named(draw):
    with pytest.raises(ValueError, match="`device` must be cpu or cuda, got 'tpu'"):
        draw(*toy("over"), (5, 6), device="tpu")


@pytest.mark.skipif(cuda_problem() is None, reason="there is a GPU")
@pytest.mark.parametrize("draw", DRAWS)
def test_without_a_gpu_the_way_out_is_named(draw):
    with pytest.raises(RuntimeError, match="`device` is cuda, but "):
        draw(*toy("over"), (5, 6), device="cuda")


@pytest.mark.parametrize("push", [rasterize_jvp, rasterize_outputs_jvp])
def test_without_a_gpu_a_tangent_names_the_way_out(monkeypatch, push):
    monkeypatch.setattr("adjsim.jit.devices.cuda_problem", lambda: "there is none")
    with pytest.raises(RuntimeError, match="`device` is cuda, but there is none"):
        push(*toy("over"), (5, 6), {}, device="cuda")


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("what", [all_scenes, outputs_of_scenes])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gpu_draws_and_differentiates_like_the_cpu(what, dtype):
    # At this size no pixel has two faces so close in depth that rounding changes their order, a
    # jump in Over.
    size = (40, 50)
    cpu, cuda = (what(device, dtype, size=size) for device in ("cpu", "cuda"))
    allowed = tolerances(what, dtype, size=size)
    for name, value in cpu.items():
        assert cuda[name].dtype == dtype, name
        np.testing.assert_allclose(cuda[name], value, rtol=0, atol=allowed[name], err_msg=name)


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("what", [everything, all_outputs])
def test_a_gpu_draws_nothing_where_there_is_nothing(what):
    cpu, cuda = what(empty(), "cpu"), what(empty(), "cuda")
    for name, value in cpu.items():
        np.testing.assert_allclose(cuda[name], value, rtol=1e-12, atol=0, err_msg=name)


@pytest.mark.cuda
@needs_gpu
@pytest.mark.parametrize("what", [all_scenes, outputs_of_scenes])
def test_a_gpu_repeats_an_image_and_its_gradients_to_the_bit(what):
    first, second = (what("cuda", size=(40, 50)) for _ in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)
