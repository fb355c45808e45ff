"""Twins of `adjsim/joints/driven.py`: classes and packing."""

from adjoint.forces.registry import register
from adjoint.joints.joint import FramedJointTwin
from adjoint.joints.laws import hinge_vjp, slider_vjp
from adjsim.joints.driven import HingeJoint, SliderJoint


register(HingeJoint, FramedJointTwin(hinge_vjp))
register(SliderJoint, FramedJointTwin(slider_vjp))
