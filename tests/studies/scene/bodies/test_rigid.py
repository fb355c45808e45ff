import numpy as np
import pytest

from adjsim.rigid.mass_properties import from_six
from adjsim.rollout import rollout
from adjsim.rotations import rotation_matrix
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.bodies.rigid import PrincipalMoments, VertexMasses
from studies.scene.building import build
from studies.scene.declared import BallJoint, Held, Rigid, Scene, World
from studies.scene.maps import all_targets
from studies.scene.reading import scene_from_dict
from tests.studies.scene.test_maps import check_dot, tangents_of


CUBE = {"mesh": "box", "size": (0.2, 0.1, 0.1)}


def built(**table):
    return build(Scene(bodies={"a": Rigid(**table)}, world=World(gravity=(0, 0, 0))))


def test_mass_or_density_weigh_a_body():
    for table, path in (({"mass": 3.0}, "a.mass"), ({"density": 1500.0}, "a.density")):
        scene = built(**CUBE, **table)
        assert scene.system.bodies["a"].masses[0] == pytest.approx(3.0)
        assert path in scene.values
        assert not scene.notes
    assert "1000 kg/m3 is taken" in built(**CUBE).notes[0]
    assert scene.held is None
    assert not scene.nodes


def test_equal_masses_at_the_vertices_weigh_a_body():
    scene = built(**CUBE, vertex_mass=0.5, scale=(2.0, 1.0, 1.0), position=(1.0, 2.0, 3.0))
    body = scene.system.bodies["a"]
    assert body.masses[0] == 4.0
    np.testing.assert_allclose(body.centers[0], [1.0, 2.0, 3.0])
    # all corners are 0.2 from the axis of x's other two, 0.05 from these
    x, y = 0.2**2, 0.05**2
    np.testing.assert_allclose(body.inertias[0], 4.0 * np.array([2 * y, x + y, x + y, 0, 0, 0]))
    targets = all_targets(scene.maps, {k: v.value for k, v in scene.values.items()} | {
        "a.vertex_mass": np.array(1.0)})  # fmt: skip
    assert targets["a.mass"] == 8.0
    np.testing.assert_allclose(targets["a.inertia"], 2.0 * body.inertias[0])
    assert not scene.notes


def test_masses_of_single_vertices_move_the_centre():
    masses = tuple(range(1, 9))
    scene = built(**CUBE, vertex_mass=masses, velocity=(1.0, 0.0, 0.0), spin=(0.0, 0.0, 2.0))
    body, state = scene.system.bodies["a"], scene.state.bodies["a"]
    points, m = body.meshes[0].points, np.array(masses, float)
    center = m @ points / 36.0
    assert body.masses[0] == 36.0
    np.testing.assert_allclose(state.position[0], center)
    other = built(**CUBE, vertex_mass=(3.0,) * 8)  # an even one, with the others' values
    system, start = other.system.with_values(
        other.state, all_targets(other.maps, {k: v.value for k, v in scene.values.items()})
    )
    body = system.bodies["a"]
    np.testing.assert_allclose(start.bodies["a"].position[0], center, atol=1e-15)
    hull = start.bodies["a"].position + body.arms[body.hull]
    np.testing.assert_allclose(hull, points, atol=1e-15)
    arms = points - center
    inertia = sum(k * (a @ a * np.eye(3) - np.outer(a, a)) for k, a in zip(m, arms, strict=True))
    np.testing.assert_allclose(from_six(body.inertias)[0], inertia, atol=1e-14)
    check_dot(VertexMasses("a", other.system.bodies["a"]), {"a.vertex_mass": m})
    with pytest.raises(StudyError, match="one for each of the 8 vertices, got 2"):
        built(**CUBE, vertex_mass=(1.0, 2.0))


def test_nothing_is_fixed_to_a_body_whose_centre_moves():
    bodies = {"a": Rigid(**CUBE, vertex_mass=(1.0,) * 8)}
    with pytest.raises(StudyError, match=r"`bodies.a.vertex_mass` must be one number for a"):
        build(
            Scene(bodies=bodies, joints={"j": BallJoint(between=("a", "world"), anchor=(0, 0, 0))})
        )


def test_a_body_flies_and_turns_as_declared():
    scene = built(
        **CUBE, position=(1, 2, 3), rotation=(0, 0, 90), velocity=(1, 0, 0), spin=(0, 2, 0)
    )
    n, dt = 100, 1e-3
    end = rollout(scene.system, scene.state, dt, n, frames=[0, n]).bodies["a"]
    np.testing.assert_allclose(end.position[:, 0], [[1, 2, 3], [1.1, 2, 3]], atol=1e-12)
    # the long edge is along y, the axis of the spin: a steady turn
    np.testing.assert_allclose(end.orientation[1, 0], [0, np.sin(0.1), 0, np.cos(0.1)], atol=1e-9)
    low, high = (
        scene.system.bodies["a"].arms.min(axis=0),
        scene.system.bodies["a"].arms.max(axis=0),
    )
    np.testing.assert_allclose(high - low, [0.1, 0.2, 0.1])


def test_the_position_is_that_of_the_meshs_origin():
    scene = built(mesh="shape:cone", size=(0.1,), position=(1, 2, 3))
    sources = {path: value.value for path, value in scene.values.items()}
    moved = {}
    for parameter_map in scene.maps:
        moved |= parameter_map.values(sources | {"a.position": np.array([2.0, 2.0, 3.0])})
    np.testing.assert_allclose(moved["a.position"] - scene.state.bodies["a"].position, [[1, 0, 0]])


def test_inertia_and_centre_of_mass_may_be_given_apart_from_the_mesh():
    moments, center = (1.0, 2.0, 2.5), (0.01, 0.02, 0.03)
    pose = {"position": (1.0, 2.0, 3.0), "rotation": (0.0, 0.0, 90.0), "scale": 2.0}
    scene = built(**CUBE, **pose, mass=3.0, inertia=moments, center_of_mass=center)
    body = scene.system.bodies["a"]
    assert body.masses[0] == 3.0
    np.testing.assert_allclose(body.centers[0], [0.98, 2.01, 3.03])
    np.testing.assert_allclose(body.inertias[0], [2.0, 1.0, 2.5, 0.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(scene.values["a.inertia"].value, moments)
    low, high = scene.values["a.inertia"].bounds
    assert low == pytest.approx(1.0 / 3.0)
    assert high == pytest.approx(7.5)
    # the corners are where they were
    np.testing.assert_allclose((body.arms + body.centers[0])[:8].mean(axis=0), [1.0, 2.0, 3.0])


def test_an_inertia_of_three_rows_has_its_own_axes():
    R = rotation_matrix(np.array([0.3, -0.5, 0.8]))
    rows = R @ np.diag([1.0, 2.0, 2.5]) @ R.T
    scene = built(**CUBE, mass=3.0, inertia=tuple(map(tuple, rows.tolist())))
    body = scene.system.bodies["a"]
    np.testing.assert_allclose(from_six(body.inertias[0]), rows, rtol=1e-12)
    np.testing.assert_allclose(scene.values["a.inertia"].value, [1.0, 2.0, 2.5], rtol=1e-12)
    np.testing.assert_allclose(body.centers[0], np.zeros(3), atol=1e-15)


def test_an_open_mesh_moves_like_a_closed_one_of_the_same_mass_and_inertia():
    weight = {"mass": 3.0, "inertia": (0.02, 0.03, 0.04), "center_of_mass": (0.0, 0.0, 0.01)}
    start = {"velocity": (1.0, 0.0, 0.0), "spin": (3.0, 2.0, -1.0), "rotation": (10.0, 20.0, 0.0)}
    rod = Rigid(**CUBE, **weight, **start)
    card = Rigid(mesh="sheet", size=(0.2, 0.1), cells=(1, 1), **weight, **start)
    ends = []
    for body in (rod, card):
        scene = build(Scene(bodies={"a": body}))
        assert len(scene.meshes["a"].faces) == len(scene.system.bodies["a"].faces)
        ends.append(rollout(scene.system, scene.state, 1e-3, 200, frames=[200]).bodies["a"])
    for key in ("position", "orientation", "velocity", "angular_velocity"):
        np.testing.assert_array_equal(getattr(ends[0], key), getattr(ends[1], key))


def test_free_moments_change_the_inertia_unless_no_body_can_have_them():
    moments = PrincipalMoments("a", rotation_matrix(np.array([0.3, -0.5, 0.8])))
    at = {"a.inertia": np.array([1.0, 2.0, 2.5])}
    tangent = {"a.inertia": 0.1 * tangents_of(at)["a.inertia"]}
    moved = moments.values({"a.inertia": at["a.inertia"] + tangent["a.inertia"]})["a.inertia"]
    difference = moved - moments.values(at)["a.inertia"]  # exact, as the map is linear
    np.testing.assert_allclose(moments.jvp(at, tangent)["a.inertia"], difference, atol=1e-14)
    check_dot(moments, at)
    with pytest.raises(NotFiniteError, match=r"`a.inertia` has a moment above .* 1, 2, 3.5 kg m2"):
        moments.values({"a.inertia": np.array([1.0, 2.0, 3.5])})


@pytest.mark.parametrize(
    ("inertia", "message"),
    [
        ([1.0, 1.0], "`bodies.a.inertia` must be a list of 3 numbers or a list of 3 lists of 3"),
        ([1.0] * 6, "`bodies.a.inertia` must be a list of 3 numbers"),
        ("1", "`bodies.a.inertia` must be a list of 3 numbers"),
    ],
)
def test_an_inertia_of_the_wrong_shape_is_refused(inertia, message):
    body = {"kind": "rigid", "mesh": "box", "mass": 1.0, "inertia": inertia}
    with pytest.raises(StudyError, match=message):
        scene_from_dict({"bodies": {"a": body}})


INERTIA = {**CUBE, "mass": 1.0}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({**INERTIA, "inertia": (1.0, 0.0, 1.0)}, "`bodies.a.inertia` must be positive"),
        ({**INERTIA, "inertia": (1.0, 1.0, 2.1)}, "no principal moment above .* 1, 1, 2.1 kg m2"),
        ({**INERTIA, "inertia": ((1, 2, 0), (2, 1, 0), (0, 0, 1))}, "got the moments -1, 1, 3 kg"),
        ({**INERTIA, "inertia": ((1, 0.1, 0), (0, 1, 0), (0, 0, 1))}, "must be symmetric"),
        ({**CUBE, "inertia": (1.0, 1.0, 1.0)}, "`bodies.a.inertia` needs `bodies.a.mass`"),
        (
            {**CUBE, "density": 1.0, "inertia": (1, 1, 1)},
            "`bodies.a.inertia` needs `bodies.a.mass`",
        ),
        ({**INERTIA, "center_of_mass": (0.0, 0.0, 0.0)}, "needs `bodies.a.inertia` about this"),
        ({**CUBE, "mass": 1.0, "density": 1.0}, "must have one of .*, got density and mass"),
        ({**CUBE, "held": Held(nodes=(0,))}, "`bodies.a.held`: a rigid body has no nodes"),
        ({**CUBE, "velocity": "field:v"}, "`bodies.a.velocity` must be a vector for a rigid body"),
        ({"mesh": "sheet"}, r"`bodies.a.mesh`: .* closed.* Or give `mass`, `inertia` and"),
    ],
)
def test_what_is_no_rigid_body_is_told(table, message):
    with pytest.raises(StudyError, match=message):
        built(**table)
