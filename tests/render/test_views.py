"""Several views of one scene in one call, and frames in each."""

import weakref

import numpy as np
import pytest

from adjoint.render import paths
from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.camera import Camera
from render.lenses import Intrinsics, Orthographic
from render.posed_camera import PosedCamera
from render.soft_raster import rasterize
from tests.render.scenes import camera, soft, two_tetrahedra


SIZE = (12, 16)
VIEWS = [
    camera(),
    PosedCamera((0.1, 2.0, -0.1), (0.1, -0.05, -3.3), fov_y=42.0, near=0.5, far=9.0),
    Camera((-2.0, 1.0, 2.8), (0, 0, 0), lens=Intrinsics((17.0, 16.0), (7.0, 6.2), SIZE, 0.4)),
    PosedCamera((-0.6, 0.3, 0.2), (0.0, 0.1, -3.0), lens=Orthographic(2.7)),
]


def problem(rng, dtype=np.float64):
    scene, vertices = two_tetrahedra(rng)
    vertices["left"] = vertices["left"] + 0.1 * rng.normal(size=(3, 1, 3))
    return scene, soft(sigma=1e-2), {name: x.astype(dtype) for name, x in vertices.items()}


def test_views_are_drawn_as_one_by_one_to_the_bit(rng):
    scene, raster, vertices = problem(rng)
    images = rasterize(scene, VIEWS, raster, vertices, SIZE)
    assert images.shape == (len(VIEWS), 3, *SIZE, 4)
    for view, image in zip(VIEWS, images, strict=True):
        assert image[..., 3].max() > 0.9
        np.testing.assert_array_equal(image, rasterize(scene, view, raster, vertices, SIZE))
    at_rest = {name: x[0] if x.ndim == 3 else x for name, x in vertices.items()}
    still = rasterize(scene, VIEWS, raster, at_rest, SIZE)
    np.testing.assert_array_equal(still, images[:, 0])
    np.testing.assert_array_equal(rasterize(scene, VIEWS[:1], raster, at_rest, SIZE), still[:1])


def test_the_gradient_of_views_is_the_sum_of_theirs(rng):
    # Sums of 5 x 3 frames in one order or another: some eps of the largest term.
    scene, raster, vertices = problem(rng)
    together = record_images(scene, VIEWS, raster, vertices, SIZE)
    adj = rng.normal(size=together.images.shape)
    gradient = together.vjp(adj)
    apart = [
        record_images(scene, view, raster, vertices, SIZE).vjp(adj_view)
        for view, adj_view in zip(VIEWS, adj, strict=True)
    ]
    for k, (view, of_view) in enumerate(zip(VIEWS, apart, strict=True)):
        for name in view.parameters():
            np.testing.assert_array_equal(gradient[f"camera.{k}.{name}"], of_view[f"camera.{name}"])
            assert np.linalg.norm(of_view[f"camera.{name}"]) > 0
    shared = [path for path in apart[0] if not path.startswith("camera.")]
    assert set(gradient) - set(shared) == set(PATHS)
    for path in shared:
        terms = [of_view[path] for of_view in apart]
        tolerance = 1e-14 * np.abs(terms).max()
        np.testing.assert_allclose(gradient[path], sum(terms), rtol=0, atol=tolerance, err_msg=path)


PATHS = [f"camera.{k}.{name}" for k, view in enumerate(VIEWS) for name in view.parameters()]


@pytest.mark.parametrize("path", PATHS)
def test_the_gradient_of_a_view_is_its_derivative(rng, path):
    # Fourth-order differences whose two sizes agree are away from jumps and kinks.
    scene, raster, vertices = problem(rng)
    record = record_images(scene, VIEWS, raster, vertices, SIZE)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj, wrt=[path])[path]
    _, k, name = path.split(".")
    view = VIEWS[int(k)]
    checked = 0
    for _ in range(40):
        tangent = rng.normal(size=gradient.shape)

        def loss(step, tangent=tangent):
            moved = view.with_values({name: view.parameters()[name] + step * tangent})
            return np.sum(adj[int(k)] * rasterize(scene, moved, raster, vertices, SIZE))

        slopes = [(loss(h) - loss(-h)) / (2 * h) for h in (1e-5, 2e-5, 4e-5)]
        fine, coarse = ((4 * slopes[i] - slopes[i + 1]) / 3 for i in range(2))
        scale = np.linalg.norm(gradient) * np.linalg.norm(tangent)
        if abs(fine - coarse) <= 5e-8 * scale:
            checked += 1
            assert abs(fine - np.sum(gradient * tangent)) <= 1e-7 * scale
        if checked == 1:
            return
    pytest.fail("no direction without a jump or a kink nearby")


def test_a_path_says_which_of_several_cameras(rng):
    scene, raster, vertices = problem(rng)
    record = record_images(scene, [camera()] * 4, raster, vertices, SIZE)
    adj = np.ones_like(record.images)
    with pytest.raises(ValueError, match=r"are a sequence.*: `camera.0.eye` to `camera.3.eye`\.$"):
        record.vjp(adj, wrt=["camera.eye"])
    with pytest.raises(ValueError, match=r"Known: `camera.0.eye` to `camera.3.fov_y`\.$"):
        record.vjp(adj, wrt=["camera.eyes"])
    with pytest.raises(ValueError, match=r"Unknown path in `tangents` `camera.eye`: the cameras"):
        rasterize_jvp(scene, [camera()], raster, vertices, SIZE, {"camera.eye": np.ones(3)})
    record = record_images(scene, VIEWS, raster, vertices, SIZE)
    with pytest.raises(ValueError, match=r"Known: `camera.0.eye`, `camera.2.eye`\.$"):
        record.vjp(np.ones_like(record.images), wrt=["camera.eye"])


def test_tangent_and_adjoint_of_views_agree(rng):
    scene, raster, vertices = problem(rng)
    record = record_images(scene, VIEWS, raster, vertices, SIZE)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    tangents = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
    _, pushed = rasterize_jvp(scene, VIEWS, raster, vertices, SIZE, tangents)
    pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
    scale = np.linalg.norm(pushed) * np.linalg.norm(adj)
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale


def test_views_are_equal_to_the_bit_on_one_and_two_threads(rng):
    scene, raster, vertices = problem(rng)
    runs = [record_images(scene, VIEWS, raster, vertices, SIZE, threads=n) for n in (1, 2)]
    np.testing.assert_array_equal(runs[0].images, runs[1].images)
    adj = rng.normal(size=runs[0].images.shape)
    serial, threaded = (run.vjp(adj) for run in runs)
    for path, value in serial.items():
        np.testing.assert_array_equal(value, threaded[path], err_msg=path)


def test_views_in_float32_are_those_in_float64(rng):
    # Edges: d^2/sigma has the error eps/sigma = 1e-5 times the size of the screen.
    scene, raster, vertices = problem(rng)
    exact = rasterize(scene, VIEWS, raster, vertices, SIZE)
    single = {name: x.astype(np.float32) for name, x in vertices.items()}
    record = record_images(scene, VIEWS, raster, single, SIZE)
    assert record.images.dtype == np.float32
    np.testing.assert_allclose(record.images, exact, rtol=0, atol=2e-4)
    gradient = record.vjp(np.ones(record.images.shape, np.float32))
    assert {value.dtype for value in gradient.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_adjoints_of_a_frame_are_let_go_once_they_are_added(threads, rng, monkeypatch):
    scene, raster, vertices = problem(rng)
    record = record_images(scene, VIEWS, raster, vertices, SIZE, threads=threads)
    gradient, alive = paths.gradient, []

    def watched(scene, cameras, job, shape_of, frames):
        def passed_on():
            seen = []
            for packed in frames:
                seen.append(weakref.ref(packed.scene.face_colors))
                yield packed
                del packed
                alive.append(sum(reference() is not None for reference in seen))

        return gradient(scene, cameras, job, shape_of, passed_on())

    monkeypatch.setattr(paths, "gradient", watched)
    record.vjp(np.ones_like(record.images))
    assert len(alive) == 3 * len(VIEWS)
    assert max(alive) <= 1  # the one whose loop variables are still bound
