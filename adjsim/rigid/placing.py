"""Where the points of bodies are, and how they move, at states of the bodies.

Tests: `tests/rigid/test_placing.py`.
"""

import numpy as np

from adjsim.rigid.bodies import RigidBodies, pack_bodies
from adjsim.rigid.points import place_kernel
from adjsim.rigid.pose import BodyTrajectory, check_poses
from adjsim.tiles.loop_arrays import States


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
    packed = pack_bodies({"": bodies}, 0, p.dtype)
    for f in range(len(p)):
        place_kernel(p.dtype)(0, bodies.n_bodies, packed, States(x[f], v[f], p[f]))
    return x, v
