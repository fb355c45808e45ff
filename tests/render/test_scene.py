from dataclasses import replace

import numpy as np
import pytest

from render.blending import Hard
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene, SphericalHarmonics
from render.soft_raster import SoftRasterizer, rasterize
from render.textures import Texture


FACES = [[0, 1, 2]]
TEXTURE, UV = Texture(np.ones((2, 2, 3))), np.ones((3, 2))


def test_a_scene_keeps_its_own_copies_and_cannot_be_written_to():
    colors = np.ones((1, 3))
    scene = Scene({"a": Mesh(FACES, face_colors=colors)})
    colors[:] = 0.0
    assert scene.objects["a"].face_colors.min() == 1.0
    with pytest.raises(ValueError, match="read-only"):
        scene.objects["a"].face_colors[0] = 0.0
    with pytest.raises(TypeError):
        scene.objects["b"] = scene.objects["a"]  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mesh([[0, 1]]), r"`faces` must have shape \(n_faces, 3\), got \(1, 2\)"),
        (lambda: Mesh([[0, -1, 2]]), r"`faces` must not be negative, got \[0, -1, 2\] in face 0"),
        (lambda: Mesh([[0, 1.5, 2]]), r"`faces` must hold whole .*, got \[0\.0, 1\.5, 2\.0\] in"),
        (lambda: Mesh([[0, 1, np.nan]]), r"`faces` must hold whole .*, got \[0\.0, 1\.0, nan\] in"),
        (lambda: Mesh([[0, 1, 2**70]]), r"`faces` must be an array of int64: .* too large"),
        (lambda: Mesh([[0, 1, 2, 3]]), r"`faces` must have shape .* got \(1, 4\)\. Cut faces of"),
        (
            lambda: Mesh(FACES, face_colors=[(255, 0, 0)]),
            r"`face_colors` must be colours from 0 to 1 where .* got 255. Divide 8-bit numbers",
        ),
        (
            lambda: Mesh(FACES, vertex_colors=np.full((3, 3), 128, np.uint8)),
            r"`vertex_colors` must be colours from 0 to 1 where it holds whole numbers, got 128",
        ),
        (
            lambda: Mesh(FACES, face_colors=np.ones((2, 3))),
            r"`face_colors` must have shape \(1, 3\), got \(2, 3\). One row of RGB for each face",
        ),
        (
            lambda: Mesh(FACES, vertex_colors=np.ones(3)),
            r"`vertex_colors` must have shape \(n_vertices, 3\), got \(3,\)",
        ),
        (
            lambda: Mesh(FACES, np.ones((1, 3)), np.ones((3, 3))),
            r"Give `face_colors` or `vertex_colors`, not both",
        ),
        (
            lambda: Material(ambient=(1, 2)),
            r"`material.ambient` must have shape \(3,\), got \(2,\)",
        ),
        (lambda: Material(specular=(1, 2)), r"`material.specular` must have shape \(3,\), got"),
        (lambda: Material(shininess=0.0), r"`material.shininess` must be positive, got 0"),
        (lambda: Material(shininess=(1, 2, 3)), r"`material.shininess` must have shape \(\), got"),
        (
            lambda: Scene(
                {"a": Mesh(FACES, material=Material(specular=0.0))},
                {"sky": SphericalHarmonics(np.zeros((9, 3)))},
            ),
            r"`material.specular` must be left out under spherical harmonics.*'a' has one",
        ),
        (lambda: Material(diffuse=np.nan), r"`material.diffuse` must be finite"),
        (lambda: DirectionalLight((0, 0, 0)), r"`direction` must not be zero"),
        (
            lambda: DirectionalLight((1e-300, 0, 0)),
            r"`direction` must have a length between 1e-100 and 1e\+100, got .* Give a unit vector",
        ),
        (lambda: DirectionalLight((1e-170, 1e-170, 0)), r"`direction` must have a length between"),
        (lambda: DirectionalLight((1e-200, 1e-200, 0)), r"`direction` must have a length between"),
        (lambda: DirectionalLight((1e200, 1e200, 0)), r"`direction` must have a length between"),
        (lambda: DirectionalLight((0, 0, 1), 1.0), r"`color` must have shape \(3,\), got \(\)"),
        (lambda: Mesh(FACES, uv=UV), r"`uv` needs a `texture`"),
        (lambda: Mesh(FACES, uv_faces=FACES), r"`uv_faces` needs a `texture`"),
        (lambda: Mesh(FACES, texture=TEXTURE), r"`texture` needs `uv`"),
        (
            lambda: Mesh(FACES, np.ones((1, 3)), texture=TEXTURE, uv=UV),
            r"Give `face_colors` or `texture`, not both",
        ),
        (
            lambda: Mesh(FACES, vertex_colors=np.ones((3, 3)), texture=TEXTURE, uv=UV),
            r"Give `vertex_colors` or `texture`, not both",
        ),
        (
            lambda: Mesh(FACES, texture=TEXTURE, uv=np.ones((3, 3))),
            r"`uv` must have shape \(n_uv, 2\), got \(3, 3\). A column for u and one for v",
        ),
        (
            lambda: Mesh(FACES, texture=TEXTURE, uv=UV, uv_faces=[[0, 3, 1]]),
            r"`uv_faces` must index the 3 rows of `uv`, got \[0, 3, 1\] in face 0",
        ),
        (
            lambda: Mesh(FACES, texture=TEXTURE, uv=UV, uv_faces=[[0, -1, 1]]),
            r"`uv_faces` must index the 3 rows of `uv`, got \[0, -1, 1\] in face 0",
        ),
        (
            lambda: Mesh(FACES, texture=TEXTURE, uv=UV, uv_faces=[[0, 1]]),
            r"`uv_faces` must have shape \(1, 3\), got \(1, 2\)",
        ),
        (lambda: Mesh(FACES, color_faces=FACES), r"`color_faces` needs `vertex_colors`"),
        (
            lambda: Mesh(FACES, vertex_colors=np.ones((3, 3)), color_faces=[[0, 3, 1]]),
            r"`color_faces` must index the 3 rows of `vertex_colors`, got \[0, 3, 1\] in face 0",
        ),
        (lambda: Scene({"camera": Mesh(FACES)}), r"`objects` must not use the name 'camera'"),
        (lambda: Scene({"a.b": Mesh(FACES)}), r"`objects` must not use the name 'a.b'"),
        (
            lambda: Scene({"a": Mesh(FACES)}, {"a": DirectionalLight((0, 0, 1))}),
            r"`lights` must not use the name of an object, got 'a'",
        ),
    ],
)
def test_a_scene_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scene({"a": FACES}), r"`objects\['a'\]` must be a Mesh, got list"),
        (lambda: Scene({}, {"a": 1.0}), r"`lights\['a'\]` must be a DirectionalLight or a Sph"),
        (lambda: Mesh(FACES, texture=np.ones((2, 2, 3))), r"`texture` must be a Texture, got "),
        (lambda: Mesh(FACES, material=0.3), r"`material` must be a Material, got float"),
    ],
)
def test_what_is_not_of_the_kind_is_refused(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("size", [1e-99, 1.0, 1e99])
def test_a_direction_may_be_very_short_or_long(size):
    light = DirectionalLight((3.0 * size, 4.0 * size, 0.0))
    np.testing.assert_allclose(light.unit_direction(), (0.6, 0.8, 0.0), rtol=1e-15)


def test_without_lights_colours_are_drawn_as_they_are():
    faces, x = [[0, 1, 2]], np.array([[-9.0, -9, 0], [9, -9, 0], [0, 9, 0]])
    view = Camera((0, 0, 3.0), (0, 0, 0))
    triangle, dim = Mesh(faces, [[0.8, 0.5, 0.2]]), Material(ambient=0.4)
    for mesh, shade in ((triangle, 1.0), (replace(triangle, material=dim), 0.4)):
        image = rasterize(Scene({"t": mesh}), view, SoftRasterizer(blend=Hard()), {"t": x}, (2, 2))
        np.testing.assert_allclose(image[0, 0, :3], shade * np.array([0.8, 0.5, 0.2]), rtol=1e-15)
    lit = Scene({"t": triangle}, {"sun": DirectionalLight((0, 0, 1))})
    assert lit.objects["t"].material.ambient == 0.4
    assert triangle.material.ambient is None
