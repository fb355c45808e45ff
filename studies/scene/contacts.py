r"""Contact numbers that are chosen from the masses and sizes of what touches.

A point of mass m that arrives at speed u in a contact of stiffness k = m omega^2 and dissipation d
sinks sqrt(2 phi(D))/D u/omega deep, D = d u, leaves at the speed e u, and is away after T:

    phi(D) = phi(-D e),  phi(x) = x - log(1 + x)          from v dv = -omega^2 c (1 + d v) dc
    T = tau(D)/omega,    tau(D): when y'' = -y (1 + D y'), y(0) = 0, y'(0) = 1 is 0 again

with the approach v = -u_n. So the restitution e depends on D alone, and is nearer to 1 at lower
speeds. A contact time that is given, and what is chosen, hold at the `speed` of the obstacle, by
default that of a fall from the body's own size L that begins with its declared velocity v:
u^2 = 2 g L + |v|^2.

A contact with a `restitution` has the cubic law instead (`adjsim/forces/pressure_laws.py`), of
the same restitution at every speed. Of an obstacle the depth at the `speed` is the `depth`, by
default 0.01 L. A
touch that sinks in takes a time, so that the flights before and after it would meet behind the
surface, by e T u/(1 + e), which is 1.31 of the depth for e = 1 and 1.16 for 0.3. Such a contact
begins that much before the surface (`MEETING`), where bodies bounce as on a hard one, but no
farther off than a body is at the start. So much longer is also the lever of friction that spins a
ball, 2.5 % by the chosen depth. Its k_f is that of a stiffness m u^2/depth^2, which takes
up as much energy there. The exact gradient of a touch is off by what the place of a step in it
changes: the more, the harder the contact and the longer the steps, so these are shorter than
stability asks (`RESOLVED`).

Rigid bodies touch with few points, so one point may carry all of the body: m is its mass, and

    k = m (u/(2 s L))^2,  s = 0.03,   and d so that e = 0.15: D = 6.64

It then sinks 0.9 s L deep on one point, and 1.4 s L after a fall from four times its size, where e
is 0.075. Several points sink less. With these numbers alone real tosses of a cube are predicted as
well as with fitted ones (`benchmarks/real`).

Of a body made of nodes each node touches for itself: m is the node's mass, and k the larger of

    k = k_node/4         of what its elements hold it with (the sum of their bounds at the node), so
                         that a contact gives way about as much as the layer of elements at it
    k = m 5e3 g/L        so that a load of 100 times its weight presses a node 0.02 L deep

With it the stable step is a half to two thirds of that without contact. A fall from four times the
size then presses a soft ball with E = 1e5 Pa 2.1 % of its size deep and a corner of a soft cube 7
%, where the bodies themselves are strained by a fifth (`test_contacts.py`). What such a body
rebounds by is its elasticity. The chosen d leaves a node half of the speed 0.7 u. With less, or
with a harder contact, each node rattles between the floor and its elements when the body slides,
and the gradient of the motion grows by orders of magnitude. So it does where the step is too long
for the damping at the depth that is reached from four times the size, 2 sqrt(phi(D)/2) m omega,
which the stable step therefore counts (`Contact.deepest`).

The slope of friction k_f is sqrt(k m), times 3 for a rigid body and 1.2 for nodes, which costs no
more of the step than d does. A body that should stick creeps at the speed (its tangential
load)/k_f per touching point: on a slope of 10 degrees a rigid cube at 7e-4 sqrt(g L), a soft one
with E = 1e5 Pa at 4e-3 sqrt(g L). The numbers are those of the declared values: they stay where a
search changes material or mass.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from adjsim.forces.pressure_laws import bounce
from adjsim.stable_step import SINK


DEPTH = SINK  # of a body's size: the stable step counts what touches within it
RESTITUTION = 0.15  # of a rigid body
NODE_LOSS = 1.4327505332713972 / 0.7  # d u of a node: at 0.7 u half of its speed is left
# Of the mean node: one that is lighter is pressed in by those around it, deeper than the time step
# expects of its mass, so it is damped less.
LIGHT = 0.125
FRICTION_RATE, NODE_FRICTION_RATE = 3.0, 1.2  # k_f over sqrt(k m)
NODE_RATE2 = 5e3  # [g/L]
NODE_PART = 0.25  # of what the elements of a node hold it with
GRAVITY = 9.81  # where a scene has none
# What points hold together.
SHARED = {"stiffness", "damping", "friction_stiffness", "cubic_stiffness"}
MEETING = 1.25  # of the depth of a contact with a restitution: how far off the surface it begins
BOUNCE_DEPTH = 0.01  # of a body's size, of a contact with a restitution
RESOLVED = 2.5  # times the deepest that the stable step serves there, for steps as short as that


@dataclass(frozen=True, eq=False)
class Touching:
    """A body as a contact sees it."""

    name: str
    points: np.ndarray  # where they are in the declared pose, (n, 3) [m]
    mass: Any  # of a rigid body (), or of the nodes (n,) [kg]
    size: float  # L [m]
    speed: float  # |v| [m/s]
    is_rigid: bool = False
    # Rows of the model, or numbers of the body's vertices, that may touch; None: all.
    nodes: np.ndarray | None = None
    held_with: Any = 0.0  # stiffness of the elements at each node, (n,) [N/m]; 0 of rigid bodies
    struck: float | None = None  # mass that a point of a rigid body carries, on average [kg]
    ball: float | None = None  # radius of a rigid body that touches as a ball [m]
    # Triangles of its surface, of the same numbers as `nodes`, (n_faces, 3); None of springs
    faces: np.ndarray | None = None
    n_rows: int = 0  # of a rigid body: how many points forces may act on
    velocity: Any = (0.0, 0.0, 0.0)  # of all of it, (3,) [m/s]
    center: Any = (0.0, 0.0, 0.0)  # of mass, of a rigid body in the declared pose, (3,) [m]
    is_solid: bool = True  # so that nothing can be in it
    # Of a body whose mesh was made twice as fine: itself before, and the matrix from numbers of
    # its points then to means at all points, (n, n_before)
    before: "Touching | None" = None
    means: Any = None

    def against(self, carrier: "Touching") -> "Touching":
        """Return it as a contact with a shape sees it that another body carries.

        Both yield, so the mass is 1/(1/m + 1/M), and both arrive.
        """
        return replace(
            self,
            mass=1.0 / (1.0 / self.mass + 1.0 / carrier.mass),
            struck=self.struck and 1.0 / (1.0 / self.struck + 1.0 / carrier.mass),
            ball=None,
            speed=self.speed + carrier.speed,
            before=self.before and self.before.against(carrier),
        )

    @property
    def places(self) -> np.ndarray:
        """Its points by the numbers that its faces have, (n, 3) [m]."""
        if self.nodes is None:
            return self.points
        out = np.zeros((int(self.nodes.max()) + 1, 3))
        out[self.nodes] = self.points
        return out

    @property
    def mean_edge(self) -> float:
        """Mean length of the edges of its surface [m]."""
        corners = self.places[self.faces]
        return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean())

    @property
    def point_mass(self) -> float:
        """Mass behind one point that touches: all of a rigid body, or the mean of a node [kg]."""
        return float(np.mean(self.mass))

    @property
    def bounce_mass(self) -> np.ndarray:
        """Mass that a point with a restitution is taken to carry, () or (n,) [kg]."""
        return np.asarray(self.mass if self.struck is None else self.struck)

    def shared_out(self, law: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the numbers of a contact at all points from those of the body before.

        The points of the finer mesh share what the points before had together, so that a layer
        of them holds a pressure as before: a stiffness [N/m] or a damping [N s/m] for each point is
        about a quarter. A dissipation [s/m] is a mean of theirs.
        """
        if self.before is None:
            return dict(law)
        n, out = len(self.before.points), {}
        for key, number in law.items():
            means = self.means @ np.broadcast_to(number, n)
            total = means.sum() if key in SHARED else 0.0
            out[key] = means * (np.broadcast_to(number, n).sum() / total) if total else means
        return out


def bounced(mass: Any, depth: float, speed: float) -> dict[str, np.ndarray]:
    """Return K and G for each point: k = K q/c^4 and gamma = G zeta c^2/sqrt(q); and the depth c.

    q and the damping ratio zeta follow from the restitution (`adjsim/forces/pressure_laws.py`).
    """
    return {
        "cubic_stiffness": np.asarray(2.0 * mass * speed**2),
        "cubic_dissipation": np.full(np.shape(mass), 2.0 / speed),
        "depth": np.asarray(depth),
    }


def cubic_numbers(law: Mapping[str, Any], restitution: float, depth: float) -> dict[str, Any]:
    """Return k and gamma from K and G, which a law has by their names."""
    zeta, q = bounce(restitution)[0]
    return {
        "cubic_stiffness": law["cubic_stiffness"] * q / depth**4,
        "cubic_dissipation": law["cubic_dissipation"] * (zeta * depth**2 / np.sqrt(q)),
    }


def fall_speed(body: Touching, gravity: float, heights: float = 1.0) -> float:
    """Return the speed after a fall from so many times the size; `gravity` in m/s2 [m/s]."""
    return float(np.sqrt(2.0 * heights * (gravity or GRAVITY) * body.size + body.speed**2))


def chosen_stiffness(body: Touching, gravity: float, speed: float) -> np.ndarray:
    """Return k for each point, () of a rigid body or (n,) [N/m]; `speed` is that of arrival."""
    if body.is_rigid:
        return np.asarray(body.mass * (0.5 * speed / (DEPTH * body.size)) ** 2)
    least = body.mass * NODE_RATE2 * (gravity or GRAVITY) / body.size
    return np.maximum(NODE_PART * body.held_with, least)


def chosen_dissipation(body: Touching, speed: float) -> np.ndarray:
    """Return d for each point, () of a rigid body or (n,) [s/m]; `speed` is that of arrival."""
    loss = loss_of(RESTITUTION) if body.is_rigid else NODE_LOSS
    light = np.sqrt(np.minimum(body.mass / (LIGHT * body.point_mass), 1.0))
    return np.asarray(loss / speed * light)


def loss_of(restitution: float) -> float:
    """Return D = d u at which this part e of the speed u is left, 0 < e < 1."""
    from scipy.optimize import brentq

    e = restitution

    def excess(s: float) -> float:  # phi(D) - phi(-D e) where 1 - D e = exp(-s)
        back = -np.expm1(-s)
        return back / e - np.log1p(back / e) + back - s

    s: Any = brentq(excess, 1e-3 * (1.0 - e), 2.0 + 1.0 / e)
    return -float(np.expm1(-s)) / e


@lru_cache
def contact_duration(D: float) -> float:
    """Return tau(D), the time that a point touches, by the rate omega; pi without dissipation."""
    from scipy.integrate import solve_ivp

    def leaves(_: float, state: np.ndarray) -> float:
        return state[0]

    vars(leaves).update(terminal=True, direction=-1.0)

    def motion(_: float, state: np.ndarray) -> list[float]:
        y, v = state
        return [v, -y * (1.0 + D * v)]

    limit = 10.0 + 10.0 * np.sqrt(D)  # it sinks sqrt(2/D) deep at most, and returns slower than 1/D
    bounce = solve_ivp(motion, (0.0, limit), (0.0, 1.0), events=leaves, rtol=1e-9, atol=1e-12)
    return float(bounce.t_events[0][-1])


def expected_depth(
    body: Touching, stiffness: Any, dissipation: Any, *, gravity: float, speed: float
) -> np.ndarray:
    """Return how deep each point is pressed at the `speed`, or from four times the size [m]."""
    u = max(fall_speed(body, gravity, 4.0), speed)
    D = np.maximum(np.asarray(dissipation) * u, 1e-6)  # phi(D) is D^2/2 there
    return np.sqrt(2.0 * (D - np.log1p(D))) * u / D * np.sqrt(body.mass / stiffness)


def chosen_friction_stiffness(body: Touching, stiffness: Any) -> np.ndarray:
    """Return k_f for each point [N s/m]."""
    rate = FRICTION_RATE if body.is_rigid else NODE_FRICTION_RATE
    return np.asarray(rate * np.sqrt(stiffness * body.mass))
