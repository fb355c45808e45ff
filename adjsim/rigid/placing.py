"""Where the points of bodies are, and how they move, at states of the bodies.

Tests: `tests/rigid/test_placing.py`.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from adjsim.backend import cpu_kernel
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.points import place_points
from adjsim.rigid.pose import BodyTrajectory, check_poses
from adjsim.rigid.rows import PARAMS_SIZE


def point_states(bodies: RigidBodies, states: BodyTrajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return where the points of bodies are at every frame, and how they move.

    Parameters
    ----------
    bodies : RigidBodies
        The set; its vertices are the points `bodies.hull`, a named one is
        `bodies.point_row(name)`.
    states : BodyTrajectory
        Its states.

    Returns
    -------
    x, v : array
        x + R c [m] and v + R (omega x c) [m/s], (n_frames, n_points, 3).

    Raises
    ------
    ValueError
        If the states are of another number of bodies.
    """
    check_poses(bodies, states)
    p = np.ascontiguousarray(states.pack())
    x, v = (np.empty((len(p), bodies.n_points, 3), p.dtype) for _ in range(2))
    unused = np.zeros((bodies.n_bodies, PARAMS_SIZE), p.dtype)
    own = (bodies.point_ptr, bodies.arms.astype(p.dtype), unused)
    for f in range(len(p)):
        place_kernel()(own, p[f], x[f], v[f])
    return x, v


def place_bodies(bodies, p, x, v):
    """Write positions and velocities of the points of every body from its state."""
    for b in range(p.shape[0]):
        place_points(b, bodies, p, x, v)


@cache
def place_kernel() -> Callable:
    """Return the compiled `place_bodies`."""
    return cpu_kernel(place_bodies)
