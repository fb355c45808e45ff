r"""Cloth: a triangle mesh that resists stretching, and bending at its edges.

The membrane has the plane-stress response of a sheet of thickness h (E h and nu, `materials.py`).
Bending has the flexural rigidity D = E h^3/(12 (1 - nu^2)) unless `bending` gives D: a sheet bent
to a cylinder of curvature kappa stores D kappa^2/2 per area. A hinge stores

    U = 2 k_b c0 (1 - cos(phi/2)) = k_b c0 phi^2/4 + ...,   c0 = l^2/(2 (A1 + A2))

where l is its edge and A1, A2 its triangles. Put the nodes of a mesh on the cylinder
z = kappa s^2/2, s the coordinate across its axis. On a mesh of equilateral triangles an edge whose
normal in the sheet makes the angle a with s has the height difference

    phi = kappa l (4 cos^2 a - 1)/(2 sqrt(3)),   c0 = 1/sqrt(3),

the mean of (4 cos^2 a - 1)^2 over the three directions of edges is 3 for every a, and there are
2 sqrt(3)/l^2 edges per area: together k_b kappa^2/8, in every direction. On squares of edge d with
alternating diagonals, bent along an edge, diagonals stay flat, and of the other edges half
have phi = kappa d with c0 = 1/2, one per d^2: k_b kappa^2/8 again. So

    k_b = 4 D

exactly for those two, with nodes on the cylinder. Nodes that are free to move off it by a little
make squares softer (0.83 of D along an edge, 1.46 along a diagonal) and leave equilateral triangles
as they are; irregular meshes have 1.03 to 1.35 of D, less in the mean the more irregular they are
(measured; `test_cloth.py`). Diagonals that all run one way have 3.2 of D along them: alternate
them. Damping: the moment per length D kappa + beta dkappa/dt, beta = `bending_damping` [N m s], is
k_d = 2 beta.

Source for hinges and their rigidity: Grinspun et al., Discrete Shells, SCA 2003; Tamstorf &
Grinspun, Discrete bending forces and their Jacobians, Graphical Models 75 (2013). The factor: ours.
"""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.element import Force
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.values import values_under
from studies.runs.errors import StudyError
from studies.scene.bodies.materials import combined, lumping_of, mass_of, plate, sheet_curves
from studies.scene.bodies.muscles import make_muscles
from studies.scene.bodies.part import (
    Additions,
    Cage,
    NodePart,
    field_or_number,
    held_nodes,
    mass_factors,
    node_velocities,
    positive,
)
from studies.scene.declared import Cloth
from studies.scene.looks import drawn_mesh
from studies.scene.maps import Moduli, ParameterMap, Scaled, Value, Weighed, values_of
from studies.scene.mesh_source import Source, read_source, surface_of, tried


HINGE, DAMPED_HINGE = 4.0, 2.0  # k_b over D, k_d over beta
LEAST_NU = -0.5  # lam of the sheet is positive above
NU_BOUNDS = (0.0, 0.5)


def make_cloth(name: str, body: Cloth, free: frozenset[str], *, refined: bool = False) -> NodePart:
    """Return a cloth; `free` are the scene's free paths. `refined` makes its mesh finer."""
    key = f"bodies.{name}"
    if body.E is None:
        raise StudyError(
            f"`{key}.E` must be given, Young's modulus of the material [Pa], with `thickness` [m]. "
            "Cotton has 1e7 to 1e8, a rubber sheet 1e6."
        )
    if body.nu <= LEAST_NU:
        raise StudyError(f"`{key}.nu` must be above {LEAST_NU} for a sheet, got {body.nu:g}.")
    source = read_source(key, body)
    sheet = surface_of(key, source)
    tried(f"{key}.mesh", sheet.require_sound)
    hinges = tried(f"{key}.mesh", lambda: mesh_hinges(sheet.faces))
    muscles = _muscles(name, body, sheet, hinges, free=free)
    drawn = drawn_mesh(f"{key}.look", body.look, sheet, source)
    numbered = source.mesh is sheet
    held = held_nodes(f"{key}.held", body.held, sheet.points, numbered=numbered)
    skin = scipy.sparse.csr_array(scipy.sparse.eye_array(len(sheet.points)))
    grid = Cage(sheet, source, held, skin, body.mass_factors)
    if refined:
        grid = grid.refined(key, body, muscles)
        sheet = grid.mesh
        hinges = mesh_hinges(sheet.faces)
    n, h = len(sheet.points), body.thickness
    lumping = lumping_of(sheet.faces, h * _areas_of(sheet), n)
    weights = mass_factors(name, grid.mass_factors, lumping)
    values = {**_values(name, body, grid.source, free), **muscles.values, **weights}
    averages = _means_of_hinges(sheet, hinges) if body.bending is None and len(hinges) else None

    def forces(rest: np.ndarray, first: int, targets: dict[str, Any]) -> dict[str, Force]:
        faces, membrane = first + sheet.faces, values_under(name, targets)
        made: dict[str, Force] = {name: NeoHookeanTriangles(faces, rest, **membrane)}
        if bending := values_under(f"{name}_bending", targets):
            made[f"{name}_bending"] = Hinges(first + hinges, rest, **bending)
        if air := values_under(f"{name}_air", targets):
            made[f"{name}_air"] = LiftDrag(faces, air.get("lift", 0.0), air.get("drag", 0.0))
        return made

    return NodePart(
        name, sheet.points, grid.held,
        mass_of(name, values_of(values), lumping), np.arange(n), sheet.faces, values,
        [*_material_maps(name, h, values, averages), *muscles.maps],
        partial(Weighed, name, lumping), forces, drawn, grid.skin,
        node_velocities(name, body, grid.source, sheet.points, numbered=numbered),
        varying=muscles.varying, finer=grid.finer, dimension=2,
    )  # fmt: skip


def _muscles(
    name: str, body: Cloth, sheet: TriangleMesh, hinges: np.ndarray, *, free: frozenset[str]
) -> Additions:
    target = f"{name}_bending.actuation"
    flat = make_muscles(
        name, body, sheet.faces, sheet.points, target=f"{name}.actuation", free=free
    )
    bent = make_muscles(
        name, body, hinges, sheet.points, target=target, free=free, prefix="bending_", unit="rad"
    )
    is_bent = bool(bent.maps or bent.varying)
    if is_bent and (body.bending == 0.0 or not len(hinges)):
        raise StudyError(
            f"`bodies.{name}.bending_actuation` needs hinges to act on: two triangles with an edge "
            f"in common, and `bodies.{name}.bending` above 0."
        )
    values, varying = flat.values | bent.values, flat.varying | bent.varying
    return Additions({}, values, flat.maps + bent.maps, varying)


def _values(name: str, body: Cloth, source: Source, free: frozenset[str]) -> dict[str, Value]:
    """Return the values of the material by path."""
    key = f"bodies.{name}"
    low, high = NU_BOUNDS
    values = {
        f"{name}.E": positive(field_or_number(f"{key}.E", body.E, source), "Pa"),
        f"{name}.nu": Value(
            np.array(body.nu, np.float64), "-", "linear",
            (min(low, 0.5 * (body.nu + LEAST_NU)), max(high, 0.5 * (body.nu + 1.0))),
        ),
        f"{name}.density": positive(
            field_or_number(f"{key}.density", body.density, source), "kg/m3"
        ),
    }  # fmt: skip
    if body.bending is not None and (body.bending > 0.0 or f"{name}.bending" in free):
        values[f"{name}.bending"] = positive(body.bending, "N m", 100.0)
    more = {"viscosity": "Pa s", "bending_damping": "N m s", "drag": "kg/m3", "lift": "kg/m3"}
    for which, unit in more.items():
        number = getattr(body, which)
        if number > 0.0 or f"{name}.{which}" in free:
            values[f"{name}.{which}"] = positive(number, unit, 100.0)
    return values


def _material_maps(
    name: str, h: float, values: dict[str, Value], averages: scipy.sparse.csr_array | None
) -> list[ParameterMap]:
    """Return the maps to the parameters of the forces.

    h is the thickness; with `averages`, of the hinges, the material gives the bending too.
    """
    bending = f"{name}_bending"
    curves, means = sheet_curves(name, h), {}
    if averages is not None:
        curves[f"{bending}.stiffness"] = combined((HINGE * h**3, plate))
        means[f"{bending}.stiffness"] = averages
    maps: list[ParameterMap] = [Moduli(name, curves, means)]
    factors = {
        "bending": (f"{bending}.stiffness", HINGE),
        "viscosity": (f"{name}.viscosity", h),
        "drag": (f"{name}_air.drag", 1.0),
        "lift": (f"{name}_air.lift", 1.0),
    }
    if averages is not None or f"{name}.bending" in values:
        factors["bending_damping"] = (f"{bending}.damping", DAMPED_HINGE)
    for which, (target, factor) in factors.items():
        if f"{name}.{which}" in values:
            maps.append(Scaled(f"{name}.{which}", {target: factor}))
    return maps


def _areas_of(sheet: TriangleMesh) -> np.ndarray:
    """Return the areas of triangles, (n_faces,) [m2]."""
    corners = sheet.points[sheet.faces]
    sides = corners[:, 1:] - corners[:, :1]
    return 0.5 * np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)


def _means_of_hinges(sheet: TriangleMesh, hinges: np.ndarray) -> scipy.sparse.csr_array:
    """Return the matrix from numbers of triangles to the means of hinges' two triangles."""
    faces = np.sort(sheet.faces, axis=1).tolist()
    number = {tuple(corners): face for face, corners in enumerate(faces)}
    sides = np.sort(hinges[:, [[0, 2, 3], [1, 2, 3]]], axis=2).reshape(-1, 3)
    columns = [number[tuple(corners)] for corners in sides.tolist()]
    n = len(hinges)
    entries = (np.full(2 * n, 0.5), (np.repeat(np.arange(n), 2), columns))
    return scipy.sparse.csr_array(entries, shape=(n, len(faces)))
