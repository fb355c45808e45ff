"""Warnings beside a verdict: about the look of a fit."""

import numpy as np
import pytest

from studies.answer.fit_warnings import fit_warnings, offset


NO_OFFSET = {"body": [0.0] * 3, "background": [0.0] * 3, "share": 0.0}


def result(**more):
    return {"offset": NO_OFFSET, **more}


def test_a_good_fit_has_no_warning():
    """Not even one that was right from the start, or whose search stalled at the right answer."""
    assert fit_warnings(result(loss_at_start=0.00142, loss=0.00142, status="STALLED")) == []


def images_off(rng, body, behind, noise):
    """Return a fit with a body on the left, these colours too bright, and noise; and its target."""
    targets = rng.random((3, 8, 10, 3))
    images = np.zeros((3, 8, 10, 4))
    images[:, :, :5, 3] = 1.0
    images[..., :3] = targets + np.where(images[..., 3:] > 0.5, body, behind)
    images[..., :3] += noise * rng.standard_normal(targets.shape)
    return images, targets


@pytest.mark.parametrize(("body", "behind"), [((0.1, 0.0, -0.05), 0.0), (0.0, (0.2, 0.2, 0.2))])
def test_a_look_that_is_off_is_named(rng, body, behind):
    offsets = offset(*images_off(rng, body, behind, 0.02))
    np.testing.assert_allclose(offsets["body"], np.broadcast_to(body, 3), atol=0.01)
    np.testing.assert_allclose(offsets["background"], np.broadcast_to(behind, 3), atol=0.01)
    (line,) = fit_warnings(result(offset=offsets))
    assert "of the residual is a constant: the fit differs in RGB by (" in line
    assert "light, colours or background do not fit the images" in line


def test_noise_and_motion_and_a_perfect_fit_are_no_matter_of_the_look(rng):
    noisy = offset(*images_off(rng, 0.0, 0.0, 0.1))
    faint = offset(*images_off(rng, 1e-4, 1e-4, 0.0))  # all of it constant, and invisible
    exact = offset(*images_off(rng, 0.0, 0.0, 0.0))
    assert exact == NO_OFFSET
    for offsets in (noisy, faint, exact):
        assert fit_warnings(result(offset=offsets)) == []


def test_a_silhouette_has_no_colour_to_be_off(rng):
    images, targets = images_off(rng, 0.3, 0.0, 0.0)
    images[..., :3], targets[:] = images[..., :1], targets[..., :1]
    assert offset(images, targets) == NO_OFFSET
