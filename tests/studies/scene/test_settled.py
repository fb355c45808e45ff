"""Bodies of scene files that are seen where they rest."""

from pathlib import Path

import numpy as np
import pytest

from adjsim.equilibrium import Cause, EquilibriumError
from studies.fitting.fit import what_moves
from studies.fitting.writing import steps_of
from studies.problem.forward import start_surfaces
from studies.problem.making import make_problem
from studies.reports.preview.shots import DECLARED
from studies.reports.preview.showing import preview
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.checking import check_scene
from studies.scene.declared import Pendulum, Scene, Soft, World
from studies.scene.motion import SETTLING, Motion, Settled
from studies.scene.reading import scene_from_dict


TABLES = {
    "bodies": {
        "beam": {
            "kind": "soft", "mesh": "box", "size": [0.3, 0.04, 0.04], "cells": [5, 1, 1],
            "position": [0.15, 0.0, 0.0], "E": 6e4, "nu": 0.4, "density": 1000.0,
            "held": {"plane": {"point": [0, 0, 0], "normal": [1, 0, 0]}},
        }
    },
    "cameras": {"front": {"eye": [0.2, 0.05, 0.75], "target": [0.13, -0.08, 0], "fov_y": 35.0}},
    "world": {"motion": "equilibrium"},
    "observations": {
        "photo": {"simulate": {"height": 24, "width": 32, "frames": 1}}
    },
    "free": {
        "beam.E": {"start": 2e5, "bounds": [1e4, 2e6]},
        "beam.position": {"start": [0.14, 0.01, 0.0]},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return make_problem(scene_from_dict(TABLES, tmp_path_factory.mktemp("photo"))).problem


def test_a_body_is_seen_where_it_rests(problem):
    built = problem.built
    assert isinstance(built.system, Settled)
    assert problem.settles
    assert not problem.rolls_out
    run = Motion(built.system, built.state, 1.0, np.array([0, 3])).run()
    np.testing.assert_array_equal(run.x[0], run.x[1])
    assert not run.v.any()
    assert run.x[0, :, 1].min() < -0.1  # its end hangs
    assert start_surfaces(built)["beam"][:, 1].min() == pytest.approx(run.x[0, :, 1].min())


def test_gradient_and_jacobian_of_a_picture_of_it_are_exact(problem, rng):
    theta = problem.parameters.start
    d = rng.standard_normal(theta.size)
    residuals, jacobian = problem.residuals_and_jacobian(theta)
    h = 1e-5
    ahead, behind = (problem.residuals(theta + s * h * d) for s in (1.0, -1.0))
    slope = (ahead - behind) / (2.0 * h)
    assert np.abs(jacobian @ d - slope).max() < 1e-5 * np.abs(slope).max()
    loss, gradient = problem.loss_and_gradient(theta)
    losses = [problem.loss_and_gradient(theta + s * h * d)[0] for s in (1.0, -1.0)]
    assert gradient @ d == pytest.approx((losses[0] - losses[1]) / (2.0 * h), rel=1e-6)
    assert loss > 0.0
    assert np.isfinite(residuals).all()


def test_a_beam_rests_on_a_block(rng):
    block = {
        "kind": "soft", "mesh": "box", "size": [0.05, 0.05, 0.1], "cells": [2, 2, 3],
        "position": [0.27, -0.08, 0.003], "E": 2e4, "nu": 0.3,
        "held": {"plane": {"point": [0.0, -0.1, 0.0], "normal": [0.0, 1.0, 0.0]}},
    }  # fmt: skip
    bodies = {**TABLES["bodies"], "block": block}
    contacts = {"touch": {"between": ["beam", "block"], "radius": 0.004, "stiffness": 200.0}}
    free = {"beam.E": TABLES["free"]["beam.E"], "touch.stiffness": {"start": 100.0}}
    tables = {**TABLES, "bodies": bodies, "contacts": contacts, "free": free}
    problem = make_problem(scene_from_dict(tables, Path())).problem
    drawn = start_surfaces(problem.built)["beam"]
    assert -0.06 < drawn[:, 1].min() < -0.04  # without the block it hangs lower than -0.1
    theta, h = problem.parameters.start, 1e-4
    gradient = problem.loss_and_gradient(theta)[1]
    d = rng.standard_normal(theta.size)
    losses = [problem.loss_and_gradient(theta + s * h * d)[0] for s in (1.0, -1.0)]
    assert gradient @ d == pytest.approx((losses[0] - losses[1]) / (2.0 * h), rel=1e-5)
    assert np.abs(gradient).min() > 0.0


def test_a_body_may_hang_on_a_pin():
    beam = {**TABLES["bodies"]["beam"], "E": 1e6}
    hung = {**beam, "position": [0.42, 0.0, 0.0], "size": [0.24, 0.04, 0.04]}
    del hung["held"]
    pin = {"kind": "pin", "between": ["hung", "beam"],
           "where": {"plane": {"point": [0.301, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}}}  # fmt: skip
    bodies, free = {"beam": beam, "hung": hung}, {"beam.E": TABLES["free"]["beam.E"]}
    tables = {**TABLES, "bodies": bodies, "joints": {"pin": pin}, "free": free}
    built = build(scene_from_dict(tables, Path()))
    run = Motion(built.system, built.state, 1.0, np.array([0])).run()
    ends = [run.x[0, rows] for rows in built.nodes.values()]
    assert ends[1][:, 1].min() < ends[0][:, 1].min() < -0.03  # both sag


def test_what_cannot_rest_is_refused_or_says_why():
    pendulum = Pendulum(length=(0.5,), angle=(10.0,))
    swing = Scene(bodies={"p": pendulum}, world=World(motion="equilibrium"))
    with pytest.raises(StudyError, match=r"`bodies.p` must be soft, cloth or springs"):
        build(swing)
    loose = Soft(mesh="box", cells=(1, 1, 1), E=1e5)
    with pytest.raises(StudyError, match=r"`bodies.b.held` is missing"):
        build(Scene(bodies={"b": loose}, world=World(motion="equilibrium")))
    thrown = Soft(mesh="box", cells=(1, 1, 1), E=1e5, velocity=(1.0, 0.0, 0.0))
    with pytest.raises(StudyError, match=r"`bodies.b.velocity` and `spin` must be left out"):
        build(Scene(bodies={"b": thrown}, world=World(motion="equilibrium")))
    free = {"beam.viscosity": {"start": 1.0}}
    with pytest.raises(StudyError, match=r"viscosity.* has no effect"):
        check_scene(scene_from_dict({**TABLES, "free": free}, Path()))


def test_a_load_that_varies_in_time_is_refused():
    push = {"body": "beam", "force": [0, 1, 0], "seconds": [0, 1]}
    scene = scene_from_dict({**TABLES, "pushes": {"p": push}}, Path())
    with pytest.raises(StudyError, match=r"must be constant where `world.motion` is .equilibrium."):
        build(scene)


def test_no_time_steps_are_named_and_held_nodes_are(problem):
    assert steps_of(problem) == {"dt": None, "n_steps": None}
    assert what_moves(problem.built) == "beam: 25 tetrahedra (4 of 24 nodes held)"


def test_what_buckles_is_told_in_the_words_of_a_scene(tmp_path):
    soft = {"beam": {**TABLES["bodies"]["beam"], "E": 1.0}}
    free = {**TABLES["free"], "beam.E": {"bounds": [0.1, 10.0]}}
    tables = {**TABLES, "bodies": soft, "free": free}
    file = scene_from_dict(tables, tmp_path)
    with pytest.raises(StudyError, match=r"Make the bodies stiffer \(`E`"):
        make_problem(file)
    lines = []
    (_, warning, *_) = preview(file, tmp_path / "a.png", say=lines.append)  # first: E is small
    assert lines[-1] == SETTLING
    assert warning.endswith(DECLARED)


def test_what_takes_long_is_said_before_it_is_done(tmp_path, monkeypatch):
    lines = []

    def first(*_, **__):
        assert lines == [SETTLING]
        raise EquilibriumError("Enough.", Cause.FAR, "")

    monkeypatch.setattr("studies.scene.motion.equilibria", first)
    with pytest.raises(StudyError, match="Enough"):
        make_problem(scene_from_dict(TABLES, tmp_path), say=lines.append)


def test_tracked_points_of_what_rests_begin_where_at_says(tmp_path):
    corner = [0.3, 0.02, 0.02]
    rows = ["0.0,tip,0.29,-0.01,0.02", "0.1,tip,0.29,-0.01,0.02"]
    (tmp_path / "tip.csv").write_text("\n".join(["time,point,x,y,z", *rows]))
    table = {"kind": "points", "file": "tip.csv", "body": "beam", "at": {"tip": corner}}
    free = {"beam.E": {"start": 2e5, "bounds": [1e4, 2e6]}}
    tables = {**TABLES, "observations": {"tip": table}, "free": free}
    del tables["cameras"]
    problem = make_problem(scene_from_dict(tables, tmp_path)).problem
    (observer,) = problem.observers
    np.testing.assert_allclose(observer.still(), [corner, corner])  # so the sag counts as motion
    assert observer.matrix.sum() == pytest.approx(1.0)
    assert problem.predicted_rows(problem.parameters.start)[0, 1] < corner[1] - 0.01  # it sags
    without = {**table, "at": {}}
    with pytest.raises(StudyError, match=r"`observations.tip.at.tip` is missing"):
        make_problem(scene_from_dict({**tables, "observations": {"tip": without}}, tmp_path))
