import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from render.blending import DIBR, Hard, Over
from render.outputs import pack_outputs, rasterize_outputs
from render.raster.layers import COLOR, DEPTH, MASK, NORMALS, Output, layers_of, of_frame
from render.scene import Mesh, Scene
from tests.render.scenes import BLENDS, camera, layered_problem, soft


SIZE = (12, 15)
OTHERS = ("depth", "normals", "mask")


def test_layers_begin_with_colours_and_end_with_normals(rng):
    scene, view, raster, vertices = layered_problem(rng, Over())
    (job,) = pack_outputs(scene, (view,), raster, vertices, SIZE, tuple(Output))
    layers = layers_of(job, tuple(Output))
    assert layers.kinds.tolist() == [COLOR, DEPTH, MASK, NORMALS]
    np.testing.assert_array_equal(layers.behind[:, 0, 0], [[0, 0, 0], [9, 0, 0], *np.zeros((2, 3))])
    flat = of_frame(job, 0, layers).flat
    np.testing.assert_allclose(np.linalg.norm(flat, axis=1), 1.0, rtol=1e-15)
    assert layers_of(job, ("depth",)).kinds.tolist() == [COLOR, DEPTH]
    assert of_frame(job, 0, layers_of(job, ("depth",))).flat.shape == (0, 3)


def test_masks_add_up_to_alpha_in_over_and_to_one_where_a_face_is_nearest(rng):
    images = rasterize_outputs(*layered_problem(rng, Over()), SIZE, ["rgba", "mask"])
    np.testing.assert_allclose(images["mask"].sum(axis=-1), images["rgba"][..., 3], atol=1e-15)
    images = rasterize_outputs(*layered_problem(rng, DIBR(2e-3)), SIZE, ["rgba", "mask"])
    covered = images["rgba"][..., 3] == 1.0
    np.testing.assert_array_equal(images["mask"].sum(axis=-1), np.where(covered, 1.0, 0.0))


def test_four_objects_have_a_mask_each(rng):
    square = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    mesh = Mesh([[0, 1, 2], [0, 2, 3]])
    places = {"a": (-1, -1, 0), "b": (1, -1, 0), "c": (1, 1, 0), "d": (-1, 1, 0)}
    scene = Scene(dict.fromkeys(places, mesh))
    vertices = {name: square + at for name, at in places.items()}
    view = camera(eye=(0, 0, 3.0), target=(0, 0, 0), up=(0, 1, 0), fov_y=90.0)
    mask = rasterize_outputs(scene, view, soft(blend=Hard()), vertices, (6, 6), "mask")["mask"]
    assert mask.shape == (6, 6, 4)
    expected = [(4, 1), (4, 4), (1, 4), (1, 1)]
    for o, (i, j) in enumerate(expected):
        np.testing.assert_array_equal(mask[i, j], np.eye(4)[o])


@pytest.mark.parametrize("blend", BLENDS)
def test_where_nothing_is_drawn_depth_is_that_of_far_and_the_rest_is_zero(rng, blend):
    scene, view, raster, vertices = layered_problem(rng, blend)
    away = {name: x + np.array([0, 0, 50.0]) for name, x in vertices.items()}
    record = record_outputs(scene, view, raster, away, (3, 4))
    np.testing.assert_array_equal(record.images["depth"], 9.0)
    np.testing.assert_array_equal(record.images["normals"], 0.0)
    np.testing.assert_array_equal(record.images["mask"], 0.0)
    gradient = record.vjp({name: np.ones_like(record.images[name]) for name in OTHERS})
    assert gradient.pop("camera.far") == 12.0  # pixels
    for value in gradient.values():
        np.testing.assert_array_equal(value, 0.0)
