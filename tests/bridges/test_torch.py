"""The bridge to PyTorch: values, both derivatives, no copies, and what is refused."""

import re

import numpy as np
import pytest

from adjoint import record
from adjoint.bridges.functions import IMAGES
from adjsim.rollout import rollout as plain_rollout
from tests.bridges.functions import CASES, SPRINGS


torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from torch.autograd import forward_ad  # noqa: E402

from adjoint.bridges.torch import rasterize, rollout  # noqa: E402


pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def made(case, **settings):
    """A function of tensors in the order of `case.wrt`, that returns a tuple, and its tensors."""
    if case.is_picture:
        draw = rasterize(*case.arguments, **case.settings, **settings)
        function = lambda values: (draw(values),)  # noqa: E731
    else:
        roll = rollout(*case.arguments, **case.settings, **settings)
        function = lambda values: tuple(roll(values).values())  # noqa: E731
    values = case.values(settings.get("dtype", np.float64))
    tensors = [torch.from_numpy(value).requires_grad_() for value in values.values()]
    return lambda *given: function(dict(zip(case.wrt, given, strict=True))), tensors


def swing(values, **settings):
    """The positions of the springs."""
    return rollout(*SPRINGS, **settings)(values)["x"]


def stiffness(value=40.0, **options):
    return torch.tensor(value, **{"dtype": torch.float64, "requires_grad": True, **options})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_passes_gradcheck_forward_and_reverse(case):
    function, tensors = made(case)
    assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float32_is_kept_and_near_float64(case):
    results = []
    for dtype in (np.float32, np.float64):
        function, tensors = made(case, dtype=dtype)
        outputs = function(*tensors)
        gradient = torch.autograd.grad(sum((out**2).sum() for out in outputs), tensors)
        assert {x.dtype for x in (*outputs, *gradient)} == {tensors[0].dtype}
        results.append(gradient)
    for single, double in zip(*results, strict=True):
        torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-4)


def test_values_and_gradient_are_those_of_the_package_to_the_bit():
    tensor, (model, state, dt, n_steps) = stiffness(37.0), SPRINGS
    x = swing({"net.stiffness": tensor})
    run = record(*model.with_values(state, {"net.stiffness": 37.0}), dt, n_steps)
    np.testing.assert_array_equal(x.detach().numpy(), run.trajectory.x)
    (0.5 * x**2).sum().backward()
    expected = run.vjp(run.trajectory.x, wrt=["net.stiffness"])["net.stiffness"]
    assert tensor.grad.item() == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_second_reverse_sweep_has_the_same_bits(case):
    function, tensors = made(case)
    loss = sum((out**2).sum() for out in function(*tensors))
    first, second = (torch.autograd.grad(loss, tensors, retain_graph=True) for _ in range(2))
    for gradient, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(gradient.numpy(), other.numpy())


def test_only_what_needs_a_gradient_gets_one():
    held = torch.zeros(3, 3, dtype=torch.float64)
    tensor = stiffness()
    swing({"state.v": held, "net.stiffness": tensor}).sum().backward()
    assert held.grad is None
    assert tensor.grad is not None
    assert not swing({"state.v": held}).requires_grad


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_output_is_the_callers_own(case):
    function, tensors = made(case)
    zeroed, other = (function(*tensors) for _ in range(2))
    expected = torch.autograd.grad(sum(out.sum() for out in other), tensors)
    with torch.no_grad():
        for out in zeroed:
            out.zero_()
    gradients = torch.autograd.grad(sum(out.sum() for out in zeroed), tensors)
    for mine, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_frames_are_not_copied(monkeypatch):
    kept = []

    def spied(*args, **settings):
        kept.append(plain_rollout(*args, **settings))
        return kept[0]

    monkeypatch.setattr("adjoint.bridges.functions.rollout", spied)
    with torch.no_grad():
        x = swing({"net.stiffness": stiffness()})
    assert np.shares_memory(x.numpy(), kept[0].x)


def test_forward_mode_needs_no_gradients():
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(stiffness(requires_grad=False), stiffness(1.0))
        tangent = forward_ad.unpack_dual(swing({"net.stiffness": dual})).tangent
    pushed = torch.func.jvp(
        lambda k: swing({"net.stiffness": k}), (stiffness(),), (stiffness(1.0),)
    )[1]
    assert tangent.abs().max() > 0.0
    torch.testing.assert_close(tangent, pushed.detach(), rtol=0, atol=0)


def test_transforms_of_functions_work():
    by = torch.func.grad(lambda k: (swing({"net.stiffness": k}) ** 2).sum())(stiffness())
    tensor = stiffness()
    (swing({"net.stiffness": tensor}) ** 2).sum().backward()
    assert by.item() == tensor.grad.item()


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (40.0, TypeError, "`values['net.stiffness']` must be a tensor, got float"),
        (stiffness(dtype=torch.float32), ValueError, "must be float64, the `dtype` of the rollout"),
        (stiffness(device="meta"), ValueError, "must be on the CPU, got a tensor on meta"),
        (stiffness([40.0]), ValueError, "must have shape (), which it had when the rollout"),
        (stiffness(-1.0), ValueError, "`stiffness` must not be negative, got -1"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(value, error, message):
    with pytest.raises(error, match=re.escape(message)):
        swing({"net.stiffness": value})


def test_a_tensor_that_is_not_contiguous_is_refused():
    v = torch.zeros(3, 3, dtype=torch.float64).T
    with pytest.raises(ValueError, match=r"must be contiguous, got strides \(1, 3\) of shape"):
        swing({"state.v": v})
    assert swing({"state.v": v.contiguous()}).shape == (1, 3, 3)


def test_what_is_no_mapping_is_refused():
    with pytest.raises(TypeError, match="`values` must be a mapping, such as"):
        swing(torch.zeros(3))


def loss_of(k):
    return (swing({"net.stiffness": k}) ** 2).sum()


def of_reverse(k):
    (slope,) = torch.autograd.grad(loss_of(k), k, create_graph=True)
    return torch.autograd.grad(slope, k)


def of_linear_loss(k):
    (slope,) = torch.autograd.grad(swing({"net.stiffness": k}).sum(), k, create_graph=True)
    return torch.autograd.grad(slope, k)


def of_forward(k):
    tangent = lambda k: torch.func.jvp(loss_of, (k,), (torch.ones_like(k),))[1]  # noqa: E731
    return torch.func.grad(tangent)(k)


def forward_of_reverse(k):
    return torch.func.jvp(torch.func.grad(loss_of), (k,), (torch.ones_like(k),))


@pytest.mark.parametrize("second", [of_reverse, of_linear_loss, of_forward, forward_of_reverse])
def test_a_second_derivative_is_refused_and_not_zero(second):
    with pytest.raises(NotImplementedError, match=r"must be differentiated once.*Record\.hvp"):
        second(stiffness())


def test_a_gradient_may_be_part_of_a_graph_that_is_not_differentiated_again():
    tensor = stiffness()
    (slope,) = torch.autograd.grad(loss_of(tensor), tensor, create_graph=True)
    assert slope.item() == torch.autograd.grad(loss_of(tensor), tensor)[0].item()


def test_a_picture_is_one_tensor():
    case = CASES[-1]
    assert rasterize(*case.arguments)({}).shape == case.function().outputs[IMAGES]


def test_a_batch_of_tensors_is_refused():
    batch = torch.tensor([40.0, 50.0], dtype=torch.float64)
    with pytest.raises(NotImplementedError, match=r"a batch of them from `torch\.func\.vmap`"):
        torch.func.vmap(loss_of)(batch)
