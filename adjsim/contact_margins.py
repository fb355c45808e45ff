"""How far a rollout is from the events at which a contact force jumps or has a kink.

When a touch moves to another step, a loss of a rollout has a kink, and with a damping k_d a jump.
Its gradient knows nothing of it: a gradient describes the loss only as far as the nearest event.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adjsim.forces.margins import ContactMargins
from adjsim.model import Model, Trajectory
from adjsim.rigid.placing import point_states


@dataclass(frozen=True)
class NearestTouch:
    """The node and frame nearest to beginning or ceasing to touch.

    Attributes
    ----------
    force : str
        Name of the contact.
    node, step : int
        Which node, or vertex of the bodies in `acts_on`, and in which state.
    distance : float
        |c| [m]: every touch stays in its step while no contact changes its c by as much.
    speed : float
        |u_n| of the node there [m/s]; distance/(speed dt) is the part of a step that is left.
    """

    force: str
    node: int
    step: int
    distance: float
    speed: float

    def sentence(self, dt: float) -> str:
        """Return the event in a sentence; `dt` is the step [s]."""
        left = f", {self.distance / (self.speed * dt):.1g} steps at its speed" if self.speed else ""
        return (
            f"nearest touch: point {self.node} of `{self.force}` in state {self.step}, "
            f"{self.distance:.1e} m away{left}"
        )


def contact_margins(model: Model, trajectory: Trajectory) -> dict[str, ContactMargins]:
    """Return the margins of every contact of a model, by the name of the force.

    Parameters
    ----------
    model : Model
    trajectory : Trajectory
        States of a rollout of the model. Events between its frames are not seen: roll out
        with `frames=range(n_steps)` to look at every state that a force was computed for.

    Returns
    -------
    dict
        Empty for a model without contact.

    Raises
    ------
    ValueError
        If the trajectory does not have the model's nodes and bodies.
    """
    if trajectory.x.shape[1:] != (model.n_nodes, 3):
        raise ValueError(
            f"`trajectory` must have the model's {model.n_nodes} nodes, got x of shape "
            f"{trajectory.x.shape}."
        )
    if set(trajectory.bodies) != set(model.bodies):
        raise ValueError(
            f"`trajectory` must have the model's bodies, {', '.join(model.bodies) or 'none'}; got "
            f"{', '.join(trajectory.bodies) or 'none'}."
        )
    contacts = {name: force for name, force in model.forces.items() if force.touches}
    states = trajectory.bodies
    points = [point_states(bodies, states[name]) for name, bodies in model.bodies.items()]
    both = zip((trajectory.x, trajectory.v), *points, strict=True)  # rows as in the rollout
    x, v = (np.ascontiguousarray(np.concatenate(arrays, axis=1), np.float64) for arrays in both)
    return {name: force.margins(trajectory.steps, x, v) for name, force in contacts.items()}


def stable_dt_along(model: Model, trajectory: Trajectory) -> float:
    """Estimate the largest stable step [s] where contacts are as deep as in a rollout.

    `Model.stable_dt` knows only how deep a point sinks by itself. Where its neighbours press a
    light one deeper, it is damped more. Parameters and errors as of `contact_margins`.
    """
    deeper = {
        name: model.forces[name].with_depths(np.fmax.reduce(margins.touch, axis=0, initial=0.0))
        for name, margins in contact_margins(model, trajectory).items()
    }
    return replace(model, forces={**model.forces, **deeper}).stable_dt()


def nearest_touch(model: Model, trajectory: Trajectory) -> NearestTouch | None:
    """Return the event nearest to happening in another step; None if nothing is near a touch.

    Parameters and errors as of `contact_margins`.
    """
    return min(_nearest(contact_margins(model, trajectory)), key=lambda t: t.distance, default=None)


def _nearest(margins: dict[str, ContactMargins]) -> Iterator[NearestTouch]:
    for name, contact in margins.items():
        if not np.isfinite(contact.touch).any():
            continue
        at, node, step = contact.least(np.abs(contact.touch))
        yield NearestTouch(
            force=name,
            node=node,
            step=step,
            distance=float(abs(contact.touch[at])),
            speed=float(abs(contact.leaving[at])),
        )
