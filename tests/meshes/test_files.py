import meshio
import numpy as np
import pytest
import pyvista

from adjsim.meshes.files import find_mesh, read_mesh, write_tet_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh


TRIANGLE, QUAD, TETRA, HEXAHEDRON = 5, 9, 10, 12
CUBE = np.array([[x, y, z] for z in (0.0, 1.0) for y in (0.0, 1.0) for x in (0.0, 1.0)])
HEX = [0, 1, 3, 2, 4, 5, 7, 6]


def grid_of(cells, points):
    """An unstructured grid of cells given as (type, nodes)."""
    flat = np.concatenate([[len(nodes), *nodes] for _, nodes in cells])
    return pyvista.UnstructuredGrid(flat, [kind for kind, _ in cells], np.array(points, float))


def test_hexahedra_that_pyvista_ships_become_tetrahedra_that_fit_together():
    mesh = read_mesh("pyvista:hexbeam.vtk")
    assert isinstance(mesh, TetMesh)
    assert mesh.volumes.sum() == pytest.approx(5.0, rel=1e-14)
    # 2 x 2 x 10 hexahedra have 2 (4 + 20 + 20) outer squares, two triangles each; diagonals
    # that disagree inside would add some.
    assert len(mesh.surface().faces) == 2 * 88


def test_closed_surfaces_that_pyvista_ships_are_read():
    for name, n_faces in [("ant.ply", 912), ("nut.ply", 1046), ("sphere.ply", 840)]:
        surface = read_mesh(f"pyvista:{name}")
        assert isinstance(surface, TriangleMesh)
        assert len(surface.faces) == n_faces
        surface.require_closed()


def test_a_written_mesh_is_read_back_exactly(tmp_path):
    mesh = box_tets((2, 1, 3), (0.1, 0.2, 0.3))
    for name in ("a.vtu", "a.vtk"):
        back = read_mesh(write_tet_mesh(tmp_path / name, mesh))
        assert isinstance(back, TetMesh)
        assert (back.points == mesh.points).all()
        assert (back.tets == mesh.tets).all()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_mesh_is_written_in_formats_that_keep_it(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end in \.vtu or \.vtk, got a\.stl"):
        write_tet_mesh(tmp_path / "a.stl", box_tets((1, 1, 1)))


def test_the_corners_of_an_stl_file_are_joined(tmp_path):
    surface = box_tets((2, 2, 2)).surface()
    box = box_tets((2, 2, 2)).points[surface.nodes]
    pyvista.PolyData.from_regular_faces(box, surface.local_faces).save(tmp_path / "a.stl")
    back = read_mesh(tmp_path / "a.stl")
    assert isinstance(back, TriangleMesh)
    assert len(back.points) == 26
    back.require_closed()


def test_quads_in_an_obj_file_become_triangles(tmp_path):
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = [f"v {x} {y} {z}" for x, y, z in CUBE]
    lines += ["f " + " ".join(map(str, quad)) for quad in quads]
    (tmp_path / "a.obj").write_text("\n".join(lines))
    surface = read_mesh(tmp_path / "a.obj", scale=2.0)
    # Two triangles a side; the file faces inwards and is turned over.
    assert isinstance(surface, TriangleMesh)
    assert len(surface.faces) == 12
    surface.require_closed()
    assert surface.volume == pytest.approx(8.0, rel=1e-14)


def test_mixed_volume_cells_are_cut(tmp_path):
    points = [*CUBE, (0.5, 0.5, 2.0), (0.5, 0.5, 3.0)]
    cells = [(HEXAHEDRON, HEX), (14, [4, 5, 7, 6, 8]), (TETRA, [4, 5, 8, 9])]
    grid_of(cells, points).save(tmp_path / "a.vtu")
    mesh = read_mesh(tmp_path / "a.vtu")
    assert isinstance(mesh, TetMesh)
    # Cube 1, pyramid of height 1: 1/3, tetrahedron on its side.
    tetra = abs(np.linalg.det(np.array(points)[[5, 8, 9]] - np.array(points)[4])) / 6.0
    assert mesh.volumes.sum() == pytest.approx(4.0 / 3.0 + tetra, rel=1e-13)


def test_boundary_triangles_and_unused_points_are_left_out(tmp_path):
    points = [*CUBE, (7.0, 7.0, 7.0)]
    grid_of([(TRIANGLE, [0, 1, 3]), (HEXAHEDRON, HEX), (3, [0, 8])], points).save(
        tmp_path / "a.vtu"
    )
    mesh = read_mesh(tmp_path / "a.vtu")
    assert isinstance(mesh, TetMesh)
    assert mesh.n_points == 8
    assert mesh.volumes.sum() == pytest.approx(1.0, rel=1e-14)


def test_a_mesh_in_the_other_node_order_is_turned_over(tmp_path):
    mesh = box_tets((1, 1, 1))
    cells = [(TETRA, tet[[0, 2, 1, 3]].tolist()) for tet in mesh.tets]
    grid_of(cells, mesh.points).save(tmp_path / "a.vtu")
    back = read_mesh(tmp_path / "a.vtu")
    assert isinstance(back, TetMesh)
    assert back.volumes.sum() == pytest.approx(1.0, rel=1e-14)


def test_one_inverted_tetrahedron_is_named_with_its_file(tmp_path):
    mesh = box_tets((1, 1, 1))
    cells = [(TETRA, tet.tolist()) for tet in mesh.tets]
    cells[3] = (TETRA, mesh.tets[3][[1, 0, 2, 3]].tolist())
    grid_of(cells, mesh.points).save(tmp_path / "a.vtu")
    with pytest.raises(ValueError, match=r"a\.vtu is not usable: .* tetrahedron 3, .* inverted"):
        read_mesh(tmp_path / "a.vtu")


def test_a_gmsh_file_with_its_boundary_triangles_is_read(tmp_path):
    mesh = box_tets((2, 1, 1), (2.0, 1.0, 1.0))
    cells = [("triangle", mesh.surface().faces), ("tetra", mesh.tets)]
    meshio.write_points_cells(tmp_path / "a.msh", mesh.points, cells, file_format="gmsh22")
    back = read_mesh(tmp_path / "a.msh")
    assert isinstance(back, TetMesh)
    assert (back.points == mesh.points).all()
    assert (back.tets == mesh.tets).all()


def test_a_grid_of_voxels_is_read(tmp_path):
    pyvista.ImageData(dimensions=(3, 2, 2), spacing=(0.5, 1.0, 1.0)).save(tmp_path / "a.vti")
    mesh = read_mesh(tmp_path / "a.vti")
    assert isinstance(mesh, TetMesh)
    assert mesh.volumes.sum() == pytest.approx(1.0, rel=1e-14)


def test_a_file_of_lines_has_nothing_to_simulate(tmp_path):
    grid_of([(3, [0, 1])], CUBE).save(tmp_path / "a.vtu")
    with pytest.raises(ValueError, match="it has neither volume cells nor faces"):
        read_mesh(tmp_path / "a.vtu")


@pytest.mark.parametrize("suffix", ["vtu", "vtk", "ply", "stl", "obj", "xyz"])
def test_a_file_that_is_no_mesh_is_one_clear_error(tmp_path, suffix, capfd):
    path = tmp_path / f"a.{suffix}"
    path.write_text("this is not a mesh\n" * 5)
    with pytest.raises(ValueError, match=rf"`mesh`: .*a\.{suffix} cannot be read as a mesh"):
        read_mesh(path)
    assert capfd.readouterr().err == ""


def test_a_truncated_file_is_refused(tmp_path):
    path = write_tet_mesh(tmp_path / "a.vtu", box_tets((4, 4, 4)))
    path.write_bytes(path.read_bytes()[:1500])
    with pytest.raises(ValueError, match="cannot be read as a mesh"):
        read_mesh(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`mesh`: there is no file .*nothing\.vtu"):
        read_mesh(tmp_path / "nothing.vtu")
    with pytest.raises(FileNotFoundError, match=r"no file .*cow\.vtk"):
        find_mesh("pyvista:cow.vtk")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match="`scale` must be positive"):
        read_mesh("pyvista:hexbeam.vtk", scale=scale)
