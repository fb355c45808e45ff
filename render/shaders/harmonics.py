r"""Light from everywhere: spherical harmonics of order 2 at a unit normal n = (x, y, z).

    Y = (.2820948, .4886025 (y, z, x), 1.0925484 (xy, yz, xz), .3153916 (3 z^2 - 1),
         .5462742 (x^2 - y^2)),   shade = sum over k of c_k Y_k(n),  colour = shade C

The nine coefficients c_k, RGB each, stand for ambient and all other light at once.

Adjoint: `adjoint/render/shaders/harmonics.py`. Tests: `tests/render/shaders/test_harmonics.py`.
Source: Ramamoorthi & Hanrahan, An Efficient Representation for Irradiance Environment
Maps, SIGGRAPH 2001, eq. 3.
"""

from adjsim.jit.backend import device_fn, lit


Y0, Y1, Y2 = 0.2820948, 0.4886025, 1.0925484
Y20, Y22 = 0.3153916, 0.5462742
N_HARMONICS = 9


@device_fn
def harmonics(n):
    """Nine harmonics Y_k [-] at the unit normal n."""
    x, y, z = n
    a, b = lit(Y1, x), lit(Y2, x)
    return (
        lit(Y0, x),
        a * y,  # (1)
        a * z,  # (2)
        a * x,  # (3)
        b * x * y,  # (4)
        b * y * z,  # (5)
        b * x * z,  # (6)
        lit(Y20, x) * (lit(3.0, x) * z * z - lit(1.0, x)),  # (7)
        lit(Y22, x) * (x * x - y * y),  # (8)
    )


@device_fn
def harmonic_shade(n, coefficients):
    """Shade [-] at the unit normal n, per channel; coefficients (9, 3)."""
    Y = harmonics(n)  # (1)
    r, g, b = lit(0.0, n[0]), lit(0.0, n[0]), lit(0.0, n[0])
    for k in range(N_HARMONICS):
        r += Y[k] * coefficients[k, 0]  # (2)
        g += Y[k] * coefficients[k, 1]
        b += Y[k] * coefficients[k, 2]
    return r, g, b
