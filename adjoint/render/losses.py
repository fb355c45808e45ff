r"""Adjoint of `render/losses.py`: read the two files side by side.

Every block undoes the forward line with the same number, last line first. The tangents
stand above the adjoints and read forwards. The targets are data: they get no cotangent.

    Mse           adj_d = 2 d / N
    Huber         adj_d = clip(d, -h, h) / N
    PyramidMse    adj_d_l += 2 g^l d_l / N_l,   adj_d_l += R_y^T adj_d_{l+1} R_x
    SoftIou       adj_a = -(b - (I/U)(1 - b)) / U

Where it is not smooth: SoftIou jumps at U = 0, two empty frames; its derivative there is
taken as 0. The slope of Huber is continuous at the threshold.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.sparse

from adjsim import checks
from adjsim.engine.sparse import product
from adjsim.jit.devices import module_of
from render.losses import (
    ALPHA,
    Huber,
    ImageLoss,
    Mse,
    PyramidMse,
    SoftIou,
    by_parts,
    frame_residuals,
    level_shapes,
    matched,
    pyramid,
    reduce_matrix,
    square_weights,
)


def loss_jvp(
    loss: ImageLoss, images: np.ndarray, targets: np.ndarray, tan_images: np.ndarray
) -> float:
    """Push a tangent of the images forward to the tangent of the loss.

    Parameters
    ----------
    loss : Mse, Huber, PyramidMse or SoftIou
    images, targets : ndarray
        (n_frames, H, W, C) or (H, W, C), as the loss takes them [-].
    tan_images : ndarray
        The shape of `images`; channels that the target lacks are not used.

    Returns
    -------
    float
        The derivative of loss(images + s tan_images, targets) by s at s = 0 [-].

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import loss_jvp
    >>> from render import Mse
    >>> images, targets = np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3))
    >>> print(loss_jvp(Mse(), images, targets, np.ones((2, 2, 3))))
    1.0
    """
    image, target = matched(loss, images, targets)
    tangent = like_images("tan_images", tan_images, images)
    tangent = tangent.reshape(*image.shape[:-1], -1)[..., : image.shape[-1]]
    frame_jvp = TWINS[type(loss)][0]
    total = sum(
        (float(frame_jvp(loss, i, t, d)) for i, t, d in zip(image, target, tangent, strict=True)),
        start=0.0,
    )
    return total / len(image)


def loss_vjp(
    loss: ImageLoss, images: np.ndarray, targets: np.ndarray, adj: float = 1.0
) -> np.ndarray:
    """Pull the cotangent of the loss back to the images.

    Parameters
    ----------
    loss : Mse, Huber, PyramidMse or SoftIou
    images, targets : ndarray
        (n_frames, H, W, C) or (H, W, C), as the loss takes them [-].
    adj : float
        Cotangent of the loss; 1 gives the gradient.

    Returns
    -------
    ndarray
        adj_images, the shape and dtype of `images`; 0 in channels the target lacks.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import loss_vjp
    >>> from render import Mse
    >>> images, targets = np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3))
    >>> print(loss_vjp(Mse(), images, targets)[0, 0])
    [0.08333333 0.08333333 0.08333333]
    """
    image, target = matched(loss, images, targets)
    frame_vjp = TWINS[type(loss)][1]
    adj_images, frames = blank_adjoint(images, image)
    parts = list(by_parts(loss, image, target, frames))
    for i, t, adj_i in parts:
        adj_i[...] = frame_vjp(loss, i, t, adj / len(parts))
    return adj_images


def blank_adjoint(images, compared):
    """Return zeros like `images`, and of them a view of what is compared, (n_frames, H, W, C)."""
    xp = module_of(compared)
    shape = np.shape(images) if xp is np else images.shape
    adj_images = xp.zeros(shape, compared.dtype)
    frames = adj_images.reshape(*compared.shape[:-1], -1)
    return adj_images, frames[..., : compared.shape[-1]]


def residuals_jvp(
    loss: ImageLoss, images: np.ndarray, targets: np.ndarray, tan_images: np.ndarray
) -> np.ndarray:
    """Push a tangent of the images forward to the tangent (n,) of `residuals`.

    Parameters and errors as in `loss_jvp`; the loss is Mse or PyramidMse. The
    residuals are linear in the images, so their values do not matter, only the shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import residuals_jvp
    >>> from render import Mse
    >>> images, targets = np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3))
    >>> print(residuals_jvp(Mse(), images, targets, np.ones((2, 2, 3))).round(4)[:3])
    [0.2887 0.2887 0.2887]
    """
    weights = square_weights(loss)
    image, _ = matched(loss, images, targets)
    tangent = like_images("tan_images", tan_images, images)
    tangent = tangent.reshape(*image.shape[:-1], -1)[..., : image.shape[-1]]
    return frame_residuals(tangent, None, weights)


def residuals_vjp(
    loss: ImageLoss, images: np.ndarray, targets: np.ndarray, adj_r: np.ndarray
) -> np.ndarray:
    """Pull a cotangent (n,) of `residuals` back to the images.

    Returns adj_images of the shape of `images`, 0 in channels the target lacks; the loss
    is Mse or PyramidMse.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import residuals_vjp
    >>> from render import Mse
    >>> images, targets = np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3))
    >>> print(residuals_vjp(Mse(), images, targets, np.ones(12)).round(4)[0, 0])
    [0.2887 0.2887 0.2887]
    """
    weights = square_weights(loss)
    image, _ = matched(loss, images, targets)
    shapes = level_shapes(image.shape[1:], len(weights))
    sizes = [math.prod(shape) for shape in shapes]
    ends, rows = np.cumsum(sizes).tolist(), adj_r
    if module_of(images) is np:
        rows = checks.array("adj_r", adj_r, (len(image) * ends[-1],), dtype=image.dtype)
    adj_images, frames = blank_adjoint(images, image)
    for adj_i, row in by_parts(None, frames, rows.reshape(len(image), -1)):
        adj_i[...] = pyramid_vjp(
            [
                row[..., end - size : end].reshape(*row.shape[:-1], *shape)
                * math.sqrt(weight / (size * len(image)))
                for end, size, shape, weight in zip(ends, sizes, shapes, weights, strict=True)
            ]
        )
    return adj_images


def mse_jvp(loss, image, target, tan_image):
    """Tangent of `Mse.frame`."""
    del loss
    d = image - target  # (1)
    return 2 * (d * tan_image).mean()  # (2)


def mse_vjp(loss, image, target, adj):
    """Pull adj back through `Mse.frame`: adj_image."""
    del loss
    d = image - target  # (1) replayed

    # (2) loss = sum d^2 / N
    d *= 2 * adj / d.size
    # (1) d = image - target
    return d


def huber_jvp(loss, image, target, tan_image):
    """Tangent of `Huber.frame`."""
    c = np.clip(image - target, -loss.threshold, loss.threshold)  # (1), (2)
    return (c * tan_image).mean()  # (3)


def huber_vjp(loss, image, target, adj):
    """Pull adj back through `Huber.frame`: adj_image."""
    d = image - target  # (1) replayed

    # (3), (2) loss = sum c (d - c/2) / N: c = d gives d, c = +-h gives +-h, so c in both
    d.clip(-loss.threshold, loss.threshold, out=d)
    d *= adj / d.size
    # (1) d = image - target
    return d


def pyramid_mse_jvp(loss, image, target, tan_image):
    """Tangent of `PyramidMse.frame`."""
    d = pyramid(image - target, loss.levels)  # (1), (2)
    tan_d = pyramid(tan_image, loss.levels)
    levels = zip(loss.weights, d, tan_d, strict=True)
    return sum(2 * w * (a * b).mean() for w, a, b in levels)  # (3)


def pyramid_mse_vjp(loss, image, target, adj):
    """Pull adj back through `PyramidMse.frame`: adj_image."""
    d = pyramid(image - target, loss.levels)  # (1), (2) replayed

    # (3) loss = sum over levels of g^l sum d_l^2 / N_l
    adj_d = [2 * w * adj / level.size * level for w, level in zip(loss.weights, d, strict=True)]
    # (2) d_{l+1} = R_y d_l R_x^T;  (1) d_0 = image - target
    return pyramid_vjp(adj_d)


def pyramid_vjp(adj_levels):
    """Pull the cotangents of the levels of `pyramid` back to its image, coarsest first."""
    adj_image = adj_levels[-1]
    for adj_level in reversed(adj_levels[:-1]):
        adj_image = adj_level + reduce_half_vjp(adj_image, adj_level.shape)
    return adj_image


def reduce_half_vjp(adj_both, shape):
    """Pull adj_both (..., W/2, H/2, C) back through `reduce_half`: adj_image of `shape`."""
    R_y_T, R_x_T = (expand_matrix(n, adj_both.dtype.char) for n in shape[-3:-1])
    return reduce_by_vjp(adj_both, R_y_T, R_x_T, shape)


def reduce_by_vjp(adj_both, R_y_T, R_x_T, shape):
    """Pull adj_both (..., W', H', C) back through `reduce_by`: adj_image of `shape`."""
    *n, _, width, channels = shape

    # (3) both = R_x turned
    flat = adj_both.reshape(*n, adj_both.shape[-3], -1)
    adj_turned = product(R_x_T, flat)
    # (2) turned = rows with two axes swapped
    adj_rows = adj_turned.reshape(*n, width, -1, channels).swapaxes(-3, -2)
    # (1) rows = R_y image
    flat = adj_rows.reshape(*n, adj_rows.shape[-3], -1)
    return product(R_y_T, flat).reshape(shape)


@lru_cache(maxsize=64)
def expand_matrix(n: int, dtype: str) -> scipy.sparse.csr_array:
    """Return R^T, (n, ceil(n/2)), rows in order: `reduce_matrix` transposed."""
    return reduce_matrix(n, dtype).T.tocsr()


def soft_iou_jvp(loss, image, target, tan_image):
    """Tangent of `SoftIou.frame`."""
    del loss
    a, b, tan_a = image[..., ALPHA], target[..., ALPHA], tan_image[..., ALPHA]
    intersection = (a * b).sum()  # (1)
    tan_intersection = (tan_a * b).sum()
    union = (a + b - a * b).sum()  # (2)
    tan_union = (tan_a - tan_a * b).sum()
    if union == 0:  # a jump: 0 by convention
        return 0.0
    return -(tan_intersection - intersection / union * tan_union) / union  # (3)


def soft_iou_vjp(loss, image, target, adj):
    """Pull adj back through `SoftIou.frame`: adj_image, all but alpha 0."""
    del loss
    a, b = image[..., ALPHA], target[..., ALPHA]
    intersection = (a * b).sum()  # (1) replayed
    union = (a + b - a * b).sum()  # (2) replayed
    adj_image = module_of(image).zeros_like(image)
    if union == 0:  # a jump: 0 by convention
        return adj_image

    # (3) loss = 1 - I/U
    adj_intersection = -adj / union
    adj_union = adj * intersection / union**2
    # (2) U = sum (a + b - a b)
    adj_image[..., ALPHA] = adj_union * (1 - b)
    # (1) I = sum a b
    adj_image[..., ALPHA] += adj_intersection * b
    return adj_image


def like_images(name, value, images):
    """Return `value` as an array of the shape of `images`."""
    return checks.array(name, value, np.shape(images), dtype=np.asarray(images).dtype)


TWINS: dict[type, tuple[Callable, Callable]] = {
    Mse: (mse_jvp, mse_vjp),
    Huber: (huber_jvp, huber_vjp),
    PyramidMse: (pyramid_mse_jvp, pyramid_mse_vjp),
    SoftIou: (soft_iou_jvp, soft_iou_vjp),
}
