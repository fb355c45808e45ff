r"""From the fragments of a pixel to its RGBA.

    Over     nearest first, T_1 = 1:  RGB = sum T_j D_j C_j + T_end C_bg,
             T_{j+1} = T_j (1 - D_j)
    Softmax  RGB = sum w_j C_j + w_bg C_bg,  w_j ~ D_j exp(z~_j/gamma),
             w_bg ~ exp(epsilon/gamma),  z~ = (far - z)/(far - near)
    both     alpha = 1 - prod (1 - D_j)

Softmax is evaluated with u_j = log D_j + z~_j/gamma minus the largest: exp(z~/gamma) would
overflow. Fragments with D < D_min are not seen: 1e-10 in Over, 1e-4 in Softmax.

Adjoint: `adjoint/render/blending.py`. Tests: `tests/render/test_blending.py`.
Source: Porter & Duff, SIGGRAPH 1984 (Over); Liu et al., Soft Rasterizer, ICCV 2019,
eq. 2-4 (Softmax).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from adjsim.backend import device_fn, lit
from render.coverage import coverage, log_coverage


@dataclass(frozen=True)
class Over:
    """Blend faces nearest first, each over what lies behind it."""

    d_min: ClassVar[float] = 1e-10


@dataclass(frozen=True)
class Softmax:
    """Blend faces by a softmax of their depths (Liu et al. 2019)."""

    d_min: ClassVar[float] = 1e-4


@device_fn
def over_body(first, last, fragments, background):
    """RGBA of a pixel whose sorted list is order[first:last]."""
    zero = lit(0.0, background[0])
    r, g, b, T = zero, zero, zero, lit(1.0, background[0])
    for k in range(first, last):
        q = fragments.order[k]
        D, rest = coverage(fragments.y[q])  # (1)
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
def softmax_logit(y, z, settings):
    """Logit u = log D + z~/gamma of the weight of a fragment."""
    nearness = (settings.far - z) / (settings.far - settings.near)  # (1)
    return log_coverage(y) + nearness / settings.gamma  # (2)


@device_fn
def softmax_largest(first, last, fragments, settings):
    """Largest logit in a list, that of the background included."""
    largest = settings.epsilon / settings.gamma
    for k in range(first, last):
        q = fragments.order[k]
        largest = max(largest, softmax_logit(fragments.y[q], fragments.z[q], settings))
    return largest


@device_fn
def softmax_body(first, last, fragments, settings, background):
    """RGBA of a pixel with the list order[first:last]."""
    largest = softmax_largest(first, last, fragments, settings)  # (1)
    total = math.exp(settings.epsilon / settings.gamma - largest)  # (2)
    r, g, b = total * background[0], total * background[1], total * background[2]
    T = lit(1.0, total)
    for k in range(first, last):
        q = fragments.order[k]
        w = math.exp(softmax_logit(fragments.y[q], fragments.z[q], settings) - largest)  # (3)
        total += w  # (4)
        r += w * fragments.rgb[q, 0]  # (5)
        g += w * fragments.rgb[q, 1]
        b += w * fragments.rgb[q, 2]
        _, rest = coverage(fragments.y[q])
        T = T * rest  # (6)
    return r / total, g / total, b / total, lit(1.0, T) - T  # (7)
