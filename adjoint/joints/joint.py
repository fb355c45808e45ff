"""Twins of `adjsim/joints/joint.py`: classes and packing."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adjoint.forces.element import ForceTwin, TwinKind
from adjoint.forces.registry import register
from adjoint.joints.elements import pair_twin, world_twin
from adjoint.joints.laws import ball_vjp, weld_vjp
from adjoint.rotations import rotation_matrix_vjp
from adjsim.joints.joint import TURNS, BallJoint, Joint, WeldJoint


class JointTwin(ForceTwin[Any]):
    """The twin of a class of joints, from the adjoint of its law."""

    def __init__(self, law_vjp: Callable) -> None:
        super().__init__()
        self._law_vjp = law_vjp

    def twin_kind(self, force: Joint) -> TwinKind:
        """Return the twin of joints between bodies, or of those to the world."""
        make = world_twin if force.to_world else pair_twin
        return make(force.kind, force.LAWS[0], self._law_vjp)


class FramedJointTwin(JointTwin):
    """The twin of a class of joints with axes. Packing: F = exp([theta]x) N, column by column."""

    def pack_vjp(
        self, force: Any, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull row cotangents back to the parameters."""
        adj_theta = np.empty((len(adj_params), 2, 3))
        for k, side in enumerate("ab"):
            first = TURNS.start + 9 * k
            adj_F = np.swapaxes(adj_params[:, first : first + 9].reshape(-1, 3, 3), 1, 2)
            theta = np.broadcast_to(getattr(force, f"rotation_{side}"), (len(adj_F), 3))
            adj_R = adj_F @ np.swapaxes(force.nominal(side), 1, 2)
            adj_theta[:, k] = rotation_matrix_vjp(theta, adj_R)
        rest = adj_params[:, TURNS.start + 18 :]
        turns = adj_theta.reshape(-1, 6)
        rows = np.concatenate([adj_params[:, : TURNS.start], turns, rest], axis=1)
        return super().pack_vjp(force, rows, adj_series)


register(BallJoint, JointTwin(ball_vjp))
register(WeldJoint, FramedJointTwin(weld_vjp))
