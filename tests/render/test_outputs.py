from dataclasses import replace

import numpy as np
import pytest

from adjoint.render.outputs import rasterize_outputs_jvp, record_outputs
from adjoint.render.soft_raster import rasterize_jvp
from render.blending import DIBR, Hard, Over, Softmax
from render.outputs import Output, rasterize_outputs
from render.scene import Scene
from render.soft_raster import rasterize
from tests.reference.outputs import reference_outputs
from tests.render.scenes import (
    BLENDS,
    camera,
    fitted,
    layered_problem,
    moved,
    plain,
    soft,
    two_tetrahedra,
)


SIZE = (12, 15)
OTHERS = ("depth", "normals", "mask")


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize(("size", "k"), [((24, 30), 1), ((1, 30), 1), ((30, 1), 1), ((6, 7), 2)])
def test_outputs_look_as_in_the_reference(rng, blend, size, k):
    scene, _, _, vertices = layered_problem(rng, blend)
    view, raster = fitted(size, blend=blend, gamma=0.3, epsilon=0.9, supersample=k)
    args = (scene, replace(view, near=0.5, far=9.0), raster, vertices)
    images = rasterize_outputs(*args, size)
    assert 0.2 < images["rgba"][..., 3].mean() < 0.95
    objects, _, lens, raster = plain(*args)
    expected = reference_outputs(objects, lens, raster, size)
    for name in OTHERS:
        # Depths are some 4 m, with the relative error of the coverage: 1e-13.
        np.testing.assert_allclose(images[name], expected[name], rtol=0, atol=4e-12)
    np.testing.assert_array_equal(images["rgba"], rasterize(*args, size))


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("output", list(Output))
def test_the_adjoint_of_an_output_is_its_derivative(rng, blend, output):
    # As in test_soft_raster.py; here all vertices move together with the camera. Along directions
    # where the differences disagree with themselves there is a jump or a kink.
    args = layered_problem(rng, blend)
    args = (two_tetrahedra(np.random.default_rng(0))[0], *args[1:])  # `moved` moves flat objects
    record = record_outputs(*args, SIZE, [output])
    adj = {output: rng.normal(size=record.images[output].shape)}
    wrt = ["left.vertices", "right.vertices", "camera.eye", "camera.fov_y"]
    gradient = record.vjp(adj, wrt)
    checked = 0
    for _ in range(30):
        tangent = {path: rng.normal(size=value.shape) for path, value in gradient.items()}

        def loss(step, tangent=tangent):
            images = rasterize_outputs(*moved(args, tangent, step), SIZE, [output])
            return float(np.sum(adj[output] * images[output]))

        slopes = [(loss(h) - loss(-h)) / (2 * h) for h in (1e-5, 2e-5, 4e-5)]
        fine, coarse = ((4 * slopes[k] - slopes[k + 1]) / 3 for k in range(2))
        scale = sum(np.linalg.norm(gradient[p]) * np.linalg.norm(tangent[p]) for p in gradient)
        if abs(fine - coarse) <= 5e-8 * scale:
            checked += 1
            pulled = sum(np.sum(gradient[path] * tangent[path]) for path in gradient)
            assert abs(fine - pulled) <= 1e-7 * scale
        if scale == 0.0:  # masks of hard edges
            assert output is Output.MASK
            assert isinstance(blend, DIBR | Hard)
            return
        if checked == 3:
            return
    pytest.fail("no three directions without a jump or a kink nearby")


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("k", [1, 2])
def test_tangents_and_adjoints_of_outputs_are_transposes_on_any_threads(rng, blend, k):
    args = (*layered_problem(rng, blend, supersample=k), (40 // k, 70 // k))  # six tiles
    record = record_outputs(*args, threads=1)
    seen = record.images["rgba"][..., 3] > 0.01
    assert seen[:, : 32 // k].any()
    assert seen[:, 32 // k :].any()
    adj = {name: rng.normal(size=value.shape) for name, value in record.images.items()}
    for names in (("rgba", *OTHERS), ("depth",), ("normals",), ("mask",)):
        some = {name: adj[name] for name in names}
        gradient = record.vjp(some)
        tangents = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
        images, pushed = rasterize_outputs_jvp(*args, tangents)
        pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
        scale = sum(np.linalg.norm(pushed[n]) * np.linalg.norm(some[n]) for n in names)
        assert scale > 0 or (names == ("mask",) and isinstance(blend, DIBR | Hard))
        assert abs(sum(np.sum(pushed[n] * some[n]) for n in names) - pulled) <= 1e-12 * scale
    planes = () if isinstance(blend, Softmax) else ("camera.near", "camera.far")  # act on depth
    of_colors = {path: tan for path, tan in tangents.items() if path not in planes}
    np.testing.assert_array_equal(pushed["rgba"], rasterize_jvp(*args, of_colors)[1])
    two, gradient = record_outputs(*args, threads=2), record.vjp(adj)
    for name, value in two.images.items():
        np.testing.assert_array_equal(value, record.images[name])
        np.testing.assert_array_equal(value, images[name])
    for path, value in two.vjp(adj).items():
        np.testing.assert_array_equal(value, gradient[path])
    for name, value in two.jvp(tangents).items():
        np.testing.assert_array_equal(value, pushed[name])


def test_a_scene_without_objects_has_outputs_and_no_masks():
    images = rasterize_outputs(Scene({}), camera(far=9.0), soft(), {}, (3, 4))
    assert {name: value.shape[2:] for name, value in images.items()} == {
        "rgba": (4,), "depth": (), "normals": (3,), "mask": (0,),
    }  # fmt: skip
    np.testing.assert_array_equal(images["depth"], np.full((3, 4), 9.0))


def test_frames_and_views_come_first_and_are_those_drawn_alone(rng):
    scene, view, raster, vertices = layered_problem(rng, Over())
    path = vertices["left"] + rng.normal(scale=0.1, size=(3, 1, 3))
    moving, views = {**vertices, "left": path}, [view, camera(fov_y=50.0)]
    record = record_outputs(scene, views, raster, moving, SIZE, ["depth", "normals"])
    assert record.images["depth"].shape == (2, 3, *SIZE)
    assert record.images["normals"].shape == (2, 3, *SIZE, 3)
    adj = {name: rng.normal(size=value.shape) for name, value in record.images.items()}
    gradient, total = record.vjp(adj), 0
    tangents = {"right.vertices": rng.normal(size=vertices["right"].shape)}
    pushed = record.jvp(tangents)
    for v, viewpoint in enumerate(views):
        for k in range(3):
            args = (scene, viewpoint, raster, {**vertices, "left": path[k]}, SIZE)
            alone = record_outputs(*args, ["normals", "depth"])
            np.testing.assert_array_equal(alone.images["depth"], record.images["depth"][v, k])
            pulled = alone.vjp({name: value[v, k] for name, value in adj.items()})
            for name, tan in alone.jvp(tangents).items():
                np.testing.assert_array_equal(tan, pushed[name][v, k])
            total = total + pulled["right.vertices"]
    assert np.abs(total).max() > 0.1
    np.testing.assert_allclose(gradient["right.vertices"], total, rtol=1e-12, atol=1e-12)


def test_float32_stays_float32_and_near_float64(rng):
    scene, view, raster, vertices = layered_problem(rng, Over())
    single = {name: x.astype(np.float32) for name, x in vertices.items()}
    half, full = (record_outputs(scene, view, raster, x, SIZE) for x in (single, vertices))
    adj = {name: rng.normal(size=value.shape) for name, value in full.images.items()}
    gradient, expected = half.vjp(adj), full.vjp(adj)
    for name, value in half.images.items():
        assert value.dtype == np.float32
        # 1e-7/sigma = 5e-5 in the logits, times depths up to 9
        np.testing.assert_allclose(value, full.images[name], atol=5e-3)
    for path, value in gradient.items():
        assert value.dtype == np.float32
        error = np.linalg.norm(value - expected[path])
        assert error <= 0.02 * np.linalg.norm(expected[path]) + 1e-4


def test_unknown_outputs_and_shapes_are_refused(rng):
    args = (*layered_problem(rng, Over()), (4, 5))
    with pytest.raises(ValueError, match=r"`outputs` must be among rgba, depth, .* got 'deep'"):
        rasterize_outputs(*args, ["rgba", "deep"])
    with pytest.raises(ValueError, match=r"`outputs` must name at least one of rgba, .* got none"):
        rasterize_outputs(*args, [])
    record = record_outputs(*args, ["depth"])
    with pytest.raises(ValueError, match=r"output in `adj_images` `mask`"):
        record.vjp({"mask": np.ones((4, 5, 2))})
    with pytest.raises(ValueError, match=r"`adj_images\['depth'\]` must have shape \(4, 5\), got"):
        record.vjp({"depth": np.ones((4, 5, 1))})
    with pytest.raises(ValueError, match=r"path in `wrt` `left.vertexes`. Did you mean"):
        record.vjp({"depth": np.ones((4, 5))}, ["left.vertexes"])
    with pytest.raises(ValueError, match=r"`left.vertexes`. Did you mean"):
        record.jvp({"left.vertexes": np.ones((4, 3))})
