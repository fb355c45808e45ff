"""What the tests of the obstacles share: one node's force, its Jacobians, the references."""

import dataclasses

import numpy as np

from adjoint.forces.registry import twin_of
from adjoint.rollout import record
from adjoint.verify.contract import ForceContract, element_input, flat, shaped, units, vectors
from adjsim.contact_margins import contact_margins
from adjsim.forces.acted_rows import ActedRows
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.contact_law import LAW as LAW_NAMES
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.sphere import SphereContact
from adjsim.model import Model, State, Trajectory
from tests.physics import values_of
from tests.reference import half_space, obstacles
from tests.reference.rollout import rollout as reference_rollout


MOTION = ("velocity", "angular_velocity")
DISTANCES = {
    SphereContact: (obstacles.sphere, ("center", "sphere_radius")),
    BoxContact: (obstacles.box, ("center", "rotation", "half_extents")),
    CapsuleContact: (obstacles.capsule, ("center", "rotation", "half_length", "capsule_radius")),
}
CLASSES = (HalfSpaceContact, *DISTANCES)


def element(contact, x, v):
    """The contact bound to one node, and what its element function gets."""
    contact = contact.bind(ActedRows.of_nodes(1), "it")
    return contact, element_input(contact, 0, np.array([x], float), np.array([v], float))


def force_on(contact, x, v=(0.0, 0.0, 0.0)):
    """Force (3,) [N] on one node."""
    contact, point = element(contact, x, v)
    return np.array(contact.kind.force(*point)[0])


def gap_of(contact, x, v=(0.0, 0.0, 0.0)):
    """Normal, penetration and relative velocity of one node."""
    contact, (x, v, _, params, series) = element(contact, x, v)
    n, c, u = contact.GEOMETRY.gap(x[0], v[0], params, series)
    return np.array(n), c, np.array(u)


def jacobians(contact, x, v=(0.0, 0.0, 0.0)):
    """Jacobians (3, n) by x, v, params and series: from tangent, adjoint and differences."""
    contact, point = element(contact, x, v)
    twin, primals = twin_of(contact).twin_kind(contact), (point[0], point[1], *point[3:])
    base, h = flat(primals), 1e-6
    tangent = [flat(contact.kind.jvp(*point, *shaped(unit, primals))) for unit in np.eye(len(base))]
    adjoint = [flat(twin.vjp(*point, vectors([c]))) for c in units(contact)]

    def f(z):
        x_e, v_e, params, series = shaped(z, primals)
        return flat(contact.kind.force(x_e, v_e, (), params, series))

    steps = h * np.eye(len(base))
    differences = [(f(base + step) - f(base - step)) / (2 * h) for step in steps]
    return np.array(tangent).T, np.array(adjoint), np.array(differences).T


def reference_force(contact, values):
    """The function f(k, x, v) of the reference; `values` by name may be complex."""
    tracks = {track.name: track.shape for track in contact.TRACKS}

    def at(k, *names):
        rows = {name: np.asarray(values[name]) for name in names}
        varies = {name for name in names if rows[name].ndim > len(tracks.get(name, (0,) * 9))}
        return {name: row[k] if name in varies else row for name, row in rows.items()}

    def f(k, x, v):
        law = at(k, *(name for name in LAW_NAMES if name in values))
        common = at(k, "radius") | {"nodes": contact.contact_nodes}
        if isinstance(contact, HalfSpaceContact):
            return half_space.forces(x, v, **at(k, "normal", "height", "velocity"), **common, **law)
        distance, names = DISTANCES[type(contact)]
        return obstacles.forces(distance, x, v, **at(k, *names, *MOTION), **common, law=law)

    return f


N_NODES, N_TRIES = 24, 200
LAW = {"stiffness": 300.0, "damping": 6.0, "friction_stiffness": 20.0, "friction": 0.5}
DISSIPATIVE = {"stiffness": 300.0, "dissipation": 0.4, "friction_stiffness": 20.0, "friction": 0.5}

CUBIC = {
    "cubic_stiffness": 3e4, "cubic_dissipation": 1e-2, "friction_stiffness": 20.0, "friction": 0.5,
    "deepest": 0.2,
}  # fmt: skip


def law_of_each(rng, law=LAW):
    """Scalars for each contact, all different."""
    each = rng.uniform(0.8, 1.2, (5, N_NODES))
    law = {name: value * each[k] for k, (name, value) in enumerate(law.items())}
    return law | {"radius": 0.05 * each[4]}


class ObstacleContract(ForceContract):
    """Two dozen nodes in every regime: apart, or stick or slip, approaching or leaving."""

    EXTENT = 0.6  # of the cube of candidates [m]

    def state(self, rng, force):
        n = N_TRIES * N_NODES  # candidate i has the scalars of node i mod N_NODES
        x, v = rng.uniform(-self.EXTENT, self.EXTENT, (n, 3)), rng.uniform(-4.0, 4.0, (n, 3))
        v[rng.random(n) < 0.5] *= 0.1  # slow enough to stick
        scalars = {name: getattr(force, name) for name in force.scalars}
        tiled = {name: np.tile(a, N_TRIES) if a.ndim else a for name, a in scalars.items()}
        margins = margins_of(dataclasses.replace(force, **tiled, contact_nodes=None), x, v)
        # Differences step by 1e-4 of a parameter: none crosses a kink.
        slack = np.array([1.0, 3.0, 100.0] + [1.0] * force.GEOMETRY.n_kinks)  # m, m/s, N
        near = np.abs(margins.all().reshape(len(slack), n) / slack[:, None]) < 1e-3
        slips, leaves = margins.slip[0] > 0.0, margins.leaving[0] > 0.0
        regime = np.where(margins.touch[0] > 0.0, 2 * slips + leaves, 4)
        regime[near.any(axis=0)] = -1
        slot, wanted = np.arange(n) % N_NODES, np.arange(N_NODES) % 5
        chosen = [np.flatnonzero((slot == e) & (regime == wanted[e]))[0] for e in range(N_NODES)]
        return State(x[chosen], v[chosen])

    def test_the_state_has_every_regime_in_it(self, case):
        margins = margins_of(*case)
        deep = margins.touch[0] > 0.0
        assert 0 < deep.sum() < len(deep)
        pairs = zip(margins.slip[0, deep] > 0.0, margins.leaving[0, deep] > 0.0, strict=True)
        assert len(set(pairs)) == 4

    def test_a_moving_obstacle_and_its_gradients_equal_the_reference(self, rng, case):
        contact, x, v = case
        given = {name: float(np.mean(getattr(contact, name))) for name in contact.scalars}
        for track in contact.TRACKS:
            base = np.asarray(getattr(contact, track.name))
            given[track.name] = base + 0.02 * rng.standard_normal((3, *track.shape))
        moving = dataclasses.replace(contact, **given)
        model = Model(rng.uniform(0.5, 2.0, len(x)), {"it": moving}, gravity=(0.3, -9.8, 0.2))
        check_against_reference(rng, model, State(x, v), 0.01, 3)


def margins_of(contact, x, v):
    """Margins of one state."""
    model = Model(np.ones(len(x)), {"it": contact})
    return contact_margins(model, Trajectory(np.array([0]), 1.0, x[None], v[None]))["it"]


def check_against_reference(rng, model, state, dt, n_steps, n_entries=4):
    """Compare ends and gradients with the reference and its complex steps."""
    parameters, contact = values_of(model, state), model.forces["it"]

    def ends(values):
        values = parameters | values
        named = {p.removeprefix("it."): a for p, a in values.items() if p.startswith("it.")}
        x, v = reference_rollout(
            values["state.x"], values["state.v"], values["mass"],
            [reference_force(contact, named)], dt, n_steps,
            gravity=values["gravity"], frames=[n_steps],
        )  # fmt: skip
        return x[0], v[0]

    run = record(model, state, dt, n_steps)
    end_x, end_v = ends({})
    np.testing.assert_allclose(run.trajectory.x[0], end_x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.trajectory.v[0], end_v, rtol=0, atol=1e-12)
    adj_x, adj_v = rng.standard_normal((2, *state.x.shape))
    gradient = run.vjp(adj_x[None], adj_v[None])
    for path, value in parameters.items():
        assert np.abs(gradient[path]).max() > 0.0, path
        for k in rng.permutation(value.size)[:n_entries]:
            step = np.zeros(value.shape, complex)
            step.flat[k] = 1e-30j
            end_x, end_v = ends({path: value + step})
            slope = (np.vdot(adj_x, end_x) + np.vdot(adj_v, end_v)).imag / 1e-30
            error = abs(slope - gradient[path].flat[k])
            assert error <= 1e-11 * np.abs(gradient[path]).max(), (path, k)
