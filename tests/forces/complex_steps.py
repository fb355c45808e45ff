"""The gradient of one step against complex steps through a reference."""

import numpy as np

from adjoint.rollout import record
from tests.physics import values_of
from tests.reference import rollout as reference


STEP = 1e-30


def check_one_step(model, state, dt, references, rng, n_components=6, mass=None):
    """Compare the step and its gradient with a reference's, component by component.

    `references(values)` takes every parameter by path, some of them complex, and returns the
    forces as callables (k, x, v) -> (n, 3); `mass`, the node masses where a density feeds them.
    """
    parameters = values_of(model, state)

    def ends(values):
        at = {**parameters, **values}
        return reference.rollout(
            at["state.x"], at["state.v"], mass(at) if mass else at["mass"], references(at), dt, 1,
            gravity=at["gravity"], pinned=model.pinned, frames=[1],
        )  # fmt: skip

    adj_x, adj_v = rng.standard_normal((2, 1, *state.x.shape))
    run = record(model, state, dt, 1)
    for got, expected in zip((run.trajectory.x, run.trajectory.v), ends({}), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    gradient = run.vjp(adj_x, adj_v)
    for path, value in parameters.items():
        assert np.abs(gradient[path]).max() > 0, path
        for k in rng.choice(value.size, min(n_components, value.size), replace=False):
            step = np.zeros(value.shape, complex)
            step.flat[k] = 1j * STEP
            x, v = ends({path: value + step})
            slope = (np.vdot(adj_x, x) + np.vdot(adj_v, v)).imag / STEP
            error = abs(slope - gradient[path].flat[k])
            assert error <= 1e-12 * np.abs(gradient[path]).max(), (path, k)
