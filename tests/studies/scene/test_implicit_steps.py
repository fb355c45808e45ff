"""Scene files with `world.step = "implicit"`."""

import numpy as np
import pytest
import tomlkit
import xarray

from adjsim.steps.implicit import ImplicitEuler
from studies.fitting.fit import make_fit
from studies.problem.forward import simulate
from studies.problem.making import make_problem
from studies.runs.errors import StudyError
from studies.runs.options import RunOptions
from studies.scene.body_contacts import PER_LONG_STEP, PER_STEP
from studies.scene.building import build
from studies.scene.declared import (
    Contact,
    Held,
    HingeJoint,
    Pendulum,
    Plane,
    Rigid,
    Scene,
    Soft,
    World,
)
from studies.scene.reading import scene_from_dict
from tests.studies.command import adjsim
from tests.studies.scene.slopes import check_slopes
from tests.studies.undrawn import undrawn


TABLES = {
    "bodies": {
        "beam": {
            "kind": "soft", "mesh": "box", "size": [0.3, 0.04, 0.04], "cells": [4, 1, 1],
            "position": [0.15, 0.0, 0.0], "E": 1e8, "nu": 0.4, "density": 1000.0,
            "held": {"plane": {"point": [0, 0, 0], "normal": [1, 0, 0]}},
        }
    },
    "cameras": {"front": {"eye": [0.2, 0.05, 0.75], "target": [0.13, 0, 0], "fov_y": 35.0}},
    "world": {"step": "implicit"},
    "observations": {
        "film": {"simulate": {"height": 12, "width": 16, "frames": 3, "duration": 0.2}}
    },
    "free": {"beam.E": {"start": 5e7, "bounds": [1e7, 1e9]}},
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return scene_from_dict(TABLES, tmp_path_factory.mktemp("film"))


def test_a_step_goes_from_frame_to_frame_or_is_as_long_as_asked(file):
    problem = make_problem(file).problem
    assert isinstance(problem.built.step, ImplicitEuler)
    assert problem.steps.count == 1
    theta = problem.parameters.start
    assert problem.with_steps_for(theta).steps == problem.steps
    assert not problem.steps_are_long(theta)
    scene = Scene(bodies=file.bodies, world=World(step="implicit", dt=0.02))
    assert simulate(scene, [0.0, 0.1]).dt == pytest.approx(0.02)


def test_a_run_can_be_inspected(tmp_path):
    scene, run = tmp_path / "beam.toml", tmp_path / "run"
    scene.write_text(tomlkit.dumps(TABLES | {"search": {"max_evaluations": 2}}))
    with undrawn():
        adjsim("run", scene, "--no-certificate", "--out", run)
    assert "no trouble for a search. Nothing found here" in adjsim.done("inspect", run)
    with xarray.open_dataset(run / "inspect.nc", engine="h5netcdf") as data:
        assert data["share.beam.mu"].sum() > 0.0


def test_the_gradient_of_a_film_is_that_of_differences(file):
    problem = make_problem(file).problem
    theta, h = problem.parameters.start, 1e-4
    loss, gradient = problem.loss_and_gradient(theta)
    assert loss > 0.0
    ahead, behind = (problem.loss_and_gradient(theta + s * h)[0] for s in (1.0, -1.0))
    assert gradient[0] == pytest.approx((ahead - behind) / (2.0 * h), rel=1e-5)


def contact(world):
    ball = Soft(
        mesh="ball", size=(0.1,), cells=(2,), E=1e6, position=(0.01, 0.165, 0.02),
        velocity=(0.2, -0.5, 0.0),
    )  # fmt: skip
    block = Soft(
        mesh="box", size=(0.2, 0.1, 0.2), cells=(3, 2, 3), E=1e6,
        held=Held(plane=Plane(point=(0.0, -0.045, 0.0), normal=(0.0, 1.0, 0.0))),
    )  # fmt: skip
    touch = Contact(between=("ball", "block"), radius=0.005, friction=0.4)
    return Scene(bodies={"ball": ball, "block": block}, contacts={"touch": touch}, world=world)


def test_bodies_that_touch_take_steps_no_longer_than_keeps_them_apart():
    scene = contact(World(step="implicit"))
    built = build(scene)
    run = simulate(scene, np.linspace(0.0, 0.4, 5))
    assert built.system.stable_dt() < 0.1 * run.dt < 0.1 * built.longest_dt * (1.0 + 1e-12)
    assert built.longest_dt == pytest.approx(
        PER_LONG_STEP / PER_STEP * build(contact(World())).longest_dt
    )
    lowest = [x[:, 1].min() for x in run.surfaces["ball"]]
    assert min(lowest) > 0.05  # it lies on the block
    asked = simulate(contact(World(step="implicit", dt=0.02)), np.linspace(0.0, 0.4, 5))
    assert asked.dt == pytest.approx(0.02)


def test_gradients_of_what_touches_in_implicit_steps_match_differences():
    paths = ["touch.stiffness", "touch.dissipation", "touch.friction", "touch.radius", "block.E"]
    check_slopes(contact(World(step="implicit")), paths, 2e-3, 20)


def test_gradients_of_bars_in_joints_match_differences():
    bars = {
        name: Rigid(mesh="box", size=(0.3, 0.04, 0.06), position=at, density=700.0)
        for name, at in (("upper", (0.15, 0.0, 0.0)), ("lower", (0.45, 0.0, 0.07)))
    }
    axis = (0.0, 0.0, 1.0)
    joints = {
        "root": HingeJoint(
            between=("world", "upper"), anchor=(0.01, 0.0, 0.0), axis=axis, viscous_friction=0.02
        ),
        "elbow": HingeJoint(
            between=("upper", "lower"), anchor=(0.3, 0.0, 0.035), axis=axis, dry_friction=0.05,
            friction_width=5.0,
        ),
    }  # fmt: skip
    scene = Scene(bodies=bars, joints=joints, world=World(step="implicit"))
    check_slopes(scene, ["lower.density", "root.viscous_friction", "elbow.dry_friction"], 0.02, 10)


def test_what_takes_no_implicit_steps_is_refused(file, tmp_path):
    bob = Scene(bodies={"p": Pendulum(length=(0.5,), angle=(10.0,))}, world=World(step="implicit"))
    with pytest.raises(StudyError, match=r"`bodies.p` must be soft, cloth, springs or rigid"):
        build(bob)
    rests = TABLES | {"world": {"step": "implicit", "motion": "equilibrium"}}
    with pytest.raises(StudyError, match=r"`world.step` must be left out where `world.motion`"):
        scene_from_dict(rests, tmp_path)
    with pytest.raises(StudyError, match=r"`--dtype` must be float64 where `world.step`"):
        make_fit(file, RunOptions(dtype="float32"), title="")
