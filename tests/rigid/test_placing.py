"""Points of bodies at their states: the reference, and states of other bodies."""

import numpy as np
import pytest

from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.placing import point_states
from adjsim.rigid.pose import BodyTrajectory, vertices
from tests.reference import rigid
from tests.rigid.scenes import box, lump


def test_points_are_where_the_reference_has_them_and_move_so(rng):
    points = {"tip": BodyPoint([1.0, 2.0, 3.0], body=1), "middle": BodyPoint(body=0)}
    bodies = RigidBodies([box(), lump(rng)], mass=1.0, points=points)
    r = rng.standard_normal((3, 2, 4))
    r /= np.linalg.norm(r, axis=-1, keepdims=True)
    states = BodyTrajectory(
        *rng.standard_normal((1, 3, 2, 3)), r, *rng.standard_normal((2, 3, 2, 3))
    )
    x, v = point_states(bodies, states)
    for f, b in np.ndindex(3, 2):
        rows = slice(*bodies.point_ptr[b : b + 2])
        body = [array[f, b] for array in vars(states).values()]
        for ours, theirs in zip((x, v), rigid.points(body, bodies.arms[rows]), strict=True):
            np.testing.assert_allclose(ours[f, rows], theirs, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(x[:, bodies.hull], vertices(bodies, states))
    middle = bodies.point_row("middle")
    np.testing.assert_array_equal(x[:, middle], states.position[:, 0])
    np.testing.assert_array_equal(v[:, middle], states.velocity[:, 0])
    single = RigidBodies(box(), mass=1.0)
    with pytest.raises(ValueError, match=r"`poses` must have positions \(n_frames, 1, 3\)"):
        point_states(single, states)
