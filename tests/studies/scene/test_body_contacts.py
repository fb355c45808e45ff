"""Contact between bodies of a scene: chosen numbers, values, starts, steps."""

from dataclasses import replace

import numpy as np
import pytest

from adjsim.forces.pressure_laws import bouncing
from adjsim.rollout import rollout
from studies.problem.forward import simulate
from studies.problem.making import make_problem
from studies.problem.refining import with_harder_contacts
from studies.problem.steps import first_steps
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.body_contacts import PER_STEP
from studies.scene.building import build
from studies.scene.checking import check_scene
from studies.scene.declared import (
    Cloth,
    Contact,
    Held,
    Pendulum,
    Plane,
    Rigid,
    Scene,
    Soft,
    Springs,
    World,
)
from studies.scene.drawing import instance_of
from studies.scene.files import find_scene
from studies.scene.maps import all_targets, values_of
from studies.scene.reading import read_scene
from studies.scene.struck import struck_mass
from tests.studies.scene.slopes import check_slopes


WEIGHTLESS = World(gravity=(0.0, 0.0, 0.0))
BALL = {"mesh": "ball", "size": (0.1,), "cells": (2,), "nu": 0.4}
LEFT = Soft(**BALL, E=3e4, position=(-0.106, 0.0, 0.0), velocity=(1.0, 0.0, 0.0))
RIGHT = Soft(**BALL, E=6e4, position=(0.106, 0.02, 0.0), rotation=(10, 20, 30))
CUBE = Rigid(mesh="box", size=(0.1, 0.1, 0.1), density=500.0)
FLAG = Cloth(mesh="sheet", size=(0.3, 0.3), cells=(4, 4), E=1e4, position=(0.0, 0.3, 0.0))
BETWEEN = {"touch": Contact(between=("left", "right"))}


def balls(world=WEIGHTLESS, **touch):
    contact = Contact(between=("left", "right"), **touch)
    bodies = {"left": LEFT, "right": RIGHT}
    return Scene(bodies=bodies, contacts={"touch": contact}, world=world)


def of_kinds(a, b, **touch):
    return Scene(bodies={"a": a, "b": b}, contacts={"touch": Contact(between=("a", "b"), **touch)})


def test_the_numbers_of_a_contact_are_values():
    built = build(balls(stiffness=3e3, dissipation=0.2, friction=0.4, radius=0.005))
    numbers = {"stiffness": 3e3, "dissipation": 0.2, "friction": 0.4, "radius": 0.005}
    values = {path: value for path, value in built.values.items() if path.startswith("touch.")}
    assert {path: float(value.value) for path, value in values.items()} == {
        **{f"touch.{key}": number for key, number in numbers.items()},
        "touch.friction_stiffness": pytest.approx(
            float(built.system.forces["touch"].friction_stiffness)
        ),
    }
    assert [values[f"touch.{key}"].unit for key in numbers] == ["N/m", "s/m", "-", "m"]
    moved = {"touch.radius": np.array(0.004), "touch.stiffness": np.array(2e3)}
    targets = all_targets(built.maps, values_of(built.values) | moved)
    assert targets["touch.radius"] == targets["touch.other_radius"] == 0.004
    assert targets["touch.stiffness"] == 2e3


FLYING = replace(CUBE, position=(-0.144, 0.0, 0.0), rotation=(35, 0, 45))  # a corner first


def test_a_restitution_and_a_depth_are_values_in_place_of_a_stiffness_and_a_dissipation():
    numbers = {"restitution": 0.5, "depth": 0.002, "speed": 1.5, "radius": 0.004}
    built = build(of_kinds(FLYING, CUBE, **numbers))
    law = {"restitution", "depth", "radius", "friction", "friction_stiffness"}
    assert {path for path in built.values if path.startswith("touch.")} == {
        f"touch.{key}" for key in law
    }
    bodies = built.system.bodies
    m = 1.0 / sum(1.0 / struck_mass(name, bodies[name], {}) for name in "ab")
    for key, e in (("cubic_stiffness", 0.5), ("cubic_dissipation", 0.3)):
        moved = {"touch.restitution": np.array(e)}
        targets = all_targets(built.maps, values_of(built.values) | moved)
        wanted = bouncing(m, e, 0.002, 1.5)
        assert targets[f"touch.{key}"] == pytest.approx(wanted[key], rel=1e-12)
    touch, wanted = built.system.forces["touch"], bouncing(m, 0.5, 0.002, 1.5)
    assert touch.cubic_stiffness == pytest.approx(wanted["cubic_stiffness"], rel=1e-12)


BALLS = [Rigid(mesh="shape:sphere", size=(0.05,), position=(x, 0, 0)) for x in (-0.104, 0.0)]


FLAT = replace(CUBE, position=(-0.104, 0.0, 0.0))
WALL = replace(CUBE, size=(0.1, 0.2, 0.2))


MESHES = [replace(ball, touches="points") for ball in BALLS]


@pytest.mark.parametrize(
    ("bodies", "near"),
    [(BALLS, 1e-3), (MESHES, 0.1), ([FLAT, WALL], 0.1)],
    ids=["balls", "meshes", "boxes"],
)
def test_a_restitution_is_the_same_at_every_speed(bodies, near):
    kept = []
    for speed in (0.1, 1.0, 10.0):
        first = replace(bodies[0], velocity=(speed, 0.0, 0.0))
        numbers = {"restitution": 0.6, "speed": 4.0, "radius": 1e-3, "friction": 0.0}
        built = build(replace(of_kinds(first, bodies[1], **numbers), world=WEIGHTLESS))
        dt = min(2e-5 / speed, 0.5 * built.system.stable_dt())
        end = rollout(built.system, built.state, dt, int(0.035 / speed / dt)).bodies
        kept.append((end["b"].velocity - end["a"].velocity)[-1, 0, 0] / speed)
    np.testing.assert_allclose(kept, kept[1], rtol=5e-3)
    np.testing.assert_allclose(kept, 0.6, atol=near)


@pytest.mark.parametrize("law", [{}, {"restitution": 0.6}], ids=["chosen", "restitution"])
def test_balls_touch_as_balls_with_slopes_of_every_number(law):
    first = replace(BALLS[0], velocity=(1.0, 0.3, 0.0))
    scene = replace(of_kinds(first, BALLS[1], friction=1.0, **law), world=WEIGHTLESS)
    built = build(scene)
    touch = built.system.forces["touch"]
    assert (touch.balls, touch.fixed_to) == (("a",), "b")
    targets = all_targets(built.maps, values_of(built.values) | {"touch.radius": np.array(0.001)})
    wide = {key: float(targets[f"touch.{key}"]) for key in ("radius", "sphere_radius")}
    assert wide == pytest.approx({"radius": 0.051, "sphere_radius": 0.051}, abs=1e-12)
    paths = [path for path in built.values if path.startswith("touch.")]
    check_slopes(scene, [*paths, "a.velocity", "b.position"], built.system.stable_dt(), 400)


def test_a_depth_leaves_room_for_faster_touches():
    with pytest.raises(StudyError, match=r"`contacts.touch.depth` must be at most the radius, 0.0"):
        build(balls(restitution=0.5, radius=0.002, depth=0.003))


def test_gradients_of_a_restitution_and_a_depth_match_differences():
    paths = ["touch.restitution", "touch.depth", "touch.friction", "left.E", "left.velocity"]
    check_slopes(balls(restitution=0.5, radius=0.005), paths, 5e-5, 500)


def test_gradients_of_all_numbers_match_differences():
    paths = ["touch.stiffness", "touch.dissipation", "touch.friction", "touch.friction_stiffness"]
    paths += ["touch.radius", "left.E", "left.velocity", "right.position"]
    check_slopes(balls(), paths, 5e-5, 500)


def test_a_damping_takes_the_place_of_a_dissipation():
    built = build(balls(damping=0.1))
    assert built.system.forces["touch"].dissipation is None
    assert built.values["touch.damping"].value == 0.1


@pytest.mark.parametrize(
    ("a", "b", "acts_on"),
    [
        (LEFT, RIGHT, ("nodes",)),
        (CUBE, replace(RIGHT, position=(0.2, 0.0, 0.0)), ("nodes", "a")),
        (replace(CUBE, position=(0.3, 0.0, 0.0)), CUBE, ("a", "b")),
        (FLAG, CUBE, ("nodes", "b")),
    ],
)
def test_triangles_are_those_of_the_bodies(a, b, acts_on):
    built = build(of_kinds(a, b))
    touch, model = built.system.forces["touch"], built.system
    assert touch.acts_on == acts_on
    rows = model.rows(acts_on).indices
    arms = [
        built.state.bodies[name].position[0] + bodies.arms for name, bodies in model.bodies.items()
    ]
    x = np.concatenate([built.state.x, *arms])[rows]
    for name, triangles in (("a", touch.triangles), ("b", touch.other_triangles)):
        body = {"a": a, "b": b}[name]
        middle = x[np.unique(triangles)].mean(axis=0)
        np.testing.assert_allclose(middle, body.position, atol=2e-3)


def test_chosen_contacts_keep_bodies_apart():
    rolling = Soft(**BALL, E=5e4, position=(0.02, 0.22, 0.0))
    held = Held(plane=Plane(point=(0.0, -0.095, 0.0), normal=(0.0, 1.0, 0.0)))
    block = Soft(mesh="box", size=(0.2, 0.2, 0.2), cells=(3, 3, 3), E=5e4, nu=0.3, held=held)
    run = simulate(of_kinds(rolling, block), np.linspace(0.0, 0.4, 9))
    assert min([x[:, 1].min() for x in run.surfaces["a"]]) > 0.0
    assert run.surfaces["a"][:, :, 1].mean(axis=1)[-1] > 0.15


def test_a_cloth_touches_itself_with_neighbours_left_out():
    scene = Scene(bodies={"flag": FLAG}, contacts={"fold": Contact(between=("flag", "flag"))})
    fold = build(scene).system.forces["fold"]
    assert fold.other_triangles is None
    assert fold.rest_positions.shape == (25, 3)


def test_the_step_lets_no_surface_pass_another():
    fast = replace(LEFT, velocity=(40.0, 0.0, 0.0), position=(-0.4, 0.0, 0.0))
    built = build(of_kinds(fast, RIGHT, radius=0.004, stiffness=10.0, dissipation=0.0))
    assert built.longest_dt == pytest.approx(PER_STEP * 0.008 / 40.0, rel=2e-3)
    steps = first_steps(0.01, None, built.longest_dt).suited_to(built.system)
    assert steps.dt <= built.longest_dt < built.system.stable_dt()


def test_a_contact_that_was_chosen_is_made_harder():
    file = instance_of(read_scene(find_scene("two-balls")), seed=0)
    problem, contact = make_problem(file, fits_first=False).everything, file.contacts["touch"]
    assert with_harder_contacts(problem, {"touch": contact}) is None
    harder = with_harder_contacts(problem, {"touch": replace(contact, stiffness=None)})
    assert harder.fixed["touch.stiffness"] == 4.0 * problem.built.values["touch.stiffness"].value
    assert "touch.radius" not in harder.fixed
    thinner = with_harder_contacts(
        problem, {"touch": replace(contact, stiffness=None, radius=None)}
    )
    assert thinner.fixed["touch.radius"] == 0.5 * problem.built.values["touch.radius"].value


def test_a_depth_that_was_chosen_is_halved():
    file = instance_of(read_scene(find_scene("cradle")), seed=0)
    problem, contact = make_problem(file, fits_first=False).everything, file.contacts["one"]
    assert with_harder_contacts(problem, {"one": contact}) is None
    harder = with_harder_contacts(problem, {"one": replace(contact, depth=None, radius=None)})
    for key in ("depth", "radius"):
        assert harder.fixed[f"one.{key}"] == 0.5 * problem.built.values[f"one.{key}"].value


def test_a_finer_mesh_shares_the_pressure():
    scene = balls(radius=0.004, stiffness=3e3)
    fine = build(scene, refined=True).system.forces["touch"]
    coarse = build(scene).system.forces["touch"]
    before, after = (len(np.unique(contact.triangles)) for contact in (coarse, fine))
    assert fine.stiffness * after == pytest.approx(3e3 * before)
    assert fine.dissipation == pytest.approx(float(coarse.dissipation))
    assert fine.radius == 0.004


def test_what_is_chosen_and_what_starts_too_near_is_noted():
    assert build(balls()).notes == [
        "`contacts.touch.radius` is not given: 0.000997 m is taken, so that surfaces touch where "
        "they are 0.00199 m apart."
    ]
    near = replace(RIGHT, position=(0.092, 0.02, 0.0))
    (note,) = build(of_kinds(LEFT, near, radius=0.004)).notes
    assert note.startswith("`bodies.a` and `bodies.b` start 0.00")
    assert "will throw them apart" in note


def test_bodies_that_meet_are_not_said_to_pass_through_each_other():
    assert not any("names both" in note for note in build(balls()).notes)
    third = Scene(bodies={"left": LEFT, "right": RIGHT, "cube": CUBE}, contacts=BETWEEN)
    with pytest.raises(StudyError, match="Unknown"):
        check_scene(replace(third, contacts={"touch": Contact(between=("left", "cub"))}))
    away = {**third.bodies, "cube": replace(CUBE, position=(0.0, 1.0, 0.0))}
    notes = build(replace(third, bodies=away)).notes
    assert any(note.endswith("none names `left` and `cube`.") for note in notes)


@pytest.mark.parametrize(
    ("right", "message"),
    [
        (replace(RIGHT, position=(0.05, 0.0, 0.0)),
         r"`bodies\.a` and `bodies\.b`, which `contacts\.touch` keeps apart, start in each other: "
         r"\d+ edges go through faces, the first near .* Move one of them by `position`"),
        (replace(RIGHT, position=LEFT.position, size=(0.04,)),
         r"a point of `b` lies 0\.0\d+ m inside `a`"),
    ],
)  # fmt: skip
def test_bodies_that_start_in_each_other_are_refused(right, message):
    with pytest.raises(StudyError, match=message):
        build(of_kinds(LEFT, right, radius=0.004))


def test_a_body_may_start_in_a_closed_cloth():
    bag = Cloth(mesh="shape:sphere", size=(0.2,), E=1e4)
    inside = replace(RIGHT, position=(0.0, 0.0, 0.0))
    assert build(of_kinds(bag, inside, radius=0.004)).notes == []


def test_values_at_which_bodies_start_in_each_other_are_no_motion():
    """A search passes over them, as over a motion that blows up."""
    scene = of_kinds(LEFT, RIGHT, radius=0.004)
    with pytest.raises(NotFiniteError, match="must have the surfaces of `touch` apart"):
        simulate(scene, np.linspace(0.0, 0.01, 2), {"b.position": [0.05, 0.0, 0.0]})


def test_a_mesh_that_goes_through_itself_is_refused(tmp_path):
    import pyvista as pv

    points = np.array(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.3, 0.3, -0.5], [0.4, 0.3, 1.0]]
    )
    faces = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 5], [1, 4, 3]])
    pv.PolyData.from_regular_faces(0.1 * points, faces).save(tmp_path / "knot.vtp")
    knot = Cloth(mesh=str(tmp_path / "knot.vtp"), E=1e4)
    scene = Scene(bodies={"a": knot}, contacts={"fold": Contact(between=("a", "a"), radius=1e-4)})
    with pytest.raises(StudyError, match=r"`bodies\.a` goes through itself at the start, so that"):
        build(scene)


TWICE = {"touch": Contact(between=("a", "b")), "again": Contact(between=("b", "a"))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contacts": {"t": Contact(between=("a", "c"))}}, r"`contacts\.t\.between`: Unknown body"),
        ({"contacts": {"t": Contact(between=("b", "b"))}}, "got the rigid body `bodies.b` twice"),
        ({"contacts": TWICE}, r"`contacts\.again\.between` must be a pair that has no contact yet"),
        ({"contacts": {"t": Contact(between=("a", "b"), damping=1.0, dissipation=0.1)}},
         r"`contacts\.t` must have `dissipation` or `damping`, got both"),
        ({"contacts": {"t": Contact(between=("a", "b"), restitution=0.5, stiffness=9.0)}},
         r"`contacts\.t` must not have `stiffness` beside `restitution`, got 9. Give the `depth`"),
        ({"contacts": {"t": Contact(between=("a", "b"), depth=1e-3)}},
         r"`contacts\.t\.depth` must come with `restitution`, got 0\.001 m alone"),
        ({"bodies": {"a": LEFT, "b": Springs(mesh="box", size=(0.1,) * 3)}},
         r"must name bodies that are soft, cloth or rigid, got `bodies\.b`, which is springs"),
        ({"bodies": {"a": LEFT, "b": replace(CUBE, take="x")}}, "must name bodies of one take"),
    ],
)  # fmt: skip
def test_what_is_no_contact_is_told(changes, message):
    scene = of_kinds(LEFT, replace(CUBE, position=(0.2, 0.0, 0.0)))
    with pytest.raises(StudyError, match=message):
        check_scene(replace(scene, **changes))


def test_a_radius_larger_than_the_edges_is_refused():
    with pytest.raises(StudyError, match=r"`contacts\.touch\.radius` must be smaller than the edg"):
        build(of_kinds(LEFT, replace(RIGHT, position=(1.0, 0.0, 0.0)), radius=0.2))


def test_a_pendulum_touches_nothing():
    swing = Scene(
        bodies={"rod": Pendulum(length=(1.0,), angle=(0.0,))},
        contacts={"touch": Contact(between=("rod", "rod"))},
    )
    with pytest.raises(StudyError, match="which is pendulum"):
        build(swing)
