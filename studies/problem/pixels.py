"""Cameras of observations: how they turn, what of them may be free, and points as their pixels."""

from collections.abc import Mapping

import numpy as np

from adjoint.rotations import rotation_matrix_vjp
from adjsim.rotations import rotation_matrix, rotation_matrix_jvp
from render.camera import AnyCamera
from render.lenses import Perspective
from render.posed_camera import PosedCamera


# of what may be free
UNITS = {"rotation": "rad", "translation": "m", "fov_y": "deg", "focal": "pixels"}
Values = Mapping[str, np.ndarray]  # by name


def posed(camera: AnyCamera, center: np.ndarray) -> PosedCamera:
    """Return a camera as one that looks at points minus `center`, so that it turns about there."""
    eye, axes = camera.pose()
    nominal = axes * [[1.0], [1.0], [-1.0]]
    fov_y = camera.fov_y if camera.lens is None else None
    return PosedCamera(
        np.zeros(3),
        nominal @ (center - eye),
        nominal,
        fov_y=fov_y,
        near=camera.near,
        far=camera.far,
        lens=camera.lens,
    )


def camera_names(camera: PosedCamera) -> tuple[str, ...]:
    """Return the parameters of a camera that may be free."""
    lens = "fov_y" if isinstance(camera.optics, Perspective) else "focal"
    return ("rotation", "translation", lens)


def to_pixels(camera: PosedCamera, points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return column and row (u, v) of points (..., 3) in an image of `size` (height, width)."""
    height, width = size
    p = points @ (rotation_matrix(camera.rotation) @ camera.nominal).T + camera.translation  # (1)
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    z = -p[..., 2]
    s_x = (f_x * p[..., 0] + k * p[..., 1]) / z + c_x  # (2)
    s_y = f_y * p[..., 1] / z + c_y  # (3)
    u = (height * s_x + width - 1) / 2.0  # (4)
    v = (height - 1 - height * s_y) / 2.0  # (5)
    return np.stack([u, v], axis=-1)


def rays(camera: PosedCamera, pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return the directions (..., 3) from the eye to what pixels (..., 2) show at a depth of 1."""
    height, width = size
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    s_x = (2.0 * pixels[..., 0] + 1 - width) / height
    s_y = (height - 1 - 2.0 * pixels[..., 1]) / height
    y = (s_y - c_y) / f_y
    x = (s_x - c_x - k * y) / f_x
    return np.stack([x, y, np.ones_like(x)], axis=-1) @ camera.pose()[1]


def to_pixels_jvp(
    camera: PosedCamera,
    points: np.ndarray,
    size: tuple[int, int],
    *,
    tan_points: np.ndarray,
    tangents: Values,
) -> np.ndarray:
    """Return the tangent of `to_pixels` for tangents of the points and of the camera by name."""
    height = size[0]
    R = rotation_matrix(camera.rotation) @ camera.nominal
    p = points @ R.T + camera.translation
    tan_p = tan_points @ R.T  # (1)
    if "rotation" in tangents:
        tan_R = rotation_matrix_jvp(camera.rotation, tangents["rotation"]) @ camera.nominal
        tan_p = tan_p + points @ tan_R.T
    if "translation" in tangents:
        tan_p = tan_p + tangents["translation"]
    f_x, k, _, f_y, _ = camera.optics.numbers()
    rates = _focal_rates(camera)
    tan_lens = np.asarray(tangents.get(camera_names(camera)[2], 0.0), np.float64)
    tan_f_x, tan_f_y = rates @ np.broadcast_to(tan_lens, rates.shape[1:])
    z, tan_z = -p[..., 2], -tan_p[..., 2]
    a, tan_a = f_x * p[..., 0] + k * p[..., 1], f_x * tan_p[..., 0] + k * tan_p[..., 1]
    tan_a = tan_a + tan_f_x * p[..., 0]
    b, tan_b = f_y * p[..., 1], f_y * tan_p[..., 1] + tan_f_y * p[..., 1]
    tan_u = height / 2.0 * (tan_a - a * tan_z / z) / z  # (2), (4)
    tan_v = -height / 2.0 * (tan_b - b * tan_z / z) / z  # (3), (5)
    return np.stack([tan_u, tan_v], axis=-1)


def to_pixels_vjp(
    camera: PosedCamera, points: np.ndarray, size: tuple[int, int], adj: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Pull the cotangent of `to_pixels` back to the points and to the camera by name."""
    height = size[0]
    R = rotation_matrix(camera.rotation) @ camera.nominal
    p = points @ R.T + camera.translation
    f_x, k, _, f_y, _ = camera.optics.numbers()
    z = -p[..., 2]
    adj_x = height / 2.0 * adj[..., 0] / z  # (4), (2): of the numerator a = f_x x + k y
    adj_y = -height / 2.0 * adj[..., 1] / z  # (5), (3): of b = f_y y
    a, b = f_x * p[..., 0] + k * p[..., 1], f_y * p[..., 1]
    adj_z = -(adj_x * a + adj_y * b) / z
    adj_p = np.stack([f_x * adj_x, k * adj_x + f_y * adj_y, -adj_z], axis=-1)
    flat_points, flat = points.reshape(-1, 3), adj_p.reshape(-1, 3)
    adj_R = flat.T @ flat_points
    adj_focal = np.array([np.sum(adj_x * p[..., 0]), np.sum(adj_y * p[..., 1])])
    lens = _focal_rates(camera).T @ adj_focal
    name = camera_names(camera)[2]
    return adj_p @ R, {
        "rotation": rotation_matrix_vjp(camera.rotation, adj_R @ camera.nominal.T),  # (1)
        "translation": flat.sum(axis=0),
        name: lens.reshape(()) if name == "fov_y" else lens,
    }


def _focal_rates(camera: PosedCamera) -> np.ndarray:
    f_x, _, _, f_y, _ = camera.optics.numbers()
    if isinstance(camera.optics, Perspective):
        half = np.radians(camera.optics.fov_y) / 2.0
        rate = -np.radians(0.5) / np.sin(half) ** 2
        return np.array([[rate], [rate]])
    focal = np.asarray(camera.optics.focal)  # pyright: ignore[reportAttributeAccessIssue]
    return np.diag([f_x / focal[0], f_y / focal[1]])
