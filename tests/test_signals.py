"""Everything that may vary in time, in one rollout: gradients of signals end to end.

A body, a cloth with hinges and ropes between them, driven by actuation, wind and given forces,
pushed by an obstacle of every shape that moves and turns. Each of them is a `Signal` with
control points before, between and after the steps.
"""

import numpy as np
import pytest

from adjoint import Binomial, gradcheck, kink_distance, record, rollout_jvp, rollout_margins
from adjsim import Model, Signal, State, rollout
from adjsim.contact_margins import contact_margins
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.sphere import SphereContact
from adjsim.forces.springs import Springs
from tests.mixtures import HINGES, POINTS, ROPES, TETS, TRIANGLES


N_STEPS, DT, FRAMES = 20, 5e-4, (9, 20)
KNOTS = np.array([-2.0, 6.5, 13.0, 24.0])
LAW = {"stiffness": 60.0, "damping": 0.5, "friction_stiffness": 3.0, "friction": 0.5}
DEPTH = 0.02  # of the touching nodes at the start [m]; they move by less than that


class Drawer:
    """Draws signals about a value."""

    def __init__(self):
        self.rng = np.random.default_rng(31)

    def __call__(self, value, size):
        value = np.asarray(value, float)
        return Signal(KNOTS, value + size * self.rng.standard_normal((len(KNOTS), *value.shape)))

    def motion(self, center, turns=True):
        """The pose and the velocities of an obstacle."""
        tracks = {"center": self(center, 1e-3), "velocity": self([0.2, -0.1, 0.3], 0.1)}
        tracks["angular_velocity"] = self([0.5, 1.0, -0.3], 0.3)
        return tracks | ({"rotation": self(np.zeros(3), 0.02)} if turns else {})


def obstacles(about):
    """One of every shape, each below a node of its own or three."""
    x, up = POINTS, np.array([0.1, -0.2, 1.5])
    return {
        "ball": SphereContact(
            sphere_radius=0.1, contact_nodes=[4],
            **about.motion(x[4] - [0.0, 0.0, 0.1 - DEPTH], turns=False), **LAW,
        ),
        "crate": BoxContact(
            half_extents=(0.1, 0.1, 0.05), contact_nodes=[7],
            **about.motion(x[7] - [0.01, 0.02, 0.05 - DEPTH]), **LAW,
        ),
        "rod": CapsuleContact(
            half_length=0.1, capsule_radius=0.1, contact_nodes=[10],
            **about.motion(x[10] - [0.0, 0.03, 0.1 - DEPTH]), **LAW,
        ),
        "floor": HalfSpaceContact(
            normal=about(up, 1e-2), height=about(0.0, 1e-3), velocity=about([0.1, 0.2, 0.1], 0.1),
            radius=0.02, contact_nodes=[0, 1, 2], **LAW,
        ),
    }  # fmt: skip


def driven():
    """The model and its state."""
    about = Drawer()
    forces = {
        "body": NeoHookeanTets(TETS, POINTS, 1e3, 3e3, 2.0, about(0.0, 0.05)),
        "cloth": NeoHookeanTriangles(
            TRIANGLES, POINTS, 30.0, 30.0, 0.02, about(np.zeros(len(TRIANGLES)), 0.05)
        ),
        "bend": Hinges(HINGES, POINTS, 5e-3, 1e-4, actuation=about(0.0, 0.2)),
        "rope": Springs(ROPES, 30.0, rest_positions=POINTS, damping=0.05),
        "air": LiftDrag(TRIANGLES, 0.5, 0.5, about([1.0, 0.5, 2.0], 0.5)),
        "push": ExternalForces([12, 3, 12], about(np.zeros((3, 3)), 0.1), window=(3, 17)),
        **obstacles(about),
    }
    n = len(POINTS)
    model = Model(about.rng.uniform(0.02, 0.04, n), forces, pinned=np.arange(n) == 11)
    x = POINTS + 1e-3 * about.rng.standard_normal(POINTS.shape)
    return model, State(x, 0.2 * about.rng.standard_normal(x.shape))


MODEL, STATE = driven()
SIGNALS = [
    f"{name}.{key}"
    for name, force in MODEL.forces.items()
    for key in force.parameters()
    if isinstance(getattr(force, key), Signal)
]
PARAMETERS = MODEL.parameters()


@pytest.fixture(scope="module")
def adj():
    return np.random.default_rng(32).standard_normal((2, len(FRAMES), *STATE.x.shape))


@pytest.fixture(scope="module")
def gradient(adj):
    return record(MODEL, STATE, DT, N_STEPS, frames=FRAMES).vjp(*adj)


def test_every_track_actuation_wind_and_load_is_a_signal():
    assert len(SIGNALS) == 3 + 4 + 4 + 3 + 3 + 2
    for path in SIGNALS:
        assert PARAMETERS[path].shape[0] == len(KNOTS), path


def test_every_obstacle_pushes_its_nodes_in_every_step():
    run = rollout(MODEL, STATE, DT, N_STEPS, frames=range(N_STEPS))
    for name, margins in contact_margins(MODEL, run).items():
        assert margins.touch.min() > 3e-3, name


@pytest.mark.parametrize("path", SIGNALS)
def test_the_gradient_of_a_signal_is_that_of_its_values(path, adj, gradient):
    values = {path: PARAMETERS[path]}
    assert gradient[path].shape == values[path].shape

    def loss(changed):
        model, state = MODEL.with_values(STATE, changed)
        run = rollout(model, state, DT, N_STEPS, frames=FRAMES)
        return float(np.vdot(adj[0], run.x) + np.vdot(adj[1], run.v))

    slopes = {path: gradient[path]}
    kink = kink_distance(rollout_margins(MODEL, STATE, DT, N_STEPS), values, gradient=slopes)
    check = gradcheck(loss, slopes, values, n_directions=4, step=1e-3, kink=kink)
    assert check.passed, check.table()


def test_tangent_and_adjoint_of_all_signals_are_transposes(adj, gradient):
    rng = np.random.default_rng(33)
    tangents = {path: rng.standard_normal(PARAMETERS[path].shape) for path in SIGNALS}
    _, tan = rollout_jvp(MODEL, STATE, DT, N_STEPS, tangents, frames=FRAMES)
    forth = np.vdot(adj[0], tan.x) + np.vdot(adj[1], tan.v)
    back = [np.vdot(gradient[path], tangent) for path, tangent in tangents.items()]
    assert abs(forth - sum(back)) <= 1e-12 * np.abs(back).sum()


def test_a_checkpointed_gradient_of_signals_has_the_same_bits(adj, gradient):
    run = record(MODEL, STATE, DT, N_STEPS, frames=FRAMES, checkpoint=Binomial(3))
    checkpointed = run.vjp(*adj)
    for path in SIGNALS:
        np.testing.assert_array_equal(checkpointed[path], gradient[path], err_msg=path)
