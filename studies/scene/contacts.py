r"""Contact numbers that are chosen from the masses and sizes of what touches.

Rigid bodies touch with few points, so one point may carry all of the body: with its mass m,

    k = m (u/(2 s L))^2,  u^2 = 8 g L + |v|^2,  s = 0.005

A body of size L that falls from four times its size, or that starts with its declared velocity v,
then sinks 1.2 s L deep on one point. Several points sink less. Of a body made of nodes each node
touches for itself: m is the node's mass, and k the larger of

    k = k_node           what its elements hold it with (the sum of their bounds at the node), so
                         that a contact gives way no more than the layer of elements at it
    k = m 2e4 g/L        so that a load of 100 times its weight presses a node s L deep

With it the stable step is a third to a half of that without contact. A fall from four times the
size then presses a soft ball with E = 1e5 Pa 0.7 % of its size deep and a corner of a soft cube
2.5 %, where the bodies themselves are strained by a fifth (`test_contacts.py`).

A point of effective mass m that arrives at speed u in a contact of stiffness k = m omega^2 and
dissipation d sinks sqrt(2 phi(d u))/(d omega) deep and leaves at the speed e u:

    phi(d u) = phi(-d e u),  phi(x) = x - log(1 + x)

from v dv = -omega^2 c (1 + d v) dc with the approach v = -u_n. So e depends on d u alone: 0.5 at
d u = 1.433, and nearer to 1 at lower speeds. The chosen d has it there for a fall from the body's
own size, u^2 = 2 g L + |v|^2; from four times the size it is 0.3. At the greatest depth d acts as a
damping 2 zeta m omega with zeta = sqrt(phi(d u)/2), 0.5 to 0.9 for these two. What a body made of
nodes rebounds by is its elasticity. Its nodes have 1.4 times that d: with less, each of them
rattles between the floor and its elements, and the gradient of the motion grows by orders of
magnitude. So it does where the step is too long for the damping at the depth that is reached from
four times the size, which the stable step therefore counts (`Contact.deepest`).

The slope of friction is k_f = 1.2 sqrt(k m), which costs about as much of the step. A body that
should stick creeps at the speed (its tangential load)/k_f
per touching point: on a slope of 10 degrees a rigid cube at 1e-4 sqrt(g L), a soft one with E =
1e5 Pa at 4e-3 sqrt(g L). The numbers are those of the declared values: they stay where a search
changes material or mass.

`Model.stable_dt` counts a rigid body as touched at all its points at once, which takes steps ten
times as short as needed. `stable_dt` here counts, of a rigid body, the points that can touch at
once: those that lie together on one side of its convex hull, within s L, or any one alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.forces.contact import Contact
from adjsim.model import Model
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.mass_properties import from_six
from adjsim.rotations import cross_matrix


DEPTH = 0.005  # of a body's size
HALF_RESTITUTION = 1.4327505332713972  # d u at which half of the speed is left
NODE_SPEED = 0.7  # part of the speed of the body at which a node keeps half of its own
FRICTION_RATE = 1.2  # k_f over sqrt(k m)
NODE_RATE2 = 2e4  # [g/L]
GRAVITY = 9.81  # where a scene has none
SHARED = {"stiffness", "damping", "friction_stiffness"}  # what points hold together


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
    # Of a body whose mesh was made twice as fine: itself before, and the matrix from numbers of
    # its points then to means at all points, (n, n_before)
    before: "Touching | None" = None
    means: Any = None

    def shared_out(self, law: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the numbers of a contact at all points from those of the body before.

        The points of the finer mesh share what the points before had together, so that a layer
        of them holds a pressure as before: a stiffness [N/m] or a damping [N s/m] for each point is
        about a quarter. A dissipation [s/m] is the same for all points.
        """
        if self.before is None:
            return dict(law)
        n, out = len(self.before.points), {}
        for key, number in law.items():
            means = self.means @ np.broadcast_to(number, n)
            total = means.sum() if key in SHARED else 0.0
            out[key] = means * (np.broadcast_to(number, n).sum() / total) if total else means
        return out


def chosen_stiffness(body: Touching, gravity: float) -> np.ndarray:
    """Return k for each point, () of a rigid body or (n,) [N/m]; `gravity` in m/s2."""
    g = gravity or GRAVITY
    if body.is_rigid:
        u = np.sqrt(8.0 * g * body.size + body.speed**2)
        return np.asarray(body.mass * (0.5 * u / (DEPTH * body.size)) ** 2)
    return np.maximum(body.held_with, body.mass * NODE_RATE2 * g / body.size)


def chosen_dissipation(body: Touching, gravity: float) -> np.ndarray:
    """Return d for each point, () of a rigid body or (n,) [s/m]; `gravity` in m/s2."""
    u = np.sqrt(2.0 * (gravity or GRAVITY) * body.size + body.speed**2)
    return np.full(np.shape(body.mass), HALF_RESTITUTION / (u if body.is_rigid else NODE_SPEED * u))


def expected_depth(body: Touching, stiffness: Any, dissipation: Any, gravity: float) -> np.ndarray:
    """Return how deep a fall from four times the size presses each point [m]."""
    u = np.sqrt(8.0 * (gravity or GRAVITY) * body.size + body.speed**2)
    D = np.maximum(np.asarray(dissipation) * u, 1e-6)  # phi(D) is D^2/2 there
    return np.sqrt(2.0 * (D - np.log1p(D))) * u / D * np.sqrt(body.mass / stiffness)


def chosen_friction_stiffness(body: Touching, stiffness: Any) -> np.ndarray:
    """Return k_f for each point [N s/m]."""
    return np.asarray(FRICTION_RATE * np.sqrt(stiffness * body.mass))


def stable_dt(model: Model) -> float:
    """Estimate the largest stable step of a model [s]; inf where nothing acts.

    As `Model.stable_dt` for nodes. Points of a rigid body that touch at once, with stiffness k,
    damping c and arms a, act on its velocity and spin by K = sum of k J^T J, J = [1, -[a]x], and C
    alike; with their largest eigenvalues over the inertia, dt^2 K + 2 dt C < 4 gives the step. Of
    several obstacles the two stiffest count as touched at once.
    """
    rates = [4.0 / _without_bodies(model).stable_dt()] if model.n_nodes else []
    for name, bodies in model.bodies.items():
        forces = [f for f in model.forces.values() if isinstance(f, Contact) and f.body == name]
        if forces:
            sides = _sides(bodies.arms[bodies.hull])
            found = sorted(_rate(bodies, force, sides) for force in forces)
            rates.append(sum(found[-2:]))
    fastest = max(rates, default=0.0)
    return 4.0 / fastest if fastest > 0.0 else np.inf


def _without_bodies(model: Model) -> Model:
    """Return the nodes of a model with the forces on them."""
    forces = {name: force for name, force in model.forces.items() if force.body is None}
    return Model(model.mass, forces, gravity=model.gravity, pinned=model.pinned)


def _sides(points: np.ndarray) -> np.ndarray:
    """Return which points can touch at once, (n_sides, n) masks: those of a side, or one alone."""
    from scipy.spatial import ConvexHull

    near = DEPTH * float(np.ptp(points, axis=0).max())
    planes = ConvexHull(points).equations
    together = (points @ planes[:, :3].T + planes[:, 3] > -near).T
    return np.unique(np.concatenate([together, np.eye(len(points), dtype=bool)]), axis=0)


def _rate(bodies: RigidBodies, force: Contact, sides: np.ndarray) -> float:
    """Return the largest C + sqrt(C^2 + 4 K) over the inertia, of all sides [1/s]."""
    touching = np.asarray(force.contact_nodes)
    arms = bodies.arms[bodies.hull[touching]]
    J = np.concatenate([np.broadcast_to(np.eye(3), (len(arms), 3, 3)), -cross_matrix(arms)], axis=2)
    inertia = np.eye(6) * bodies.masses[0]
    inertia[3:, 3:] = from_six(bodies.inertias)[0]
    lower = np.linalg.inv(np.linalg.cholesky(inertia))
    whitened = np.einsum("nki,ji->nkj", J, lower)
    each = np.einsum("nki,nkj->nij", whitened, whitened)

    def largest(weights: np.ndarray) -> np.ndarray:
        sums = np.einsum("sn,n,nij->sij", sides[:, touching], weights, each, optimize=True)
        return np.linalg.eigvalsh(sums)[:, -1]

    C, K = largest(force.damping_bound()), largest(force.stiffness_bound())
    return float((C + np.sqrt(C**2 + 4.0 * K)).max())
