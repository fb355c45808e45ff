import numpy as np
import pytest
import scipy.sparse

from adjsim.meshes.ball import ball_tets
from adjsim.meshes.files import read_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from adjsim.meshes.sheets import sheet
from adjsim.meshes.subdivision import subdivided
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.scene.declared import ASSETS


SOLIDS = [
    TetMesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), [[0, 1, 2, 3]]),
    box_tets((3, 2, 2), (3.0, 1.0, 2.0)),
    box_tets((2, 2, 1), tets_per_cell=6),
    ball_tets(3, 0.5),
    read_mesh(ASSETS / "gear.vtu"),
]


@pytest.mark.parametrize("mesh", SOLIDS)
def test_every_tetrahedron_becomes_eight_of_the_same_volume(mesh):
    finer = subdivided(mesh)  # `TetMesh` itself refuses inverted ones
    assert finer.mesh.n_tets == 8 * mesh.n_tets
    assert finer.mesh.volumes == pytest.approx(mesh.volumes[finer.parents] / 8.0, rel=1e-9)
    middles = finer.mesh.points[finer.mesh.tets].mean(axis=1).reshape(-1, 8, 3).mean(axis=1)
    assert middles == pytest.approx(mesh.points[mesh.tets].mean(axis=1), abs=1e-12)


@pytest.mark.parametrize("mesh", SOLIDS)
def test_the_finer_mesh_fits_together(mesh):
    """Its boundary is closed, with four triangles for each: no face inside is without a partner."""
    finer, surface = subdivided(mesh).mesh, mesh.surface()
    finer_surface = finer.surface()
    assert len(finer_surface.faces) == 4 * len(surface.faces)
    TriangleMesh(finer.points[finer_surface.nodes], finer_surface.local_faces).require_closed()


def test_the_octahedron_inside_is_cut_along_its_shortest_diagonal():
    for turn in range(3):  # stretched, the diagonal along another axis is the shortest
        order = [0, *np.roll([1, 2, 3], turn)]
        points = np.array([[0.0, 0, 0], [1, 0, 0], [0.4, 2, 0], [0, 0.7, 3]])
        finer = subdivided(TetMesh(points, [order])).mesh
        pairs = np.array([[4, 9], [5, 8], [6, 7]])  # midpoints of opposite edges
        lengths = np.linalg.norm(np.diff(finer.points[pairs], axis=1)[:, 0], axis=1)
        used = [[np.isin(pair, tet).all() for tet in finer.tets].count(True) for pair in pairs]
        assert used == np.where(np.arange(3) == lengths.argmin(), 4, 0).tolist()


def test_every_triangle_becomes_four_that_face_the_same_way():
    flat, closed = sheet((3, 2), (1.0, 2.0)), shape("torus", 1.0)
    for mesh in (flat, closed):
        finer = subdivided(mesh).mesh
        assert len(finer.faces) == 4 * len(mesh.faces)
        normals = [np.cross(*np.diff(m.points[m.faces], axis=1).swapaxes(0, 1))
                   for m in (mesh, finer)]  # fmt: skip
        assert normals[1] == pytest.approx(np.repeat(normals[0], 4, axis=0) / 4.0, abs=1e-12)
        finer.require_sound()
    subdivided(closed).mesh.require_closed()


def test_points_keep_their_numbers_and_midpoints_have_means():
    mesh = box_tets((2, 1, 1))
    finer = subdivided(mesh)
    assert finer.n_before == mesh.n_points
    assert (finer.mesh.points[: mesh.n_points] == mesh.points).all()
    assert (finer.of_points(mesh.points) == finer.mesh.points).all()
    at_end = mesh.points[:, 0] == 0.0
    assert finer.selected(at_end).tolist() == (finer.mesh.points[:, 0] == 0.0).tolist()
    matrix = scipy.sparse.csr_array(np.eye(mesh.n_points)[[3, 1]])
    assert (finer.widened(matrix) @ finer.mesh.points == mesh.points[[3, 1]]).all()
