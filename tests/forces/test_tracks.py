"""Poses and velocities that vary in time: series, signals, their gradients, paths, errors."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from adjoint.forces.tracks import ROW_ADJOINTS
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.contract import EPS
from adjsim.courses import Signal
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.tracks import ROW_TANGENTS, path_angular_velocity, path_velocity, unit_rows
from adjsim.model import Model, State
from adjsim.rollout import rollout
from adjsim.rotations import rotation_matrix, rotation_rate


N_STEPS, DT = 6, 0.01
LAW = {"stiffness": 300.0, "damping": 6.0, "friction_stiffness": 20.0, "friction": 0.5}
TRACKS = ("center", "rotation", "velocity", "angular_velocity")


@pytest.fixture
def scene(rng):
    """Nodes about a box, and cotangents."""
    state = State(rng.uniform(-0.5, 0.5, (10, 3)), rng.standard_normal((10, 3)))
    return state, rng.standard_normal((2, 1, 10, 3))


def run_box(state, **tracks):
    box = BoxContact(half_extents=(0.3, 0.4, 0.5), **LAW, **tracks)
    return record(Model(np.ones(10), {"it": box}), state, DT, N_STEPS)


@pytest.mark.parametrize("rows", ROW_ADJOINTS, ids=lambda rows: rows.__name__)
def test_twins_of_rows_match_differences_and_are_transposes(rng, rows):
    values, tan = rng.standard_normal((2, 5, 3))
    h = 1e-6
    axes = Rotation.from_quat(rng.standard_normal(4)).as_matrix()
    got = ROW_TANGENTS[rows](values, tan, axes)
    difference = (rows(values + h * tan, axes) - rows(values - h * tan, axes)) / (2 * h)
    np.testing.assert_allclose(difference, got, rtol=0, atol=1e-9)
    adj = rng.standard_normal(got.shape)
    size = np.abs(adj).sum() * np.abs(got).max()
    assert np.vdot(ROW_ADJOINTS[rows](values, adj, axes), tan) == pytest.approx(
        np.vdot(adj, got), abs=EPS * size
    )


def test_a_series_of_equal_rows_is_the_constant_to_the_bit(scene, rng):
    state, adj = scene
    constant = {name: 0.1 * rng.standard_normal(3) for name in TRACKS}
    still, moved = run_box(state, **constant), {}
    for name in TRACKS:
        run = run_box(state, **{**constant, name: np.tile(constant[name], (N_STEPS, 1))})
        np.testing.assert_array_equal(run.trajectory.x, still.trajectory.x)
        moved[name] = run.vjp(*adj)[f"it.{name}"]
    gradient = still.vjp(*adj)
    for name in TRACKS:
        assert moved[name].shape == (N_STEPS, 3)
        np.testing.assert_allclose(
            moved[name].sum(axis=0), gradient[f"it.{name}"], rtol=0,
            atol=100 * EPS * np.abs(moved[name]).max(),
        )  # fmt: skip


def test_row_k_acts_in_step_k():
    # One node rests in the floor; the floor's velocity drags it along in step 2 only.
    V = np.zeros((N_STEPS, 3))
    V[2, 0] = 1.0
    floor = HalfSpaceContact(
        height=1.0, velocity=V, stiffness=1.0, friction_stiffness=2.0, friction=10.0
    )
    model = Model([1.0], {"floor": floor}, gravity=(0, 0, 0))
    run = rollout(model, State(np.zeros((1, 3))), DT, N_STEPS, frames=range(N_STEPS + 1))
    moved = run.v[:, 0, 0]
    assert not moved[:3].any()
    assert moved[3] == pytest.approx(2.0 * DT, rel=10 * EPS)  # dt k_f V/m


def test_a_signal_is_its_series_and_its_gradient_goes_to_the_knots(scene, rng):
    state, adj = scene
    knots = np.array([0.5, 2.0, 4.0])
    signals = {name: Signal(knots, 0.2 * rng.standard_normal((3, 3))) for name in TRACKS}
    series = {name: signal.sample(N_STEPS) for name, signal in signals.items()}
    a, b = run_box(state, **signals), run_box(state, **series)
    np.testing.assert_array_equal(a.trajectory.x, b.trajectory.x)
    gradient, rows = a.vjp(*adj), b.vjp(*adj)
    weights = np.array([Signal(knots, e).sample(N_STEPS) for e in np.eye(3)])  # (knot, step)
    for name in TRACKS:
        expected = weights @ rows[f"it.{name}"]
        assert np.abs(expected).max() > 0.0
        np.testing.assert_allclose(
            gradient[f"it.{name}"], expected, rtol=0, atol=100 * EPS * np.abs(expected).max()
        )
    tangents = {f"it.{name}": rng.standard_normal((3, 3)) for name in TRACKS}
    _, tan = rollout_jvp(a.model, state, DT, N_STEPS, tangents)
    forth = np.vdot(adj[0], tan.x) + np.vdot(adj[1], tan.v)
    back = sum(np.vdot(gradient[path], t) for path, t in tangents.items())
    assert forth == pytest.approx(back, rel=1e-12)


def test_the_velocity_of_a_path_is_that_of_a_parabola_and_of_a_spin():
    t = 0.1 * np.arange(8)
    v = path_velocity(np.stack([t, 3.0 * t**2, np.ones(8)], axis=1), 0.1)
    np.testing.assert_allclose(v[1:-1, 1], 6.0 * t[1:-1], atol=1e-12)  # exact inside
    np.testing.assert_allclose(v[:, 0], 1.0, atol=1e-12)
    assert path_velocity(t**2, 0.1).shape == (8,)
    # A spin by w after a fixed turn: SciPy composes, and w comes out up to O(dt^2).
    w, dt = np.array([0.3, -0.5, 0.2]), 1e-3
    first = Rotation.from_rotvec([0.4, 0.1, -0.3])
    path = np.array([(Rotation.from_rotvec(k * dt * w) * first).as_rotvec() for k in range(5)])
    np.testing.assert_allclose(path_angular_velocity(path, dt)[1:-1], np.tile(w, (3, 1)), atol=1e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: path_velocity([[0, 0, 0]], 0.1), "`positions` must have at least two rows"),
        (lambda: path_velocity(np.zeros((3, 3)), 0.0), "`dt` must be positive, got 0"),
        (lambda: path_angular_velocity(np.zeros(3), 0.1), r"`rotations` must have shape"),
        (lambda: unit_rows(np.zeros((2, 3))), "`normal` must not be zero, as in row 0"),
        (
            lambda: HalfSpaceContact(normal=[(0, 1, 0), (0, 0, 0)]),
            "`normal` must not be zero, as in row 1",
        ),
        (
            lambda: HalfSpaceContact(normal=[(0, 1, 0), (0, 1e160, 0)]),
            r"`normal` must have a length between 1e-100 and 1e\+100, got .*1e\+160",
        ),
        (
            lambda: unit_rows(np.array([[0.0, 1e-140, 0.0]])),
            r"`normal` must have a length between 1e-100 and 1e\+100, got .*1e-140",
        ),
        (
            lambda: BoxContact(center=np.zeros((4, 3)), velocity=np.zeros((5, 3))),
            "must have one row per step, all as many: `center` has 4, `velocity` has 5",
        ),
        (
            lambda: HalfSpaceContact(height=Signal([0, 1], np.zeros((2, 3)))),
            r"`height` must have shape \(n_knots",
        ),
    ],
)
def test_what_cannot_be_a_track_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_series_of_another_length_and_a_signal_through_zero_are_named_by_the_rollout():
    state = State(np.zeros((1, 3)))
    short = HalfSpaceContact(height=np.zeros(4))
    with pytest.raises(ValueError, match=r"`floor\.\w+` has a series of 4 rows, .* 6 steps"):
        rollout(Model([1.0], {"floor": short}), state, DT, N_STEPS)
    flips = HalfSpaceContact(normal=Signal([0, 4], [(0, 1, 0), (0, -1, 0)]))
    with pytest.raises(ValueError, match="`normal` must not be zero, as in row 2"):
        rollout(Model([1.0], {"floor": flips}), state, DT, N_STEPS)


@pytest.mark.parametrize(("back", "row"), [(-2.0, 2), (-0.5, 4), (-1.0, 3)])
def test_a_signal_that_rounding_takes_past_zero_is_named_too(back, row):
    normal = np.array([0.3, 0.9, 0.1])
    values = Signal([0, 6], [normal, back * normal]).sample(7)
    assert np.linalg.norm(values[row]) < 1e-15
    with pytest.raises(ValueError, match=f"`normal` must not be zero, as in row {row}"):
        unit_rows(values)
    assert np.isfinite(unit_rows(np.delete(values, row, axis=0))).all()


def test_an_orientation_is_what_a_rotation_turns(scene, rng):
    state, adj = scene
    theta, nominal = rng.standard_normal(3), rng.standard_normal(4)
    both = Rotation.from_rotvec(theta) * Rotation.from_quat(nominal)
    turned, plain = (
        run_box(state, rotation=theta, orientation=nominal),
        run_box(state, rotation=both.as_rotvec()),
    )
    np.testing.assert_allclose(turned.trajectory.x, plain.trajectory.x, rtol=0, atol=1e-14)
    # about the same world axes: the Jacobians of the exponential differ, the gradients by them
    gradient, plain_gradient = (run.vjp(*adj)["it.rotation"] for run in (turned, plain))
    about_axes = np.linalg.solve(rotation_rate(theta).T, gradient)
    np.testing.assert_allclose(
        about_axes, np.linalg.solve(rotation_rate(both.as_rotvec()).T, plain_gradient), atol=1e-10
    )


def test_a_capsule_by_its_ends_lies_between_them(rng):
    for first, last in (rng.standard_normal((2, 3)), ((0, 1, 0), (0, -1, 0))):
        rod = CapsuleContact.between(first, last, 0.1, friction=0.2, friction_stiffness=1.0)
        axis = (rotation_matrix(rod.rotation) @ rod.axes)[:, 1]
        np.testing.assert_allclose(rod.center + rod.half_length * axis, last, atol=1e-15)
        np.testing.assert_allclose(rod.center - rod.half_length * axis, first, atol=1e-15)
        assert rod.friction == 0.2
    with pytest.raises(ValueError, match="`first` and `last` must be two places"):
        CapsuleContact.between((0, 1, 0), (0, 1, 0), 0.1)
    with pytest.raises(ValueError, match="`orientation` must not be a quaternion of length 0"):
        BoxContact(orientation=(0, 0, 0, 0))
