"""A sphere pressed into an elastic half-space: F = 4/3 E/(1 - nu^2) sqrt(R) d^(3/2) (Hertz 1881).

The half-space is half a ball of five contact radii a, whose outer nodes are where the point force F
would have them (Boussinesq 1885): its pressure differs from that of Hertz by less there than the
mesh is off. Held where they were, they would make it stiffer by about a over its radius. The error
falls with the mesh, and more with the cells over the polar angle than with those along the radius.
"""

import numpy as np
import pytest

from adjsim.equilibrium import equilibrium
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import signed_volumes
from adjsim.model import Model, State, Trajectory
from adjsim.support_force import ObstacleForce
from studies.problem.making import make_problem
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene


R, DEPTH, E, NU = 1.0, 0.01, 1e5, 0.3
A = np.sqrt(R * DEPTH)
HERTZ = 4 / 3 * E / (1 - NU**2) * np.sqrt(R) * DEPTH**1.5


def half_ball(per_radius, n_polar, n_around, far=5.0, growth=1.2):
    """Points and tetrahedra of y <= 0: even cells within 1.3 a, then larger and larger ones."""
    h = A / per_radius
    n_even = int(np.ceil(1.3 * per_radius))
    steps = [0.0] + [h] * n_even
    while sum(steps) < far * A:
        steps.append(steps[-1] * growth)
    r = np.cumsum(steps)
    r[n_even:] = r[n_even] + (r[n_even:] - r[n_even]) * (far * A - r[n_even]) / (r[-1] - r[n_even])
    cells = (len(r) - 1, n_polar, n_around)
    mesh = box_tets(cells, cells, tets_per_cell=6)
    i, j, k = np.rint(mesh.points).astype(int).T
    k %= n_around
    polar, around = 0.5 * np.pi * j / n_polar, 2.0 * np.pi * k / n_around
    across = np.sin(polar)
    x = r[i, None] * np.stack(
        [across * np.cos(around), -np.cos(polar), across * np.sin(around)], axis=1
    )
    x[np.abs(x) < 1e-12] = 0.0
    number = np.where(i > 0, 1 + ((i - 1) * (n_polar + 1) + j) * n_around + k * (j > 0), 0)
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    tets = inverse.ravel()[mesh.tets]
    tets = tets[(np.diff(np.sort(tets, axis=1), axis=1) > 0).all(axis=1)]
    x = x[first]
    turned = signed_volumes(x, tets) < 0.0
    tets[turned] = tets[turned][:, [0, 2, 1, 3]]
    return x, tets


def boussinesq(x, force):
    """Displacements by a point force down at the origin, (n, 3) [m]."""
    shear, z, s = E / (2 * (1 + NU)), -x[:, 1], np.linalg.norm(x, axis=1)
    down = 2 * (1 - NU) + (z / s) ** 2
    out = z / s**2 - (1 - 2 * NU) / (s + z)
    return (force / (4 * np.pi * shear * s))[:, None] * np.stack(
        [out * x[:, 0], -down, out * x[:, 2]], axis=1
    )


def indentation_force(per_radius, n_polar, n_around):
    """The force of the sphere at the depth, (3,) [N]."""
    x, tets = half_ball(per_radius, n_polar, n_around)
    top = np.flatnonzero((x[:, 1] == 0.0) & (np.linalg.norm(x, axis=1) < 1.25 * A))
    s = np.linalg.norm(x[top], axis=1)
    area = np.where(s > 0.0, 2 * s / n_around * A / per_radius, (0.5 * A / per_radius) ** 2)
    ball = SphereContact(
        (0.0, R - DEPTH, 0.0), R, stiffness=100 * E / A * np.pi * area, contact_nodes=top
    )
    solid = NeoHookeanTets.from_young(tets, x, E, NU, density=1000.0)
    pinned = np.linalg.norm(x, axis=1) > 4.99 * A
    model = Model(None, {"solid": solid, "ball": ball}, (0.0, 0.0, 0.0), pinned)
    start = np.array(x)
    start[pinned] += boussinesq(x[pinned], HERTZ)
    rest = equilibrium(model, State(start))
    run = Trajectory(np.zeros(1, int), 1.0, rest.state.x[None], np.zeros((1, *x.shape)))
    return ObstacleForce(model, State(start), ["ball"], 1.0, 0, None).at(run)[0]


@pytest.mark.parametrize(
    ("mesh", "error"),
    [((5, 6, 16), 0.05), pytest.param((8, 10, 16), 0.02, marks=pytest.mark.nightly)],
)
def test_a_sphere_is_pushed_back_as_hertz_says(mesh, error):
    force = indentation_force(*mesh)
    assert -force[1] == pytest.approx(HERTZ, rel=error)
    assert np.abs(force[[0, 2]]).max() < 0.01 * HERTZ


@pytest.mark.nightly
def test_forces_of_the_bundled_scene_are_those_of_a_thin_block():
    # Dimitriadis et al. (2002), Biophys. J. 82, eq. 11: a layer that is bonded to what is below.
    file = read_scene(BUNDLED / "indentation.toml", ('truth={"block.E" = 1e5}',))
    (observer,) = make_problem(file).problem.observers
    radius, thick, depth = 0.04, 0.02, 0.002 * np.arange(1, 11) / 10
    chi = np.sqrt(radius * depth) / thick
    alpha = -(1.2876 - 1.4678 * NU + 1.3442 * NU**2) / (1 - NU)
    beta = (0.6387 - 1.0277 * NU + 1.5164 * NU**2) / (1 - NU)
    a, b = alpha / np.pi, beta / np.pi
    cube, fourth = a**3 + 4 / 15 * b, a * (a**3 + 3 / 5 * b)
    layer = 1 - 2 * a * chi + 4 * (a * chi) ** 2 - 8 * cube * chi**3 + 16 * fourth * chi**4
    half_space = 4 / 3 * E / (1 - NU**2) * np.sqrt(radius) * depth**1.5
    parts = observer.forces[:, 0] / half_space
    np.testing.assert_allclose(parts[2:], layer[2:], rtol=0.05)
    assert parts[-1] == pytest.approx(1.56, abs=0.01)
