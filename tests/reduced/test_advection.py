"""Lookups: by hand, at the kinks, and their adjoint in gather form."""

import itertools

import numpy as np
import pytest

from adjoint.reduced.advection import advect_jvp, advect_vjp
from adjsim.jit.devices import Device
from adjsim.reduced.advection import CellRows
from tests.reference import smoke as reference


EPS = np.finfo(np.float64).eps


def grid_of(shape, threads=1):
    return CellRows(shape, Device.CPU, threads)


def flat(field):
    return field.reshape(field.shape[0] * field.shape[1], -1)


def advected(field, velocity, threads=1):
    out = np.empty_like(field)
    grid_of(field.shape[:2], threads).advect(flat(field), flat(velocity), flat(out))
    return out


def pulled_back(field, velocity, adj, threads=1):
    adj_field, adj_velocity = np.zeros_like(field), np.zeros_like(velocity)
    grid = grid_of(field.shape[:2], threads)
    parts = (flat(array) for array in (field, velocity, adj, adj_field, adj_velocity))
    advect_vjp(grid, *parts)
    return adj_field, adj_velocity


def test_whole_cells_are_shifted_exactly():
    field = np.arange(12.0).reshape(3, 4)
    velocity = np.broadcast_to([1.0, -2.0], (3, 4, 2)).copy()
    expected = np.roll(field, (-2, 1), axis=(0, 1))
    np.testing.assert_array_equal(advected(field, velocity), expected)


def test_half_a_cell_is_the_mean_of_two():
    field = np.array([[0.0, 2.0, 6.0], [1.0, 1.0, 1.0]])
    velocity = np.broadcast_to([0.5, 0.0], (2, 3, 2)).copy()
    np.testing.assert_array_equal(advected(field, velocity)[0], [3.0, 1.0, 4.0])


def test_a_constant_stays_constant_to_the_bit(rng):
    field = np.full((5, 6), 0.1)
    np.testing.assert_array_equal(advected(field, 3.0 * rng.standard_normal((5, 6, 2))), field)


@pytest.mark.parametrize("speed", [0.3, 2.0, 50.0])
def test_lookups_are_those_of_the_reference_however_far(rng, speed):
    field, velocity = rng.random((5, 7, 2)), speed * rng.standard_normal((5, 7, 2))
    # the reference forms p - u, whose rounding grows with the distance
    tolerance = 20 * EPS * max(speed, 7)
    expected = reference.lookup(field, velocity)
    np.testing.assert_allclose(advected(field, velocity), expected, rtol=0, atol=tolerance)


def test_a_shift_by_whole_cells_gives_the_same_bits(rng):
    field, velocity = rng.random((5, 7)), rng.standard_normal((5, 7, 2))
    here = advected(field, velocity)
    there = advected(np.roll(field, (2, 3), (0, 1)), np.roll(velocity, (2, 3), (0, 1)))
    np.testing.assert_array_equal(there, np.roll(here, (2, 3), (0, 1)))


def test_the_adjoint_is_that_of_a_complex_step_of_the_reference(rng):
    field, velocity = rng.random((4, 5, 2)), 1.5 * rng.standard_normal((4, 5, 2))
    adj = rng.standard_normal(field.shape)
    adj_field, adj_velocity = pulled_back(field, velocity, adj)
    for index in np.ndindex(4, 5, 2):
        e = np.zeros(field.shape)
        e[index] = 1e-30
        by_field = np.sum(adj * reference.lookup(field + 1j * e, velocity).imag) / 1e-30
        by_velocity = np.sum(adj * reference.lookup(field, velocity + 1j * e).imag) / 1e-30
        np.testing.assert_allclose(adj_field[index], by_field, rtol=0, atol=30 * EPS)
        np.testing.assert_allclose(adj_velocity[index], by_velocity, rtol=0, atol=30 * EPS)


def test_tangent_and_adjoint_are_transposes(rng):
    field, velocity, tan_field, tan_velocity, adj = rng.standard_normal((5, 6, 7, 2))
    tan_out = np.empty_like(field)
    parts = (flat(array) for array in (field, velocity, tan_field, tan_velocity, tan_out))
    advect_jvp(grid_of((6, 7)), *parts)
    adj_field, adj_velocity = pulled_back(field, velocity, adj)
    forward = np.sum(adj * tan_out)
    backward = np.sum(adj_field * tan_field) + np.sum(adj_velocity * tan_velocity)
    np.testing.assert_allclose(forward, backward, rtol=100 * EPS)


def test_what_a_cell_gathers_is_what_lookups_leave_whatever_crowds_into_it():
    # every lookup lies in the same cell: the longest list there is
    shape = (4, 5)
    j, i = np.meshgrid(np.arange(5), np.arange(4))
    velocity = np.stack([j - 1.25, i - 2.5], axis=-1)
    adj_field, _ = pulled_back(np.ones(shape), velocity, np.ones(shape))
    expected = np.zeros(shape)
    expected[2:4, 1:3] = 20 * np.outer([0.5, 0.5], [0.75, 0.25])
    np.testing.assert_allclose(adj_field, expected, rtol=20 * EPS)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(rng, threads):
    field, velocity, adj = rng.standard_normal((3, 7, 9, 2))
    np.testing.assert_array_equal(advected(field, velocity, threads), advected(field, velocity))
    alone, together = (pulled_back(field, velocity, adj, n) for n in (1, threads))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


def test_at_rest_the_slope_is_the_right_hand_one():
    field = np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 0.0], [7.0, 0.0, 0.0]])
    adj = np.zeros((3, 3))
    adj[0, 1] = 1.0
    _, adj_velocity = pulled_back(field, np.zeros((3, 3, 2)), adj)
    # d/du of f(p - u): -(f(p + 1) - f(p)) along x, -(f(row + 1) - f(row)) along y
    np.testing.assert_array_equal(adj_velocity[0, 1], [-4.0, 1.0])
    h = 2.0**-20  # one-sided differences are exact here: the lookup is linear in its cell
    for axis in range(2):
        moved = np.zeros((3, 3, 2))
        moved[0, 1, axis] = -h  # p - u moves to the right, or up
        difference = (advected(field, moved) - field)[0, 1] / -h
        np.testing.assert_array_equal(difference, adj_velocity[0, 1, axis])


def test_sources_are_listed_in_increasing_order(rng):
    grid, velocity = grid_of((6, 5)), 2.0 * rng.standard_normal((30, 2))
    start, order = grid.sources(velocity)
    assert sorted(order) == list(range(30))
    assert (start[0], start[-1]) == (0, 30)
    for lo, hi in itertools.pairwise(start):
        assert (np.diff(order[lo:hi]) > 0).all()
