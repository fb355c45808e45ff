"""Joints between rigid bodies, as forces on their frame points, and pins between points.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjsim.joints.driven import HingeJoint as HingeJoint, SliderJoint as SliderJoint
    from adjsim.joints.joint import BallJoint as BallJoint, WeldJoint as WeldJoint
    from adjsim.joints.pins import Pins as Pins
    from adjsim.joints.urdf import read_urdf as read_urdf

__getattr__, __dir__ = lazy_names(__name__)
