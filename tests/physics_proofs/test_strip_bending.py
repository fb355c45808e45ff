"""Bending stiffness of strips of triangles: the exact sums, and the plates they stand for.

A hinge bent by a small phi has U = k_b c0 phi^2/4: a spring of stiffness K = k_b c0/2.

A row of equilateral triangles is rigid links joined one after the other, each hinge turning
about its own direction e. It is statically determinate: under a moment M the hinge turns by
M.e/K, so a clamped row with a force F at its tip gives way by the sum

    u = sum over hinges of (M.e)(m.e)/K,   M, m: moments of F and of the unit force there

and a long row of side s has (e.y)^2 = 3/4, c0 = 1/sqrt(3), a hinge each s/2, hence the rigidity
k_b s/(3 sqrt(3)), or 2/9 k_b for each unit of its width s sqrt(3)/2. That is D (1 - nu^2) of the
isotropic plate that the lattice stands for, D = k_b/4, nu = 1/3 (Seung & Nelson, Defects in
flexible membranes with crystalline order, Phys. Rev. A 38, 1988: D = sqrt(3)/2 K).

A grid of rectangles bent to a cylinder about the grid's direction bends at the edges across
alone, phi = kappa a in each cell of length a, and c0 = b/(2 a): its energy for each unit of
area tends to k_b kappa^2/8, so D = k_b/4 for every size and shape of the cells.
"""

import numpy as np
import pytest

from adjoint.rollout import rollout_jvp
from adjoint.verify.contract import element_input, nodal_forces
from adjsim.forces.hinges import Hinges, dihedral_angle, hinge_energy
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State


SIDE, K_B = 0.1, 0.03


def zigzag(n):
    """A row of n equilateral triangles along x, in the plane z = 0: points and triangles."""
    k = np.arange(n + 2)
    points = np.stack([k * SIDE / 2, (k % 2) * SIDE * np.sqrt(3) / 2, 0 * k], axis=-1)
    row = np.stack([k[:-2], k[1:-1], k[2:]], axis=-1)
    row[1::2] = row[1::2, [1, 0, 2]]  # all facing +z
    return points, row


def stiffness(points, hinges):
    """-d f_z/d z of a flat mesh, (n_nodes, n_nodes) [N/m], from tangents of one step."""
    model = Model(np.ones(len(points)), {"bend": hinges}, gravity=(0, 0, 0))
    K = np.empty((len(points), len(points)))
    for column in range(len(points)):
        tan_x = np.zeros(points.shape)
        tan_x[column, 2] = 1.0
        _, tan = rollout_jvp(model, State(points), 1.0, 1, {"state.x": tan_x})
        np.testing.assert_array_equal(tan.v[0, :, :2], 0.0)  # flat: bending pulls across only
        K[:, column] = -tan.v[0, :, 2]
    return K


def summed(points, hinges):
    """Deflection of the tip per force there, (m/N), by the sum over the hinges."""
    tip = points[-1]
    _, _, x3, x4 = (points[hinges.hinges[:, k]] for k in range(4))
    e = (x4 - x3) / np.linalg.norm(x4 - x3, axis=1, keepdims=True)
    moment = np.cross(tip - x3, [0.0, 0.0, 1.0])
    c0 = SIDE**2 / (2 * SIDE * SIDE * np.sqrt(3) / 2)
    return np.square((moment * e).sum(axis=1)).sum() / (0.5 * K_B * c0)


def test_a_clamped_row_of_triangles_gives_way_by_the_sum_over_its_hinges():
    off_plate, lengths = [], (12, 24, 48)
    for n in lengths:
        points, triangles = zigzag(n)
        hinges = Hinges(mesh_hinges(triangles), points, K_B)
        free = np.arange(3, n + 2)  # the first triangle is clamped
        load = np.zeros(n + 2)
        load[-1] = 1.0
        K = stiffness(points, hinges)[np.ix_(free, free)]
        got, expected = np.linalg.solve(K, load[free])[-1], summed(points, hinges)
        length = points[-1, 0] - points[2, 0]
        plate = length**3 / (3 * 2 / 9 * K_B * SIDE * np.sqrt(3) / 2)
        off_sum = abs(got / expected - 1.0)
        off_plate.append(got / plate - 1.0)
        # The stiffness is rounded to eps, and a beam's condition is (length/side)^4.
        assert off_sum <= 1e-8
    print(
        f"\nclamped row of {lengths} triangles: off the sum over hinges by {off_sum:.1e}, off the "
        f"plate with D = k_b/4, nu = 1/3 by {np.array(off_plate)}"
    )
    # The ends of the row count with 1/n.
    assert (np.abs(off_plate[1:]) < 0.5 * np.abs(off_plate[:-1])).all()
    assert abs(2 * off_plate[-1] - off_plate[-2]) < 0.01


def rolled(points, radius):
    """A flat sheet rolled onto a cylinder about y, each cell of it kept plane and of its length."""
    xs = np.unique(points[:, 0])
    half = np.arcsin((xs[1] - xs[0]) / (2 * radius))
    angle = 2 * half * np.round(points[:, 0] / (xs[1] - xs[0]))
    x, z = radius * np.sin(angle), radius * (np.cos(angle) - 1.0)
    return np.stack([x, points[:, 1], z], axis=-1), 2 * half


@pytest.mark.parametrize("cells", [(20, 3), (40, 2), (10, 10)])
@pytest.mark.parametrize("alternating", [True, False])
def test_a_sheet_on_a_cylinder_has_the_energy_of_a_plate(cells, alternating):
    size = (1.0, 0.3)
    mesh = sheet(cells, size, alternating=alternating)
    hinges = Hinges(mesh_hinges(mesh.faces), mesh.points, K_B)
    a, b = size[0] / cells[0], size[1] / cells[1]
    off_plate = []
    for radius in (1.0, 2.0, 4.0):
        x, phi = rolled(mesh.points, radius)
        angles = dihedral_angle(x, hinges.hinges)
        across = np.abs(np.ptp(mesh.points[hinges.hinges[:, 2:], 0], axis=1)) < 1e-9
        np.testing.assert_allclose(angles[across], phi, atol=1e-12)
        np.testing.assert_allclose(angles[~across], 0.0, atol=1e-12)
        got = sum(
            hinge_energy(*(element_input(hinges, e, x, x)[k] for k in (0, 2, 3, 4)))
            for e in range(len(hinges.hinges))
        )
        n_across = (cells[0] - 1) * cells[1]
        exact = n_across * 2 * K_B * b / (2 * a) * (1 - np.cos(phi / 2))
        assert got == pytest.approx(exact, rel=1e-10)
        bent = n_across * a * b  # the first and last half cells are flat
        off_plate.append(got / (0.5 * K_B / 4 / radius**2 * bent) - 1.0)
    order = np.log2(np.array(off_plate[:-1]) / off_plate[1:])
    print(f"\nsheet of {cells} cells on a cylinder: off D = k_b/4 by {off_plate}, order {order}")
    assert np.abs(order - 2.0).max() < 0.05


def test_an_actuated_sheet_is_at_rest_rolled_up():
    mesh = sheet((20, 3), (1.0, 0.3))
    nodes = mesh_hinges(mesh.faces)
    x, phi = rolled(mesh.points, 0.3)
    across = np.abs(np.ptp(mesh.points[nodes[:, 2:], 0], axis=1)) < 1e-9
    hinges = Hinges(nodes, mesh.points, K_B, actuation=np.where(across, -phi / 2, 0.0))
    flat = np.abs(nodal_forces(hinges, mesh.points, 0 * x)).max()
    left = np.abs(nodal_forces(hinges, x, 0 * x)).max() / flat
    print(f"\nsheet actuated by -phi/2: forces when rolled up {left:.1e} of those when flat")
    assert left <= 1e-12
