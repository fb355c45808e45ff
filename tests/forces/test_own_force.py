"""Forces that are not part of the package, between nodes and points of several rigid bodies.

A pin f = -k r - c r' and two spheres that push each other apart, each with its adjoint in this
file. Two pins make a hinge. Nothing of the engine knows of them.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.gradcheck import gradcheck
from adjsim.algebra.vec3 import axpy, dot, norm, scale
from adjsim.forces.acted_rows import NODES
from adjsim.forces.element import Force
from adjsim.forces.springs import Springs
from adjsim.jit.backend import device_fn, lit
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast
from tests.rigid.scenes import box


@device_fn
def pin_force(x, v, consts, params, series):
    return (axpy(-params[1], v[0], scale(-params[0], x[0])),)


@device_fn
def pin_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    fixed = axpy(-params[1], tan_v[0], scale(-params[0], tan_x[0]))
    return (axpy(-tan_params[1], v[0], axpy(-tan_params[0], x[0], fixed)),)


@device_fn
def pin_vjp(x, v, consts, params, series, adj_f):
    adj = adj_f[0]
    adj_params = -dot(x[0], adj), -dot(v[0], adj)
    return (scale(-params[0], adj),), (scale(-params[1], adj),), adj_params, ()


@device_fn
def sphere_force(x, v, consts, params, series):
    k, reach = params[0], params[1]
    l = norm(x[0])
    return (scale(k * max(lit(0, l), reach - l) / l, x[0]),)


@device_fn
def sphere_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    k, reach, l = params[0], params[1], norm(x[0])
    d = scale(lit(1, l) / l, x[0])
    tan_l = dot(d, tan_x[0])
    tan_d = scale(lit(1, l) / l, axpy(-tan_l, d, tan_x[0]))
    depth = max(lit(0, l), reach - l)
    touches = lit(1, l) if depth > lit(0, l) else lit(0, l)
    tan_push = tan_params[0] * depth + k * touches * (tan_params[1] - tan_l)
    return (axpy(tan_push, d, scale(k * depth, tan_d)),)


@device_fn
def sphere_vjp(x, v, consts, params, series, adj_f):
    k, reach, l = params[0], params[1], norm(x[0])
    d = scale(lit(1, l) / l, x[0])
    depth = max(lit(0, l), reach - l)
    touches = lit(1, l) if depth > lit(0, l) else lit(0, l)
    adj_push = dot(d, adj_f[0])
    adj_d = scale(k * depth, adj_f[0])
    adj_depth = k * touches * adj_push
    adj_l = -adj_depth - dot(d, adj_d) / l
    return (axpy(adj_l, d, scale(lit(1, l) / l, adj_d)),), (), (depth * adj_push, adj_depth), ()


@dataclass(frozen=True, eq=False)
class Pairs(Force):
    """Elements of two rows with two parameters each."""

    pairs: Any
    stiffness: Any
    other: Any
    acts_on: Any = NODES

    PARAMETERS = (
        Parameter("stiffness", "k", "N/m", "() or (n_pairs,)", positive=True),
        Parameter("other", "c or R", "N s/m or m", "() or (n_pairs,)", positive=True),
    )
    PACKED: ClassVar = {"stiffness": (), "other": ()}
    ELEMENTS = "pairs"

    def stiffness_bound(self):
        return np.array(broadcast(2.0 * self.stiffness, len(self.rows)))


class Pins(Pairs):
    KIND = ElementKind("pin", pin_force, 2, 0, 2, 0, uses_velocity=True, relative=True, jvp=pin_jvp)

    def damping_bound(self):
        return np.array(broadcast(2.0 * self.other, len(self.rows)))


class Spheres(Pairs):
    KIND = ElementKind(
        "sphere_pair", sphere_force, 2, 0, 2, 0, uses_velocity=False, relative=True, jvp=sphere_jvp
    )


register(Pins, ForceTwin(TwinKind(Pins.KIND, pin_vjp)))
register(Spheres, ForceTwin(TwinKind(Spheres.KIND, sphere_vjp)))


DT, N = 2e-4, 400
AXIS = np.array([[0.1, 0.0, 0.0], [0.1, 0.0, 0.2]])  # of the hinge, in world coordinates


def hinged():
    """Two boxes hinged along z, a third that the second pushes, and a node that hangs on it."""
    ends = [AXIS + np.array([0.0, 0.1, 0.0]), AXIS]
    named = [{f"pin {k}": at for k, at in enumerate(pins)} for pins in ends]
    size = (0.1, 0.1, 0.2)
    sets = {
        "left": RigidBodies(box(size), density=400.0, points=named[0]),
        "right": RigidBodies(box(size), density=300.0, points={"middle": BodyPoint(), **named[1]}),
        "third": RigidBodies(box(size), density=200.0, points={"middle": BodyPoint()}),
    }
    names = [(f"left.pin {k}", f"right.pin {k}") for k in range(2)]
    forces = {
        "hinge": Pins(names, 2e4, 3.0, acts_on=("left", "right")),
        "push": Spheres([["right.middle", "third.middle"]], 4e3, 0.14, acts_on=("right", "third")),
        "thread": Springs([(0, 7)], 80.0, 0.1, damping=0.05, acts_on=("nodes", "third")),
    }
    right = np.array([0.15, -0.05, 0.1])
    bodies = {
        "left": BodyState([0.05, -0.05, 0.1], angular_velocity=[0.0, 0.0, 2.0]),
        "right": BodyState(right, velocity=[0.0, 0.3, 0.1], angular_velocity=[1.0, 0.0, -3.0]),
        "third": BodyState(right + np.array([0.13, 0.02, 0.01]), velocity=[-0.5, 0.0, 0.0]),
    }
    state = State([[0.45, 0.0, 0.2]], [[0.0, 0.2, 0.0]], bodies)
    return Model([0.05], forces, (0.0, 0.0, 0.0), bodies=sets), state


def momentum(model, run, frame):
    total = model.mass @ run.v[frame]
    for name, bodies in model.bodies.items():
        total = total + bodies.masses @ run.bodies[name].velocity[frame]
    return total


def test_pins_between_bodies_keep_momentum_and_hold():
    model, state = hinged()
    run = rollout(model, state, DT, N, frames=(0, N))
    before, after = momentum(model, run, 0), momentum(model, run, -1)
    assert np.abs(after - before).max() < 1e-13
    assert np.abs(run.bodies["third"].velocity[-1] - run.bodies["third"].velocity[0]).max() > 0.1


PATHS = (
    "hinge.stiffness", "hinge.other", "push.stiffness", "push.other", "thread.stiffness",
    "thread.rest_length", "left.density", "left.point_positions", "right.angular_velocity",
    "third.position", "third.rotation", "state.x", "state.v",
)  # fmt: skip
FIELDS = ("position", "velocity", "angular_velocity")


def values(model, state):
    every = {**model.parameters(), **model.state_parameters(state)}
    return {path: np.array(every[path]) for path in PATHS}


def cotangents(rng, run):
    x = np.zeros_like(run.x)
    x[-1] = rng.standard_normal(x[-1].shape)
    bodies = {}
    for name, states in run.bodies.items():
        bodies[name] = {key: np.zeros_like(getattr(states, key)) for key in FIELDS}
        for adj in bodies[name].values():
            adj[-1] = rng.standard_normal(adj[-1].shape)
    return x, bodies


def product(adj, run):
    x, bodies = adj
    total = np.vdot(x, run.x)
    for name, fields in bodies.items():
        total += sum(np.vdot(c, getattr(run.bodies[name], key)) for key, c in fields.items())
    return float(total)


def test_gradients_of_own_forces_are_exact(rng):
    model, state = hinged()
    run = record(model, state, DT, N)
    adj = cotangents(rng, run.trajectory)
    gradient = run.vjp(adj[0], bodies=adj[1], wrt=PATHS)
    at = values(model, state)

    def loss(changed):
        return product(adj, rollout(*model.with_values(state, changed), DT, N))

    assert min(np.abs(gradient[path]).max() for path in PATHS) > 0.0
    check = gradcheck(loss, gradient, at, n_directions=12, tolerance=1e-6)
    assert check.passed, check
    tangent = {
        path: rng.standard_normal(value.shape) * np.abs(value).max() for path, value in at.items()
    }
    pushed = product(adj, rollout_jvp(model, state, DT, N, tangent)[1])
    pulled = sum(np.vdot(gradient[path], t) for path, t in tangent.items())
    assert abs(pushed - pulled) < 1e-12 * abs(pushed)


def test_own_forces_give_the_same_bits_on_any_number_of_threads():
    model, state = hinged()
    serial, parallel = (rollout(model, state, DT, 40, threads=n) for n in (1, 2))
    for name, states in serial.bodies.items():
        np.testing.assert_array_equal(states.position, parallel.bodies[name].position)
    np.testing.assert_array_equal(serial.x, parallel.x)


def test_what_a_force_acts_on_is_named_in_errors():
    model, _ = hinged()
    wrong = {
        "acts_on": (("left", "rigth"), "`hinge.acts_on` must name .* Did you mean `right`"),
        "pairs": ([("left.pin 0", "right.pin 9")], "`hinge.pairs` `right.pin 9`. Did you mean"),
    }
    for key, (value, message) in wrong.items():
        given = {"pairs": model.forces["hinge"].pairs, "acts_on": ("left", "right"), key: value}
        forces = {"hinge": Pins(given["pairs"], 1.0, 1.0, given["acts_on"])}
        with pytest.raises(ValueError, match=message):
            Model([1.0], forces, bodies=model.bodies)
