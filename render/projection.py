r"""From the world to the screen: what every kind of camera comes down to.

    d = x - eye,  x_c = right.d,  y_c = true_up.d,  z = forward.d
    s_x = (f_x x_c + k y_c)/w + c_x,  s_y = f_y y_c/w + c_y,  w = p z + 1 - p

p is 1 in perspective and 0 in an orthographic view. Screen coordinates are isotropic: y in
[-1, 1], x in [-aspect, aspect], aspect = width/height. A view is packed as 18 numbers: eye,
right, true_up, forward, then the lens f_x, k, c_x, f_y, c_y, p.

Towards the eye from x, not normalised: v = p (eye - x) - (1 - p) forward.

Adjoint: `adjoint/render/projection.py`. Tests: `tests/render/test_projection.py`.
Source: Hartley & Zisserman, Multiple View Geometry, 2nd ed., sec. 6.1 and 6.3.
"""

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from adjsim.algebra.vec3 import axpy, dot, scale, sub
from adjsim.jit.backend import device_fn, lit


VIEW_SIZE = 18
EYE, AXES, LENS, PERSPECTIVE = slice(0, 3), slice(3, 12), slice(12, 17), 17  # of a view


def image_size(size: Any) -> tuple[int, int]:
    """Return height and width, both positive whole numbers."""
    message = f"`size` must be (height, width), two positive whole numbers, got {size!r}."
    try:
        height, width = (operator.index(n) for n in size)
        if any(isinstance(n, bool) for n in size):
            raise ValueError(message)
    except (TypeError, ValueError) as error:
        raise ValueError(message) from error
    if height < 1 or width < 1:
        raise ValueError(message)
    return height, width


@lru_cache(maxsize=32)
def pixel_centers(height: int, width: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the screen x of each column, (width,), and y of each row, (height,) [-]."""
    columns, rows = np.arange(width), np.arange(height)
    pixel_x = width / height * ((2 * columns + 1) / width - 1.0)
    pixel_y = 1.0 - (2 * rows + 1) / height
    return pixel_x.astype(dtype), pixel_y.astype(dtype)


@device_fn
def unpack_view(view):
    """Eye, and the frame: right, true up, forward and the lens."""
    right, true_up = (view[3], view[4], view[5]), (view[6], view[7], view[8])
    forward = (view[9], view[10], view[11])
    lens = (view[12], view[13], view[14], view[15], view[16], view[17])
    return (view[0], view[1], view[2]), (right, true_up, forward, lens)


@device_fn
def project(x, eye, right, true_up, forward, lens):
    """Screen position s_x, s_y [-] and depth z [m] of the point x."""
    f_x, k, c_x, f_y, c_y, p = lens
    d = sub(x, eye)  # (1)
    x_c = dot(right, d)  # (2)
    y_c = dot(true_up, d)  # (3)
    z = dot(forward, d)  # (4)
    w = p * z + (lit(1.0, p) - p)  # (5)
    s_x = (f_x * x_c + k * y_c) / w + c_x  # (6)
    s_y = f_y * y_c / w + c_y  # (7)
    return s_x, s_y, z


@device_fn
def towards_eye(x, eye, forward, p):
    """Vector from x to the eye [m], or against the view where the view is orthographic."""
    return axpy(p, sub(eye, x), scale(p - lit(1.0, p), forward))


@device_fn
def towards_body(i, x, eye, forward, p, towards):
    """Vertex i: write the vector towards the eye; of tangents, for it is linear, the tangent."""
    v = towards_eye((x[i, 0], x[i, 1], x[i, 2]), eye, forward, p)
    towards[i, 0], towards[i, 1], towards[i, 2] = v


@device_fn
def project_body(i, x, eye, frame, screen):
    """Vertex i: write its screen position and depth."""
    right, true_up, forward, lens = frame
    point = (x[i, 0], x[i, 1], x[i, 2])
    screen[i, 0], screen[i, 1], screen[i, 2] = project(point, eye, right, true_up, forward, lens)
