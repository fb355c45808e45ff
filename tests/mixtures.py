"""Random models of all forces on nodes at once, and the same by the references.

A sheet of cloth, a few tetrahedra on it, ropes, wind, loads and a floor, with random subsets of
them, and of their parameters one number or one for each, constant, a series or a signal.
"""

from dataclasses import dataclass, field

import numpy as np

from adjsim.courses import Signal
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.linear_drag import LinearDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.springs import Springs
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from tests.reference import (
    external,
    half_space,
    hinges,
    lift_drag,
    linear_drag,
    neo_hookean,
    neo_hookean_triangles,
    springs,
)
from tests.reference.rollout import rollout


CLOTH = sheet((3, 2), (0.3, 0.2))  # nodes 0 to 11, in z = 0
POINTS = np.concatenate([CLOTH.points, [[0.05, 0.05, 0.12], [0.15, 0.1, 0.1], [0.25, 0.12, 0.11]]])
TRIANGLES = CLOTH.faces
TETS = np.array([[0, 3, 1, 12], [3, 4, 1, 12], [3, 6, 4, 13], [6, 7, 4, 13], [6, 9, 7, 14]])
HINGES = mesh_hinges(TRIANGLES)
ROPES = np.array([[0, 12], [12, 13], [13, 14], [2, 11], [5, 14], [0, 14]])
ACTUATED = {
    "solid": (neo_hookean, {"tets": TETS}),
    "cloth": (neo_hookean_triangles, {"triangles": TRIANGLES}),
    "bend": (hinges, {"hinges": HINGES}),
}
NAMES = ("solid", "cloth", "bend", "rope", "air", "drag", "load", "floor")
N = len(POINTS)


@dataclass
class Mixture:
    """A model with its state, and what the references need beside the parameters by path."""

    rng: np.random.Generator
    n_steps: int
    names: tuple[str, ...]
    forces: dict = field(default_factory=dict)

    def one_or_each(self, n, low, high):
        """One number, or one for each element."""
        return self.rng.uniform(low, high, () if self.rng.random() < 0.5 else (n,))

    def perhaps(self, n, high):
        """None, or not negative."""
        return None if self.rng.random() < 0.4 else self.one_or_each(n, 0.0, high)

    def in_time(self, shapes, size):
        """A constant, a series, or a signal; the last of the base shapes is the full one."""
        rng, shape = self.rng, shapes[self.rng.integers(len(shapes))]
        kind = rng.integers(3)
        if kind == 0:
            return size * rng.standard_normal(shape)
        if kind == 1:
            return size * rng.standard_normal((self.n_steps, *shapes[-1]))
        n_knots = rng.integers(1, 5)
        knots = np.cumsum(rng.uniform(0.3, self.n_steps / 2, n_knots)) - rng.uniform(0.0, 3.0)
        return Signal(knots, size * rng.standard_normal((n_knots, *shape)))

    def rest(self):
        return POINTS + 0.004 * self.rng.standard_normal(POINTS.shape)

    def build(self):
        """Draw the forces, the model and its state."""
        rng, has_both = self.rng, {"solid", "cloth"} <= set(self.names)
        makers = {name: getattr(self, f"make_{name}") for name in self.names}
        self.forces = {name: make() for name, make in makers.items()}
        mass = rng.uniform(0.005, 0.02, N)
        if has_both and rng.random() < 0.5:  # together they reach every node
            mass = None
            for name, low in (("solid", 100.0), ("cloth", 0.1)):
                density = self.one_or_each(len(self.forces[name].nodes), low, 3.0 * low)
                self.forces[name] = self.forces[name].with_values({"density": density})
        gravity, pinned = 3.0 * rng.standard_normal(3), rng.random(N) < 0.15
        self.model = Model(mass, self.forces, gravity=gravity, pinned=pinned)
        x = POINTS + 0.006 * rng.standard_normal(POINTS.shape)
        self.state = State(x, 0.4 * rng.standard_normal(x.shape))
        return self

    def make_solid(self):
        n, rest = len(TETS), self.rest()
        moduli = self.one_or_each(n, 1e3, 2e3), self.one_or_each(n, 3e3, 5e3)
        actuation = self.in_time(((), (n,)), 0.05)
        return NeoHookeanTets(TETS, rest, *moduli, self.perhaps(n, 5.0), actuation)

    def make_cloth(self):
        n, rest = len(TRIANGLES), self.rest()
        moduli = self.one_or_each(n, 20.0, 50.0), self.one_or_each(n, 20.0, 50.0)
        actuation = self.in_time(((), (n,)), 0.05)
        return NeoHookeanTriangles(TRIANGLES, rest, *moduli, self.perhaps(n, 0.05), actuation)

    def make_bend(self):
        n, rest = len(HINGES), self.rest()
        angle = None if self.rng.random() < 0.5 else self.one_or_each(n, -0.3, 0.3)
        stiffness, damping = self.one_or_each(n, 1e-3, 1e-2), self.perhaps(n, 1e-4)
        return Hinges(HINGES, rest, stiffness, damping, angle, self.in_time(((), (n,)), 0.2))

    def make_rope(self):
        n = len(ROPES)
        length = None if self.rng.random() < 0.5 else self.one_or_each(n, 0.0, 0.3)
        stiffness, damping = self.one_or_each(n, 10.0, 50.0), self.one_or_each(n, 0.0, 0.1)
        return Springs(ROPES, stiffness, length, damping, rest_positions=self.rest())

    def make_air(self):
        n = len(TRIANGLES)
        lift, drag = self.one_or_each(n, 0.0, 1.0), self.one_or_each(n, 0.0, 1.0)
        return LiftDrag(TRIANGLES, lift, drag, self.in_time(((3,), (n, 3)), 1.0))

    def make_drag(self):
        nodes = None if self.rng.random() < 0.5 else self.rng.integers(0, N, 9)
        return LinearDrag(self.one_or_each(N if nodes is None else 9, 0.0, 50.0), nodes)

    def make_load(self):
        nodes = self.rng.integers(0, N, self.rng.integers(1, 6))  # some of them twice
        first = int(self.rng.integers(0, self.n_steps))
        window = None if self.rng.random() < 0.5 else (first, first + 3)
        return ExternalForces(nodes, self.in_time(((3,), (len(nodes), 3)), 0.1), window)

    def make_floor(self):
        nodes = None if self.rng.random() < 0.5 else self.rng.permutation(N)[:7]
        stiffness, damping, k_f, mu = self.rng.uniform([100.0, 0.0, 0.1, 0.0], [500.0, 1.0, 3, 0.5])
        return HalfSpaceContact(
            contact_nodes=nodes, normal=(0.1, -0.2, 1.5), height=0.002, stiffness=stiffness,
            damping=damping, friction_stiffness=k_f, friction=mu, radius=0.001,
        )  # fmt: skip

    def referenced(self, values, dt, frames):
        """Positions and velocities at the frames by the references; values may be complex."""
        mass = values.get("mass")
        if mass is None:
            mass = sum(
                module.density_mass(
                    values[f"{name}.rest_positions"],
                    cells,
                    np.broadcast_to(values[f"{name}.density"], len(cells)),
                )
                for name, module, cells in (
                    ("solid", neo_hookean, TETS),
                    ("cloth", neo_hookean_triangles, TRIANGLES),
                )
            )
        forces = [self.reference_force(name, values, mass) for name in self.names]
        return rollout(
            values["state.x"], values["state.v"], mass, forces, dt, self.n_steps,
            gravity=values["gravity"], pinned=self.model.pinned, frames=frames,
        )  # fmt: skip

    def reference_force(self, name, values, mass):
        """One force as a function of step, positions and velocities."""
        parameters = {
            path.removeprefix(f"{name}."): value
            for path, value in values.items()
            if path.startswith(f"{name}.")
        }
        parameters.pop("density", None)
        force = self.model.forces[name]

        def at(k, key, full):
            return row(getattr(force, key), parameters[key], full, k)

        def given(key):
            return {other: value for other, value in parameters.items() if other != key}

        def evaluate(k, x, v):
            n = len(force.nodes) if name != "floor" else 0
            if name in ACTUATED:
                a, (module, cells) = at(k, "actuation", (n,)), ACTUATED[name]
                return module.forces(x, v, actuation=a, **cells, **given("actuation"))
            if name == "rope":
                return springs.forces(x, v, ROPES, **parameters)
            if name == "air":
                return lift_drag.forces(
                    x, v, TRIANGLES, parameters["lift"], parameters["drag"], at(k, "wind", (n, 3))
                )
            if name == "drag":
                return linear_drag.forces(v, mass, force.rows, parameters["rate"])
            if name == "load":
                rows = at(k, "force", (n, 3))
                return external.forces(k, N, force.load_nodes, rows, force.window)
            return half_space.forces(x, v, nodes=force.contact_nodes, **parameters)

        return evaluate


def row(given, values, full_shape, k):
    """Row k of a constant, a series, or a signal with other values, one number after another."""
    if isinstance(given, Signal):
        knots = given.knots.tolist()
        i = max((j for j, knot in enumerate(knots) if knot <= k), default=None)
        if i is None or i == len(knots) - 1:
            at = values[0 if i is None else i]
        else:
            t = (k - knots[i]) / (knots[i + 1] - knots[i])
            at = values[i] + t * (values[i + 1] - values[i])
    else:
        at = values[k] if np.ndim(values) > len(full_shape) else values
    return np.broadcast_to(at, full_shape)
