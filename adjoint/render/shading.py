r"""Tangent and adjoint of `render/shading.py`: read the two files side by side.

At the kink of max(0, n.l) the slope is 0. For a unit vector n = v/|v|:
n' = (v' - n (n.v'))/|v|, a symmetric map, so its adjoint is itself.
"""

from adjsim.backend import device_fn, lit
from adjsim.vec3 import add, axpy, cross, dot, neg, norm, scale, sub


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
def lambert_jvp(n, m, light, diffuse, tan_n, tan_m, tan_light, tan_diffuse):
    """Light that a face reflects, then its tangent."""
    zero = lit(0.0, m[0])
    l = scale(lit(1.0, m[0]) / norm(m), m)
    tan_l = unit_vjp(l, norm(m), tan_m)  # (1)
    c = dot(n, l)
    tan_c = dot(tan_n, l) + dot(n, tan_l)  # (2)
    g = max(c, zero)
    tan_g = tan_c if c > zero else zero  # (3)
    value = (light[0] * diffuse[0] * g, light[1] * diffuse[1] * g, light[2] * diffuse[2] * g)
    tangent = (  # (4)
        (tan_light[0] * diffuse[0] + light[0] * tan_diffuse[0]) * g + light[0] * diffuse[0] * tan_g,
        (tan_light[1] * diffuse[1] + light[1] * tan_diffuse[1]) * g + light[1] * diffuse[1] * tan_g,
        (tan_light[2] * diffuse[2] + light[2] * tan_diffuse[2]) * g + light[2] * diffuse[2] * tan_g,
    )
    return value, tangent


@device_fn
def lambert_vjp(n, m, light, diffuse, adj):
    """Pull back through `lambert`: adj_n, adj_m, adj_light, adj_diffuse."""
    zero = lit(0.0, m[0])
    l = scale(lit(1.0, m[0]) / norm(m), m)  # (1) replayed
    c = dot(n, l)  # (2) replayed
    g = max(c, zero)  # (3) replayed

    # (4) reflected = light diffuse g, per channel
    adj_light = (diffuse[0] * g * adj[0], diffuse[1] * g * adj[1], diffuse[2] * g * adj[2])
    adj_diffuse = (light[0] * g * adj[0], light[1] * g * adj[1], light[2] * g * adj[2])
    adj_g = (
        light[0] * diffuse[0] * adj[0]
        + light[1] * diffuse[1] * adj[1]
        + light[2] * diffuse[2] * adj[2]
    )

    # (3) g = max(0, c)
    adj_c = adj_g if c > zero else zero

    # (2) c = n.l
    adj_n = scale(adj_c, l)
    adj_l = scale(adj_c, n)

    # (1) l = m/|m|
    return adj_n, unit_vjp(l, norm(m), adj_l), adj_light, adj_diffuse
