"""Adjoint of `adjsim/rigid/pose.py`: the start of a rollout, and its vertices."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjoint.rigid.bodies import arms_vjp
from adjoint.rigid.quaternion import quat_exp_vjp, quat_matrix_vjp, quat_mul_vjp
from adjsim import checks
from adjsim.algebra.vec3 import add, axpy, scale
from adjsim.jit.backend import device_fn, lit, loop_kernel
from adjsim.model import Trajectory
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState, BodyTrajectory, check_poses, read_4, turns
from adjsim.rigid.quaternion import quat_exp
from adjsim.rigid.rows import STATE_SIZE, read_3, write_3


def pack_state_vjp(state: BodyState, adj: np.ndarray) -> dict[str, np.ndarray]:
    """Pull a cotangent of packed states, (n_bodies, 13), back to the parameters."""
    adj_x, adj_r, adj_v, adj_omega = np.split(adj, (3, 7, 10), axis=1)
    adj_theta = np.zeros_like(state.position)
    loop_kernel(start_rotations_vjp)(
        state.rotation, state.orientation, np.ascontiguousarray(adj_r), adj_theta
    )
    return {
        "position": adj_x,
        "rotation": adj_theta,
        "velocity": adj_v,
        "angular_velocity": adj_omega,
    }


def pack_cotangents(
    trajectory: Trajectory, given: Mapping[str, Any], dtype: np.dtype
) -> np.ndarray:
    """Return cotangents of the bodies' states at the frames, (n_frames, n_bodies, 13).

    `given` has for some sets of bodies a BodyTrajectory of cotangents, or a mapping with
    some of its parts; what is missing is zero.

    Raise a ValueError if a set or a part is unknown, or a cotangent has the wrong shape or is not
    finite.
    """
    packed = [np.zeros((len(trajectory.x), 0, STATE_SIZE))]
    given = checks.mapping("bodies", given, "{'block': {'position': ...}}")
    for name in given:
        checks.known_key("set of bodies", name, trajectory.bodies)
    for name, frames in trajectory.bodies.items():
        adj = given.get(name, {})
        if isinstance(adj, BodyTrajectory):
            adj = vars(adj)
        parts = checks.mapping(f"bodies[{name!r}]", adj, "{'position': ...}")
        for key in parts:
            checks.known_key(f"cotangent of `bodies[{name!r}]`", key, vars(frames))
        for key, frame in vars(frames).items():
            parts[key] = checks.array(
                f"bodies[{name!r}].{key}", parts.get(key, np.zeros_like(frame)), frame.shape
            )
        packed.append(np.concatenate([parts[key] for key in vars(frames)], axis=-1))
    return np.concatenate(packed, axis=1).astype(dtype)


def vertices_vjp(
    bodies: RigidBodies, poses: BodyTrajectory, adj_vertices: np.ndarray
) -> BodyTrajectory:
    """Pull a cotangent of `adjsim.rigid.pose.vertices` back to the poses.

    Parameters
    ----------
    bodies, poses
        As there.
    adj_vertices : array
        Cotangent of the vertices, (n_frames, n_vertices, 3).

    Returns
    -------
    BodyTrajectory
        Cotangents for `Record.vjp(bodies=...)`; those of the velocities are 0.

    Raises
    ------
    ValueError
        If the cotangent has the wrong shape or is not finite.
    """
    x, r = check_poses(bodies, poses)
    shape = (len(x), len(bodies.hull), 3)
    adj = np.zeros((len(x), bodies.n_points, 3), x.dtype)
    adj[:, bodies.hull] = checks.array("adj_vertices", adj_vertices, shape, dtype=x.dtype)
    adj_x, adj_r = np.empty_like(x), np.empty_like(r)
    arms = bodies.arms.astype(x.dtype)
    loop_kernel(place_vertices_vjp)(r, bodies.point_ptr, arms, adj, adj_x, adj_r)
    return BodyTrajectory(adj_x, adj_r, np.zeros_like(x), np.zeros_like(x))


def mesh_vertices_vjp(
    bodies: RigidBodies, poses: BodyTrajectory, adj_vertices: np.ndarray
) -> np.ndarray:
    """Pull a cotangent of `adjsim.rigid.pose.vertices` back to the vertices of the meshes.

    Parameters
    ----------
    bodies, poses, adj_vertices
        As of `vertices_vjp`, which pulls it back to the poses.

    Returns
    -------
    array
        Cotangent of `bodies.vertices`, (n_vertices, 3): what the poses do not carry. It adds to
        the gradient "NAME.vertices" of `Record.vjp`.

    Raises
    ------
    ValueError
        If the cotangent has the wrong shape or is not finite.
    """
    x, r = check_poses(bodies, poses)
    adj = checks.array("adj_vertices", adj_vertices, (len(x), len(bodies.hull), 3))
    adj_arms = np.zeros_like(bodies.arms)
    adj_arms[bodies.hull] = np.einsum("fkij,fki->kj", turns(bodies, r), adj)
    n = bodies.n_bodies
    return arms_vjp(bodies, adj_arms, np.zeros(n), np.zeros((n, 6)))["vertices"]


@device_fn
def start_rotation_vjp(theta, nominal, adj_r):
    """Pull a cotangent of `start_rotation` back to theta."""
    half = lit(0.5, theta[0])
    h = scale(half, theta)
    # (2) r_0 = turn (x) nominal
    adj_turn, _ = quat_mul_vjp(quat_exp(h), nominal, adj_r)
    # (1) turn = exp(theta/2)
    return scale(half, quat_exp_vjp(h, adj_turn))


def start_rotations_vjp(theta, nominal, adj_r, adj_theta):
    """Write the cotangent of theta of every body."""
    for b in range(theta.shape[0]):
        adj = start_rotation_vjp(read_3(theta, b, 0), read_4(nominal, b), read_4(adj_r, b))
        write_3(adj_theta, b, 0, adj)


def place_vertices_vjp(r, point_ptr, arms, adj, adj_x, adj_r):
    """Write the cotangents of positions and rotations of all bodies at all frames."""
    for f in range(r.shape[0]):
        for b in range(r.shape[1]):
            # (2) x + R c: the sums of q and of q c^T
            zero = lit(0, arms[0, 0])
            none = (zero, zero, zero)
            total, R0, R1, R2 = none, none, none, none
            for k in range(point_ptr[b], point_ptr[b + 1]):
                q, c = read_3(adj[f], k, 0), read_3(arms, k, 0)
                total = add(total, q)
                R0, R1, R2 = axpy(c[0], q, R0), axpy(c[1], q, R1), axpy(c[2], q, R2)
            write_3(adj_x[f], b, 0, total)
            # (1) R = R(r)
            pulled = quat_matrix_vjp(read_4(r[f], b), (R0, R1, R2))
            adj_r[f, b, 0], adj_r[f, b, 1], adj_r[f, b, 2], adj_r[f, b, 3] = pulled
