r"""Volume, centre of mass and inertia of a closed mesh, exactly: sums over its triangles.

Each triangle and a point o span a tetrahedron of signed volume V_e; over all triangles of a
closed mesh what lies outside cancels. With the corners x_i relative to o,

    V   = sum V_e,                  V_e = x_0 . (x_1 x x_2)/6
    V c = sum V_e (x_0 + x_1 + x_2)/4
    C   = int x x^T = sum V_e/20 (sum_i x_i x_i^T + s s^T),   s = x_0 + x_1 + x_2

and about the centre of mass, at density 1, I = tr(C) 1 - C with C less V c c^T. o is the mean
of the points, so that a body far from the origin keeps its digits.

Tests: `tests/rigid/test_mass_properties.py`. Source: Eberly, Polyhedral mass properties
(revisited), 2002; integrals over a tetrahedron are exact.
"""

from dataclasses import dataclass

import numpy as np

from adjsim.meshes.triangle_mesh import TriangleMesh


ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # xx, yy, zz, xy, xz, yz


@dataclass(frozen=True)
class MassProperties:
    """What a closed mesh weighs at density 1.

    Attributes
    ----------
    volume : float
        V [m^3].
    center : array
        Centre of mass, (3,) [m].
    inertia : array
        About the centre of mass, in the mesh's axes, (6,): xx, yy, zz, xy, xz, yz, with
        I_xy = -int xy [m^5].
    """

    volume: float
    center: np.ndarray
    inertia: np.ndarray


def mass_properties(mesh: TriangleMesh, name: str = "mesh") -> MassProperties:
    """Return the mass properties of a closed mesh at density 1.

    Raises
    ------
    ValueError
        If the mesh is open, not manifold, or inside out; complains by `name`.
    """
    mesh.require_closed(name)
    origin = mesh.points.mean(axis=0)
    corners = (mesh.points - origin)[mesh.faces]
    volumes = np.einsum("ei,ei->e", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    volume = float(volumes.sum())
    total = corners.sum(axis=1)
    center = volumes @ total / (4.0 * volume)
    second = np.einsum("e,eai,eaj->ij", volumes, corners, corners)
    second += np.einsum("e,ei,ej->ij", volumes, total, total)
    about = second / 20.0 - volume * np.outer(center, center)
    return MassProperties(volume, origin + center, to_six(np.trace(about) * np.eye(3) - about))


def mass_properties_jvp(mesh: TriangleMesh, tan_points: np.ndarray) -> MassProperties:
    """Push a tangent of the points, (n_points, 3): tangents of volume, centre and inertia."""
    x, opposite, volumes, s = tetrahedra(mesh)
    tan_x = tan_points[mesh.faces]
    tan_volumes = np.einsum("eai,eai->e", tan_x, opposite) / 6.0
    tan_s = tan_x.sum(axis=1)
    volume, tan_volume = volumes.sum(), tan_volumes.sum()
    center = volumes @ s / (4.0 * volume)
    tan_center = (tan_volumes @ s + volumes @ tan_s) / (4.0 * volume)
    tan_center = tan_center - center * tan_volume / volume
    tan_second = np.einsum("e,eai,eaj->ij", tan_volumes, x, x)
    tan_second += np.einsum("e,ei,ej->ij", tan_volumes, s, s)
    half = np.einsum("e,eai,eaj->ij", volumes, tan_x, x) + np.einsum(
        "e,ei,ej->ij", volumes, tan_s, s
    )
    tan_about = (tan_second + half + half.T) / 20.0 - tan_volume * np.outer(center, center)
    tan_about -= volume * (np.outer(tan_center, center) + np.outer(center, tan_center))
    tan_inertia = to_six(np.trace(tan_about) * np.eye(3) - tan_about)
    return MassProperties(float(tan_volume), tan_center, tan_inertia)


def to_six(matrix: np.ndarray) -> np.ndarray:
    """Return the six numbers of symmetric matrices, (..., 3, 3) to (..., 6)."""
    return np.stack([matrix[..., i, j] for i, j in ENTRIES], axis=-1)


def from_six(six: np.ndarray) -> np.ndarray:
    """Return the symmetric matrices of six numbers each, (..., 6) to (..., 3, 3)."""
    matrix = np.empty((*six.shape[:-1], 3, 3), six.dtype)
    for k, (i, j) in enumerate(ENTRIES):
        matrix[..., i, j] = matrix[..., j, i] = six[..., k]
    return matrix


def inverse_inertia(inertia: np.ndarray) -> np.ndarray:
    """Return the inverses of inertias as six numbers, (..., 6) [1/(kg m^2)]."""
    return to_six(np.linalg.inv(from_six(inertia)))


def check_inertia(name: str, inertia: np.ndarray) -> np.ndarray:
    """Return inertias (n_bodies, 6) that a body of positive mass can have.

    Raise a ValueError if one is not positive definite, or its largest principal moment exceeds the
    sum of the others, which no distribution of mass has.
    """
    principal = np.linalg.eigvalsh(from_six(inertia))
    bad = principal[:, 0] <= 0.0
    if bad.any():
        b = int(np.argmax(bad))
        raise ValueError(
            f"`{name}` must be positive definite, got the principal moments "
            f"{_listed(principal[b])} kg m2 for body {b}. The order is xx, yy, zz, xy, xz, yz, "
            "about the centre of mass, with I_xy = -sum of m x y."
        )
    # A flat body meets the bound, and rounding may put it just outside.
    bad = principal[:, 2] > (principal[:, 0] + principal[:, 1]) * (1.0 + 1e-12)
    if bad.any():
        b = int(np.argmax(bad))
        raise ValueError(
            f"`{name}` must have no principal moment above the sum of the other two, got "
            f"{_listed(principal[b])} kg m2 for body {b}: no distribution of mass has these. "
            "Leave it out to take it from the mesh."
        )
    return inertia


def _listed(moments: np.ndarray) -> str:
    return ", ".join(f"{moment:.6g}" for moment in moments)


def tetrahedra(mesh: TriangleMesh) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return corners x_a about o, 6 dV/dx_a, volumes V_e, and s = sum x_a, of each triangle."""
    x = (mesh.points - mesh.points.mean(axis=0))[mesh.faces]
    opposite = np.cross(x[:, (1, 2, 0)], x[:, (2, 0, 1)])
    return x, opposite, np.einsum("ei,ei->e", x[:, 0], opposite[:, 0]) / 6.0, x.sum(axis=1)
