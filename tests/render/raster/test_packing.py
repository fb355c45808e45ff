import gc
import weakref
from dataclasses import dataclass, replace

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from adjoint.render.soft_raster import record_images
from render.raster.packing import MOST_PACKED, PACKED, pack
from render.scene import Mesh, Scene
from tests.render.scenes import camera, rounded, soft, textured, two_tetrahedra


SIZE = (12, 10)


def test_a_scene_is_packed_once_for_vertices_of_one_type(rng):
    scene, vertices = two_tetrahedra(rng)
    (first,) = pack(scene, [camera()], soft(), vertices, SIZE)
    moved = {name: x + 0.1 for name, x in vertices.items()}
    (again,) = pack(scene, [camera()], soft(background=(0.1, 0.2, 0.3)), moved, (5, 6))
    assert again.scene.face_colors is first.scene.face_colors
    assert again.corners.corners is first.corners.corners
    np.testing.assert_array_equal(first.scene.background.ravel(), soft().background)
    np.testing.assert_array_equal(again.scene.background.ravel(), (0.1, 0.2, 0.3))
    single = {name: x.astype(np.float32) for name, x in vertices.items()}
    (narrow,) = pack(scene, [camera()], soft(), single, SIZE)
    assert narrow.scene.face_colors.dtype == np.float32
    np.testing.assert_array_equal(narrow.scene.faces, first.scene.faces)


def test_other_numbers_of_vertices_are_packed_and_checked_anew():
    scene = Scene({"a": Mesh([[0, 1, 2]]), "b": Mesh([[0, 1, 3]])})
    x = np.arange(15.0).reshape(5, 3)
    (few,) = pack(scene, [camera()], soft(), {"a": x[:3], "b": x[:4]}, SIZE)
    (more,) = pack(scene, [camera()], soft(), {"a": x, "b": x[:4]}, SIZE)
    np.testing.assert_array_equal(few.scene.faces, [[0, 1, 2], [3, 4, 6]])
    np.testing.assert_array_equal(more.scene.faces, [[0, 1, 2], [5, 6, 8]])
    for _ in range(2):
        with pytest.raises(ValueError, match=r"`faces` of 'b' must index its 3 vertices"):
            pack(scene, [camera()], soft(), {"a": x, "b": x[:3]}, SIZE)


def test_a_scene_keeps_what_it_packed_last_and_a_changed_copy_nothing(rng):
    scene, vertices = two_tetrahedra(rng)
    jobs = []
    for more in range(5):
        longer = {name: np.concatenate([x, x[: 1 + more % 4]]) for name, x in vertices.items()}
        mesh = replace(scene.objects["right"], vertex_colors=None)
        jobs.append((Scene({"left": mesh, "right": mesh}), longer))
    reused = jobs[0][0]
    for _, longer in jobs:
        pack(reused, [camera()], soft(), longer, SIZE)
    assert len(vars(reused)[PACKED]) == MOST_PACKED
    (first,), (again,) = (pack(reused, [camera()], soft(seamless=True), longer, SIZE) for _ in "ab")
    assert first.edges is again.edges
    assert len(first.edges.number) == 8
    assert PACKED not in vars(replace(reused, lights={}))


def test_a_scene_of_ones_own_class_is_packed_too(rng):
    @dataclass(frozen=True)
    class Own(Scene):
        """Compared by what it holds, and so without a hash."""

    scene, vertices = two_tetrahedra(rng)
    (job,) = pack(Own(scene.objects, scene.lights), [camera()], soft(), vertices, SIZE)
    assert len(job.scene.faces) == 8


@pytest.mark.parametrize("look", [lambda scene: scene, rounded, textured])
def test_nothing_writes_to_what_is_packed_once(rng, look):
    scene, vertices = two_tetrahedra(rng)
    args = (look(scene), camera(), soft(sigma=1e-2, supersample=2), vertices, SIZE)
    (job,) = pack(args[0], [camera()], *args[2:])
    packed = (*job.scene, *job.corners, *job.edges)
    before = [array.copy() for array in packed]
    images = record_images(*args)
    gradient = images.vjp(np.ones_like(images.images))
    images.jvp({path: np.ones_like(value) for path, value in gradient.items()})
    outputs = record_outputs(*args)
    outputs.vjp({name: np.ones_like(value) for name, value in outputs.images.items()})
    outputs.jvp({path: np.ones_like(value) for path, value in gradient.items()})
    for array, expected in zip(packed, before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_what_was_packed_goes_with_its_scene(rng):
    scene, vertices = two_tetrahedra(rng)
    (job,) = pack(scene, [camera()], soft(), vertices, SIZE)
    assert len(vars(scene)[PACKED]) == 1
    kept = weakref.ref(job.scene.faces)
    del job
    assert kept() is not None
    del scene
    gc.collect()
    assert kept() is None
