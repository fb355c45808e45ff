"""Every complaint of models, states, rollouts and their gradients names the argument."""

from dataclasses import replace

import numpy as np
import pytest

from adjoint.forces.neo_hookean import ELASTIC_TWIN, SolidTetsTwin
from adjoint.forces.registry import register
from adjoint.rollout import record, rollout_jvp
from adjsim.courses import Signal
from adjsim.engine.stepper import RolloutError
from adjsim.forces.element import Force
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import ELASTIC, NeoHookeanTets
from adjsim.model import Model, State
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.rigid.pose import BodyState
from adjsim.rollout import rollout


MODEL = Model(np.ones(4), {"floor": HalfSpaceContact()})
STATE = State(np.zeros((4, 3)))


class Orphan(HalfSpaceContact):
    """A force of which no adjoint is registered."""


class Stiff(HalfSpaceContact):
    """A force of a kind without a tangent."""

    KIND = replace(HalfSpaceContact.KIND, name="stiff", jvp=None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mass": []}, "`mass` must not be empty"),
        ({"mass": [1.0, 0.0]}, "`mass` must be positive, got 0"),
        ({"mass": [1.0, -2.0]}, "`mass` must be positive, got -2"),
        ({"mass": [1.0, np.nan]}, r"`mass` must be finite, got nan at index \(1,\)"),
        ({"mass": 1.0}, r"`mass` must have shape \(n_nodes,\), got \(\)"),
        ({"gravity": -9.8}, r"`gravity` must have shape \(3,\), got \(\)"),
        ({"mass": [1.0, 2.0 + 1.0j]}, "`mass` must be an array of float64: it has complex"),
        ({"mass": np.ma.array([1.0, 2.0], mask=[0, 1])}, "`mass` must be .* or masked"),
        ({"gravity": (0, np.inf, 0)}, "`gravity` must be finite, got inf"),
        ({"pinned": [0]}, r"`pinned` must be a mask .* bool; got \(1,\) int64. From indices"),
        ({"pinned": np.ones(3, bool)}, r"`pinned` must be a mask of shape \(n_nodes,\) = \(4,\)"),
        ({"forces": {"gravity": HalfSpaceContact()}}, "`forces` must have names .* 'gravity'"),
        ({"forces": {"a b": HalfSpaceContact()}}, "`forces` must have names .* got 'a b'"),
    ],
)
def test_a_bad_model_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        Model(**{"mass": np.ones(4), **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forces": [HalfSpaceContact()]}, "`forces` must be a mapping, such as .* got list"),
        ({"bodies": [1]}, "`bodies` must be a mapping, such as .* got list"),
        ({"forces": {1: HalfSpaceContact()}}, "`forces` must have names .* got 1"),
    ],
)
def test_forces_and_bodies_go_by_their_names(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Model(np.ones(4), **given)


@pytest.mark.parametrize("state", [np.zeros((4, 3)), PendulumState(0.0), None])
def test_a_state_must_be_one(state):
    with pytest.raises(TypeError, match=f"`state` must be a State, got {type(state).__name__}"):
        rollout(MODEL, state, 0.1, 3)


def test_a_force_must_be_one():
    with pytest.raises(TypeError, match=r"`forces\['floor'\]` must be a Force, got dict"):
        Model(np.ones(4), {"floor": {}})
    assert issubclass(HalfSpaceContact, Force)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": np.zeros(3)}, r"`x` must have shape \(n_nodes, 3\), got \(3,\)"),
        ({"x": np.full((2, 3), np.nan)}, "`x` must be finite, got nan"),
        ({"x": np.zeros((2, 3)), "v": np.zeros((3, 3))}, r"`v` must have shape \(2, 3\), got"),
        ({"x": np.zeros((2, 3)), "v": np.full((2, 3), np.inf)}, "`v` must be finite, got inf"),
    ],
)
def test_a_bad_state_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        State(**given)


def test_states_of_bodies_go_by_the_names_of_their_sets():
    with pytest.raises(TypeError, match=r"`bodies` must be a mapping, such as .*, got list"):
        State(bodies=[BodyState((0.0, 0.0, 0.0))])


def test_a_value_that_does_not_serve_is_named_with_its_force():
    with pytest.raises(ValueError, match="In `floor`: `friction` must not be negative, got -1"):
        MODEL.with_values(STATE, {"floor.friction": -1.0})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dt": 0.0}, "`dt` must be positive, got 0"),
        ({"dt": -1.0}, "`dt` must be positive, got -1"),
        ({"dt": np.nan}, "`dt` must be finite, got nan"),
        ({"dt": [0.1]}, r"`dt` must have shape \(\), got \(1,\)"),
        ({"n_steps": 0}, "`n_steps` must be a whole number of at least 1, got 0"),
        ({"n_steps": 2.5}, "`n_steps` must be a whole number of at least 1, got 2.5"),
        ({"state": State(np.zeros((3, 3)))}, r"`state.x` .* expected \(4, 3\), got \(3, 3\)"),
        ({"n_steps": True}, "`n_steps` must be a whole number of at least 1, got True"),
        ({"frames": []}, "`frames` must be a list of step numbers"),
        ({"frames": [[1], [1, 2]]}, r"`frames` must be a list of step numbers, got \[\[1\]"),
        ({"frames": 3}, "`frames` must be a list of step numbers, got 3"),
        ({"frames": [0.5]}, "`frames` must be a list of step numbers"),
        ({"frames": [2, 1]}, "`frames` must increase from 0 .* n_steps = 3, got"),
        ({"frames": [1, 1]}, "`frames` must increase"),
        ({"frames": [-1, 1]}, "`frames` must increase"),
        ({"frames": [4]}, "`frames` must increase .* at most n_steps = 3"),
        ({"frames": np.array([2, 1], np.uint8)}, "`frames` must increase"),
        ({"dtype": "float16"}, "`dtype` must be float64 or float32, got float16"),
        ({"dtype": "double precision"}, "`dtype` must be float64 or float32, got 'double p"),
        ({"threads": 0}, "`threads` must be a whole number of at least 1, got 0"),
        ({"threads": 1.5}, "`threads` must be a whole number of at least 1, got 1.5"),
        ({"threads": True}, "`threads` must be a whole number of at least 1, got True"),
        ({"device": "tpu"}, "`device` must be cpu or cuda, got 'tpu'"),
        ({"device": ["cpu"]}, r"`device` must be cpu or cuda, got \['cpu'\]"),
    ],
)
@pytest.mark.parametrize("verb", ["rollout", "record", "rollout_jvp"])
def test_a_bad_argument_of_any_verb_is_named(verb, given, message):
    options = {"model": MODEL, "state": STATE, "dt": 0.1, "n_steps": 3, **given}
    call = {"rollout": rollout, "record": record, "rollout_jvp": rollout_jvp}[verb]
    if verb == "rollout_jvp":
        options["tangents"] = {}
    with pytest.raises(ValueError, match=message):
        call(**options)


def test_a_bad_cotangent_is_named():
    run = record(MODEL, STATE, 0.1, 3)
    with pytest.raises(ValueError, match=r"`adj_x` must have shape \(1, 4, 3\), got \(4, 3\)"):
        run.vjp(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="`adj_v` must be finite, got nan"):
        run.vjp(np.zeros((1, 4, 3)), np.full((1, 4, 3), np.nan))
    with pytest.raises(ValueError, match="`adj_x` must be given once, in order or by name"):
        run.vjp(np.zeros((1, 4, 3)), adj_x=np.zeros((1, 4, 3)))
    with pytest.raises(ValueError, match="The cotangents must be `adj_x` and `adj_v`, got 3"):
        run.vjp(None, None, None)
    swings = record(SimplePendulum(1.0), PendulumState(0.3), 0.1, 3)
    with pytest.raises(ValueError, match=r"Unknown cotangent `adj_x`.* Known: adj_angle, adj_rate"):
        swings.vjp(adj_x=[0.0])
    with pytest.raises(ValueError, match=r"`adj_rate` must have shape \(1,\), got \(\)"):
        swings.vjp(adj_rate=0.0)


def test_an_unknown_path_is_answered_with_the_nearest_one():
    run = record(MODEL, STATE, 0.1, 3)
    with pytest.raises(ValueError, match=r"`floor.frictoin`. Did you mean `floor.friction`\?"):
        run.vjp(np.zeros((1, 4, 3)), wrt=["floor.frictoin"])
    with pytest.raises(ValueError, match=r"`floor.hight`. Did you mean `floor.height`\?"):
        rollout_jvp(MODEL, STATE, 0.1, 3, {"floor.hight": 1.0})
    with pytest.raises(TypeError, match=r"`wrt` must be a sequence of paths, .* \['mass'\]"):
        run.vjp(np.zeros((1, 4, 3)), wrt="mass")
    with pytest.raises(ValueError, match="Unknown parameter `3`"):
        run.vjp(np.zeros((1, 4, 3)), wrt=[3])


def test_a_bad_tangent_is_named():
    with pytest.raises(
        ValueError, match=r"`tangents\['mass'\]` must have shape \(4,\), got \(3,\)"
    ):
        rollout_jvp(MODEL, STATE, 0.1, 3, {"mass": np.zeros(3)})
    with pytest.raises(ValueError, match=r"`tangents\['gravity'\]` must be finite"):
        rollout_jvp(MODEL, STATE, 0.1, 3, {"gravity": np.full(3, np.nan)})
    with pytest.raises(TypeError, match=r"`tangents` must be a mapping, such as .* got list"):
        rollout_jvp(MODEL, STATE, 0.1, 3, ["gravity"])


@pytest.mark.parametrize("checkpoint", ["much", "10", "1B", -5])
def test_a_bad_checkpoint_is_named(checkpoint):
    with pytest.raises(ValueError, match="`checkpoint`"):
        record(MODEL, STATE, 0.1, 3, checkpoint=checkpoint)


def test_a_force_without_an_adjoint_says_what_to_write():
    model = Model(np.ones(4), {"floor": Orphan()})
    with pytest.raises(TypeError, match=r"registered for `Orphan`. Write its twin, and call"):
        record(model, STATE, 0.1, 1).vjp(np.ones((1, 4, 3)))
    assert not rollout_jvp(model, STATE, 0.1, 1, {})[1].x.any()


def test_a_kind_without_a_tangent_says_what_to_write():
    model = Model(np.ones(4), {"floor": Stiff()})
    rollout(model, STATE, 0.1, 1)
    with pytest.raises(TypeError, match="`stiff` is a kind of force without a tangent"):
        rollout_jvp(model, STATE, 0.1, 1, {})


def test_a_kind_without_a_tangent_of_its_rest_shape_is_not_one_of_zeros():
    class Odd(NeoHookeanTets):
        kind = replace(ELASTIC, name="odd", jvp_consts=None)

    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    model = Model(None, {"odd": Odd([(0, 1, 2, 3)], x, 1e3, 1e3, density=1e3)})
    rollout_jvp(model, State(x), 1e-4, 1, {"odd.mu": 1.0})
    with pytest.raises(TypeError, match="`odd` is a kind of force without a tangent of its rest"):
        rollout_jvp(model, State(x), 1e-4, 1, {"odd.rest_positions": 0.1 * x})


def test_a_kind_without_an_adjoint_of_its_rest_shape_is_not_one_of_zeros(monkeypatch):
    class Odd(NeoHookeanTets):
        kind = replace(ELASTIC, name="odd")

    class OddTwin(SolidTetsTwin):
        def twin_kind(self, force):
            return replace(ELASTIC_TWIN, kind=force.kind, vjp_consts=None)

    register(Odd, OddTwin())
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    model = Model(None, {"odd": Odd([(0, 1, 2, 3)], x, 1e3, 1e3, density=1e3)})
    run = record(model, State(x), 1e-4, 1)
    run.vjp(x[None], wrt=["odd.mu"])
    with pytest.raises(TypeError, match="`odd` is a kind of force without an adjoint of its rest"):
        run.vjp(x[None], wrt=["odd.rest_positions"])


PUSH = ExternalForces([0], Signal([0.0, 1.0], np.ones((2, 3))))  # 0 times inf in its sums


@pytest.mark.parametrize("force", [HalfSpaceContact(), PUSH])
def test_a_gradient_that_overflows_names_its_parameter(force):
    run = record(Model(np.ones(4), {"force": force}), STATE, 1e-1, 2)
    huge = np.full(run.trajectory.x.shape, 1.7e308)
    with pytest.raises(RolloutError, match=r"gradient of `.*` left the finite numbers"):
        run.vjp(huge, huge)
