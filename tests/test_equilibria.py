"""Equilibria along a path: a tensile test against its closed form, derivatives."""

import numpy as np

from adjoint.equilibria import equilibria_jvp, equilibria_vjp
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjsim.courses import Signal
from adjsim.equilibria import equilibria
from adjsim.forces.grip import Grip
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State, Trajectory
from adjsim.support_force import GripForce


E, NU, STRAIN, LOADS = 1e5, 0.3, 2e-4, 10
MESH = box_tets((3, 1, 1), (0.15, 0.05, 0.05))
X = MESH.points
STRETCHED = X * (1.0 + STRAIN, 1.0 - NU * STRAIN, 1.0 - NU * STRAIN)
ENDS = np.flatnonzero((X[:, 0] == 0.0) | (X[:, 0] == X[:, 0].max()))


def bar(path, gravity=(0.0, 0.0, 0.0)):
    """A bar whose ends a grip moves."""
    solid = NeoHookeanTets.from_young(MESH.tets, X, E, NU, density=1000.0)
    return Model(None, {"bar": solid, "grip": Grip(ENDS, path)}, gravity=gravity)


def test_a_tensile_test_in_ten_loads_has_E_A_strain():
    model = bar(Signal([-1.0, LOADS - 1.0], [X[ENDS], STRETCHED[ENDS]]))
    solved = equilibria(model, State(X), range(LOADS + 1), LOADS)
    share = np.arange(LOADS + 1) / LOADS
    places = X + share[:, None, None] * (STRETCHED - X)
    np.testing.assert_allclose(solved.x, places, atol=0.2 * STRAIN**2)
    run = Trajectory(np.arange(LOADS + 1), 1.0, solved.x, np.zeros_like(solved.x))
    pulled, still = ENDS[X[ENDS, 0] > 0.1], solved.by_state[0].field.model
    R = GripForce(still, State(X), pulled, 1.0, 1, None).at(run)
    # The law leaves linear elasticity by a few times the square of the strain.
    np.testing.assert_allclose(
        R[:, 0], E * 0.05**2 * STRAIN * share, atol=5 * E * 0.05**2 * STRAIN**2
    )


def test_derivatives_along_a_path_agree_with_each_other_and_with_differences(rng):
    knots = X[ENDS] + 0.005 * rng.standard_normal((3, len(ENDS), 3))
    model, states = bar(Signal([-1.0, 1.5, 4.0], knots), (0.3, -9.8, 0.1)), [0, 2, 3, 5]
    start = State(X + 0.001 * rng.standard_normal(X.shape))
    solved = equilibria(model, start, states, 5)
    adj = rng.standard_normal(solved.x.shape)
    gradient = equilibria_vjp(solved, adj)
    assert np.abs(gradient["grip.positions"]).max() > 0.0
    for path in ("bar.mu", "grip.positions", "state.x", "gravity", "bar.density"):
        at = {**model.parameters(), **model.state_parameters(start)}[path]

        def push(tangent, path=path):
            return equilibria_jvp(solved, {path: tangent})

        def pull(adj, path=path):
            return equilibria_vjp(solved, adj, [path])[path]

        def loss(value, path=path):
            moved = equilibria(*model.with_values(start, {path: value}), states, 5)
            return float(np.sum(adj * moved.x))

        assert dot_test(push, pull, at, tolerance=1e-12).passed
        assert gradcheck(loss, gradient[path], at, tolerance=1e-6, n_directions=4).passed


def test_without_grips_all_states_are_alike():
    held = Model(None, {"bar": bar(X[ENDS]).forces["bar"]}, pinned=X[:, 0] == 0.0)
    solved = equilibria(held, State(X), [0, 4], 5)
    assert solved.by_state[0] is solved.by_state[1]
    adj = np.ones(solved.x.shape)
    twice = equilibria_vjp(solved, adj, ["gravity"])["gravity"]
    tan = equilibria_jvp(solved, {"gravity": np.ones(3)})
    np.testing.assert_allclose(twice.sum(), np.sum(adj * tan), rtol=1e-12)
