"""Where bodies start (`BodyState`), what they do (`BodyTrajectory`), and their vertices.

    r_0 = exp(theta/2) (x) r_nominal       theta: `rotation`, r: `orientation`
    x_k = x + R(r) c_k                     vertices, for drawing

Adjoint: `adjoint/rigid/pose.py`. Tests: `tests/rigid/test_pose.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.engine.algebra.vec3 import scale
from adjsim.engine.jit.backend import cpu_kernel, device_fn, lit
from adjsim.engine.loop_arrays import Bodies
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.quaternion import quat_exp, quat_matrix, quat_mul
from adjsim.rigid.rows import place, read_3
from adjsim.rotations import IDENTITY, unit_quaternions
from adjsim.values import Parameter


@dataclass(frozen=True, eq=False)
class BodyState:
    """Where a set of bodies starts, and how it moves there.

    One body may leave out the axis of bodies: (3,) for (1, 3).

    Parameters
    ----------
    position : array
        Centres of mass, (n_bodies, 3) [m].
    orientation : array, optional
        Nominal quaternions (x, y, z, w), (n_bodies, 4), of any length but 0: they are
        divided by it. From body axes to world axes; None: those agree.
    velocity : array, optional
        Of the centres of mass, (n_bodies, 3) [m/s]. None: at rest.
    angular_velocity : array, optional
        In body axes, (n_bodies, 3) [rad/s]. None: at rest.
    rotation : array, optional
        Rotation vectors theta, (n_bodies, 3) [rad]: the bodies start at exp(theta/2) (x)
        orientation, turned by theta about world axes. None: 0.

    Raises
    ------
    ValueError
        If a shape does not fit, a number is not finite, or a quaternion is 0.
    """

    position: Any
    orientation: Any = None
    velocity: Any = None
    angular_velocity: Any = None
    rotation: Any = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("position", "x", "m", "(n_bodies, 3)"),
        Parameter("rotation", "ϑ", "rad", "(n_bodies, 3)"),
        Parameter("velocity", "v", "m/s", "(n_bodies, 3)"),
        Parameter("angular_velocity", "ω", "rad/s", "(n_bodies, 3)"),
    )

    def __post_init__(self) -> None:
        position = _rows("position", self.position, "n_bodies", 3)
        n = len(position)
        if n == 0:
            raise ValueError("`position` must not be empty: it has one row per body.")
        checks.freeze(self, "position", position)
        for name in ("velocity", "angular_velocity", "rotation"):
            value = getattr(self, name)
            checks.freeze(self, name, np.zeros((n, 3)) if value is None else _rows(name, value, n))
        given = np.tile(IDENTITY, (n, 1)) if self.orientation is None else self.orientation
        nominal = _rows("orientation", given, n, 4)
        checks.freeze(self, "orientation", unit_quaternions("orientation", nominal))

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the differentiable parameters by name."""
        return {p.name: getattr(self, p.name) for p in self.PARAMETERS}

    def with_values(self, values: Mapping[str, Any]) -> "BodyState":
        """Return the state with other values of some parameters."""
        return replace(self, **values)

    def pack(self) -> np.ndarray:
        """Return position, quaternion, velocity, angular velocity: (n_bodies, 13)."""
        quaternions = np.empty_like(self.orientation)
        start_kernel()(self.rotation, self.orientation, quaternions)
        return np.concatenate(
            [self.position, quaternions, self.velocity, self.angular_velocity], axis=1
        )


@dataclass(frozen=True, eq=False)
class BodyTrajectory:
    """States of a set of bodies at the frames, or cotangents or tangents of these.

    Parameters
    ----------
    position : array
        Centres of mass, (n_frames, n_bodies, 3) [m].
    orientation : array
        Unit quaternions (x, y, z, w), (n_frames, n_bodies, 4); r and -r are the same.
    velocity : array
        Of the centres of mass, (n_frames, n_bodies, 3) [m/s].
    angular_velocity : array
        In body axes, (n_frames, n_bodies, 3) [rad/s].
    """

    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray

    @classmethod
    def unpack(cls, packed: np.ndarray) -> "BodyTrajectory":
        """Return the parts of packed states, (n_frames, n_bodies, 13)."""
        return cls(*(part.copy() for part in np.split(packed, (3, 7, 10), axis=-1)))

    def pack(self) -> np.ndarray:
        """Return position, quaternion, velocity, angular velocity: (n_frames, n_bodies, 13)."""
        parts = (self.position, self.orientation, self.velocity, self.angular_velocity)
        return np.concatenate(parts, axis=-1)


def vertices(bodies: RigidBodies, poses: BodyTrajectory) -> np.ndarray:
    """Return the vertices of bodies at every frame, for drawing with `bodies.faces`.

    Parameters
    ----------
    bodies : RigidBodies
        The set, with n_vertices vertices in all its meshes.
    poses : BodyTrajectory
        Its positions and orientations.

    Returns
    -------
    array
        x + R c, (n_frames, n_vertices, 3) [m].

    Raises
    ------
    ValueError
        If the poses are of another number of bodies.

    Notes
    -----
    Tangent and adjoint: `adjoint.rigid.pose.vertices_jvp` and `vertices_vjp`.
    """
    x, r = check_poses(bodies, poses)
    out = np.empty((len(x), bodies.n_points, 3), x.dtype)
    vertices_kernel()(x, r, bodies.point_ptr, bodies.arms.astype(x.dtype), out)
    return out[:, bodies.hull]


def check_poses(bodies: RigidBodies, poses: BodyTrajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and orientations, contiguous, of one dtype, for so many bodies."""
    x, r = np.asarray(poses.position), np.asarray(poses.orientation)
    n = bodies.n_bodies
    if x.ndim != 3 or x.shape[1:] != (n, 3) or r.shape != (len(x), n, 4):
        raise ValueError(
            f"`poses` must have positions (n_frames, {n}, 3) and orientations (n_frames, {n}, "
            f"4), got {x.shape} and {r.shape}."
        )
    dtype = checks.float_dtype(x.dtype)
    return np.require(x, dtype, ("C", "W")), np.require(r, dtype, ("C", "W"))


def _rows(name: str, value: Any, n: int | str, size: int = 3) -> np.ndarray:
    """Return a finite array (n, size); one body may come as (size,)."""
    out = checks.array(name, value)
    return checks.array(name, out[None] if out.ndim == 1 else out, (n, size))


@device_fn
def start_rotation(theta, nominal):
    """Return r_0 = exp(theta/2) (x) r_nominal."""
    turn = quat_exp(scale(lit(0.5, theta[0]), theta))  # (1)
    return quat_mul(turn, nominal)  # (2)


def start_rotations(theta, nominal, out):
    """Write the rotation of every body at the start."""
    for b in range(theta.shape[0]):
        r = (nominal[b, 0], nominal[b, 1], nominal[b, 2], nominal[b, 3])
        q = start_rotation(read_3(theta, b, 0), r)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = q


def place_vertices(x, r, point_ptr, arms, out):
    """Write x + R(r) c for all points of all bodies at all frames."""
    for f in range(x.shape[0]):
        for b in range(x.shape[1]):
            R = quat_matrix((r[f, b, 0], r[f, b, 1], r[f, b, 2], r[f, b, 3]))  # (1)
            place(b, Bodies(point_ptr, arms, arms), read_3(x[f], b, 0), R, out[f])  # (2)


@cache
def start_kernel() -> Callable:
    """Return the compiled `start_rotations`."""
    return cpu_kernel(start_rotations)


@cache
def vertices_kernel() -> Callable:
    """Return the compiled `place_vertices`."""
    return cpu_kernel(place_vertices)
