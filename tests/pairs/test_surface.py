"""The features of surfaces, and how often each of them counts."""

import numpy as np

from adjsim.pairs.surface import surface_of


CLOSED = np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]) + 5


def test_a_closed_surface():
    surface = surface_of(CLOSED)
    np.testing.assert_array_equal(surface.vertices[:, 0], [5, 6, 7, 8])
    np.testing.assert_array_equal(surface.edges, [(5, 6), (5, 7), (5, 8), (6, 7), (6, 8), (7, 8)])
    np.testing.assert_array_equal(surface.edge_weights, -np.ones(6))
    np.testing.assert_array_equal(surface.vertex_weights, np.ones(4))  # 1 - 3 + 3


def test_at_an_open_boundary_edges_and_vertices_do_not_count():
    surface = surface_of(np.array([(0, 1, 2), (1, 3, 2)]))
    np.testing.assert_array_equal(surface.edge_weights, [0, 0, -1, 0, 0])  # of 1 and 2
    np.testing.assert_array_equal(surface.vertex_weights, np.zeros(4))


def test_three_faces_at_an_edge_and_two_that_meet_in_a_vertex():
    fan = surface_of(np.array([(0, 1, 2), (0, 1, 3), (0, 1, 4)]))
    assert fan.edge_weights[0] == -2.0
    np.testing.assert_array_equal(fan.vertex_weights, np.zeros(5))
    bow = surface_of(np.array([(0, 1, 2), (0, 3, 4)]))
    np.testing.assert_array_equal(bow.vertex_weights, [-1, 0, 0, 0, 0])


def test_the_features_of_the_same_triangles_are_kept():
    assert surface_of(CLOSED) is surface_of(CLOSED.copy())
