"""Lift and drag: closed forms, the kink, the reference, the contract, bad input."""

import dataclasses

import numpy as np
import pytest

from adjoint.forces.lift_drag import lift_drag_vjp
from adjoint.rollout import record
from adjoint.verify.contract import EPS, N_OPS, ForceContract, nodal_forces, vectors
from adjsim.courses import Signal
from adjsim.engine.stepper import RolloutError
from adjsim.forces.lift_drag import LiftDrag, lift_drag_force, lift_drag_jvp
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.forces.complex_steps import check_one_step
from tests.reference import lift_drag as reference


N_NODES, N_TRIANGLES = 12, 20
AWAY = 0.05  # from the kink [m/s]: differences move by 1e-4
CORNER = np.array([[0.0, 0, 0], [2, 0, 0], [0, 3, 0]])  # n = z, A = 3
ROW = (0.5, 2.0)  # k_lift, k_drag
WIND = (1.0, 0.0, 0.0)


def random_triangles(rng):
    return np.array([rng.permutation(N_NODES)[:3] for _ in range(N_TRIANGLES)])


def normal_speeds(force, x, v):
    """n.v_r [m/s], whose sign is the kink, (n_triangles,)."""
    corners = x[force.triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    v_r = v[force.triangles].mean(axis=1) - force.wind
    return (normal * v_r).sum(axis=1) / np.linalg.norm(normal, axis=1)


class TestLiftDrag(ForceContract):
    """Triangles that move into and out of a wind of their own, none along its plane."""

    def make(self, rng):
        each = rng.uniform(0.8, 1.2, (2, N_TRIANGLES))
        return LiftDrag(
            random_triangles(rng),
            lift=0.6 * each[0],
            drag=1.1 * each[1],
            wind=rng.standard_normal((N_TRIANGLES, 3)),
        )

    def state(self, rng, force):
        while True:
            x, v = rng.standard_normal((2, N_NODES, 3))
            if np.abs(normal_speeds(force, x, v)).min() > AWAY:
                return State(x, v)

    def test_the_state_is_away_from_the_kink_on_both_sides(self, case):
        force, x, v = case
        u = normal_speeds(force, x, v)
        assert np.abs(u).min() > AWAY
        assert {bool(side) for side in u > 0} == {True, False}

    def test_energy_goes_to_the_air(self, case):
        force, x, v = case
        still = dataclasses.replace(force, wind=(0.0, 0.0, 0.0))
        assert np.vdot(nodal_forces(still, x, v), v) < 0.0


class TestUniformWind(TestLiftDrag):
    """One coefficient and one wind for all: their cotangents are sums over the triangles."""

    def make(self, rng):
        return LiftDrag(random_triangles(rng), lift=0.6, drag=1.1, wind=(0.4, -1.0, 0.7))


def force(x, v, row=ROW, wind=WIND):
    return np.array(lift_drag_force(vectors(x), vectors(v), (), row, wind)[0])


def test_lift_and_drag_of_one_triangle_worked_out_by_hand():
    # v_r = (3, 0, -4): n.v_r = -4, s = 5. f_drag = -2 3 4 v_r, f_lift = +0.5 3 5 4 z.
    v = np.array([[4.0, 0, -4], [4, 0, -5], [4, 0, -3]])
    expected = (-24 * np.array([3.0, 0, -4]) + 30 * np.array([0.0, 0, 1])) / 3
    triangle = LiftDrag([[0, 1, 2]], *ROW, WIND)
    np.testing.assert_allclose(nodal_forces(triangle, CORNER, v), [expected] * 3, rtol=1e-12)


def test_a_flat_plate_falls_as_fast_as_drag_and_lift_hold_it(rng):
    # Falling flat, both push up with k A v^2: v = sqrt(m g/((k_lift + k_drag) A)).
    mass, g = 0.02, 9.8
    plate = LiftDrag([[0, 1, 2]], *ROW)
    model = Model(np.full(3, mass), {"air": plate}, gravity=(0, 0, -g))
    end = rollout(model, State(CORNER), 1e-3, 1000)
    v = -np.sqrt(3 * mass * g / (2.5 * 3.0))
    # s is longer than v_r by eps^2/(2 v^2) = 6e-12, in the lift, which is a fifth of it all.
    np.testing.assert_allclose(end.v[0, :, 2], v, rtol=1e-12)


def test_forces_equal_the_reference_and_either_side_will_do(rng):
    triangles = random_triangles(rng)
    x, v = rng.standard_normal((2, N_NODES, 3))
    lift, drag = rng.uniform(0.5, 1.5, (2, N_TRIANGLES))
    wind = rng.standard_normal((N_TRIANGLES, 3))
    expected = reference.forces(x, v, triangles, lift, drag, wind)
    for order in ([0, 1, 2], [2, 1, 0]):
        got = nodal_forces(LiftDrag(triangles[:, order], lift, drag, wind), x, v)
        np.testing.assert_allclose(got, expected, rtol=0, atol=N_OPS * EPS * np.abs(expected).max())


def test_gradient_equals_complex_steps_through_the_reference(rng):
    case = TestLiftDrag()
    air = case.make(rng)
    model = Model(rng.uniform(0.5, 2.0, N_NODES), {"air": air})

    def references(values):
        rows = [values[f"air.{key}"] for key in ("lift", "drag", "wind")]
        return [lambda k, x, v: reference.forces(x, v, air.triangles, *rows)]

    check_one_step(model, case.state(rng, air), 1e-2, references, rng)


def test_wind_may_be_a_series_or_a_signal_with_the_gradient_of_either(rng):
    triangles, state = random_triangles(rng), State(*rng.standard_normal((2, N_NODES, 3)))
    gusts = Signal([0.0, 3.0], [[0.0, 0.0, 1.0], [3.0, 0.0, -2.0]])
    rows = gusts.sample(4)[:, None, :] * np.ones((4, N_TRIANGLES, 1))
    runs = [
        record(Model(np.ones(N_NODES), {"air": LiftDrag(triangles, *ROW, wind)}), state, 1e-2, 4)
        for wind in (gusts, rows)
    ]
    np.testing.assert_array_equal(runs[0].trajectory.x, runs[1].trajectory.x)
    adj = rng.standard_normal((1, N_NODES, 3))
    of_signal, of_rows = (run.vjp(adj)["air.wind"] for run in runs)
    t = np.arange(4.0) / 3.0
    per_step = of_rows.sum(axis=1)
    expected = np.stack([(1 - t) @ per_step, t @ per_step])
    np.testing.assert_allclose(
        of_signal, expected, rtol=0, atol=N_OPS * EPS * np.abs(of_rows).sum()
    )
    with pytest.raises(ValueError, match=r"`air.wind` has a series of 4 rows, .* 5 steps"):
        rollout(Model(np.ones(N_NODES), {"air": LiftDrag(triangles, *ROW, rows)}), state, 1e-2, 5)


# The kink: v_r in the plane of the triangle.


def along(v, side):
    """Derivative of the force with v of all corners along `side`, by tangent and adjoint."""
    point = (vectors(CORNER), vectors(v), (), ROW, WIND)
    zero = vectors(np.zeros((3, 3)))
    tangent = lift_drag_jvp(*point, zero, vectors([side] * 3), (0.0, 0.0), (0.0, 0.0, 0.0))[0]
    rows = []
    for unit in np.eye(3):
        _, adj_v, _, _ = lift_drag_vjp(*point, (tuple(unit), *zero[1:]))
        rows.append(np.sum(adj_v, axis=0) @ side)
    return np.array(tangent), np.array(rows)


def test_kink_of_the_drag_takes_the_slope_zero_between_the_two_of_its_sides():
    # v_r = (3, 0, u): f_drag = -2 3 |u| v_r/3, so that d f_x/du = -+6 on the two sides.
    flying, h = np.array([[4.0, 0, 0]] * 3), 1e-6
    up = np.array([0.0, 0, 1])
    ahead, here, behind = (force(CORNER, flying + k * h * up) for k in (1, 0, -1))
    assert (ahead - here)[0] / h == pytest.approx(-6.0, rel=1e-6)
    assert (here - behind)[0] / h == pytest.approx(6.0, rel=1e-6)
    for slope in along(flying, up):
        # The lift has no kink: d f_z/du = -0.5 3 s/3 with s = 3.
        np.testing.assert_allclose(slope, [0.0, 0.0, -1.5], rtol=0, atol=1e-6 * 1.5)


def test_without_wind_at_rest_there_is_no_force_and_almost_no_slope():
    # s = eps = 1e-6 m/s at v_r = 0: the lift's slope is 0.5 eps A/3, and nothing is divided by.
    still = np.array([WIND] * 3)
    assert np.abs(force(CORNER, still)).max() == 0.0
    for slope in along(still, np.array([0.0, 0, 1])):
        np.testing.assert_allclose(slope, [0.0, 0.0, -0.5e-6], rtol=0, atol=1e-15)


def test_a_collapsed_triangle_is_named_or_stops_the_rollout():
    model = Model(np.ones(3), {"air": LiftDrag([[0, 1, 2]], *ROW, WIND)}, pinned=np.ones(3, bool))
    line = CORNER * [1, 0, 1]
    with pytest.raises(ValueError, match=r"`state.x` .* triangle of `air` .* \[0, 1, 2\]"):
        rollout(model, State(line), 1.0, 1)
    with pytest.raises(RolloutError, match=r"in step 1 .* triangle of `air` .* nodes \[0, 1, 2\]"):
        rollout(model, State(CORNER, line - CORNER), 1.0, 2)


N = "n_triangles"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"triangles": [[0, 1]]}, rf"`triangles` must have shape \({N}, 3\), got \(1, 2\)"),
        ({"triangles": [[0, 1.5, 2]]}, "`triangles` must hold integers, got float64"),
        ({"triangles": [[0, 1, 2], [2, 1, 2]]}, r"must have three different nodes, .* at row 1"),
        ({"lift": -1.0}, "`lift` must not be negative, got -1"),
        ({"drag": -2.0}, "`drag` must not be negative, got -2"),
        ({"drag": [1.0, 2.0]}, rf"`drag` must have shape \(\) or \({N},\) = \(1,\), got \(2,\)"),
        ({"wind": 3.0}, r"`wind` must have shape .* got \(\)"),
        ({"wind": [[1.0, 2.0]]}, r"`wind` must have shape .* got \(1, 2\)"),
        ({"wind": Signal([0.0, 1.0], [1.0, 2.0])}, r"`wind` must have shape .* got \(2,\)"),
    ],
)
def test_bad_input_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        LiftDrag(**{"triangles": [[0, 1, 2]], "lift": 1.0, "drag": 1.0, "wind": WIND, **changed})


def test_nodes_must_be_those_of_the_model():
    with pytest.raises(ValueError, match=r"`air.triangles` must index the 3 points, .* at row 0"):
        Model(np.ones(3), {"air": LiftDrag([[0, 1, 3]], *ROW)})
