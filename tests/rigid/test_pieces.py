"""Bodies in pieces: the numbers that whole bodies get, but for the order of sums."""

import numpy as np

from adjsim.rigid.pieces import cut_bodies, place_pieces, step_body, sum_pieces
from adjsim.tiles.loop_arrays import Bodies, Nodes, States
from tests.reference import rigid


N_NODES, SIZES, DT = 3, (70, 5), 0.01
N_ROWS = N_NODES + sum(SIZES)
F64 = np.dtype(np.float64)


def test_bodies_of_few_points_have_no_pieces():
    pieces = cut_bodies([np.array([3, 35, 60]), np.array([7])], F64)
    assert pieces.body.size == 0
    assert pieces.ptr.tolist() == [0, 0, 0]


def test_a_step_in_pieces_is_that_of_whole_bodies(rng):
    ptr = N_NODES + np.cumsum([0, *SIZES])
    inertia = np.array([0.3, 0.5, 0.4, 0.0, 0.0, 0.0])
    inverse = np.array([1 / 0.3, 1 / 0.5, 1 / 0.4, 0.0, 0.0, 0.0])
    arms = rng.normal(size=(sum(SIZES), 3))
    bodies = Bodies(ptr, arms, np.stack([[2.0, *inertia, *inverse, 0.5]] * 2))
    whole, pieces = cut_bodies([ptr[:1]], F64), cut_bodies([ptr], F64)
    assert pieces.body.tolist() == [0, 0, 0, 1]
    slots = rng.normal(size=48 * 5 + 1)
    rows = np.arange(N_ROWS)
    lists = (
        np.arange(N_ROWS + 1, dtype=np.uint32),
        (rows // 16 * 48 + rows % 16).astype(np.uint32),
    )
    of_nodes = np.zeros(5, int), np.full((N_NODES, 2), -1)
    nodes = Nodes(np.zeros(N_NODES), np.zeros((1, 3)), *lists, *lists, *of_nodes)
    before = States(*np.zeros((2, N_ROWS, 3)), rng.normal(size=(2, 13)))
    ends = []
    for cut in (whole, pieces):
        after = States(*np.zeros((2, N_ROWS, 3)), np.zeros((2, 13)))
        for thread in (2, 0, 1):
            sum_pieces(thread, 3, bodies, cut, nodes, slots)
        for b in range(2):
            assert step_body(b, DT, (0.1, -9.8, 0.2), nodes, bodies, cut, slots, before, after) == 0
        for thread in (1, 2, 0):
            place_pieces(thread, 3, bodies, cut, after)
        ends.append(after)
    for of_whole, of_pieces in zip(*ends, strict=True):
        np.testing.assert_allclose(of_whole, of_pieces, rtol=0, atol=1e-12)
    assert np.abs(ends[1].x[N_NODES:]).min() > 0
    placed = rigid.points(np.split(ends[1].p[0], (3, 7, 10)), arms[: SIZES[0]])
    np.testing.assert_allclose(ends[1].x[N_NODES : ptr[1]], placed[0], rtol=0, atol=1e-12)
