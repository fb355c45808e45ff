import importlib.util
import pickle
import sys

import meshio
import numpy as np
import pytest
import pyvista

from adjsim.meshes.files import (
    find_mesh,
    poly_data,
    read_mesh,
    read_mesh_data,
    unstructured_grid,
    write_tet_mesh,
)
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
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


GMSH_4_1 = """$MeshFormat
4.1 0 8
$EndMeshFormat
$PhysicalNames
2
2 1 "skin"
3 2 "solid"
$EndPhysicalNames
$Entities
0 0 1 1
1 0 0 0 1 1 0 1 1 0
1 0 0 0 1 1 1 1 2 1 1
$EndEntities
$Nodes
2 5 1 9
2 1 0 3
1
2
5
0 0 0
1 0 0
0 1 0
3 1 0 2
7
9
0 0 0.1
1 1 1
$EndNodes
$Elements
2 3 1 3
2 1 2 1
1 1 2 5
3 1 4 2
2 1 2 5 7
3 2 5 7 9
$EndElements
"""


def test_a_gmsh_file_of_version_4_1_with_gaps_in_its_numbers_is_read(tmp_path, capfd):
    (tmp_path / "a.msh").write_text(GMSH_4_1)
    mesh = read_mesh(tmp_path / "a.msh")
    assert isinstance(mesh, TetMesh)
    assert mesh.points[3].tolist() == [0.0, 0.0, 0.1]
    assert mesh.tets.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("binary", [True, False])
def test_gmsh_4_1_keeps_doubles(tmp_path, binary):
    mesh = box_tets((2, 1, 1), (0.1, 0.2, 0.3))
    tags = {"gmsh:dim_tags": np.tile([3, 1], (mesh.n_points, 1))}
    ones = {key: [np.ones(mesh.n_tets, int)] for key in ("gmsh:geometrical", "gmsh:physical")}
    data = meshio.Mesh(mesh.points, [("tetra", mesh.tets)], point_data=tags, cell_data=ones)
    data.write(tmp_path / "a.msh", file_format="gmsh", binary=binary)
    back = read_mesh(tmp_path / "a.msh")
    assert isinstance(back, TetMesh)
    assert (back.points == mesh.points).all()
    assert (back.tets == mesh.tets).all()


def test_cells_of_second_order_become_linear_ones(tmp_path):
    # A cube with the middles of its edges, and a pyramid on it with the middles of its own.
    bottom_top = [0, 1, 2, 3, 4, 5, 6, 7]
    cube = CUBE[HEX]
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4)]
    pairs += [(0, 4), (1, 5), (2, 6), (3, 7)]
    middles = [0.5 * (cube[a] + cube[b]) for a, b in pairs]
    tip = np.array([0.5, 0.5, 2.0])
    points = [*cube, *middles, tip, *(0.5 * (cube[a] + tip) for a in (4, 5, 6, 7))]
    hexahedron = [*bottom_top, *range(8, 20)]
    pyramid = [4, 5, 6, 7, 20, 12, 13, 14, 15, 21, 22, 23, 24]
    triangle = [0, 1, 2, 8, 9, 8]  # not part of the volume
    grid_of([(25, hexahedron), (22, triangle), (27, pyramid)], points).save(tmp_path / "a.vtu")
    mesh = read_mesh(tmp_path / "a.vtu")
    assert isinstance(mesh, TetMesh)
    assert mesh.n_points == 9
    assert mesh.volumes.sum() == pytest.approx(1.0 + 1.0 / 3.0, rel=1e-14)


def test_a_gmsh_file_without_meshio_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.msh").write_text(GMSH_4_1)
    monkeypatch.setitem(sys.modules, "meshio", None)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *a: None if name == "meshio" else find_spec(name, *a),
    )
    with pytest.raises(
        ValueError, match=r"cannot be read as a mesh: .* '\.\[mesh\]' in your clone"
    ):
        read_mesh(tmp_path / "a.msh")


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("suffix", ["stl", "ply"])
def test_surfaces_are_read_binary_or_not(tmp_path, suffix, binary):
    ball = shape("sphere", 0.25)
    path = tmp_path / f"a.{suffix}"
    poly_data(ball).save(path, binary=binary)
    back = read_mesh(path)
    assert isinstance(back, TriangleMesh)
    back.require_closed()
    back.require_sound()
    # These formats hold single precision.
    assert back.volume == pytest.approx(ball.volume, rel=1e-6)
    assert (len(back.points), len(back.faces)) == (162, 320)


def test_an_obj_file_with_normals_textures_and_groups_is_read(tmp_path):
    mesh = shape("cube")
    lines = [
        "mtllib a.mtl",
        "o cube",
        *(f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.points.tolist()),
    ]
    lines += ["vt 0 0", "vn 0 0 1", "g one", "usemtl red", "s off"]
    lines += ["f " + " ".join(f"{k + 1}/1/1" for k in face) for face in mesh.faces.tolist()]
    (tmp_path / "a.obj").write_text("\n".join(lines))
    back = read_mesh(tmp_path / "a.obj")
    assert isinstance(back, TriangleMesh)
    back.require_closed()
    assert back.volume == pytest.approx(mesh.volume, rel=1e-6)


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


def test_a_cell_that_names_a_point_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "a.vtk").write_text(
        "# vtk DataFile Version 3.0\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 3 float\n"
        "0 0 0 1 0 0 0 1 0\nCELLS 1 4\n3 0 1 6\nCELL_TYPES 1\n5\n"
    )
    with pytest.raises(ValueError, match=r"it is damaged. A cell names point 6, .* are 3 points"):
        read_mesh(tmp_path / "a.vtk")


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.PKL"])
def test_a_pickle_never_reaches_the_readers(tmp_path, monkeypatch, name):
    reached = []
    monkeypatch.setattr(pyvista, "read", reached.append)
    (tmp_path / name).write_bytes(pickle.dumps("a mesh"))
    with pytest.raises(ValueError, match=rf"`mesh`: .*{name} is a pickle.* Save the mesh as .vtu"):
        read_mesh(tmp_path / name)
    assert not reached


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"`mesh`: there is no file .*nothing\.vtu"):
        read_mesh(tmp_path / "nothing.vtu")
    with pytest.raises(FileNotFoundError, match=r"no file .*cow\.vtk"):
        find_mesh("pyvista:cow.vtk")


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan")])
def test_a_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match=r"`scale` must be (positive|finite)"):
        read_mesh("pyvista:hexbeam.vtk", scale=scale)


def test_arrays_of_a_file_follow_its_cells_and_points(tmp_path):
    mesh = box_tets((2, 1, 1))
    grid = unstructured_grid(mesh)
    grid.cell_data["E"] = mesh.points[mesh.tets, 0].mean(axis=1)
    grid.point_data["height"] = mesh.points[:, 1]
    grid.save(tmp_path / "box.vtu")
    read = read_mesh_data(tmp_path / "box.vtu")
    np.testing.assert_allclose(read.cells["E"], read.mesh.points[read.mesh.tets, 0].mean(axis=1))
    np.testing.assert_array_equal(read.points["height"], read.mesh.points[:, 1])


def test_arrays_of_a_surface_follow_points_that_become_one(tmp_path):
    import pyvista

    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    data = pyvista.PolyData.from_regular_faces(corners, np.array([[0, 1, 2], [3, 4, 5]]))
    data.point_data["x"] = corners[:, 0]
    data.cell_data["number"] = np.array([7, 8])
    data.save(tmp_path / "square.vtp")
    read = read_mesh_data(tmp_path / "square.vtp")
    assert len(read.mesh.points) == 4
    np.testing.assert_array_equal(read.points["x"], read.mesh.points[:, 0])
    np.testing.assert_array_equal(read.cells["number"], [7, 8])


@pytest.mark.parametrize("inwards", [False, True])
def test_what_points_at_one_place_say_is_kept_by_corner(tmp_path, inwards):
    box = pyvista.Cube(clean=False).triangulate()
    points, faces = np.asarray(box.points, float), box.regular_faces[:, :: -1 if inwards else 1]
    data = pyvista.PolyData.from_regular_faces(points, faces)
    data.point_data["moved"] = points + 0.01 * np.arange(24)[:, None]  # four of each side
    data.point_data["place"] = points
    data.save(tmp_path / "box.vtp")
    read = read_mesh_data(tmp_path / "box.vtp")
    assert len(points) == 24
    assert len(read.mesh.points) == 8
    assert read.mesh.volume == pytest.approx(1.0)
    off = np.rint(100.0 * (read.corners["moved"] - read.mesh.points[read.mesh.faces]))
    assert np.unique(off).tolist() == list(range(24))
    assert (off // 4 == off[:, :1, :1] // 4).all()  # a face has corners of one side
    assert list(read.corners) == ["moved"]  # as `place` does not jump
