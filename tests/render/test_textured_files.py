import numpy as np
import pytest
from PIL import Image

from render.scene import DirectionalLight, Scene
from render.soft_raster import rasterize
from render.textured_files import read_texture, read_textured
from render.textures import Wrap
from tests.render.scenes import camera, soft


OBJ = """mtllib square.mtl
v -1 -1 0
v 1 -1 0
v 1 1 0
v -1 1 0
vt 0 0
vt 1 0
vt 1 1
vt 0 1
vt 0.5 0.25
usemtl paint
f 1/1 2/2 3/3
f 1/5 3/3 4/4
"""
MTL = """# made by hand
newmtl other
Kd 0 0 0
newmtl paint
Ka 0.1 0.2 0.3
Kd 0.5 0.6 0.7  # half
Ks 0.2 0.3 0.4
Ns 20
illum 2
map_Kd maps\\paint.png
"""
PAINT = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[10, 20, 30], [40, 50, 60], [0, 0, 0]]])


def write(
    folder,
    obj: str = OBJ,
    mtl: str | None = MTL,
    paint: np.ndarray | None = PAINT,
    name="paint.png",
):
    """Write a square with its files; return its path."""
    (folder / "maps").mkdir()
    (folder / "square.obj").write_text(obj)
    if mtl is not None:
        (folder / "square.mtl").write_text(mtl)
    if paint is not None:
        Image.fromarray(paint.astype(np.uint8)).save(folder / "maps" / name)
    return folder / "square.obj"


def test_a_mesh_comes_with_its_material_its_picture_and_where_corners_lie_on_it(tmp_path):
    vertices, mesh = read_textured(write(tmp_path), scale=2.0)
    expected = [[-2, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]]
    np.testing.assert_array_equal(vertices, expected)
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [0, 2, 3]])
    corners = [[[0, 0], [1, 0], [1, 1]], [[0.5, 0.25], [1, 1], [0, 1]]]
    np.testing.assert_array_equal(mesh.uv[mesh.uv_faces], corners)
    assert len(mesh.uv) == 5
    np.testing.assert_allclose(mesh.texture.texels, PAINT / 255)
    np.testing.assert_array_equal(mesh.material.ambient, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(mesh.material.diffuse, [0.5, 0.6, 0.7])
    np.testing.assert_array_equal(mesh.material.specular, [0.2, 0.3, 0.4])
    assert mesh.material.shininess == 20
    scene = Scene({"square": mesh}, {"sun": DirectionalLight((0, 0, 1))})
    assert np.ptp(rasterize(scene, camera(), soft(), {"square": vertices}, (9, 9))) > 0.5


def test_a_jpeg_is_read_and_an_alpha_channel_is_dropped(tmp_path):
    gray = np.full((8, 8, 3), 100, np.uint8)
    Image.fromarray(gray).save(tmp_path / "a.jpg")
    clear = np.dstack([gray, np.zeros((8, 8), np.uint8)])
    Image.fromarray(clear).save(tmp_path / "b.png")
    for name in ("a.jpg", "b.png"):
        texture = read_texture(tmp_path / name, wrap="clamp")
        np.testing.assert_allclose(texture.texels, 100 / 255, atol=1 / 255)
        assert texture.wrap is Wrap.CLAMP


@pytest.mark.parametrize("ks", ["Ks 0 0 0\nNs 0", ""])
def test_without_a_highlight_the_material_is_matt_whatever_its_exponent(tmp_path, ks):
    _, mesh = read_textured(write(tmp_path, mtl=f"newmtl paint\nKd 1 1 1\n{ks}\n"))
    assert mesh.material.specular is None
    assert mesh.texture is None
    assert mesh.uv is None


def test_without_a_material_the_mesh_is_white(tmp_path):
    obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    vertices, mesh = read_textured(write(tmp_path, obj=obj, mtl=None))
    assert vertices.shape == (3, 3)
    assert mesh.texture is None


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"mtl": None}, FileNotFoundError, r"square.obj names the materials .*square.mtl: no such"),
        (
            {"paint": None},
            FileNotFoundError,
            r"`mesh`: .*square.mtl names the picture .*paint.png: no such file",
        ),
        (
            {"obj": OBJ.replace("f 1/5 3/3 4/4", "f 1/5 3/3 9/4")},
            ValueError,
            r"square.obj, line 13: a face must name vertices \(v\) from 1 to 4, got 9",
        ),
        (
            {"obj": OBJ.replace("v 1 1 0", "v 1 nan 0")},
            ValueError,
            r"positions of vertices \(v\) of square.obj must be finite, got \[1.0, nan, 0.0\] at",
        ),
        (
            {"obj": OBJ.replace("vt 1 1", "vt nan 1")},
            ValueError,
            r"texture coordinates \(vt\) of square.obj must be finite, got \[nan, 1.0\] at",
        ),
        ({"mtl": "newmtl ink\n"}, ValueError, r"square.mtl must define the material 'paint'"),
        (
            {"mtl": MTL.replace("0.5 0.6 0.7", "0.5 red 0.7")},
            ValueError,
            r"Kd of the material of square.obj must be 3 number\(s\), got '0.5 red 0.7'",
        ),
        (
            {"mtl": MTL.replace("Ns 20", "Ns 0")},
            ValueError,
            r"`material.shininess` must be positive, got 0",
        ),
        (
            {"mtl": MTL.replace("maps\\paint", "-s 2 2 2 paint")},
            ValueError,
            r"map_Kd in .*square.mtl must be a file alone, got options too: '-s 2 2 2 paint.png'",
        ),
        (
            {"obj": OBJ.replace("f 1/5", "usemtl other\nf 1/5")},
            ValueError,
            r"square.obj must use one material, got paint, other",
        ),
        (
            {"obj": "mtllib square.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl paint\nf 1 2 3\n"},
            ValueError,
            r"square.obj has the picture paint.png, but corners without texture coordinates",
        ),
        ({"obj": "nothing\n"}, ValueError, r"cannot be read as a"),
    ],
)
def test_what_is_missing_or_damaged_is_named(tmp_path, changes, error, message):
    path = write(tmp_path, **changes)
    with pytest.raises(error, match=message):
        read_textured(path)


def test_what_is_no_picture_is_refused(tmp_path):
    path = write(tmp_path, paint=None)
    (tmp_path / "maps" / "paint.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"`texture`: .*paint.png cannot be read as a picture"):
        read_textured(path)


def test_a_file_that_is_not_there_and_a_scale_of_nothing_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="`mesh`: there is no file"):
        read_textured(tmp_path / "gone.obj")
    with pytest.raises(ValueError, match="`scale` must be positive, got 0"):
        read_textured(write(tmp_path), scale=0.0)
