r"""Adjoint of `adjsim/grip_force.py`, which has the tangent: read the two files side by side.

(3) R = sum m (a - g) - f       adj_a += m adj_R,  adj_g -= m adj_R,  adj_m += (a - g) . adj_R,
adj_f = -adj_R, which is pulled through the forces
(2) a = (v_{j+1} - v_j)/dt      adj_v_{j+1} += adj_a/dt,  adj_v_j -= adj_a/dt
(1) v_i = (p_i - p_{i-1})/dt    adj_p_i += adj_v_i/dt,  adj_p_{i-1} -= adj_v_i/dt
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from adjoint.engine.sweep import ReverseSweep
from adjoint.field import pull_at, sweep_of
from adjsim.grip_force import GripForce
from adjsim.model import Trajectory
from adjsim.steps.field_step import nodes_at


class PulledForce(NamedTuple):
    """Cotangents of the frames, (n_frames, n_nodes, 3), and of parameters by path."""

    x: np.ndarray
    v: np.ndarray
    gradient: dict[str, np.ndarray]


def grip_force_vjp(
    grip: GripForce, run: Trajectory, adj_force: np.ndarray, wrt: Iterable[str]
) -> PulledForce:
    """Pull a cotangent of R at the frames of a rollout, (n_frames, 3), back.

    Those of "state.x" and "state.v" are of the start, where the path begins, and not by the frames.
    """
    model, field, nodes = grip.model, grip.field, grip.nodes
    sweep = sweep_of(field, grip.state, list(wrt))
    adj, adj_mass = sweep.adj, np.zeros(model.n_nodes)
    start, frames = np.zeros((2, model.n_nodes, 3)), np.zeros((2, *run.x.shape))
    for frame, k in enumerate(run.steps.tolist()):
        adj_R, j = adj_force[frame], grip.number(k)
        a = grip.acceleration(j, grip.state, field.stepper.packed.series)[nodes]
        # (3) R = sum m (a - g) - f
        adj.gravity[nodes] -= grip.mass * adj_R
        adj_mass[nodes] += (a - model.gravity) @ adj_R
        adj_f = np.zeros((model.n_rows, 3))
        adj_f[nodes] = -adj_R
        adj.x[:] = adj.v[:] = 0.0
        pull_at(field, sweep, nodes_at(run.x[frame], run.v[frame]), adj_f, j)
        frames[:, frame] = adj.x, adj.v
        _undo_acceleration(grip, sweep, j, adj_R, start)
    adj.x[:], adj.v[:] = start
    return PulledForce(frames[0], frames[1], sweep.gradient(list(wrt), adj_mass))


def _undo_acceleration(
    grip: GripForce, sweep: ReverseSweep, j: int, adj_R: np.ndarray, start: np.ndarray
) -> None:
    """Pull the cotangent of a_j back to the series, and to x and v at the start."""
    led, is_led = grip.leads.nodes[grip.is_led], grip.is_led
    adj_a = grip.model.mass[led, None] * adj_R
    for i, adj_v in ((j + 1, adj_a / grip.dt), (j, -adj_a / grip.dt)):  # (2)
        if i == 0:
            start[1][led] += adj_v
            continue
        for m, adj_p in ((i, adj_v / grip.dt), (i - 1, -adj_v / grip.dt)):  # (1)
            if m:
                sweep.adj.series[grip.leads.places(m - 1)[is_led]] += adj_p
            else:
                start[0][led] += adj_p
