"""The force of a user's own in `docs/own_force.md` keeps the contract, and its errors help."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adjoint.forces.element import ForceTwin
from adjoint.forces.registry import register
from adjoint.rollout import record
from adjsim.forces.element import Force
from adjsim.forces.springs import Springs
from adjsim.meshes.shapes import shape
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState


DOCS = Path(__file__).resolve().parents[2] / "docs"


def of_docs(name):
    """A module beside the pages of the manual."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Attractor = of_docs("attractor").Attractor
TestAttractor = of_docs("test_attractor").TestAttractor


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strength": -1.0}, "`strength` must not be negative"),
        ({"place": (0.0, np.nan, 0.0)}, "`place` must be finite"),
        ({"strength": [1.0, 2.0]}, r"`it.strength` must have shape \(\) or \(n_elements,\) = \(3,"),
        ({"place": (1.0, 2.0)}, r"`it.place` must have shape \(3,\) or \(n_elements, 3\) = \(3, 3"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        Model(np.ones(3), {"it": Attractor(**{"strength": 1.0, "place": np.zeros(3),
                                              "softening": 0.1} | values)})  # fmt: skip


def test_a_model_with_other_values_has_the_same_force():
    model = Model(np.ones(3), {"it": Attractor(1.0, np.zeros(3), 0.1)})
    assert replace(model, gravity=np.ones(3)).forces["it"] is model.forces["it"]


def test_a_force_without_given_elements_acts_on_every_node_and_body():
    cube = RigidBodies(shape("cube", radius=0.1), mass=2.0)
    force = Attractor(1.0, (1.0, 0.0, 0.0), 0.5, acts_on=("nodes", "cube"))
    model = Model(np.ones(2), {"it": force}, (0.0, 0.0, 0.0), bodies={"cube": cube})
    assert model.forces["it"].nodes.shape == (2 + len(cube.hull), 1)
    run = record(model, State(np.zeros((2, 3)), bodies={"cube": BodyState(np.zeros(3))}), 0.01, 5)
    assert run.trajectory.bodies["cube"].velocity[-1, 0, 0] > 0.0


def test_registration_says_what_it_wants():
    class Other(Springs):
        pass

    model = Model(np.ones(2), {"it": Other([(0, 1)], 1.0, 1.0)})
    run = record(model, State([[0.0, 0.0, 0.0], [1.5, 0.0, 0.0]]), 0.01, 2)
    with pytest.raises(TypeError, match=r"registry.register\(Other, twin\)` beside the class"):
        run.vjp(np.ones((1, 2, 3)))
    with pytest.raises(TypeError, match="`force` must be a subclass of Force, got 3"):
        register(3, ForceTwin())
    with pytest.raises(TypeError, match="`twin` must be a ForceTwin, got type"):
        register(Other, ForceTwin)
    with pytest.raises(TypeError, match="`force` must be a subclass of Force"):
        register(model.forces["it"], ForceTwin())
    assert issubclass(Other, Force)
