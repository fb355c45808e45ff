r"""Tangent and adjoint of `render/shaders/normals.py`: read the two files side by side.

For n = m/|m|: n' = (m' - n (n.m'))/|m|, a symmetric map. Where n is 0 the slope is 0.
"""

from adjsim.algebra.vec3 import add, axpy, cross, dot, neg, scale, sub
from adjsim.jit.backend import device_fn, lit
from render.shaders.normals import corner_point, normal_sum, unit_sum


@device_fn
def unit_vjp(n, c, adj_n):
    """Pull adj_n back through n = m/|m|, from n and c = 1/|m|."""
    return scale(c, axpy(-dot(n, adj_n), n, adj_n))


@device_fn
def unit_sum_vjp(m, size, adj_n):
    """Pull adj_n back through `unit_sum` to m; the tangent is the same map."""
    n, c = unit_sum(m, size)
    return unit_vjp(n, c, adj_n)


@device_fn
def unit_mean_vjp(m, adj_n):
    """Pull adj_n back through `unit_mean` to m; the tangent is the same map."""
    return unit_sum_vjp(m, lit(1.0, m[0]), adj_n)


@device_fn
def unit_or_zero_vjp(m, adj_n):
    """Pull adj_n back through `unit_or_zero` to m; the tangent is the same map."""
    return unit_sum_vjp(m, lit(0.0, m[0]), adj_n)


@device_fn
def area_normal_jvp(x0, x1, x2, tan_x0, tan_x1, tan_x2):
    """Tangent of the normal of a face."""
    tan_u = sub(tan_x1, tan_x0)  # (1)
    tan_v = sub(tan_x2, tan_x0)  # (2)
    return add(cross(tan_u, sub(x2, x0)), cross(sub(x1, x0), tan_v))  # (3)


@device_fn
def area_normal_vjp(x0, x1, x2, adj_m):
    """Pull adj_m back through `area_normal`: adj_x0, adj_x1, adj_x2."""
    u = sub(x1, x0)  # (1) replayed
    v = sub(x2, x0)  # (2) replayed

    # (3) m = u x v
    adj_u = cross(v, adj_m)
    adj_v = cross(adj_m, u)

    # (2), (1) v = x2 - x0, u = x1 - x0
    return neg(add(adj_u, adj_v)), adj_u, adj_v


@device_fn
def normal_jvp_body(i, x, tan_x, faces, vertex_corners, tan_normals):
    """Vertex i: write the tangent of its unit normal."""
    zero = lit(0.0, x[0, 0])
    tan_m = (zero, zero, zero)
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        f = vertex_corners.corners[c] // 3
        tan_m = add(
            tan_m,
            area_normal_jvp(
                corner_point(x, faces, f, 0),
                corner_point(x, faces, f, 1),
                corner_point(x, faces, f, 2),
                corner_point(tan_x, faces, f, 0),
                corner_point(tan_x, faces, f, 1),
                corner_point(tan_x, faces, f, 2),
            ),
        )
    m, size = normal_sum(i, x, faces, vertex_corners)
    tan_n = unit_sum_vjp(m, size, tan_m)
    tan_normals[i, 0], tan_normals[i, 1], tan_normals[i, 2] = tan_n


@device_fn
def sum_vjp_body(i, x, faces, vertex_corners, adj_normals):
    """Vertex i: turn the adjoint of its unit normal into that of the sum m, in place."""
    adj_n = (adj_normals[i, 0], adj_normals[i, 1], adj_normals[i, 2])
    m, size = normal_sum(i, x, faces, vertex_corners)
    adj_m = unit_sum_vjp(m, size, adj_n)
    adj_normals[i, 0], adj_normals[i, 1], adj_normals[i, 2] = adj_m


@device_fn
def corner_vjp(c, x, faces, adj_sums):
    """Pull the adjoints of the sums back to corner c = 3 f + k through the normal of face f."""
    f, k = c // 3, c % 3
    adj_m = add(
        corner_point(adj_sums, faces, f, 0),
        add(corner_point(adj_sums, faces, f, 1), corner_point(adj_sums, faces, f, 2)),
    )
    adj_x0, adj_x1, adj_x2 = area_normal_vjp(
        corner_point(x, faces, f, 0),
        corner_point(x, faces, f, 1),
        corner_point(x, faces, f, 2),
        adj_m,
    )
    return adj_x0 if k == 0 else (adj_x1 if k == 1 else adj_x2)


@device_fn
def points_vjp_body(i, x, faces, vertex_corners, adj_sums, adj_x):
    """Vertex i: add to adj_x what comes through the normals of its faces, in their order."""
    zero = lit(0.0, x[0, 0])
    total = (zero, zero, zero)
    for c in range(vertex_corners.start[i], vertex_corners.start[i + 1]):
        total = add(total, corner_vjp(vertex_corners.corners[c], x, faces, adj_sums))
    adj_x[i, 0] += total[0]
    adj_x[i, 1] += total[1]
    adj_x[i, 2] += total[2]
