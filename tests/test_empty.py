"""Forces without elements: they do nothing, and are no error."""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.linear_drag import LinearDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.springs import Springs
from adjsim.model import Model, State


X = np.eye(3)
EMPTY = {
    "solid": NeoHookeanTets([], X, 1e4, 2e4),
    "viscous": NeoHookeanTets(np.zeros((0, 4), int), X, 1e4, 2e4, viscosity=1.0),
    "sheet": NeoHookeanTriangles([], X, 1e4, 2e4, actuation=np.zeros((4, 0))),
    "bend": Hinges([], X, 1.0),
    "net": Springs([], 1.0, rest_length=1.0, damping=1.0),
    "air": LiftDrag([], 1.0, 1.0),
    "drag": LinearDrag(1.0, []),
    "floor": HalfSpaceContact(contact_nodes=[]),
    "push": ExternalForces([], (1.0, 0.0, 0.0)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*EMPTY, "all"])
def test_forces_without_elements_do_nothing(name, dtype):
    forces = EMPTY if name == "all" else {name: EMPTY[name]}
    model, state = Model(np.ones(3), forces), State(X, X)
    run = record(model, state, 0.1, 4, dtype=dtype)
    free = record(Model(np.ones(3)), state, 0.1, 4, dtype=dtype)
    np.testing.assert_array_equal(run.trajectory.x, free.trajectory.x)
    adj = np.ones_like(run.trajectory.x)
    gradient = run.vjp(adj)
    for path, value in gradient.items():
        if path.split(".")[0] in forces:
            assert value.shape == model.parameters()[path].shape
            assert not value.any()
    np.testing.assert_array_equal(gradient["state.v"], free.vjp(adj)["state.v"])
    tangents = {path: np.ones_like(value) for path, value in model.parameters().items()}
    assert (run.jvp(tangents).x == free.jvp({"gravity": np.ones(3), "mass": np.ones(3)}).x).all()
    assert model.stable_dt() == np.inf
