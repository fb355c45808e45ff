import numpy as np
import pytest

from adjoint.rollout import record, rollout_jvp
from adjsim.meshes.files import unstructured_grid
from adjsim.meshes.subdivision import subdivided
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.rollout import rollout
from studies.problem.scene_maps import SceneMaps, system_at
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.bodies.shape import RestShape, WeighedShape, make_shape
from studies.scene.building import build
from studies.scene.declared import Box, Held, Scene, Soft, World
from studies.scene.mesh_source import read_source
from studies.scene.motions import NodeMotion
from tests.studies.scene.test_maps import check_dot, tangents_of


ERROR = 1e-3
BAR = Soft(
    mesh="box", size=(0.2, 0.04, 0.03), cells=(6, 2, 2), E=3e4, rotation=(0.0, 0.0, 30.0),
    position=(0.0, 0.1, 0.0), shape_error=ERROR, shape_cells=2,
)  # fmt: skip
MESH = read_source("bodies.bar", BAR).mesh
SHAPE = make_shape("bar", BAR, MESH)
RNG = np.random.default_rng(4)
AMPLITUDES = ERROR * RNG.standard_normal(SHAPE.modes.shape[2])


def scene(**changed):
    held = Held(box=Box(lower=(-1.0, -1.0, -1.0), upper=(-0.06, 1.0, 1.0)))
    body = Soft(**{**vars(BAR), "held": held, **changed})
    return Scene(bodies={"bar": body}, world=World(gravity=(0.0, -9.81, 0.0)))


def outward(shape, mesh):
    """Return how far the faces move outward for each mode, (n_faces, m), and their areas."""
    faces = mesh.surface().faces
    a, b, c = (mesh.points[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=1)
    at_faces = shape.modes[faces].mean(axis=1)
    return np.einsum("fim,fi->fm", at_faces, normals / areas[:, None]), areas


def parts():
    n, rows = MESH.n_points + 3, slice(2, 2 + MESH.n_points)
    rest = np.zeros((n, 3))
    rest[rows] = MESH.points
    is_free = MESH.points[:, 0] > MESH.points[:, 0].min() + 0.01
    motion = NodeMotion(
        "bar", MESH.points, MESH.points.mean(axis=0), np.asarray(BAR.position),
        is_free=is_free, rows=rows, n=n, shape=SHAPE,
    )  # fmt: skip
    shape = {"bar.shape": AMPLITUDES}
    start = {
        "bar.position": np.array([0.1, 0.2, 0.3]),
        "bar.rotation": np.array([0.3, -0.2, 0.5]),
        "bar.velocity": np.array([1.0, 0.0, 2.0]),
        "bar.spin": np.array([0.4, 3.0, -1.0]),
        "bar.node_velocity": RNG.standard_normal((int(is_free.sum()), 3)),
    }
    weights = {"bar.density": np.array(900.0), "bar.mass_factors": RNG.uniform(1, 2, len(is_free))}
    fields = weights | {"bar.density": RNG.uniform(1.0, 2.0, MESH.n_tets)}
    mass = WeighedShape(SHAPE, MESH, rows, n)
    return {
        "rest": (RestShape(SHAPE, rest, rows), shape),
        "mass": (mass, weights | shape),
        "mass of fields": (mass, fields | shape),
        "start": (motion, start | shape),
    }


PARTS = parts()


@pytest.mark.parametrize("case", PARTS)
def test_tangents_are_derivatives_and_cotangents_their_transpose(case):
    parameter_map, at = PARTS[case]
    tangents, h = tangents_of(at), 1e-4
    tangents["bar.shape"] = ERROR * tangents["bar.shape"]
    values = [
        parameter_map.values({key: value + step * h * tangents[key] for key, value in at.items()})
        for step in (-2, -1, 1, 2)
    ]
    for target, tangent in parameter_map.jvp(at, tangents).items():
        low, below, above, high = (each[target] for each in values)
        difference = (8.0 * (above - below) - (high - low)) / (12.0 * h)
        np.testing.assert_allclose(tangent, difference, atol=1e-11 * np.abs(tangent).max() / h)
        assert np.abs(tangent).max() > 0.0
    check_dot(parameter_map, at)


@pytest.mark.parametrize("spins", [False, True])
def test_gradients_are_slopes_of_a_rollout(spins):
    built = build(scene(held=None, spin=(0.0, 2.0, 5.0)) if spins else scene())
    dt, n = 2e-4, 100
    maps, adj = SceneMaps(built, dt), RNG.standard_normal((1, *built.state.x.shape))

    def end(c):
        system, state = system_at(built, {"bar.shape": c}, dt)
        return np.vdot(rollout(system, state, dt, n, frames=[n]).x, adj)

    here = {"bar.shape": AMPLITUDES}
    kept = record(*system_at(built, here, dt), dt, n, frames=[n])
    gradient = maps.vjp(here, kept.vjp(adj, wrt=maps.targets(here)))["bar.shape"]
    tangent = ERROR * RNG.standard_normal(len(AMPLITUDES))
    expected, h = float(gradient @ tangent), 0.01
    low, below, above, high = (end(AMPLITUDES + k * h * tangent) for k in (-2, -1, 1, 2))
    slope = (8.0 * (above - below) - (high - low)) / (12.0 * h)
    assert slope == pytest.approx(expected, rel=1e-8)
    tan = maps.jvp(here, {"bar.shape": tangent})
    _, moved = rollout_jvp(*system_at(built, here, dt), dt, n, tan, frames=[n])
    assert np.vdot(moved.x, adj) == pytest.approx(expected, rel=1e-10)
    rests = [abs(end(AMPLITUDES + k * tangent) - end(AMPLITUDES) - k * expected)
             for k in (0.08, 0.04, 0.02, 0.01)]  # fmt: skip
    assert np.log2(np.divide(rests[:-1], rests[1:])).min() > 1.9


def test_a_body_of_another_shape_moves_as_one_whose_mesh_has_it(tmp_path):
    built = build(scene())
    c = {"bar.shape": AMPLITUDES}
    moved = built.state.x + built.shapes["bar"].moved(c)
    unstructured_grid(TetMesh(moved, MESH.tets)).save(tmp_path / "moved.vtu")
    again = build(
        scene(
            mesh=str(tmp_path / "moved.vtu"), size=None, cells=None, rotation=(0.0, 0.0, 0.0),
            position=(0.0, 0.0, 0.0), shape_error=0.0,
            held=Held(nodes=tuple(np.flatnonzero(built.held).tolist())),
        )
    )  # fmt: skip
    ends = [
        rollout(*system_at(built_scene, values, 2e-4), 2e-4, 200, frames=[200]).x
        for built_scene, values in ((built, c), (again, {}), (built, {}))
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-13)
    assert np.abs(ends[0] - ends[2]).max() > ERROR


def test_amplitudes_have_the_error_of_the_surface():
    moves, areas = outward(SHAPE, MESH)
    assert np.linalg.norm(moves, axis=1) == pytest.approx(1.0, abs=0.1)
    common = areas @ moves / areas.sum()
    assert np.linalg.norm(common) == pytest.approx(np.sqrt(0.75), abs=0.1)
    assert len(AMPLITUDES) < 40


def test_a_thicker_body_is_in_the_modes():
    moves, _ = outward(SHAPE, MESH)
    missed = moves @ np.linalg.lstsq(moves, np.ones(len(moves)), rcond=None)[0] - 1.0
    assert np.abs(missed).max() < 0.05
    moved = SHAPE.moved({"bar.shape": SHAPE.thicker})
    expected = 0.01 * (MESH.points[:, 2:] - MESH.points[:, 2].mean()) * [0.0, 0.0, 1.0]
    assert SHAPE.side == pytest.approx(0.03)
    assert np.linalg.norm(moved - expected) < 0.15 * np.linalg.norm(expected)


def test_what_is_held_stays_and_a_finer_mesh_has_the_modes_between():
    built = build(scene())
    modes = built.shapes["bar"].modes
    assert np.abs(modes[built.held].mean(axis=0)).max() < 1e-12
    finer = subdivided(MESH)
    at = SHAPE.at_points(finer).modes
    np.testing.assert_array_equal(at[: MESH.n_points], SHAPE.modes)
    np.testing.assert_allclose(at[MESH.n_points :], SHAPE.modes[finer.ends].mean(axis=1))
    refined = build(scene(), refined=True).shapes["bar"].modes
    np.testing.assert_allclose(refined[: MESH.n_points], modes, atol=1e-12)


def test_amplitudes_that_turn_elements_over_are_not_finite():
    with pytest.raises(NotFiniteError, match="inside out"):
        system_at(build(scene()), {"bar.shape": 100.0 * AMPLITUDES}, 1e-3)


def test_a_free_shape_needs_an_error():
    with pytest.raises(StudyError, match="shape_error"):
        build(scene(shape_error=0.0), more=["bar.shape"])
