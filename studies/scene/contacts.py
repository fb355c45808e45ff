r"""Contact numbers that are chosen from the masses and sizes of what touches.

A point of effective mass m that arrives at speed u sinks u e/omega deep into a contact of
stiffness k = m omega^2 and damping 2 zeta m omega that acts while it approaches, and leaves at the
speed e u (both exact for a single point):

    e = exp(-zeta/sqrt(1 - zeta^2) acos zeta) = 0.5      at zeta = 0.6

Rigid bodies touch with few points, so one point may carry all of the body: m is its mass, and

    k = m (e u/(d L))^2,  u^2 = 8 g L + |v|^2,  d = 0.005

lets a body of size L that falls from four times its size, or that starts with its declared velocity
v, sink at most d L deep on one point. Several points sink less. Of a body made of nodes each node
touches for itself: m is the node's mass, and k the larger of

    k = s k_node,  s = 1/2           k_node: what its elements hold it with, so that a step is
                                     hardly shorter with contact than without
    k = m 2e4 g/L                    so that a load of 100 times its weight presses it d L deep

Both have the damping k_d = 2 zeta sqrt(k m), and as much for the slope of friction, k_f = k_d,
which costs no shorter steps. A body that should stick creeps at the speed (its tangential load)/k_f
per touching point: of rigid bodies below 1e-3 sqrt(g L). The numbers are those of the declared
values: they stay where a search changes material or mass.

Tests: `tests/studies/scene/test_contacts.py`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


DEPTH = 0.005  # of a body's size
ZETA = 0.6
RESTITUTION = float(np.exp(-ZETA / np.sqrt(1.0 - ZETA**2) * np.arccos(ZETA)))
NODE_PART = 0.5  # of the stiffness of a node's elements
NODE_RATE2 = 2e4  # [g/L]
GRAVITY = 9.81  # where a scene has none


@dataclass(frozen=True, eq=False)
class Touching:
    """A body as a contact sees it.

    Attributes
    ----------
    name : str
    is_rigid : bool
    nodes : ndarray or None
        Rows of the model, or numbers of the body's vertices, that may touch; None: all.
    points : ndarray
        Where they are in the declared pose, (n, 3) [m].
    mass : array
        Of a rigid body (), or of the nodes (n,) [kg].
    held_with : array
        Stiffness of the elements at each node, (n,) [N/m]; 0 of rigid bodies.
    size, speed : float
        L [m] and |v| [m/s].
    """

    name: str
    is_rigid: bool
    nodes: np.ndarray | None
    points: np.ndarray
    mass: Any
    held_with: Any
    size: float
    speed: float


def chosen_stiffness(body: Touching, gravity: float) -> np.ndarray:
    """Return k for each point, () of a rigid body or (n,) [N/m]; `gravity` in m/s2."""
    g = gravity or GRAVITY
    if body.is_rigid:
        u = np.sqrt(8.0 * g * body.size + body.speed**2)
        return np.asarray(body.mass * (RESTITUTION * u / (DEPTH * body.size)) ** 2)
    return np.maximum(NODE_PART * body.held_with, body.mass * NODE_RATE2 * g / body.size)


def chosen_damping(body: Touching, stiffness: Any) -> np.ndarray:
    """Return k_d, and k_f too, for each point [N s/m]."""
    return np.asarray(2.0 * ZETA * np.sqrt(stiffness * body.mass))
