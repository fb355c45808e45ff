"""Pairs that change: no bit depends on when they were looked for, or beside what."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.schedules import Binomial
from adjsim.rollout import rollout
from adjsim.worlds import stack
from tests.pairs.scenes import DT, N_STEPS, nets


def gradient(model, state, **options):
    """End of a rollout and every gradient of it."""
    adj = np.random.default_rng(1).standard_normal((2, 1, model.n_nodes, 3))
    run = record(model, state, DT, N_STEPS, frames=[N_STEPS], **options)
    return run.trajectory, run.vjp(*adj)


def assert_same(outcome, expected):
    (end, gradients), (first, firsts) = outcome, expected
    np.testing.assert_array_equal(end.x, first.x)
    np.testing.assert_array_equal(end.v, first.v)
    assert set(gradients) == set(firsts)
    for name, value in firsts.items():
        np.testing.assert_array_equal(gradients[name], value, err_msg=name)


@pytest.fixture(scope="module")
def plain():
    return gradient(*nets())


def test_the_nets_touch(plain):
    model, state = nets()
    apart = replace(model, forces={"net": model.forces["net"]})
    assert np.abs(rollout(apart, state, DT, N_STEPS).x[-1] - plain[0].x[-1]).max() > 1e-3
    assert all(np.abs(g).max() > 0 for name, g in plain[1].items() if name.startswith("touch"))


@pytest.mark.parametrize("skin", [0.002, 0.01, 0.1])
def test_no_bit_depends_on_the_skin(plain, skin):
    assert_same(gradient(*nets(skin=skin)), plain)


@pytest.mark.parametrize("threads", [1, 2])
def test_no_bit_depends_on_the_threads(plain, threads):
    assert_same(gradient(*nets(), threads=threads), plain)


@pytest.mark.parametrize("checkpoint", [Binomial(2), Binomial(7)], ids=str)
def test_no_bit_depends_on_the_checkpoints(plain, checkpoint):
    assert_same(gradient(*nets(), checkpoint=checkpoint), plain)


def test_no_bit_depends_on_the_worlds_beside_it(plain):
    models, states = zip(nets(), nets(skin=0.01), nets(turn=0.7), strict=True)
    adj = np.random.default_rng(1).standard_normal((2, 1, models[0].n_nodes, 3))
    run = record(stack(models), states, DT, N_STEPS, frames=[N_STEPS])
    gradients = run.vjp([adj[0]] * 3, [adj[1]] * 3)
    for world in (0, 1):
        assert_same((run.trajectory[world], gradients[world]), plain)


def test_forces_before_and_after_the_contact():
    """Rows of the parameters of other forces lie elsewhere when more or fewer pairs are found."""
    model, state = nets()
    net, touch = model.forces["net"], model.forces["touch"]
    twice = {"a": replace(net, stiffness=20.0), "touch": touch, "b": replace(net, stiffness=30.0)}
    usual = gradient(replace(model, forces=twice), state)
    other = replace(touch, skin=0.003)
    assert_same(gradient(replace(model, forces={**twice, "touch": other}), state), usual)
    assert np.abs(usual[1]["b.stiffness"]).max() > 0


def test_float32_follows_float64(plain):
    model, state = nets()
    end = rollout(model, state, DT, N_STEPS, dtype="float32").x[-1]
    np.testing.assert_allclose(end, plain[0].x[-1], rtol=0, atol=2e-4)
