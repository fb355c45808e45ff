"""What the manual's page on seamless coverage says of its edges, jumps and kinks."""

import numpy as np
import pytest

from render.blending import DIBR, Hard, Over, Softmax
from render.scene import Material, Mesh, Scene
from render.seamless import seamless_logit
from render.soft_raster import rasterize
from tests.render.scenes import camera, soft
from tests.render.test_seamless import HALVES, SQUARE, STRAIGHT, TRIANGLE, one_face


# By STRAIGHT what is in the plane z = 0 is a third as large on the screen.
SIDE = 0.8  # of a sheet on the screen, from its middle
CELLS = 6  # along it
FACE = 2.0 * SIDE / CELLS  # width of a face on the screen


def alpha_of(faces, x, size=(60, 60), **how):
    return rasterize(Scene({"o": Mesh(faces)}), STRAIGHT, soft(**how), {"o": x}, size)[..., 3]


def sheet():
    """A square of 72 faces, and the distance of each pixel inside to its outline."""
    n = CELLS + 1
    i, j = np.mgrid[0:n, 0:n]
    x = np.stack([FACE * j - SIDE, FACE * i - SIDE, 0.0 * i], axis=-1).reshape(-1, 3) * 3.0
    a, b = (i * n + j)[:-1, :-1].ravel(), (i * n + j)[1:, 1:].ravel()
    faces = np.concatenate([np.stack([a, a + 1, b], 1), np.stack([a, b, a + n], 1)])
    places = np.abs((np.arange(60) + 0.5) / 30.0 - 1.0)
    return faces, x, SIDE - np.maximum(places[:, None], places)


def test_an_edge_of_two_faces_lets_a_quarter_through_unless_it_is_seamless():
    # an odd size: the diagonal crosses the middle of the pixel in the middle
    for seamless, expected in ((False, 0.75), (True, 1.0)):
        alpha = alpha_of(HALVES, SQUARE, (33, 33), sigma=1e-3, seamless=seamless)
        assert alpha[16, 16] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("cull", "expected"), [(False, 0.75), (True, 0.5)])
def test_at_the_outline_of_a_closed_surface_alpha_is_that_of_its_layers(cull, expected):
    # A pillow: the square and its back, by the same corners. It ends where a pixel's middle is.
    faces = np.concatenate([HALVES, HALVES[:, ::-1]])
    x = SQUARE * [1.0 / 1.1, 1.0, 1.0]  # the right side at 1/3.3 of the screen, column 21.5 of 33
    alpha = alpha_of(faces, x, (33, 33), sigma=1e-3, seamless=True, cull=cull)
    assert alpha[16, 21] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("softness", [0.01, 0.1, FACE])
def test_faces_behind_those_at_the_outline_are_opaque_at_any_softness(softness):
    faces, x, inside = sheet()
    alpha = alpha_of(faces, x, sigma=softness**2, seamless=True)
    assert (alpha[inside > FACE] == 1.0).all()
    if softness == FACE:  # too early: of the outline alone it would be sigmoid(1) there
        assert alpha[(inside > 0.5 * FACE) & (inside < FACE)].min() < 0.9


@pytest.mark.parametrize("softness", [0.05, 0.15, FACE])
def test_alpha_inside_is_at_least_that_of_the_outline_so_jumps_end_near_it(softness):
    # What it jumps by is at most 1 - sigmoid((d / softness)^2): rounding from d = 6 on.
    faces, x, inside = sheet()
    alpha = alpha_of(faces, x, sigma=softness**2, seamless=True)
    d = inside[inside > 0]
    assert (alpha[inside > 0] >= 1.0 / (1.0 + np.exp(-((d / softness) ** 2))) - 1e-12).all()
    assert 1.0 / (1.0 + np.exp(36.0)) < np.finfo(float).eps * 2


def test_at_a_seam_near_the_outline_alpha_jumps():
    faces, x, _ = sheet()
    fine = alpha_of(faces, x, (600, 600), sigma=FACE**2, seamless=True)
    steps = np.abs(np.diff(fine[300]))  # a row through the middle; 1/300 of the screen a step
    assert steps.max() > 0.1
    plain = alpha_of(faces, x, (600, 600), sigma=FACE**2)
    assert np.abs(np.diff(plain[300])).max() < 0.02  # without seams it is smooth


@pytest.mark.parametrize("blend", [Over(), DIBR(2e-3), Hard()])
def test_at_a_seam_colours_jump_from_one_face_to_the_next(blend):
    colors = np.array([[1.0, 0.2, 0.1], [0.1, 0.4, 1.0]])
    scene = Scene({"o": Mesh(HALVES, face_colors=colors, material=Material(1.0, 0.0))})
    raster = soft(sigma=0.02**2, seamless=True, blend=blend)
    middle = rasterize(scene, STRAIGHT, raster, {"o": SQUARE}, (61, 61))[25:36, 25:36, :3]
    away = np.abs(middle[..., None, :] - colors).max(axis=-1)
    np.testing.assert_allclose(away.min(axis=-1), 0.0, rtol=0, atol=1e-12)
    assert (away.argmin(axis=-1) == 0).any()
    assert (away.argmin(axis=-1) == 1).any()


def test_where_a_face_turns_edge_on_alpha_jumps():
    alphas = []
    for s in (1e-4, -1e-4):  # the second face turns over the diagonal
        x = SQUARE.copy()
        x[3] = [-s, s, 0.0]
        alphas.append(alpha_of(HALVES, x, (61, 61), sigma=0.05**2, seamless=True)[31, 31])
    assert alphas[0] > 0.999  # on the first face, a pixel from the diagonal
    assert alphas[1] < 0.9


def test_between_two_soft_edges_as_near_there_is_a_kink():
    a, b, c = (np.array(corner) for corner in TRIANGLE)
    lengths = [np.linalg.norm(v) for v in (b - c, c - a, a - b)]
    middle = np.average([a, b, c], axis=0, weights=lengths)  # of the inscribed circle
    p, along = 0.5 * (a + middle), middle - a
    across = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    faces, h = one_face((1, 1, 1, 1, 1, 1)), 1e-6
    left, here, right = (
        seamless_logit(tuple(p + k * h * across), 0, faces, 0.05) for k in (-1, 0, 1)
    )
    assert (here - left) / h > 0.1
    assert (right - here) / h < -0.1


def test_a_soft_corner_alone_softens_a_face():
    faces, p = one_face((0, 0, 0, 1, 0, 0)), (0.2, 0.25)
    squared = (p[0] - TRIANGLE[0][0]) ** 2 + (p[1] - TRIANGLE[0][1]) ** 2
    assert seamless_logit(p, 0, faces, 0.05) == pytest.approx(squared / 0.05, rel=1e-12)


def test_a_z_buffer_knows_no_softness_and_softmax_does():
    x = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.4]])
    scene = Scene({"o": Mesh(HALVES)})
    for blend, same in ((Hard(), True), (Softmax(), False)):
        images = [
            rasterize(scene, camera(), soft(blend=blend, seamless=seamless), {"o": x}, (30, 30))
            for seamless in (False, True)
        ]
        assert np.array_equal(*images) is same


FIN = np.array(
    [[0, -1, 0], [0, 1, 0], [1, 0, 0], [-1, 0, 0], [0.8, 0.2, 0.3], [0.7, 0.3, -0.4], [0, -1, 0],
     [0, 1, 0]]
)  # fmt: skip
LEFT, RIGHT, NEARER, FARTHER, UNWELDED = (0, 1, 3), (0, 2, 1), (0, 4, 1), (0, 5, 1), (6, 7, 3)


@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        ([RIGHT, LEFT], 1.0),
        ([RIGHT, LEFT, NEARER], 1.0),
        ([RIGHT, FARTHER, NEARER], 7.0 / 8.0),
        ([RIGHT, NEARER], 3.0 / 4.0),
        ([RIGHT, UNWELDED], 3.0 / 4.0),
    ],
)
def test_on_an_edge_alpha_is_that_of_its_seams_or_of_its_layers(faces, expected):
    alpha = alpha_of(faces, FIN, (33, 33), sigma=1e-3, seamless=True)
    assert alpha[16, 16] == pytest.approx(expected, abs=1e-12)


def test_welding_by_place_makes_a_seam():
    points, number = np.unique(FIN, axis=0, return_inverse=True)
    faces = number.reshape(-1)[np.array([RIGHT, UNWELDED])]
    assert alpha_of(faces, points, (33, 33), sigma=1e-3, seamless=True)[16, 16] == 1.0
