r"""Flat shading: one normal per face, ambient plus Lambert. Smooth normals: `pixel_shading.py`.

    n = (x1 - x0) x (x2 - x0), normalised
    shade = k_a + sum over lights of L k_d max(0, n.l),  l = m/|m|,  colour = shade C

Both sides of a face use the same normal: it is not flipped towards the eye. The slope of
max(0, .) at 0 is 0. All products of colours are per channel.

Adjoint: `adjoint/render/shading.py`. Tests: `tests/render/test_shading.py`.
Source: Foley et al., Computer Graphics: Principles and Practice, sec. 16.1.
"""

from adjsim.backend import device_fn, lit
from adjsim.vec3 import cross, dot, norm, scale, sub


@device_fn
def flat_normal(x0, x1, x2):
    """Unit normal n [-] of the face x0, x1, x2."""
    u = sub(x1, x0)  # (1)
    v = sub(x2, x0)  # (2)
    m = cross(u, v)  # (3)
    l = norm(m)  # (4)
    return scale(lit(1.0, l) / l, m)  # (5)


@device_fn
def lambert(n, m, light, diffuse):
    """Light [-] that a face with normal n reflects from the direction m, per channel."""
    l = scale(lit(1.0, m[0]) / norm(m), m)  # (1)
    c = dot(n, l)  # (2)
    g = max(c, lit(0.0, c))  # (3)
    return (
        light[0] * diffuse[0] * g,  # (4)
        light[1] * diffuse[1] * g,
        light[2] * diffuse[2] * g,
    )
