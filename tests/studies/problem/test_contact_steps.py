"""Steps that are tried: as long as the motion allows where bodies touch, the same each time."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint import rollout_jvp
from studies.api import simulate
from studies.problem import contact_steps
from studies.problem.contact_steps import stable_steps, tried_steps
from studies.problem.steps import PART_OF_STABLE, first_steps
from studies.scene.building import build
from studies.scene.declared import Contact, PlaneObstacle, Rigid, Scene, Soft, World


WORLD = World()


def boxes(world=WORLD, **contact):
    """Two boxes that fall onto each other and the floor."""
    places = ((0.0, 0.05, 0.0), (0.004, 0.155, -0.003))
    bodies = {
        f"box_{i}": Rigid(mesh="box", size=(0.1, 0.1, 0.1), position=at, density=1000.0)
        for i, at in enumerate(places)
    }
    touch = Contact(between=("box_0", "box_1"), **({"friction": 0.5} | contact))
    return Scene(
        bodies=bodies, obstacles={"floor": PlaneObstacle(friction=0.5)},
        contacts={"touch": touch}, world=world,
    )  # fmt: skip


def tried(scene, end=0.1):
    built = build(scene)
    return built, *tried_steps(first_steps(end / 5, None, built.longest_dt), built, {}, end)


def test_boxes_take_longer_steps_than_the_estimate_and_end_in_the_same_place():
    built, steps, notes = tried(boxes())
    assert not notes
    assert steps.factor > 4.0
    assert steps.dt > 4.0 * PART_OF_STABLE * built.system.stable_dt()
    assert not steps.are_long(built.system)
    assert steps.suited_to(built.system) == steps
    times = np.linspace(0.0, 0.1, 6)
    ends = [
        simulate(boxes(World(dt=dt)), times).surfaces["box_1"][-1]
        for dt in (float(steps.dt), float(steps.dt) / 8.0)
    ]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-4)


def test_the_choice_is_the_same_each_time_and_that_of_simulate():
    _, steps, _ = tried(boxes())
    assert tried(boxes())[1] == steps
    dt = float(simulate(boxes(), np.linspace(0.0, 0.1, 6)).dt)
    assert dt == pytest.approx(float(steps.dt), rel=1e-12)  # the interval is rounded


@pytest.mark.parametrize("world", [World(dt=1e-4), World(step="implicit")])
def test_steps_that_are_declared_or_stable_are_not_tried(world, monkeypatch):
    monkeypatch.setattr(contact_steps, "_motion", None)
    built = build(boxes(world))
    given = first_steps(0.02, world.dt or np.inf, built.longest_dt)
    assert tried_steps(given, built, {}, 0.1) == (given, [])


def test_where_nothing_touches_another_body_steps_are_those_of_the_estimate(monkeypatch):
    monkeypatch.setattr(contact_steps, "_trial", None)
    built = build(replace(boxes(), contacts={}))
    first = first_steps(0.02, None, built.longest_dt)
    suited = first.suited_to(built.system)
    assert tried_steps(first, built, {}, 0.1) == (suited, [])


def test_steps_are_shorter_where_a_body_presses_its_points_deeper_than_they_would_sink():
    block = Soft(
        mesh="box", size=(0.1, 0.1, 0.1), cells=(2, 2, 2), E=2e4, nu=0.3, density=1000.0,
        position=(0.0, 0.051, 0.0),
    )  # fmt: skip
    floor = PlaneObstacle(stiffness=20.0, dissipation=40.0, friction=0.0)
    built, steps, notes = tried(Scene(bodies={"block": block}, obstacles={"floor": floor}), 0.5)
    estimate = first_steps(0.1, None, built.longest_dt).suited_to(built.system)
    assert not notes
    assert steps.factor < 0.5
    assert stable_steps(steps, built, {}, 0.5) is steps
    along = {"state.v": np.random.default_rng(0).normal(size=built.state.x.shape)}
    sizes = []
    for dt in (float(estimate.dt), float(steps.dt)):
        _, tangent = rollout_jvp(built.system, built.state, dt, round(0.5 / dt), along)
        sizes.append(float(np.abs(tangent.x[-1]).max()))
    assert sizes[1] < 1.0
    assert sizes[0] > 1e6


@pytest.mark.parametrize("speed", [0.5, -0.5])
def test_depths_are_those_beside_an_obstacle_where_it_is_then(speed):
    block = Soft(
        mesh="box", size=(0.1, 0.1, 0.1), cells=(2, 2, 2), E=2e4, nu=0.3, density=1000.0,
        position=(0.0, 0.0501, 0.0),
    )  # fmt: skip
    path = {"times": [0.0, 1.0], "positions": [[0.0, 0.0, 0.0], [0.0, speed, 0.0]]}
    floor = PlaneObstacle(friction=0.0, path=path)
    built, steps, _ = tried(Scene(bodies={"block": block}, obstacles={"floor": floor}), 1.0)
    assert steps.factor == 1.0
    assert steps.suited_to(built.system) == steps


def test_a_motion_that_never_agrees_names_the_force(monkeypatch):
    monkeypatch.setattr(contact_steps, "AGREES", 1e-12)
    monkeypatch.setattr(contact_steps, "SHORTEST", 2.0)
    built, steps, (note,) = tried(boxes(), 0.05)
    assert steps.factor == 1.0
    assert steps.dt <= PART_OF_STABLE * built.system.stable_dt()
    assert "`touch` pushes most" in note or "`floor_box_0` pushes most" in note


def test_a_step_below_a_tenth_of_a_microsecond_names_its_cause():
    _, steps, (note,) = tried(boxes(stiffness=1e13), 1e-5)
    assert steps.dt < 1e-7
    assert "`touch` is so stiff" in note
    _, steps, (note,) = tried(boxes(speed=4e3, stiffness=1e6, dissipation=0.0), 1e-5)
    assert steps.dt < 1e-7
    assert "surfaces that meet this fast" in note
    alone = replace(boxes(), contacts={}, obstacles={"floor": PlaneObstacle(stiffness=1e14)})
    _, _, (note,) = tried(alone, 1e-5)
    assert "`floor_box_0` is so stiff" in note or "`floor_box_1` is so stiff" in note
