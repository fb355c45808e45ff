"""Where bodies start (`BodyState`), what they do (`BodyTrajectory`), and their vertices.

    r_0 = exp(theta/2) (x) r_nominal       theta: `rotation`, r: `orientation`
    x_k = x + R(r) c_k                     vertices, for drawing

Adjoint: `adjoint/rigid/pose.py`. Tests: `tests/rigid/test_pose.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import scale
from adjsim.jit.backend import device_fn, lit, loop_kernel
from adjsim.rigid.bodies import RigidBodies, arms_jvp
from adjsim.rigid.quaternion import (
    quat_exp,
    quat_exp_jvp,
    quat_matrix,
    quat_matrix_jvp,
    quat_mul,
    quat_mul_jvp,
)
from adjsim.rigid.rows import place, read_3
from adjsim.rotations import IDENTITY, unit_quaternions
from adjsim.tiles.loop_arrays import Bodies
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
        loop_kernel(start_rotations)(self.rotation, self.orientation, quaternions)
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
        return cls(*(field.copy() for field in np.split(packed, (3, 7, 10), axis=-1)))

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
    Tangent: `vertices_jvp`. Adjoint: `adjoint.rigid.pose.vertices_vjp`.
    """
    x, r = check_poses(bodies, poses)
    out = np.empty((len(x), bodies.n_points, 3), x.dtype)
    loop_kernel(place_vertices)(x, r, bodies.point_ptr, bodies.arms.astype(x.dtype), out)
    return out[:, bodies.hull]


def vertices_jvp(
    bodies: RigidBodies, poses: BodyTrajectory, tan_poses: BodyTrajectory, tan_vertices: Any = None
) -> np.ndarray:
    """Push tangents of positions and orientations through `adjsim.rigid.pose.vertices`.

    Parameters
    ----------
    bodies, poses
        As there.
    tan_poses : BodyTrajectory
        Tangents of the poses; those of velocities are not read.
    tan_vertices : array, optional
        Tangent of `bodies.vertices`, (n_vertices, 3): the meshes change too. None: 0.

    Returns
    -------
    array
        Tangents of the vertices, (n_frames, n_vertices, 3).
    """
    (x, r), (tan_x, tan_r) = check_poses(bodies, poses), check_poses(bodies, tan_poses)
    out = np.empty((len(x), bodies.n_points, 3), x.dtype)
    arms = bodies.arms.astype(x.dtype)
    loop_kernel(place_vertices_jvp)(
        r, tan_x.astype(x.dtype), tan_r.astype(x.dtype), bodies.point_ptr, arms, out
    )
    if tan_vertices is not None:
        tan = checks.array("tan_vertices", tan_vertices, bodies.vertices.shape)
        tan_arms = arms_jvp(bodies, {"vertices": tan})[bodies.hull]
        out[:, bodies.hull] += np.einsum("fkij,kj->fki", turns(bodies, r), tan_arms)
    return out[:, bodies.hull]


def turns(bodies: RigidBodies, r: np.ndarray) -> np.ndarray:
    """Return R(r) of the body of each vertex at each frame, (n_frames, n_vertices, 3, 3)."""
    from scipy.spatial.transform import Rotation  # heavy

    R = Rotation.from_quat(r.reshape(-1, 4)).as_matrix().reshape(*r.shape[:2], 3, 3)
    return np.repeat(R, [len(mesh.points) for mesh in bodies.meshes], axis=1)


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


@device_fn
def start_rotation_jvp(theta, nominal, tan_theta):
    """Push a tangent of theta through `start_rotation`."""
    half = lit(0.5, theta[0])
    h, tan_h = scale(half, theta), scale(half, tan_theta)
    turn, tan_turn = quat_exp(h), quat_exp_jvp(h, tan_h)  # (1)
    zero = lit(0, theta[0])
    return quat_mul_jvp(turn, nominal, tan_turn, (zero, zero, zero, zero))  # (2)


@device_fn
def read_4(a, b):
    """Return the quaternion in row b."""
    return (a[b, 0], a[b, 1], a[b, 2], a[b, 3])


def start_rotations(theta, nominal, out):
    """Write the rotation of every body at the start."""
    for b in range(theta.shape[0]):
        r = (nominal[b, 0], nominal[b, 1], nominal[b, 2], nominal[b, 3])
        q = start_rotation(read_3(theta, b, 0), r)
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = q


def start_rotations_jvp(theta, nominal, tan_theta, tan_r):
    """Write the tangent of the rotation of every body at the start."""
    for b in range(theta.shape[0]):
        tan = start_rotation_jvp(read_3(theta, b, 0), read_4(nominal, b), read_3(tan_theta, b, 0))
        tan_r[b, 0], tan_r[b, 1], tan_r[b, 2], tan_r[b, 3] = tan


def place_vertices(x, r, point_ptr, arms, out):
    """Write x + R(r) c for all points of all bodies at all frames."""
    for f in range(x.shape[0]):
        for b in range(x.shape[1]):
            R = quat_matrix((r[f, b, 0], r[f, b, 1], r[f, b, 2], r[f, b, 3]))  # (1)
            place(b, Bodies(point_ptr, arms, arms), read_3(x[f], b, 0), R, out[f])  # (2)


def place_vertices_jvp(r, tan_x, tan_r, point_ptr, arms, out):
    """Write the tangents of all points of all bodies at all frames."""
    for f in range(r.shape[0]):
        for b in range(r.shape[1]):
            tan_R = quat_matrix_jvp(read_4(r[f], b), read_4(tan_r[f], b))  # (1)
            place(b, Bodies(point_ptr, arms, arms), read_3(tan_x[f], b, 0), tan_R, out[f])  # (2)


def pack_state_jvp(state: BodyState, tangents: dict[str, np.ndarray]) -> np.ndarray:
    """Push tangents of a body state's parameters to packed states, (n_bodies, 13)."""
    zero: np.ndarray = np.zeros_like(state.position)
    tan_r = np.zeros_like(state.orientation)
    tan_theta = np.array(tangents.get("rotation", zero))
    loop_kernel(start_rotations_jvp)(state.rotation, state.orientation, tan_theta, tan_r)
    x, v, omega = (tangents.get(k, zero) for k in ("position", "velocity", "angular_velocity"))
    return np.concatenate([x, tan_r, v, omega], axis=1)
