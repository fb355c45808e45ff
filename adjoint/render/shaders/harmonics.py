"""Tangent and adjoint of `render/shaders/harmonics.py`: read the two files side by side."""

from adjsim.jit.backend import device_fn, lit
from render.shaders.harmonics import N_HARMONICS, Y1, Y2, Y20, Y22, harmonics


@device_fn
def harmonics_jvp(n, tan_n):
    """Tangents of the nine harmonics."""
    x, y, z = n
    tan_x, tan_y, tan_z = tan_n
    a, b, two = lit(Y1, x), lit(Y2, x), lit(2.0, x)
    return (
        lit(0.0, x),
        a * tan_y,  # (1)
        a * tan_z,  # (2)
        a * tan_x,  # (3)
        b * (tan_x * y + x * tan_y),  # (4)
        b * (tan_y * z + y * tan_z),  # (5)
        b * (tan_x * z + x * tan_z),  # (6)
        lit(6.0 * Y20, x) * z * tan_z,  # (7)
        two * lit(Y22, x) * (x * tan_x - y * tan_y),  # (8)
    )


@device_fn
def harmonics_vjp(n, adj_Y):
    """Pull the adjoints of the nine harmonics back: adj_n."""
    x, y, z = n
    a, b, two = lit(Y1, x), lit(Y2, x), lit(2.0, x)

    # (8) Y_8 = .5462742 (x^2 - y^2)
    adj_x = two * lit(Y22, x) * x * adj_Y[8]
    adj_y = -two * lit(Y22, x) * y * adj_Y[8]

    # (7) Y_7 = .3153916 (3 z^2 - 1)
    adj_z = lit(6.0 * Y20, x) * z * adj_Y[7]

    # (6), (5), (4) the products xz, yz, xy
    adj_x += b * (z * adj_Y[6] + y * adj_Y[4])
    adj_y += b * (z * adj_Y[5] + x * adj_Y[4])
    adj_z += b * (x * adj_Y[6] + y * adj_Y[5])

    # (3), (2), (1) x, z, y
    return adj_x + a * adj_Y[3], adj_y + a * adj_Y[1], adj_z + a * adj_Y[2]


@device_fn
def harmonic_shade_jvp(n, coefficients, tan_n, tan_coefficients):
    """Shade at the normal n, then its tangent."""
    Y, tan_Y = harmonics(n), harmonics_jvp(n, tan_n)  # (1)
    zero = lit(0.0, n[0])
    r, g, b, tan_r, tan_g, tan_b = zero, zero, zero, zero, zero, zero
    for k in range(N_HARMONICS):
        r += Y[k] * coefficients[k, 0]
        g += Y[k] * coefficients[k, 1]
        b += Y[k] * coefficients[k, 2]
        tan_r += tan_Y[k] * coefficients[k, 0] + Y[k] * tan_coefficients[k, 0]  # (2)
        tan_g += tan_Y[k] * coefficients[k, 1] + Y[k] * tan_coefficients[k, 1]
        tan_b += tan_Y[k] * coefficients[k, 2] + Y[k] * tan_coefficients[k, 2]
    return (r, g, b), (tan_r, tan_g, tan_b)


@device_fn
def dot_row(coefficients, k, adj):
    """Row k of the coefficients times adj."""
    c = coefficients
    return c[k, 0] * adj[0] + c[k, 1] * adj[1] + c[k, 2] * adj[2]


@device_fn
def harmonic_normal_vjp(n, coefficients, adj):
    """Pull adj back through `harmonic_shade` to the normal alone: adj_n."""
    c = coefficients

    # (2) shade = sum of c_k Y_k
    adj_Y = (
        dot_row(c, 0, adj), dot_row(c, 1, adj), dot_row(c, 2, adj),
        dot_row(c, 3, adj), dot_row(c, 4, adj), dot_row(c, 5, adj),
        dot_row(c, 6, adj), dot_row(c, 7, adj), dot_row(c, 8, adj),
    )  # fmt: skip

    # (1) Y(n)
    return harmonics_vjp(n, adj_Y)


@device_fn
def harmonic_shade_vjp(n, coefficients, adj, adj_coefficients):
    """Add to the adjoint of the coefficients; return adj_n."""
    Y = harmonics(n)  # (1) replayed

    # (2) shade = sum of c_k Y_k
    for k in range(N_HARMONICS):
        for c in range(3):
            adj_coefficients[k, c] += Y[k] * adj[c]
    return harmonic_normal_vjp(n, coefficients, adj)
