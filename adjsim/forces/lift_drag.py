r"""Lift and drag of triangles in the wind, a third of it on each node.

    v_r = (v0 + v1 + v2)/3 - v_wind,  n = unit normal,  A = area,  s = sqrt(v_r.v_r + eps^2)
    f_drag = -k_drag A |n.v_r| v_r
    f_lift = -k_lift A s (n.v_r) n

With c = (x1-x0) x (x2-x0) = 2 A n, drag needs neither n nor A: A |n.v_r| = |c.v_r|/2, and
A (n.v_r) n = (c.v_r) c/(2 |c|). The side that n points to does not matter. Both take energy
from the motion relative to the wind, k_drag A |n.v_r| |v_r|^2 and k_lift A s (n.v_r)^2 [W].

Kink: the drag at n.v_r = 0, where the derivative of |.| is taken as 0. eps = 1e-6 m/s keeps
the lift smooth at v_r = 0. A collapsed triangle (A = 0) has no normal: its force is not
finite, and the rollout stops.

The kind is not relative: wind is felt by the velocities themselves, and the air takes the
momentum.

Adjoint: `adjoint/forces/lift_drag.py`. Tests: `tests/forces/test_lift_drag.py`.
Source: ours.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import add, axpy, cross, dot, norm, scale, sub
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn, lit
from adjsim.meshes.triangle_mesh import collapsed_triangle
from adjsim.series import freeze_series
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


EPSILON = 1e-6  # [m/s]


@device_fn
def twice_area_normal(x):
    """Return c = 2 A n [m2] of three corners."""
    return cross(sub(x[1], x[0]), sub(x[2], x[0]))  # (1)


@device_fn
def relative_velocity(v, wind):
    """Return the velocity [m/s] of the middle of three corners relative to the wind."""
    return sub(scale(lit(1 / 3, wind[0]), add(v[0], add(v[1], v[2]))), wind)  # (2)


@device_fn
def lift_drag_force(x, v, consts, params, series):
    """Return the force [N] of the wind on three nodes, the same on each."""
    k_lift, k_drag = params
    sixth = lit(1 / 6, k_lift)  # a half of |c| = 2 A, and a third for each node
    c = twice_area_normal(x)
    v_r = relative_velocity(v, series)
    l = norm(c)  # (3) 2 A
    w = dot(c, v_r)  # (4) 2 A n.v_r
    s = math.sqrt(dot(v_r, v_r) + lit(EPSILON * EPSILON, w))  # (5)
    drag = -sixth * k_drag * abs(w)  # (6)
    lift = -sixth * k_lift * s * w / l  # (7)
    f = axpy(drag, v_r, scale(lift, c))  # (8)
    return (f, f, f)


@device_fn
def lift_drag_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `lift_drag_force`."""
    k_lift, k_drag = params
    tan_k_lift, tan_k_drag = tan_params
    sixth = lit(1 / 6, k_lift)
    c = twice_area_normal(x)  # (1)
    e1, e2 = sub(x[1], x[0]), sub(x[2], x[0])
    tan_e1, tan_e2 = sub(tan_x[1], tan_x[0]), sub(tan_x[2], tan_x[0])
    tan_c = add(cross(tan_e1, e2), cross(e1, tan_e2))
    v_r = relative_velocity(v, series)  # (2)
    tan_v_r = relative_velocity(tan_v, tan_series)
    l = norm(c)  # (3)
    tan_l = dot(c, tan_c) / l
    w = dot(c, v_r)  # (4)
    tan_w = dot(tan_c, v_r) + dot(c, tan_v_r)
    s = math.sqrt(dot(v_r, v_r) + lit(EPSILON * EPSILON, w))  # (5)
    tan_s = dot(v_r, tan_v_r) / s
    drag = -sixth * k_drag * abs(w)  # (6)
    tan_drag = -sixth * (tan_k_drag * abs(w) + k_drag * slope_of_abs(w) * tan_w)
    q = -sixth * w / l
    lift = q * k_lift * s  # (7)
    tan_q = (-sixth * tan_w - q * tan_l) / l
    tan_lift = tan_q * k_lift * s + q * (tan_k_lift * s + k_lift * tan_s)
    tan_f = axpy(tan_drag, v_r, scale(drag, tan_v_r))  # (8)
    tan_f = axpy(tan_lift, c, axpy(lift, tan_c, tan_f))
    return (tan_f, tan_f, tan_f)


@device_fn
def slope_of_abs(w):
    """Return the sign of w, 0 at 0: the derivative of |w|."""
    zero, unity = lit(0, w), lit(1, w)
    return (unity if w > zero else zero) - (unity if w < zero else zero)


LIFT_DRAG = ElementKind(
    "lift_drag", lift_drag_force, 3, 0, 2, 3, uses_velocity=True, jvp=lift_drag_jvp
)


@dataclass(frozen=True, eq=False)
class LiftDrag(Force):
    """Lift and drag of triangles in the wind.

    Parameters
    ----------
    triangles : array
        Nodes of each triangle, (n_triangles, 3) int. Which way they face does not matter.
    lift, drag : float or array
        k_lift and k_drag, () or (n_triangles,), not negative [kg/m3]: half the density of
        the air times a coefficient of the shape.
    wind : array or Signal
        Velocity of the air v_wind [m/s]: (3,), or (n_triangles, 3);
        (n_steps, n_triangles, 3) with row k acting in step k; or a `Signal` over control
        points of one of the first two. Rows of steps that are the same for all triangles are
        `Signal(range(n_steps), rows)`: an array (k, 3) is always one row per triangle.

    Raises
    ------
    ValueError
        If a shape does not fit, a node occurs twice in a triangle, or a coefficient is
        negative.
    """

    triangles: Any
    lift: Any
    drag: Any
    wind: Any = (0.0, 0.0, 0.0)

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("lift", "k_lift", "kg/m3", "() or (n_triangles,)", positive=True),
        Parameter("drag", "k_drag", "kg/m3", "() or (n_triangles,)", positive=True),
        Parameter("wind", "v_wind", "m/s", "(3,), (n_triangles, 3) or (n_steps, n_triangles, 3)"),
    )
    KIND = LIFT_DRAG
    PACKED: ClassVar = {"lift": (), "drag": ()}
    SERIES: ClassVar = ("wind", (3,))
    ELEMENTS = "triangles"

    def __post_init__(self) -> None:
        triangles = checks.integers("triangles", self.triangles, ("n_triangles", 3))
        twice = (triangles == np.roll(triangles, 1, axis=1)).any(axis=1)
        if twice.any():
            e = int(np.argmax(twice))
            raise ValueError(
                f"`triangles` must have three different nodes, got {triangles[e].tolist()} at "
                f"row {e}: it has no normal. Remove the triangle."
            )
        n = len(triangles)
        self.freeze_each(n, "n_triangles")
        checks.freeze(self, "triangles", triangles)
        freeze_series(self, "wind", ((3,), (n, 3)))

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Name the first triangle without area."""
        return collapsed_triangle(name, x, self.triangles)
