from dataclasses import replace

import numpy as np
import pytest

from adjsim.rollout import rollout
from adjsim.rotations import rotation_matrix
from studies.problem.forward import simulate
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.declared import (
    BoxObstacle,
    CapsuleObstacle,
    Look,
    PlaneObstacle,
    Rigid,
    Scene,
    Soft,
    SphereObstacle,
    World,
)
from studies.scene.filming import Still
from studies.scene.maps import all_targets
from studies.scene.obstacle_shapes import shape_of, turn_to


BODIES = {
    "soft": Soft(mesh="box", size=(0.1,) * 3, cells=(2, 2, 2), E=1e5, nu=0.3, position=(0, 1, 0)),
    "cube": Rigid(mesh="shape:sphere", size=(0.1,), density=500.0, position=(1, 1, 0)),
}


def scene_of(**obstacles):
    return Scene(bodies=BODIES, obstacles=obstacles)


def built(**obstacles):
    return build(scene_of(**obstacles))


def test_each_obstacle_and_body_has_a_contact():
    forces = built(floor=PlaneObstacle(), pole=SphereObstacle(center=(0, 0, 0), radius=1)).system
    assert {"floor_soft", "floor_cube", "pole_soft", "pole_cube"} < set(forces.forces)
    only = built(floor=PlaneObstacle(bodies=("cube",)))
    assert set(only.system.forces) == {"soft", "floor_cube"}
    contact = forces.forces["floor_soft"]
    assert len(contact.contact_nodes) == 26  # those on the surface
    assert forces.forces["floor_cube"].balls == ("cube",)  # a generated sphere


def test_values_go_to_all_contacts_in_their_proportion():
    scene = built(floor=PlaneObstacle(point=(0, 0.2, 0), normal=(0, 2, 0)))
    sources = {path: value.value for path, value in scene.values.items()}
    at = all_targets(scene.maps, sources)
    moved = all_targets(
        scene.maps,
        sources
        | {
            "floor.stiffness": 3.0 * sources["floor.stiffness"],
            "floor.friction": np.array(0.7),
            "floor.height": np.array(0.5),
        },
    )
    assert sources["floor.height"] == pytest.approx(0.2)
    for body in ("soft", "cube"):
        pair = f"floor_{body}"
        np.testing.assert_allclose(moved[f"{pair}.stiffness"], 3.0 * at[f"{pair}.stiffness"])
        assert moved[f"{pair}.friction"] == 0.7
        assert moved[f"{pair}.height"] == 0.5
    assert sources["floor.stiffness"] == pytest.approx(np.mean(at["floor_soft.stiffness"]))


def test_given_numbers_are_those_of_every_point():
    numbers = {"stiffness": 2e3, "damping": 0.0, "friction_stiffness": 5.0, "friction": 0.1}
    scene = built(floor=PlaneObstacle(**numbers))
    for key, number in numbers.items():
        assert scene.values[f"floor.{key}"].value == number
        for body in ("soft", "cube"):
            np.testing.assert_allclose(
                getattr(scene.system.forces[f"floor_{body}"], key), number, rtol=1e-15
            )
    assert scene.values["floor.damping"].transform == "linear"
    assert "floor.dissipation" not in scene.values


def test_a_contact_dissipates_by_default_and_its_dissipation_is_one_value():
    scene = built(floor=PlaneObstacle())
    assert scene.values["floor.dissipation"].unit == "s/m"
    assert "floor.damping" not in scene.values
    for body in ("soft", "cube"):
        assert scene.system.forces[f"floor_{body}"].damping is None


def test_an_obstacle_has_dissipation_or_damping_not_both():
    with pytest.raises(StudyError, match=r"`obstacles\.floor` must have"):
        built(floor=PlaneObstacle(damping=1.0, dissipation=0.1))


OBSTACLES = {
    "plane": PlaneObstacle(normal=(1, 2, 3), point=(0.1, 0.2, 0.3), extent=2.0),
    "sphere": SphereObstacle(center=(1, 2, 3), radius=0.5),
    "box": BoxObstacle(center=(1, 2, 3), size=(1, 2, 3), rotation=(10, 20, 30)),
    "capsule": CapsuleObstacle(ends=((0, 0, 1), (1, 1, 1)), radius=0.3),
}


@pytest.mark.parametrize("kind", OBSTACLES)
def test_a_wire_lies_on_the_surface(kind):
    wire = shape_of(kind, OBSTACLES[kind]).wire(np.zeros(3), 0.5)
    assert wire.shape[1:] == (2, 3)
    np.testing.assert_allclose(distance(OBSTACLES[kind], wire.reshape(-1, 3)), 0.0, atol=1e-12)


def distance(obstacle, x):
    """Return the signed distance of points, from the definitions of the shapes."""
    match obstacle:
        case PlaneObstacle():
            n = np.array(obstacle.normal) / np.linalg.norm(obstacle.normal)
            return (x - obstacle.point) @ n
        case SphereObstacle():
            return np.linalg.norm(x - obstacle.center, axis=1) - obstacle.radius
        case BoxObstacle():
            y = (x - obstacle.center) @ rotation_matrix(np.radians(obstacle.rotation))
            return (np.abs(y) - 0.5 * np.array(obstacle.size)).max(axis=1)
    a, b = np.array(obstacle.ends)
    t = np.clip((x - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(x - a - t[:, None] * (b - a), axis=1) - obstacle.radius


@pytest.mark.parametrize("kind", OBSTACLES)
def test_obstacles_are_drawn_where_they_are_facing_outwards(kind):
    obstacle = OBSTACLES[kind]
    mesh, points = shape_of("a", obstacle).drawn()
    np.testing.assert_allclose(distance(obstacle, points), 0.0, atol=1e-12)
    corners = points[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outside = corners.mean(axis=1) + 0.2 * normals / np.linalg.norm(normals, axis=1)[:, None]
    assert (distance(obstacle, outside) > 0.05).all()


@pytest.mark.parametrize("kind", OBSTACLES)
def test_contacts_have_the_shape_that_is_drawn(kind):
    contact = built(a=OBSTACLES[kind]).system.forces["a_soft"]
    if kind == "plane":
        assert contact.height == pytest.approx(1.4 / np.sqrt(14))
    elif kind == "box":
        np.testing.assert_allclose(contact.half_extents, [0.5, 1.0, 1.5])
        np.testing.assert_allclose(contact.rotation, np.radians([10, 20, 30]))
    elif kind == "capsule":
        axis = rotation_matrix(contact.rotation) @ [0, 1, 0]
        np.testing.assert_allclose(axis, np.array([1, 1, 0]) / np.sqrt(2), atol=1e-14)
        np.testing.assert_allclose(contact.center, [0.5, 0.5, 1.0])
        assert contact.half_length == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("kind", OBSTACLES)
def test_signed_distances_are_those_of_the_shapes(kind):
    obstacle = OBSTACLES[kind]
    _, surface = shape_of("a", obstacle).drawn()
    np.testing.assert_allclose(shape_of("a", obstacle).distance(surface), 0.0, atol=1e-12)
    x = np.random.default_rng(0).uniform(-3, 5, (200, 3))
    distances, expected = shape_of("a", obstacle).distance(x), distance(obstacle, x)
    np.testing.assert_array_equal(distances > 0.0, expected > 0.0)
    inside = expected < 0.0
    np.testing.assert_allclose(distances[inside], expected[inside], rtol=1e-12)
    if kind != "plane":
        near = np.linalg.norm(x[:, None] - surface, axis=2).min(axis=1)
        assert (distances[~inside] <= near[~inside] + 1e-12).all()


def test_a_body_that_starts_inside_an_obstacle_is_noted():
    assert not built(floor=PlaneObstacle(point=(0, 0.85, 0))).notes[1:]
    notes = built(floor=PlaneObstacle(point=(0, 1, 0))).notes[1:]
    assert notes[0].startswith("`bodies.soft` starts 0.05 m deep inside `obstacles.floor`")
    assert notes[1].startswith("`bodies.cube` starts 0.1 m deep")


def test_an_obstacle_that_may_slip_between_the_points_of_a_body_is_noted():
    rod = CapsuleObstacle(ends=((0, 0, -1), (0, 0, 1)), radius=1e-3)
    (note,) = built(rod=replace(rod, bodies=("soft",))).notes[1:]
    assert note.startswith("`obstacles.rod` is 0.002 m wide, and the edges of `bodies.soft` are")
    assert not built(
        rod=replace(rod, radius=0.5, bodies=("soft",), ends=((9, 0, 0), (9, 0, 1)))
    ).notes[1:]


@pytest.mark.parametrize("direction", [(0, 1, 0), (0, -1, 0), (1, 0, 0), (0.6, 0, -0.8)])
def test_the_y_axis_is_turned_to_any_direction(direction):
    turned = rotation_matrix(turn_to(np.array(direction, float))) @ [0, 1, 0]
    np.testing.assert_allclose(turned, direction, atol=1e-15)


def test_only_what_asks_for_it_is_drawn():
    look = Look(color=(1, 0, 0))
    scene = built(floor=PlaneObstacle(draw=True, look=look), wall=PlaneObstacle(normal=(1, 0, 0)))
    assert set(scene.meshes) == set(scene.subjects) == {"soft", "cube", "floor"}
    assert isinstance(scene.subjects["floor"], Still)
    np.testing.assert_array_equal(scene.meshes["floor"].material.diffuse, [0.5, 0, 0])


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        (PlaneObstacle(bodies=("cub",)), r"`obstacles.a.bodies`: .* `cub`. Did you mean `cube`"),
        (PlaneObstacle(bodies=()), "must name one body or more"),
        (PlaneObstacle(normal=(0, 0, 0)), "`obstacles.a.normal` must not be zero"),
        (CapsuleObstacle(ends=((1, 1, 1), (1, 1, 1)), radius=1), "`obstacles.a.ends` must be two"),
    ],
)
def test_what_is_no_obstacle_is_told(obstacle, message):
    with pytest.raises(StudyError, match=message):
        built(a=obstacle)


HAND = SphereObstacle(center=(0.5, 1.5, 0.1), radius=0.2, fixed_to="cube", draw=True)


def test_a_body_carries_an_obstacle_from_where_both_are_declared():
    scene = built(hand=HAND, tray=replace(OBSTACLES["plane"], fixed_to="cube"))
    carrier = scene.system.bodies["cube"]
    contact = scene.system.forces["hand_soft"]
    assert set(scene.system.forces) >= {"hand_soft", "tray_soft"}
    assert "hand_cube" not in scene.system.forces  # its own points do not touch it
    assert (contact.fixed_to, carrier.framed) == ("cube", (0,))
    np.testing.assert_allclose(contact.center, HAND.center - carrier.centers[0], atol=1e-15)
    n, plane = contact_normal(scene.system.forces["tray_soft"]), OBSTACLES["plane"]
    height = n @ (np.array(plane.point) - carrier.centers[0])
    assert scene.system.forces["tray_soft"].height == pytest.approx(height)


def contact_normal(contact):
    return np.asarray(contact.normal) / np.linalg.norm(contact.normal)


def test_an_obstacle_on_a_body_is_drawn_with_it():
    scene = scene_of(hand=HAND)
    cube = replace(scene.bodies["cube"], velocity=(1.0, 0.0, 0.0), spin=(0.0, 0.0, 5.0))
    scene = replace(scene, bodies={**scene.bodies, "cube": cube}, world=World(gravity=(0, 0, 0)))
    run = simulate(scene, np.array([0.0, 0.1]))
    _, declared = shape_of("hand", HAND).drawn()
    np.testing.assert_allclose(run.surfaces["hand"][0], declared, atol=1e-12)
    middles = [run.surfaces[name].mean(axis=1) for name in ("hand", "cube")]
    arms = middles[0] - middles[1]
    turned = rotation_matrix(np.array([0.0, 0.0, 0.5])) @ arms[0]
    np.testing.assert_allclose(arms[1], turned, atol=1e-4)


def test_the_chosen_stiffness_is_of_the_mass_that_yields():
    cube = replace(BODIES["cube"], position=(0.0, 1.5, 0.0))
    scene = Scene(bodies={**BODIES, "other": cube}, obstacles={"hand": HAND})
    carried = build(scene)
    free = build(replace(scene, obstacles={"hand": replace(HAND, fixed_to=None)}))
    k, of_fixed = (each.system.forces["hand_other"].stiffness for each in (carried, free))
    assert k == pytest.approx(0.5 * of_fixed)  # of two bodies of equal mass


def test_a_body_that_carries_an_obstacle_feels_the_reaction():
    scene = scene_of(hand=replace(HAND, center=(0.0, 1.2, 0.0), radius=0.17))
    carried = build(replace(scene, world=World(gravity=(0.0, 0.0, 0.0))))
    run = rollout(carried.system, carried.state, 1e-5, 200, frames=[0, 200])
    momentum = np.einsum("n,fni->fi", carried.system.mass, run.v)
    momentum += carried.system.bodies["cube"].masses[0] * run.bodies["cube"].velocity[:, 0]
    assert np.abs(run.bodies["cube"].velocity[-1]).max() > 1e-3
    np.testing.assert_allclose(momentum[1], 0.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        (replace(HAND, fixed_to="cub"), r"`obstacles.a.fixed_to`: .* `cub`. Did you mean `cube`"),
        (replace(HAND, fixed_to="soft"), r"`obstacles.a.fixed_to`: Unknown rigid body `soft`"),
        (replace(HAND, bodies=("cube",)), "must be other bodies than `cube`, which carries the"),
    ],
)
def test_what_carries_no_obstacle_is_told(obstacle, message):
    with pytest.raises(StudyError, match=message):
        built(a=obstacle)
