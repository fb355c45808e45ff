import numpy as np
import pytest

from adjsim.meshes.ball import ball_tets
from adjsim.meshes.triangle_mesh import winding_number
from adjsim.rotations import rotation_matrix
from render.camera import Camera
from render.posed_camera import PosedCamera
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.cameras import make_camera, require_outside


K = ((700.0, 0.0, 310.0), (0.0, 720.0, 250.0), (0.0, 0.0, 1.0))
R = rotation_matrix(np.array([0.1, -0.2, 0.3]))
T = np.array([0.1, -0.2, 2.0])
X = np.array([0.2, 0.3, 0.1])


def matrix(rows):
    return tuple(tuple(row) for row in rows.tolist())


def pixel(camera, x, size):
    """Return column and row of a point, from the definition of the screen."""
    view = camera.view()
    eye, axes = view[:3], view[3:12].reshape(3, 3)
    x_c, y_c, depth = axes @ (x - eye)
    f_x, k, c_x, f_y, c_y = view[12:17]
    s_x, s_y = (f_x * x_c + k * y_c) / depth + c_x, f_y * y_c / depth + c_y
    height, width = size
    return np.array([(height * s_x - 1 + width) / 2, (height - 1 - height * s_y) / 2])


def test_a_calibrated_camera_puts_points_where_opencv_does():
    camera = make_camera("front", declared.Camera(K=K, R=matrix(R), t=tuple(T)), (480, 640))
    assert isinstance(camera, PosedCamera)
    x_c = R @ X + T
    expected = (np.array(K) @ x_c)[:2] / x_c[2]
    np.testing.assert_allclose(pixel(camera, X, (480, 640)), expected, rtol=1e-12)
    np.testing.assert_array_equal(camera.rotation, np.zeros(3))


def test_a_film_made_smaller_shows_the_same():
    camera = make_camera("front", declared.Camera(K=K, R=matrix(R), t=tuple(T)), (480, 640))
    small, full = pixel(camera, X, (120, 160)), pixel(camera, X, (480, 640))
    np.testing.assert_allclose(small, (full + 0.5) / 4.0 - 0.5, rtol=1e-12)


def test_a_camera_that_looks_at_a_point_has_it_in_the_middle():
    given = declared.Camera(eye=(0, 0.5, 3), target=(0.1, 0, 0), fov_y=40.0)
    camera = make_camera("front", given, (120, 160), (0.1, 0, 0))
    assert isinstance(camera, Camera)
    middle = pixel(camera, np.array([0.1, 0, 0]), (120, 160))
    np.testing.assert_allclose(middle, [79.5, 59.5], atol=1e-12)
    assert camera.near == pytest.approx(0.01 * np.linalg.norm([0.1, 0.5, 3]))
    assert make_camera("f", declared.Camera(eye=(0, 0, 3), target=(0, 0, 0), K=K), (480, 640)).lens


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eye": (0, 0, 1), "target": (0, 0, 1), "fov_y": 40.0}, "`cameras.front`: .*must differ"),
        ({"R": matrix(2.0 * R), "t": (0, 0, 1), "K": K}, r"`cameras.front.R`: .*rotation"),
        ({"R": matrix(R), "t": (0, 0, 1), "K": matrix(R)}, r"`cameras.front.K`"),
        ({"R": matrix(R), "t": (0, 0, 1), "K": ((7, 0, 1), (0, 7, 1), (0, 0, 2))}, "last entry"),
        (
            {"R": matrix(R), "t": (0, 0, 1), "K": ((9, 0, 960), (0, 9, 540), (0, 0, 1))},
            r"`cameras.front.K` must be in pixels of the film, which has 640 x 480.*\(960, 540\)",
        ),
    ],
)
def test_cameras_that_are_none_are_refused(given, message):
    with pytest.raises(StudyError, match=message):
        make_camera("front", declared.Camera(**given), (480, 640))


@pytest.mark.parametrize("size", [(600, 2), (2, 600)])
def test_a_narrow_picture_is_refused_before_a_fit_whose_figures_it_would_break(size):
    given = declared.Camera(eye=(0, 0.5, 3), target=(0.1, 0, 0), fov_y=40.0)
    with pytest.raises(StudyError, match=f"`cameras.front` must .* 20 times .* got {size[0]} x"):
        make_camera("front", given, size)


def test_a_camera_inside_a_body_is_told():
    ball = ball_tets(3)
    surface = ball.surface()
    vertices, faces = ball.points[surface.nodes], surface.local_faces
    assert winding_number(np.array([0.3, 0.1, 0.0]), vertices, faces) == pytest.approx(1.0)
    assert winding_number(np.array([1.3, 0.1, 0.0]), vertices, faces) == pytest.approx(
        0.0, abs=1e-12
    )
    drawn = {"ball": (faces, vertices)}
    require_outside("front", Camera((0, 0, 3), (0, 0, 0)), drawn)
    with pytest.raises(StudyError, match=r"`cameras.front` .* \[0, 0, 0.5\] m, is inside 'ball'"):
        require_outside("front", Camera((0, 0, 0.5), (0, 0, 0)), drawn)
