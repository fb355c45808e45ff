import numpy as np
import pytest
import pyvista
from PIL import Image

from adjsim.meshes.files import poly_data, unstructured_grid
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import shape
from studies.runs.errors import StudyError
from studies.scene.declared import Cloth, Look, Rigid, Soft
from studies.scene.looks import drawn_mesh
from studies.scene.mesh_source import read_source, surface_of


SQUARE = "mtllib {}\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
FACES = "usemtl m\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n"


def drawn(source, **look):
    return drawn_mesh("bodies.a.look", Look(**look), surface_of("bodies.a", source), source)


def picture(folder):
    path = folder / "a.png"
    Image.fromarray(np.full((2, 2, 3), 128, np.uint8)).save(path)
    return str(path)


def square(folder, library="a.mtl", faces=FACES):
    (folder / "a.mtl").write_text("newmtl m\n")
    (folder / "a.obj").write_text(SQUARE.format(library) + faces)
    return read_source("bodies.a", Cloth(mesh=str(folder / "a.obj")))


BALL = read_source("bodies.a", Soft(mesh="ball", cells=(2,)))


def test_one_colour_is_in_the_material():
    mesh = drawn(BALL, color=(0.2, 0.4, 0.6), ambient=0.5, diffuse=0.25, specular=0.1)
    np.testing.assert_allclose(mesh.material.ambient, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(mesh.material.diffuse, [0.05, 0.1, 0.15])
    np.testing.assert_array_equal(mesh.material.specular, [0.1] * 3)
    assert mesh.smooth_normals
    assert mesh.vertex_colors is None
    assert drawn(BALL).material.specular is None


def test_colours_of_points_are_those_of_drawn_vertices(tmp_path):
    solid = box_tets((2, 2, 2))
    for name, data, points in (
        ("a.vtu", unstructured_grid(solid), solid.points),
        ("a.ply", poly_data(shape("cube")), shape("cube").points),
    ):
        low, high = points.min(axis=0), points.max(axis=0)
        colors = (points - low) / (high - low)
        data.point_data["RGB"] = np.rint(255.0 * colors).astype(np.uint8)
        data.save(tmp_path / name, **({"texture": "RGB"} if name == "a.ply" else {}))
        source = read_source("bodies.a", Soft(mesh=str(tmp_path / name)))
        mesh = drawn(source, vertex_colors="RGB")
        vertices = surface_of("bodies.a", source).points
        expected = (vertices - vertices.min(axis=0)) / np.ptp(vertices, axis=0)
        np.testing.assert_allclose(mesh.vertex_colors, expected, atol=0.003)
        np.testing.assert_array_equal(mesh.material.ambient, [0.5] * 3)


def test_a_texture_lies_where_the_file_says(tmp_path):
    mesh = drawn(square(tmp_path), texture=picture(tmp_path))
    points = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
    np.testing.assert_array_equal(mesh.uv[mesh.uv_faces], points[mesh.faces])
    assert mesh.texture.texels.shape == (2, 2, 3)


def test_a_mesh_without_coordinates_can_be_unwrapped(tmp_path):
    mesh = drawn(BALL, texture=picture(tmp_path), unwrap=True)
    assert mesh.uv_faces.shape == mesh.faces.shape
    with pytest.raises(StudyError, match=r"texture coordinates.*`bodies.a.look.unwrap` = true"):
        drawn(BALL, texture=picture(tmp_path))


def test_missing_files_of_a_texture_are_told(tmp_path):
    with pytest.raises(StudyError, match=r"materials that .*a.obj names are missing: none.mtl"):
        drawn(square(tmp_path, "none.mtl"), texture=picture(tmp_path))
    with pytest.raises(StudyError, match=r"`bodies.a.look.texture`: .*no file .*none.png"):
        drawn(square(tmp_path), texture=str(tmp_path / "none.png"))
    with pytest.raises(StudyError, match="corners without texture coordinates"):
        drawn(square(tmp_path, faces="f 1 2 3\nf 1 3 4\n"), texture=picture(tmp_path))


def test_colours_that_are_none_are_told(tmp_path):
    with pytest.raises(StudyError, match=r"vertex_colors` must name an array .* got 'RGB'"):
        drawn(BALL, vertex_colors="RGB")
    grid = unstructured_grid(box_tets((1, 1, 1)))
    grid.point_data["one"] = np.arange(8.0)
    grid.point_data["dark"] = np.full((8, 3), -1.0)
    grid.save(tmp_path / "a.vtu")
    source = read_source("bodies.a", Soft(mesh=str(tmp_path / "a.vtu")))
    with pytest.raises(StudyError, match="three or four numbers"):
        drawn(source, vertex_colors="one")
    with pytest.raises(StudyError, match="from 0 to 1, or bytes"):
        drawn(source, vertex_colors="dark")
    with pytest.raises(StudyError, match="got both"):
        drawn(source, vertex_colors="one", texture=picture(tmp_path))


def test_points_at_one_place_keep_their_colours_at_the_corners(tmp_path):
    box = pyvista.Cube(clean=False).triangulate()
    colors = np.repeat(np.arange(18).reshape(6, 3) / 20.0, 4, axis=0)
    box.point_data["RGB"] = colors
    box.save(tmp_path / "box.vtp")
    source = read_source("bodies.a", Rigid(mesh=str(tmp_path / "box.vtp"), mass=1.0))
    mesh = drawn(source, vertex_colors="RGB")
    assert mesh.faces.max() == 7
    assert mesh.vertex_colors.shape == (24, 3)
    of_faces = mesh.vertex_colors[mesh.color_faces]
    assert (of_faces == of_faces[:, :1]).all()
    assert {tuple(color) for color in of_faces[:, 0]} == {tuple(color) for color in colors}
