import numpy as np
import pytest
from PIL import Image

from render.scene import DirectionalLight, Scene
from render.soft_raster import rasterize
from render.textured_files import read_texture, read_textured
from render.textures import Texture, Wrap
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
    Image.fromarray(np.dstack([gray, np.zeros((8, 8), np.uint8)])).save(tmp_path / "b.png")
    for name in ("a.jpg", "b.png"):
        texture = read_texture(tmp_path / name, wrap="clamp")
        np.testing.assert_allclose(texture.texels, 100 / 255, atol=1 / 255)
        assert texture.wrap is Wrap.CLAMP


@pytest.mark.parametrize("ks", ["Ks 0 0 0\nNs 0", ""])
def test_without_a_highlight_the_material_is_matt_whatever_its_exponent(tmp_path, ks):
    obj = OBJ.replace("f 1/1 2/2 3/3", "f 1 2 3")
    _, mesh = read_textured(write(tmp_path, obj, f"newmtl paint\nKd 1 1 1\n{ks}\n"))
    assert mesh.material.specular is None
    assert mesh.texture is None
    assert mesh.uv is None


def test_without_a_material_the_mesh_is_white(tmp_path):
    obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"
    vertices, mesh = read_textured(write(tmp_path, obj=obj, mtl=None))
    assert vertices.shape == (3, 3)
    assert mesh.texture is None


def test_texture_coordinates_without_a_picture_are_told_of_or_given_one(tmp_path):
    path = write(tmp_path, mtl="newmtl paint\nKd 0.5 0.6 0.7\n", paint=None)
    message = r"square.obj has texture coordinates \(vt\), but no picture .* Give `texture` to use"
    with pytest.warns(UserWarning, match=message):
        _, mesh = read_textured(path)
    assert mesh.uv is None
    given = Texture(np.ones((2, 2, 3)))
    _, mesh = read_textured(path, texture=given)
    assert mesh.texture is given
    np.testing.assert_array_equal(mesh.uv[mesh.uv_faces][0], [[0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(mesh.material.diffuse, [0.5, 0.6, 0.7])


def test_a_texture_that_is_given_takes_the_place_of_the_picture(tmp_path):
    given = Texture(np.ones((2, 2, 3)))
    _, mesh = read_textured(write(tmp_path, paint=None), texture=given)  # nor need it be there
    assert mesh.texture is given
    with pytest.raises(TypeError, match="`texture` must be a Texture, got str"):
        read_textured(tmp_path / "square.obj", texture="paint.png")  # pyright: ignore[reportArgumentType]


def test_several_material_files_are_searched_in_their_order(tmp_path):
    path = write(
        tmp_path, OBJ.replace("mtllib square.mtl", "mtllib a.mtl square.mtl\nmtllib b.mtl")
    )
    (tmp_path / "a.mtl").write_text("newmtl ink\nKd 0 0 0\n")
    (tmp_path / "b.mtl").write_text("newmtl paint\nKd 0 0 0\n")
    _, mesh = read_textured(path)
    np.testing.assert_array_equal(mesh.material.diffuse, [0.5, 0.6, 0.7])


def test_the_name_of_a_material_file_may_hold_blanks(tmp_path):
    path = write(tmp_path, OBJ.replace("square.mtl", "my square.mtl"))
    (tmp_path / "square.mtl").rename(tmp_path / "my square.mtl")
    assert read_textured(path)[1].texture is not None


@pytest.mark.parametrize(("option", "wrap"), [("on", Wrap.CLAMP), ("off", Wrap.REPEAT)])
def test_clamp_says_what_lies_beyond_the_picture(tmp_path, option, wrap):
    path = write(tmp_path, mtl=MTL.replace("maps", f"-clamp {option} maps"))
    assert read_textured(path)[1].texture.wrap is wrap


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
            r"map_Kd in .*square.mtl must have no option but -clamp .*, got -s in '-s 2 2 2 paint",
        ),
        (
            {"mtl": MTL.replace("maps", "-clamp maps")},
            ValueError,
            r"no option but -clamp on or off",
        ),
        (
            {"mtl": MTL.replace("maps\\paint.png", "")},
            ValueError,
            r"map_Kd in .*square.mtl must name a picture, got none",
        ),
        (
            {"mtl": MTL.replace("\\paint.png", "")},
            FileNotFoundError,
            r"square.mtl names the picture .*maps: it is a folder",
        ),
        (
            {"obj": OBJ.replace("mtllib square.mtl\n", "")},
            ValueError,
            r"square.obj uses the material 'paint', but names no file .* \(mtllib\)\. Name one",
        ),
        (
            {"obj": OBJ.replace("mtllib square.mtl", "mtllib square.mtl gone.mtl")},
            FileNotFoundError,
            r"square.obj names the materials .*gone.mtl: no such file",
        ),
        (
            {"obj": OBJ.replace("f 1/5", "usemtl other\nf 1/5")},
            ValueError,
            r"square.obj must use one material, got paint, other",
        ),
        (
            {"obj": "mtllib square.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl paint\nf 1 2 3\n"},
            ValueError,
            r"square.obj has a picture, but corners without texture coordinates",
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


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_grey_of_16_bits_keeps_its_scale_and_its_steps(rng, tmp_path, suffix):
    gray = rng.integers(0, 65536, (5, 7), dtype=np.uint16)
    Image.fromarray(gray).save(tmp_path / f"a.{suffix}")
    texels = read_texture(tmp_path / f"a.{suffix}").texels
    np.testing.assert_array_equal(texels, np.repeat(gray[..., None] / 65535.0, 3, axis=2))


def test_pictures_of_few_colours_are_read(rng, tmp_path):
    gray = rng.integers(0, 256, (5, 7), dtype=np.uint8)
    wanted = np.repeat(gray[..., None] / 255.0, 3, axis=2)
    image = Image.fromarray(gray)
    kinds = {"L": image, "LA": image.convert("LA"), "P": image.convert("P")}
    for name, picture in kinds.items():
        picture.save(tmp_path / f"{name}.png")
        texels = read_texture(tmp_path / f"{name}.png").texels
        np.testing.assert_allclose(texels, wanted, atol=1 / 255, err_msg=name)
    Image.fromarray(gray > 127).save(tmp_path / "bits.png")
    texels = read_texture(tmp_path / "bits.png").texels
    np.testing.assert_array_equal(texels[..., 0], gray > 127)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_picture_of_numbers_without_a_largest_is_refused(tmp_path, dtype):
    Image.fromarray(np.ones((2, 2), dtype)).save(tmp_path / "a.tif")
    with pytest.raises(ValueError, match=r"a.tif cannot be read .* the kind [FI], not of 8 or 16"):
        read_texture(tmp_path / "a.tif")


def test_what_is_no_file_is_no_picture(tmp_path):
    with pytest.raises(TypeError, match="`path` must be a str or a PathLike, got NoneType"):
        read_texture(None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        FileNotFoundError, match=r"there is no file, but a folder .*: name a picture"
    ):
        read_texture(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`texture`: there is no file .*gone.png"):
        read_texture(tmp_path / "gone.png")


@pytest.mark.parametrize("side", [4097, 50_000])
def test_a_picture_that_is_too_large_for_a_texture_is_refused(tmp_path, side):
    path = tmp_path / "large.png"
    Image.new("1", (side, 4097)).save(path)
    with pytest.raises(ValueError, match=r"large\.png cannot be read as a picture: .*pixels"):
        read_texture(path)
