import numpy as np
import pytest

from adjsim.meshes.grid import box_tets
from render.camera import Camera
from render.soft_raster import SoftRasterizer, rasterize
from studies.first_frame import FirstFrame, Look, given_look


SIZE = (24, 32)


def first_frame(target=None):
    """A box seen on three of its sides."""
    mesh = box_tets((1, 1, 1), (1.0, 1.0, 1.0), (-0.5, -0.5, -0.5))
    surface = mesh.surface()
    camera = Camera((2.0, 1.5, 2.5), (0.0, 0.0, 0.0), fov_y=35.0)
    rasterizer = SoftRasterizer(sigma=(0.5 * 2.0 / SIZE[0]) ** 2)
    target = np.zeros((*SIZE, 3)) if target is None else target
    return FirstFrame(surface.local_faces, mesh.points[surface.nodes], camera, rasterizer, target)


def picture(look, plate):
    first = first_frame().over(plate)
    drawn = (look.scene(first.faces), first.camera, first.rasterizer, {"body": first.vertices})
    return rasterize(*drawn, SIZE)[..., :3]


def test_colour_and_lamp_are_found_from_one_picture():
    hidden = Look(np.array([0.3, 0.2, 0.1]), np.array([0.5, 0.6, 0.7]), np.array([0.3, 0.9, 0.2]))
    plate = np.broadcast_to([0.2, 0.3, 0.4], (*SIZE, 3))
    target = picture(hidden, plate)
    start = given_look({"color": [0.5, 0.5, 0.5], "ambient": 0.5, "light": [1.0, 1.0, 1.0]})
    found = first_frame(target).over(plate).fit(start)
    # Three sides, three shades a channel: the fit is exact up to least_squares' ftol = 1e-8.
    assert np.abs(picture(found, plate) - target).max() < 1e-3
    assert found.direction == pytest.approx(
        hidden.direction / np.linalg.norm(hidden.direction), abs=0.02
    )


def test_the_background_is_what_the_body_leaves_free():
    plate = np.broadcast_to([0.2, 0.3, 0.4], (*SIZE, 3))
    look = given_look({"color": [0.9, 0.1, 0.1], "ambient": 1.0, "light": [1.0, 1.0, 1.0]})
    assert first_frame(picture(look, plate)).background() == pytest.approx(
        [0.2, 0.3, 0.4], abs=1e-3
    )


def test_the_plate_shows_where_the_body_is_not(rng):
    plate = rng.uniform(size=(*SIZE, 3))
    first = first_frame()
    image = picture(Look(np.ones(3), np.zeros(3), np.ones(3)), plate)
    free = first.alpha() < 1e-12
    assert free.any()
    assert np.abs(image[free] - plate[free]).max() < 1e-11
