"""The pose of a body by its frame points, and a force and a torque as forces on them."""

import numpy as np

from adjoint.rigid.frames import motion_vjp, spread_vjp
from adjsim.rigid.frames import motion, motion_jvp, spread, spread_jvp
from tests.joints.scenes import frame_points, tuples


EPS = np.finfo(float).eps


def vector(rng):
    return tuple(map(float, rng.standard_normal(3)))


def test_motion_is_that_of_a_point_of_the_body_and_its_spin(rng):
    v, omega = rng.standard_normal((2, 3))
    x, rates = frame_points(rng, (v, omega))
    a = rng.standard_normal(3)
    E = (x[1:] - x[0]).T
    p, p_rate, spin, axes, _ = motion(tuples(x), tuples(rates), tuple(a))
    np.testing.assert_allclose(p, x[0] + E @ a, rtol=0, atol=8 * EPS)
    np.testing.assert_allclose(p_rate, v + np.cross(omega, E @ a), rtol=0, atol=30 * EPS)
    np.testing.assert_allclose(spin, omega, rtol=0, atol=30 * EPS)
    np.testing.assert_allclose(np.array(axes).T, E, rtol=0, atol=4 * EPS)


def test_forces_on_the_points_have_the_force_and_the_moment(rng):
    x, _ = frame_points(rng)
    a, f, T = rng.standard_normal((3, 3))
    E = (x[1:] - x[0]).T
    g = np.array(spread(tuples(E.T), tuple(a), tuple(f), tuple(T)))
    np.testing.assert_allclose(g.sum(axis=0), f, rtol=0, atol=20 * EPS)
    moment = np.cross(x - x[0], g).sum(axis=0)
    np.testing.assert_allclose(moment, np.cross(E @ a, f) + T, rtol=0, atol=50 * EPS)


def test_what_the_points_do_is_what_force_and_torque_do_to_their_motion(rng):
    # Any points, not only those of a rigid body: the two maps are transposes.
    x, v = rng.standard_normal((2, 4, 3))
    a, f, T = rng.standard_normal((3, 3))
    g = np.array(spread(tuples(x[1:] - x[0]), tuple(a), tuple(f), tuple(T)))
    _, p_rate, omega, _, _ = motion(tuples(x), tuples(v), tuple(a))
    assert abs(np.vdot(g, v) - f @ p_rate - T @ omega) < 100 * EPS


def product(a, b):
    return sum(float(np.vdot(left, right)) for left, right in zip(a, b, strict=True))


def test_tangents_and_adjoints_are_transposes_and_match_differences(rng):
    x, v, tan_x, tan_v = rng.standard_normal((4, 4, 3))
    a, f, T, tan_a, tan_f, tan_T = rng.standard_normal((6, 3))
    h = 1e-6

    def moved(s):
        return motion(tuples(x + s * tan_x), tuples(v + s * tan_v), tuple(a + s * tan_a))

    tan = motion_jvp(tuples(x), tuples(v), tuple(a), tuples(tan_x), tuples(tan_v), tuple(tan_a))
    for ahead, behind, tangent in zip(moved(h), moved(-h), tan, strict=True):
        slope = (np.array(ahead) - np.array(behind)) / (2 * h)
        np.testing.assert_allclose(slope, tangent, rtol=0, atol=1e-8)
    adj = (vector(rng), vector(rng), vector(rng), tuple(vector(rng) for _ in range(3)))
    E, D = (tuples(y[1:] - y[0]) for y in (x, v))
    adj_x, adj_v, adj_a = motion_vjp(E, D, tuple(a), adj)
    pulled = product((adj_x, adj_v, adj_a), (tan_x, tan_v, tan_a))
    assert abs(product(adj, tan[:4]) - pulled) < 200 * EPS

    E, tan_E = x[1:], tan_x[1:]

    def forces(s):
        moved = (E + s * tan_E, a + s * tan_a, f + s * tan_f, T + s * tan_T)
        return np.array(spread(tuples(moved[0]), *map(tuple, moved[1:])))

    tan_g = spread_jvp(
        tuples(E), tuple(a), tuple(f), tuple(T),
        tuples(tan_E), tuple(tan_a), tuple(tan_f), tuple(tan_T),
    )  # fmt: skip
    np.testing.assert_allclose((forces(h) - forces(-h)) / (2 * h), tan_g, rtol=0, atol=1e-8)
    adj_g = tuple(vector(rng) for _ in range(4))
    pulled = product(
        spread_vjp(tuples(E), tuple(a), tuple(f), tuple(T), adj_g), (tan_E, tan_a, tan_f, tan_T)
    )
    assert abs(product(adj_g, tan_g) - pulled) < 200 * EPS
