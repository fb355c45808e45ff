"""Springs: equal masses on the points of a mesh, and a damped spring on every edge.

A mesh with faces is drawn by them; a chain as balls along its springs, which look the same from
all sides however it swings.
"""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.element import Force
from adjsim.forces.springs import Springs as SpringForce
from adjsim.meshes.ball import icosahedron
from adjsim.meshes.chains import Chain
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.values import values_under
from render.scene import Mesh
from studies.runs.errors import StudyError
from studies.scene.bodies.part import NodePart, held_nodes, node_velocities, positive
from studies.scene.declared import Springs
from studies.scene.looks import drawn_mesh, material_of
from studies.scene.maps import Placed, Scaled
from studies.scene.mesh_source import Source, read_source, skin_of, tried


SPACING = 1.2  # of the balls, over their radius
MAX_BALLS = 600
MOST_STRETCH = 3.0  # lengths at rest are searched within so many times, by default


def make_springs(name: str, body: Springs) -> NodePart:
    """Return masses and springs."""
    key = f"bodies.{name}"
    source = read_source(key, body)
    points, edges = source.mesh.points, edges_of(source.mesh)
    n = len(points)
    values = {
        f"{name}.stiffness": positive(body.stiffness, "N/m"),
        f"{name}.damping": positive(body.damping, "N s/m", 100.0),
        f"{name}.mass": positive(body.mass, "kg"),
        f"{name}.rest_length": positive(body.rest_length, "-", MOST_STRETCH),
    }
    springs = tried(f"{key}.mesh", lambda: SpringForce(edges, 1.0, rest_positions=points))
    if np.ndim(body.rest_length) and np.size(body.rest_length) != len(edges):
        raise StudyError(
            f"`{key}.rest_length` must be one number, or one for each of the {len(edges)} springs, "
            f"got {np.size(body.rest_length)}."
        )

    def forces(rest: np.ndarray, first: int, targets: dict[str, Any]) -> dict[str, Force]:
        given: dict[str, Any] = values_under(name, targets)
        return {name: SpringForce(first + edges, rest_positions=rest, **given)}

    drawn, skin, offset = _drawn(key, body, source, edges)
    velocities = node_velocities(name, body, source, np.asarray(points), numbered=True)
    return NodePart(
        name, np.asarray(points),
        held_nodes(f"{key}.held", body.held, points, numbered=True),
        np.full(n, body.mass / n), np.arange(n), None, values,
        [
            *(Scaled(path, {path: 1.0}) for path in (f"{name}.stiffness", f"{name}.damping")),
            Scaled(f"{name}.rest_length", {f"{name}.rest_length": springs.rest_length}),
        ],
        partial(Placed, f"{name}.mass", "mass", weights=np.full(n, 1.0 / n)),
        forces, drawn, skin, velocities, offset,
    )  # fmt: skip


def edges_of(mesh: TetMesh | TriangleMesh | Chain) -> np.ndarray:
    """Return the edges of a mesh, (n_edges, 2)."""
    if not isinstance(mesh, TetMesh):
        return mesh.edges
    pairs = [mesh.tets[:, list(pair)] for pair in itertools.combinations(range(4), 2)]
    return np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)


def _drawn(
    key: str, body: Springs, source: Source, edges: np.ndarray
) -> tuple[Mesh, scipy.sparse.csr_array, np.ndarray]:
    """Return what is drawn, and its vertices over the nodes: S and an offset."""
    look, mesh = body.look, source.mesh
    if isinstance(mesh, Chain):
        if look.texture is not None or look.vertex_colors is not None:
            raise StudyError(f"`{key}.look` must have a `color` for a chain, which has no faces.")
        faces, skin, offset = beads(mesh.points, edges, body.radius)
        drawn = Mesh(faces, material=material_of(look), smooth_normals=look.smooth)
        return drawn, skin, offset
    if isinstance(mesh, TetMesh):
        skin, surface = skin_of(source, mesh)
    else:
        skin = scipy.sparse.csr_array(scipy.sparse.eye_array(len(mesh.points)))
        surface = mesh
    return drawn_mesh(f"{key}.look", look, surface, source), skin, np.zeros(())


def beads(
    points: np.ndarray, edges: np.ndarray, radius: float
) -> tuple[np.ndarray, scipy.sparse.csr_array, np.ndarray]:
    """Return balls along edges: faces, S and offsets; their vertices are S x + offset."""
    length = np.linalg.norm(points[edges[:, 1]] - points[edges[:, 0]], axis=1)
    spacing = max(SPACING * radius, float(length.sum()) / MAX_BALLS)
    nodes = np.arange(len(points))
    first, second, fractions = [nodes], [nodes], [np.zeros(len(points))]
    for (i, j), l in zip(edges.tolist(), length.tolist(), strict=True):
        inner = math.ceil(l / spacing) - 1
        first.append(np.full(inner, i))
        second.append(np.full(inner, j))
        fractions.append(np.arange(1, inner + 1) / (inner + 1))
    i, j, t = (np.concatenate(each) for each in (first, second, fractions))
    corners, ball = icosahedron()
    n_balls, each = len(t), len(corners)
    rows = np.arange(n_balls * each)
    weights = np.concatenate([np.repeat(1.0 - t, each), np.repeat(t, each)])
    columns = np.concatenate([np.repeat(i, each), np.repeat(j, each)])
    shape = (n_balls * each, len(points))
    skin = scipy.sparse.csr_array((weights, (np.tile(rows, 2), columns)), shape=shape)
    faces = (each * np.arange(n_balls)[:, None, None] + ball).reshape(-1, 3)
    return faces, skin, np.tile(radius * corners, (n_balls, 1))
