import numpy as np
import pytest

from render.blending import DIBR
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from tests.render.scenes import camera, soft, two_tetrahedra


def draw(rng, change=None, size=(4, 5), scene=None):
    """Draw two tetrahedra after a change to their vertices."""
    two, vertices = two_tetrahedra(rng)
    if change is not None:
        change(vertices)
    return rasterize(scene or two, camera(), soft(), vertices, size)


def set_entry(at, value):
    def change(vertices):
        vertices["left"][at] = value

    return change


def replace(name, value):
    return lambda vertices: vertices.__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_entry((3, 1), np.nan), r"`vertices\['left'\]` must be finite, got nan at vertex 3, a"),
        (
            set_entry((0, 2), np.inf),
            r"`vertices\['left'\]` must be finite, got inf at vertex 0, a corner of face 0\.",
        ),
        (
            replace("right", np.full((2, 4, 3), [[[0.0]], [[np.nan]]])),
            r"`vertices\['right'\]` must be finite, got nan at vertex 0 of frame 1, a "
            r"corner of face 0\.",
        ),
        (
            replace("right", np.zeros((4, 2))),
            r"`vertices\['right'\]` must have shape \(n_vertices, 3\) or \(n_frames, "
            r"n_vertices, 3\), got \(4, 2\)",
        ),
        (replace("right", np.zeros((0, 4, 3))), r"and one frame, got shape \(0, 4, 3\)"),
        (
            replace("right", np.zeros((0, 3))),
            r"`vertices\['right'\]` must hold at least one vertex .* got shape \(0, 3\)\. Leave",
        ),
        (replace("right", "corners"), r"`vertices\['right'\]` must be an array of numbers"),
        (
            replace("left", np.zeros((3, 3))),
            r"`faces` of 'left' must index its 3 vertices, got \[0, 1, 3\] in face 1",
        ),
        (
            replace("right", np.zeros((5, 3))),
            r"`vertex_colors` of 'right' must have shape \(5, 3\).* got \(4, 3\).*`color_faces`",
        ),
        (
            replace("rihgt", np.zeros((4, 3))),
            r"Unknown object in `vertices` `rihgt`. Did you mean `right`\?",
        ),
        (
            lambda vertices: vertices.pop("right"),
            r"`vertices` must hold every object of the scene: 'right' is missing",
        ),
        (
            lambda v: v.update(left=np.ones((2, 4, 3)), right=np.ones((3, 4, 3))),
            r"`vertices\['right'\]` must have 2 frames like the objects before it, got 3",
        ),
    ],
)
def test_vertices_that_do_not_fit_are_refused(rng, change, message):
    with pytest.raises(ValueError, match=message):
        draw(rng, change)


@pytest.mark.parametrize("size", [(0, 5), (4, -1), (4,), (4, 5, 6), 7, (4.5, 5), "big", (True, 4)])
def test_an_image_without_pixels_is_refused(rng, size):
    with pytest.raises(ValueError, match=r"`size` must be \(height, width\), two positive whole"):
        draw(rng, size=size)


@pytest.mark.parametrize(
    ("side", "more", "message"),
    [
        (10**7, {}, r"1 of 10000000 x 10000000 pixels need 3,200,000,000,000,000 bytes\. Draw sm"),
        (10**10, {}, r"1 of 10000000000 x 10000000000 pixels need "),  # more than 63 bits count
        (10**6, {"supersample": 3}, r"pixels of 3 x 3 samples a pixel need 320,000,000,000,000 "),
    ],
)
def test_an_image_beyond_all_memory_is_refused_with_its_bytes(rng, side, more, message):
    scene, vertices = two_tetrahedra(rng)
    with pytest.raises(
        MemoryError, match=rf"`size` must leave the images room in memory: .*{message}"
    ):
        rasterize(scene, camera(), soft(**more), vertices, (side, side))


def test_scene_and_camera_may_not_be_swapped(rng):
    scene, vertices = two_tetrahedra(rng)
    with pytest.raises(TypeError, match=r"`scene` must be a Scene, got Camera"):
        rasterize(camera(), scene, soft(), vertices, (4, 5))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("view", "error", "message"),
    [
        (7, TypeError, r"`camera` must be a camera or a sequence of cameras, got int"),
        ([camera(), 7], TypeError, r"`camera\[1\]` must be a camera, got int"),
        ([], ValueError, r"`camera` must hold at least one camera, got an empty sequence"),
    ],
)
def test_what_is_no_camera_is_refused(rng, view, error, message):
    scene, vertices = two_tetrahedra(rng)
    with pytest.raises(error, match=message):
        rasterize(scene, view, soft(), vertices, (4, 5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigma": 0.0}, r"`rasterizer.sigma` must be positive, got 0. In screen units squared"),
        ({"sigma": -1e-5}, r"`rasterizer.sigma` must be positive, got -1e-05"),
        ({"gamma": 0.0}, r"`rasterizer.gamma` must be positive, got 0"),
        ({"epsilon": np.nan}, r"`rasterizer.epsilon` must be finite"),
        ({"background": (0, 0)}, r"`rasterizer.background` must have shape \(3,\), got \(2,\)"),
        (
            {"background": np.zeros((4, 5, 4))},
            r"`rasterizer.background` must have shape \(height, width, 3\), got \(4, 5, 4\)\. It ",
        ),
        (
            {"background": (0.0, 0.0, 0.0, 1.0)},
            r"\(3,\), got \(4,\)\. It is RGB: alpha cannot be set.* Pass background\[\.\.\., :3\]",
        ),
        ({"supersample": 0}, r"`rasterizer.supersample` must be a whole number of .*, got 0"),
        ({"supersample": 1.5}, r"`rasterizer.supersample` must be a whole number of .* got 1\.5"),
    ],
)
def test_a_rasterizer_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        SoftRasterizer(**changes)


@pytest.mark.parametrize("supersample", [1, 2])
def test_a_background_of_another_size_than_the_image_is_refused(rng, supersample):
    scene, vertices = two_tetrahedra(rng)
    raster = soft(background=np.zeros((8, 10, 3)), supersample=supersample)
    message = r"`rasterizer.background` must have a colour for each .* \(4, 5, 3\), .* \(8, 10, 3\)"
    with pytest.raises(ValueError, match=message):
        rasterize(scene, camera(), raster, vertices, (4, 5))


def test_a_blend_by_name_is_refused():
    with pytest.raises(TypeError, match=r"`rasterizer.blend` must be Over\(\), Softmax\(\)"):
        SoftRasterizer(blend="over")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kappa", [0.0, -1e-4])
def test_a_softness_of_dibr_that_cannot_be_is_refused(kappa):
    with pytest.raises(ValueError, match=r"`blend.kappa` must be positive, got .*units squared"):
        DIBR(kappa)


def test_whole_numbers_as_vertices_are_drawn_in_float64():
    scene = Scene({"t": Mesh([[0, 1, 2]])})
    image = rasterize(scene, camera(), soft(), {"t": [[-1, -1, 0], [1, -1, 0], [0, 1, 0]]}, (4, 4))
    assert image.dtype == np.float64
    assert image[..., 3].max() > 0.5
