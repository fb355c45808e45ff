"""The points of bodies: sums and places, the step of one body among arrays, its twins."""

import numpy as np
import pytest

from adjoint.engine.timeloop import ReverseWork
from adjoint.rigid.points import add_points, undo_body_step
from adjsim.engine.tangent_packing import PackedVector
from adjsim.engine.tangents import TangentWork
from adjsim.rigid.mass_properties import inverse_inertia
from adjsim.rigid.points import advance_body, body_load, place_points, tangent_body
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE, place, read_body
from adjsim.tiles.loop_arrays import Bodies, Nodes, States
from tests.reference import rigid


N_NODES, SIZES = 3, (4, 5)
N_ROWS = N_NODES + sum(SIZES)
DT = 0.01
GRAVITY = np.array([0.2, -9.8, 0.1])
INERTIA = np.array([0.3, 0.5, 0.4, 0.03, -0.05, 0.02])
MASS, DRAG = 0.7, 2.5


@pytest.fixture
def bodies(rng):
    """Two bodies with four and five points, after three nodes."""
    ptr = N_NODES + np.cumsum([0, *SIZES])
    params = np.array([1 / MASS, *INERTIA, *inverse_inertia(INERTIA), DRAG])
    return Bodies(ptr, rng.normal(size=(sum(SIZES), 3)), np.stack([params, params]))


@pytest.fixture
def slots():
    """One slot a row, as one element per node would write it: the nodes, and a writer."""

    def write(values):
        flat = np.zeros(48 * -(-N_ROWS // 16) + 1)
        for n, value in enumerate(values):
            flat[of[n] + 16 * np.arange(3)] = value
        return flat

    rows = np.arange(N_ROWS)
    of = (rows // 16 * 48 + rows % 16).astype(np.uint32)
    lists = (np.arange(N_ROWS + 1, dtype=np.uint32), of)
    of_nodes = np.zeros(2, int), np.zeros((0, 2), int)
    return Nodes(np.zeros(0), np.zeros((1, 3)), *lists, *lists, *of_nodes), write


def states(rng):
    p = rng.normal(size=(2, STATE_SIZE))
    p[:, 3:7] /= np.linalg.norm(p[:, 3:7], axis=1, keepdims=True)
    return p


def stepped(bodies, slots, p, f, gravity=GRAVITY):
    """The new states, positions and velocities after a step with forces f at the rows."""
    nodes, write = slots
    x, v = np.full((N_ROWS, 3), np.nan), np.full((N_ROWS, 3), 9.0)
    before, after = States(x, v, p), States(x, v, np.full_like(p, np.nan))
    for b in range(2):
        load = body_load(b, bodies, nodes.ptr, nodes.slots_of, write(f))
        bad = advance_body(b, DT, gravity, load, bodies, before.p, after.p)
        place_points(b, b, bodies, after)
        assert bad == int(not np.isfinite(after.p[b]).all())
    return after.p, x, v


def test_a_body_is_stepped_as_in_the_reference_and_carries_its_points(rng, bodies, slots):
    p, f = states(rng), rng.normal(size=(N_ROWS, 3))
    p_new, x, v = stepped(bodies, slots, p, f)
    ptr, arms, _ = bodies
    for b in range(2):
        rows = slice(ptr[b], ptr[b + 1])
        c = arms[ptr[b] - N_NODES : ptr[b + 1] - N_NODES]
        parts = np.split(p[b], (3, 7, 10))
        new = rigid.step(parts, f[rows], c, (MASS, INERTIA, DRAG), GRAVITY, DT)
        np.testing.assert_allclose(p_new[b], np.concatenate(new), rtol=0, atol=1e-14)
        px, pv = rigid.points(new, c)
        np.testing.assert_allclose(x[rows], px, rtol=0, atol=1e-14)
        np.testing.assert_allclose(v[rows], pv, rtol=0, atol=1e-14)
    assert np.isnan(x[:N_NODES]).all()  # the nodes are not its business


def test_a_state_that_is_not_finite_is_reported(rng, bodies, slots):
    for column in range(STATE_SIZE):
        p = states(rng)
        p[1, column] = np.nan
        stepped(bodies, slots, p, np.zeros((N_ROWS, 3)))


def test_summing_and_placing_are_adjoint(rng, bodies, slots):
    nodes, write = slots
    q, base, M = rng.normal(size=(N_ROWS, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    F, S = body_load(1, bodies, nodes.ptr, nodes.slots_of, write(q))
    placed = np.zeros((N_ROWS, 3))
    place(1, bodies, tuple(base), tuple(map(tuple, M)), placed)
    left = np.sum(q * placed)
    assert left == pytest.approx(base @ np.array(F) + np.sum(M * np.array(S)), rel=1e-13)
    assert not placed[: bodies.point_ptr[1]].any()


@pytest.fixture
def direction(rng):
    """Tangents of p, f, params, gravity and arms."""
    return (
        rng.normal(size=(2, STATE_SIZE)),
        rng.normal(size=(N_ROWS, 3)),
        rng.normal(size=(2, PARAMS_SIZE)),
        rng.normal(size=3),
        rng.normal(size=(sum(SIZES), 3)),
    )


def pushed(bodies, slots, p, f, direction):
    """Tangents of the new states, positions and velocities."""
    nodes, write = slots
    tan_p, tan_f, tan_params, tan_g, tan_arms = direction
    p_new, x, v = stepped(bodies, slots, p, f)
    before, after = States(x, v, p), States(x, v, p_new)
    tan_x, tan_v = np.zeros((2, N_ROWS, 3))
    tan_before, tan_after = (States(tan_x, tan_v, tangent) for tangent in (tan_p, np.zeros_like(p)))
    tan = vector(bodies=tan_params, arms=tan_arms)
    work = TangentWork(write(f), write(tan_f), None)
    for b in range(2):
        tangent_body(
            b, DT, tan_g, nodes, bodies, tan, work, before, after, tan_before, tan_after
        )  # fmt: skip
    return tan_after.p, tan_x, tan_v


def vector(**parts):
    """A packed tangent or cotangent of these parts alone."""
    return PackedVector(**{name: parts.get(name) for name in PackedVector._fields})


def test_the_tangent_of_a_step_is_the_central_difference(rng, bodies, slots, direction):
    p, f, step = states(rng), rng.normal(size=(N_ROWS, 3)), 1e-6
    tan_p, tan_f, tan_params, tan_g, tan_arms = direction

    def at(t):
        moved = Bodies(bodies.point_ptr, bodies.arms + t * tan_arms, bodies.params + t * tan_params)
        return stepped(moved, slots, p + t * tan_p, f + t * tan_f, GRAVITY + t * tan_g)

    for ahead, behind, tangent in zip(
        at(step), at(-step), pushed(bodies, slots, p, f, direction), strict=True
    ):
        rows = slice(N_NODES if len(tangent) > 2 else 0, None)
        difference = (ahead[rows] - behind[rows]) / (2 * step)
        np.testing.assert_allclose(tangent[rows], difference, atol=1e-8)


def test_a_step_and_the_points_before_it_are_undone_as_the_tangent_says(
    rng, bodies, slots, direction
):
    # What acts at the points before the step, and on the state after it.
    nodes, write = slots
    p, f = states(rng), rng.normal(size=(N_ROWS, 3))
    adj_new, adj_x, adj_v = rng.normal(size=(2, 13)), *rng.normal(size=(2, N_ROWS, 3))
    tan_p, tan_f, tan_params, tan_g, tan_arms = direction
    r = p[:, 3:7]  # the reference turns by r (x) c (x) r*, which is R only on the sphere
    tan_p[:, 3:7] -= (tan_p[:, 3:7] * r).sum(axis=1, keepdims=True) * r
    tan_new, _, _ = pushed(bodies, slots, p, f, direction)
    tan_x, tan_v = placed_tangents(bodies, p, tan_p, tan_arms)
    left = np.sum(tan_new * adj_new) + np.sum(tan_x * adj_x) + np.sum(tan_v * adj_v)

    adj = vector(
        p=adj_new.copy(), gravity=np.zeros((2, 3)), bodies=np.zeros((2, PARAMS_SIZE)),
        arms=np.zeros((sum(SIZES), 3)),
    )  # fmt: skip
    work = ReverseWork(write(f), write(adj_x), write(adj_v), np.zeros((N_ROWS, 3)), None)
    for b in range(2):
        undo_body_step(b, DT, nodes, bodies, work, p, adj)
        add_points(b, nodes, bodies, work, p, adj)
    products = (adj.p * tan_p, work.adj_f * tan_f, adj.bodies * tan_params, adj.gravity * tan_g)
    products += (adj.arms * tan_arms,)
    assert left == pytest.approx(sum(terms.sum() for terms in products), rel=1e-12)
    assert all(np.abs(terms).sum() > 0 for terms in products)


def placed_tangents(bodies, p, tan_p, tan_arms):
    """Tangents of the points at states p, by a complex step through the reference."""
    x, v = np.zeros((2, N_ROWS, 3))
    ptr, arms, _ = bodies
    for b in range(2):
        state = np.split(p[b] + 1e-30j * tan_p[b], (3, 7, 10))
        c = (arms + 1e-30j * tan_arms)[ptr[b] - N_NODES : ptr[b + 1] - N_NODES]
        rows = slice(ptr[b], ptr[b + 1])
        x[rows], v[rows] = (array.imag / 1e-30 for array in rigid.points(state, c))
    return x, v


def test_a_row_holds_position_quaternion_velocity_and_spin():
    row = tuple(float(k) for k in range(STATE_SIZE))
    assert read_body(np.array([row]), 0) == (row[0:3], row[3:7], row[7:10], row[10:13])
