"""Random models against the references: states, gradient, tangent, by complex steps.

No line, and no step size, is shared with what is tested. Every seed draws other forces, kinds of
parameters, pinned nodes, frames, a schedule, and what the gradient is wanted of.
"""

import numpy as np
import pytest

from adjoint import Binomial, EveryK, record, rollout_jvp
from tests.mixtures import NAMES, Mixture
from tests.physics import values_of


STEP = 1e-30
DT = 4e-4
SEEDS = range(12)


def drawn(seed):
    """A mixture, the frames, and a schedule; every force is in every third seed or so."""
    rng = np.random.default_rng(seed)
    names = tuple(name for name in NAMES if rng.random() < 0.6)
    n_steps = int(rng.integers(1, 13))
    mixture = Mixture(rng, n_steps, names).build()
    frames = np.sort(rng.permutation(n_steps + 1)[: rng.integers(1, n_steps + 2)])
    schedule = (None, EveryK(int(rng.integers(1, 5))), Binomial(int(rng.integers(1, 4))))
    return mixture, frames, schedule[rng.integers(3)]


@pytest.fixture(scope="module", params=SEEDS)
def case(request):
    mixture, frames, schedule = drawn(request.param)
    model, state, n_steps = mixture.model, mixture.state, mixture.n_steps
    run = record(model, state, DT, n_steps, frames=frames, checkpoint=schedule)
    rng = np.random.default_rng(100 + request.param)
    adj = rng.standard_normal((2, *run.trajectory.x.shape))
    return mixture, frames, run, adj, run.vjp(*adj)


def test_every_force_is_drawn_and_some_models_have_none_of_it():
    counts = {name: sum(name in drawn(seed)[0].names for seed in SEEDS) for name in NAMES}
    assert all(2 < count < len(SEEDS) for count in counts.values()), counts


def test_states_are_those_of_the_references(case):
    mixture, frames, run, _, _ = case
    x, v = mixture.referenced(values_of(mixture.model, mixture.state), DT, frames)
    # A dozen steps of some hundred operations each on positions below 1 m.
    np.testing.assert_allclose(run.trajectory.x, x, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.trajectory.v, v, rtol=0, atol=1e-12)


def test_the_gradient_of_every_parameter_is_that_of_the_references(case):
    mixture, frames, _, adj, gradient = case
    values, rng = values_of(mixture.model, mixture.state), np.random.default_rng(3)
    assert set(gradient) == set(values)
    for path, value in values.items():
        direction = rng.standard_normal(value.shape)
        moved = mixture.referenced({**values, path: value + 1j * STEP * direction}, DT, frames)
        exact = np.vdot(adj, np.imag(moved)) / STEP
        terms = gradient[path] * direction
        assert gradient[path].shape == value.shape
        # Rounding of either side, relative to the terms of the product that is compared.
        assert abs(terms.sum() - exact) <= 1e-12 * np.abs(terms).sum(), path


def test_the_tangent_is_that_of_the_references(case):
    mixture, frames, _, _, _ = case
    model, state = mixture.model, mixture.state
    values, rng = values_of(model, state), np.random.default_rng(4)
    tan = {path: rng.standard_normal(value.shape) for path, value in values.items()}
    moved = {path: value + 1j * STEP * tan[path] for path, value in values.items()}
    exact = np.imag(mixture.referenced(moved, DT, frames)) / STEP
    _, pushed = rollout_jvp(model, state, DT, mixture.n_steps, tan, frames=frames)
    for ours, theirs in zip((pushed.x, pushed.v), exact, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 * np.abs(theirs).max())


def test_a_part_of_the_gradient_has_the_bits_of_the_whole(case):
    _, _, run, adj, gradient = case
    paths = list(gradient)
    for subset in (paths[::2], paths[1::3]):
        some = run.vjp(*adj, wrt=subset)
        assert list(some) == subset
        for path in subset:
            np.testing.assert_array_equal(some[path], gradient[path], err_msg=path)
