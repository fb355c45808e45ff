"""A robot of a URDF file is the one made by hand, and what cannot be read is refused by name."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjsim.joints.driven import DrivenJoint, HingeJoint, SliderJoint
from adjsim.joints.joint import WeldJoint, frames_at
from adjsim.joints.urdf import read_urdf
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.placing import point_states
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout


def inertial(mass=0.5, origin="", six=(0.01, 0.02, 0.02, 0.0, 0.0, 0.0)):
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    inertia = " ".join(f'{key}="{value}"' for key, value in zip(names, six, strict=True))
    return f'<inertial>{origin}<mass value="{mass}"/><inertia {inertia}/></inertial>'


def link(name, *parts):
    return f'<link name="{name}">{"".join(parts)}</link>'


def joint(name, kind, parent, child, *parts):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{"".join(parts)}</joint>'


def origin(xyz="0 0 0", rpy="0 0 0"):
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


def shaped(tag, *geometry):
    return f"<{tag}>{origin('0.1 0 0')}<geometry>{''.join(geometry)}</geometry></{tag}>"


HEAVY = inertial(origin=origin("0.125 0 0"))
Y = '<axis xyz="0 1 0"/>'
PENDULUM = (
    link("world"),
    link("upper", HEAVY, shaped("visual", '<box size="0.3 0.04 0.06"/>')),
    link("lower", HEAVY),
    joint("root", "continuous", "world", "upper", Y, '<dynamics damping="0.02"/>'),
    joint(
        "elbow", "revolute", "upper", "lower", origin("0.25 0 0"), Y,
        '<limit lower="-0.5" upper="0.25" effort="1" velocity="1"/>',
        '<dynamics damping="0.05" friction="0.01"/>',
    ),
)  # fmt: skip
FRAMES = ("anchor_a", "anchor_b", "orientation_a", "orientation_b")
HELD = {"stiffness": 2e4, "damping": 3.0, "angular_stiffness": 200.0, "angular_damping": 0.03}


@pytest.fixture
def read(tmp_path):
    def read(*parts, **options):
        path = tmp_path / "robot.urdf"
        path.write_text(f'<?xml version="1.0"?><robot name="r">{"".join(parts)}</robot>')
        return read_urdf(path, **options)

    return read


def motion(bodies, forces, start, n_steps=400):
    model = Model(forces=forces, bodies={"robot": bodies}, gravity=(0.0, 0.0, -9.8))
    return rollout(model, State(bodies={"robot": start}), 1e-4, n_steps).bodies["robot"]


def coordinates(robot, *names):
    """Where joints are in the start of a robot."""
    model = Model(forces=robot.forces, bodies={"robot": robot.bodies})
    run = rollout(model, State(bodies={"robot": robot.state}), 1e-9, 1, frames=[0])
    x, v = point_states(model.bodies["robot"], run.bodies["robot"])
    joints = [model.forces[name] for name in names]
    return [float(j.coordinates(x, v)[0][0, 0]) for j in joints if isinstance(j, DrivenJoint)]


def test_a_pendulum_moves_as_the_one_made_by_hand_to_the_bit(read):
    robot = read(*PENDULUM, **HELD)
    start = BodyState([[0.125, 0.0, 0.0], [0.375, 0.0, 0.0]])
    bodies = RigidBodies(
        [np.zeros((1, 3))] * 2, mass=0.5, center=(0.125, 0.0, 0.0),
        inertia=(0.01, 0.02, 0.02, 0.0, 0.0, 0.0),
    )  # fmt: skip
    y, root, elbow = (0.0, 1.0, 0.0), (None, "robot.0"), ("robot.0", "robot.1")
    forces = {
        "root": HingeJoint(
            root, **HELD, viscous_friction=0.02,
            **frames_at(root, {"robot": start}, (0.0, 0.0, 0.0), y),
        ),
        "elbow": HingeJoint(
            elbow, **HELD, viscous_friction=0.05, dry_friction=0.01, limit_stiffness=200.0,
            lower=-0.5, upper=0.25, **frames_at(elbow, {"robot": start}, (0.25, 0.0, 0.0), y),
        ),
    }  # fmt: skip
    assert robot.links == {"world": None, "upper": "robot.0", "lower": "robot.1"}
    from_file, by_hand = (
        motion(*parts, 4000)
        for parts in ((robot.bodies, robot.forces, robot.state), (bodies, forces, start))
    )
    np.testing.assert_array_equal(from_file.pack(), by_hand.pack())
    assert np.abs(from_file.position[-1] - start.position).max() > 0.3


def test_joints_are_where_they_are_asked_to_be(read):
    rails = (
        link("rail"),
        link("cart", HEAVY),
        joint(
            "slide", "prismatic", "rail", "cart", origin("0 0 1", "0 0 1.5707963267948966"),
            '<limit lower="-1" upper="2"/>',
        ),
        link("arm", HEAVY),
        joint("turn", "continuous", "cart", "arm", origin("0 0 0.5", "0.25 0 0"), Y),
        link("tip", HEAVY),
        joint("glue", "fixed", "arm", "tip", origin("0.25 0 0"), ZERO),
        link("tool"),
        joint("tool_frame", "fixed", "tip", "tool"),
    )  # fmt: skip
    q = {"slide": 0.4, "turn": 0.7}
    robot = read(*rails, positions=q)
    assert [type(force) for force in robot.forces.values()] == [SliderJoint, HingeJoint, WeldJoint]
    assert robot.links["tool"] == robot.links["tip"] == "robot.2"
    np.testing.assert_allclose(coordinates(robot, *q), list(q.values()), rtol=1e-14)
    along = Rotation.from_euler("z", 90.0, degrees=True)
    arm = along * Rotation.from_euler("x", 0.25) * Rotation.from_euler("y", 0.7)
    cart, pivot = np.array([0.0, 0.4, 1.0]), np.array([0.0, 0.4, 1.5])
    wanted = [
        cart + along.apply([0.125, 0, 0]), pivot + arm.apply([0.125, 0, 0]),
        pivot + arm.apply([0.375, 0, 0]),
    ]  # fmt: skip
    np.testing.assert_allclose(robot.state.position, wanted, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(robot.state.orientation[1] @ arm.as_quat()), 1.0, rtol=1e-14)
    held = motion(robot.bodies, robot.forces, robot.state, 1)  # at once: no joint is apart
    assert np.abs(held.velocity[-1]).max() < 0.01


def test_a_box_on_a_rail_falls_freely_with_the_chosen_constraints(read):
    rail = joint(
        "rail", "prismatic", "world", "box", '<axis xyz="0 0 -2"/>', '<limit lower="0" upper="1"/>'
    )
    box = link("box", inertial(), shaped("collision", '<box size="0.2 0.4 0.6"/>'))
    robot = read(link("world"), box, rail)
    fall = motion(robot.bodies, robot.forces, robot.state)
    np.testing.assert_allclose(fall.position[-1, 0], [0.0, 0.0, -0.5 * 9.8 * 0.04**2], atol=1e-4)


def test_chosen_stiffness_and_damping_ask_for_one_step(read):
    light = link("tool", inertial(0.02, origin("0.01 0 0"), (1e-6, 2e-6, 2e-6, 0.0, 0.0, 0.0)))
    glue = joint("glue", "fixed", "lower", "tool", origin("0.25 0.05 0"))
    robot = read(*PENDULUM, light, glue)
    parts = ("stiffness", "damping", "angular_stiffness", "angular_damping")

    def stable(*keeps):
        forces = {
            name: type(force)(
                force.bodies,
                **{key: getattr(force, key) if key in keeps else 0.0 for key in parts},
                **{key: getattr(force, key) for key in FRAMES},
            )
            for name, force in robot.forces.items()
        }
        return Model(forces=forces, bodies={"robot": robot.bodies}).stable_dt()

    straight, turning = stable("stiffness"), stable("angular_stiffness")
    assert straight == pytest.approx(turning, rel=1e-9)
    assert stable("stiffness", "damping") == pytest.approx(straight / 1.105, rel=1e-3)
    assert stable("angular_stiffness", "angular_damping") > turning / 1.11
    assert stable(*parts) > 0.6 * straight


def test_surfaces_are_in_the_axes_of_the_link_and_inertias_too(read, tmp_path):
    (tmp_path / "meshes").mkdir()
    corners = ("0 0 0", "1 0 0", "0 1 0", "0 0 1")
    faces = ("1 3 2", "1 2 4", "1 4 3", "2 3 4")
    rows = [f"v {row}\n" for row in corners] + [f"f {row}\n" for row in faces]
    (tmp_path / "meshes" / "tetrahedron.obj").write_text("".join(rows))
    mesh = '<mesh filename="package://meshes/tetrahedron.obj" scale="-0.2 0.3 0.4"/>'
    turned = inertial(origin=origin(rpy="0 0 1.5707963267948966"), six=(1.0, 2.0, 2.5, 0, 0, 0))
    parts = (
        shaped("collision", '<cylinder radius="0.2" length="0.5"/>'),
        shaped("collision", '<sphere radius="0.3"/>'),
        shaped("visual", '<box size="9 9 9"/>'),
    )
    body = link("body", turned, *parts)
    flag = link("flag", turned, shaped("collision", mesh))
    bodies = read(body, flag, joint("stick", "fixed", "body", "flag")).bodies
    np.testing.assert_allclose(bodies.inertias[0], [2.0, 1.0, 2.5, 0.0, 0.0, 0.0], atol=1e-15)
    solid, flag = bodies.meshes
    cylinder = solid.points[: 2 * 24 + 2] - [0.1, 0.0, 0.0]
    np.testing.assert_allclose(np.ptp(cylinder, axis=0), [0.4, 0.4, 0.5], rtol=1e-12)
    ball = solid.points[2 * 24 + 2 :] - [0.1, 0.0, 0.0]
    assert np.linalg.norm(ball, axis=1).max() == pytest.approx(0.3)
    np.testing.assert_allclose(np.ptp(flag.points, axis=0), [0.2, 0.3, 0.4], rtol=1e-12)
    assert flag.volume == pytest.approx(0.2 * 0.3 * 0.4 / 6.0)


A, B, C = (link(name, HEAVY) for name in "abc")
ZERO = '<axis xyz="0 0 0"/>'
LIMIT = '<limit lower="0.5" upper="1"/>'
AB = joint("ab", "fixed", "a", "b")
REFUSED = [
    ((A, B, joint("j", "planar", "a", "b")), "joint `j`: its type .* got planar"),
    ((A, B, joint("j", "continuous", "a", "b", "<mimic/>")), "joint `j`: .* got one with <mimic>"),
    ((A, link("b"), joint("j", "continuous", "a", "b")), "link `b` must have an <inertial>"),
    ((link("a"),), "a link must have an <inertial> with a mass"),
    ((A, B, AB, joint("ba", "fixed", "b", "a")), r"one tree, got the roots none .* \['a', 'b'\]"),
    ((A, B, C, joint("bc", "fixed", "b", "c")), r"one tree, got the roots \['a', 'b'\]"),
    ((A, B, AB, joint("j", "fixed", "a", "b")), "`j`: link `b` must have one parent, but .* `ab`"),
    ((A, A), "links, and names that differ"),
    ((A, joint("ab", "fixed", "a", "bb")), "joint `ab`: Unknown link `bb`"),
    ((A, B, joint("j", "revolute", "a", "b", LIMIT)), "`j`: <limit> must hold .* start at 0"),
    (
        (A, B, joint("j", "revolute", "a", "b", '<limit lower="0" upper="4"/>')),
        "`j`: <limit> .* between -pi and pi for a hinge, got 0 to 4",
    ),
    (
        (A, B, joint("j", "prismatic", "a", "b", '<limit lower="0" upper="0"/>')),
        "joint `j`: `lower` must be below `upper`, got 0 and 0",
    ),
    ((A, B, joint("j", "fixed", "a", "b", origin("0 0"))), "joint `j`: `xyz` must be 3 finite"),
    ((A, B, joint("j", "continuous", "a", "b", ZERO)), "joint `j`: `axis` must have a length"),
    ((link("a", inertial(six=(0.0,) * 6)),), "link `a`: `inertia` must be positive definite"),
    ((link("a", HEAVY, shaped("visual", "<torus/>")),), "link `a`: <geometry> .* got torus"),
    ((link("a", inertial("heavy")),), "link `a`: `value` must be a finite number, got 'heavy'"),
    ((link("a", inertial("inf")),), "link `a`: `value` must be a finite number, got 'inf'"),
    ((A, B, joint("j", "fixed", "a", "b", origin("nan 0 0"))), "joint `j`: `xyz` must be 3 fin"),
    ((A, B, joint("j", "fixed", "a", "b", origin(rpy="inf 0 0"))), "joint `j`: `rpy` must be 3"),
]


@pytest.mark.parametrize(("parts", "message"), REFUSED)
def test_what_cannot_be_read_is_refused_by_name(read, parts, message):
    with pytest.raises(ValueError, match=message):
        read(*parts)


def test_missing_files_other_files_and_unknown_joints_are_refused(read, tmp_path):
    with pytest.raises(FileNotFoundError, match="`path`: there is no file"):
        read_urdf(tmp_path / "none.urdf")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.stl"):
        read(link("a", HEAVY, shaped("visual", '<mesh filename="none.stl"/>')))
    with pytest.raises(ValueError, match=r"Unknown joint `elbo`\. Did you mean `elbow`"):
        read(*PENDULUM, positions={"elbo": 0.1})
    (tmp_path / "other.urdf").write_text("<robot>")
    with pytest.raises(ValueError, match="must be a URDF file, but is no XML"):
        read_urdf(tmp_path / "other.urdf")


@pytest.mark.parametrize(
    "limit",
    [
        "",
        '<limit effort="9"/>',
        '<limit lower="-6" upper="6"/>',
        '<limit lower="-inf" upper="inf"/>',
    ],
)
def test_hinges_that_turn_all_round_have_no_limits(read, limit):
    assert read(A, B, joint("j", "revolute", "a", "b", limit)).forces["j"].limit_stiffness is None
