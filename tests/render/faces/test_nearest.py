import numpy as np
import pytest

from adjoint.render.blending import FragmentAdjoints, FragmentTangents
from adjoint.render.faces.nearest import nearest_jvp_body, nearest_vjp_body
from render.blending import DIBR, Hard
from render.camera import Camera
from render.faces.nearest import nearest_body, outer_coverage
from render.lenses import Orthographic
from render.scene import Material, Mesh, Scene
from render.soft_raster import rasterize
from tests.render.elements import empty_list
from tests.render.scenes import camera, soft


BACKGROUND = np.array([0.2, 0.5, 0.9])


def pixel(rng, y, z=None):
    """Fragments of one pixel with these logits, in a list that is not the identity."""
    n = len(y)
    z = rng.uniform(1.0, 20.0, n) if z is None else np.asarray(z, float)
    order = rng.permutation(n).astype(np.int32)
    face = np.arange(n, dtype=np.int32)
    fragments = empty_list(n)._replace(z=z, rgb=rng.random((n, 3)), order=order, face=face)
    return covered(fragments._replace(y=np.asarray(y, float)))


def covered(fragments):
    """The fragments with the coverage that their logits give."""
    parts = [outer_coverage(y, np.exp(-abs(y))) for y in fragments.y]
    D, rest = np.array(parts).reshape(-1, 2).T.copy()
    return fragments._replace(D=D, rest=rest)


def poisoned(n):
    """Room for the adjoints of n fragments, filled with what must not survive."""
    y, z, w, T = np.full((4, n), np.inf)
    return FragmentAdjoints(y, z, w, T, np.full((1, 4), np.inf))


def test_the_nearest_of_the_faces_that_cover_a_pixel_is_seen_whole(rng):
    fragments = pixel(rng, [2.0, -0.1, 5.0, 1.0], z=[3.0, 1.0, 2.0, 4.0])
    assert nearest_body(0, 4, fragments, BACKGROUND) == (*fragments.rgb[2], 1.0)


def test_of_equal_depths_the_first_face_is_seen(rng):
    for _ in range(5):
        fragments = pixel(rng, [-3.0, 1.0, 2.0], z=[1.0, 2.0, 2.0])
        assert nearest_body(0, 3, fragments, BACKGROUND) == (*fragments.rgb[1], 1.0)


def test_a_pixel_on_the_boundary_of_a_face_is_covered(rng):
    fragments = pixel(rng, [-0.0])
    assert nearest_body(0, 1, fragments, BACKGROUND) == (*fragments.rgb[0], 1.0)


@pytest.mark.parametrize("blend", [DIBR(), Hard()])
@pytest.mark.parametrize(("dtype", "gap"), [(np.float64, 1e-13), (np.float32, 1e-8)])
def test_rounding_leaves_no_hole_between_two_faces(blend, dtype, gap):
    # The middle column of pixels lies in a gap as wide as rounding makes one.
    left, right = [[-1, -1], [-gap, -1], [-gap, 1], [-1, 1]], [[gap, -1], [1, -1], [1, 1], [gap, 1]]
    x = np.pad(np.array([*left, *right], dtype), ((0, 0), (0, 1)))
    faces = [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]
    scene = Scene({"wall": Mesh(faces, material=Material(1.0, 0.0))})
    view = Camera((0, 0, 3.0), (0, 0, 0), lens=Orthographic(1.5))
    image = rasterize(scene, view, soft(blend=blend), {"wall": x}, (9, 9))
    np.testing.assert_array_equal(image, 1.0)
    wide = x + 3e-2 * np.sign(x) * [1, 0, 0]
    image = rasterize(scene, view, soft(blend=blend), {"wall": wide.astype(dtype)}, (9, 9))
    assert (image[:, 4, :3] != 1.0).all()


def test_a_pixel_beside_all_faces_has_a_soft_alpha_over_the_background(rng):
    y = np.array([-0.3, -2.0, -20.0])
    got = nearest_body(0, 3, pixel(rng, y), BACKGROUND)
    # 1 - exp(y) is exact to eps of 1.
    np.testing.assert_allclose(got, [*BACKGROUND, 1 - np.prod(1 - np.exp(y))], rtol=1e-15)


def test_a_pixel_that_sees_nothing_is_the_background(rng):
    assert nearest_body(0, 0, pixel(rng, []), BACKGROUND) == (*BACKGROUND, 0.0)


@pytest.mark.parametrize("y", [[-0.5], [-0.2, -1.0, -3.0, -22.0], [-0.4, 1.0, 3.0], [-1e-9, -1.0]])
def test_the_twins_are_its_derivatives(rng, y):
    n, fragments = len(y), pixel(rng, y)
    h = 1e-5 if min(np.abs(y)) > 1e-3 else 1e-11  # stays on one side of the edge
    tangents = FragmentTangents(rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, 3)))
    tan_background, adj_rgba = rng.normal(size=3), rng.normal(size=4)

    def at(t):
        there = fragments._replace(
            y=fragments.y + t * tangents.y, rgb=fragments.rgb + t * tangents.rgb
        )
        return np.array(nearest_body(0, n, covered(there), BACKGROUND + t * tan_background))

    pushed = nearest_jvp_body(0, n, fragments, tangents, tan_background)
    # Second-order differences: h^2 + eps/h is 1e-10 + 1e-11, or 2e-5 with the tiny step.
    tolerance = 1e-9 if h == 1e-5 else 1e-4
    np.testing.assert_allclose(pushed, (at(h) - at(-h)) / (2 * h), atol=tolerance)
    adj = poisoned(n)
    adj_background = nearest_vjp_body(0, n, fragments, tuple(adj_rgba), adj)
    pulled = (
        adj.y @ tangents.y
        + adj.z @ tangents.z
        + adj.w @ (tangents.rgb @ adj_rgba[:3])
        + np.dot(adj_background, tan_background)
    )
    assert abs(np.dot(pushed, adj_rgba) - pulled) <= 1e-13 * np.abs(pushed).sum()


def test_two_faces_on_whose_edges_a_pixel_lies_from_outside_divide_by_nothing(rng):
    fragments, adj = pixel(rng, [-1e-300, -1e-300, -1.0]), poisoned(3)
    np.testing.assert_array_equal(fragments.rest[:2], 0.0)
    nearest_vjp_body(0, 3, fragments, (1.0, 1.0, 1.0, 1.0), adj)
    assert np.isfinite(adj.y).all()


SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
STRAIGHT = camera(eye=(0, 0, 3.0), target=(0, 0, 0), up=(0, 1, 0), fov_y=90.0)


def test_a_square_of_two_faces_has_no_seam_and_fades_outside_alone():
    scene = Scene({"square": Mesh([[0, 1, 2], [0, 2, 3]], face_colors=np.ones((2, 3)))})
    size, vertices = (30, 30), {"square": SQUARE}
    hard = rasterize(scene, STRAIGHT, soft(blend=Hard()), vertices, size)
    expected = np.zeros(size)
    expected[10:20, 10:20] = 1.0  # a third of the view; its diagonal runs through pixel centres
    np.testing.assert_array_equal(hard[..., 3], expected)
    np.testing.assert_allclose(hard[10:20, 10:20, :3], 1.0, rtol=1e-15)
    np.testing.assert_array_equal(hard[0, 0, :3], [0.1, 0.2, 0.3])
    kappa = 4e-3
    image = rasterize(scene, STRAIGHT, soft(blend=DIBR(kappa)), vertices, size)
    np.testing.assert_array_equal(image[..., :3], hard[..., :3])
    np.testing.assert_array_equal(image[expected == 1.0, 3], 1.0)
    # The first pixel beyond the edge is half a pixel from one face, and farther from the other.
    away = (0.5 * 2 / 30) ** 2
    assert np.exp(-away / kappa) <= image[15, 20, 3] < 1 - (1 - np.exp(-away / kappa)) ** 2


def test_hard_edges_do_not_depend_on_sigma(rng):
    scene, vertices = Scene({"t": Mesh([[0, 1, 2]])}), {"t": rng.normal(size=(3, 3))}
    sharp, wide = (
        rasterize(scene, camera(), soft(sigma=sigma, blend=Hard()), vertices, (20, 20))
        for sigma in (1e-8, 1.0)
    )
    np.testing.assert_array_equal(sharp, wide)
