r"""Barycentric coordinates of a pixel, clipped, and what they interpolate.

    b_k = area opposite to corner k / area of the triangle
    b   = clip(b, 0, 1) / sum of clip(b, 0, 1)
    z   = 1/sum(b_k/z_k),  attribute a = sum w_k a_k,  w_k = z b_k/z_k
    z   = sum b_k z_k and w_k = b_k in an orthographic view, where nothing is foreshortened

Where the weights alone are wanted, what the clipped b are divided by cancels:

    w_k = clip(b_k) c_k / sum of clip(b_j) c_j,   c_k = 1/z_k, or 1 in an orthographic view

A pixel that is nearest to a corner, with both other coordinates below 0, gets exactly
the depth of that corner: faces that share it tie to the bit. In a sliver so thin that
rounding leaves no coordinate above 0, all three are 1/3 and constant.

Adjoint: `adjoint/render/raster/barycentrics.py`. Tests: `tests/render/raster/test_barycentrics.py`.
Source: Liu et al., Soft Rasterizer, ICCV 2019, sec. 3.2; perspective correction: Heckbert
& Moreton, Interpolation for Polygon Texture Mapping and Shading, 1991.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.coverage import cross2


@device_fn
def barycentrics(p, a0, a1, a2):
    """Barycentric coordinates of p, not clipped; they sum to 1."""
    u0 = (a2[0] - a1[0], a2[1] - a1[1])  # (1)
    u1 = (a0[0] - a2[0], a0[1] - a2[1])
    u2 = (a1[0] - a0[0], a1[1] - a0[1])
    area = cross2(u2, (a2[0] - a0[0], a2[1] - a0[1]))  # (2)
    c = lit(1.0, area) / area  # (3)
    b0 = c * cross2(u0, (p[0] - a1[0], p[1] - a1[1]))  # (4)
    b1 = c * cross2(u1, (p[0] - a2[0], p[1] - a2[1]))
    b2 = c * cross2(u2, (p[0] - a0[0], p[1] - a0[1]))
    return b0, b1, b2


@device_fn
def clip01(b):
    """Clip b to [0, 1]."""
    return min(max(b, lit(0.0, b)), lit(1.0, b))


@device_fn
def clip_barycentrics(b0, b1, b2):
    """Coordinates clipped to [0, 1] and divided by their sum, which is at least 1."""
    k0 = clip01(b0)  # (1)
    k1 = clip01(b1)
    k2 = clip01(b2)
    total = k0 + k1 + k2  # (2)
    if total < lit(0.5, total):
        third = lit(1.0 / 3.0, total)
        return third, third, third
    c = lit(1.0, total) / total
    return c * k0, c * k1, c * k2  # (3)


@device_fn
def perspective(b, z):
    """Depth [m] at coordinates b in a face with corner depths z, and weights w_k.

    z is z_0, z_1, z_2 and p: 1 in perspective, 0 in an orthographic view.
    """
    p = z[3]
    q = lit(1.0, p) - p
    h0 = b[0] * (lit(1.0, p) / (p * z[0] + q))  # (1)
    h1 = b[1] * (lit(1.0, p) / (p * z[1] + q))
    h2 = b[2] * (lit(1.0, p) / (p * z[2] + q))
    c = lit(1.0, h0) / (h0 + h1 + h2)  # (2)
    w0, w1, w2 = c * h0, c * h1, c * h2  # (3)
    depth = p * c + q * (w0 * z[0] + w1 * z[1] + w2 * z[2])  # (4)
    return depth, (w0, w1, w2)


@device_fn
def inverse_depths(z):
    """c_k = 1/z_k [1/m] of three corners; 1 in an orthographic view."""
    p = z[3]
    q = lit(1.0, p) - p
    unity = lit(1.0, p)
    return unity / (p * z[0] + q), unity / (p * z[1] + q), unity / (p * z[2] + q)


@device_fn
def corner_weights(b, z):
    """Weights w_k of the corners at coordinates b, not clipped, and 1/S; 0 for it in a sliver."""
    zero, half, third = lit(0.0, b[0]), lit(0.5, b[0]), lit(1.0 / 3.0, b[0])
    c = inverse_depths(z)
    k0, k1, k2 = clip01(b[0]), clip01(b[1]), clip01(b[2])  # (1)
    is_sliver = k0 + k1 + k2 < half
    h0 = (third if is_sliver else k0) * c[0]  # (2)
    h1 = (third if is_sliver else k1) * c[1]
    h2 = (third if is_sliver else k2) * c[2]
    s = lit(1.0, h0) / (h0 + h1 + h2)  # (3)
    return (s * h0, s * h1, s * h2), zero if is_sliver else s  # (4)


@device_fn
def fragment_place(p, a0, a1, a2, z):
    """Depth [m] and weights of the corners at pixel p."""
    b0, b1, b2 = barycentrics(p, a0, a1, a2)  # (1)
    b = clip_barycentrics(b0, b1, b2)  # (2)
    return perspective(b, z)  # (3)
