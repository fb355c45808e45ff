r"""Adjoint and tangent of `adjsim/forces/grip.py`: read the two files side by side.

    (2) v' = (x' - x)/dt        adj_x' += adj_v'/dt,  adj_x = -adj_v'/dt
    (1) x' = p_k                adj_p_k += adj_x'

and adj_v = 0, so that over all steps adj_p_k = adj_x_k + (adj_v_k - adj_v_{k+1})/dt, k counting
states. Elements write no cotangent of the places: that is the step's.
"""

import numpy as np

from adjoint.examples import Example
from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjsim.courses import Signal
from adjsim.forces.grip import GRIP, Grip
from adjsim.forces.linear_drag import LinearDrag
from adjsim.forces.springs import Springs
from adjsim.jit.backend import device_fn, lit
from adjsim.model import Model, State
from adjsim.tiles.assembly import U_TILE


@device_fn
def grip_vjp(x, v, consts, params, series, adj_f):
    """Pull adj_f back through `grip_force`: to nothing."""
    zero = lit(0, series[0])
    return ((zero, zero, zero),), (), (), (zero, zero, zero)


@device_fn
def undo_led_step(n, o, dt, adj):
    """Undo `led_step` of node n, whose place lies at `o`."""
    place = o
    for c in range(3):
        k = np.uint64(c)
        # (2) v' = (x' - x)/dt
        adj_speed = adj.v[n, k] / dt
        # (1) x' = p_k
        adj.series[place] += adj.x[n, k] + adj_speed
        adj.x[n, k] = -adj_speed
        adj.v[n, k] = lit(0, dt)
        place += U_TILE


def example(n_steps: int) -> Example:
    """Return a damped net between two grips: one that moves from step to step, one by a signal."""
    rng = np.random.default_rng(17)
    x = 0.1 * rng.standard_normal((7, 3))
    edges = np.array([(0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (2, 5), (0, 6)])
    jerks = x[[6, 0]] + 0.002 * rng.standard_normal((n_steps, 2, 3))
    knots = x[[5]] + 0.02 * rng.standard_normal((3, 1, 3))
    forces = {
        "left": Grip([6, 0], jerks),
        "net": Springs(edges, 60.0, damping=0.4, rest_positions=x),
        "right": Grip([5], Signal([-1.0, 6.5, 21.0], knots)),
        "drag": LinearDrag(0.5),
    }
    model = Model(rng.uniform(0.02, 0.05, 7), forces)
    return Example(model, State(x, rng.standard_normal((7, 3))), 2e-3, n_steps)


register(Grip, ForceTwin(TwinKind(GRIP, grip_vjp)), {"grips/net": example})
