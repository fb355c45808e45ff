"""The reference image against closed forms: one triangle, one pixel, worked by hand."""

import numpy as np
import pytest

from tests.reference.soft_raster import project, reference_image, sigmoid


EPS = np.finfo(np.float64).eps
SIZE_1 = (1, 1)  # one pixel, at the centre of the screen
CAMERA = {
    "eye": (0.0, 0.0, 3.0),
    "target": (0.0, 0.0, 0.0),
    "up": (0.0, 1.0, 0.0),
    "fov_y": 90.0,  # tan(fov/2) = 1
    "near": 0.1,
    "far": 100.0,
}
OVER = {"sigma": 1e-2, "background": (0.25, 0.5, 0.75), "blend": "over"}
SOFTMAX = {**OVER, "blend": "softmax", "gamma": 1e-2, "epsilon": 1e-3}
WHITE = {"direction": (0.0, 0.0, 2.0), "color": (1.0, 1.0, 1.0)}


def triangle(corners, color=(0.8, 0.4, 0.2), **overrides):
    return {
        "vertices": np.array(corners, float),
        "faces": np.array([[0, 1, 2]]),
        "face_colors": np.array([color]),
        "ambient": 1.0,
        "diffuse": 0.0,
        **overrides,
    }


def wide(z=0.0, **overrides):
    """A triangle that covers the whole screen, its inradius on the screen 20 or more."""
    return triangle([(-99.0, -99.0, z), (99.0, -99.0, z), (0.0, 99.0, z)], **overrides)


def draw(*objects, raster=OVER, lights=(), size=SIZE_1, camera=CAMERA, **kwargs):
    return reference_image(list(objects), list(lights), camera, raster, size, **kwargs)


@pytest.mark.parametrize("raster", [OVER, SOFTMAX])
def test_a_triangle_that_covers_the_pixel_has_its_own_colour_and_alpha_one(raster):
    pixel = draw(wide(), raster=raster)[0, 0]
    # D = sigmoid(400 / 1e-2) is 1 to rounding; softmax: e^(eps/gamma - z~/gamma) = e^-97
    np.testing.assert_allclose(pixel, [0.8, 0.4, 0.2, 1.0], rtol=8 * EPS)


@pytest.mark.parametrize("raster", [OVER, SOFTMAX])
def test_an_empty_scene_is_the_background_with_alpha_zero(raster):
    image = draw(raster=raster, size=(2, 3))
    np.testing.assert_array_equal(image, np.broadcast_to([0.25, 0.5, 0.75, 0.0], (2, 3, 4)))


def test_shading_of_one_pixel_is_the_sum_done_by_hand():
    # The normal is +z; the light comes from (3, 0, 4)/5: n.l = 0.8.
    light = {"direction": (3.0, 0.0, 4.0), "color": (1.0, 0.5, 2.0)}
    mesh = wide(color=(0.5, 0.5, 0.25), ambient=(0.1, 0.2, 0.3), diffuse=(0.5, 1.0, 0.25))
    pixel = draw(mesh, lights=[light])[0, 0]
    expected = [0.5 * (0.1 + 0.4), 0.5 * (0.2 + 0.4), 0.25 * (0.3 + 0.4), 1.0]
    np.testing.assert_allclose(pixel, expected, rtol=16 * EPS)


def test_a_face_turned_from_the_light_keeps_only_the_ambient_part():
    mesh = wide(color=(1.0, 1.0, 1.0), ambient=0.25, diffuse=1.0)
    mesh["faces"] = mesh["faces"][:, ::-1]
    pixel = draw(mesh, lights=[WHITE])[0, 0]
    np.testing.assert_allclose(pixel, [0.25, 0.25, 0.25, 1.0], rtol=8 * EPS)


def test_coverage_outside_an_edge_is_the_sigmoid_of_the_squared_distance():
    # On the screen the left edge stands at x = 0.1 (world 0.3 at depth 3): d^2 = 0.01.
    pixel = draw(triangle([(0.3, -99.0, 0.0), (99.0, 0.0, 0.0), (0.3, 99.0, 0.0)]))[0, 0]
    coverage = 1 / (1 + np.exp(1.0))
    background = np.array(OVER["background"])
    # Cancellation in s - edge: a relative error of a few eps in d, twice that in d^2.
    np.testing.assert_allclose(pixel[3], coverage, rtol=32 * EPS)
    np.testing.assert_allclose(
        pixel[:3], coverage * np.array([0.8, 0.4, 0.2]) + (1 - coverage) * background, rtol=32 * EPS
    )


def test_coverage_next_to_a_corner_is_measured_from_the_corner():
    corner = (0.3, 0.4, 0.0)  # on the screen (0.1, 0.1333): d = 1/6
    pixel = draw(triangle([corner, (30.0, 30.0, 0.0), (29.0, 31.0, 0.0)]))[0, 0]
    np.testing.assert_allclose(pixel[3], 1 / (1 + np.exp(100 / 36)), rtol=64 * EPS)


def test_two_faces_at_a_shared_edge_leave_alpha_three_quarters():
    left = triangle([(0.0, -9.0, 0.0), (0.0, 9.0, 0.0), (-9.0, 0.0, 0.0)])
    right = triangle([(0.0, -9.0, 0.0), (9.0, 0.0, 0.0), (0.0, 9.0, 0.0)])
    np.testing.assert_allclose(draw(left, right)[0, 0, 3], 0.75, rtol=4 * EPS)


def test_over_lets_the_nearer_face_hide_the_farther_in_any_order():
    near, far = wide(z=1.0), wide(z=0.0, color=(0.0, 1.0, 0.0))
    np.testing.assert_array_equal(draw(near, far), draw(far, near))
    np.testing.assert_allclose(draw(far, near)[0, 0, :3], [0.8, 0.4, 0.2], rtol=4 * EPS)


def test_over_of_two_half_covering_faces_is_the_product_done_by_hand():
    edge = [(0.0, -9.0), (9.0, 0.0), (0.0, 9.0)]  # the pixel lies on the edge: D = 1/2
    near = triangle([(*p, 1.0) for p in edge], color=(1.0, 0.0, 0.0))
    far = triangle([(*p, 0.0) for p in edge], color=(0.0, 1.0, 0.0))
    pixel = draw(far, near)[0, 0]
    expected = [0.5 + 0.25 * 0.25, 0.25 + 0.25 * 0.5, 0.25 * 0.75, 0.75]
    np.testing.assert_allclose(pixel, expected, rtol=4 * EPS)


def test_ties_in_depth_go_to_the_face_with_the_lower_index():
    half = [(0.0, -9.0, 0.0), (9.0, 0.0, 0.0), (0.0, 9.0, 0.0)]
    first, second = triangle(half, color=(1, 0, 0)), triangle(half, color=(0, 1, 0))
    assert draw(first, second)[0, 0, 0] > draw(second, first)[0, 0, 0]


def test_softmax_of_two_faces_is_the_weighted_mean_done_by_hand():
    raster = {**SOFTMAX, "gamma": 0.5, "epsilon": 0.1}
    near, far = wide(z=1.0, color=(1, 0, 0)), wide(z=0.0, color=(0, 1, 0))
    weights = np.exp(np.array([(100 - 2) / 99.9, (100 - 3) / 99.9, 0.1]) / 0.5)
    red, green, background = weights / weights.sum()
    expected = np.array([red, green, 0]) + background * np.array(raster["background"])
    pixel = draw(far, near, raster=raster)[0, 0]
    # The exponent 2 carries a few eps of absolute error into the weights.
    np.testing.assert_allclose(pixel, [*expected, 1.0], rtol=32 * EPS)


def test_softmax_drops_a_face_below_its_own_threshold_and_over_keeps_it():
    # D = sigmoid(-16): 1.1e-7 is above 1e-10 and below 1e-4.
    mesh = triangle([(1.2, -99.0, 0.0), (99.0, 0.0, 0.0), (1.2, 99.0, 0.0)])
    assert draw(mesh, raster=SOFTMAX)[0, 0, 3] == 0.0
    np.testing.assert_allclose(draw(mesh)[0, 0, 3], sigmoid(-16.0), rtol=1e-8)  # 1 - (1 - D)


def test_vertex_colours_are_interpolated_with_perspective():
    # Along x: one edge at depth 1, one vertex at depth 4; the centre of the screen sees the
    # world point that the ray hits, whose true barycentric is linear in the world.
    corners = np.array([(-1.0, -2.0, 2.0), (4.0, 0.0, -1.0), (-1.0, 2.0, 2.0)])
    colors = np.array([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    mesh = triangle(corners, vertex_colors=colors, face_colors=None)
    # x = 0 on the segment from (-1, 2) to (4, -1) in (x, z): a fifth of the way.
    np.testing.assert_allclose(
        draw(mesh, raster={**OVER, "sigma": 1e-6})[0, 0], [0.4, 0.2, 0.4, 1.0], rtol=32 * EPS
    )


def test_pixels_sample_their_centres_and_the_first_row_is_on_top():
    # A small square face pair around the centre of pixel (0, 2) of a 2 x 4 image: aspect 2,
    # s = (2 (5/4 - 1), 1 - 1/2) = (0.5, 0.5): world (1.5, 1.5) at depth 3.
    mesh = triangle([(1.2, 1.2, 0.0), (1.8, 1.2, 0.0), (1.5, 2.1, 0.0)])
    alpha = draw(mesh, size=(2, 4), raster={**OVER, "sigma": 1e-5})[..., 3]
    expected = np.zeros((2, 4))
    expected[0, 2] = 1.0
    np.testing.assert_allclose(alpha, expected, atol=8 * EPS)


@pytest.mark.parametrize("z", [2.95, -98.0])
def test_a_face_with_a_vertex_beyond_near_or_far_is_not_drawn(z):
    mesh = wide()
    mesh["vertices"][1, 2] = z
    assert draw(mesh)[0, 0, 3] == 0.0


def test_a_face_seen_edge_on_is_not_drawn():
    assert draw(triangle([(0, -1, 0), (0, 1, 0), (0, 0, 1)]))[0, 0, 3] == 0.0


def test_culling_drops_only_the_clockwise_face():
    culling = {**OVER, "cull": True}
    turned = wide()
    turned["faces"] = turned["faces"][:, ::-1]
    assert draw(turned)[0, 0, 3] == 1.0
    assert draw(turned, raster=culling)[0, 0, 3] == 0.0
    assert draw(wide(), raster=culling)[0, 0, 3] == 1.0


def test_projection_of_a_tilted_camera_agrees_with_the_closed_form():
    camera = {**CAMERA, "eye": (3.0, 0.0, 0.0), "fov_y": 60.0}
    # Looking along -x with up y: right is forward x up = (-1,0,0) x (0,1,0) = (0,0,-1).
    screen, depth = project(np.array([(1.0, 0.5, 0.25)]), camera)
    np.testing.assert_allclose(depth, [2.0], rtol=4 * EPS)
    expected = np.array([[-0.25, 0.5]]) / 2 * np.sqrt(3)
    np.testing.assert_allclose(screen, expected, rtol=8 * EPS)


def test_longdouble_agrees_with_float64_to_its_rounding():
    rng = np.random.default_rng(0)
    mesh = {
        "vertices": rng.uniform(-1, 1, (9, 3)),
        "faces": np.arange(9).reshape(3, 3),
        "vertex_colors": rng.uniform(0, 1, (9, 3)),
        "ambient": 0.3,
        "diffuse": 0.6,
    }
    double = draw(mesh, lights=[WHITE], size=(6, 8))
    long = draw(mesh, lights=[WHITE], size=(6, 8), dtype=np.longdouble)
    assert long.dtype == np.longdouble
    # d^2/sigma is up to 100 with about 10 roundings: 1e3 eps in the exponent.
    np.testing.assert_allclose(double, long.astype(float), atol=1e3 * EPS)
