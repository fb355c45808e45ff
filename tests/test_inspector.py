"""`Record.inspect`: contributions sum to the gradient, and growth is what other ways find."""

import re
from dataclasses import replace

import numpy as np
import pytest

from adjoint.rollout import record
from adjoint.schedules import EveryK
from adjsim.contact_margins import contact_margins
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.joints.driven import HingeJoint
from adjsim.joints.joint import frames_at
from adjsim.model import Model, State
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.smoke import Smoke, SmokeState
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.worlds import stack
from tests.pairs.scenes import nets
from tests.physics import sliding_box


N_STEPS, DT, FRAMES = 30, 3e-4, [0, 11, 12, 30]


@pytest.fixture(scope="module")
def run():
    """A box that sticks, slips and bounces on a floor."""
    model, state = sliding_box(np.random.default_rng(5), N_STEPS)
    return record(model, state, DT, N_STEPS, frames=FRAMES, checkpoint=EveryK(7), threads=1)


@pytest.fixture(scope="module")
def adj():
    """Cotangents of the frames: positions and velocities."""
    rng = np.random.default_rng(6)
    return rng.standard_normal((2, len(FRAMES), 27, 3)) * np.array([1.0, 0.01])[:, None, None, None]


@pytest.fixture(scope="module")
def inspection(run, adj):
    """What there is to find, in every step."""
    return run.inspect(*adj, thorough=True, wrt=[*run.model.parameters(), "state.x", "state.v"])


def largest(value):
    return float(np.abs(value).max())


def test_the_gradient_has_the_bits_of_a_sweep_without_pauses(run, adj, inspection):
    for path, value in run.vjp(*adj).items():
        np.testing.assert_array_equal(inspection.gradient[path], value)


@pytest.mark.parametrize("most", [2, 5, 9, 64])
def test_contributions_sum_to_the_gradient(run, adj, most):
    inspection = run.inspect(
        *adj, most_pauses=most, wrt=[*run.model.parameters(), "state.x", "state.v"]
    )
    assert 2 <= len(inspection.steps) <= min(most, N_STEPS)
    assert set(inspection.contributions) == set(run.model.parameters())
    for path, parts in inspection.contributions.items():
        total, gradient = parts.sum(axis=0), inspection.gradient[path]
        assert largest(total - gradient) <= 1e-12 * largest(gradient) > 0.0, path
    for field in ("x", "v"):
        total = sum(parts[field] for parts in inspection.origins.values())
        gradient = inspection.gradient[f"state.{field}"]
        assert largest(total - gradient) <= 1e-12 * largest(gradient)


def test_in_every_step_forces_motion_and_frames_are_all_there_is(inspection):
    assert set(inspection.origins) == {"solid", "floor", "motion", "frames"}
    a, b = (inspection.adjoint[field] for field in ("x", "v"))
    np.testing.assert_array_equal(a[0], inspection.gradient["state.x"])
    np.testing.assert_array_equal(b[0], inspection.gradient["state.v"])
    assert all(largest(inspection.added[name]["x"]) > 0.0 for name in ("solid", "floor"))
    assert largest(inspection.added["motion"]["x"]) < 1e-9 * largest(inspection.added["solid"]["x"])


def test_rates_of_forces_sum_to_the_growth_of_every_step(inspection):
    rates = sum(inspection.rates.values())
    growth = inspection.growth - np.append(inspection.growth[1:], 0.0)
    assert largest(rates * DT - growth) < 1e-12 * largest(growth)


def test_growth_does_not_depend_on_the_pauses(run, adj, inspection):
    for most in (2, 9):
        paused = run.inspect(*adj, most_pauses=most)
        sizes = {field: scale / inspection.scales[field] for field, scale in paused.scales.items()}
        assert paused.growth[0] == pytest.approx(
            inspection.growth[0], abs=2.0 * np.log(max(sizes.values()))
        )


def test_shares_of_frames_sum_to_the_norm_of_the_gradient(inspection):
    assert {"solid.mu", "floor.friction", "mass", "state.v"} <= set(inspection.shares)
    for path, shares in inspection.shares.items():
        size = np.linalg.norm(inspection.gradient[path])
        assert abs(shares.sum() - size) < 1e-12 * size, path


def test_a_share_is_what_a_frame_alone_would_give(run, adj, inspection):
    alone = np.zeros_like(adj)
    alone[:, 1] = adj[:, 1]
    gradient, total = run.vjp(*alone)["floor.friction"], inspection.gradient["floor.friction"]
    assert inspection.shares["floor.friction"][1] == pytest.approx(float(gradient * np.sign(total)))


def test_contacts_are_counted_in_every_state(monkeypatch, run, adj):
    monkeypatch.setattr("adjoint.inspector.WINDOW", 4)
    inspection = run.inspect(*adj, most_pauses=3)
    every = rollout(run.model, run.state, DT, N_STEPS, frames=range(N_STEPS), threads=1)
    margins = contact_margins(run.model, every)["floor"]
    touches = margins.touch > 0.0
    slips = touches & (margins.slip > 0.0)
    np.testing.assert_array_equal(inspection.touching["floor"], touches.sum(axis=1))
    np.testing.assert_array_equal(inspection.slipping["floor"], slips.sum(axis=1))
    changes = {
        "touch": touches[1:] & ~touches[:-1],
        "leave": touches[:-1] & ~touches[1:],
        "slip": touches[1:] & touches[:-1] & slips[1:] & ~slips[:-1],
        "stick": touches[1:] & touches[:-1] & slips[:-1] & ~slips[1:],
    }
    assert sum(changed.sum() for changed in changes.values()) > 5
    for name, changed in changes.items():
        np.testing.assert_array_equal(
            inspection.events[f"floor: {name}"], [*changed.sum(axis=1), 0]
        )


def test_surfaces_and_joints_are_counted_like_obstacles():
    model, state = nets()
    run = record(model, state, 5e-4, 120, frames=[120])
    inspection = run.inspect(np.ones((1, *state.x.shape)), most_pauses=3)
    every = rollout(model, state, 5e-4, 120, frames=range(120))
    margins = contact_margins(model, every)["touch"]
    touches = margins.touch > 0.0
    np.testing.assert_array_equal(inspection.touching["touch"], touches.sum(axis=1))
    np.testing.assert_array_equal(inspection.slipping["touch"], (margins.slip > 0.0).sum(axis=1))
    begins = (touches[1:] & ~touches[:-1]).sum(axis=1)
    np.testing.assert_array_equal(inspection.events["touch: touch"][:-1], begins)
    assert begins.sum() > 10


def test_a_joint_that_turns_round_sticks_and_slips():
    corners = 0.1 * np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    block = RigidBodies(corners, mass=0.5, inertia=(3e-3, 3e-3, 3e-3, 0.0, 0.0, 0.0))
    start = {"block": BodyState([0.0] * 3, angular_velocity=[0.0, 0.0, 0.5])}
    joint = HingeJoint(
        (None, "block"), stiffness=1e3, damping=5.0, angular_stiffness=10.0, angular_damping=0.05,
        dry_friction=2e-3, friction_width=0.1, motor=-4e-3,
        **frames_at((None, "block"), start, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    )  # fmt: skip
    model = Model(forces={"joint": joint}, gravity=(0.0, 0.0, 0.0), bodies={"block": block})
    run = record(model, State(bodies=start), 1e-3, 800, frames=[800])
    inspection = run.inspect(
        bodies={"block": {"angular_velocity": np.ones((1, 1, 3))}}, most_pauses=3
    )
    events = {name: np.flatnonzero(counts) for name, counts in inspection.events.items()}
    (sticks,), (slips,) = events["joint: stick"], events["joint: slip"]
    assert 0 < sticks < slips
    assert inspection.slipping["joint"].sum() == 800 - (slips - sticks)
    assert not inspection.touching["joint"].any()


def test_what_is_kept_of_a_model_of_bodies_and_nodes():
    corners = 0.1 * np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    block = RigidBodies(corners, mass=0.5, inertia=(3e-3, 3e-3, 3e-3, 0.0, 0.0, 0.0))
    floor = {"stiffness": 200.0, "damping": 1.0, "friction_stiffness": 3.0, "friction": 0.3}
    model = Model(
        mass=[0.1, 0.2],
        forces={
            "ground": HalfSpaceContact((0, 1, 0), height=0.0, **floor),
            "floor": HalfSpaceContact((0, 1, 0), height=0.0, acts_on="block", **floor),
        },
        bodies={"block": block},
    )
    at = BodyState((0.0, 0.099, 0.0), velocity=(0.5, -0.3, 0.1), angular_velocity=(0.2, 1.0, 0.3))
    state = State([(1.0, -0.001, 0.0), (2.0, 0.5, 0.0)], bodies={"block": at})
    run = record(model, state, 1e-3, 20)
    adj = {"block": {"position": [[(1.0, 0.5, 0.0)]], "orientation": [[(0.1, 0.2, 0.3, 0.0)]]}}
    inspection = run.inspect(np.ones((1, 2, 3)), bodies=adj, thorough=True)
    for field in ("block.position", "block.velocity", "block.angular_velocity"):
        gradient = inspection.gradient[field]
        total = sum(parts[field] for parts in inspection.origins.values())
        assert largest(total - gradient) <= 1e-12 * largest(gradient)
    assert largest(inspection.origins["floor"]["block.orientation"]) > 0.0
    assert (
        largest(inspection.origins["floor"]["x"])
        == 0.0
        < largest(inspection.origins["ground"]["x"])
    )
    for path, shares in inspection.shares.items():
        size = np.linalg.norm(inspection.gradient[path])
        assert abs(shares.sum() - size) < 1e-12 * size, path
    assert inspection.dataset()["adjoint.block.position"].shape == (20, 1, 3)


def test_the_exponent_is_that_of_two_runs_that_are_near():
    model = DoublePendulum((1.0, 1.0), (1.0, 1.0))
    start, dt, n, short = PendulumState((2.0, 2.5)), 1e-3, 10_000, 250
    inspection = record(model, start, dt, n).inspect([[1.0, 0.0]])
    scale = np.array([[inspection.scales["angle"]], [inspection.scales["rate"]]])
    away = (
        np.stack([inspection.gradient["state.angle"], inspection.gradient["state.rate"]]) / scale**2
    )
    size, total, at = 1e-9 * scale.max(), 0.0, np.stack([start.angle, start.rate])

    def ahead(state):
        end = rollout(model, PendulumState(*state), dt, short)
        return np.concatenate([end.angle, end.rate])

    for _ in range(0, n, short):  # two runs that are near, brought near again and again
        away *= size / np.linalg.norm(scale * away)
        at, away = ahead(at), ahead(at + away) - ahead(at)
        total += np.log(np.linalg.norm(scale * away) / size)
    assert inspection.exponent == pytest.approx(total / (n * dt), rel=0.1)
    assert inspection.horizon is None
    assert "10 times every 1.6" in inspection.summary()[0]


def test_a_gradient_beyond_the_horizon_is_said_to_be_none():
    model = DoublePendulum((1.0, 1.0), (1.0, 1.0))
    inspection = record(model, PendulumState((2.0, 2.5)), 1e-3, 40_000).inspect([[1.0, 0.0]])
    assert 10_000 < inspection.horizon < 16_000
    assert any("carries no information" in line for line in inspection.summary())


def test_the_summary_says_where_the_adjoint_grows_and_what_changes_there(inspection):
    late = inspection.steps[len(inspection.steps) * 2 // 3]
    jump = replace(inspection, growth=np.where(inspection.steps <= late, 3.0, 0.0))
    window = inspection.frames[-1] // 10
    text = jump.summary()[1]
    start = int(re.search(r"back to step (\d+)", text)[1])
    assert start <= late < start + window
    assert f"by {3.0 / (window * DT):.3g}/s" in text
    (text,) = replace(inspection, growth=0.0 * inspection.growth).summary()
    assert text.endswith("no trouble for a search. Nothing found here stands in its way.")


def test_smoke_is_inspected_too():
    rng = np.random.default_rng(0)
    run = record(
        Smoke((8, 8)), SmokeState(rng.standard_normal((8, 8, 2)), rng.random((8, 8))), 0.02, 4
    )
    inspection = run.inspect(adj_density=np.ones((1, 8, 8)))
    total = sum(parts["velocity"] for parts in inspection.origins.values())
    gradient = inspection.gradient["state.velocity"]
    assert largest(total - gradient) <= 1e-12 * largest(gradient)


def test_the_dataset_has_named_coordinates(inspection):
    data = inspection.dataset()
    assert data["contribution.floor.friction"].dims == ("step",)
    assert data["adjoint.x"].sel(step=12).shape == (27, 3)
    assert data["rate.floor"].attrs["units"] == "1/s"
    np.testing.assert_array_equal(data.frame, FRAMES)


def test_a_budget_limits_the_pauses(monkeypatch, run, adj):
    monkeypatch.setattr("adjoint.rollout.LEAST_MEMORY", 0)
    inspection = run.inspect(*adj)
    assert len(inspection.steps) == 5
    assert "solid.actuation" not in inspection.contributions


def test_what_cannot_be_inspected_is_said(run, adj):
    with pytest.raises(ValueError, match="cotangent must be given, `adj_x` or `adj_v`, got None"):
        run.inspect()
    with pytest.raises(ValueError, match=r"`adj_x` must have shape \(4, 27, 3\), got \(27, 3\)"):
        run.inspect(adj[0, 0])
    with pytest.raises(
        ValueError, match="`most_pauses` must be a whole number of at least 2, got 1"
    ):
        run.inspect(*adj, most_pauses=1)
    model, state = sliding_box(np.random.default_rng(5), 3)
    with pytest.raises(ValueError, match=r"needs a frame after the first step, got frames = \[0\]"):
        record(model, state, DT, 3, frames=[0]).inspect(adj[0, :1])
    batch = record(stack([model]), [state], DT, 3)
    with pytest.raises(TypeError, match="takes the record of one system, got that of a Batch"):
        batch.inspect([adj[0, :1]])
