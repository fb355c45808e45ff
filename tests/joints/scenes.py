"""Joints that the tests share: of every class, with every parameter, and what they act on."""

import copy

import numpy as np
from scipy.spatial.transform import Rotation

from adjoint.forces.registry import class_twin, register
from adjsim import checks
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint, WeldJoint


CLASSES = (BallJoint, WeldJoint, HingeJoint, SliderJoint)
FRAMED, DRIVEN = CLASSES[1:], CLASSES[2:]


def arguments(rng, kind, n, **changed):
    """Arguments of n joints, all different from zero."""
    options = {
        "stiffness": 30.0 * rng.uniform(0.5, 1.5, n),
        "damping": 3.0,
        "anchor_a": rng.standard_normal((n, 3)),
        "anchor_b": rng.standard_normal(3),
    }
    if kind in FRAMED:
        options |= {
            "angular_stiffness": 20.0,
            "angular_damping": 2.0 * rng.uniform(0.5, 1.5, n),
            "rotation_a": rng.standard_normal((n, 3)),
            "rotation_b": rng.standard_normal(3),
            "orientation_a": rng.standard_normal((n, 4)),
            "orientation_b": rng.standard_normal(4),
        }
    if kind in DRIVEN:
        options |= {
            "motor": rng.standard_normal(n),
            "viscous_friction": 0.4,
            "dry_friction": 8.0 * rng.uniform(0.5, 1.5, n),
            "friction_width": 2.0,
            "spring_stiffness": 5.0,
            "spring_rest": 0.3,
            "limit_stiffness": 7.0 * rng.uniform(0.5, 1.5, n),
            "lower": -0.4,
            "upper": -0.1,
        }
    return options | changed


def bound(joint):
    """The joint between rows that follow each other, as no model binds it."""
    copied, n_nodes = copy.copy(joint), joint.kind.n_nodes
    checks.freeze(copied, "rows", np.arange(joint.n_joints * n_nodes).reshape(-1, n_nodes))
    return copied


def on_nodes(kind):
    """Return the class of such joints whose frame points are nodes, four for each body."""

    class OnNodes(kind):
        def __post_init__(self):
            super().__post_init__()
            object.__setattr__(self, "acts_on", "nodes")
            object.__setattr__(self, "framed", ())

        def bind(self, rows, name):
            return bound(self)

    register(OnNodes, class_twin(kind))
    return OnNodes


def frame_points(rng, twist=None):
    """Positions and velocities of the frame points of a rigid body, (4, 3) each."""
    center = rng.standard_normal(3)
    E = Rotation.random(random_state=int(rng.integers(1 << 30))).as_matrix()
    v, omega = rng.standard_normal((2, 3)) if twist is None else twist
    return pose_points(center, E), pose_velocities(v, omega, E)


def pose_points(center, E):
    """The centre and the levers of a pose."""
    return np.vstack([center, center + E.T])


def pose_velocities(v, omega, E):
    """The velocities of the same."""
    return np.vstack([v, v + np.cross(omega, E.T)])


def tuples(rows):
    """Rows as element functions take them."""
    return tuple(tuple(float(c) for c in row) for row in rows)
