"""Drag per mass of bodies: how a fall ends, the stable step, and a rate that is found."""

import numpy as np
import pytest

from adjsim.rollout import rollout
from studies.api import Problem, fit
from studies.scene.building import build
from studies.scene.declared import (
    Cloth,
    Free,
    PlaneObstacle,
    Points,
    Rigid,
    Scene,
    SceneFile,
    Search,
    Simulated,
    Soft,
    Springs,
    World,
)


RATE, G = 4.0, 9.81
BODIES = {
    "duck": Soft(mesh="box", cells=(1, 1, 1), E=1e4, nu=0.3, drag_rate=RATE),
    "cube": Rigid(mesh="box", drag_rate=RATE, position=(3, 0, 0), spin=(0, 2, 0)),
    "flag": Cloth(mesh="sheet", cells=(1, 1), E=1e4, drag_rate=RATE, position=(6, 0, 0)),
    "rope": Springs(mesh="chain", cells=(2,), drag_rate=RATE, position=(9, 0, 0)),
    "ball": Rigid(mesh="box", position=(12, 0, 0)),
}


def test_a_fall_with_drag_ends_at_g_over_the_rate_and_a_spin_dies_out():
    built = build(Scene(bodies=BODIES))
    run = rollout(built.system, built.state, 1e-3, 4000)
    assert set(built.nodes) == {"duck", "flag", "rope"}
    np.testing.assert_allclose(run.v[0] - [0, -G / RATE, 0], 0.0, atol=1e-5)
    cube, ball = run.bodies["cube"], run.bodies["ball"]
    np.testing.assert_allclose(cube.velocity[0, 0], [0, -G / RATE, 0], atol=1e-6)
    assert np.abs(cube.angular_velocity).max() < 2.0 * np.exp(-RATE * 3.9)
    assert ball.velocity[0, 0, 1] == pytest.approx(-G * 4.0)


def test_drag_bounds_the_stable_step():
    for name in ("duck", "cube"):
        fast = {**vars(BODIES[name]), "drag_rate": 1e5}
        system = build(Scene(bodies={name: type(BODIES[name])(**fast)})).system
        assert system.stable_dt() <= 2e-5
    on_floor = build(Scene(bodies={"cube": BODIES["cube"]}, obstacles={"floor": PlaneObstacle()}))
    without = build(Scene(bodies={"ball": BODIES["ball"]}, obstacles={"floor": PlaneObstacle()}))
    assert on_floor.system.stable_dt() < without.system.stable_dt()


def test_drag_is_no_value_where_it_is_0_unless_it_is_free():
    bodies = {"ball": BODIES["ball"], "pad": Soft(mesh="box", cells=(1, 1, 1), E=1e4)}
    assert not any("drag" in path for path in build(Scene(bodies=bodies)).values)
    free = {f"{name}.drag_rate": Free(start=1.0) for name in bodies}
    values = build(SceneFile(bodies=bodies, free=free)).values
    assert all(values[path].bounds == (0.0, np.inf) for path in free)
    duck = build(Scene(bodies=BODIES)).values["duck.drag_rate"]
    assert (duck.transform, duck.bounds) == ("log", (0.04, 400.0))


def test_a_fit_of_simulated_tracks_finds_the_rates(tmp_path):
    bodies = {name: BODIES[name] for name in ("duck", "cube")}
    tracks = {
        name: Points(body=name, simulate=Simulated(frames=8), at={"a": at})
        for name, at in {"duck": (0.5, 0.5, 0.5), "cube": (3.5, 0.5, 0.5)}.items()
    }
    free = {f"{name}.drag_rate": Free(start=1.0) for name in bodies}
    search = Search(coarse=0, stages=(1.0,), held_back=0.0)
    scene = Scene(bodies=bodies, world=World(duration=1.0))
    answer = fit(Problem(scene, tracks, free, search=search), tmp_path / "run")
    assert answer.verdict.kind.value == "found"
    for path in free:
        assert answer.values[path] == pytest.approx(RATE, rel=1e-4)
