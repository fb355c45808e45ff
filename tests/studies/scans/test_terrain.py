"""The problem that a scan walks on: natural values, where it stands, and what fails."""

import numpy as np
import pytest

from studies.problem.worlds import MOST_WORLDS, Failure, Sample, worlds_at_once
from studies.runs.errors import StudyError
from tests.studies.scans.toy import BEAM, CONTACT, CUBE, MASS, PENDULUM, grid_of, written


CASES = {
    "cube": ("pushed-cube", CUBE, (f"{MASS}=0.5:2:3",)),
    "beam": (BEAM, (), ("beam.mu=1.1e5:3.1e5:3",)),
    "contact": (CONTACT, (), ("body.mass=1.1:3:3",)),
    "component": (CONTACT, (), ("body.velocity[0]=-1:1:3", "world.gravity[1]=-10:-5:2")),
    "pendulum": (PENDULUM, (), ("pendulum.length=0.8:1.2:2",)),
}


def points_of(folder, name):
    scene, overrides, over = CASES[name]
    grid = grid_of(scene if "\n" not in scene else written(folder, scene), overrides, *over)
    return grid.first, [grid.natural(grid.first, index) for index in grid.order()]


@pytest.mark.parametrize("name", CASES)
def test_points_side_by_side_have_the_bits_of_one_at_a_time(name, tmp_path):
    terrain, points = points_of(tmp_path, name)
    for point, sample in zip(points, terrain.samples(points), strict=True):
        assert isinstance(sample, Sample)
        (alone,) = terrain.samples([point])
        loss, gradient = terrain.problem.with_rounded_steps(point).loss_and_gradient(point)
        assert np.linalg.norm(gradient) > 0.0
        assert isinstance(alone, Sample)
        assert sample.loss == alone.loss == loss
        assert np.array_equal(sample.gradient, alone.gradient)
        assert np.array_equal(sample.gradient, gradient)
        # The loss is the mean of those of the frames, up to the rounding of a mean.
        assert sample.loss == pytest.approx(sample.frame_loss.mean(), rel=1e-12)


def test_the_gradient_is_per_unit_of_the_natural_values(tmp_path):
    terrain, (point, *_) = points_of(tmp_path, "beam")
    (sample,) = terrain.samples([point])
    assert isinstance(sample, Sample)
    for i, h in enumerate(1e-6 * point):
        step = h * np.eye(len(point))[i]
        ahead, behind = terrain.samples([point + step, point - step], with_gradient=False)
        assert isinstance(ahead, Sample)
        assert isinstance(behind, Sample)
        slope = (ahead.loss - behind.loss) / (2.0 * h)
        assert sample.gradient[i] == pytest.approx(slope, rel=1e-5)


def test_what_is_not_scanned_is_held_at_the_truth_or_the_start(tmp_path):
    path = written(tmp_path, BEAM)
    truth, start = (grid_of(path, (), "beam.mu=1e5:3e5:2", at=at) for at in ("truth", "start"))
    assert truth.first.labels == start.first.labels == ("beam.mu", "beam.lam")
    assert np.allclose(truth.first.base, [2e5, 3e5])
    assert np.allclose(start.first.base, [3e5, 2e5])
    assert truth.first.unit("beam.mu") == "Pa"
    (sample,) = truth.first.samples([truth.first.truth])
    assert isinstance(sample, Sample)
    assert sample.loss < 1e-20


def test_a_value_that_the_scene_does_not_ask_for_is_scanned_too(tmp_path):
    path = written(tmp_path, BEAM)
    first = grid_of(path, (), "cameras.front.rotation[1]=-0.1:0.1:2", "beam.density=1:2:2").first
    assert {"cameras.front.rotation[1]", "beam.density", "beam.mu"} <= set(first.labels)
    assert first.positive >= {"beam.density", "beam.mu"}
    assert "cameras.front.rotation[1]" not in first.positive


@pytest.mark.parametrize("value", [-1.0, 0.0])
def test_values_that_no_scene_can_have_are_failures(value, tmp_path):
    terrain, points = points_of(tmp_path, "cube")
    bad, good = terrain.samples([np.array([value]), points[0]])
    assert isinstance(bad, Failure)
    assert "must be above 0" in bad.reason
    assert isinstance(good, Sample)


def test_a_world_that_diverges_leaves_the_others_their_bits(tmp_path):
    terrain, points = points_of(tmp_path, "beam")
    wild = points[1] * np.array([1e9, 1e9])
    first, failed, last = terrain.samples([points[0], wild, points[2]])
    assert isinstance(failed, Failure)
    assert "leaves the finite numbers in step" in failed.reason
    for sample, point in ((first, points[0]), (last, points[2])):
        (alone,) = terrain.samples([point])
        assert isinstance(sample, Sample)
        assert isinstance(alone, Sample)
        assert sample.loss == alone.loss
        assert np.array_equal(sample.gradient, alone.gradient)
    assert terrain.samples([wild]) == [failed]


def test_fewer_worlds_of_larger_motions_run_at_once(tmp_path, monkeypatch):
    terrain, points = points_of(tmp_path, "beam")
    motion = terrain.problem.motion_at(points[0])
    assert worlds_at_once(motion, keeps=True) == MOST_WORLDS
    world_bytes = motion.state_bytes * (motion.n_steps + 1)
    monkeypatch.setattr("studies.problem.worlds.BUDGET", 5 * world_bytes)
    assert worlds_at_once(motion, keeps=True) == 5
    monkeypatch.setattr("studies.problem.worlds.BUDGET", 1)
    assert worlds_at_once(motion, keeps=True) == 1


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("cube.vertex_mas=1:2:3", "Did you mean `cube.vertex_mass`"),
        ("observations.film.simulate.frame=1:2:2", "Did you mean `observations.film.simulate.fra"),
        ("cube.foo=1:2:3", r"file\. The nearest ones: ([\w.]+(, |\.$)){8}$"),
        ("observations.film.simulate.frames=1:3:5", "frames` is a whole number"),
        ("cube.velocity=1:3:5", r"has several numbers. Name one, as in cube.velocity\[0\]=1:3:5"),
        ("cube.velocity[3]=1:3:5", "counted from 0"),
        (f"{MASS}=-2:-1:3", "no point of it can have a loss. .* above 0"),
    ],
)
def test_an_axis_that_cannot_be_is_told(over, message):
    with pytest.raises(StudyError, match=message):
        grid_of("pushed-cube", CUBE, over)
