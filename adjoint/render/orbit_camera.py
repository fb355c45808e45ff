"""Tangent and adjoint of `render/orbit_camera.py`: read the two files side by side.

Along the azimuth, right turns to -(sin a, 0, cos a), up by -sin e right, outward by cos e
right; along the elevation, up turns to -outward and outward to up.
"""

from collections.abc import Mapping

import numpy as np

from render.orbit_camera import DEGREE, OrbitCamera, orbit


def orbit_pose_jvp(
    camera: OrbitCamera, tangents: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Tangents of the eye and of the axes, one a row (3, 3)."""
    right, up, outward = orbit(camera.elevation, camera.azimuth)
    e, a = DEGREE * camera.elevation, DEGREE * camera.azimuth
    tan_e, tan_a = DEGREE * tangents["elevation"], DEGREE * tangents["azimuth"]  # (1)
    tan_right = -tan_a * np.array([np.sin(a), 0.0, np.cos(a)])  # (2)
    tan_up = -np.sin(e) * tan_a * right - tan_e * outward  # (3)
    tan_outward = np.cos(e) * tan_a * right + tan_e * up  # (4)
    tan_eye = (
        tangents["target"] + tangents["distance"] * outward + camera.distance * tan_outward
    )  # (5)
    return tan_eye, np.stack([tan_right, tan_up, -tan_outward])


def orbit_pose_vjp(
    camera: OrbitCamera, adj_eye: np.ndarray, adj_axes: np.ndarray
) -> dict[str, np.ndarray]:
    """Pull the adjoints of the eye and the axes back to distance, angles and target."""
    right, up, outward = orbit(camera.elevation, camera.azimuth)  # (2) to (4) replayed
    e, a = DEGREE * camera.elevation, DEGREE * camera.azimuth  # (1) replayed
    adj_right, adj_up, adj_forward = adj_axes

    # (5) eye = target + distance outward, forward = -outward
    adj_distance = outward @ adj_eye
    adj_outward = camera.distance * adj_eye - adj_forward

    # (4) outward' = cos e right a' + up e'
    adj_a = np.cos(e) * (right @ adj_outward)
    adj_e = up @ adj_outward

    # (3) up' = -sin e right a' - outward e'
    adj_a -= np.sin(e) * (right @ adj_up)
    adj_e -= outward @ adj_up

    # (2) right' = -(sin a, 0, cos a) a'
    adj_a -= np.sin(a) * adj_right[0] + np.cos(a) * adj_right[2]

    # (1) angles in degrees
    return {
        "distance": np.asarray(adj_distance),
        "elevation": np.asarray(DEGREE * adj_e),
        "azimuth": np.asarray(DEGREE * adj_a),
        "target": adj_eye.copy(),
    }
