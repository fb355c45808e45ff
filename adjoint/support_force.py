r"""Adjoint of `adjsim/support_force.py`, which has the tangent: read the two files side by side.

(3) R = sum m (a - g) + s sum f    adj_a += m adj_R,  adj_g -= m adj_R,  adj_m += (a - g) . adj_R,
adj_f = s adj_R, which is pulled through the forces; s = -1 of a grip, 1 of an obstacle
(2) a = (v_{j+1} - v_j)/dt         adj_v_{j+1} += adj_a/dt,  adj_v_j -= adj_a/dt
(1) v_i = (p_i - p_{i-1})/dt       adj_p_i += adj_v_i/dt,  adj_p_{i-1} -= adj_v_i/dt
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from adjoint.engine.sweep import ReverseSweep
from adjoint.field import pull_at, sweep_of
from adjsim.model import Trajectory
from adjsim.rigid.pose import BodyTrajectory
from adjsim.support_force import SupportForce


class PulledForce(NamedTuple):
    """Cotangents of the frames, (n_frames, n_nodes, 3), and of parameters by path."""

    x: np.ndarray
    v: np.ndarray
    bodies: Mapping[str, BodyTrajectory]
    gradient: dict[str, np.ndarray]


def support_force_vjp(
    force: SupportForce, run: Trajectory, adj_force: np.ndarray, wrt: Iterable[str]
) -> PulledForce:
    """Pull a cotangent of R at the frames of a rollout, (n_frames, 3), back.

    Of `wrt` those have a gradient that are among its `parameters`. Those of a state are of the
    start, where the path begins, and not by the frames.
    """
    field, model, nodes = force.field, force.field.model, force.nodes
    parameters = force.parameters
    paths = [path for path in wrt if path in parameters]
    sweep = sweep_of(field, force.state, paths)
    adj, adj_mass = sweep.adj, np.zeros(model.n_nodes)
    start, frames = np.zeros((2, model.n_nodes, 3)), np.zeros((2, *run.x.shape))
    adj_p = np.zeros((len(run.steps), *adj.p.shape))
    for frame, j, here in force.frames(run):
        adj_R = adj_force[frame]
        a = force.acceleration(j, force.state, field.stepper.packed.series)
        # (3) R = sum m (a - g) + s sum f
        adj.gravity[nodes] -= force.mass * adj_R
        adj_mass[nodes] += (a - model.gravity) @ adj_R
        adj_f = np.zeros((model.n_rows, 3))
        adj_f[force.rows] = force.sign * adj_R
        adj.x[:] = adj.v[:] = 0.0
        adj.p[:] = 0.0
        pull_at(field, sweep, field.row(here), adj_f, j)
        frames[:, frame], adj_p[frame] = (adj.x, adj.v), adj.p
        _undo_acceleration(force, sweep, j, adj_R, start)
    adj.x[:], adj.v[:] = start
    adj.p[:] = 0.0
    bodies = {
        name: BodyTrajectory.unpack(adj_p[:, span]) for name, span in model.body_slices().items()
    }
    return PulledForce(frames[0], frames[1], bodies, sweep.gradient(paths, adj_mass))


def _undo_acceleration(
    force: SupportForce, sweep: ReverseSweep, j: int, adj_R: np.ndarray, start: np.ndarray
) -> None:
    """Pull the cotangent of a_j back to the series, and to x and v at the start."""
    led, is_led = force.leads.nodes[force.is_led], force.is_led
    adj_a = force.field.model.mass[led, None] * adj_R
    for i, adj_v in ((j + 1, adj_a / force.dt), (j, -adj_a / force.dt)):  # (2)
        if i == 0:
            start[1][led] += adj_v
            continue
        for m, adj_p in ((i, adj_v / force.dt), (i - 1, -adj_v / force.dt)):  # (1)
            if m:
                sweep.adj.series[force.leads.places(m - 1)[is_led]] += adj_p
            else:
                start[0][led] += adj_p
