import numpy as np
import pytest

from adjoint.render.projection import project_jvp, project_vjp, towards_eye_vjp
from render.camera import Camera
from render.lenses import Intrinsics, Orthographic
from render.projection import image_size, pixel_centers, project, towards_eye, unpack_view
from tests.render.elements import check_element


LENSES = {
    "pinhole": {"fov_y": 38.0},
    "calibrated": {"lens": Intrinsics((31.0, 37.0), (12.5, 9.0), (24, 30), 1.5)},
    "orthographic": {"lens": Orthographic(2.5)},
}


def test_pixels_are_isotropic_and_centred():
    x, y = pixel_centers(2, 6, np.dtype(np.float64))
    np.testing.assert_allclose(y, [0.5, -0.5])
    np.testing.assert_allclose(x, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])


def test_a_size_is_two_positive_whole_numbers():
    assert image_size([np.int64(4), 5]) == (4, 5)
    with pytest.raises(ValueError, match=r"`size` must be \(height, width\).*got \(0, 4\)"):
        image_size((0, 4))


@pytest.mark.parametrize("lens", LENSES)
def test_the_twins_of_the_projection_are_its_derivatives(rng, lens):
    camera = Camera((0.3, 0.5, 3.0), (0.1, -0.2, 0.3), (0.2, 1.1, 0.1), **LENSES[lens])
    eye, frame = unpack_view(tuple(camera.view()))
    p = frame[3][5]

    def at(x, eye, right, true_up, forward, lens):
        return project(x, eye, right, true_up, forward, (*lens, p))

    def jvp(a, t):
        tan_frame = (*t[2:5], (*t[5], 0.0))
        return project_jvp(a[0], a[1], (*a[2:5], (*a[5], p)), t[0], t[1], tan_frame)[3:]

    def vjp(a, c):
        adj_x, *adj_axes, adj_lens = project_vjp(a[0], a[1], (*a[2:5], (*a[5], p)), *c)
        assert adj_lens[5] == 0.0
        return (adj_x, tuple(-number for number in adj_x), *adj_axes, adj_lens[:5])

    check_element(rng, at, jvp, vjp, ((0.4, -0.3, 0.2), eye, *frame[:3], frame[3][:5]))


def test_in_an_orthographic_view_depth_moves_nothing_on_the_screen():
    camera = Camera((0.0, 0.0, 4.0), (0.0, 0.0, 0.0), lens=Orthographic(2.0))
    eye, frame = unpack_view(tuple(camera.view()))
    assert project((0.5, 0.25, 0.0), eye, *frame) == (0.5, 0.25, 4.0)
    assert project((0.5, 0.25, 3.0), eye, *frame) == (0.5, 0.25, 1.0)


def test_the_eye_is_seen_from_a_point_or_far_away_in_an_orthographic_view():
    x, eye, forward = (0.5, 0.25, 1.0), (0.0, 0.0, 4.0), (0.0, 0.0, -1.0)
    assert towards_eye(x, eye, forward, 1.0) == (-0.5, -0.25, 3.0)
    assert towards_eye(x, eye, forward, 0.0) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("p", [1.0, 0.0])
def test_the_twins_of_the_vector_towards_the_eye_are_its_derivatives(rng, p):
    check_element(
        rng,
        lambda *a: towards_eye(*a, p),
        lambda a, t: towards_eye(*t, p),
        lambda a, c: towards_eye_vjp(p, c),
        ((0.4, -0.3, 0.2), (0.1, 0.2, 3.0), (0.0, 0.6, -0.8)),
    )
