"""A picture's parameters by path, and the picture with other values of them."""

import dataclasses

import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from adjoint.verify.systems import pixels
from adjoint.verify.systems.views import SIZE, VIEWS
from render.camera import Camera
from render.soft_raster import rasterize


SEVERAL = dataclasses.replace(pixels.over(), camera=VIEWS, size=SIZE)
PICTURES = [pixels.over(), pixels.softmax(), pixels.sky(), pixels.textured(), SEVERAL]


@pytest.mark.parametrize("picture", PICTURES)
def test_it_has_the_paths_and_shapes_of_gradients(picture):
    shapes = {path: value.shape for path, value in picture.parameters().items()}
    assert shapes == record_images(*picture.arguments).shapes


@pytest.mark.parametrize("picture", PICTURES)
def test_other_values_are_those_of_the_picture_they_give(picture):
    values = {path: 1.01 * value + 1e-3 for path, value in picture.parameters().items()}
    moved = picture.at(values)
    parameters = moved.parameters()
    assert parameters.keys() == values.keys()
    for path, value in values.items():
        np.testing.assert_array_equal(parameters[path], value, err_msg=path)
    assert not np.array_equal(rasterize(*moved.arguments), rasterize(*picture.arguments))


def test_what_has_no_other_value_is_kept():
    moved = SEVERAL.at({"camera.2.translation": (0.0, 0.0, -4.0)})
    assert moved.scene is SEVERAL.scene
    assert moved.camera[0] is VIEWS[0]
    assert moved.camera[2] is not VIEWS[2]
    assert isinstance(pixels.over().at({}).camera, Camera)


def test_an_unknown_path_is_refused():
    with pytest.raises(
        ValueError, match=r"path in `values` `camera.eyes`. Did you mean `camera.eye`"
    ):
        pixels.over().at({"camera.eyes": (0.0, 0.0, 1.0)})
