import numpy as np
import pytest

from render.blending import DIBR, Hard, Over, Softmax
from render.raster.fragments import fragment_logit
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer
from tests.render.scenes import camera, soft, two_tetrahedra


STRAIGHT = {"eye": (0, 0, 4), "target": (0, 0, 0), "up": (0, 1, 0)}


def boxes(vertices, rasterizer=None, **view):
    """Boxes of pixels of one triangle."""
    scene = Scene({"t": Mesh([[0, 1, 2]])})
    lens = camera(**{**STRAIGHT, **view})
    x = {"t": np.array(vertices, float)}
    (job,) = pack(scene, [lens], rasterizer or soft(), x, (20, 30))
    return setup_frame(job, 0).faces.box[0]


LEFT_TURN = [[-1, -1, 0], [1, -1, 0], [0, 1, 0]]
RIGHT_TURN = LEFT_TURN[::-1]


def is_empty(box):
    return box[0] >= box[1]


def test_culling_keeps_the_faces_that_turn_left_on_the_screen():
    assert not is_empty(boxes(LEFT_TURN, soft(cull=True)))
    assert is_empty(boxes(RIGHT_TURN, soft(cull=True)))
    assert not is_empty(boxes(RIGHT_TURN))


def test_near_and_far_themselves_are_drawn_and_beyond_them_nothing_is():
    assert not is_empty(boxes(LEFT_TURN, near=4.0))
    assert not is_empty(boxes(LEFT_TURN, far=4.0))
    assert is_empty(boxes(LEFT_TURN, near=np.nextafter(4.0, 5.0)))
    assert is_empty(boxes(LEFT_TURN, far=np.nextafter(4.0, 3.0)))


@pytest.mark.parametrize(
    "vertices",
    [
        [[-1, -1, 0], [-1, -1, 0], [0, 1, 0]],
        [[-1, -1, 0], [0, 0, 0], [1, 1, 0]],
        [[0, -1, 0], [0, 1, 0], [0, 0.3, 1.0]],
        [[0.1, 0.2, 0.3]] * 3,
        [[0, 0, 0], [1e-17, 0, 0], [0, 1, 0]],
    ],
)
def test_a_triangle_without_area_on_the_screen_is_not_drawn(vertices):
    assert is_empty(boxes(vertices))


def test_a_triangle_off_the_screen_has_no_box():
    assert is_empty(boxes(np.add(LEFT_TURN, [30.0, 0, 0])))
    assert is_empty(boxes(np.add(LEFT_TURN, [0, -30.0, 0])))


def test_a_vertex_very_far_aside_gives_a_box_within_the_image():
    box = boxes([[-1, -1, 0], [1e100, -1, 0], [0, 1, 0]])
    assert box[0] >= 0
    assert box[1] <= 20
    assert 0 <= box[2] < box[3] <= 30


@pytest.mark.parametrize("blend", [Over(), Softmax(), DIBR(), Hard()])
@pytest.mark.parametrize("sigma", [1e-6, 1e-3, 0.1])
def test_the_box_holds_every_pixel_that_sees_the_face(rng, blend, sigma):
    scene, vertices = two_tetrahedra(rng)
    (job,) = pack(scene, [camera()], SoftRasterizer(sigma, blend=blend), vertices, (17, 23))
    faces = setup_frame(job, 0).faces
    seen = 0
    for f in range(8):
        corners = [tuple(faces.corners[f, 2 * k : 2 * k + 2]) for k in range(3)]
        for i, y in enumerate(job.grid.pixel_y):
            for j, x in enumerate(job.grid.pixel_x):
                if fragment_logit((x, y), *corners, job.settings.sigma) >= blend.lowest:
                    seen += 1
                    top, bottom, left, right = faces.box[f]
                    assert top <= i < bottom
                    assert left <= j < right
    assert seen > (10 if isinstance(blend, DIBR | Hard) else 50)


def test_the_shade_is_ambient_plus_lambert_of_every_light():
    scene = Scene(
        {"t": Mesh([[0, 1, 2]], [(0.5, 0.6, 0.7)], material=Material((0.1, 0.2, 0.3), 0.8))},
        {
            "front": DirectionalLight((0, 0, 2.0), (1.0, 0.5, 0.0)),
            "slant": DirectionalLight((3.0, 0, 4.0), (0.1, 0.2, 0.3)),
            "behind": DirectionalLight((0, 0, -1.0)),
        },
    )
    (job,) = pack(scene, [camera(**STRAIGHT)], soft(), {"t": np.array(LEFT_TURN, float)}, (8, 8))
    light = 0.8 * (np.array([1.0, 0.5, 0.0]) + 0.8 * np.array([0.1, 0.2, 0.3]))
    expected = (np.array([0.1, 0.2, 0.3]) + light) * [0.5, 0.6, 0.7]
    np.testing.assert_allclose(setup_frame(job, 0).faces.shaded[0, :3], expected, rtol=1e-14)
