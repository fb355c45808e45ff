import numpy as np
import pytest

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.render.textures import add_records, empty_records, texture_color_jvp, texture_color_vjp
from render.faces.face_setup import PackedScene
from render.scene import Mesh, Scene
from render.soft_raster import rasterize
from render.textures import Texture, Wrap, texture_color
from tests.render.elements import check_element
from tests.render.scenes import camera, soft


W = (0.2, 0.5, 0.3)
CORNERS = ((0.1, 0.2), (0.9, 0.35), (0.4, 1.3))
HEIGHT, WIDTH = 3, 4


def scene(texels, corners=CORNERS, wrap=Wrap.REPEAT, size=(HEIGHT, WIDTH), n_before=0):
    """One face with a texture, after `n_before` texels of another."""
    fields = {name: np.zeros(0) for name in PackedScene._fields}
    fields |= {
        "owner": np.array([0]),
        "uv": np.array(corners, float),
        "uv_faces": np.array([[0, 1, 2]]),
        "texels": np.array([*[(9.0, 9.0, 9.0)] * n_before, *texels], float),
        "images": np.array([[n_before, *size, wrap is Wrap.CLAMP, 0]]),
    }
    return PackedScene(**fields)


def look_up(u, v, texels, wrap=Wrap.REPEAT):
    """Colour of a texture (height, width, 3) at a point."""
    size, flat = texels.shape[:2], texels.reshape(-1, 3)
    return texture_color(0, W, scene(flat, [(u, v)] * 3, wrap, size, n_before=2))


@pytest.fixture
def texels(rng):
    return rng.random((HEIGHT, WIDTH, 3))


@pytest.mark.parametrize("wrap", Wrap)
def test_a_texel_has_its_own_colour_at_its_centre(texels, wrap):
    for row in range(HEIGHT):
        for column in range(WIDTH):
            u, v = (column + 0.5) / WIDTH, 1 - (row + 0.5) / HEIGHT
            color = look_up(u, v, texels, wrap)
            np.testing.assert_allclose(color, texels[row, column], rtol=1e-12)


def test_between_texels_the_colour_is_their_mean(texels):
    color = look_up(2 / WIDTH, 1 - 1 / HEIGHT, texels)
    np.testing.assert_allclose(color, texels[0:2, 1:3].mean(axis=(0, 1)), rtol=1e-12)


def test_beyond_the_border_the_texture_repeats_or_its_border_goes_on(texels):
    middle = (1 + 0.5) / HEIGHT
    for wrap, expected in (
        (Wrap.REPEAT, texels[HEIGHT - 2, [0, WIDTH - 1]].mean(axis=0)),
        (Wrap.CLAMP, texels[HEIGHT - 2, WIDTH - 1]),
    ):
        np.testing.assert_allclose(look_up(1.0, middle, texels, wrap), expected, rtol=1e-12)
    for k in (-2, 3):
        shifted = look_up(0.3 + k, 0.6 - k, texels)
        np.testing.assert_allclose(shifted, look_up(0.3, 0.6, texels), rtol=1e-12)
        corner = texels[HEIGHT - 1 if k < 0 else 0, WIDTH - 1 if k > 0 else 0]
        np.testing.assert_allclose(look_up(k, k, texels, Wrap.CLAMP), corner, rtol=1e-12)


def test_a_single_texel_is_one_colour_everywhere():
    for wrap in Wrap:
        for u, v in ((0.0, 0.0), (0.5, 0.5), (-7.3, 2.9)):
            color = look_up(u, v, np.array([[[0.2, 0.4, 0.6]]]), wrap)
            np.testing.assert_allclose(color, (0.2, 0.4, 0.6), rtol=1e-14)


@pytest.mark.parametrize("wrap", Wrap)
def test_the_twins_of_the_lookup_are_its_derivatives(rng, texels, wrap):
    flat = tuple(map(tuple, texels.reshape(-1, 3)))

    def value(w, corners, texels):
        return texture_color(0, w, scene(texels, corners, wrap))

    def jvp(a, t):
        primal, tangent = scene(a[2], a[1], wrap), scene(t[2], t[1], wrap)
        return texture_color_jvp(0, a[0], t[0], primal, tangent)[1]

    def vjp(a, adj):
        primal = scene(a[2], a[1], wrap)
        records = empty_records(np, 1, np.float64)
        adj_w, (adj_u, adj_v, _) = texture_color_vjp(0, a[0], primal, adj, records, 0)
        adj_texels = np.zeros_like(primal.texels)
        add_records(records, np.array([0, 1]), np.array([1]), adj_texels)
        return adj_w, tuple((w * adj_u, w * adj_v) for w in a[0]), tuple(adj_texels.ravel())

    check_element(rng, value, jvp, vjp, (W, CORNERS, flat))


def test_at_the_centre_of_a_texel_the_slope_is_that_towards_larger_u_and_smaller_v(texels):
    u, v, h = 1.5 / WIDTH, 1 - 1.5 / HEIGHT, 1e-6
    for along, ahead in (((1.0, 0.0), (h, 0.0)), ((0.0, -1.0), (0.0, -h))):
        flat = texels.reshape(-1, 3)
        still, tangent = scene(flat, [(u, v)] * 3), scene(0 * flat, [along] * 3)
        color, slope = texture_color_jvp(0, W, (0.0, 0.0, 0.0), still, tangent)
        after = np.array(look_up(u + ahead[0], v + ahead[1], texels))
        before = np.array(look_up(u - ahead[0], v - ahead[1], texels))
        np.testing.assert_allclose((after - color) / h, slope, rtol=1e-6, atol=1e-6)
        assert np.abs((color - before) / h - slope).max() > 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Texture(np.ones((4, 4))), r"`texels` must have shape \(height, width, 3\), got"),
        (lambda: Texture(np.ones((4, 4, 4))), r"got \(4, 4, 4\). Drop an alpha channel"),
        (lambda: Texture(np.full((1, 2, 3), 255)), r"`texels` must be colours .* got 255\. Divide"),
        (lambda: Texture(np.ones((0, 4, 3))), r"`texels` must hold at least one texel, got"),
        (lambda: Texture(np.full((1, 1, 3), np.nan)), r"`texels` must be finite, got nan"),
        (lambda: Texture(np.ones((1, 1, 3)), "mirror"), r"`wrap` must be repeat or clamp, got 'm"),
    ],
)
def test_a_texture_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_texture_without_a_row_for_each_vertex_is_refused():
    mesh = Mesh([[0, 1, 2]], texture=Texture(np.ones((2, 2, 3))), uv=np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"`uv` of 'a' must have shape \(3, 2\).*pass `uv_faces`"):
        rasterize(Scene({"a": mesh}), camera(), soft(), {"a": np.eye(3)}, (4, 5))


def test_on_a_square_that_faces_us_the_first_row_of_texels_is_on_top(texels):
    # Orientation: u to the right, v up. Each texel covers 8 x 8 pixels and is seen in the middle.
    corners = np.array([[-2, -1.5, 0], [2, -1.5, 0], [2, 1.5, 0], [-2, 1.5, 0]])
    uv = [[0, 0], [1, 0], [1, 1], [0, 1]]
    square = Mesh([[0, 1, 2], [0, 2, 3]], texture=Texture(texels, Wrap.CLAMP), uv=uv)
    square = Scene({"square": square})
    view = camera(eye=(0, 0, 1.5), target=(0, 0, 0), up=(0, 1, 0), fov_y=90.0)
    image = rasterize(square, view, soft(sigma=1e-9), {"square": corners}, (24, 32))
    middle = 0.25 * sum(image[i::8, j::8, :3] for i in (3, 4) for j in (3, 4))
    # The mean of the four pixels around a centre lies half a pixel off: 1/8 of the way in all.
    np.testing.assert_allclose(middle, texels, atol=0.13)


def test_gradients_of_texels_are_the_shares_of_the_pixels(texels):
    # All pixels see the texture: a picture of ones has a mean of ones, and so the gradients of
    # the texels sum to the light on every pixel.
    corners = np.array([[-9.0, -9, 0], [9, -9, 0], [0, 15, 0]])
    mesh = Mesh([[0, 1, 2]], texture=Texture(texels), uv=[[0, 0], [3, 0], [0, 2]])
    args = (Scene({"wall": mesh}), camera(), soft(sigma=1e-6), {"wall": corners}, (7, 8))
    record = record_images(*args)
    gradient = record.vjp(np.ones_like(record.images), wrt=["wall.texels"])["wall.texels"]
    np.testing.assert_allclose(gradient.sum(axis=(0, 1)), 7 * 8, rtol=1e-12)
    _, tan = rasterize_jvp(*args, {"wall.texels": np.ones_like(texels)})
    np.testing.assert_allclose(tan[..., :3], 1.0, rtol=1e-12)
