"""Image losses and their adjoints: values by hand, differences, transposes, errors."""

import numpy as np
import pytest

from adjoint.render.losses import loss_jvp, loss_vjp, residuals_jvp, residuals_vjp
from render.losses import Huber, Mse, PyramidMse, SoftIou, reduce_half, reduce_matrix, residuals


EPS = np.finfo(np.float64).eps
LOSSES = [
    Mse(), Huber(0.3), PyramidMse(), PyramidMse(levels=2), PyramidMse(3, growth=4.0), SoftIou(),
]  # fmt: skip
SQUARES = [Mse(), PyramidMse(), PyramidMse(levels=7), PyramidMse(3, growth=4.0)]
SHAPE = (3, 9, 14, 4)  # odd and even sizes, levels of 9, 5, 3 and 2 rows


@pytest.fixture
def images(rng):
    return rng.uniform(0, 1, SHAPE)


@pytest.fixture
def targets(rng):
    return rng.uniform(0, 1, SHAPE)


def constant(*values):
    """Frames of 1 x 1 pixel, RGBA all equal to a value."""
    return np.array(values)[:, None, None, None] * np.ones((1, 1, 1, 4))


def blurred_by_loops(image):
    """The definition of a coarser level, pixel by pixel."""
    height, width, channels = image.shape
    out = np.zeros((-(-height // 2), -(-width // 2), channels))
    for i, j in np.ndindex(out.shape[:2]):
        for a, wa in enumerate((1, 4, 6, 4, 1)):
            for b, wb in enumerate((1, 4, 6, 4, 1)):
                row = min(max(2 * i + a - 2, 0), height - 1)
                column = min(max(2 * j + b - 2, 0), width - 1)
                out[i, j] += wa * wb / 256 * image[row, column]
    return out


@pytest.mark.parametrize("loss", LOSSES[:-1])
def test_equal_images_lose_nothing_and_pull_nowhere(loss, images):
    assert loss(images, images.copy()) == 0.0
    assert not loss_vjp(loss, images, images.copy()).any()


def test_mse_is_the_mean_of_squared_differences():
    assert Mse()(constant(0.5, 0.0), constant(0.25, 1.0)) == (0.0625 + 1.0) / 2


def test_huber_is_a_parabola_that_continues_as_its_tangent():
    inside, beyond = constant(0.25), constant(3.0)
    assert Huber(0.5)(inside, 0 * inside) == 0.25**2 / 2
    assert Huber(0.5)(beyond, 0 * beyond) == 0.5 * (3.0 - 0.25)
    assert Huber(0.5)(-beyond, 0 * beyond) == 0.5 * (3.0 - 0.25)


def test_huber_below_its_threshold_is_half_the_mse(images, targets):
    half = Mse()(images, targets) / 2
    np.testing.assert_allclose(Huber(2.0)(images, targets), half, rtol=8 * EPS)


def test_a_coarser_level_is_the_blur_done_by_loops(rng):
    image = rng.uniform(size=(9, 14, 3))
    coarser = np.swapaxes(reduce_half(image), 0, 1)
    np.testing.assert_allclose(coarser, blurred_by_loops(image), atol=50 * EPS)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_the_blur_keeps_constants_and_a_level_of_one_stays_one(n):
    matrix = reduce_matrix(n, "d")
    assert matrix.shape == ((n + 1) // 2, n)
    np.testing.assert_array_equal(matrix @ np.ones(n), 1.0)  # sixteenths are exact


def test_pyramid_of_a_constant_difference_counts_it_once_per_level():
    images, targets = np.full((2, 1, 5, 4), 0.5), np.zeros((2, 1, 5, 4))
    assert PyramidMse(levels=6)(images, targets) == 6 * 0.25
    assert PyramidMse(levels=1)(images, targets) == Mse()(images, targets)


def test_growth_weighs_each_level_by_a_power_of_it():
    images, targets = np.full((2, 1, 5, 4), 0.5), np.zeros((2, 1, 5, 4))
    assert PyramidMse(levels=3, growth=4.0).weights == (1.0, 4.0, 16.0)
    assert PyramidMse(levels=3, growth=4.0)(images, targets) == 21 * 0.25
    assert PyramidMse(levels=1, growth=4.0)(images, targets) == Mse()(images, targets)


def test_growth_leads_a_far_spot_to_its_target_where_even_levels_would_make_it_vanish():
    def spot(column, height=1.0):
        out = np.zeros((32, 64, 4))
        out[12:16, column : column + 4] = height
        return out

    along, faded, target = spot(8), spot(4, 0.9), spot(56)
    even, grown = PyramidMse(6), PyramidMse(6, growth=16.0)
    # At column 4 it is moved by 4 pixels, or faded by a tenth: which helps more?
    assert even(faded, target) < even(along, target)
    assert grown(along, target) < grown(faded, target)


def test_pyramid_widens_the_basin_of_silhouettes_that_do_not_overlap():
    def frame(column):
        out = np.zeros((16, 32, 4))
        out[6:9, column : column + 2] = 1.0
        return out

    far, nearer, target = frame(2), frame(6), frame(10)
    assert Mse()(far, target) == Mse()(nearer, target)
    assert PyramidMse()(far, target) > 1.05 * PyramidMse()(nearer, target)


def test_soft_iou_of_half_transparent_pixels_is_the_fraction_done_by_hand():
    images, targets = np.zeros((1, 1, 2, 4)), np.zeros((1, 1, 2, 4))
    images[0, 0, :, 3] = (0.5, 1.0)
    targets[0, 0, :, 3] = (1.0, 0.0)
    # I = 1/2, U = 1 + 1
    assert SoftIou()(images, targets) == 0.75


def test_soft_iou_of_two_empty_frames_is_zero_and_has_no_gradient():
    empty, full = constant(0.0, 0.0), constant(0.0, 1.0)
    assert SoftIou()(empty, empty) == 0.0
    assert not loss_vjp(SoftIou(), empty, empty).any()
    assert loss_jvp(SoftIou(), empty, empty, full) == 0.0
    assert SoftIou()(full, empty) == 0.5  # one of two frames is missed entirely


@pytest.mark.parametrize("loss", LOSSES)
def test_one_frame_is_a_batch_of_one(loss, images, targets):
    assert loss(images[0], targets[0]) == loss(images[:1], targets[:1])
    adj = loss_vjp(loss, images[0], targets[0])
    np.testing.assert_array_equal(adj, loss_vjp(loss, images[:1], targets[:1])[0])


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_is_the_mean_of_the_losses_of_its_frames(loss, images, targets):
    frames = [loss(i, t) for i, t in zip(images, targets, strict=True)]
    np.testing.assert_allclose(loss(images, targets), np.mean(frames), rtol=8 * EPS)


@pytest.mark.parametrize("loss", LOSSES[:-1])
def test_targets_without_alpha_are_compared_in_rgb(loss, images, targets):
    rgb_loss = loss(images, targets[..., :3])
    assert rgb_loss == loss(images[..., :3].copy(), targets[..., :3].copy())
    adj = loss_vjp(loss, images, targets[..., :3])
    assert adj.shape == images.shape
    assert not adj[..., 3].any()
    assert adj[..., :3].all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_tangent_agrees_with_central_differences(loss, rng, images, targets):
    h = 1e-5
    for _ in range(10):
        tan = rng.normal(size=SHAPE)
        difference = (loss(images + h * tan, targets) - loss(images - h * tan, targets)) / (2 * h)
        exact = loss_jvp(loss, images, targets, tan)
        # Rounding 1e3 eps / h = 1e-8 of a loss of order 1; truncation h^2, and for Huber
        # the few pixels of 1512 that cross the threshold, h/1512 each.
        np.testing.assert_allclose(exact, difference, atol=5e-8)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("loss", LOSSES[:-1])
def test_tangent_and_adjoint_are_transposes(loss, channels, rng, images, targets):
    tan, targets = rng.normal(size=SHAPE), targets[..., :channels]
    adj = loss_vjp(loss, images, targets, adj=1.7)
    assert np.abs(adj).max() > 0
    # Sums of 1512 products of either sign: the bar is relative to the sum of their sizes.
    bar = 1e-13 * np.abs(adj * tan).sum()
    assert abs(1.7 * loss_jvp(loss, images, targets, tan) - np.vdot(adj, tan)) <= bar


def test_soft_iou_tangent_and_adjoint_are_transposes(rng, images, targets):
    tan, adj = rng.normal(size=SHAPE), loss_vjp(SoftIou(), images, targets, adj=-0.3)
    assert np.abs(adj).max() > 0
    bar = 1e-13 * np.abs(adj * tan).sum()
    assert abs(-0.3 * loss_jvp(SoftIou(), images, targets, tan) - np.vdot(adj, tan)) <= bar


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("loss", SQUARES)
def test_residuals_square_to_the_loss_and_their_pullback_to_its_gradient(
    loss, channels, images, targets
):
    targets = targets[..., :channels]
    r = residuals(loss, images, targets)
    np.testing.assert_allclose(r @ r, loss(images, targets), rtol=1e-13)
    gradient = residuals_vjp(loss, images, targets, 2 * r)
    np.testing.assert_allclose(gradient, loss_vjp(loss, images, targets), atol=1e-17, rtol=1e-12)


@pytest.mark.parametrize("loss", SQUARES)
def test_residuals_are_linear_and_their_maps_are_transposes(loss, rng, images, targets):
    tan = rng.normal(size=SHAPE)
    tan_r = residuals_jvp(loss, images, targets, tan)
    moved = residuals(loss, images + tan, targets) - residuals(loss, images, targets)
    np.testing.assert_allclose(tan_r, moved, atol=20 * EPS)
    adj_r = rng.normal(size=tan_r.shape)
    adj = residuals_vjp(loss, images, targets, adj_r)
    bar = 1e-13 * np.abs(tan_r * adj_r).sum()
    assert abs(tan_r @ adj_r - np.vdot(tan, adj)) <= bar


@pytest.mark.parametrize("loss", LOSSES)
def test_float32_stays_float32_and_agrees_with_float64(loss, images, targets):
    single, single_targets = images.astype(np.float32), targets.astype(np.float32)
    adj = loss_vjp(loss, single, single_targets)
    assert adj.dtype == np.float32
    # Inputs are rounded by 6e-8; a mean does not lose more, the IoU a few times that.
    np.testing.assert_allclose(loss(single, single_targets), loss(images, targets), rtol=1e-6)
    exact = loss_vjp(loss, images, targets)
    np.testing.assert_allclose(adj, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_images_and_targets_are_left_as_they_were(loss, images, targets):
    before, before_targets = images.copy(), targets.copy()
    loss(images, targets)
    loss_vjp(loss, images, targets)
    np.testing.assert_array_equal(images, before)
    np.testing.assert_array_equal(targets, before_targets)


def refuses(message, loss, images, targets):
    with pytest.raises(ValueError, match=message):
        loss(images, targets)


def test_errors_say_which_shape_does_not_fit(images, targets):
    refuses(r"`targets` must have the frames and size .*3, 9, 14.*2, 9", Mse(), images, targets[:2])
    refuses(r"`targets` must have the 3 channels", Mse(), images[..., :3], targets)
    refuses(r"`images` must have shape", Mse(), images[0, 0], targets[0, 0])
    refuses(r"`images` must have shape", Mse(), images[:0], targets[:0])
    refuses(r"got \(9, 14\)\. Pass images\[\.\.\., None\]", Mse(), *2 * [images[0, ..., 0]])


def test_frames_of_several_cameras_are_refused_with_the_call_that_takes_them(images, targets):
    several = np.stack([images, images])
    message = r"got \(2, 3, 9, 14, 4\)\. .* pass images\.reshape\(-1, 9, 14, 4\), and so the other"
    refuses(message, Mse(), several, np.stack([targets, targets]))
    refuses(r"pass targets\.reshape\(-1, 9, 14, 4\)", Mse(), images, np.stack([targets, targets]))
    flat = several.reshape(-1, 9, 14, 4)
    assert Mse()(flat, np.concatenate([targets, targets])) == pytest.approx(Mse()(images, targets))


def test_bytes_are_refused_with_the_way_out(images):
    refuses(r"`targets` must be float64 .*uint8.*by 255", Mse(), images, images.astype(np.uint8))


def test_soft_iou_without_alpha_names_the_losses_that_do_without(images, targets):
    refuses(r"alpha channel for SoftIou.*Use Mse", SoftIou(), images, targets[..., :3])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_pixel_that_is_not_finite_is_found(loss, bad, images, targets):
    spoiled = images.copy()
    spoiled[1, 2, 3, 3] = bad
    refuses(
        r"`images` must be finite, got (nan|inf) at index \(1, 2, 3, 3\)", loss, spoiled, targets
    )
    refuses(r"`targets` must be finite", loss, images, spoiled)


def test_residuals_name_the_pixel_that_is_not_finite_and_overflow_is_an_error(images, targets):
    spoiled = images.copy()
    spoiled[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="`images` must be finite"):
        residuals(Mse(), spoiled, targets)
    refuses("`images` must be of moderate size", Mse(), 1e200 * images, targets)


def test_thresholds_and_levels_are_checked():
    with pytest.raises(ValueError, match="`threshold` must be positive, got 0"):
        Huber(0.0)
    for levels in (0, 2.5):
        with pytest.raises(ValueError, match="`levels` must be a whole number of at least 1"):
            PyramidMse(levels)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`growth` must be positive, got 0"):
        PyramidMse(growth=0.0)


@pytest.mark.parametrize("loss", [Huber(0.1), SoftIou()])
def test_residuals_of_other_losses_are_refused(loss, images, targets):
    with pytest.raises(ValueError, match="`loss` must be a sum of squares"):
        residuals(loss, images, targets)


def test_tangents_and_cotangents_of_another_shape_are_refused(images, targets):
    with pytest.raises(ValueError, match="`tan_images` must have shape"):
        loss_jvp(Mse(), images, targets, images[:2])
    with pytest.raises(ValueError, match="`adj_r` must have shape"):
        residuals_vjp(Mse(), images, targets, np.zeros(5))
