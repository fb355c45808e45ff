"""Shape regularisers and their adjoints: values by hand and by loops, differences, errors."""

import numpy as np
import pytest

from adjoint.render.shape_losses import shape_loss_jvp, shape_loss_vjp
from adjoint.verify.gradcheck import gradcheck
from adjoint.verify.taylor_test import taylor_test
from adjsim.meshes.ball import icosahedron
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency
from tests.reference import shape_losses as reference


SQUARE = [[0, 1, 2], [0, 2, 3]]
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
POINTS, FACES = icosahedron()
MAKE = {
    "Laplacian": Laplacian,
    "EdgeLength": lambda faces: EdgeLength(faces, 0.4),
    "NormalConsistency": NormalConsistency,
}


def crumpled(rng):
    return POINTS + 0.05 * rng.normal(size=POINTS.shape)


def test_a_vertex_is_held_to_the_mean_of_its_neighbours():
    # Two corners have three neighbours, the others the two at the ends of the diagonal.
    delta = CORNERS - np.array([[2 / 3, 2 / 3, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 0], [0.5, 0.5, 0]])
    expected = np.square(delta).sum() / 4
    assert Laplacian(SQUARE)(CORNERS) == pytest.approx(expected, rel=1e-15)


def test_edges_are_held_to_a_length():
    assert EdgeLength(SQUARE)(CORNERS) == pytest.approx((4 + 2) / 5, rel=1e-15)
    loss = EdgeLength(SQUARE, [1.0, np.sqrt(2.0), 1.0, 1.0, 1.0])
    assert loss(CORNERS) == pytest.approx(0.0, abs=1e-31)


def test_flat_loses_nothing_a_right_angle_one_and_a_fold_two():
    loss = NormalConsistency(SQUARE)
    assert loss(CORNERS) == pytest.approx(0.0, abs=1e-15)
    upright, folded = CORNERS.copy(), CORNERS.copy()
    upright[3] = (0.5, 0.5, 1.0)
    folded[3] = CORNERS[1] + (0.1, -0.1, 0.0)
    assert loss(upright) == pytest.approx(1.0, rel=1e-15)
    assert loss(folded) == pytest.approx(2.0, rel=1e-15)


def test_a_ball_loses_what_the_loops_say(rng):
    x, faces = crumpled(rng), FACES
    assert Laplacian(faces)(x) == pytest.approx(reference.laplacian(x, faces), rel=1e-13)
    assert EdgeLength(faces, 0.4)(x) == pytest.approx(
        reference.edge_length(x, faces, 0.4), rel=1e-13
    )
    assert NormalConsistency(faces)(x) == pytest.approx(
        reference.normal_consistency(x, faces), rel=1e-13
    )


def test_points_of_no_face_do_not_count(rng):
    x = crumpled(rng)
    more = np.concatenate([[[9.0, 9.0, 9.0]], x, [[7.0, 7.0, 7.0]]])
    for make in MAKE.values():
        assert make(FACES + 1)(more) == pytest.approx(make(FACES)(x), rel=1e-14)
        np.testing.assert_array_equal(shape_loss_vjp(make(FACES + 1), more)[[0, -1]], 0.0)


@pytest.mark.parametrize("name", MAKE)
def test_the_gradient_is_the_derivative(rng, name):
    loss, x = MAKE[name](FACES), crumpled(rng)
    gradient = shape_loss_vjp(loss, x)
    assert gradcheck(loss, gradient, x, n_directions=20, tolerance=1e-8).passed
    assert taylor_test(loss, gradient, x, eps0=1e-3).slope1 >= 1.9


@pytest.mark.parametrize("name", MAKE)
def test_tangent_and_adjoint_agree(rng, name):
    loss = MAKE[name](FACES)
    x = np.stack([crumpled(rng) for _ in range(3)])
    tan_x = rng.normal(size=x.shape)
    pushed = shape_loss_jvp(loss, x, tan_x)
    pulled = shape_loss_vjp(loss, x, 0.7)
    scale = np.linalg.norm(pulled) * np.linalg.norm(tan_x)
    assert abs(0.7 * pushed - np.sum(pulled * tan_x)) <= 1e-12 * scale


def test_frames_are_averaged(rng):
    x = np.stack([crumpled(rng) for _ in range(3)])
    for make in MAKE.values():
        loss = make(FACES)
        assert loss(x) == pytest.approx(np.mean([loss(frame) for frame in x]), rel=1e-15)
        apart = np.stack([shape_loss_vjp(loss, frame) for frame in x]) / 3
        tolerance = 1e-14 * np.abs(apart).max()
        np.testing.assert_allclose(shape_loss_vjp(loss, x), apart, rtol=0, atol=tolerance)


def test_an_edge_without_length_pulls_nowhere():
    x = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0.0]])
    loss = EdgeLength([[0, 1, 2]], 1.0)
    np.testing.assert_array_equal(shape_loss_vjp(loss, x), 0.0)
    assert shape_loss_jvp(loss, x, np.ones((3, 3))) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Laplacian([[0, 1]]), r"`faces` must have shape \(n_faces, 3\), got \(1, 2\)"),
        (lambda: Laplacian([[0, -1, 2]]), r"`faces` must index vertices from 0 on, .* index -1"),
        (lambda: Laplacian(np.empty((0, 3), int)), r"`faces` must index .* got 0 faces"),
        (lambda: EdgeLength(SQUARE, -1.0), r"`length` must not be negative, got -1"),
        (lambda: EdgeLength(SQUARE, [1, 1]), r"`length` must have shape \(\) or \(n_edges,\) = "),
        (lambda: NormalConsistency([[0, 1, 2]]), r"`faces` must share edges, got faces that touch"),
        (lambda: Laplacian(SQUARE)(CORNERS[:3]), r"`faces` must index the 3 vertices .* index 3"),
        (lambda: Laplacian(SQUARE)(CORNERS[0]), r"`x` must have shape .* got \(3,\)"),
        (lambda: Laplacian(SQUARE)(np.nan * CORNERS), r"`x` must be finite, got nan"),
        (
            lambda: NormalConsistency(SQUARE)(CORNERS * [1, 0, 1]),
            r"`x` must give every face an area, .* at the edge between vertices 2 and 0",
        ),
        (
            lambda: shape_loss_jvp(Laplacian(SQUARE), CORNERS, CORNERS[:3]),
            r"`tan_x` must have shape \(4, 3\), got \(3, 3\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
