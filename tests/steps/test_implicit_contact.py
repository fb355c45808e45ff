"""Implicit steps of surfaces that touch: their order, what no bit depends on, what is an error."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjoint.schedules import Binomial, EveryK
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.ball import ball_tets
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rollout import rollout
from adjsim.steps.implicit import ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler
from adjsim.system import RolloutError
from tests.pairs.scenes import nets


TIME = 0.08  # while the one net lands on the other and slides
STEP = ImplicitEuler()


def gradient(model, state, n_steps=8, **options):
    """End of a rollout and every gradient of it."""
    adj = np.random.default_rng(1).standard_normal((2, 1, model.n_nodes, 3))
    run = record(
        model, state, TIME / n_steps, n_steps, step=STEP, frames=[n_steps], **options
    )  # fmt: skip
    return run.trajectory, run.vjp(*adj)


def balls():
    """Two balls, stiff and heavily damped in contact, of which one hits the other."""
    ball = ball_tets(2, radius=0.1)
    n, faces = len(ball.points), ball.surface().faces
    x = np.concatenate([ball.points, ball.points[:, [1, 2, 0]] + [0.205, 0.03, 0.0]])
    tets = np.concatenate([ball.tets, ball.tets + n])
    soft = NeoHookeanTets(tets, x, mu=3e8, lam=6e8, density=1e3)
    touch = SurfaceContact(
        triangles=faces, other_triangles=faces + n, radius=0.01, other_radius=0.01,
        stiffness=2e4, dissipation=0.3, friction=0.4, friction_stiffness=20.0,
    )  # fmt: skip
    v = np.zeros_like(x)
    v[:n, 0] = 1.0
    return Model(forces={"balls": soft, "touch": touch}, gravity=(0.0, 0.0, 0.0)), State(x, v)


@pytest.fixture(scope="module")
def plain():
    return gradient(*nets())


def test_the_nets_touch(plain):
    model, state = nets()
    apart = replace(model, forces={"net": model.forces["net"]})
    assert np.abs(rollout(apart, state, TIME / 8, 8, step=STEP).x - plain[0].x).max() > 1e-3
    assert all(np.abs(g).max() > 0 for name, g in plain[1].items() if name.startswith("touch"))


@pytest.mark.parametrize("skin", [0.002, 0.1])
def test_no_bit_depends_on_the_skin(plain, skin):
    """A net falls by 20 mm in a step: with a skin of 2 mm pairs are found again inside of it."""
    end, gradients = gradient(*nets(skin=skin))
    np.testing.assert_array_equal(end.x, plain[0].x)
    np.testing.assert_array_equal(end.v, plain[0].v)
    for name, value in plain[1].items():
        np.testing.assert_array_equal(gradients[name], value, err_msg=name)


@pytest.mark.parametrize("checkpoint", [EveryK(3), Binomial(2)], ids=str)
def test_no_bit_depends_on_the_checkpoints(plain, checkpoint):
    end, gradients = gradient(*nets(), checkpoint=checkpoint)
    np.testing.assert_array_equal(end.x, plain[0].x)
    for name, value in plain[1].items():
        np.testing.assert_array_equal(gradients[name], value, err_msg=name)


def test_it_is_of_first_order_against_fine_explicit_steps():
    model, state = nets()
    fine = rollout(model, state, TIME / 40_000, 40_000).x[-1]
    errors = [
        np.abs(rollout(model, state, TIME / n, n, step=STEP).x[-1] - fine).max() for n in (256, 512)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.15)


def test_stiff_balls_bounce_in_steps_a_hundred_times_the_stable_one():
    model, state = balls()
    dt, n = 2e-3, 20
    assert dt > 100.0 * model.stable_dt()
    with pytest.raises(RolloutError):
        rollout(model, state, dt, n, step=SemiImplicitEuler())
    run = rollout(model, state, dt, n, step=STEP)
    momentum = model.mass @ run.v[-1]
    np.testing.assert_allclose(momentum, model.mass @ state.v, rtol=0, atol=1e-12)
    half = model.n_nodes // 2
    first, other = (model.mass[nodes] @ run.v[-1, nodes] for nodes in (np.s_[:half], np.s_[half:]))
    assert first[0] < other[0]


def test_surfaces_that_go_through_each_other_are_an_error_or_marked():
    model, state = nets(stiffness=1.0)
    fast = State(state.x, 4.0 * state.v)
    with pytest.raises(RolloutError, match="`touch` went through each other before step 2 "):
        rollout(model, fast, 0.01, 5, step=STEP)
    marked = record(
        model, fast, 0.01, 5, step=STEP, on_divergence="mark", frames=range(6)
    )  # fmt: skip
    assert marked.trajectory.diverged == 1
    assert np.isnan(marked.vjp(np.ones((6, *state.x.shape)))["touch.radius"])
    inside = state.x.copy()
    inside[len(state.x) // 2 :, 2] -= 0.05
    inside[-4:, 2] += 0.08
    crossed = State(inside, state.v)
    with pytest.raises(ValueError, match="must have the surfaces of `touch` apart"):
        rollout(model, crossed, 0.01, 2, step=STEP)
    _, tan = rollout_jvp(
        model, crossed, 0.01, 2, {"gravity": np.ones(3)}, step=STEP, on_divergence="mark"
    )
    assert np.isnan(tan.x).all()
    thick, _ = nets(radius=0.5)
    with pytest.raises(ValueError, match=r"`touch\.radius` must be smaller than the edges"):
        rollout(thick, state, 0.01, 2, step=STEP)


def test_what_passes_on_the_way_is_seen_though_both_ends_are_clear():
    model, state = nets()
    force = model.forces["touch"]
    x = state.x[np.unique(force.nodes)]
    upper = np.arange(len(x)) >= 25
    below = x - [0.0, 0.0, 0.5] * upper[:, None]
    assert force.crossing(below) is None
    assert "goes through a face" in force.passed_on_the_way(x, below)
    assert force.passed_on_the_way(x, x + [0.0, 0.0, 0.5] * upper[:, None]) is None
    assert force.passed_on_the_way(x, x - [0.0, 0.0, 0.5]) is None
