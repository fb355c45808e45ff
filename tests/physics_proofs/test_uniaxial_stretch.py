r"""A bar and a strip pulled along x, free sideways, against the closed-form neo-Hookean stress.

    tetrahedra   F = diag(s, t, t),  I_C = s^2 + 2 t^2,  J = s t^2,  dJ/ds = t^2,  dJ/dt ~ s t
    triangles    F = diag(s, t),     I_C = s^2 + t^2,    J = s t,    dJ/ds = t,    dJ/dt ~ s

    k = mu (1 - 1/(I_C + 1)),   0 = k t + lam (J - alpha) dJ/dt,   P = k s + lam (J - alpha) dJ/ds

The sides feel no stress at the t of the second equation, and the ends are pulled with P per area
(width) of the rest shape. The mesh inside is irregular: a constant stress is exact on any.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

from adjsim.field import Field
from adjsim.forces import neo_hookean, neo_hookean_triangles
from adjsim.meshes.grid import box_tets
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State


LENGTH, WIDTH = 0.3, 0.2  # m
STRETCHES = (0.3, 0.7, 0.99, 1.0, 1.01, 1.5, 3.0)
YOUNG, POISSON = 1e5, 0.35


def closed_form(s, dims, mu, lam):
    """Sideways stretch t and pull P in `dims` dimensions, from the equations above."""
    alpha = 1 + (0.75 if dims == 3 else 2 / 3) * mu / lam

    def stresses(t):
        k = mu * (1 - 1 / (s * s + (dims - 1) * t * t + 1))
        p = lam * (s * t ** (dims - 1) - alpha)
        return k * s + p * t ** (dims - 1), k * t + p * s * t ** (dims - 2)

    t = brentq(lambda t: stresses(t)[1], 1e-2, 1e2, xtol=1e-15, rtol=1e-15)
    return t, stresses(t)[0]


def jittered(points, size, rng):
    """Points moved by a seventh of a cell, those inside the body only."""
    coordinates = points[:, : len(size)]
    inside = ((coordinates > 0.0) & (coordinates < np.array(size))).all(axis=1)
    out = points.copy()
    out[inside, : len(size)] += rng.uniform(-0.007, 0.007, (inside.sum(), len(size)))
    return out


def bar(rng):
    """Tetrahedra, the dimension of F, and the area of an end."""
    mesh = box_tets((6, 4, 4), (LENGTH, WIDTH, WIDTH))
    points = jittered(mesh.points, (LENGTH, WIDTH, WIDTH), rng)
    mu, lam = neo_hookean.NeoHookeanTets.moduli(YOUNG, POISSON)
    return neo_hookean.NeoHookeanTets(mesh.tets, points, mu, lam), 3, WIDTH**2


def strip(rng):
    """Triangles, the dimension of F, and the width of an end."""
    mesh = sheet((6, 4), (LENGTH, WIDTH))
    points = jittered(mesh.points, (LENGTH, WIDTH), rng)
    mu, lam = neo_hookean_triangles.NeoHookeanTriangles.moduli(YOUNG, POISSON)
    return neo_hookean_triangles.NeoHookeanTriangles(mesh.faces, points, mu, lam), 2, WIDTH


@pytest.mark.parametrize("build", [bar, strip])
def test_a_stretched_body_pulls_with_the_closed_form_stress(build, rng):
    body, dims, section = build(rng)
    X = body.rest_positions
    field = Field(Model(np.ones(len(X)), {"body": body}))
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    right, left = X[:, 0] == LENGTH, X[:, 0] == 0.0
    errors, sides = [], []
    for s in STRETCHES:
        t, P = closed_form(s, dims, float(body.mu), float(body.lam))
        f = field.forces(State(X * [s, t, t] @ turn.T)) @ turn
        pull = np.array([f[left, 0].sum(), -f[right, 0].sum()]) / section
        f[left | right, 0] = 0.0
        errors.append(np.abs(pull - P).max() / YOUNG)
        sides.append(np.abs(f).max() / (YOUNG * section))
    print(
        f"\n{build.__name__}: stretches {STRETCHES[0]} to {STRETCHES[-1]}, error of the pull "
        f"{max(errors):.1e} E, force on free nodes {max(sides):.1e} E A"
    )
    # A sum over a few hundred elements whose edges round by eps X/dx = 10 eps.
    assert max(errors) < 1e-13
    assert max(sides) < 1e-13


@pytest.mark.parametrize("dims", [3, 2])
def test_the_closed_form_has_youngs_modulus_and_poissons_ratio(dims):
    triangles, tets = neo_hookean_triangles.NeoHookeanTriangles, neo_hookean.NeoHookeanTets
    mu, lam = (tets if dims == 3 else triangles).moduli(YOUNG, POISSON)
    h = 1e-4
    (t_less, P_less), (t_more, P_more) = (closed_form(1 + e, dims, mu, lam) for e in (-h, h))
    ratios = (P_more - P_less) / (2 * h) / YOUNG, -(t_more - t_less) / (2 * h)
    print(f"\nF in {dims} dimensions: E within {abs(ratios[0] - 1):.1e}, nu = {ratios[1]:.9f}")
    assert ratios == pytest.approx((1.0, POISSON), rel=1e-6)  # h^2 and rounding eps/h
