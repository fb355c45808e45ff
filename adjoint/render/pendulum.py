r"""Adjoint of `render/pendulum.py`: read the two files side by side.

With d' = e theta' and e' = -d theta',

    (1)  P_{k+1} = P_k + l d                           tan_P += tan_l d + l e tan_theta
    (2)  p = P + (a l + h) d + b e + depth             tan_p = tan_P + a tan_l d
                                                        + ((a l + h) e - b d) tan_theta
"""

from typing import Any

import numpy as np

from adjsim import checks
from render.pendulum import RodsAndBobs, directions


def rods_and_bobs_jvp(
    shape: RodsAndBobs, angle: Any, length: Any, tan_angle: Any, tan_length: Any
) -> np.ndarray:
    """Push tangents through `RodsAndBobs.vertices`.

    Parameters
    ----------
    shape : RodsAndBobs
    angle, tan_angle : array_like
        (n_frames, n_links), or (n_frames,) of one link [rad].
    length, tan_length : array_like
        (n_links,), or () of one link [m].

    Returns
    -------
    ndarray
        tan_vertices, (n_frames, n_vertices, 3) [m].

    Raises
    ------
    ValueError
        If a shape does not fit, or a number is not finite.
    """
    angle, length = shape.checked(angle, length)
    tan_angle, tan_length = shape.checked(np.asarray(tan_angle, angle.dtype), tan_length)
    place = shape.place.astype(angle.dtype)
    tan = np.zeros((len(angle), len(place), 3), angle.dtype)
    tan_joint = np.zeros((len(angle), 3), angle.dtype)
    for k in range(shape.n_links):
        d, e = directions(angle[:, k])
        tan_d, tan_e = e * tan_angle[:, k, None], -d * tan_angle[:, k, None]
        of_link = shape.link == k
        a, h, b, _ = place[of_link].T
        along = (a * length[k] + h)[None, :, None] * tan_d[:, None]
        stretch = (a * tan_length[k])[None, :, None] * d[:, None]
        tan[:, of_link] = tan_joint[:, None] + along + stretch + b[:, None] * tan_e[:, None]  # (2)
        tan_joint = tan_joint + tan_length[k] * d + length[k] * tan_d  # (1)
    return tan


def rods_and_bobs_vjp(
    shape: RodsAndBobs, angle: Any, length: Any, adj_vertices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pull a cotangent of `RodsAndBobs.vertices` back.

    Parameters
    ----------
    shape : RodsAndBobs
    angle : array_like
        (n_frames, n_links), or (n_frames,) of one link [rad].
    length : array_like
        (n_links,), or () of one link [m].
    adj_vertices : ndarray
        (n_frames, n_vertices, 3).

    Returns
    -------
    adj_angle, adj_length : ndarray
        In the shapes of `angle` and `length`.

    Raises
    ------
    ValueError
        If a shape does not fit, or a number is not finite.
    """
    shapes = np.shape(angle), np.shape(length)
    angle, length = shape.checked(angle, length)
    n_frames, dtype = len(angle), angle.dtype
    place = shape.place.astype(dtype)
    adj = checks.array("adj_vertices", adj_vertices, (n_frames, len(place), 3), dtype=dtype)
    adj_angle, adj_length = np.zeros_like(angle), np.zeros_like(length)
    adj_joint = np.zeros((n_frames, 3), dtype)
    for k in reversed(range(shape.n_links)):
        d, e = directions(angle[:, k])
        of_link = shape.link == k
        a, h, b, _ = place[of_link].T

        # (1) P' = P + l d
        adj_length[k] = np.sum(d * adj_joint)
        adj_d = length[k] * adj_joint

        # (2) p = P + (a l + h) d + b e + depth
        adj_joint = adj_joint + adj[:, of_link].sum(axis=1)
        adj_length[k] += np.sum(d * np.einsum("v,fvc->fc", a, adj[:, of_link]))
        adj_d += np.einsum("v,fvc->fc", a * length[k] + h, adj[:, of_link])
        adj_e = np.einsum("v,fvc->fc", b, adj[:, of_link])

        # d' = e theta', e' = -d theta'
        adj_angle[:, k] = np.sum(e * adj_d - d * adj_e, axis=1)
    return adj_angle.reshape(shapes[0]), adj_length.reshape(shapes[1])
