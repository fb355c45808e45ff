r"""Tangent and adjoint of `render/raster/barycentrics.py`: read the two files side by side.

A coordinate
outside [0, 1] is held by the clip and passes nothing on; on 0 or 1 itself, a kink, it
passes everything.
"""

from adjsim.jit.backend import device_fn, lit
from render.faces.coverage import cross2
from render.raster.barycentrics import (
    barycentrics,
    clip01,
    clip_barycentrics,
    inverse_depths,
    perspective,
)


@device_fn
def sub2(a, b):
    """Difference a - b of two screen vectors."""
    return (a[0] - b[0], a[1] - b[1])


@device_fn
def add2(a, b):
    """Sum a + b of two screen vectors."""
    return (a[0] + b[0], a[1] + b[1])


@device_fn
def scale2(s, a):
    """Screen vector s a."""
    return (s * a[0], s * a[1])


@device_fn
def barycentrics_jvp(p, a0, a1, a2, tan_a0, tan_a1, tan_a2):
    """Tangents of the three coordinates, not clipped."""
    u0, u1, u2, v = sub2(a2, a1), sub2(a0, a2), sub2(a1, a0), sub2(a2, a0)
    tan_u0 = sub2(tan_a2, tan_a1)  # (1)
    tan_u1 = sub2(tan_a0, tan_a2)
    tan_u2 = sub2(tan_a1, tan_a0)
    tan_area = cross2(tan_u2, v) + cross2(u2, sub2(tan_a2, tan_a0))  # (2)
    c = lit(1.0, v[0]) / cross2(u2, v)
    tan_c = -c * c * tan_area  # (3)
    q0, q1, q2 = sub2(p, a1), sub2(p, a2), sub2(p, a0)
    tan_b0 = tan_c * cross2(u0, q0) + c * (cross2(tan_u0, q0) - cross2(u0, tan_a1))  # (4)
    tan_b1 = tan_c * cross2(u1, q1) + c * (cross2(tan_u1, q1) - cross2(u1, tan_a2))
    tan_b2 = tan_c * cross2(u2, q2) + c * (cross2(tan_u2, q2) - cross2(u2, tan_a0))
    return tan_b0, tan_b1, tan_b2


@device_fn
def pixel_vjp(a0, a1, a2, adj_b):
    """Pull adj_b back through `barycentrics` to p, as if it moved."""
    u0, u1, u2 = sub2(a2, a1), sub2(a0, a2), sub2(a1, a0)  # (1) replayed
    c = lit(1.0, u2[0]) / cross2(u2, sub2(a2, a0))  # (2), (3) replayed

    # (4) b_k = c cross2(u_k, p - a_j), as a function of p alone
    return (
        -c * (u0[1] * adj_b[0] + u1[1] * adj_b[1] + u2[1] * adj_b[2]),
        c * (u0[0] * adj_b[0] + u1[0] * adj_b[1] + u2[0] * adj_b[2]),
    )


@device_fn
def barycentrics_vjp(p, a0, a1, a2, adj_b):
    """Pull adj_b back through `barycentrics`: adj_a0, adj_a1, adj_a2.

    p = sum b_k a_k whatever the corners are. So a change of them, with p held, has
    sum b_k a_k' + sum b_k' a_k = 0: it moves p by -sum b_k a_k' over a face that stays.
    """
    adj_p = pixel_vjp(a0, a1, a2, adj_b)  # (4)
    b = barycentrics(p, a0, a1, a2)  # (4) replayed

    # (3), (2), (1) a_k moves p by -b_k a_k'
    return scale2(-b[0], adj_p), scale2(-b[1], adj_p), scale2(-b[2], adj_p)


@device_fn
def clip01_slope(b):
    """Slope of the clip at b: 1 in [0, 1], else 0."""
    zero, unity = lit(0.0, b), lit(1.0, b)
    return unity if zero <= b <= unity else zero


@device_fn
def clip_barycentrics_jvp(b0, b1, b2, tan_b):
    """Tangents of the clipped and renormalised coordinates."""
    total = clip01(b0) + clip01(b1) + clip01(b2)
    if total < lit(0.5, total):
        return lit(0.0, total), lit(0.0, total), lit(0.0, total)
    c = lit(1.0, total) / total
    k0, k1, k2 = clip_barycentrics(b0, b1, b2)
    t0 = clip01_slope(b0) * tan_b[0]  # (1)
    t1 = clip01_slope(b1) * tan_b[1]
    t2 = clip01_slope(b2) * tan_b[2]
    tan_total = t0 + t1 + t2  # (2)
    return c * (t0 - k0 * tan_total), c * (t1 - k1 * tan_total), c * (t2 - k2 * tan_total)  # (3)


@device_fn
def clip_barycentrics_vjp(b0, b1, b2, adj_k):
    """Pull adj_k back through `clip_barycentrics`: adj_b0, adj_b1, adj_b2."""
    total = clip01(b0) + clip01(b1) + clip01(b2)  # (1), (2) replayed
    if total < lit(0.5, total):
        return lit(0.0, total), lit(0.0, total), lit(0.0, total)
    c = lit(1.0, total) / total
    k0, k1, k2 = clip_barycentrics(b0, b1, b2)  # (3) replayed

    # (3), (2) k = clip(b)/total: the total takes k.adj_k from each
    adj_total = k0 * adj_k[0] + k1 * adj_k[1] + k2 * adj_k[2]

    # (1) clip
    return (
        clip01_slope(b0) * c * (adj_k[0] - adj_total),
        clip01_slope(b1) * c * (adj_k[1] - adj_total),
        clip01_slope(b2) * c * (adj_k[2] - adj_total),
    )


@device_fn
def perspective_jvp(b, z, tan_b, tan_z):
    """Tangents of the depth and of the three weights."""
    _, w = perspective(b, z)
    p = z[3]
    q = lit(1.0, p) - p
    c0 = lit(1.0, p) / (p * z[0] + q)
    c1 = lit(1.0, p) / (p * z[1] + q)
    c2 = lit(1.0, p) / (p * z[2] + q)
    t0 = c0 * (tan_b[0] - b[0] * c0 * p * tan_z[0])  # (1)
    t1 = c1 * (tan_b[1] - b[1] * c1 * p * tan_z[1])
    t2 = c2 * (tan_b[2] - b[2] * c2 * p * tan_z[2])
    c = lit(1.0, p) / (b[0] * c0 + b[1] * c1 + b[2] * c2)
    tan_sum = t0 + t1 + t2
    tan_c = -c * c * tan_sum  # (2)
    tan_w = (c * (t0 - w[0] * tan_sum), c * (t1 - w[1] * tan_sum), c * (t2 - w[2] * tan_sum))  # (3)
    tan_flat = (
        tan_w[0] * z[0] + tan_w[1] * z[1] + tan_w[2] * z[2]
        + w[0] * tan_z[0] + w[1] * tan_z[1] + w[2] * tan_z[2]
    )  # fmt: skip
    return p * tan_c + q * tan_flat, tan_w  # (4)


@device_fn
def perspective_vjp(b, z, adj_depth, adj_w):
    """Pull back through `perspective`: adj_b, adj_z of the three depths."""
    p = z[3]
    q = lit(1.0, p) - p
    c0 = lit(1.0, p) / (p * z[0] + q)
    c1 = lit(1.0, p) / (p * z[1] + q)
    c2 = lit(1.0, p) / (p * z[2] + q)
    h0, h1, h2 = b[0] * c0, b[1] * c1, b[2] * c2  # (1) replayed
    c = lit(1.0, h0) / (h0 + h1 + h2)  # (2) replayed

    # (4) depth = p c + q (w_0 z_0 + w_1 z_1 + w_2 z_2)
    adj_flat = q * adj_depth
    adj_w0 = adj_w[0] + z[0] * adj_flat
    adj_w1 = adj_w[1] + z[1] * adj_flat
    adj_w2 = adj_w[2] + z[2] * adj_flat

    # (3) w_k = c h_k
    adj_c = p * adj_depth + h0 * adj_w0 + h1 * adj_w1 + h2 * adj_w2

    # (2) c = 1/(h0 + h1 + h2)
    adj_sum = -c * c * adj_c
    adj_h0 = c * adj_w0 + adj_sum
    adj_h1 = c * adj_w1 + adj_sum
    adj_h2 = c * adj_w2 + adj_sum

    # (1) h_k = b_k/(p z_k + q)
    adj_b = (c0 * adj_h0, c1 * adj_h1, c2 * adj_h2)
    adj_z = (
        c * h0 * adj_flat - p * h0 * c0 * adj_h0,
        c * h1 * adj_flat - p * h1 * c1 * adj_h1,
        c * h2 * adj_flat - p * h2 * c2 * adj_h2,
    )
    return adj_b, adj_z


@device_fn
def corner_weights_vjp(b, w, s, z, adj_w):
    """Pull adj_w back through `corner_weights`: adj_b/s, and g: adj_z_k = -p c_k w_k g_k."""
    c = inverse_depths(z)

    # (4), (3) w_k = h_k/S: adj_h_k = s g_k
    mean = w[0] * adj_w[0] + w[1] * adj_w[1] + w[2] * adj_w[2]
    g = (adj_w[0] - mean, adj_w[1] - mean, adj_w[2] - mean)

    # (2), (1) h_k = clip(b_k) c_k
    adj_b = (
        clip01_slope(b[0]) * c[0] * g[0],
        clip01_slope(b[1]) * c[1] * g[1],
        clip01_slope(b[2]) * c[2] * g[2],
    )
    return adj_b, g


@device_fn
def place_jvp(p, corners, tan_corners):
    """Tangents of the depth and of the weights at pixel p."""
    a0, a1, a2, z = corners
    tan_a0, tan_a1, tan_a2, tan_z = tan_corners
    b0, b1, b2 = barycentrics(p, a0, a1, a2)
    tan_b = barycentrics_jvp(p, a0, a1, a2, tan_a0, tan_a1, tan_a2)
    tan_k = clip_barycentrics_jvp(b0, b1, b2, tan_b)
    return perspective_jvp(clip_barycentrics(b0, b1, b2), z, tan_k, tan_z)


@device_fn
def place_vjp(p, corners, adj_depth, adj_w):
    """Pull back to the corners at pixel p: adj_a0, adj_a1, adj_a2, adj_z."""
    a0, a1, a2, z = corners
    b0, b1, b2 = barycentrics(p, a0, a1, a2)  # (1) replayed
    b = clip_barycentrics(b0, b1, b2)  # (2) replayed
    adj_k, adj_z = perspective_vjp(b, z, adj_depth, adj_w)  # (3)
    adj_b = clip_barycentrics_vjp(b0, b1, b2, adj_k)  # (2)
    adj_a0, adj_a1, adj_a2 = barycentrics_vjp(p, a0, a1, a2, adj_b)  # (1)
    return adj_a0, adj_a1, adj_a2, adj_z
