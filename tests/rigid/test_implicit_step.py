"""What one body leaves out of balance in an implicit step: the reference, the twins."""

import numpy as np
import pytest

from adjoint.rigid.body_step import body_end_vjp
from adjoint.rigid.implicit_step import body_balance_vjp
from adjsim.rigid.body_step import body_end, body_end_jvp
from adjsim.rigid.implicit_step import body_balance, body_balance_jvp
from tests.reference import rigid
from tests.render.elements import check_element
from tests.rigid.test_body_step import DRAG, DT, GRAVITY, INERTIA, MASS, body, load_of, params


NONE = (0.0,) * 3


def test_it_is_what_the_equations_say(rng):
    state, end = body(rng), body(rng)
    c, f = rng.normal(size=(2, 5, 3))
    e_v, e_w = body_balance(state, end, load_of(c, f), params(), GRAVITY, DT)
    (_, _, v, omega), (_, r, v_end, omega_end) = (
        [np.array(vector) for vector in motion] for motion in (state, end)
    )
    inertia, R = rigid.tensor(INERTIA), rigid.matrix(r)
    force = f.sum(axis=0) + MASS * (np.array(GRAVITY) - DRAG * v_end)
    torque = np.cross(c, f @ R).sum(axis=0) - DRAG * inertia @ omega_end
    torque -= np.cross(omega_end, inertia @ omega_end)
    np.testing.assert_allclose(e_v, MASS * (v_end - v) - DT * force, rtol=0, atol=1e-14)
    np.testing.assert_allclose(e_w, inertia @ (omega_end - omega) - DT * torque, rtol=0, atol=1e-14)


@pytest.mark.parametrize("spin_rate", [0.0, 3.0, 300.0], ids=["at rest", "spinning", "fast"])
def test_the_twins_of_the_balance(rng, spin_rate):
    """v' and omega' are fixed here: the adjoint leaves their cotangents out."""
    c, f = rng.normal(size=(2, 4, 3))
    (_, _, v, omega), (_, r_end, v_end, omega_end) = body(rng, spin_rate), body(rng, spin_rate)

    def whole(v, omega, r_end, *others):
        return (NONE, NONE, v, omega), (NONE, r_end, v_end, omega_end), *others

    def tangent(args, tangents):
        tan_v, tan_omega, tan_r, *others = tangents
        tan_ends = (NONE, NONE, tan_v, tan_omega), (NONE, tan_r, NONE, NONE)
        return body_balance_jvp(*whole(*args), DT, *tan_ends, *others)

    def adjoint(args, adj):
        adj_start, adj_r_end, *others = body_balance_vjp(*whole(*args), DT, adj)
        return (*adj_start, adj_r_end, *others)

    check_element(
        rng,
        lambda *args: body_balance(*whole(*args), DT),
        tangent,
        adjoint,
        (v, omega, r_end, load_of(c, f), params(), GRAVITY),
        step=1e-3,
    )


def test_the_twins_of_where_it_ends(rng):
    x, r, v, omega = body(rng)
    check_element(
        rng,
        lambda x, r, v, omega: body_end((x, r, NONE, NONE), v, omega, DT),
        lambda args, tan: body_end_jvp(
            (*args[:2], NONE, NONE), args[3], DT, (*tan[:2], NONE, NONE), *tan[2:]
        ),
        lambda args, adj: body_end_vjp((*args[:2], NONE, NONE), args[3], DT, adj),
        (x, r, v, omega),
        step=1e-3,
    )
