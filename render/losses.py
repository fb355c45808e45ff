r"""Image losses: the distance of rendered frames from target frames, one number.

Every loss is the mean over frames of a loss of one frame:

    Mse           mean d^2,   d = image - target
    Huber         mean of d^2/2 where |d| <= h, else h (|d| - h/2)
    PyramidMse    sum over levels of g^l mean d_l^2,   d_0 = d,   d_{l+1} = R_y d_l R_x^T
    SoftIou       1 - I/U,   I = sum a b,   U = sum (a + b - a b)   of the alphas a, b

R_x and R_y blur with [1 4 6 4 1]/16, edges replicated, and keep the even rows: an image
of n rows gives one of ceil(n/2). SoftIou is 0 where both frames are empty (U = 0).

A loss uses the channels the target has: targets in RGB are compared with the RGB of the
images, so a video without alpha needs no care.

Images may be CuPy's. They are compared where they are, all frames at once; targets of NumPy are
copied there, once. Residuals of CuPy may be not finite: to look for that, the host would wait.

Adjoint: `adjoint/render/losses.py`. Tests: `tests/render/test_losses.py`.
Sources: Huber, Ann. Math. Stat. 35 (1964), sec. 2; Burt & Adelson, IEEE Trans. Commun. 31
(1983), eq. 2 with a = 3/8; Liu et al., Soft Rasterizer, ICCV 2019, eq. 7.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import numpy as np
import scipy.sparse

from adjsim import checks
from adjsim.engine.sparse import product
from adjsim.jit.device_arrays import beside, to_host
from adjsim.jit.devices import module_of


BLUR = (1.0, 4.0, 6.0, 4.0, 1.0)  # sixteenths
RGB, RGBA = 3, 4
ALPHA = 3


class _OverFrames:
    """A loss of one frame, whose mean over frames is the loss."""

    def __call__(self, images: np.ndarray, targets: np.ndarray) -> float:
        """Return the loss of `images` against `targets`, see `mean_over_frames`."""
        loss: Any = self
        return mean_over_frames(loss, images, targets)


@dataclass(frozen=True)
class Mse(_OverFrames):
    """Mean squared difference over frames, pixels and channels [-]."""

    def frame(self, image: np.ndarray, target: np.ndarray) -> float:
        """Return the loss of one frame (H, W, C)."""
        d = image - target  # (1)
        return np.square(d, out=d).mean()  # (2)


@dataclass(frozen=True)
class Huber(_OverFrames):
    """Mean of d^2/2 up to |d| = `threshold`, and of threshold (|d| - threshold/2) beyond.

    Parameters
    ----------
    threshold : float
        Where the parabola turns into a straight line, in units of colour [-], positive.
        Pixels that no parameter can explain pull with a bounded force.
    """

    threshold: float

    def __post_init__(self):
        """Check the threshold."""
        checks.positive("threshold", checks.array("threshold", self.threshold, ()))

    def frame(self, image: np.ndarray, target: np.ndarray) -> float:
        """Return the loss of one frame (H, W, C)."""
        d = image - target  # (1)
        c = d.clip(-self.threshold, self.threshold)  # (2)
        return (c * (d - 0.5 * c)).mean()  # (3) d^2/2, or h |d| - h^2/2: both branches


@dataclass(frozen=True)
class PyramidMse(_OverFrames):
    """Sum of the mean squared differences over the levels of a Gaussian pyramid [-].

    The coarse levels see where a silhouette has to go before it overlaps its target.

    Parameters
    ----------
    levels : int
        How many, full size included, at least 1. One level is `Mse`. A level of one
        pixel stays one pixel.
    growth : float
        g, weight of a level relative to the next finer one [-], positive. A spot smaller than a
        pixel spreads over a level of a quarter as many, and its mean of squares falls to a
        quarter: with 4 all levels that blur a small body weigh the same, so that the coarse
        ones lead it to a far target before the fine ones, which know nothing of the way,
        make it shrink.
    """

    levels: int = 4
    growth: float = 1.0

    def __post_init__(self):
        """Check the number of levels and their weights."""
        checks.whole("levels", self.levels, 1)  # full size counts as a level
        checks.positive("growth", checks.array("growth", self.growth, ()))

    @property
    def weights(self) -> tuple[float, ...]:
        """Weight g^l of every level, finest first."""
        return tuple(float(self.growth) ** level for level in range(self.levels))

    def frame(self, image: np.ndarray, target: np.ndarray) -> float:
        """Return the loss of one frame (H, W, C)."""
        d = pyramid(image - target, self.levels)  # (1), (2)
        squares = [np.square(level).mean() for level in d]
        weighted = (w * square for w, square in zip(self.weights, squares, strict=True))
        return sum(weighted, start=squares[0].dtype.type(0))  # (3)


@dataclass(frozen=True)
class SoftIou(_OverFrames):
    """One minus the soft intersection over union of the alphas, mean over frames [-].

    Images and targets need an alpha channel.
    """

    def frame(self, image: np.ndarray, target: np.ndarray) -> float:
        """Return the loss of one frame (H, W, 4)."""
        a, b = image[..., ALPHA], target[..., ALPHA]
        intersection = (a * b).sum()  # (1)
        union = (a + b - a * b).sum()  # (2)
        return 1 - intersection / union if union != 0 else 0.0  # (3)


ImageLoss = Mse | Huber | PyramidMse | SoftIou


def mean_over_frames(loss: ImageLoss, images: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean over frames of a loss of one frame, frames in order.

    Parameters
    ----------
    loss : Mse, Huber, PyramidMse or SoftIou
    images : numpy.ndarray or cupy.ndarray
        (n_frames, H, W, C) or one frame (H, W, C), float [-]; what `rasterize` returns of one
        camera. Of several pass `images.reshape(-1, H, W, C)`.
    targets : ndarray
        The same frames and sizes; channels as the images, or RGB against RGBA.

    Returns
    -------
    float
        Dimensionless, 0 for equal images.

    Raises
    ------
    ValueError
        If the frame counts, sizes or channels do not fit, an array is not floating point
        or not finite, or `SoftIou` is given targets without alpha.
    """
    parts = list(by_parts(loss, *matched(loss, images, targets)))
    with np.errstate(over="ignore", invalid="ignore"):
        value = sum((float(loss.frame(i, t)) for i, t in parts), start=0.0) / len(parts)
    if not math.isfinite(value):
        refuse_not_finite(images, targets)
    return value


def residuals(loss: ImageLoss, images: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return r with loss(images, targets) = r @ r, what Gauss-Newton minimises.

    Parameters
    ----------
    loss : Mse or PyramidMse
    images, targets : ndarray
        As `mean_over_frames` takes them.

    Returns
    -------
    ndarray
        (n,): frame after frame, within a frame level after level.

    Raises
    ------
    ValueError
        If the loss is no sum of squares, or the arrays do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import residuals
    >>> from render import Mse
    >>> images, targets = np.full((2, 2, 3), 0.5), np.zeros((2, 2, 3))
    >>> r = residuals(Mse(), images, targets)
    >>> print(r.shape, round(float(r @ r), 6), Mse()(images, targets))
    (12,) 0.25 0.25
    """
    weights = square_weights(loss)
    image, target = matched(loss, images, targets)
    with np.errstate(over="ignore", invalid="ignore"):
        r = frame_residuals(image, target, weights)
    if isinstance(r, np.ndarray) and not np.isfinite(r).all():
        refuse_not_finite(images, targets)
    return r


def by_parts(loss: ImageLoss | None, *frames: Any) -> Iterator[tuple[Any, ...]]:
    """Yield what is computed at once: a frame (H, W, C) of each; on a device (nf, H, W, C)."""
    if isinstance(frames[0], np.ndarray) or isinstance(loss, SoftIou):
        yield from zip(*frames, strict=True)
    else:
        yield frames


def frame_residuals(images, targets, weights):
    """Return the scaled differences of frames (nf, H, W, C), one after the other (n,).

    Where `targets` is None the images themselves are scaled.
    """
    xp, shape = module_of(images), images.shape
    frames = (images,) if targets is None else (images, targets)
    sizes = [math.prod(level) for level in level_shapes(shape[1:], len(weights))]
    scales = [math.sqrt(w / (size * len(images))) for w, size in zip(weights, sizes, strict=True)]
    dtype = np.result_type(*(frame.dtype for frame in frames))
    out = xp.empty((len(images), sum(sizes)), dtype)
    for row, image, *target in by_parts(None, out, *frames):
        first = 0
        levels = pyramid(difference(image, target[0]) if target else image, len(weights))
        for level, size, scale in zip(levels, sizes, scales, strict=True):
            room = row[..., first : first + size].reshape(level.shape)  # a view
            room[...] = scale * level
            first += size
    return out.ravel()


def difference(images, targets):
    """Return images - targets, (..., C)."""
    if module_of(images) is not np:
        return images - targets
    out = np.empty(images.shape, np.result_type(images, targets))
    for c in range(images.shape[-1]):  # NumPy is slow at rows of three that lie apart
        np.subtract(images[..., c], targets[..., c], out=out[..., c])
    return out


def square_weights(loss: ImageLoss) -> tuple[float, ...]:
    """Return the weights of the pyramid levels of a loss that is a sum of squares."""
    if isinstance(loss, Mse):
        return (1.0,)
    if isinstance(loss, PyramidMse):
        return loss.weights
    raise ValueError(
        f"`loss` must be a sum of squares for residuals, got {loss}. "
        "Use Mse() or PyramidMse(), or an optimizer that needs the gradient only."
    )


def pyramid(image: np.ndarray, levels: int) -> list[np.ndarray]:
    """Return `levels` arrays, `image` (..., H, W, C) first, each half the size of the last.

    Every second level comes transposed, (..., W, H, C): a mean of squares does not see it.
    """
    out = [image]
    for _ in range(levels - 1):
        out.append(reduce_half(out[-1]))  # (2) d_{l+1} = R_y d_l R_x^T, transposed
    return out


def reduce_half(image):
    """Blur, keep even rows and columns, transpose: (..., H, W, C) to (..., W/2, H/2, C).

    Halves are rounded up.
    """
    return reduce_by(image, *(reduce_matrix(n, image.dtype.char) for n in image.shape[-3:-1]))


def reduce_by(image, R_y, R_x):
    """Return the transpose of R_y image R_x^T, (..., W', H', C), of an image (..., H, W, C)."""
    *n, height, width, channels = image.shape
    rows = product(R_y, image.reshape(*n, height, -1))  # (1)
    turned = rows.reshape(*n, -1, width, channels).swapaxes(-3, -2)  # (2) (W, H/2, C)
    both = product(R_x, turned.reshape(*n, width, -1))  # (3)
    return both.reshape(*n, both.shape[-2], -1, channels)


def level_shapes(shape: tuple[int, ...], levels: int) -> list[tuple[int, ...]]:
    """Return the shapes of the levels of `pyramid` for an image of this shape (H, W, C)."""
    out = [shape]
    for _ in range(levels - 1):
        height, width, channels = out[-1]
        out.append((-(-width // 2), -(-height // 2), channels))
    return out


@lru_cache(maxsize=64)
def reduce_matrix(n: int, dtype: str) -> scipy.sparse.csr_array:
    """Return R, (ceil(n/2), n): the blur at even samples, its edges replicated."""
    even = np.arange(0, n, 2)
    taps = np.clip(even[:, None] + np.arange(-2, 3), 0, n - 1)
    rows = np.repeat(np.arange(len(even)), 5)
    weights = np.tile(BLUR, len(even)).astype(dtype) / 16
    shape = (len(even), n)
    return scipy.sparse.coo_array((weights, (rows, taps.ravel())), shape=shape).tocsr()


def matched(
    loss: ImageLoss, images: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return views (n_frames, H, W, C) of both, C the channels the target has."""
    checks.instance("loss", loss, get_args(ImageLoss))
    image = floating("images", images)
    target = floating("targets", beside(targets, images))
    if image.ndim != target.ndim or image.shape[:-1] != target.shape[:-1]:
        raise ValueError(
            f"`targets` must have the frames and size of `images`, "
            f"{image.shape[:-1]}, got {target.shape[:-1]} (n_frames, height, width). Render at "
            "the size and frames of the target, or pass the target frames that match."
        )
    channels = target.shape[-1]
    if channels != image.shape[-1] and (image.shape[-1], channels) != (RGBA, RGB):
        raise ValueError(
            f"`targets` must have the {image.shape[-1]} channels of `images`, or RGB against "
            f"RGBA, got {channels} channels. Pass targets[..., :3] to compare colours only."
        )
    if isinstance(loss, SoftIou) and channels != RGBA:
        raise ValueError(
            f"`targets` must have an alpha channel for SoftIou, (..., 4), got {channels} "
            "channels. Use Mse() or PyramidMse(): they need colours only."
        )
    frames = (-1, *image.shape[-3:-1])
    return image[..., :channels].reshape(*frames, channels), target.reshape(*frames, channels)


def floating(name, value):
    """Return `value` as an array of frames, refusing bytes, empty ones and other ranks."""
    out = value if module_of(value) is not np else np.asarray(value)
    if out.dtype not in checks.FLOAT_DTYPES:
        raise ValueError(
            f"`{name}` must be float64 or float32, got {out.dtype}. Divide bytes by 255."
        )
    if out.ndim not in {3, 4} or out.size == 0:
        raise ValueError(
            f"`{name}` must have shape (n_frames, H, W, C) or (H, W, C), none of them 0, "
            f"got {out.shape}.{way_out(name, out.shape)}"
        )
    return out


def way_out(name, shape):
    """Return how to make frames of an array with other ranks, or nothing."""
    if len(shape) > 4 and 0 not in shape:
        call = f"{name}.reshape({', '.join(map(str, (-1, *shape[-3:])))})"
        return f" The mean is over the frames of all cameras alike: pass {call}, and so the other."
    return f" Pass {name}[..., None]: a frame has channels." if len(shape) == 2 else ""


def refuse_not_finite(images, targets):
    """Raise the error that says which pixel is not finite."""
    checks.array("images", to_host(images))
    checks.array("targets", to_host(targets))
    raise ValueError("`images` must be of moderate size: their squared differences overflow.")
