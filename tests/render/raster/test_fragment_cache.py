from dataclasses import replace

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from adjoint.render.raster import fragment_cache
from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.scene import Scene
from render.soft_raster import rasterize
from tests.render.scenes import camera, rounded, soft, textured, two_tetrahedra


SIZE = (70, 40)


def as_it_is(scene):
    return scene


def one_colour_each(scene):
    objects = {name: replace(mesh, vertex_colors=None) for name, mesh in scene.objects.items()}
    return Scene(objects, scene.lights)


@pytest.fixture
def nothing_kept(monkeypatch):
    return lambda: monkeypatch.setattr(fragment_cache, "KEPT_BYTES", 0)


@pytest.mark.parametrize("look", [as_it_is, one_colour_each, rounded, textured])
@pytest.mark.parametrize("blend", [Over(), Softmax(), DIBR(2e-3), Hard()])
def test_what_is_kept_changes_no_bit(rng, nothing_kept, look, blend):
    scene, vertices = two_tetrahedra(rng)
    scene, rasterizer = look(scene), soft(blend=blend, sigma=1e-3)
    vertices = {name: np.stack([x, x + 0.1]) for name, x in vertices.items()}
    args = (scene, camera(), rasterizer, vertices, SIZE)
    kept_one = record_images(*args, threads=1)
    kept_two = record_images(*args, threads=2)
    assert all(
        fragments is not None for fragments in [*kept_one.drawing.kept, *kept_two.drawing.kept]
    )
    nothing_kept()
    again = record_images(*args, threads=1)
    assert again.drawing.kept == [None, None]
    adj = rng.normal(size=again.images.shape)
    expected = again.vjp(adj)
    tangents = {path: rng.normal(size=gradient.shape) for path, gradient in expected.items()}
    pushed = again.jvp(tangents)
    assert np.abs(pushed).max() > 0.0
    np.testing.assert_array_equal(again.images, rasterize(*args))
    for record in (kept_one, kept_two):
        np.testing.assert_array_equal(record.images, again.images)
        np.testing.assert_array_equal(record.jvp(tangents), pushed)
        gradients = record.vjp(adj)
        for path, gradient in expected.items():
            np.testing.assert_array_equal(gradients[path], gradient, err_msg=path)
    assert any(np.abs(gradient).max() > 0 for gradient in expected.values())


@pytest.mark.parametrize("blend", [Over(), Softmax(), DIBR(2e-3), Hard()])
def test_what_is_kept_changes_no_bit_of_depth_normals_and_masks(rng, nothing_kept, blend):
    scene, vertices = two_tetrahedra(rng)
    args = (rounded(scene), camera(), soft(blend=blend, sigma=1e-3), vertices, SIZE)
    kept = record_outputs(*args)
    assert kept.drawing.kept[0] is not None
    nothing_kept()
    again = record_outputs(*args)
    assert again.drawing.kept == [None]
    adj = {name: rng.normal(size=image.shape) for name, image in again.images.items()}
    expected = again.vjp(adj)
    tangents = {path: rng.normal(size=gradient.shape) for path, gradient in expected.items()}
    pushed, pushed_again = kept.jvp(tangents), again.jvp(tangents)
    for name, image in again.images.items():
        np.testing.assert_array_equal(kept.images[name], image)
        np.testing.assert_array_equal(pushed[name], pushed_again[name])
    gradients = kept.vjp(adj)
    for path, gradient in expected.items():
        np.testing.assert_array_equal(gradients[path], gradient, err_msg=path)


def test_the_arrays_of_a_block_begin_lines_of_the_cache_and_share_no_byte():
    wanted = (((7,), np.int32), ((0, 3), np.float32), ((5, 3), np.float64), ((1,), np.int64))
    arrays = fragment_cache.in_one_block(*wanted)
    assert [(array.shape, array.dtype) for array in arrays] == [(s, np.dtype(t)) for s, t in wanted]
    at = [array.__array_interface__["data"][0] for array in arrays if array.size]
    assert all(first % fragment_cache.LINE == 0 for first in at)
    for k, array in enumerate(arrays):
        array[...] = k
    assert all((array == k).all() for k, array in enumerate(arrays))


def test_a_record_pushes_column_after_column_as_if_each_were_drawn_anew(rng):
    scene, vertices = two_tetrahedra(rng)
    args = (textured(scene), [camera(), camera(fov_y=50.0)], soft(supersample=2), vertices, (9, 8))
    record = record_images(*args)
    for path, shape in record.shapes.items():
        column = {path: rng.normal(size=shape)}
        images, expected = rasterize_jvp(*args, column)
        np.testing.assert_array_equal(record.jvp(column), expected)
        np.testing.assert_array_equal(record.images, images)
    with pytest.raises(ValueError, match=r"path in `tangents` `left.vertexes`. Did you mean"):
        record.jvp({"left.vertexes": vertices["left"]})
