"""Twins of `adjsim/joints/driven.py`: classes and packing."""

from typing import Any

import numpy as np

from adjoint.forces.registry import register
from adjoint.joints.joint import FramedJointTwin
from adjoint.joints.laws import hinge_vjp, slider_vjp
from adjoint.series import series_rows_vjp
from adjsim.joints.driven import HingeJoint, SliderJoint


class DrivenJointTwin(FramedJointTwin):
    """The twin of a class of joints that are driven."""

    def pack_vjp(
        self, force: Any, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the parameters and the motor."""
        adj = super().pack_vjp(force, adj_params, adj_series)
        if force.motor is not None:
            shape = (force.n_joints,)
            adj["motor"] = series_rows_vjp(force.motor, shape, adj_series[..., 0])
        return adj


register(HingeJoint, DrivenJointTwin(hinge_vjp))
register(SliderJoint, DrivenJointTwin(slider_vjp))
