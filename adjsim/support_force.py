r"""The force of a grip or of an obstacle on the bodies: what a load cell behind it reads.

    grip       R_k = sum over the held nodes of   m a_j - f(x_k, v_k, theta_j) - m g            (3)
               a_j = (v_{j+1} - v_j)/dt                                                        (2)
               v_0 = state.v,   v_i = (p_i - p_{i-1})/dt,   p_0 = state.x                        (1)
    obstacle   R_k = sum over the points that touch it of   c(x_k, v_k, theta_j)                 (3)

with p_i the places of `adjsim/forces/grip.py` in state i, f all forces, and c those of the
obstacle's contacts alone (`adjsim/forces/contact_law.py`). The step j is the one whose forces are
those of state k: the step that begins there, or of implicit Euler the one that ends there. At rest
an obstacle is where row k of its series puts it in state k (`adjsim/equilibria.py`); a = 0 there,
and of nodes that are only pinned.

Over all grips and obstacles the sum of R, of the other forces from outside and of the weight is the
change of momentum, to rounding: forces between bodies cancel. A body that carries an obstacle feels
-R, as whoever pushes an indenter does.

Adjoint: `adjoint/support_force.py`. Tests: `tests/test_support_force.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.engine.tangent_packing import mass_tangent, tangent_fields
from adjsim.field import Field
from adjsim.model import Model, State, Trajectory
from adjsim.rigid.pose import BodyState
from adjsim.steps.leads import Leads
from adjsim.system import TimeStep


class SupportForce:
    """The force of a grip or an obstacle on the bodies, in a rollout or at rest.

    Attributes
    ----------
    field : Field
        The forces that count, at any state.
    rows : array
        Of X, whose forces are added up, (n,).
    sign : float
        -1 where R balances these forces, 1 where they are R.
    nodes : array
        Held nodes, whose change of momentum and weight count too, (n_held,).
    step : TimeStep or None
        Of the rollout. None: everything rests.
    """

    def __init__(
        self, field: Field, state: State, rows: np.ndarray, sign: float, nodes: np.ndarray,
        dt: float, step: TimeStep | None,
    ) -> None:  # fmt: skip
        self.field, self.state, self.dt, self.step = field, state, dt, step
        self.rows, self.sign, self.nodes = rows, sign, nodes
        self.mass = field.model.mass[nodes, None]

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """What it depends on beside the frames, by path."""
        model = self.field.model
        return model.parameters() | model.state_parameters(self.state)

    @cached_property
    def leads(self) -> Leads:
        """The nodes that are led."""
        return Leads(self.field.stepper.packed.led)

    @cached_property
    def is_led(self) -> np.ndarray:
        """Which of the led nodes are among `nodes`, (n_led,)."""
        return np.isin(self.leads.nodes, self.nodes) & (self.step is not None)

    def number(self, k: int) -> int:
        """Return the step j whose forces act in state k."""
        ends = self.step is not None and self.step.FORCES_AT_END
        return min(max(k - ends, 0), self.field.stepper.n_steps - 1)

    def frames(self, run: Trajectory) -> Iterator[tuple[int, int, State]]:
        """Yield the number of each frame, j, and its state."""
        for frame, k in enumerate(run.steps.tolist()):
            yield frame, self.number(k), state_at(run, frame)

    def acceleration(self, j: int, start: Any, series: np.ndarray) -> np.ndarray:
        """Return a_j of the held nodes, (n_held, 3), linear in the state at the start and series.

        So it is a tangent, if these are.
        """
        led, out = self.leads.nodes, np.zeros((self.field.model.n_nodes, 3))

        def place(i: int) -> np.ndarray:
            return series[self.leads.places(i - 1)] if i else start.x[led]

        def velocity(i: int) -> np.ndarray:
            return (place(i) - place(i - 1)) / self.dt if i else start.v[led]  # (1)

        moved = led[self.is_led]
        if len(moved):
            out[moved] = ((velocity(j + 1) - velocity(j)) / self.dt)[self.is_led]  # (2)
        return out[self.nodes]

    def at(self, run: Trajectory) -> np.ndarray:
        """Return R at the frames of a rollout, (n_frames, 3) [N]."""
        field, out = self.field, np.empty((len(run.steps), 3))
        for frame, j, here in self.frames(run):
            a = self.acceleration(j, self.state, field.stepper.packed.series)
            f = field.forces_at(field.row(here), j)[self.rows]
            inertia = self.mass * (a - field.model.gravity)
            out[frame] = inertia.sum(axis=0) + self.sign * f.sum(axis=0)  # (3)
        return out

    def jvp(
        self, run: Trajectory, tan_run: Trajectory, tangents: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return the tangent of R, of that of the frames and of tangents of parameters by path."""
        field, model = self.field, self.field.model
        tan = field.tangent(self.state, tangents)
        tan_mass = mass_tangent(model, tangents)[self.nodes, None]
        out = np.empty((len(run.steps), 3))
        for frame, j, here in self.frames(run):
            a = self.acceleration(j, self.state, field.stepper.packed.series)
            tan_a = self.acceleration(j, tan.tan, tan.tan.series)
            p = [body_states.pack()[frame] for body_states in tan_run.bodies.values()]
            x, v = (np.array(fields[frame]) for fields in (tan_run.x, tan_run.v))
            moved = tan.tan._replace(x=x, v=v, p=np.concatenate([tan.tan.p[:0], *p]))
            tan_rows = tangent_fields(field.stepper, here, moved)[:2]
            tan_f = field.pushed(tan, field.row(here), tan_rows, j)[self.rows]
            inertia = self.mass * (tan_a - tan.tan.gravity[0]) + tan_mass * (a - model.gravity)
            out[frame] = inertia.sum(axis=0) + self.sign * tan_f.sum(axis=0)  # (3)
        return out


class GripForce(SupportForce):
    """The force that holds some pinned nodes of a model, (n,), whose forces are added up.

    `state` is where a rollout of `n_steps` steps of `dt` [s] began, which `step` takes; None: the
    nodes rest, as in an equilibrium. Raise a ValueError if a node is not pinned, or named twice.
    """

    def __init__(
        self, model: Model, state: State, nodes: Any, dt: float, n_steps: int,
        step: TimeStep | None,
    ) -> None:  # fmt: skip
        nodes = checks.integers("nodes", nodes, ("n",))
        if len(np.unique(nodes)) < len(nodes):
            raise ValueError("`nodes` must name each node once.")
        if not model.pinned[nodes].all():
            free = nodes[~model.pinned[nodes]][0]
            raise ValueError(f"`nodes` must be pinned or led by a grip, but node {free} is free.")
        field = Field(model, n_steps=n_steps + (step is None))
        super().__init__(field, state, nodes, -1.0, nodes, dt, step)


class ObstacleForce(SupportForce):
    """The force of an obstacle on what touches it, by the names of its contacts in the model.

    It takes the other arguments of `GripForce`. Raise a ValueError if the model has no contact with
    an obstacle by one of the names.
    """

    def __init__(
        self, model: Model, state: State, contacts: Iterable[str], dt: float, n_steps: int,
        step: TimeStep | None,
    ) -> None:  # fmt: skip
        touching = {k: force for k, force in model.forces.items() if len(force.touching_rows)}
        forces = {checks.known_key("contact", name, touching): touching[name] for name in contacts}
        mass = model.mass if model.n_nodes else None
        alone = Model(mass, forces, model.gravity, model.pinned, model.bodies)
        # A series of rows has none for the last state, from which no step begins.
        has_rows = any(force.series_steps() for force in forces.values()) and step is not None
        field = Field(alone, n_steps=n_steps + (not has_rows))
        rows = [force.touching_rows for force in alone.forces.values()]
        none = np.zeros(0, np.int64)
        super().__init__(field, state, np.unique(np.concatenate(rows)), 1.0, none, dt, step)


def state_at(run: Trajectory, frame: int) -> State:
    """Return the state at a frame of a rollout."""
    bodies = {
        name: BodyState(*(field[frame] for field in vars(states).values()))
        for name, states in run.bodies.items()
    }
    return State(run.x[frame], run.v[frame], bodies)
