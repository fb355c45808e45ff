r"""Gravity with its direction as a value of its own: two angles off the declared direction.

Two world axes across the declared gravity, the two that are farthest from it, are u and v; the
angles "world.gravity_direction" [deg] say how far gravity leans towards them. With

    theta = pi/180 (angle_u g x u + angle_v g x v)/|g|,   gravity = exp([theta]x) "world.gravity"

the length stays. Along theta', gravity' = J(theta) theta' x gravity, J of `adjsim/rotations.py`.
"""

import numpy as np

from adjsim.rotations import rotation_matrix, rotation_rate
from studies.scene.maps import Arrays, ParameterMap


GRAVITY, DIRECTION = "world.gravity", "world.gravity_direction"


class Turned(ParameterMap):
    """Gravity from the vector and the two angles; `declared` must not be 0, (3,) [m/s2]."""

    sources = (GRAVITY, DIRECTION)
    targets = ("gravity",)

    def __init__(self, declared: np.ndarray) -> None:
        down = declared / np.linalg.norm(declared)
        first, second = np.delete(np.eye(3), np.argmax(np.abs(down)), axis=0)
        u = first - (first @ down) * down
        u /= np.linalg.norm(u)
        v = second - (second @ down) * down - (second @ u) * u
        v /= np.linalg.norm(v)
        self.axes = np.radians(np.cross(down, [u, v])).T  # theta from the angles, (3, 2)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return gravity, (3,) [m/s2]."""
        gravity = np.asarray(sources[GRAVITY], np.float64)
        return {"gravity": rotation_matrix(self.axes @ sources[DIRECTION]) @ gravity}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return R tan_g + J theta' x gravity."""
        theta = self.axes @ sources[DIRECTION]
        tan = rotation_matrix(theta) @ tangents.get(GRAVITY, np.zeros(3))
        turning = rotation_rate(theta) @ self.axes @ tangents.get(DIRECTION, np.zeros(2))
        return {"gravity": tan + np.cross(turning, self.values(sources)["gravity"])}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        theta = self.axes @ sources[DIRECTION]
        adj = adjoints.get("gravity", np.zeros(3))
        moment = np.cross(self.values(sources)["gravity"], adj)
        adj_angles = self.axes.T @ rotation_rate(theta).T @ moment
        return {GRAVITY: rotation_matrix(theta).T @ adj, DIRECTION: adj_angles}
