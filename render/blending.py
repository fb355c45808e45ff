r"""From the fragments of a pixel to its RGBA.

    Over     nearest first, T_1 = 1:  RGB = sum T_j D_j C_j + T_end C_bg,
             T_{j+1} = T_j (1 - D_j)
    Softmax  RGB = sum w_j C_j + w_bg C_bg,  w_j ~ D_j exp(z~_j/gamma),
             w_bg ~ exp(epsilon/gamma),  z~ = (far - z)/(far - near)
    both     alpha = 1 - prod (1 - D_j)
    DIBR, Hard   those of `render/faces/nearest.py`

Softmax is evaluated with u_j = log D_j + z~_j/gamma minus the largest: exp(z~/gamma) would
overflow. Fragments with D < D_min are not seen: 1e-10 in Over, 1e-4 in Softmax.

Adjoint: `adjoint/render/blending.py`. Tests: `tests/render/test_blending.py`.
Source: Porter & Duff, SIGGRAPH 1984 (Over); Liu et al., Soft Rasterizer, ICCV 2019,
eq. 2-4 (Softmax).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adjsim import checks
from adjsim.jit.backend import device_fn, lit
from render.faces.coverage import log_coverage
from render.faces.nearest import nearest_body


OVER, SOFTMAX, NEAREST = 0, 1, 2  # the ways to blend, in kernels


def lowest_logit(D: float) -> float:
    """Return the y at which sigmoid(y) is D."""
    return math.log(D / (1.0 - D))


@dataclass(frozen=True)
class Over:
    """Blend faces nearest first, each over what lies behind it."""

    kind: ClassVar[int] = OVER
    lowest: ClassVar[float] = lowest_logit(1e-10)


@dataclass(frozen=True)
class Softmax:
    """Blend faces by a softmax of their depths (Liu et al. 2019)."""

    kind: ClassVar[int] = SOFTMAX
    lowest: ClassVar[float] = lowest_logit(1e-4)


@dataclass(frozen=True)
class DIBR:
    """The nearest face that covers a pixel; beside all faces alpha alone is soft (DIB-R, 2019).

    Parameters
    ----------
    kappa : float
        Softness of alpha [screen units squared], positive: D = exp(-d^2/kappa). It takes the
        place of the rasterizer's `sigma`.

    Raises
    ------
    ValueError
        If `kappa` is not positive.
    """

    kappa: float = 1.0 / 7000.0
    kind: ClassVar[int] = NEAREST
    lowest: ClassVar[float] = math.log(1e-10)

    def __post_init__(self) -> None:
        kappa = float(checks.array("blend.kappa", self.kappa, ()))
        checks.positive("blend.kappa", kappa, hint="In screen units squared.")
        object.__setattr__(self, "kappa", kappa)


@dataclass(frozen=True)
class Hard:
    """The nearest face that covers a pixel, with alpha 0 or 1: a z-buffer.

    Colours, barycentrics and shading have gradients; outlines have none.
    """

    kind: ClassVar[int] = NEAREST
    lowest: ClassVar[float] = 0.0


Blend = Over | Softmax | DIBR | Hard


@device_fn
def background_at(i, j, background):
    """What lies behind the pixel in row i and column j: the one colour, or its own."""
    row, column = min(i, background.shape[0] - 1), min(j, background.shape[1] - 1)
    return background[row, column, 0], background[row, column, 1], background[row, column, 2]


@device_fn
def over_body(first, last, fragments, background):
    """RGBA of a pixel whose sorted list is order[first:last]."""
    zero = lit(0.0, background[0])
    r, g, b, T = zero, zero, zero, lit(1.0, background[0])
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        D, rest = fragments.D[q], fragments.rest[q]  # (1) D = sigmoid(y)
        w = T * D  # (2)
        r += w * fragments.rgb[q, 0]  # (3)
        g += w * fragments.rgb[q, 1]
        b += w * fragments.rgb[q, 2]
        T = T * rest  # (4)
    r += T * background[0]  # (5)
    g += T * background[1]
    b += T * background[2]
    return r, g, b, lit(1.0, T) - T  # (6)


@device_fn
def softmax_logit(y, D, rest, z, settings):
    """Logit u = log D + z~/gamma of the weight of a fragment."""
    log_D = log_coverage(y, D, rest)  # (1)
    nearness = (settings.far - z) / (settings.far - settings.near)  # (2)
    return log_D + nearness / settings.gamma  # (3)


@device_fn
def softmax_logits(first, last, fragments, settings):
    """Write the logits of a list; return the largest, background included, and prod (1 - D)."""
    largest, T = settings.epsilon / settings.gamma, lit(1.0, settings.gamma)
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        rest = fragments.rest[q]
        u = softmax_logit(fragments.y[q], fragments.D[q], rest, fragments.z[q], settings)
        fragments.u[q] = u
        largest = max(largest, u)
        T = T * rest
    return largest, T


@device_fn
def softmax_sums(first, last, fragments, settings, background):
    """Largest logit, weight of the background, sums of weights and of colours, prod (1 - D)."""
    largest, T = softmax_logits(first, last, fragments, settings)  # (1)
    w_bg = math.exp(settings.epsilon / settings.gamma - largest)  # (2)
    total = w_bg
    r, g, b = w_bg * background[0], w_bg * background[1], w_bg * background[2]
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        w = math.exp(fragments.u[q] - largest)  # (3)
        total += w  # (4)
        r += w * fragments.rgb[q, 0]  # (5)
        g += w * fragments.rgb[q, 1]
        b += w * fragments.rgb[q, 2]
    return largest, w_bg, total, (r, g, b), T


@device_fn
def softmax_body(first, last, fragments, settings, background):
    """RGBA of a pixel with the list order[first:last]."""
    _, _, total, (r, g, b), T = softmax_sums(first, last, fragments, settings, background)
    return r / total, g / total, b / total, lit(1.0, T) - T  # (6)


@device_fn
def blend_body(first, last, fragments, settings, background):
    """RGBA of a pixel with the list order[first:last], sorted for Over, in any mode."""
    if settings.blend == OVER:
        return over_body(first, last, fragments, background)
    if settings.blend == SOFTMAX:
        return softmax_body(first, last, fragments, settings, background)
    return nearest_body(first, last, fragments, background)
