from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from adjoint.render.raster.frames import empty_slots
from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.raster.thread_pool import shared_executor
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize, softness
from tests.render.scenes import (
    camera,
    glossy,
    jumping,
    moved,
    rounded,
    soft,
    tetrahedron,
    textured,
    two_tetrahedra,
)


BLENDS = [Over(), Softmax(), DIBR(2e-3), Hard()]
SIZE = (24, 30)
PATHS = [
    *(f"left.{name}" for name in ("vertices", "face_colors", "ambient", "diffuse")),
    *(f"right.{name}" for name in ("vertices", "vertex_colors", "ambient", "diffuse")),
    *("sun.direction", "sun.color", "lamp.direction", "lamp.color"),
    *("camera.eye", "camera.target", "camera.up", "camera.fov_y"),
    *("rasterizer.sigma", "rasterizer.background"),
]
SOFTMAX_PATHS = ["rasterizer.gamma", "rasterizer.epsilon"]
GLOSSY_PATHS = [
    *(f"{name}.{key}" for name in ("left", "right") for key in ("vertices", "specular")),
    *("left.shininess", "right.shininess", "left.face_colors", "right.vertex_colors"),
    *("left.diffuse", "sun.direction", "lamp.color", "camera.eye", "camera.target"),
]


def as_it_is(scene):
    return scene


def jumping_glossy(scene):
    return jumping(glossy(scene))


CASES = [(as_it_is, blend, path) for blend in BLENDS for path in PATHS]
CASES += [(as_it_is, Softmax(), path) for path in SOFTMAX_PATHS]
CASES = [case for case in CASES if not (case[1] in BLENDS[2:] and case[2] == "rasterizer.sigma")]
CASES += [(as_it_is, BLENDS[2], "rasterizer.kappa")]
CASES += [(glossy, Over(), path) for path in GLOSSY_PATHS]
CASES += [(glossy, Softmax(), path) for path in ("left.vertices", "right.vertices")]
TEXTURED_PATHS = [
    *(f"{name}.{key}" for name in ("left", "right") for key in ("vertices", "texels", "uv")),
    *("right.specular", "right.shininess", "left.diffuse", "sun.direction", "camera.eye"),
]
CASES += [(textured, Over(), path) for path in TEXTURED_PATHS]
CASES += [(textured, Softmax(), path) for path in TEXTURED_PATHS[:6]]
JUMPING_PATHS = ("right.vertex_colors", "right.vertices", "left.face_colors", "right.diffuse")
CASES += [(jumping, blend, path) for blend in BLENDS[:2] for path in JUMPING_PATHS]
CASES += [(jumping_glossy, Over(), path) for path in JUMPING_PATHS[:2]]
SMALL = {f"rasterizer.{key}" for key in ("sigma", "kappa", "gamma", "epsilon")}
UNIT = {"rasterizer.sigma": 1e-3, "rasterizer.gamma": 1e-1, "rasterizer.kappa": 1e-3}


def problem(rng, look, blend):
    """Two objects with soft edges and, in Softmax, a background that shines through."""
    scene, vertices = two_tetrahedra(rng)
    gamma, epsilon = (0.3, 0.9) if isinstance(blend, Softmax) else (1e-4, 1e-3)
    return look(scene), camera(), soft(blend=blend, gamma=gamma, epsilon=epsilon), vertices


@pytest.mark.parametrize(("look", "blend", "path"), CASES)
def test_the_adjoint_of_an_image_is_its_derivative(rng, look, blend, path):
    # Fourth-order central differences: error O(h^4) times the fifth derivative, which grows
    # by 1/sqrt(sigma) = 22 with each order, and eps/h = 1e-11: below 1e-8 for h = 1e-5.
    # Directions along which they disagree with themselves cross a jump or a kink.
    args = problem(rng, look, blend)
    record = record_images(*args, SIZE)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj, wrt=[path])[path]
    checked = 0
    for _ in range(30):
        tangent = {path: UNIT.get(path, 1.0) * rng.normal(size=gradient.shape)}
        scale = float(np.linalg.norm(gradient) * np.linalg.norm(tangent[path]))

        def loss(step, tangent=tangent):
            return float(np.sum(adj * rasterize(*moved(args, tangent, step), SIZE)))

        slopes = [(loss(h) - loss(-h)) / (2 * h) for h in (1e-5, 2e-5, 4e-5)]
        fine, coarse = ((4 * slopes[k] - slopes[k + 1]) / 3 for k in range(2))
        if abs(fine - coarse) <= 5e-8 * scale:
            checked += 1
            assert scale > 0
            assert abs(fine - float(np.sum(gradient * tangent[path]))) <= 1e-7 * scale
        if checked == 3:
            return
    pytest.fail("no three directions without a jump or a kink nearby")


@pytest.mark.parametrize(("look", "blend", "path"), CASES)
def test_tangent_and_adjoint_of_an_image_are_transposes(rng, look, blend, path):
    args = problem(rng, look, blend)
    record = record_images(*args, SIZE)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)[path]
    tangent = rng.normal(size=gradient.shape)
    images, pushed = rasterize_jvp(*args, SIZE, {path: tangent})
    np.testing.assert_array_equal(images, record.images)
    scale = np.linalg.norm(pushed) * np.linalg.norm(adj)
    assert scale > 0
    assert abs(np.sum(pushed * adj) - np.sum(gradient * tangent)) <= 1e-12 * scale


@pytest.mark.parametrize("blend", BLENDS)
def test_at_the_published_sharpness_tangent_and_adjoint_are_transposes(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    args = (scene, camera(), SoftRasterizer(blend=blend), vertices)
    record = record_images(*args, (64, 64))
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    tangents = {
        path: rng.normal(size=value.shape) * (1e-6 if path in SMALL else 1.0)
        for path, value in gradient.items()
    }
    _, pushed = rasterize_jvp(*args, (64, 64), tangents)
    pulled = sum(np.sum(gradient[path] * tangents[path]) for path in gradient)
    assert np.isfinite(pushed).all()
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * np.linalg.norm(pushed) * np.linalg.norm(
        adj
    )


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("look", [as_it_is, rounded, glossy, textured])
def test_one_and_two_threads_agree_to_the_bit(rng, blend, look):
    scene, vertices = two_tetrahedra(rng)
    args = (look(scene), camera(), soft(blend=blend), vertices, (70, 40))
    serial, threaded = record_images(*args, threads=1), record_images(*args, threads=2)
    np.testing.assert_array_equal(serial.images, threaded.images)
    adj = rng.normal(size=serial.images.shape)
    gradient, other = serial.vjp(adj), threaded.vjp(adj)
    tangents = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
    for path, value in gradient.items():
        np.testing.assert_array_equal(value, other[path])
    pushed = [rasterize_jvp(*args, tangents, threads=n)[1] for n in (1, 2)]
    np.testing.assert_array_equal(*pushed)


def test_frames_are_drawn_and_pulled_back_like_single_images(rng):
    scene, vertices = two_tetrahedra(rng)
    path = vertices["left"] + rng.normal(scale=0.1, size=(3, 1, 3))
    moving = {"left": path, "right": vertices["right"]}
    record = record_images(scene, camera(), soft(), moving, SIZE, threads=2)
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)
    assert gradient["left.vertices"].shape == (3, 4, 3)
    assert gradient["right.vertices"].shape == (4, 3)
    total = 0
    for k in range(3):
        single = {"left": path[k], "right": vertices["right"]}
        alone = record_images(scene, camera(), soft(), single, SIZE)
        np.testing.assert_array_equal(alone.images, record.images[k])
        frame_gradient = alone.vjp(adj[k])
        np.testing.assert_array_equal(frame_gradient["left.vertices"], gradient["left.vertices"][k])
        total = total + frame_gradient["camera.eye"]
    np.testing.assert_allclose(gradient["camera.eye"], total, rtol=1e-14)
    tangents = {"left.vertices": rng.normal(size=path.shape), "camera.eye": rng.normal(size=3)}
    _, pushed = rasterize_jvp(scene, camera(), soft(), moving, SIZE, tangents)
    pulled = sum(np.sum(gradient[key] * tangents[key]) for key in tangents)
    scale = np.linalg.norm(pushed) * np.linalg.norm(adj)
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale


def test_one_frame_keeps_its_axis(rng):
    scene, vertices = two_tetrahedra(rng)
    record = record_images(scene, camera(), soft(), {k: x[None] for k, x in vertices.items()}, SIZE)
    assert record.images.shape == (1, *SIZE, 4)
    assert record.vjp(np.ones_like(record.images))["left.vertices"].shape == (1, 4, 3)


@pytest.mark.parametrize("blend", BLENDS)
def test_float32_runs_and_is_near_float64(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    # eps32 z~/gamma = 1e-5 of the logits in Softmax; 1e-7/sigma = 1e-4 in the edges
    args = (scene, camera(), soft(blend=blend, gamma=1e-2))
    single = {name: x.astype(np.float32) for name, x in vertices.items()}
    half, full = record_images(*args, single, SIZE), record_images(*args, vertices, SIZE)
    assert half.images.dtype == np.float32
    np.testing.assert_allclose(half.images, full.images, atol=2e-3)
    adj = rng.normal(size=full.images.shape)
    gradient, expected = half.vjp(adj), full.vjp(adj)
    for path, value in gradient.items():
        assert value.dtype == np.float32
        error = np.linalg.norm(value - expected[path])
        assert error <= 0.02 * np.linalg.norm(expected[path]) + 1e-4
    _, pushed = rasterize_jvp(*args, single, SIZE, {"camera.eye": np.ones(3)})
    _, exact = rasterize_jvp(*args, vertices, SIZE, {"camera.eye": np.ones(3)})
    assert pushed.dtype == np.float32
    assert np.linalg.norm(pushed - exact) <= 0.02 * np.linalg.norm(exact)


@pytest.mark.parametrize("blend", BLENDS)
def test_an_empty_image_is_the_background_and_pulls_back_to_it_alone(rng, blend):
    scene, vertices = two_tetrahedra(rng)
    away = {name: x + np.array([0, 0, 50.0]) for name, x in vertices.items()}  # behind the eye
    record = record_images(scene, camera(), soft(blend=blend), away, (8, 9))
    np.testing.assert_array_equal(record.images, np.broadcast_to((0.1, 0.2, 0.3, 0.0), (8, 9, 4)))
    gradient = record.vjp(np.ones((8, 9, 4)))
    np.testing.assert_array_equal(gradient.pop("rasterizer.background"), 72.0)
    for value in gradient.values():
        np.testing.assert_array_equal(value, 0.0)
    nothing = Scene({"none": Mesh(np.empty((0, 3), int))})
    image = rasterize(nothing, camera(), soft(blend=blend), {"none": np.zeros((1, 3))}, (3, 4))
    np.testing.assert_array_equal(image[..., 3], 0.0)


def test_a_vertex_in_the_plane_of_the_eye_has_a_finite_gradient(rng):
    scene, vertices = two_tetrahedra(rng)
    view = camera(eye=(0, 0, 4), target=(0, 0, 0), up=(0, 1, 0))
    vertices["right"][1] = (1.0, 0.5, 4.0)  # depth 0: its faces are not drawn
    record = record_images(scene, view, soft(), vertices, SIZE)
    gradient = record.vjp(np.ones_like(record.images))
    assert all(np.isfinite(value).all() for value in gradient.values())
    assert np.abs(gradient["left.vertices"]).max() > 0
    _, pushed = rasterize_jvp(scene, view, soft(), vertices, SIZE, {"camera.eye": np.ones(3)})
    assert np.isfinite(pushed).all()


def test_a_saturated_face_hides_everything_and_divides_by_nothing():
    square = np.array([[-9, -9, 0], [9, -9, 0], [0, 9, 0.0]])
    scene = Scene(
        {
            "front": Mesh([[0, 1, 2]], face_colors=[(1.0, 0.0, 0.0)]),
            "back": Mesh([[0, 1, 2]], face_colors=[(0.0, 1.0, 0.0)]),
        }
    )
    vertices = {"front": square, "back": square - [0, 0, 1.0]}
    record = record_images(scene, camera(), soft(sigma=1e-5), vertices, (6, 6))
    np.testing.assert_allclose(record.images[..., 1], 0.0, atol=1e-15)
    gradient = record.vjp(np.ones_like(record.images))
    assert all(np.isfinite(value).all() for value in gradient.values())
    np.testing.assert_array_equal(gradient["back.face_colors"], 0.0)


def test_hundreds_of_faces_on_one_pixel_have_the_right_gradient(rng):
    n = 300
    corners = rng.normal(scale=0.5, size=(n, 3, 3))
    scene = Scene({"cloud": Mesh(np.arange(3 * n).reshape(n, 3), face_colors=rng.random((n, 3)))})
    args = (scene, camera(), soft(sigma=0.05), {"cloud": corners.reshape(-1, 3)})
    record = record_images(*args, (3, 3))
    adj = rng.normal(size=record.images.shape)
    gradient = record.vjp(adj)["cloud.vertices"]
    tangent = {"cloud.vertices": rng.normal(size=gradient.shape)}
    _, pushed = rasterize_jvp(*args, (3, 3), tangent)
    pulled = np.sum(gradient * tangent["cloud.vertices"])
    scale = np.linalg.norm(pushed) * np.linalg.norm(adj)
    assert scale > 0
    assert abs(np.sum(pushed * adj) - pulled) <= 1e-12 * scale


def test_tiles_that_would_hold_too_much_are_cut_without_changing_the_image(rng, monkeypatch):
    scene, vertices = two_tetrahedra(rng)
    whole = rasterize(scene, camera(), soft(), vertices, SIZE)
    monkeypatch.setattr("render.raster.frames.LARGEST_TILE", 100)
    np.testing.assert_array_equal(rasterize(scene, camera(), soft(), vertices, SIZE), whole)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_draws_with_threads_of_its_own(rng):
    # The threads of the parent do not live on in the child: waiting for them never ends.
    scene, vertices = two_tetrahedra(rng)
    args = (scene, camera(), soft(), vertices, (70, 40))
    image = rasterize(*args, threads=2)
    executor = shared_executor(2)
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        child = pool.submit(executor_in_child).result(timeout=60)
    assert child == 0
    assert shared_executor(2) is executor
    np.testing.assert_array_equal(rasterize(*args, threads=2), image)


def executor_in_child():
    """How many executors a child has when it starts."""
    return shared_executor.cache_info().currsize


def test_only_scenes_shaded_by_pixel_take_room_for_every_object_in_every_tile(rng):
    scene, vertices = two_tetrahedra(rng)
    for shaded, rows in ((scene, 0), (rounded(scene), 4)):
        (job,) = pack(shaded, (camera(),), soft(), vertices, (33, 34))
        assert empty_slots(job, setup_frame(job, 0)).parts.ambient.shape == (rows, 2, 3)


def test_unknown_paths_and_wrong_shapes_are_refused(rng):
    scene, vertices = two_tetrahedra(rng)
    args = (scene, camera(), soft(), vertices, (4, 5))
    record = record_images(*args)
    with pytest.raises(ValueError, match=r"path in `wrt` `left.vertexes`. Did you mean `left.vert"):
        record.vjp(np.ones((4, 5, 4)), wrt=["left.vertexes"])
    with pytest.raises(ValueError, match=r"`adj_images` must have shape \(4, 5, 4\), got \(4, 5\)"):
        record.vjp(np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"path in `tangents` `camera.eyes`. Did you mean `camera"):
        rasterize_jvp(*args, {"camera.eyes": np.ones(3)})
    with pytest.raises(ValueError, match=r"must have shape \(4, 3\), got \(3,\)"):
        rasterize_jvp(*args, {"left.vertices": np.ones(3)})
    for threads in (0, 1.5, "2", True):
        with pytest.raises(ValueError, match=rf"`threads` must be a whole .* got {threads!r}"):
            rasterize(*args, threads=threads)


def test_what_is_not_a_rasterizer_is_refused(rng):
    scene, vertices = two_tetrahedra(rng)
    with pytest.raises(TypeError, match=r"`rasterizer` must be a SoftRasterizer, got dict"):
        rasterize(scene, camera(), {}, vertices, (4, 5))  # pyright: ignore[reportArgumentType]


def test_a_tetrahedron_inside_the_image_is_seen_whole(rng):
    scene = Scene({"t": Mesh([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])})
    image = rasterize(
        scene, camera(), soft(sigma=1e-6), {"t": tetrahedron(rng, [0, 0, 0])}, (64, 64)
    )
    alpha = image[..., 3]
    assert alpha[0].max() == alpha[-1].max() == alpha[:, 0].max() == alpha[:, -1].max() == 0.0
    assert alpha.max() > 0.999


def test_softness_is_in_pixels():
    assert np.sqrt(softness(0.5, 128)) * 128 / 2 == pytest.approx(0.5, rel=1e-15)
    with pytest.raises(ValueError, match="`pixels` must be positive, got 0"):
        softness(0.0, 64)
    with pytest.raises(ValueError, match="`height` must be positive, got 0"):
        softness(1.0, 0)
