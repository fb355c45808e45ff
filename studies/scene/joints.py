r"""Joints: a stiff force for each table; its numbers are values of the scene: "elbow.dry_friction".

Anchors and axes are declared in the scene, where the bodies are at the start; the axes of every
body are the world's there. So the value "elbow.anchor" moves the anchors in both bodies by the
same, and "elbow.rotation" turns the axes in both. Angles of a hinge are in degrees.

What a table leaves out is chosen from what hangs on the joint: with M the mass of all bodies that
are joined to each other, L the size of the smaller body and a = g + v^2/L,

    k   = 3600 M a/L                   it gives way by L/3600 under their weight
    k_t = k (L/4)^2                    a turn gives way as if held at a quarter of the size
    c   = 0.2 sqrt(k m),  c_t = 0.2 sqrt(k_t I)    what rings dies out; m, I of the lighter body
    k_l = k_t of a hinge, k of a slider

Where one of the bodies may strike an obstacle that has a restitution, k is at least 10 m u^2/c^2,
ten times what the whole body feels there (`studies/scene/contacts.py`), so that the joint takes up
little of a blow.

A pin holds each of its nodes with what the elements there hold it with, or more where all pins
would give way by more than L/3600 under the weight of its body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.acted_rows import NODES
from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import BallJoint, WeldJoint, frames_at
from adjsim.joints.pins import Pins
from adjsim.rigid.bodies import BodyPoint
from adjsim.rigid.mass_properties import from_six
from adjsim.rigid.pose import BodyState
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.bodies.part import (
    WIDE,
    Additions,
    NodePart,
    held_nodes,
    linear,
    node_stiffness,
    positive,
)
from studies.scene.bodies.rigid import RigidPart
from studies.scene.contacts import GRAVITY
from studies.scene.declared import WORLD
from studies.scene.maps import Scaled, Value, Widened
from studies.scene.series import Series, read_series


SINKS = 3600.0  # L over what a joint gives way by under what hangs on it
LEVER = 0.25  # of the size: where a joint holds turns
STRUCK = 10.0  # times what a body feels that strikes an obstacle
LOSS = 0.2  # c over sqrt(k m)
APART = 0.01  # of the size: how far pinned nodes may be from each other
WIDTHS = {"hinge": 0.5, "slider": 0.01}  # of dry friction by default [deg/s], [m/s]
KINDS: dict[str, type[Any]] = {
    "ball": BallJoint, "weld": WeldJoint, "hinge": HingeJoint, "slider": SliderJoint,
}  # fmt: skip
ANGLES = ("friction_width", "spring_rest", "lower", "upper")  # in degrees, of a hinge


@dataclass(frozen=True, eq=False)
class JointMark:
    """Where a joint is drawn: means of the drawn vertices of a body, which moves with it."""

    body: str
    anchors: scipy.sparse.csr_array  # (n_marks, n_vertices)
    axis: np.ndarray | None  # the same of a point along the axis, (n_vertices,); None without one


@dataclass(frozen=True, eq=False)
class JointMaker:
    """Makes the joints of a scene; `gravity` [m/s2] is its length, `free` are its free paths."""

    nodes: Sequence[NodePart]
    rigid: Sequence[RigidPart]
    gravity: float
    free: frozenset[str]
    blows: Mapping[str, float] = field(default_factory=dict)  # stiffness by body [N/m]
    out: Additions = field(default_factory=Additions)

    def make(self, joints: Mapping[str, declared.Joint]) -> Additions:
        """Return all joints."""
        loads = _loads_of(joints, self.rigid)
        for name, joint in joints.items():
            if isinstance(joint, declared.PinJoint):
                self._pin(name, joint)
            else:
                self._join(name, joint, loads)
        return self.out

    def _join(self, name: str, joint: Any, loads: Mapping[str, float]) -> None:
        """Add a joint of rigid bodies; `loads` is the mass of all that hangs together [kg]."""
        pair = ends_of(joint.between)
        parts = {rigid.name: rigid for rigid in self.rigid if rigid.name in pair}
        states = {body: BodyState(rigid.center) for body, rigid in parts.items()}
        least = STRUCK * max(self.blows.get(body, 0.0) for body in parts)
        holds = _holds(
            joint, list(parts.values()), loads[pair[1]], self.gravity or GRAVITY, least=least
        )
        values = {key: _value(joint, key, number) for key, number in holds.items()}
        motor: dict[str, Any] = {}
        if isinstance(joint, declared.HingeJoint | declared.SliderJoint):
            driven, motor = self._drive(name, joint, holds)
            values |= driven
        degrees = np.pi / 180.0 if joint.kind == "hinge" else 1.0
        factors = {key: degrees if key in ANGLES else 1.0 for key in values}
        coefficients = {key: factors[key] * value.value for key, value in values.items()}
        axis = None if isinstance(joint, declared.BallJoint) else getattr(joint, "axis", (0, 0, 1))
        frames = frames_at(pair, states, joint.anchor, axis)
        self.out.forces[name] = KINDS[joint.kind](pair, **frames, **coefficients, **motor)
        for key, value in values.items():
            path = f"{name}.{key}"
            self.out.values[path] = value
            self.out.maps.append(Scaled(path, {path: factors[key]}))
        path, reach = f"{name}.anchor", min(rigid.size for rigid in parts.values())
        centers = [np.zeros(3) if body is None else parts[body].center for body in pair]
        about = {f"{name}.anchor_{side}": -at for side, at in zip("ab", centers, strict=True)}
        self.out.values[path] = linear(joint.anchor, "m", reach)
        self.out.maps.append(Widened(path, dict.fromkeys(about, 1.0), about))
        if axis is not None:
            path = f"{name}.rotation"
            self.out.values[path] = linear(np.zeros(3), "rad", 1.0)
            self.out.maps.append(Scaled(path, {f"{name}.rotation_{s}": 1.0 for s in "ab"}))

    def _drive(
        self, name: str, joint: Any, holds: Mapping[str, float]
    ) -> tuple[dict[str, Value], dict[str, Any]]:
        """Return the values of what drives a joint, and its motor where that is a series."""
        values = {
            key: _value(joint, key, number, 100.0)
            for key in ("viscous_friction", "dry_friction", "spring_stiffness")
            if (number := getattr(joint, key)) > 0.0 or f"{name}.{key}" in self.free
        }
        if "dry_friction" in values:
            width = joint.friction_width or WIDTHS[joint.kind]
            values["friction_width"] = _value(joint, "friction_width", width, 100.0)
        is_hinge = joint.kind == "hinge"
        reach = 180.0 if is_hinge else 1.0
        if "spring_stiffness" in values:
            values["spring_rest"] = _value(joint, "spring_rest", joint.spring_rest, reach)
        if joint.lower is not None:
            hold = joint.limit_stiffness or holds["angular_stiffness" if is_hinge else "stiffness"]
            values["limit_stiffness"] = _value(joint, "limit_stiffness", hold)
            for key in ("lower", "upper"):
                values[key] = _value(joint, key, getattr(joint, key), reach)
        if isinstance(joint.motor, str):
            series = Series(*read_series(f"joints.{name}.motor", joint.motor, {1}))
            self.out.varying[f"{name}.motor"] = series
            return values, {"motor": series.course(1.0)}
        if joint.motor is not None or f"{name}.motor" in self.free:
            motor = joint.motor or 0.0
            values["motor"] = _value(joint, "motor", motor, 10.0 * abs(motor) or 1.0)
        return values, {}

    def _pin(self, name: str, joint: declared.PinJoint) -> None:
        of_nodes = {body.name: body for body in self.nodes}
        first, second = joint.between
        body = of_nodes[first]
        pinned = _pinned(name, joint, body)
        acts_on: Any = NODES
        ends: list[Any]
        if second in of_nodes:
            other = of_nodes[second]
            ends = (other.first + _partners(name, body, pinned, other)).tolist()
        else:
            acts_on, ends = (NODES, second), [f"{second}.{name}_{k}" for k in range(len(pinned))]
        pairs = list(zip((body.first + pinned).tolist(), ends, strict=True))
        load = body.mass.sum() * (self.gravity or GRAVITY) / len(pinned)
        rest = np.zeros((body.first + len(body.points), 3))
        rest[body.first :] = body.points
        held_with = node_stiffness(body.forces(rest), len(rest))[body.first :]
        chosen = np.maximum(held_with[pinned], SINKS * load / body.size)
        k = np.full(len(pinned), joint.stiffness) if joint.stiffness else chosen
        loss = LOSS * np.sqrt(k * body.mass[pinned])
        c = loss if joint.damping is None else np.full(len(pinned), joint.damping)
        self.out.forces[name] = Pins(pairs, k, c, acts_on=acts_on)
        for key, number, unit in (("stiffness", k, "N/m"), ("damping", c, "N s/m")):
            path, mean = f"{name}.{key}", float(np.mean(number))
            self.out.values[path] = positive(mean, unit)
            factors = number / mean if mean else np.ones_like(number)
            self.out.maps.append(Scaled(path, {path: factors}))


def _loads_of(joints: Mapping[str, declared.Joint], rigid: Sequence[RigidPart]) -> dict[str, float]:
    """Return by body the mass of all rigid bodies that are joined with it, itself as well [kg]."""
    masses = {rigid_body.name: float(rigid_body.bodies.masses[0]) for rigid_body in rigid}
    groups = {name: {name} for name in masses}
    for joint in joints.values():
        merged = set[str]().union(*(groups[body] for body in joint.between if body in groups))
        groups |= dict.fromkeys(merged, merged)
    return {  # added in one order: that of a set of names differs from process to process
        name: sum(mass for member, mass in masses.items() if member in group)
        for name, group in groups.items()
    }


def _holds(
    joint: Any, parts: Sequence[RigidPart], load: float, gravity: float, *, least: float
) -> dict[str, float]:
    """Return what holds a joint together, given or chosen, by name; a stiffness at `least`."""
    size = min(body.size for body in parts)
    velocities = [body.values[f"{body.name}.velocity"].value for body in parts]
    speed = max(float(np.linalg.norm(velocity)) for velocity in velocities)
    mass = min(float(body.bodies.masses[0]) for body in parts)
    k = joint.stiffness or max(SINKS * load * (gravity + speed**2 / size) / size, least)
    c = LOSS * np.sqrt(k * mass) if joint.damping is None else joint.damping
    held = {"stiffness": k, "damping": float(c)}
    if isinstance(joint, declared.BallJoint):
        return held
    moments = [np.linalg.eigvalsh(from_six(body.bodies.inertias)[0]) for body in parts]
    turn = joint.angular_stiffness or k * (LEVER * size) ** 2
    c = LOSS * np.sqrt(turn * min(float(body_moments[0]) for body_moments in moments))
    held["angular_stiffness"] = turn
    held["angular_damping"] = float(c if joint.angular_damping is None else joint.angular_damping)
    return held


def ends_of(between: tuple[str, str]) -> tuple[Any, str]:
    """Return bodies A and B of a joint; None is the world, which is always A."""
    a, b = between
    if b == WORLD:
        a, b = b, a
    return (None if a == WORLD else a), b


def _value(joint: Any, key: str, number: float, reach: float = WIDE) -> Value:
    """Return a number of a joint as a value, in degrees where the force has radians.

    `reach` is how many times a positive one may change, or how far any other one.
    """
    parameter = next(each for each in KINDS[joint.kind].PARAMETERS if each.name == key)
    make = positive if parameter.positive else linear
    return make(number, parameter.unit.replace("rad", "deg"), reach)


def _pinned(name: str, joint: declared.PinJoint, body: NodePart) -> np.ndarray:
    """Return the numbers of the nodes of a body that are pinned, (n_pins,)."""
    mask = held_nodes(f"joints.{name}.where", joint.where, body.points, numbered=True)
    return np.flatnonzero(mask)


def with_pin_points(
    joints: Mapping[str, declared.Joint], nodes: Sequence[NodePart], rigid: Sequence[RigidPart]
) -> list[RigidPart]:
    """Return the rigid bodies with the points at which nodes are pinned to them."""
    of_nodes, of_bodies = {body.name: body for body in nodes}, {body.name: body for body in rigid}
    for name, joint in joints.items():
        if not isinstance(joint, declared.PinJoint) or joint.between[1] not in of_bodies:
            continue
        soft, body = of_nodes[joint.between[0]], of_bodies[joint.between[1]]
        places = soft.points[_pinned(name, joint, soft)]
        points = {f"{name}_{k}": BodyPoint(at) for k, at in enumerate(places)}
        bodies = replace(body.bodies, points={**body.bodies.points, **points})
        of_bodies[body.name] = replace(body, bodies=bodies)
    return list(of_bodies.values())


def _partners(name: str, body: NodePart, pinned: np.ndarray, other: NodePart) -> np.ndarray:
    """Return the nodes of another body that lie where pinned nodes lie, (n_pins,)."""
    apart = np.linalg.norm(body.points[pinned][:, None] - other.points, axis=2)
    nearest = np.argmin(apart, axis=1)
    gaps = apart[np.arange(len(pinned)), nearest]
    if gaps.max() > APART * min(body.size, other.size):
        k = int(np.argmax(gaps))
        raise StudyError(
            f"`joints.{name}` must pin nodes of `{body.name}` that lie on nodes of `{other.name}` "
            f"at the start, but node {pinned[k]} is {gaps[k]:.3g} m from the nearest one. Move one "
            "of the bodies, select other nodes by `where`, or give both meshes nodes there."
        )
    return nearest


def joint_marks(
    joints: Mapping[str, declared.Joint], nodes: Sequence[NodePart], rigid: Sequence[RigidPart]
) -> dict[str, JointMark]:
    """Return where joints are drawn, by name."""
    of_nodes, of_bodies = {body.name: body for body in nodes}, {body.name: body for body in rigid}
    marks = {}
    for name, joint in joints.items():
        if isinstance(joint, declared.PinJoint):
            soft = of_nodes[joint.between[0]]
            drawn = soft.skin @ soft.points
            places = soft.points[_pinned(name, joint, soft)]
            near = np.argmin(np.linalg.norm(places[:, None] - drawn, axis=2), axis=1)
            identity: Any = scipy.sparse.csr_array(scipy.sparse.eye_array(len(drawn)))
            marks[name] = JointMark(soft.name, identity[near], None)
            continue
        body = of_bodies[ends_of(joint.between)[1]]
        drawn = body.bodies.meshes[0].points
        anchor = np.asarray(joint.anchor)
        axis = None
        if isinstance(joint, declared.HingeJoint | declared.SliderJoint):
            along = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
            axis = affine_weights(drawn, anchor + 0.5 * body.size * along)
        at = scipy.sparse.csr_array(affine_weights(drawn, anchor)[None])
        marks[name] = JointMark(body.name, at, axis)
    return marks


def affine_weights(drawn: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the smallest weights of vertices, sum 1, with this mean: they move as one body."""
    rows = np.column_stack([drawn - place, np.ones(len(drawn))])
    return np.linalg.lstsq(rows.T, np.array([0.0, 0.0, 0.0, 1.0]), rcond=None)[0]
