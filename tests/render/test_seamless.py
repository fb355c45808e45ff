import numpy as np
import pytest

from adjoint.render.seamless import seamless_logit_jvp, seamless_logit_vjp
from adjoint.render.soft_raster import record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.faces.face_setup import Faces
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.scene import DirectionalLight, Mesh, Scene
from render.seamless import FAR_OFF, is_left, seamless_logit, shared_edges, within_face
from render.soft_raster import rasterize
from tests.reference.seamless import along, turn
from tests.render.elements import check_element
from tests.render.scenes import camera, fitted, moved, reference, soft, tetrahedron, two_tetrahedra
from tests.render.transposes import check_transposes


BLENDS = [Over(), Softmax(), DIBR(2e-3), Hard()]
STRAIGHT = camera(eye=(0, 0, 3.0), target=(0, 0, 0), up=(0, 1, 0), fov_y=90.0)
SQUARE = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
HALVES = np.array([[0, 1, 2], [0, 2, 3]])
TRIANGLE = ((0.1, 0.2), (0.9, 0.3), (0.4, 0.8))


def fan(n, turned=False):
    """A disc of n faces around vertex 0; half of it, where it is turned, the other way round."""
    angle = 2 * np.pi * np.arange(n) / n
    x = np.concatenate([[[0, 0, 0]], np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)])
    faces = np.array([[0, k + 1, (k + 1) % n + 1] for k in range(n)])
    faces[: n // 2] = faces[: n // 2, ::-1] if turned else faces[: n // 2]
    return x, faces


def soft_of(faces, x, **changes):
    """Which edges and corners soften, (n_faces, 6) bool."""
    raster = soft(seamless=True, **changes)
    (job,) = pack(Scene({"o": Mesh(faces)}), [STRAIGHT], raster, {"o": x}, (8, 8))
    return setup_frame(job, 0).faces.soft[:, :6] > 0


def test_edges_know_their_faces():
    edges = shared_edges(np.array([[0, 1, 2], [2, 1, 3], [1, 2, 4]]))
    number = edges.number[0, 0]  # from 1 to 2, opposite to vertex 0
    assert edges.number[1, 2] == edges.number[2, 2] == number
    sides = edges.sides[edges.start[number] : edges.start[number + 1]]
    np.testing.assert_array_equal(sides, [0, 3 + 2, 6 + 2])
    assert edges.start[-1] == 9
    empty = shared_edges(np.empty((0, 3), int))
    assert len(empty.number) == len(empty.sides) == 0


def test_a_point_of_a_shared_edge_is_in_one_of_its_faces(rng):
    # Compiled, products are fused: there `inside` denies both for a third of these points.
    for size in rng.uniform(0.3, 0.9, 40):
        a, b, c, d = ((x * size, y * size) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)))
        for t in (2.0 * np.arange(16) + 1.0) / 16.0 - 1.0:
            if abs(t) < size:
                p = (t, t)
                assert within_face(p, a, b, c) != within_face(p, a, c, d)
                assert is_left(p, a, c) != is_left(p, c, a)
    assert not within_face((0.95, 0.1), a, b, c)
    assert within_face((0.1, -0.2), a, b, c)
    assert within_face((0.1, -0.2), c, b, a)


def test_a_point_of_a_vertex_is_in_one_of_the_faces_around_it():
    x, faces = fan(7)
    for flip in (1, -1):
        inside = [
            within_face((0.0, 0.0), *map(tuple, x[face[::flip], :2].tolist())) for face in faces
        ]
        assert sum(inside) == 1


@pytest.mark.parametrize("k", [1, 2])
def test_a_square_has_no_hole_on_its_diagonal(k):
    for z in np.linspace(2.0, 3.0, 9):
        view = camera(eye=(0, 0, z), target=(0, 0, 0), up=(0, 1, 0), fov_y=37.0)
        scene = Scene({"o": Mesh(HALVES)})
        raster = soft(seamless=True, sigma=1e-6, supersample=k)
        image = rasterize(scene, view, raster, {"o": SQUARE}, (8, 8))
        np.testing.assert_allclose(image[..., 3], 1.0, rtol=0, atol=1e-12)


def test_the_diagonal_of_a_square_is_a_seam_and_all_corners_are_soft():
    expected = [[1, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1]]
    np.testing.assert_array_equal(soft_of(HALVES, SQUARE), np.array(expected, bool))


@pytest.mark.parametrize("turned", [False, True])
def test_spokes_are_seams_and_the_hub_is_not_soft_whichever_way_faces_go_round(turned):
    x, faces = fan(6, turned)
    is_soft = soft_of(faces, x)
    for f, face in enumerate(faces):
        hub = list(face).index(0)
        rim = [k for k in range(3) if k != hub]
        assert is_soft[f, hub]
        assert not is_soft[f, rim].any()
        assert not is_soft[f, 3 + hub]
        assert is_soft[f, [3 + k for k in rim]].all()


def test_an_edge_folded_over_is_soft_and_so_is_one_whose_neighbour_is_not_drawn():
    folded = SQUARE.copy()
    folded[3] = [0.9, -0.9, -0.5]  # now beside the other face's third corner
    assert soft_of(HALVES, folded).all()
    behind = SQUARE.copy()
    behind[3, 2] = 4.0  # behind the eye
    assert soft_of(HALVES, behind)[0].all()
    clockwise = np.array([[0, 1, 2], [0, 3, 2]])
    assert soft_of(clockwise, SQUARE, cull=True)[0].all()
    assert not soft_of(clockwise, SQUARE)[0].all()


def test_a_neighbour_beyond_the_image_still_makes_a_seam():
    x = SQUARE * [40.0, 1.0, 1.0]
    np.testing.assert_array_equal(soft_of(HALVES, x)[:, :3], [[1, 0, 1], [1, 1, 0]])


def test_objects_that_touch_have_no_seam_between_them():
    scene = Scene({name: Mesh([[0, 1, 2]]) for name in ("a", "b")})
    vertices = {"a": SQUARE[HALVES[0]], "b": SQUARE[HALVES[1]]}
    (job,) = pack(scene, [STRAIGHT], soft(seamless=True), vertices, (8, 8))
    assert (setup_frame(job, 0).faces.soft[:, :6] > 0).all()


@pytest.mark.parametrize("softness", [0.02, 0.5])
def test_the_inside_of_a_surface_is_opaque_at_any_softness(softness):
    x, faces = fan(12)
    scene, vertices = Scene({"disc": Mesh(faces, face_colors=np.ones((12, 3)))}), {"disc": x}
    sigma = softness**2
    alphas = [
        rasterize(scene, STRAIGHT, soft(sigma=sigma, seamless=seamless), vertices, (33, 33))[..., 3]
        for seamless in (False, True)
    ]
    # The rim is at 1/3 of the screen; at the hub the distance to it is 0.32 or more.
    assert alphas[1][16, 16] >= 1 / (1 + np.exp(-(0.32**2) / sigma))
    if softness == 0.02:
        centre = slice(14, 19)
        assert alphas[1][centre, centre].min() == 1.0
        assert alphas[0][centre, centre].min() < 0.999


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("size", [(24, 30), (1, 60), (60, 1)])
@pytest.mark.parametrize("cull", [False, True])
def test_two_objects_look_as_in_the_reference(rng, blend, size, cull):
    scene, vertices = two_tetrahedra(rng)
    view, raster = fitted(size, blend=blend, cull=cull, gamma=1e-2, seamless=True)
    image = rasterize(scene, view, raster, vertices, size)
    expected = reference(scene, view, raster, vertices, size)
    assert expected[..., 3].mean() > 0.25
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("blend", BLENDS)
def test_a_crumpled_sheet_looks_as_in_the_reference(rng, blend):
    # Folds, faces behind the eye and a hundred faces over one another.
    n = 8
    i, j = np.mgrid[0:n, 0:n]
    x = np.stack([i / 3.5 - 1, j / 3.5 - 1, 0 * i], -1) + rng.normal(scale=0.3, size=(n, n, 3))
    x[0, 0, 2] = 4.0
    a, b = (i * n + j)[:-1, :-1].ravel(), (i * n + j)[1:, 1:].ravel()
    faces = np.concatenate([np.stack([a, a + n, b], 1), np.stack([a, b, a + 1], 1)])
    scene = Scene(
        {"sheet": Mesh(faces, face_colors=rng.random((len(faces), 3)))},
        {"sun": DirectionalLight((0.2, 0.5, 1.0))},
    )
    vertices = {"sheet": x.reshape(-1, 3)}
    raster = soft(blend=blend, sigma=5e-3, gamma=1e-2, seamless=True)
    image = rasterize(scene, camera(), raster, vertices, (10, 11))
    assert 0.2 < image[..., 3].mean() < 0.9
    expected = reference(scene, camera(), raster, vertices, (10, 11))
    np.testing.assert_allclose(image, expected, rtol=0, atol=1e-12)


def one_face(off):
    """A face on the screen of which these edges and corners soften, each edge by itself."""
    corners = np.array([[*np.ravel(TRIANGLE), 1.0, 1.0, 1.0, 1.0]])
    soft = np.array([[*off, -1, -1, -1, -1, -1, -1]])
    empty = np.empty((0, 3))
    return Faces(empty, corners, empty, np.empty((0, 4), int), empty, soft, empty, empty)


@pytest.mark.parametrize("p", [(0.45, 0.4), (0.5, -0.2), (-0.3, 0.1), (0.5, 1.2), (1.3, 0.9)])
@pytest.mark.parametrize("off", [(1, 1, 1, 1, 1, 1), (0, 1, 0, 1, 0, 1), (0, 0, 1, 1, 1, 1)])
def test_the_twins_of_the_logit_are_its_derivatives(rng, p, off):
    depths, faces = (1.0, 1.0, 1.0, 1.0), one_face(off)

    def at(args):
        return faces._replace(corners=np.array([[*np.ravel(args[:3]), *depths]]))

    def logit(*args):
        return seamless_logit(p, 0, at(args), args[3])

    def jvp(args, tan):
        return seamless_logit_jvp(p, 0, at(args), (*tan[:3], depths), args[3], tan[3])

    def vjp(args, adj):
        return seamless_logit_vjp(p, 0, at(args), args[3], logit(*args), adj)

    if np.abs(logit(*TRIANGLE, 0.05)) < FAR_OFF:
        check_element(rng, logit, jvp, vjp, (*TRIANGLE, 0.05))


@pytest.mark.parametrize(("p", "sign"), [((0.45, 0.4), 1.0), ((2.0, 2.0), -1.0)])
def test_a_face_without_soft_features_is_opaque_inside_and_absent_outside(p, sign):
    faces = one_face((0, 0, 0, 0, 0, 0))
    assert sign * seamless_logit(p, 0, faces, 0.05) > 1e7
    *adj_corners, adj_sigma = seamless_logit_vjp(p, 0, faces, 0.05, sign * 2e7, 0.0)
    np.testing.assert_array_equal(adj_corners, 0.0)
    assert adj_sigma == 0.0


@pytest.mark.parametrize("n", [5, 6, 40])
def test_beside_a_convex_surface_alpha_is_that_of_its_outline(n):
    # One soft edge counts at each pixel outside, be it beside an edge or beyond a vertex.
    x, faces = fan(n)
    scene, sigma = Scene({"disc": Mesh(faces)}), 0.05**2
    image = rasterize(scene, STRAIGHT, soft(sigma=sigma, seamless=True), {"disc": x}, (60, 60))
    places = np.linspace(-1, 1, 61)[:-1] + 1 / 60
    rim = x[1:, :2] / 3.0
    squared = np.full((60, 60), np.inf)
    outside = np.zeros((60, 60), bool)
    for i, j in np.ndindex(60, 60):
        p = np.array([places[j], -places[i]])
        for k in range(n):
            a, b = rim[k], rim[(k + 1) % n]
            squared[i, j] = min(squared[i, j], along(p, a, b)[1])
            outside[i, j] |= turn(a, b, p) < 0
    expected = 1 / (1 + np.exp(squared / sigma))
    seen = outside & (expected > 1e-9)
    assert seen.sum() > 300
    np.testing.assert_allclose(image[seen, 3], expected[seen], rtol=0, atol=1e-14)


@pytest.mark.parametrize("blend", BLENDS)
def test_the_adjoint_of_a_seamless_image_is_its_derivative(rng, blend):
    # As in test_soft_raster.py: directions along which differences disagree cross a jump.
    scene, vertices = two_tetrahedra(rng)
    raster = soft(blend=blend, gamma=0.3, epsilon=0.9, seamless=True)
    args = (scene, camera(), raster, vertices)
    record = record_images(*args, (16, 20))
    adj, wrt = rng.normal(size=record.images.shape), ["left.vertices", "right.vertices"]
    gradient, checked = record.vjp(adj, wrt), 0
    for _ in range(30):
        tangent = {path: rng.normal(size=value.shape) for path, value in gradient.items()}
        scale = sum(np.linalg.norm(gradient[p]) * np.linalg.norm(tangent[p]) for p in gradient)

        def loss(step, tangent=tangent):
            return float(np.sum(adj * rasterize(*moved(args, tangent, step), (16, 20))))

        slopes = [(loss(h) - loss(-h)) / (2 * h) for h in (1e-5, 2e-5, 4e-5)]
        fine, coarse = ((4 * slopes[k] - slopes[k + 1]) / 3 for k in range(2))
        assert scale > 0
        if abs(fine - coarse) <= 5e-8 * scale:
            checked += 1
            pulled = sum(np.sum(gradient[p] * tangent[p]) for p in gradient)
            assert abs(fine - pulled) <= 1e-7 * scale
        if checked == 3:
            return
    pytest.fail("no three directions without a jump or a kink nearby")


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("sigma", [1e-5, 2e-3])
def test_tangent_and_adjoint_are_transposes_on_any_threads(rng, blend, sigma):
    scene, vertices = two_tetrahedra(rng)
    raster = soft(blend=blend, gamma=0.3, epsilon=0.9, sigma=sigma, seamless=True)
    args = (scene, camera(), raster, vertices, (40, 70))
    check_transposes(rng, args, {"rasterizer.sigma": sigma})


def test_float32_stays_finite_at_the_published_sharpness(rng):
    scene = Scene({"t": Mesh([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])})
    vertices = {"t": tetrahedron(rng, [0, 0, 0]).astype(np.float32)}
    record = record_images(scene, camera(), soft(sigma=1e-5, seamless=True), vertices, (20, 20))
    assert record.images.dtype == np.float32
    assert np.isfinite(record.images).all()
    assert record.images[..., 3].mean() > 0.1
    gradient = record.vjp(np.ones_like(record.images))
    assert gradient["t.vertices"].any()
    for value in gradient.values():
        assert np.isfinite(value).all()
