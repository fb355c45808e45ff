"""Rods and bobs: where they hang, that they are closed up, and their derivatives."""

import numpy as np
import pytest

from adjoint import dot_test, gradcheck
from adjoint.render.pendulum import rods_and_bobs_jvp, rods_and_bobs_vjp
from render.camera import Camera
from render.pendulum import RodsAndBobs
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


EPS = np.finfo(np.float64).eps
LENGTH = np.array([1.2, 0.7])


@pytest.fixture
def shape():
    return RodsAndBobs((0.2, 0.3), 0.05, pivot=(0.5, 1.0, -2.0), gap=0.4)


def centre(shape, vertices, link):
    """Centre of a bob: the mean of its two poles, the last two of its vertices."""
    return vertices[:, (shape.link == link) & shape.is_bob][:, -2:].mean(axis=1)


def test_bobs_hang_at_the_ends_of_their_links(shape):
    angle = np.array([[0.3, -1.1], [2.0, 0.4]])
    x = shape.vertices(angle, LENGTH)
    first = shape.pivot + LENGTH[0] * np.stack(
        [np.sin(angle[:, 0]), -np.cos(angle[:, 0]), [0, 0]], axis=1
    )
    second = first + LENGTH[1] * np.stack(
        [np.sin(angle[:, 1]), -np.cos(angle[:, 1]), [0, 0]], axis=1
    )
    np.testing.assert_allclose(centre(shape, x, 0), first, atol=10 * EPS)
    np.testing.assert_allclose(
        centre(shape, x, 1), second + shape.gap * np.array([0, 0, 1]), atol=10 * EPS
    )


def test_a_bob_is_a_ball_whose_faces_look_outward(shape):
    x = shape.vertices([[0.3, -1.1]], LENGTH)[0]
    for link, radius in enumerate(shape.bob_radius):
        of_bob = (shape.link == link) & shape.is_bob
        middle = centre(shape, x[None], link)[0]
        np.testing.assert_allclose(np.linalg.norm(x[of_bob] - middle, axis=1), radius, rtol=1e-14)
        faces = shape.faces[of_bob[shape.faces].all(axis=1)]
        a, b, c = np.moveaxis(x[faces], 1, 0)
        volumes = np.sum(np.cross(b - a, c - a) * (a - middle), axis=1) / 6.0
        assert (volumes > 0.0).all()
        # every edge belongs to two faces, once in each direction
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        assert len(np.unique(edges, axis=0)) == len(edges)
        assert {tuple(e) for e in edges} == {tuple(e[::-1]) for e in edges}


def test_a_rod_reaches_from_bob_to_bob_and_looks_outward(shape):
    x = shape.vertices([[0.0, 0.0]], LENGTH)[0]
    for link, (top, bottom) in enumerate([(1.0, 1.0 - 1.2 + 0.2), (-0.2 - 0.2, -0.2 - 0.7 + 0.3)]):
        of_rod = (shape.link == link) & ~shape.is_bob
        np.testing.assert_allclose(np.unique(x[of_rod, 1].round(12)), [bottom, top], atol=1e-12)
        axis = np.array([0.5, 0.0, -2.0 + link * shape.gap])
        faces = shape.faces[of_rod[shape.faces].all(axis=1)]
        a, b, c = np.moveaxis(x[faces], 1, 0)
        out = (x[faces].mean(axis=1) - axis) * [1.0, 0.0, 1.0]
        assert (np.sum(np.cross(b - a, c - a) * out, axis=1) > 0.0).all()


def test_links_hang_in_one_plane_unless_a_gap_is_given():
    def middles(**given):
        shape = RodsAndBobs((0.2, 0.3), 0.05, **given)
        z = shape.vertices([[0.0, 3.0]], LENGTH)[0, :, 2]
        return [0.5 * (z[shape.link == k].min() + z[shape.link == k].max()) for k in (0, 1)]

    np.testing.assert_allclose(middles(), 0.0, atol=EPS)
    np.testing.assert_allclose(middles(gap=-0.7), [0.0, -0.7], atol=2 * EPS)


def test_what_hides_what_of_links_in_one_plane_is_no_matter_of_rounding():
    """Equally thick bars of two colours cross: turned by a rounding, no pixel changes sides."""
    bars = RodsAndBobs((0.0, 0.0), 0.1)
    colors = bars.colors([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)], np.zeros((2, 3)))
    scene = Scene({"bars": Mesh(bars.faces, vertex_colors=colors)})
    camera = Camera(eye=(0.4, -0.3, 3.0), target=(0.0, -0.6, 0.0), fov_y=45.0)

    def drawn(angle):
        vertices = {"bars": bars.vertices([[0.3, angle]], [0.6, 0.5])}
        return rasterize(scene, camera, SoftRasterizer(sigma=1e-6), vertices, (48, 64))[..., :3]

    for angle in (2.6, 3.2, 4.0):
        assert np.abs(drawn(angle + 1e-12) - drawn(angle)).max() < 1e-6


def volume(x, faces):
    """Volume inside of faces, by the divergence theorem; that of no closed surface moves with x."""
    a, b, c = np.moveaxis(x[faces], 1, 0)
    return np.sum(np.cross(a, b) * c) / 6.0


def test_a_link_without_a_bob_is_a_closed_bar_of_its_whole_length():
    bar = RodsAndBobs([0.0], 0.1, pivot=(0.5, 1.0, -2.0))
    assert not bar.is_bob.any()
    x = bar.vertices([0.4], 1.5)[0]
    along = (x - bar.pivot) @ [np.sin(0.4), -np.cos(0.4), 0.0]
    np.testing.assert_allclose([along.min(), along.max()], [0.0, 1.5], atol=10 * EPS)
    # six sides: an area of 3 sqrt(3)/2 r^2
    exact = 1.5 * 1.5 * np.sqrt(3.0) * 0.1**2
    for shift in (0.0, 7.0):
        np.testing.assert_allclose(volume(x + shift, bar.faces), exact, rtol=1e-10)


def test_links_have_sizes_of_their_own():
    shape = RodsAndBobs((0.0, 0.3), (0.1, 0.0))
    for link, is_bob in enumerate((False, True)):
        assert (shape.is_bob[shape.link == link] == is_bob).all()
    x = shape.vertices([[0.0, 0.0]], LENGTH)[0]
    np.testing.assert_allclose(np.ptp(x[~shape.is_bob, 0]), 0.2, atol=10 * EPS)
    RodsAndBobs((0.0, 0.02), (0.1, 0.01))  # a bob below a bar may be thinner than it


def test_one_link_takes_plain_numbers():
    shape = RodsAndBobs([0.2], 0.05)
    x = shape.vertices([0.1, 0.2, 0.3], 1.5)
    np.testing.assert_array_equal(x, shape.vertices([[0.1], [0.2], [0.3]], [1.5]))
    adj_angle, adj_length = rods_and_bobs_vjp(shape, [0.1, 0.2, 0.3], 1.5, np.ones_like(x))
    assert (adj_angle.shape, adj_length.shape) == ((3,), ())


def test_float32_stays_float32(shape):
    angle = np.array([[0.3, -1.1]])
    x = shape.vertices(angle.astype(np.float32), LENGTH)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, shape.vertices(angle, LENGTH), atol=1e-6)
    tan = rods_and_bobs_jvp(shape, angle.astype(np.float32), LENGTH, angle, LENGTH)
    adj_angle, _ = rods_and_bobs_vjp(shape, angle.astype(np.float32), LENGTH, tan)
    assert tan.dtype == adj_angle.dtype == np.float32


def test_tangent_and_adjoint_agree_with_differences_and_each_other(shape, rng):
    point = {"angle": rng.standard_normal((3, 2)), "length": LENGTH}
    adj = rng.standard_normal((3, len(shape.link), 3))

    def vjp(adj):
        return dict(zip(point, rods_and_bobs_vjp(shape, *point.values(), adj), strict=True))

    def forward(values):
        return float(np.sum(adj * shape.vertices(*values.values())))

    def jvp(tangents):
        return rods_and_bobs_jvp(shape, *point.values(), *tangents.values())

    check = gradcheck(forward, vjp(adj), point)
    assert check.passed, check.table()
    test = dot_test(jvp, vjp, point)
    assert test.passed, test.table()


def test_colors_tell_rods_and_bobs_apart(shape):
    grey = [(0.1, 0.1, 0.1), (0.2, 0.2, 0.2)]
    colors = shape.colors(grey, [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)])
    for link, value in enumerate((0.1, 0.2)):
        np.testing.assert_array_equal(colors[~shape.is_bob & (shape.link == link)], value)
    np.testing.assert_array_equal(colors[shape.is_bob & (shape.link == 1)][0], [0.0, 0.0, 1.0])


BAD = [
    (((0.2, -0.1), 0.05), "`bob_radius` must not be negative, got -0.1"),
    (((0.2, 0.3), -0.1), "`rod_radius` must not be negative, got -0.1"),
    (((0.2, 0.3), 0.2), "`rod_radius` must be below the `bob_radius` at the ends of a rod"),
    (((0.2, 0.0), (0.1, 0.2)), "`rod_radius` must be below the `bob_radius` at the ends of a rod"),
    (((0.2, 0.3), (0.1,)), r"`rod_radius` must have shape \(2,\), got \(1,\)"),
    (((0.0, 0.0), 0.0), "`bob_radius` and `rod_radius` must not all be 0"),
    (((), 0.1), "`bob_radius` and `rod_radius` must not all be 0"),
    ((0.2, 0.05), r"`bob_radius` must have shape \(n_links,\)"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_a_pendulum_that_cannot_be_drawn_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        RodsAndBobs(*given)


def test_two_sides_make_no_rod():
    with pytest.raises(ValueError, match="`sides` must be at least 3, got 2"):
        RodsAndBobs([0.2], 0.05, sides=2)


def test_angles_and_lengths_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"`angle` must have shape \(n_frames, 2\), got \(3,\)"):
        shape.vertices([0.1, 0.2, 0.3], LENGTH)
    with pytest.raises(ValueError, match=r"`length` must have shape \(2,\), got \(\)"):
        shape.vertices([[0.1, 0.2]], 1.0)
    with pytest.raises(ValueError, match="`angle` must be finite"):
        shape.vertices([[0.1, np.nan]], LENGTH)
    with pytest.raises(ValueError, match="`adj_vertices` must have shape"):
        rods_and_bobs_vjp(shape, [[0.1, 0.2]], LENGTH, np.zeros((1, 3, 3)))
