r"""What single points of rigid bodies carry when they are struck.

A point with the arm r from the centre of mass that is pushed along n gives way as the mass 1/w,

    w = 1/m + (r x n).I^-1 (r x n)

of a free body. Of one that a hinge with the axis a through p holds to the world it is
(a.((x - p) x n))^2/I_a, where I_a is about the axis. A contact that loses a part of the speed by
`restitution` is made for one mass: that of the mean w of a free body over all n, each at the point
that a plane with this normal touches; and that of the farthest point of one on a hinge, pushed
along its way. Points that a plane there touches with it share this mass, with the fourth power of
how far they move, as a cubic contact works; behind a hinge they may move the other way, and share
nothing. A ball is struck towards its centre: m.
"""

from collections.abc import Mapping

import numpy as np

from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.mass_properties import from_six
from studies.scene.declared import WORLD, HingeJoint, Joint


DIRECTIONS = 500  # of n
FLAT = 1e-3  # of the size, by which points in one plane may lie off it


def struck_mass(name: str, bodies: RigidBodies, joints: Mapping[str, Joint]) -> float:
    """Return the mass that a point of a body carries, of a set of one [kg]."""
    mass, inertia = float(bodies.masses[0]), from_six(bodies.inertias)[0]
    arms = bodies.arms[bodies.hull]
    for joint in joints.values():
        if isinstance(joint, HingeJoint) and set(joint.between) == {WORLD, name}:
            axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
            center = np.cross(axis, bodies.centers[0] - joint.anchor)  # across the axis
            about = axis @ inertia @ axis + mass * center @ center
            ways = np.cross(axis, arms) + center
            lengths = np.linalg.norm(ways, axis=1)
            n = ways[np.argmax(lengths)] / lengths.max()
            beside = arms @ n > np.max(arms @ n) - FLAT * np.ptp(arms, axis=0).max()
            touching = np.sum((np.maximum(ways[beside] @ n, 0.0) / lengths.max()) ** 4)
            return float(about / lengths.max() ** 2 / max(touching, 1.0))
    k = np.arange(DIRECTIONS) + 0.5  # n lie evenly on the sphere
    z, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + np.sqrt(5.0)) * k
    r = np.sqrt(1.0 - z * z)
    n = np.column_stack([r * np.cos(turn), r * np.sin(turn), z])
    turns = np.cross(arms[np.argmin(arms @ n.T, axis=0)], n)
    w = 1.0 / mass + np.einsum("ki,ij,kj->k", turns, np.linalg.inv(inertia), turns)
    return float(1.0 / w.mean())
