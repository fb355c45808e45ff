"""Rigid bodies: mass properties, rotations, and the step that advances them.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjsim.rigid.bodies import BodyPoint as BodyPoint, RigidBodies as RigidBodies
    from adjsim.rigid.pose import BodyState as BodyState, BodyTrajectory as BodyTrajectory

__getattr__, __dir__ = lazy_names(__name__)
