"""A slender beam under its weight against Euler-Bernoulli, with Timoshenko's shear beside it.

    u(L) = w L^4/(8 E I) [+ w L^2/(2 k G A)],   I = t^4/12, A = t^2, k = 5/6, w = rho g A

Linear tetrahedra are too stiff in bending by a part that falls with the square of the edge:
the stiffness is extrapolated from the two finest meshes. With Poisson's ratio 0 nothing
is hindered at the clamp and what is left is shear. With 0.3 the clamp also holds the section's
width, which no beam theory knows: about 1 % stiffer at L/t = 10.
"""

import numpy as np
import pytest

from adjsim.equilibrium import equilibrium
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State


LENGTH, THICK, YOUNG, DENSITY = 1.0, 0.1, 1e6, 1000.0
DEFLECTION = 1e-3  # of Euler-Bernoulli, over the length: geometry counts with its square


def euler_bernoulli(g):
    """Deflection of the tip under the acceleration g."""
    return DENSITY * g * THICK**2 * LENGTH**4 / (8.0 * YOUNG * THICK**4 / 12.0)


def shear(g, nu):
    """What shear adds to it."""
    return DENSITY * g * LENGTH**2 / (2.0 * 5.0 / 6.0 * YOUNG / (2.0 * (1.0 + nu)))


def tip(n, nu, g):
    """Deflection of the tip with n cells through the thickness, and the force left over."""
    mesh = box_tets((10 * n, n, n), (LENGTH, THICK, THICK))
    body = NeoHookeanTets(mesh.tets, mesh.points, *NeoHookeanTets.moduli(YOUNG, nu))
    mass = body.lumped_mass(DENSITY)
    pinned = mesh.points[:, 0] == 0.0
    model = Model(mass, {"body": body}, gravity=(0.0, -g, 0.0), pinned=pinned)
    rest = equilibrium(model, State(mesh.points))
    u = rest.state.x - mesh.points
    return -u[mesh.points[:, 0] == LENGTH, 1].mean(), rest.residual / (mass.max() * g)


@pytest.mark.parametrize(
    ("nu", "cells", "off_bernoulli", "off_timoshenko"),
    [(0.0, (2, 4, 8), 0.010, 5e-4), (0.3, (2, 4), 0.020, 0.02)],
)
def test_a_beam_bends_as_far_as_beam_theory_says(nu, cells, off_bernoulli, off_timoshenko):
    g = DEFLECTION / euler_bernoulli(1.0)
    bernoulli, timoshenko = euler_bernoulli(g), euler_bernoulli(g) + shear(g, nu)
    tips, left = np.transpose([tip(n, nu, g) for n in cells])
    too_stiff = timoshenko / tips - 1.0
    orders = np.log2(too_stiff[:-1] / too_stiff[1:])
    limit = 1.0 / ((4.0 / tips[-1] - 1.0 / tips[-2]) / 3.0)
    print(
        f"\nnu = {nu}, {cells} cells thick: tip over Euler-Bernoulli {tips / bernoulli}, "
        f"extrapolated {limit / bernoulli:.5f} (with shear {timoshenko / bernoulli:.5f}); "
        f"order {orders}; force left {left.max():.1e} of the load"
    )
    # The tip nears the theory from below. The modified Newton steps end at rounding, some 1e-7.
    assert (np.diff(tips) > 0.0).all()
    assert left.max() < 1e-5
    assert limit == pytest.approx(bernoulli, rel=off_bernoulli)
    assert limit == pytest.approx(timoshenko, rel=off_timoshenko)
    if nu == 0.0:
        assert orders == pytest.approx(2.0, abs=0.05)
