"""One body, one step: the reference, momentum, the twins."""

import numpy as np
import pytest

from adjoint.rigid.body_step import body_frames_vjp, body_step_vjp
from adjsim.rigid.body_step import (
    body_frames,
    body_frames_jvp,
    body_step,
    body_step_jvp,
    moment,
    spin,
    sym_matvec,
)
from adjsim.rigid.mass_properties import inverse_inertia
from tests.reference import rigid
from tests.render.elements import check_element


DT = 0.01
GRAVITY = (0.2, -9.8, 0.1)
INERTIA = np.array([0.3, 0.5, 0.4, 0.03, -0.05, 0.02])
MASS, DRAG = 0.7, 2.5


def body(rng, spin_rate=3.0):
    r = rng.normal(size=4)
    parts = (rng.normal(size=3), r / np.linalg.norm(r), rng.normal(size=3))
    return tuple(tuple(vector) for vector in (*parts, spin_rate * rng.normal(size=3)))


def params(mass=MASS, inertia=INERTIA):
    return (1.0 / mass, *map(float, inertia), *map(float, inverse_inertia(inertia)), DRAG)


def load_of(c, f):
    """F and the columns of S of forces f (n, 3) at points c (n, 3)."""
    S = np.einsum("ki,kj->ij", f, c)
    return tuple(f.sum(axis=0)), tuple(tuple(column) for column in S.T)


def test_points_move_with_the_affine_map(rng):
    state, c = body(rng), rng.normal(size=(5, 3))
    R, D = (np.transpose(matrix) for matrix in body_frames(state))
    p, u = rigid.points([np.array(vector) for vector in state], c)
    np.testing.assert_allclose(np.array(state[0]) + c @ R.T, p, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.array(state[2]) + c @ D.T, u, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mass", [0.7, 1e-3])
def test_a_step_is_that_of_the_reference(rng, mass):
    inertia = INERTIA * mass / MASS
    state, c, f = body(rng), rng.normal(size=(5, 3)), mass * rng.normal(size=(5, 3))
    new = body_step(state, load_of(c, f), params(mass, inertia), GRAVITY, DT)
    parts = [np.array(vector) for vector in state]
    theirs = rigid.step(parts, f, c, (mass, inertia, DRAG), GRAVITY, DT)
    for ours, expected in zip(new, theirs, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-14)


def test_forces_on_one_line_turn_nothing_and_a_couple_pushes_nothing(rng):
    state, c = body(rng, 0.0), rng.normal(size=(2, 3))
    p, _ = rigid.points([np.array(vector) for vector in state], c)
    along = p[1] - p[0]
    new = body_step(state, load_of(c, np.array([along, -along])), params(), (0.0,) * 3, DT)
    slower = (1.0 - DT * DRAG) * np.array(state[2])
    np.testing.assert_allclose(new[2], slower, rtol=0, atol=1e-15)
    np.testing.assert_allclose(new[3], 0.0, atol=1e-14)
    couple = np.cross(along, [1.0, 2.0, 3.0])
    new = body_step(state, load_of(c, np.array([couple, -couple])), params(), (0.0,) * 3, DT)
    np.testing.assert_allclose(new[2], slower, rtol=0, atol=1e-15)
    assert np.linalg.norm(new[3]) > 1e-3


def test_spin_and_moment_are_adjoint(rng):
    R, D = (tuple(tuple(column) for column in rng.normal(size=(3, 3))) for _ in range(2))
    omega = rng.normal(size=3)
    left = np.sum(np.array(spin(R, tuple(omega))) * np.array(D))
    assert left == pytest.approx(omega @ np.array(moment(R, D)), rel=1e-13)


def test_a_symmetric_product_reads_its_six_numbers(rng):
    b = rng.normal(size=3)
    product = sym_matvec(tuple(INERTIA), tuple(b))
    np.testing.assert_allclose(product, rigid.tensor(INERTIA) @ b, rtol=1e-14)


def test_the_twins_of_the_frames(rng):
    def frames(r, omega):
        return body_frames(((0.0,) * 3, r, (0.0,) * 3, omega))

    none = (0.0,) * 3
    check_element(
        rng,
        frames,
        lambda args, tan: body_frames_jvp(
            (none, args[0], none, args[1]), (none, tan[0], none, tan[1])
        ),
        lambda args, adj: body_frames_vjp((none, args[0], none, args[1]), *adj),
        body(rng)[1::2],
    )


@pytest.mark.parametrize("spin_rate", [0.0, 3.0, 300.0], ids=["at rest", "spinning", "fast"])
def test_the_twins_of_the_step(rng, spin_rate):
    c, f = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    args = (body(rng, spin_rate), load_of(c, f), params(), GRAVITY)
    check_element(
        rng,
        lambda *a: body_step(*a, DT),
        lambda a, tangents: body_step_jvp(*a[:3], DT, *tangents),
        lambda a, adj: body_step_vjp(*a[:3], DT, adj),
        args,
        step=1e-3,
    )
