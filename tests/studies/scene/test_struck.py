"""The mass that a point of a rigid body carries when it is struck."""

import numpy as np
import pytest

from adjsim.meshes.surfaces import blocks
from adjsim.rigid.bodies import RigidBodies
from studies.scene.declared import WORLD, HingeJoint
from studies.scene.struck import struck_mass


def test_a_bar_on_a_hinge_between_its_ends_carries_its_inertia_at_the_farther_end():
    """At the other end, which a plane would touch first, points move away from the plane."""
    length, side, behind, mass = 0.30, 0.04, 0.05, 0.5
    axes = [(-behind, length - behind), (-0.5 * side, 0.5 * side), (-0.5 * side, 0.5 * side)]
    bar = RigidBodies(blocks(axes, np.ones((1, 1, 1))), mass=mass)
    hinge = HingeJoint(between=(WORLD, "bar"), anchor=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
    about = mass / 12.0 * (length**2 + side**2) + mass * (0.5 * length - behind) ** 2
    farthest = (length - behind) ** 2 + (0.5 * side) ** 2
    assert struck_mass("bar", bar, {"root": hinge}) == pytest.approx(about / farthest)
