"""What joints do is minus the gradient of their energy; their dampers take energy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint
from tests.joints.scenes import CLASSES, arguments, bound, pose_points, pose_velocities, tuples


def numbers(row):
    return tuple(map(float, row))


def pose(rng):
    return rng.standard_normal(3), Rotation.random(random_state=int(rng.integers(1 << 30)))


def forces(joint, poses, twists):
    """Forces on the frame points of A and B, (8, 3)."""
    x = np.vstack([pose_points(c, R.as_matrix()) for c, R in poses])
    v = np.vstack(
        [pose_velocities(*t, R.as_matrix()) for (_, R), t in zip(poses, twists, strict=True)]
    )
    rows = numbers(joint.pack_params()[0]), numbers(joint.pack_series(1)[0, 0])
    return np.array(joint.kind.force(tuples(x), tuples(v), (), *rows)), x, v


def seen(joint, poses):
    """r, the axes of both in the world, and q."""
    (c_a, R_a), (c_b, R_b) = poses
    r = c_b + R_b.as_matrix() @ joint.anchor_b - c_a - R_a.as_matrix() @ joint.anchor_a[0]
    if isinstance(joint, BallJoint):
        return r, None, None, 0.0
    Q_a, Q_b = R_a.as_matrix() @ joint.axes("a")[0], R_b.as_matrix() @ joint.axes("b")[0]
    if isinstance(joint, SliderJoint):
        return r, Q_a, Q_b, r @ Q_a[:, 2]
    return r, Q_a, Q_b, np.arctan2(Q_a[:, 1] @ Q_b[:, 0], Q_a[:, 0] @ Q_b[:, 0])


def energy(joint, poses):
    """The elastic energy [J]."""
    r, Q_a, Q_b, q = seen(joint, poses)
    k = joint.stiffness[0]
    slides = isinstance(joint, SliderJoint)
    total = 0.5 * k * (r @ r - slides * q * q)
    if isinstance(joint, HingeJoint):
        total += joint.angular_stiffness * (1.0 - Q_a[:, 2] @ Q_b[:, 2])
    elif "angular_stiffness" in joint.parameters():
        total += 0.5 * joint.angular_stiffness * (3.0 - np.vdot(Q_a, Q_b))
    if slides:
        out = max(q - joint.upper, joint.lower - q, 0.0)
        total += 0.5 * joint.spring_stiffness * (q - joint.spring_rest) ** 2
        total += 0.5 * joint.limit_stiffness[0] * out**2
    return float(total)


def moved(pose, twist, h):
    (c, R), (v, omega) = pose, twist
    return c + h * v, Rotation.from_rotvec(h * omega) * R


UNDAMPED = {"damping": None, "angular_damping": None}
UNDRIVEN = {"motor": None, "viscous_friction": None, "dry_friction": None, "friction_width": None}
FREE = {
    "spring_stiffness": None, "spring_rest": None, "limit_stiffness": None, "lower": None,
    "upper": None,
}  # fmt: skip


def elastic(rng, kind):
    """A joint without dampers; of hinges without a spring too, which has no energy when tilted."""
    values = arguments(rng, kind, 1)
    without = {**UNDAMPED, **UNDRIVEN, **(FREE if kind is HingeJoint else {})}
    values |= {name: None for name in without if name in values}
    return bound(kind(("a", "b"), **values))


@pytest.mark.parametrize("kind", CLASSES)
def test_force_is_minus_the_gradient_of_the_energy(rng, kind):
    joint = elastic(rng, kind)
    for _ in range(5):
        poses, twists = [pose(rng), pose(rng)], rng.standard_normal((2, 2, 3))
        f, _, v = forces(joint, poses, twists)
        h = 1e-4
        at = [
            energy(joint, [moved(p, t, k * h) for p, t in zip(poses, twists, strict=True)])
            for k in (-2, -1, 1, 2)
        ]
        slope = (8.0 * (at[2] - at[1]) - (at[3] - at[0])) / (12.0 * h)
        assert np.vdot(f, v) == pytest.approx(-slope, rel=1e-8)


def test_a_spring_of_a_hinge_has_an_energy_where_the_axes_are_one(rng):
    values = arguments(rng, HingeJoint, 1, damping=None, angular_damping=None, motor=None)
    values |= {"viscous_friction": None, "dry_friction": None, "friction_width": None}
    joint = bound(HingeJoint(("a", "b"), **values))
    c, R = pose(rng)
    turn = Rotation.from_rotvec([0.0, 0.0, 0.7])  # about the joint's own axis
    Q = R.as_matrix() @ joint.axes("a")[0] @ turn.as_matrix()
    R_b = Rotation.from_matrix(Q @ joint.axes("b")[0].T)
    z, still = Q[:, 2], np.zeros(3)
    f, _, v = forces(joint, [(c, R), (c, R_b)], [(still, still), (still, z)])
    push = -5.0 * (0.7 - 0.3) - joint.limit_stiffness[0] * (0.7 + 0.1)
    r = R_b.as_matrix() @ joint.anchor_b - R.as_matrix() @ joint.anchor_a[0]
    by_points = -joint.stiffness[0] * r @ np.cross(z, R_b.as_matrix() @ joint.anchor_b)
    assert np.vdot(f, v) == pytest.approx(push + by_points, rel=1e-12)


@pytest.mark.parametrize("kind", CLASSES)
def test_dampers_and_friction_take_energy(rng, kind):
    values = arguments(rng, kind, 1)
    gone = ("stiffness", "angular_stiffness", "spring_stiffness", "limit_stiffness")
    values |= {name: 0.0 for name in gone if name in values}
    values |= {"motor": None} if "motor" in values else {}
    joint = bound(kind(("a", "b"), **values))
    for _ in range(20):
        f, _, v = forces(joint, [pose(rng), pose(rng)], rng.standard_normal((2, 2, 3)))
        assert np.vdot(f, v) < 0.0


@pytest.mark.parametrize("kind", CLASSES)
def test_momentum_and_angular_momentum_are_kept_and_a_rigid_turn_changes_nothing(rng, kind):
    joint = bound(kind(("a", "b"), **arguments(rng, kind, 1)))
    poses, twists = [pose(rng), pose(rng)], rng.standard_normal((2, 2, 3))
    f, x, _ = forces(joint, poses, twists)
    size = np.abs(f).sum() * np.abs(x).max()
    assert np.abs(f.sum(axis=0)).max() < 1e-15 * size
    assert np.abs(np.cross(x, f).sum(axis=0)).max() < 1e-15 * size
    turn, spin, boost = Rotation.from_rotvec([0.4, -1.0, 0.3]), rng.standard_normal(3), [1, 2, 3]
    turned = [(turn.apply(c), turn * R) for c, R in poses]
    spinning = [
        (turn.apply(v) + np.cross(spin, c) + boost, turn.apply(omega) + spin)
        for (v, omega), (c, _) in zip(twists, turned, strict=True)
    ]
    also, _, _ = forces(joint, turned, spinning)
    np.testing.assert_allclose(also, turn.apply(f), rtol=0, atol=1e-13 * np.abs(f).max())
