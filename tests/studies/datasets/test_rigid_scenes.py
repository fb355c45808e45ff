"""Scenes of rigid bodies: drawn within their ranges, alike in any company, honest in energy."""

import numba
import numpy as np
import pytest

from adjsim.meshes.triangle_mesh import TriangleMesh
from studies import config
from studies.datasets import simulation
from studies.datasets.registry import find_dataset
from studies.datasets.simulation import make_scenes, simulate, split
from studies.datasets.spec import FAMILY
from studies.errors import StudyError
from studies.registry import RunOptions
from tests.studies.datasets.toy import SEED, resolved, same, settings


def scenes(values, numbers, options=SEED):
    return make_scenes("rigid", values, options, numbers)


@pytest.fixture(scope="module")
def made():
    return scenes(settings(), range(6))


def test_what_is_drawn_lies_in_its_range_and_spreads_over_it():
    values = settings()
    kind = find_dataset("rigid")
    drawn = [kind.draw_scene(values, SEED, k).values for k in range(60)]
    for name in ("density", "stiffness", "damping", "friction_stiffness", "friction"):
        low, high = values["drawn"][name]
        found = np.array([one[f"parameters/{name}"] for one in drawn])
        assert low <= found.min() < low + 0.2 * (high - low)
        assert high - 0.2 * (high - low) < found.max() <= high
    colors = np.array([one["parameters/color"] for one in drawn])
    assert 0.3 <= colors.min() < colors.max() <= 1.0
    speeds = np.array([one["initial/velocity"] for one in drawn])
    assert (np.abs(speeds) <= 2.0).all()
    assert (np.abs(speeds).max(axis=0) > 1.6).all()
    places = np.array([one["initial/position"] for one in drawn])
    assert (np.abs(places[:, [0, 2]]) <= 1.5).all()
    turns = np.array([one["initial/rotation"] for one in drawn])
    assert np.allclose(np.linalg.norm(turns, axis=1), 1.0, rtol=1e-15)


def test_the_bundled_ranges_are_those_of_the_paper():
    drawn = config.builtin("rigid", FAMILY)["drawn"]
    assert drawn["density"] == [2.0, 12.0]
    assert drawn["friction"] == [0.2, 1.0]
    for name in ("stiffness", "damping", "friction_stiffness"):
        assert drawn[name] == [1.0, 500.0]


def test_the_mass_is_that_of_the_mesh_at_its_density(made):
    for one in made:
        volume = TriangleMesh(one["mesh/vertices"], one["mesh/faces"]).volume
        assert np.isclose(one["parameters/mass"], one["parameters/density"] * volume, rtol=1e-13)


def test_the_lowest_vertex_begins_within_the_clearance_and_is_pushed(made):
    values = settings()
    low, high = values["place"]["clearance"]
    for one in made:
        height = world_vertices(one, "initial")[:, 1]
        assert low <= height.min() <= high
        assert np.isclose(height[one["push/vertex"]], height.min(), rtol=1e-13)
        assert np.array_equal(one["push/force"], [0.0, -10.0, 0.0])


def world_vertices(one, where, frame=...):
    """The vertices as the read-me of a data set says, by quaternion (x, y, z, w)."""
    x, y, z, w = one[f"{where}/rotation"][frame]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross
    return one["mesh/vertices"] @ turn.T + one[f"{where}/position"][frame]


def test_a_body_in_free_fall_obeys_newton(made):
    """The impulse acts for 0.1 s, the first frame: from then on only gravity, until it lands.

    Semi-implicit Euler's velocities of a constant acceleration are exact.
    """
    one = next(k for k in made if world_vertices(k, "states", 1)[:, 1].min() > 0.1)
    v, at = one["states/velocity"], one["initial/velocity"]
    mass = one["parameters/mass"]
    assert np.allclose(v[0] - at, (0.0, -0.98 - 10.0 * 0.1 / mass, 0.0), rtol=1e-12, atol=1e-13)
    assert np.allclose(v[1] - v[0], (0.0, -0.98, 0.0), rtol=1e-12, atol=1e-13)


def test_scene_k_does_not_know_what_is_made_beside_it(made):
    for numbers in ([3], [1, 4], range(5, 1, -1)):
        for one in scenes(settings(), numbers):
            same(one, made[int(one["scene"])])


def test_another_seed_is_another_data_set(made):
    (other,) = scenes(settings(), [0], RunOptions(seed=4))
    assert other["parameters/density"] != made[0]["parameters/density"]
    assert other["shape"] == made[0]["shape"] == "cube"


def test_scenes_are_equal_to_the_bit_on_one_thread_and_two(made):
    before = numba.get_num_threads()
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            for one, known in zip(scenes(settings(), range(6)), made, strict=True):
                same(one, known)
    finally:
        numba.set_num_threads(before)


def test_a_video_shows_the_body_where_it_is(made):
    values = settings()
    camera = values["camera"]
    ahead = np.array(camera["target"]) - camera["eye"]
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    for one in made:
        assert one["images"].dtype == np.uint8
        assert one["images"].shape == (3, 12, 16, 4)
        alpha = one["images"][..., 3] / 255.0
        assert np.allclose(alpha.mean(axis=(1, 2)), one["quality/coverage"], atol=1.0 / 510.0)
        far = (one["states/position"] - camera["eye"]) @ ahead
        scale = 12 / (2.0 * np.tan(np.radians(camera["fov_y"]) / 2.0))
        column = 7.5 + scale * (one["states/position"] @ right) / far
        seen = (alpha * np.arange(16)).sum(axis=(1, 2)) / alpha.sum(axis=(1, 2))
        assert np.abs(seen - column).max() < 0.5


def test_a_step_too_long_for_the_contact_is_made_shorter():
    """Damping of 500 N s/m at each vertex of a few kg needs steps below 2 ms or so."""
    values = settings(
        'body.shapes=["cube"]', "drawn.damping=[500.0, 500.0]", "drawn.density=[2.0, 2.0]",
        "time.frames=20", "time.fps=20.0", "time.steps=8", "time.most_steps=8",
    )  # fmt: skip
    drawn = [find_dataset("rigid").draw_scene(values, SEED, k) for k in range(4)]
    coarse = simulate(drawn, values["time"])
    wild = [run for run in coarse if not run.gain <= 0.01]
    assert wild
    fine = simulate(drawn, {**values["time"], "most_steps": 128})
    for before, after in zip(coarse, fine, strict=True):
        assert after.gain <= 0.01
        assert (after.steps > 8) == (before in wild)


def test_a_scene_that_diverges_is_marked_and_the_others_are_as_they_were(made):
    values = settings()
    kind = find_dataset("rigid")
    drawn = [kind.draw_scene(values, SEED, k) for k in range(2)]
    runs = simulate(drawn, values["time"])
    broken = runs[0].trajectory.bodies["body"]
    broken.position[1:] = np.nan
    runs[0].trajectory.bodies["body"].rotation[1:] = np.nan
    object.__setattr__(runs[0].trajectory, "diverged", 20)
    one = simulation.film(drawn[0], runs[0])
    assert one["quality/diverged"] == 20
    assert one["images"][0].tobytes() == made[0]["images"][0].tobytes()
    assert not one["images"][1:].any()
    assert not one["quality/coverage"][1:].any()
    other = simulation.film(drawn[1], runs[1])
    assert other["images"].tobytes() == made[1]["images"].tobytes()


def test_the_test_set_is_spread_evenly_whatever_the_count():
    chosen = [split(k, 0.2) == "test" for k in range(1000)]
    assert sum(chosen) == 200
    assert all(sum(chosen[k : k + 5]) == 1 for k in range(0, 1000, 5))
    assert not any(split(k, 0.0) == "test" for k in range(50))
    assert sum(split(k, 0.35) == "test" for k in range(200)) == 70


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("body.shapes=[]", "`body.shapes` must name at least one of cube"),
        ('body.shapes=["cub"]', "Did you mean `cube`"),
        ("body.radius=0.0", "`body.radius` must be positive"),
        ("drawn.density=[0.0, 2.0]", "`drawn.density` must be positive"),
        ("drawn.color=[-0.5, 1.0]", "`drawn.color` must not be negative"),
        ("place.clearance=[0.0, 1.0]", "`place.clearance` must be positive"),
        ("place.x=[1.0]", r"`place.x` must have shape \(2,\)"),
        ("push.seconds=[0.2, 0.1]", r"`push.seconds` must be \[first, last\]"),
        ("time.steps=0", "`time.steps` must be positive"),
        ("time.most_steps=4", "`time.most_steps` must be at least `time.steps` = 64, got 4"),
        ("split.test=1.0", "`split.test` must be a part from 0 to below 1, got 1"),
        ("files.scenes=0", "`files.scenes` must be a whole number of at least 1"),
        ("files.compression=10", "`files.compression` must be 0 to 9, got 10"),
        ("image.heigth=3", "Did you mean `image.height`"),
        ("thrown.x=[2.0, 1.0]", r"`thrown.x` must be \[low, high\]"),
    ],
)
def test_a_mistake_in_the_settings_is_named_by_its_key(override, message):
    with pytest.raises(ValueError, match=message):
        resolved(override)


def test_an_unknown_data_set_names_the_nearest():
    with pytest.raises(StudyError, match=r"Did you mean `rigid`.*Or give a TOML file"):
        find_dataset("rigit")
