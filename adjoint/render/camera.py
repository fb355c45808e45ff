r"""Tangent and adjoint of `render/camera.py`: read the two files side by side.

For a unit vector n = v/|v|:  n' = (v' - n (n.v'))/|v|, a symmetric map, so its adjoint is
itself. For c = a x b: adj_a = b x adj_c, adj_b = adj_c x a. The near and far planes are no part
of a view: `paths.py` has their derivatives.
"""

from collections.abc import Mapping

import numpy as np

from adjoint.render.lenses import LENS_TWINS
from adjoint.render.posed_camera import posed_jvp, posed_vjp
from render.camera import AnyCamera, Camera, cross
from render.posed_camera import PosedCamera
from render.projection import AXES, EYE, LENS, VIEW_SIZE


Values = Mapping[str, np.ndarray]


def unit_vjp(v: np.ndarray, adj_n: np.ndarray) -> np.ndarray:
    """Pull adj_n back through n = v/|v|; the tangent is the same map."""
    length = np.linalg.norm(v)
    n = v / length
    return (adj_n - n * (n @ adj_n)) / length


def look_at_jvp(camera: Camera, tangents: Values) -> tuple[np.ndarray, np.ndarray]:
    """Tangents of the eye and of the axes, one a row (3, 3)."""
    tan_eye, tan_target, tan_up = (tangents[name] for name in camera.POSE)
    view = camera.target - camera.eye
    tan_view = tan_target - tan_eye  # (1)
    forward = view / np.linalg.norm(view)
    tan_forward = unit_vjp(view, tan_view)  # (2)
    side = cross(forward, camera.up)
    tan_side = cross(tan_forward, camera.up) + cross(forward, tan_up)  # (3)
    right = side / np.linalg.norm(side)
    tan_right = unit_vjp(side, tan_side)  # (4)
    tan_true_up = cross(tan_right, forward) + cross(right, tan_forward)  # (5)
    return tan_eye, np.stack([tan_right, tan_true_up, tan_forward])


def look_at_vjp(camera: Camera, adj_eye: np.ndarray, adj_axes: np.ndarray) -> dict[str, np.ndarray]:
    """Pull the adjoints of the eye and the axes back to eye, target and up."""
    adj_right, adj_true_up, adj_forward = adj_axes
    view = camera.target - camera.eye  # (1) replayed
    forward = view / np.linalg.norm(view)  # (2) replayed
    side = cross(forward, camera.up)  # (3) replayed
    right = side / np.linalg.norm(side)  # (4) replayed

    # (5) true_up = right x forward
    adj_right = adj_right + cross(forward, adj_true_up)
    adj_forward = adj_forward + cross(adj_true_up, right)

    # (4) right = side/|side|
    adj_side = unit_vjp(side, adj_right)

    # (3) side = forward x up
    adj_forward += cross(camera.up, adj_side)
    adj_up = cross(adj_side, forward)

    # (2) forward = view/|view|
    adj_view = unit_vjp(view, adj_forward)

    # (1) view = target - eye
    return {"eye": adj_eye - adj_view, "target": adj_view, "up": adj_up}


POSE_TWINS = {
    Camera: (look_at_jvp, look_at_vjp),
    PosedCamera: (posed_jvp, posed_vjp),
}


def view_jvp(camera: AnyCamera, tangents: Values) -> np.ndarray:
    """Push tangents of the camera's parameters, by name, to its view (18,); no tangent: 0."""
    all_tangents = {
        name: np.asarray(tangents.get(name, np.zeros_like(value)), float)
        for name, value in camera.parameters().items()
    }
    out = np.zeros(VIEW_SIZE)
    tan_eye, tan_axes = POSE_TWINS[type(camera)][0](camera, all_tangents)
    out[EYE], out[AXES] = tan_eye, tan_axes.ravel()
    out[LENS] = LENS_TWINS[type(camera.optics)][0](camera.optics, all_tangents)
    return out


def view_vjp(camera: AnyCamera, adj_view: np.ndarray) -> dict[str, np.ndarray]:
    """Pull the adjoint of the view (18,) back to the camera's parameters, by name."""
    adj = np.asarray(adj_view, float)
    pose = POSE_TWINS[type(camera)][1](camera, adj[EYE], adj[AXES].reshape(3, 3))
    return pose | LENS_TWINS[type(camera.optics)][1](camera.optics, adj[LENS])
