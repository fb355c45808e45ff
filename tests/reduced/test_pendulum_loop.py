"""The compiled loop: its step by hand, and its adjoint undone by hand."""

import numpy as np

from adjoint.reduced.pendulum_loop import make_add, reverse_loop
from adjoint.reduced.simple_pendulum import TWIN
from adjsim.jit.devices import Device
from adjsim.reduced.pendulum_loop import advance_loop, loop_rows, make_read, make_write
from adjsim.reduced.simple_pendulum import SIMPLE_PENDULUM


DT = 0.5
PARAMS, SERIES, NUMBERS = (
    np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]]),
    np.array([[2.0]]),
    np.array([DT]),
)


def test_rows_are_read_written_and_added_to():
    rows = np.arange(6.0).reshape(2, 3)
    assert make_read(3)(rows, 1) == (3.0, 4.0, 5.0)
    make_write(3)(rows, 0, (7.0, 8.0, 9.0))
    make_add(3)(rows, 0, (1.0, 1.0, 1.0))
    np.testing.assert_array_equal(rows[0], [8.0, 9.0, 10.0])
    assert make_read(0)(rows, 0) == ()


def test_states_go_to_the_rows_they_are_given():
    Q, U = np.zeros((3, 1)), np.zeros((3, 1))
    finite = np.array([2])
    args = (PARAMS, SERIES, NUMBERS, loop_rows(0, np.array([2, 0, 2])), (Q, U), finite)
    advance_loop(SIMPLE_PENDULUM, Device.CPU)(args)
    # T = 2, l = m = 1, g = b = 0: u = 1, 2 and q = 0.5, 1.5
    np.testing.assert_array_equal(U.ravel(), [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(Q.ravel(), [0.5, 0.0, 1.5])
    assert finite[0] == 2


def test_the_loop_stops_where_the_numbers_end():
    Q, U = np.zeros((4, 1)), np.full((4, 1), 1e308)
    finite = np.array([3])
    args = (PARAMS, SERIES, np.array([10.0]), loop_rows(0, np.arange(4)), (Q, U), finite)
    advance_loop(SIMPLE_PENDULUM, Device.CPU)(args)
    assert finite[0] == 0
    np.testing.assert_array_equal(Q[2:], 0.0)


def test_the_adjoint_of_two_free_steps_by_hand():
    Q, U = np.zeros((2, 1)), np.zeros((2, 1))
    adj = tuple(np.zeros(shape) for shape in ((1, 1), (1, 1), (1, 8), (1, 1)))
    frames = (np.array([-1, 0]), np.array([[1.0]]), np.array([[0.0]]))
    args = (PARAMS, SERIES, NUMBERS, loop_rows(0, np.arange(2)), (Q, U), frames, adj)
    reverse_loop(TWIN, Device.CPU)(args)
    # q_2 = q_0 + 2 dt u_0 + 3 dt^2 T
    assert [float(array[0, 0]) for array in (adj[0], adj[1], adj[3])] == [1.0, 2 * DT, 3 * DT**2]
