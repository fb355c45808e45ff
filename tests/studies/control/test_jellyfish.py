"""The jellyfish: its bell, its muscles, its goal, the gradient of its weights, bad settings."""

import numpy as np
import pytest

from adjsim.meshes.hinges import mesh_hinges
from studies import running
from studies.control import jellyfish
from studies.control.case import Measured, Supervision
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.registry import RunOptions
from tests.studies.control.toys import TOYS, settings


def make(*overrides, seed=0, instance=0):
    table = settings("control-jellyfish", *overrides)
    return jellyfish.make(table, RunOptions(seed=seed), instance)


def test_the_bell_is_a_sheet_with_one_margin_that_faces_outwards():
    mesh, n_bell = jellyfish.bell(1.0, 0.8, 0.25)
    assert (mesh.points.shape, mesh.faces.shape, n_bell) == ((121, 3), (192, 3), 97)
    hinges = mesh_hinges(mesh.faces)  # it refuses an edge of more than two triangles
    assert len(hinges) == 264
    assert int((hinges < n_bell).all(axis=1).sum()) == 240
    # A sheet with one margin: V - E + F = 1, and each edge has one triangle or two.
    n_margin = 3 * len(mesh.faces) - 2 * len(hinges)
    assert len(mesh.points) - (len(hinges) + n_margin) + len(mesh.faces) == 1
    assert n_margin == 48
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    outwards = (a + b + c) / 3.0 - [0.0, -0.3, 0.0]
    assert ((normals * outwards).sum(axis=1) > 0.0).all()
    lengths = np.linalg.norm([b - a, c - b, a - c], axis=2)
    assert (lengths.min(), lengths.max()) == pytest.approx((0.21, 0.34), abs=0.01)


def test_the_bell_lies_on_its_ellipsoid():
    mesh, n_bell = jellyfish.bell(2.0, 0.5, 0.1)
    x, y, z = mesh.points[:n_bell].T
    np.testing.assert_allclose((x**2 + z**2) / 4.0 + y**2 / 0.25, 1.0, rtol=1e-12)
    np.testing.assert_allclose(mesh.points[n_bell:, 1], -0.1, rtol=1e-12)


def test_at_rest_it_stays_and_the_goal_is_straight_above():
    case = make("start.size=0.0")
    problem = case.fit.problem
    motion = problem.motion_at(problem.parameters.start)
    run = motion.run()
    np.testing.assert_allclose(run.x[-1], problem.motion.state.x, atol=1e-12)
    assert case.measure(motion, run)["distance"] == pytest.approx(2.0, rel=1e-12)
    _, gradient = case.problem(Supervision.STATES).loss_and_gradient(problem.parameters.start)
    assert np.abs(gradient).max() < 1e-6  # still water: as the settings say of `start.size`


@pytest.mark.parametrize("kind", [Supervision.PICTURE, Supervision.STATES])
def test_the_gradient_is_that_of_central_differences(kind, rng):
    problem = make("target.height=0.5").problem(kind)
    theta = problem.parameters.start
    value, gradient = problem.loss_and_gradient(theta)
    along = rng.standard_normal(theta.shape)
    step = 1e-6
    ends = [problem.loss_at(theta + sign * step * along) for sign in (1.0, -1.0)]
    # Rounding of the loss is some 1e-16/1e-6 of it; within a longer step faces swap in depth.
    difference = (ends[0] - ends[1]) / (2.0 * step)
    assert gradient @ along == pytest.approx(difference, rel=1e-5, abs=1e-9 * value)
    assert np.linalg.norm(gradient) > 1e-9 * value


def test_it_learns_to_rise():
    case = make("time.steps=150")
    problem = Measured(case.problem(Supervision.STATES), case.measure)
    start, seen, how = case.fit.problem.parameters.start, [], case.fit.search
    minimize(
        problem,
        start,
        how.method,
        max_evaluations=8,
        tolerance=1e-6,
        options=how.options,
        callback=seen.append,
    )
    assert seen[-1].values["distance"] < seen[0].values["distance"] - 0.02


def test_an_instance_is_a_seed():
    moved = make(seed=0, instance=2).fit.problem, make(seed=2).fit.problem
    np.testing.assert_array_equal(moved[0].parameters.start, moved[1].parameters.start)
    assert not np.array_equal(make().fit.problem.parameters.start, moved[0].parameters.start)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("jellyfish.lappet=0.0", "`jellyfish.lappet` must be positive"),
        ("jellyfish.density=0.0", "`jellyfish.density` must be positive"),
        ("jellyfish.color=[1.0]", r"`jellyfish.color` must have shape \(3,\)"),
        ("hinges.damping=-1.0", "`hinges.damping`"),
        ("water.lift=-1.0", "`water.lift`"),
        ("target.height=0.0", "`target.height` must be positive"),
        ("policy.sines=0", "`policy.sines` must be positive"),
        ("time.frames=2", "`time.frames` must be 1, the last picture, got 2"),
        ("supervision=pictures", "name in `supervision`"),
    ],
)
def test_a_bad_setting_is_refused_by_key(override, message):
    with pytest.raises((ValueError, StudyError), match=message):
        jellyfish.prepare(settings("control-jellyfish", override), RunOptions())


def test_several_are_judged_by_how_far_they_rise(tmp_path):
    toy = (*TOYS["control-jellyfish"], "instances=2", "optimizer.max_evaluations=3")
    folder, job = running.start("control-jellyfish", toy, tmp_path / "run", {})
    text = job.run(folder)
    result = folder.read_json("result.json")
    assert result["kinds"] == ["states", "picture", "random"]
    rises = [record["searches"]["states"] for record in result["records"]]
    ends = [one["rise"][one["chosen"]] for one in rises]
    row = result["table"][0]["rise"]
    assert (row["worst"], row["mean"]) == (min(ends), pytest.approx(np.mean(ends)))
    assert row["nearest"] == pytest.approx(np.mean([max(one["rise"]) for one in rises]))
    assert f"states: rise mean {np.mean(ends):.3g} m" in text
    head = folder.file("curves.csv").read_text().splitlines()[0]
    assert head == "instance,supervision,evaluation,loss,rise [m],distance [m]"
    assert "mean rise [m]" in folder.file("report.html").read_text()
