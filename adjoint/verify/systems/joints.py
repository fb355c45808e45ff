"""Joints of every kind between rigid bodies and to the world, and pins, with every parameter.

The bodies start a little off from where the joints hold them, and stay beyond one of their limits.
"""

from typing import Any

import numpy as np

from adjoint.examples import Example
from adjoint.verify.problem import systems
from adjoint.verify.systems.bodies import brick, poses
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint, WeldJoint, frames_at
from adjsim.joints.pins import Pins
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies


DT = 3e-4  # [s]
GRAVITY = (0.3, -9.8, 0.5)
PAIRS = [("links.0", "links.1"), ("links.1", "links.2")]
WORLD = [(None, "links.0")]
INERT = ("first.lower", "others.upper")  # the limits that nothing is beyond


def point(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Return what holds the points of n joints."""
    return {"stiffness": 800.0 * rng.uniform(0.8, 1.2, n), "damping": 3.0}


def frame(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Return what holds the points and axes of n joints, which are a little off."""
    turns = 0.2 * rng.standard_normal((2, n, 3))
    return point(rng, n) | {
        "angular_stiffness": 5.0, "angular_damping": 0.05 * rng.uniform(0.8, 1.2, n),
        "rotation_a": turns[0], "rotation_b": turns[1],
    }  # fmt: skip


def drive(rng: np.random.Generator, n: int, size: float, upper: bool) -> dict[str, Any]:
    """Return what drives n joints whose coordinate is about 0, by the size that it may have."""
    limits = (-5.0 * size, -2.0 * size) if upper else (2.0 * size, 5.0 * size)
    return {
        "viscous_friction": 0.05 / size, "dry_friction": 0.2 * rng.uniform(0.8, 1.2, n),
        "friction_width": 10.0 * size, "spring_stiffness": 0.4 / size, "spring_rest": 0.7 * size,
        "limit_stiffness": 0.3 / size, "lower": limits[0], "upper": limits[1],
    }  # fmt: skip


def scene(rng: np.random.Generator, n_steps: int, make: Any, **others: Any) -> Example:
    """Return three links in a row, in a joint to the world and two between them.

    With other forces there are two nodes beside them.
    """
    links = RigidBodies([brick(rng, 0.01) for _ in range(3)], density=[300.0, 400.0, 500.0])
    x = np.outer(np.arange(3), (0.25, -0.05, 0.02))
    start = poses(rng, x, speed=0.3, spin=2.0, turn=0.3)
    at = x - (0.12, -0.02, 0.01)
    joints = {}
    for name, pairs, anchors in (("first", WORLD, at[:1]), ("others", PAIRS, at[1:])):
        axis = rng.standard_normal((len(pairs), 3))
        joint = make(len(pairs), name == "first")
        frames = frames_at(
            pairs, {"links": start}, anchors, axis if "rotation_a" in joint[1] else None
        )
        for side in ("anchor_a", "anchor_b"):
            frames[side] = frames[side] + 0.01 * rng.standard_normal((len(pairs), 3))
        joints[name] = joint[0](pairs, **frames, **joint[1])
    if not others:
        model = Model(None, joints, GRAVITY, bodies={"links": links})
        inert = tuple(path for path in INERT if path in model.parameters())
        return Example(model, State(bodies={"links": start}), DT, n_steps, inert)
    above = x[1:] + np.array([0.0, 0.1, 0.0])
    nodes = State(above, rng.standard_normal((2, 3)), {"links": start})
    model = Model([0.1, 0.2], joints | others, GRAVITY, bodies={"links": links})
    return Example(model, nodes, DT, n_steps)


def loose(n_steps: int) -> Example:
    """Ball joints, and pins of nodes to a body and to each other."""
    rng = np.random.default_rng(81)
    pins = Pins([(0, 9), (0, 1)], [300.0, 200.0], [0.5, 0.4], acts_on=("nodes", "links"))
    return scene(rng, n_steps, lambda n, _: (BallJoint, point(rng, n)), pins=pins)


def welded(n_steps: int) -> Example:
    """Welds, one of them to the world."""
    rng = np.random.default_rng(82)
    return scene(rng, n_steps, lambda n, _: (WeldJoint, frame(rng, n)))


def _driven(rng: np.random.Generator, n_steps: int, kind: Any, size: float) -> Example:
    def make(n: int, is_first: bool) -> tuple[Any, dict[str, Any]]:
        motor: Any = 0.3 * rng.standard_normal((n_steps, n))
        if is_first:
            motor = Signal([0.0, 7.5, 21.0], rng.standard_normal(3))
        values = frame(rng, n) | drive(rng, n, size, is_first)
        return kind, values | {"motor": motor}

    return scene(rng, n_steps, make)


def hinged(n_steps: int) -> Example:
    """Hinges with friction, a spring, limits and a motor by a signal or by one row per step."""
    return _driven(np.random.default_rng(83), n_steps, HingeJoint, 0.3)


def sliding(n_steps: int) -> Example:
    """Sliders with friction, a spring, limits and a motor by a signal or by one row per step."""
    return _driven(np.random.default_rng(84), n_steps, SliderJoint, 0.05)


SYSTEMS = systems(
    "bodies",
    rollout_problem,
    {"joints/ball": loose, "joints/weld": welded, "joints/hinge": hinged, "joints/slider": sliding},
)
