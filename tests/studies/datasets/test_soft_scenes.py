"""Scenes of soft bodies: drawn within their ranges, alike in any company, honest in energy."""

import itertools

import numba
import numpy as np
import pytest

from adjsim.forces.hinges import Hinges, edges, hinge_energy
from adjsim.forces.neo_hookean import NeoHookeanTets, neo_hookean_energy
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles, neo_hookean_triangle_energy
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.datasets import simulation, soft_energy
from studies.datasets.registry import find_dataset
from studies.datasets.simulation import make_scenes, simulate
from studies.registry import RunOptions
from tests.studies.datasets.toy import SEED, resolved, same, settings


SOFT = find_dataset("soft")


def scenes(values, numbers, options=SEED):
    return make_scenes("soft", values, options, numbers)


@pytest.fixture(scope="module")
def made():
    return scenes(settings(name="soft"), range(6))


def turned(one):
    """The nodes at t = 0 about the centre of mass, as the read-me says."""
    x, y, z, w = one["initial/rotation"]
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return one["mesh/vertices"] @ (np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross).T


def test_what_is_drawn_lies_in_its_range_and_spreads_over_it():
    values = settings(name="soft")
    drawn = [SOFT.draw_scene(values, SEED, k).values for k in range(60)]
    assert [str(one["shape"]) for one in drawn[:4]] == ["ball", "beam", "cloth", "ball"]
    names = ("density", "mu", "lam", "viscosity", "stiffness", "damping", "friction_stiffness")
    for name in (*names, "friction"):
        low, high = values["drawn"][name]
        found = np.array([one[f"parameters/{name}"] for one in drawn])
        assert low <= found.min() < low + 0.2 * (high - low)
        assert high - 0.2 * (high - low) < found.max() <= high
    assert all(one["parameters/lam"] > one["parameters/mu"] / 8.0 for one in drawn)
    colors = np.array([one["parameters/color"] for one in drawn])
    assert 0.3 <= colors.min() < colors.max() <= 1.0
    speeds = np.array([one["initial/velocity"] for one in drawn])
    assert (np.abs(speeds) <= 2.0).all()
    spins = np.array([one["initial/angular_velocity"] for one in drawn])
    assert 2.0 < np.abs(spins).max() <= 3.0
    places = np.array([one["initial/position"] for one in drawn])
    assert (np.abs(places[:, [0, 2]]) <= 1.5).all()


def test_masses_are_those_of_the_mesh_at_its_density(made):
    for one in made:
        points, faces, tets = (one[f"mesh/{name}"] for name in ("vertices", "faces", "tets"))
        if one["shape"] == "cloth":
            assert tets.shape == (0, 4)
            e, f = (
                points[faces[:, 1]] - points[faces[:, 0]],
                points[faces[:, 2]] - points[faces[:, 0]],
            )
            measure = 0.5 * np.linalg.norm(np.cross(e, f), axis=1).sum() * one["thickness"]
        else:
            assert one["thickness"] == 0.0
            measure = TetMesh(points, tets).volumes.sum()
            assert np.isclose(TriangleMesh(points, faces).volume, measure, rtol=1e-12)  # outwards
        mass = one["parameters/density"] * measure
        assert np.isclose(one["parameters/mass"], mass, rtol=1e-12)
        assert np.isclose(one["mesh/masses"].sum(), mass, rtol=1e-12)
        assert np.abs(one["mesh/masses"] @ points / mass).max() < 1e-14


def test_the_lowest_node_begins_within_the_clearance(made):
    low, high = settings(name="soft")["place"]["clearance"]
    for one in made:
        assert low <= (turned(one) + one["initial/position"])[:, 1].min() <= high


def test_a_scene_begins_as_its_labels_say():
    """v = v_c + w x r at every node, with w in world axes."""
    for k in range(3):
        scene = SOFT.draw_scene(settings(name="soft"), SEED, k)
        state, one = scene.make_motion(8).state, scene.values
        arms = turned(one)
        assert np.allclose(state.x, one["initial/position"] + arms, rtol=0, atol=1e-14)
        spun = np.cross(one["initial/angular_velocity"], arms)
        assert np.allclose(state.v, one["initial/velocity"] + spun, rtol=0, atol=1e-14)


def test_the_centre_of_mass_in_free_fall_obeys_newton():
    """Until it lands: what holds a body together moves no centre of mass; without drag, no air."""
    for one in scenes(settings("cloth.drag=0.0", name="soft"), [0, 1, 2]):
        lowest = one["mesh/positions"][..., 1].min(axis=1)
        assert lowest[0] > 0.0
        v, mass = one["states/velocity"], one["parameters/mass"]
        expected = np.array([0.0, -0.98 - 10.0 * 0.1 / mass, 0.0])
        assert np.allclose(v[0] - one["initial/velocity"], expected, rtol=1e-11, atol=1e-11)


def test_positions_and_states_tell_the_same(made):
    """Positions are float32, rounded to 1e-7 of a few metres."""
    for one in made:
        part = one["mesh/masses"] / one["mesh/masses"].sum()
        assert one["mesh/positions"].dtype == np.float32
        centres = np.einsum("n,fni->fi", part, one["mesh/positions"].astype(float))
        assert np.abs(centres - one["states/position"]).max() < 1e-6


@pytest.mark.parametrize("make", ["tets", "triangles", "hinges"])
def test_the_stored_energy_is_the_sum_over_elements(make, rng):
    """Against the device functions, one element at a time."""
    if make == "tets":
        mesh = ball_tets(1)
        force = NeoHookeanTets(mesh.tets, mesh.points, 300.0, 500.0, viscosity=1.0)
        nodes, one, found = mesh.tets, neo_hookean_energy, soft_energy.tet_energy
    else:
        mesh = sheet([2, 2], [1.0, 1.0])
        nodes = mesh.faces
        force = NeoHookeanTriangles(nodes, mesh.points, 30.0, 50.0)
        one, found = neo_hookean_triangle_energy, soft_energy.triangle_energy
    if make == "hinges":
        force = Hinges(mesh_hinges(mesh.faces), mesh.points, 0.3, rest_angle=0.4)
        one, found = hinge_energy, soft_energy.hinge_energy
    x = mesh.points + rng.uniform(-0.15, 0.15, (4, *mesh.points.shape))
    consts, params, series = force.pack_consts(), force.pack_params(), force.pack_series(1)[0]
    for frame, energy in zip(x, found(force, x), strict=True):
        if make == "hinges":
            apart = np.stack(edges(frame, force.hinges), axis=1)
        else:
            apart = frame[nodes[:, 1:]] - frame[nodes[:, :1]]
        rows = zip(apart, consts, params, itertools.cycle(series), strict=False)
        expected = sum(
            one(tuple(map(tuple, E)), tuple(c), tuple(p), tuple(s)) for E, c, p, s in rows
        )
        assert np.isclose(energy, expected, rtol=1e-12)


def test_a_step_too_long_for_the_contact_is_made_shorter():
    values = settings(
        "drawn.stiffness=[5e4, 5e4]", "drawn.density=[2.0, 2.0]", "drawn.viscosity=[0.5, 0.5]",
        "time.frames=10", "time.fps=10.0", "time.steps=32", "time.most_steps=32", name="soft",
    )  # fmt: skip
    drawn = [SOFT.draw_scene(values, SEED, k) for k in range(3)]
    coarse = simulate(drawn, values["time"])
    wild = [run for run in coarse if not run.gain <= 0.01]
    assert wild
    fine = simulate(drawn, {**values["time"], "most_steps": 8192})
    for before, after in zip(coarse, fine, strict=True):
        assert after.gain <= 0.01
        assert (after.steps > 32) == (before in wild)


def test_a_scene_that_diverges_is_marked():
    """A step of 5 ms for a contact of 1e7 N/m: it leaves the finite numbers, or gains energy."""
    values = settings(
        "drawn.stiffness=[1e9, 1e9]", "time.frames=20", "time.steps=16", "time.most_steps=16",
        name="soft",
    )  # fmt: skip
    one = next(one for one in scenes(values, range(3)) if one["quality/diverged"] >= 0)
    last = int(one["quality/diverged"]) // 16
    assert not np.isfinite(one["mesh/positions"][-1]).all()
    assert not one["images"][-1].any()
    assert not one["quality/coverage"][last + 1 :].any()


def test_scene_k_does_not_know_what_is_made_beside_it(made):
    for numbers in ([3], [1, 5], range(5, 1, -1)):
        for one in scenes(settings(name="soft"), numbers):
            same(one, made[int(one["scene"])])
    (other,) = scenes(settings(name="soft"), [0], RunOptions(seed=4))
    assert other["parameters/mu"] != made[0]["parameters/mu"]


def test_scenes_are_equal_to_the_bit_on_one_thread_and_two(made):
    before = numba.get_num_threads()
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            for one, known in zip(scenes(settings(name="soft"), range(6)), made, strict=True):
                same(one, known)
    finally:
        numba.set_num_threads(before)


def test_a_body_that_is_not_there_leaves_the_background(made):
    """What is marked as out of sight is."""
    (drawn,) = (SOFT.draw_scene(settings(name="soft"), SEED, 2),)
    (run,) = simulate([drawn], settings(name="soft")["time"])
    run.trajectory.x[1:] += [100.0, 0.0, 0.0]
    one = simulation.film(drawn, run)
    assert one["images"][0].tobytes() == made[2]["images"][0].tobytes()
    assert one["quality/coverage"][0] > 0.0
    assert not one["quality/coverage"][1:].any()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("body.kinds=[]", "`body.kinds` must name at least one of ball"),
        ('body.kinds=["bal"]', "Did you mean `ball`"),
        ("body.stretch=[0.0, 1.0]", "`body.stretch` must be positive"),
        ("ball.radius=0.0", "`ball.radius` must be positive"),
        ("beam.cells=[0, 1, 1]", "`beam.cells` must be positive"),
        ("cloth.thickness=0.0", "`cloth.thickness` must be positive"),
        ("cloth.drag=-1.0", "`cloth.drag` must not be negative"),
        ("drawn.lam=[100.0, 200.0]", "`drawn.lam` must be above drawn.mu/8 = 250 for a stable"),
        ("drawn.viscosity=[0.0, 1.0]", "`drawn.viscosity` must be positive"),
        ("push.seconds=[0.2, 0.1]", r"`push.seconds` must be \[first, last\]"),
        ("place.clearance=[0.0, 1.0]", "`place.clearance` must be positive"),
    ],
)
def test_a_mistake_in_the_settings_is_named_by_its_key(override, message):
    with pytest.raises(ValueError, match=message):
        resolved(override, name="soft")
