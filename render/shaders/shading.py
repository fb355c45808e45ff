r"""What light does to a face: one normal per face, Lambert, and the highlight of Phong.

    n = (x1 - x0) x (x2 - x0), normalised
    shade = k_a + sum over lights of L k_d max(0, n.l),  l = m/|m|,  colour = shade C
    highlight = sum over lights of L k_s max(0, r.e)^p,  r = 2 (n.l) n - l

Both sides of a face use the same normal: it is not flipped towards the eye. The slope of
max(0, .) at 0 is 0, and so are the slopes of 0^p. All products of colours are per channel.
Directions l come normalised, once per render: `render/raster/packing.py`.

Adjoint: `adjoint/render/shaders/shading.py`. Tests: `tests/render/shaders/test_shading.py`.
Source: Foley et al., Computer Graphics: Principles and Practice, sec. 16.1.
"""

import math

from adjsim.algebra.vec3 import cross, dot, norm, scale, sub
from adjsim.jit.backend import device_fn, lit


@device_fn
def flat_normal(x0, x1, x2):
    """Unit normal n [-] of the face x0, x1, x2."""
    u = sub(x1, x0)  # (1)
    v = sub(x2, x0)  # (2)
    m = cross(u, v)  # (3)
    l = norm(m)  # (4)
    return scale(lit(1.0, l) / l, m)  # (5)


@device_fn
def lambert(n, l, light, diffuse):
    """Light [-] that a face with normal n reflects from the unit direction l, per channel."""
    c = dot(n, l)  # (1)
    g = max(c, lit(0.0, c))  # (2)
    return (
        light[0] * diffuse[0] * g,  # (3)
        light[1] * diffuse[1] * g,
        light[2] * diffuse[2] * g,
    )


@device_fn
def power(c, p):
    """max(0, c)^p, p > 0."""
    return math.pow(c, p) if c > lit(0.0, c) else lit(0.0, c)


@device_fn
def mirrored_cosine(n, e, l):
    """r.e of the light from l that a face with normal n mirrors."""
    a = dot(n, l)  # (1)
    b = dot(n, e)  # (2)
    return lit(2.0, a) * a * b - dot(l, e)  # (3)


@device_fn
def highlight(n, e, l, light, specular, p):
    """Light [-] from the unit direction l mirrored towards e by a face with normal n."""
    c = mirrored_cosine(n, e, l)  # (1) to (3)
    h = power(c, p)  # (4)
    return (
        light[0] * specular[0] * h,  # (5)
        light[1] * specular[1] * h,
        light[2] * specular[2] * h,
    )
