"""How far a point is from the nearest kink or jump: as far as a gradient describes a loss.

A margin is a number that changes sign at a kink: the penetration of a node that is about to
touch, the speed by which a step misses the edge of the friction cone. A rollout's loss has a
kink, or with contact damping a jump, where a touch moves to another step, and its gradient
knows nothing of it. To first order a margin m is zero after |m|/|dm/dx| along a direction.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjoint.vectors import Point, Vector, unit
from adjsim.contact_margins import contact_margins
from adjsim.model import Model, State
from adjsim.rollout import check_rollout, rollout


PROBE = 1e-7  # step of the differences of margins, in units of x


def kink_distance(
    margins: Callable[..., np.ndarray],
    x: Vector,
    *,
    gradient: Vector | None = None,
    n_directions: int = 4,
    scale: Vector | None = None,
    seed: int = 0,
) -> float:
    """Return how far x may go in a unit direction before the first margin changes sign.

    The least |m|/|dm/dx| over random directions, to first order, with central differences.

    Parameters
    ----------
    margins : callable
        Takes x, returns numbers each of which changes sign at a kink; NaN for none.
        `rollout_margins` gives those of contact.
    x : array, or mapping of names to arrays
        The point.
    gradient : like x, optional
        Looked along as well, unless it is zero.
    n_directions : int
        Random directions looked along.
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block.
    seed : int

    Returns
    -------
    float
        In units of `scale`; inf where no margin moves. Steps of `gradcheck` and `taylor_test`
        stay inside when it is given to them.

    Raises
    ------
    ValueError
        If x is not finite, or the gradient is not laid out like x.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import kink_distance
    >>> print(round(kink_distance(lambda x: x - 0.75, np.array([1.0])), 6))  # of max(x, 0.75)
    0.25
    """
    point, rng = Point.of(x, scale), np.random.default_rng(seed)
    at_x = np.ravel(margins(point.layout.restore(point.flat)))
    if not np.isfinite(at_x).any():
        return float("inf")
    directions = [unit(rng, point.flat.size) for _ in range(n_directions)]
    if gradient is not None:
        G = point.scale * point.layout.flat("gradient", gradient)
        norm = float(np.linalg.norm(G))
        directions += [G / norm] if 0.0 < norm < np.inf else []
    distance = float("inf")
    for direction in directions:
        ahead, behind = (
            np.ravel(margins(point.at(point.scale * direction, sign * PROBE)))
            for sign in (1.0, -1.0)
        )
        rate = np.abs(ahead - behind) / (2.0 * PROBE)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(at_x) / rate
        distance = min(distance, float(np.min(ratio[np.isfinite(ratio)], initial=np.inf)))
    return distance


def rollout_margins(
    model: Model, state: State, dt: float, n_steps: int
) -> Callable[[Mapping[str, Any]], np.ndarray]:
    """Return the function from values of parameters by path to all margins of contact.

    Parameters
    ----------
    model, state, dt, n_steps
        As of `adjsim.rollout`. Every state that a contact force was computed for is looked at.

    Returns
    -------
    callable
        For `kink_distance`: takes a mapping, as `model.with_values` does, and returns the
        margins of `adjsim.contact_margins.ContactMargins`, flat; none without contact.

    Examples
    --------
    >>> from adjoint import kink_distance, rollout_margins
    >>> from adjsim import Model, State
    >>> from adjsim.forces import HalfSpaceContact
    >>> model = Model(mass=[2.0], forces={"floor": HalfSpaceContact(stiffness=1e4)})
    >>> margins = rollout_margins(model, State([[0.0, 6.0, 0.0]]), 0.1, 10)
    >>> print(round(kink_distance(margins, {"state.x": [[0.0, 6.0, 0.0]]}), 3))  # of 3.46 m
    0.561
    """
    n_steps = check_rollout(model, state, dt, n_steps)

    def margins(values: Mapping[str, Any]) -> np.ndarray:
        moved, start = model.with_values(state, values)
        run = rollout(moved, start, dt, n_steps, frames=range(n_steps))
        contacts = contact_margins(moved, run).values()
        return np.concatenate([np.zeros(0), *(contact.all() for contact in contacts)])

    return margins
