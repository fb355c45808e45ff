r"""The force that holds nodes, and moves them: what a load cell on a grip reads.

    R_k = sum over the held nodes of   m a_j - f(x_k, v_k, theta_j) - m g                       (3)
    a_j = (v_{j+1} - v_j)/dt                                                                   (2)
    v_0 = state.v,   v_i = (p_i - p_{i-1})/dt,   p_0 = state.x                                 (1)

with p_i the places of `adjsim/forces/grip.py` in state i. The step j is the one whose forces are
those of state k: the step that begins there, or of implicit Euler the one that ends there. At rest,
and of nodes that are only pinned, a = 0.

It is the force on the grip's nodes, so that over all nodes the sum of R, of the other forces from
outside and of the weight is the change of momentum, to rounding.

Adjoint: `adjoint/grip_force.py`. Tests: `tests/test_grip_force.py`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.engine.tangent_packing import mass_tangent
from adjsim.field import Field
from adjsim.model import Model, State, Trajectory
from adjsim.steps.field_step import nodes_at
from adjsim.steps.leads import Leads
from adjsim.system import TimeStep


class GripForce:
    """The force that holds some nodes of a model in a rollout, or at rest.

    Parameters
    ----------
    model : Model
        Of nodes alone.
    state : State
        Where the rollout began.
    nodes : array_like
        Pinned nodes, whose forces are added up, (n,).
    dt : float
        Step of the rollout [s].
    n_steps : int
        Of the rollout.
    step : TimeStep, optional
        That it takes. None: the nodes rest, as in an equilibrium.

    Raises
    ------
    ValueError
        If the model has rigid bodies, or a node is not pinned.
    """

    def __init__(
        self, model: Model, state: State, nodes: Any, dt: float, n_steps: int,
        step: TimeStep | None,
    ) -> None:  # fmt: skip
        if checks.instance("model", model, Model).n_bodies:
            raise ValueError(
                "`model` must have nodes alone for the force of a grip, got the rigid bodies "
                f"{', '.join(model.bodies)}."
            )
        self.nodes = checks.integers("nodes", nodes, ("n",))
        if len(np.unique(self.nodes)) < len(self.nodes):
            raise ValueError("`nodes` must name each node once.")
        if not model.pinned[self.nodes].all():
            free = self.nodes[~model.pinned[self.nodes]][0]
            raise ValueError(f"`nodes` must be pinned or led by a grip, but node {free} is free.")
        self.model, self.state, self.dt, self.step = model, state, dt, step
        self.n_steps = n_steps if step else 1
        self.mass = model.mass[self.nodes, None]

    @cached_property
    def field(self) -> Field:
        """The forces at any state."""
        return Field(self.model, n_steps=self.n_steps)

    @cached_property
    def leads(self) -> Leads:
        """The nodes that are led."""
        return Leads(self.field.stepper.packed.led)

    @cached_property
    def is_led(self) -> np.ndarray:
        """Which of the led nodes are among those whose forces are added up, (n_led,)."""
        return np.isin(self.leads.nodes, self.nodes) & (self.step is not None)

    def number(self, k: int) -> int:
        """Return the step j whose forces are those of state k."""
        ends = self.step is not None and self.step.FORCES_AT_END
        return min(max(k - ends, 0), self.n_steps - 1)

    def acceleration(self, j: int, start: Any, series: np.ndarray) -> np.ndarray:
        """Return a_j of all nodes, (n_nodes, 3), linear in the state at the start and the series.

        So it is a tangent, if these are.
        """
        led, out = self.leads.nodes, np.zeros((self.model.n_nodes, 3))

        def place(i: int) -> np.ndarray:
            return series[self.leads.places(i - 1)] if i else start.x[led]

        def velocity(i: int) -> np.ndarray:
            return (place(i) - place(i - 1)) / self.dt if i else start.v[led]  # (1)

        nodes = led[self.is_led]
        if len(nodes):
            out[nodes] = ((velocity(j + 1) - velocity(j)) / self.dt)[self.is_led]  # (2)
        return out

    def at(self, run: Trajectory) -> np.ndarray:
        """Return R at the frames of a rollout, (n_frames, 3) [N]."""
        out = np.empty((len(run.steps), 3))
        for frame, k in enumerate(run.steps.tolist()):
            j, row = self.number(k), nodes_at(run.x[frame], run.v[frame])
            a = self.acceleration(j, self.state, self.field.stepper.packed.series)
            f = self.field.forces_at(row, j)
            force = self.mass * (a[self.nodes] - self.model.gravity) - f[self.nodes]  # (3)
            out[frame] = force.sum(axis=0)
        return out

    def jvp(
        self, run: Trajectory, tan_run: Trajectory, tangents: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the tangent of R, of that of the frames and of tangents of parameters by path."""
        model, tan = self.model, self.field.tangent(self.state, tangents)
        tan_mass = mass_tangent(model, tangents)[self.nodes, None]
        out = np.empty((len(run.steps), 3))
        for frame, k in enumerate(run.steps.tolist()):
            j, row = self.number(k), nodes_at(run.x[frame], run.v[frame])
            a = self.acceleration(j, self.state, self.field.stepper.packed.series)[self.nodes]
            tan_a = self.acceleration(j, tan.tan, tan.tan.series)[self.nodes]
            tan_state = np.array(tan_run.x[frame]), np.array(tan_run.v[frame])
            tan_f = self.field.pushed(tan, row, tan_state, j)[self.nodes]
            tan_force = self.mass * (tan_a - tan.tan.gravity[0]) - tan_f  # (3)
            out[frame] = (tan_force + tan_mass * (a - model.gravity)).sum(axis=0)
        return out
