r"""Tangent and adjoint of `render/shaders/shading.py`: read the two files side by side.

At the kinks of max(0, n.l) and of max(0, r.e)^p the slopes are 0. For a unit vector n = v/|v|:
n' = (v' - n (n.v'))/|v|, a symmetric map, so its adjoint is itself.
"""

import math

from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, norm, scale, sub
from adjsim.jit.backend import device_fn, lit
from render.shaders.shading import mirrored_cosine, power


@device_fn
def unit_vjp(n, length, adj_n):
    """Pull adj_n back through n = v/|v|; the tangent is the same map."""
    return scale(lit(1.0, length) / length, axpy(-dot(n, adj_n), n, adj_n))


@device_fn
def flat_normal_jvp(x0, x1, x2, tan_x0, tan_x1, tan_x2):
    """Unit normal of a face, then its tangent."""
    u, v = sub(x1, x0), sub(x2, x0)
    tan_u = sub(tan_x1, tan_x0)  # (1)
    tan_v = sub(tan_x2, tan_x0)  # (2)
    m = cross(u, v)
    tan_m = add(cross(tan_u, v), cross(u, tan_v))  # (3)
    l = norm(m)  # (4)
    n = scale(lit(1.0, l) / l, m)
    return n, unit_vjp(n, l, tan_m)  # (5)


@device_fn
def flat_normal_vjp(x0, x1, x2, adj_n):
    """Pull adj_n back through `flat_normal`: adj_x0, adj_x1, adj_x2."""
    u = sub(x1, x0)  # (1) replayed
    v = sub(x2, x0)  # (2) replayed
    m = cross(u, v)  # (3) replayed
    l = norm(m)  # (4) replayed

    # (5), (4) n = m/|m|
    adj_m = unit_vjp(scale(lit(1.0, l) / l, m), l, adj_n)

    # (3) m = u x v
    adj_u = cross(v, adj_m)
    adj_v = cross(adj_m, u)

    # (2), (1) v = x2 - x0, u = x1 - x0
    return neg(add(adj_u, adj_v)), adj_u, adj_v


@device_fn
def lambert_jvp(n, l, light, diffuse, tan_n, tan_l, tan_light, tan_diffuse):
    """Light that a face reflects, then its tangent."""
    zero = lit(0.0, l[0])
    c = dot(n, l)
    tan_c = dot(tan_n, l) + dot(n, tan_l)  # (1)
    g = max(c, zero)
    tan_g = tan_c if c > zero else zero  # (2)
    value = (light[0] * diffuse[0] * g, light[1] * diffuse[1] * g, light[2] * diffuse[2] * g)
    return value, scaled_jvp(light, diffuse, g, tan_light, tan_diffuse, tan_g)  # (3)


@device_fn
def scaled_jvp(light, k, g, tan_light, tan_k, tan_g):
    """Tangent of light k g, per channel."""
    return (
        (tan_light[0] * k[0] + light[0] * tan_k[0]) * g + light[0] * k[0] * tan_g,
        (tan_light[1] * k[1] + light[1] * tan_k[1]) * g + light[1] * k[1] * tan_g,
        (tan_light[2] * k[2] + light[2] * tan_k[2]) * g + light[2] * k[2] * tan_g,
    )


@device_fn
def scaled_vjp(light, k, g, adj):
    """Pull back through light k g: adj_light, adj_k, adj_g."""
    adj_light = (k[0] * g * adj[0], k[1] * g * adj[1], k[2] * g * adj[2])
    adj_k = (light[0] * g * adj[0], light[1] * g * adj[1], light[2] * g * adj[2])
    adj_g = light[0] * k[0] * adj[0] + light[1] * k[1] * adj[1] + light[2] * k[2] * adj[2]
    return adj_light, adj_k, adj_g


@device_fn
def lambert_vjp(n, l, light, diffuse, adj):
    """Pull back through `lambert`: adj_n, adj_l, adj_light, adj_diffuse."""
    zero = lit(0.0, l[0])
    c = dot(n, l)  # (1) replayed
    g = max(c, zero)  # (2) replayed

    # (3) reflected = light diffuse g, per channel
    adj_light, adj_diffuse, adj_g = scaled_vjp(light, diffuse, g, adj)

    # (2) g = max(0, c)
    adj_c = adj_g if c > zero else zero

    # (1) c = n.l
    return scale(adj_c, l), scale(adj_c, n), adj_light, adj_diffuse


@device_fn
def power_slopes(c, p):
    """H = max(0, c)^p and its slopes in c and in p; all 0 for c <= 0."""
    zero = lit(0.0, c)
    if not c > zero:
        return zero, zero, zero
    h = power(c, p)
    return h, p * h / c, h * math.log(c)


@device_fn
def highlight_jvp(n, e, l, light, specular, p, tan_n, tan_e, tan_l, tan_light, tan_specular, tan_p):
    """Tangent of a highlight."""
    a, b, two = dot(n, l), dot(n, e), lit(2.0, p)
    tan_a = dot(tan_n, l) + dot(n, tan_l)  # (1)
    tan_b = dot(tan_n, e) + dot(n, tan_e)  # (2)
    c = two * a * b - dot(l, e)
    tan_c = two * (tan_a * b + a * tan_b) - dot(tan_l, e) - dot(l, tan_e)  # (3)
    h, slope_c, slope_p = power_slopes(c, p)
    tan_h = slope_c * tan_c + slope_p * tan_p  # (4)
    return scaled_jvp(light, specular, h, tan_light, tan_specular, tan_h)  # (5)


@device_fn
def mirrored_cosine_vjp(n, e, l, adj_c):
    """Pull adj_c back through `mirrored_cosine`: adj_n, adj_e, adj_a; adj_l = adj_a n - adj_c e."""
    two = lit(2.0, l[0])
    a = dot(n, l)  # (1) replayed
    b = dot(n, e)  # (2) replayed

    # (3) c = 2 a b - l.e
    adj_a = two * b * adj_c
    adj_b = two * a * adj_c
    adj_e = scale(-adj_c, l)

    # (2) b = n.e
    adj_n = scale(adj_b, e)
    adj_e = axpy(adj_b, n, adj_e)

    # (1) a = n.l
    adj_n = axpy(adj_a, l, adj_n)
    return adj_n, adj_e, adj_a


@device_fn
def highlight_vjp(n, e, l, light, specular, p, adj):
    """Pull back through `highlight`: adj_n, adj_e, adj_l, adj_light, adj_specular, adj_p."""
    h, slope_c, slope_p = power_slopes(mirrored_cosine(n, e, l), p)  # (4) replayed

    # (5) highlight = light specular h, per channel
    adj_light, adj_specular, adj_h = scaled_vjp(light, specular, h, adj)

    # (4) h = max(0, c)^p
    adj_c = slope_c * adj_h
    adj_p = slope_p * adj_h

    # (3), (2), (1) c = r.e
    adj_n, adj_e, adj_a = mirrored_cosine_vjp(n, e, l, adj_c)
    adj_l = axpy(adj_a, n, scale(-adj_c, e))
    return adj_n, adj_e, adj_l, adj_light, adj_specular, adj_p
