"""Joints of a scene: values, frames, chosen numbers, motors, pins, marks, mistakes."""

from dataclasses import replace

import numpy as np
import pytest

from studies.problem.forward import simulate
from studies.runs.errors import StudyError
from studies.scene.building import build
from studies.scene.checking import check_scene
from studies.scene.declared import (
    BallJoint,
    Cloth,
    Free,
    Held,
    HingeJoint,
    Pendulum,
    PinJoint,
    Plane,
    Rigid,
    Scene,
    SceneFile,
    SliderJoint,
    Soft,
    WeldJoint,
    World,
)
from studies.scene.joints import SINKS
from studies.scene.maps import all_targets, values_of
from studies.scene.reading import scene_from_dict, to_toml
from tests.studies.scene.slopes import check_slopes


BAR = {"mesh": "box", "size": (0.3, 0.04, 0.06), "mass": 0.5}
UPPER = Rigid(**BAR, position=(0.15, 0.0, 0.0))
LOWER = Rigid(**BAR, position=(0.45, 0.0, 0.0))
Z = (0.0, 0.0, 1.0)
ROOT = HingeJoint(between=("world", "upper"), anchor=(0.0, 0.0, 0.0), axis=Z)
ELBOW = HingeJoint(between=("upper", "lower"), anchor=(0.3, 0.0, 0.0), axis=Z)


def links(root=ROOT, elbow=ELBOW, **more):
    return Scene(
        bodies={"upper": UPPER, "lower": LOWER}, joints={"root": root, "elbow": elbow}, **more
    )


def moved_by(built, path, value):
    return all_targets(built.maps, values_of(built.values) | {path: np.asarray(value, float)})


def test_bodies_stay_together_and_marks_follow_them():
    built = build(links())
    run = simulate(links(), np.linspace(0.0, 0.5, 6))
    root, elbow = (built.joints[name] for name in ("root", "elbow"))
    for upper, lower in zip(run.surfaces["upper"], run.surfaces["lower"], strict=True):
        np.testing.assert_allclose(root.anchors @ upper, [[0.0, 0.0, 0.0]], atol=1e-3)
        (at,) = elbow.anchors @ lower
        end = upper[upper[:, 0] > upper[:, 0].min() - 1.0].mean(axis=0) * 2.0  # of the upper bar
        np.testing.assert_allclose(at, end, atol=2e-3)
        np.testing.assert_allclose(elbow.axis @ lower - at, [0.0, 0.0, 0.15], atol=1e-3)


def test_what_holds_a_joint_is_chosen_from_all_that_hangs_on_it():
    built = build(links())
    k = SINKS * 1.0 * 9.81 / 0.3
    for name in ("root", "elbow"):
        assert built.values[f"{name}.stiffness"].value == pytest.approx(k)
        assert built.values[f"{name}.angular_stiffness"].value == pytest.approx(k * 0.075**2)
    alone = build(links(root=replace(ROOT, stiffness=1e4, damping=2.0))).system.forces["root"]
    assert (float(alone.stiffness), float(alone.damping)) == (1e4, 2.0)


def test_numbers_of_a_hinge_are_values_in_degrees():
    limits = {"lower": -30.0, "upper": 90.0, "limit_stiffness": 5.0}
    friction = {"dry_friction": 0.1, "friction_width": 2.0, "viscous_friction": 0.3}
    given = limits | friction | {"spring_stiffness": 0.7, "spring_rest": 10.0, "motor": 0.2}
    built = build(links(elbow=replace(ELBOW, **given)))
    force = built.system.forces["elbow"]
    for key, number in given.items():
        assert built.values[f"elbow.{key}"].value == number
        is_angle = key in ("lower", "upper", "spring_rest", "friction_width")
        expected = np.radians(number) if is_angle else number
        assert float(np.ravel(getattr(force, key))[0]) == pytest.approx(expected)
    assert built.values["elbow.lower"].unit == "deg"
    assert moved_by(built, "elbow.upper", 45.0)["elbow.upper"] == pytest.approx(np.pi / 4)
    anchors = moved_by(built, "elbow.anchor", [0.31, 0.0, 0.0])
    np.testing.assert_allclose(anchors["elbow.anchor_a"], [0.16, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(anchors["elbow.anchor_b"], [-0.14, 0.0, 0.0], atol=1e-15)


def test_what_is_left_out_is_a_value_only_where_it_is_free():
    assert "elbow.dry_friction" not in build(links()).values
    free = {"elbow.dry_friction": Free(start=0.1), "elbow.motor": Free()}
    scene = links()
    values = build(SceneFile(bodies=scene.bodies, joints=scene.joints, free=free)).values
    assert values["elbow.dry_friction"].value == values["elbow.motor"].value == 0.0
    assert values["elbow.friction_width"].value == 0.5


def test_gradients_of_the_numbers_of_hinges_match_differences():
    elbow = replace(
        ELBOW, viscous_friction=0.02, dry_friction=0.05, friction_width=20.0, motor=0.1,
        spring_stiffness=0.3, spring_rest=5.0, lower=-60.0, upper=1.0, limit_stiffness=20.0,
    )  # fmt: skip
    names = (
        "stiffness", "damping", "angular_stiffness", "anchor", "rotation", "viscous_friction",
        "dry_friction", "friction_width", "motor", "spring_stiffness", "spring_rest", "upper",
        "limit_stiffness",
    )  # fmt: skip
    scene = links(elbow=elbow)
    spinning = {**scene.bodies, "lower": replace(LOWER, spin=(0.3, 0.2, 2.0))}
    paths = [f"elbow.{name}" for name in names] + ["root.anchor", "lower.mass"]
    check_slopes(replace(scene, bodies=spinning), paths, 1e-4, 500, tolerance=1e-5)


@pytest.mark.parametrize("kind", ["ball", "weld", "slider"])
def test_gradients_of_other_joints_match_differences(kind):
    joint = {
        "ball": BallJoint(between=("upper", "lower"), anchor=(0.3, 0.0, 0.0)),
        "weld": WeldJoint(between=("upper", "lower"), anchor=(0.3, 0.0, 0.0)),
        "slider": SliderJoint(
            between=("upper", "lower"), anchor=(0.3, 0.0, 0.0), axis=(1.0, 0.0, 0.0), motor=0.2,
            dry_friction=0.1,
        ),
    }[kind]  # fmt: skip
    names = ["stiffness", "damping", "anchor"] + (["motor"] if kind == "slider" else [])
    scene = links(elbow=joint)
    check_slopes(scene, [f"elbow.{name}" for name in names], 1e-4, 300, tolerance=1e-5)


def test_the_world_may_stand_second():
    world_first, world_second = (
        build(links(root=replace(ROOT, between=pair))).system.forces["root"]
        for pair in (("world", "upper"), ("upper", "world"))
    )
    assert world_first.ends == world_second.ends
    np.testing.assert_array_equal(world_first.anchor_b, world_second.anchor_b)


def test_a_motor_follows_a_series(tmp_path):
    path = tmp_path / "motor.csv"
    path.write_text("time,torque\n0,0\n1,2\n")
    still = World(gravity=(0.0, 0.0, 0.0))
    scene = Scene(
        bodies={"upper": UPPER}, joints={"root": replace(ROOT, motor=str(path))}, world=still
    )
    run = simulate(scene, np.linspace(0.0, 0.1, 3))
    moment = 0.5 * (0.3**2 + 0.04**2) / 12.0 + 0.5 * 0.15**2
    angle = 2.0 * 0.1**3 / 6.0 / moment  # of a torque 2 t
    end = run.surfaces["upper"][-1].mean(axis=0)
    assert np.arctan2(end[1], end[0]) == pytest.approx(angle, rel=0.02)


SHEET = Cloth(mesh="sheet", size=(0.3, 0.3), cells=(4, 4), E=2e4, position=(0.0, -0.15, 0.0))
EDGE = Held(plane=Plane(point=(0.0, -0.001, 0.0), normal=(0.0, -1.0, 0.0)))
ROD = Rigid(mesh="box", size=(0.4, 0.02, 0.02), mass=0.3, position=(0.0, 0.01, 0.0))
SEAM = PinJoint(between=("sheet", "rod"), where=EDGE)


def test_nodes_are_pinned_to_a_rigid_body():
    rail = WeldJoint(between=("world", "rod"), anchor=(0.0, 0.01, 0.0))
    scene = Scene(bodies={"sheet": SHEET, "rod": ROD}, joints={"seam": SEAM, "rail": rail})
    built = build(scene)
    assert len(built.system.forces["seam"].pairs) == 5
    run = simulate(scene, np.linspace(0.0, 0.3, 4))
    top = SHEET.position[1] + 0.15
    for x in run.surfaces["sheet"]:
        np.testing.assert_allclose((built.joints["seam"].anchors @ x)[:, 1], top, atol=2e-3)
    check_slopes(scene, ["seam.stiffness", "seam.damping"], 1e-4, 300, tolerance=1e-5)


def test_nodes_are_pinned_to_nodes_at_the_same_place():
    other = replace(SHEET, position=(0.0, 0.15, 0.0))
    scene = Scene(
        bodies={"sheet": SHEET, "other": other},
        joints={"seam": replace(SEAM, between=("sheet", "other"))},
    )
    pairs = np.array(build(scene).system.forces["seam"].pairs)
    x = build(scene).state.x
    np.testing.assert_allclose(x[pairs[:, 0]], x[pairs[:, 1]], atol=1e-15)
    apart = {"sheet": SHEET, "other": replace(other, position=(0.0, 0.17, 0.0))}
    with pytest.raises(
        StudyError, match=r"`joints\.seam` must pin nodes of `sheet` that lie on no"
    ):
        build(replace(scene, bodies=apart))


def test_joints_are_written_and_read():
    scene = links(elbow=replace(ELBOW, lower=-30.0, upper=30.0))
    file = SceneFile(bodies=scene.bodies, joints=scene.joints)
    import tomllib

    assert scene_from_dict(tomllib.loads(to_toml(file))).joints == scene.joints


def test_takes_have_joints_and_contacts_of_their_own():
    observed = {"kind": "states", "body": "upper", "simulate": {"frames": 1}}
    takes = {name: {"observations": {"path": observed}} for name in ("one", "two")}
    bar = {"kind": "rigid", "mesh": "box", "mass": 0.5}
    hinge = {"kind": "hinge", "anchor": [0, 0, 0], "axis": [0, 0, 1], "viscous_friction": 0.1}
    scene = scene_from_dict(
        {
            "bodies": {"upper": bar, "lower": {**bar, "position": [3, 0, 0]}},
            "joints": {"root": {**hinge, "between": ["world", "upper"]}},
            "contacts": {"touch": {"between": ["upper", "lower"]}},
            "takes": takes,
            "free": {"root.viscous_friction": {}, "touch.friction": {}},
        }
    )
    assert scene.joints["root_two"].between == ("world", "upper_two")
    assert scene.contacts["touch_two"].between == ("upper_two", "lower_two")
    assert scene.free["root_two.viscous_friction"].tied_to == "root.viscous_friction"
    assert scene.free["touch_two.friction"].tied_to == "touch.friction"


def hinge(**changes):
    return links(elbow=replace(ELBOW, **changes))


SOFT = Soft(mesh="box", size=(0.1,) * 3, cells=(1, 1, 1), E=1e4)


@pytest.mark.parametrize(
    ("scene", "message"),
    [
        (hinge(between=("upper", "lowr")), r"`joints\.elbow\.between`: Unknown body `lowr`. Did y"),
        (hinge(between=("upper", "upper")), r"must name two different bodies, or \"world\" and a"),
        (hinge(axis=(0.0, 0.0, 0.0)), r"`joints\.elbow\.axis` must not be zero"),
        (hinge(lower=10.0, upper=90.0), r"`joints\.elbow\.lower` and `upper` must hold the start, "
         r"where the joint is at 0, got \[10, 90\] deg"),
        (hinge(lower=-10.0), r"`joints\.elbow\.upper` is missing: limits need both"),
        (hinge(lower=-10.0, upper=200.0), "a hinge does not count turns"),
        (hinge(limit_stiffness=2.0), r"`joints\.elbow\.limit_stiffness` needs the limits"),
        (Scene(bodies={"a": SOFT, "b": UPPER}, joints={"j": replace(ELBOW, between=("a", "b"))}),
         r"must name rigid bodies or \"world\" for a joint of the kind \"hinge\", got `bodies\.a`"),
        (Scene(bodies={"sheet": SHEET}, joints={"j": replace(SEAM, between=("sheet", "world"))}),
         r"must name two bodies for a pin, got \"world\".*have the key `held`"),
        (Scene(bodies={"sheet": SHEET, "rod": ROD},
               joints={"j": replace(SEAM, between=("rod", "sheet"))}),
         r"must name the body whose nodes are pinned first, got `bodies\.rod`, which is rigid"),
        (Scene(bodies={"rod": Pendulum(length=(1.0,), angle=(0.0,))},
               joints={"j": replace(ROOT, between=("world", "rod"))}), "which is pendulum"),
        (replace(links(), joints={"upper": ELBOW}), "the name 'upper' is that of `bodies.upper`"),
    ],
)  # fmt: skip
def test_what_is_no_joint_is_told(scene, message):
    with pytest.raises(StudyError, match=message):
        check_scene(scene)


def test_a_free_pose_of_a_body_in_a_joint_is_refused():
    scene = links()
    file = SceneFile(bodies=scene.bodies, joints=scene.joints, free={"lower.position[1]": Free()})
    with pytest.raises(StudyError, match=r"`joints\.elbow` holds `bodies\.lower` where it is decl"):
        check_scene(file)


def test_a_selection_of_no_node_is_told():
    nothing = replace(SEAM, where=Held(nodes=()))
    far = Held(plane=Plane(point=(0.0, -9.0, 0.0), normal=(0.0, 1.0, 0.0)))
    scene = Scene(bodies={"sheet": SHEET, "rod": ROD}, joints={"seam": nothing})
    with pytest.raises(StudyError, match=r"`joints\.seam\.where` selects nothing"):
        check_scene(scene)
    scene = replace(scene, joints={"seam": replace(SEAM, where=far)})
    with pytest.raises(StudyError, match=r"`joints\.seam\.where` must select some nodes"):
        build(scene)
