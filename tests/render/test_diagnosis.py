"""Why a gradient is zero: every reason, made on purpose, and the distance told."""

import numpy as np
import pytest

from adjoint.render.diagnosis import Reason, diagnose, nearest
from adjoint.render.losses import loss_vjp
from render.annealing import softness
from render.blending import DIBR, Hard, Over, Softmax
from render.camera import Camera
from render.losses import Mse
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


SIZE = (32, 32)
VIEW = Camera((0, 0, 4.0), (0, 0, 0), fov_y=2 * np.degrees(np.arctan(0.5)))  # 4 m are 32 pixels
SQUARE = Scene({"square": Mesh([[0, 1, 2], [0, 2, 3]])})
CORNERS = np.array([[-0.5, -0.5, 0], [0.5, -0.5, 0], [0.5, 0.5, 0], [-0.5, 0.5, 0.0]])


def asked(x, adj=None, *, view=VIEW, sigma=1e-4, **how):
    """Diagnosis of the square, as the silhouette of another one is wanted."""
    soft = SoftRasterizer(sigma, **how)
    if adj is None:
        target = rasterize(SQUARE, VIEW, SoftRasterizer(sigma), {"square": CORNERS}, SIZE)
        image = rasterize(SQUARE, view, soft, {"square": x}, SIZE)
        adj = loss_vjp(Mse(), image, target)
    return diagnose(SQUARE, view, soft, {"square": x}, SIZE, adj)["square"]


def at_pixel(row, column, channels=4):
    adj = np.zeros((*SIZE, 4))
    adj[row, column, :channels] = 1.0
    return adj


def test_what_moves_is_said_to_move():
    found = asked(CORNERS + np.array([0.1, 0, 0]), sigma=softness(1.0, 32))
    assert found.reason is Reason.MOVES
    assert found.pull > 0.1
    assert str(found).startswith("its gradient is not zero")


def test_a_loss_that_looks_nowhere():
    assert asked(CORNERS, np.zeros((*SIZE, 4))).reason is Reason.FLAT_LOSS


@pytest.mark.parametrize("planes", [{"near": 5.0}, {"far": 3.0}])
def test_faces_beyond_near_or_far(planes):
    view = Camera((0, 0, 4.0), (0, 0, 0), **planes)
    assert asked(CORNERS, at_pixel(16, 16), view=view).reason is Reason.CLIPPED


def test_culled_faces():
    found = asked(CORNERS * [-1, 1, 1], at_pixel(16, 16), cull=True)
    assert found.reason is Reason.CULLED
    assert "cull=False" in str(found)
    assert asked(CORNERS, at_pixel(12, 16), cull=True).reason is not Reason.CULLED


def test_faces_edge_on():
    assert asked(CORNERS[:, [2, 1, 0]], at_pixel(16, 16)).reason is Reason.EDGE_ON


def test_an_object_without_faces():
    scene = Scene({"square": SQUARE.objects["square"], "marks": Mesh(np.empty((0, 3), int))})
    vertices = {"square": CORNERS, "marks": CORNERS[:2]}
    found = diagnose(scene, VIEW, SoftRasterizer(1e-4), vertices, SIZE, at_pixel(16, 16))
    assert found["marks"].reason is Reason.EMPTY


def test_outside_the_view_the_distance_is_that_to_the_image():
    # The left edge is at 2.5 m = 20 pixels right of the middle 15.5; the last column is 31.
    found = asked(CORNERS + np.array([3.0, 0, 0]), at_pixel(16, 16))
    assert found.reason is Reason.OUTSIDE
    assert found.distance == pytest.approx(4.5, rel=1e-12)


def test_far_from_what_the_loss_looks_at():
    # The upper edge is 4 pixels above the middle 15.5.
    found = asked(CORNERS, at_pixel(2, 15))
    assert found.reason is Reason.NO_OVERLAP
    assert found.distance == pytest.approx(9.5, rel=1e-12)
    assert "9.5 pixels away" in str(found)


def test_between_pixels_where_edges_are_too_sharp():
    # All edges pass half a pixel from the nearest centres, and sqrt(sigma) is 0.016 pixels.
    found = asked(CORNERS, at_pixel(12, 16), sigma=1e-6)
    assert found.reason is Reason.SATURATED
    assert found.distance == pytest.approx(0.5, rel=1e-12)
    assert found.softness == pytest.approx(0.016, rel=1e-12)
    assert asked(CORNERS, at_pixel(12, 16), sigma=softness(0.5, 32)).reason is Reason.MOVES


def test_the_softness_told_is_that_of_the_blend():
    # 16 pixels are a screen unit: sqrt(kappa) = 0.5 pixels; a z-buffer has no soft edge.
    dibr = asked(CORNERS, at_pixel(10, 16), blend=DIBR(kappa=softness(0.5, 32)))
    assert dibr.reason is Reason.MOVES
    assert dibr.softness == pytest.approx(0.5, rel=1e-12)
    hard = asked(CORNERS, at_pixel(12, 16), sigma=softness(2.0, 32), blend=Hard())
    assert (hard.reason, hard.softness) == (Reason.NOT_SOFT, 0.0)
    assert "`Hard` has no soft edges" in str(hard)


def test_hidden_behind_another():
    scene = Scene({**SQUARE.objects, "wall": Mesh([[0, 1, 2], [0, 2, 3]])})
    vertices = {"square": CORNERS, "wall": 3.0 * CORNERS + [0.1, 0.1, 1.0]}
    soft = SoftRasterizer(softness(0.1, 32))
    found = diagnose(scene, VIEW, soft, vertices, SIZE, at_pixel(12, 16))
    assert found["square"].reason is Reason.SATURATED
    soft = SoftRasterizer(softness(0.4, 32))
    found = diagnose(scene, VIEW, soft, vertices, SIZE, at_pixel(12, 16))
    assert found["square"].reason is Reason.HIDDEN


@pytest.mark.parametrize("seamless", [False, True])
@pytest.mark.parametrize("row", [11, 12])
@pytest.mark.parametrize("blend", [Softmax(), DIBR(softness(1.0, 32))])
def test_colours_that_no_edge_softens_are_not_called_hidden(blend, row, seamless):
    def ask(blend, channels, row=row):
        adj, sigma = at_pixel(row, 16, channels), softness(1.0, 32)
        return asked(CORNERS, adj, sigma=sigma, blend=blend, seamless=seamless)

    found = ask(blend, 3)
    assert found.reason is Reason.NOT_SOFT
    assert "Take `Over`" in str(found)
    # What it says to do does it. Row 11 is outside the square.
    assert ask(Over(), 3).reason is Reason.MOVES
    assert ask(blend, 4, row=11).reason is Reason.MOVES


def test_colours_of_softmax_are_soft_at_a_wide_gamma():
    adj, sigma = at_pixel(12, 16, channels=3), softness(1.0, 32)
    found = asked(CORNERS, adj, sigma=sigma, blend=Softmax(), gamma=1.0)
    assert found.reason is Reason.MOVES


def test_an_object_of_the_colour_of_what_is_behind_it_has_no_contrast():
    sigma, white = softness(1.0, 32), (1.0, 1.0, 1.0)  # as the square
    found = asked(CORNERS, at_pixel(12, 16, channels=3), sigma=sigma, background=white)
    assert found.reason is Reason.NO_CONTRAST
    assert "Give the loss alpha" in str(found)
    alpha = asked(CORNERS, at_pixel(12, 16), sigma=sigma, background=white)
    assert alpha.reason is Reason.MOVES
    other = asked(CORNERS, at_pixel(12, 16, channels=3), sigma=sigma, background=(0.1, 1.0, 1.0))
    assert other.reason is Reason.MOVES


@pytest.mark.parametrize("seamless", [False, True])
def test_what_lies_inside_the_outline_is_wholly_covered(seamless):
    # Row 14, column 15: 2.5 pixels below the upper edge, 1.4 from the diagonal.
    found = asked(CORNERS, at_pixel(14, 15), sigma=softness(0.3, 32), seamless=seamless)
    assert found.reason is Reason.INSIDE
    assert found.distance == pytest.approx(2.5, rel=1e-12)
    wide = asked(CORNERS, at_pixel(14, 15), sigma=softness(2.5, 32), seamless=seamless)
    assert wide.reason is Reason.MOVES


@pytest.mark.parametrize(("row", "distance"), [(14, 2.5), (9, 2.5), (2, 9.5)])
def test_a_z_buffer_has_no_soft_edge_wherever_the_loss_looks(row, distance):
    found = asked(CORNERS, at_pixel(row, 15), blend=Hard())
    assert found.reason is Reason.NOT_SOFT
    assert found.distance == pytest.approx(distance, rel=1e-12)
    over = asked(CORNERS, at_pixel(row, 15), sigma=softness(distance, 32))
    assert over.reason is Reason.MOVES


def test_what_cancels_is_told():
    # The upper edge is as far from row 11 as from row 12: it covers more of one, less of other.
    adj = at_pixel(11, 16) - at_pixel(12, 16)
    found = asked(CORNERS, adj, sigma=softness(1.0, 32), seamless=True)
    assert found.reason is Reason.BALANCED


@pytest.mark.parametrize(
    ("depth", "color", "reason"),
    [
        (1.0, 0.5, Reason.HIDDEN),
        (-1.0, 0.5, Reason.NOT_SOFT),
        (-1.0, 1.0, Reason.NO_CONTRAST),  # nor does alpha tell the square from its wall
    ],
)
def test_before_or_behind_a_wall_a_z_buffer_says_which(depth, color, reason):
    faces = SQUARE.objects["square"].faces
    scene = Scene({**SQUARE.objects, "wall": Mesh(faces, np.full((2, 3), color))})
    vertices = {"square": CORNERS, "wall": 3.0 * CORNERS + [0.1, 0.1, depth]}
    soft = SoftRasterizer(blend=Hard())
    found = diagnose(scene, VIEW, soft, vertices, SIZE, at_pixel(12, 16))
    assert found["square"].reason is reason


def test_pixels_with_next_to_no_adjoint_are_not_looked_at():
    adj = at_pixel(2, 15) + 1e-9 * at_pixel(12, 16)
    found = asked(CORNERS, adj, sigma=softness(1.0, 32))
    assert found.reason is Reason.NO_OVERLAP
    assert found.distance == pytest.approx(9.5, rel=1e-12)


def test_many_cameras_at_once_are_refused():
    with pytest.raises(TypeError, match=r"`camera` must be one camera, got list. Call once for"):
        asked(CORNERS, at_pixel(12, 16), view=[VIEW, VIEW])  # pyright: ignore[reportArgumentType]


def test_of_several_frames_the_nearest_to_moving_counts():
    x = np.stack([CORNERS + np.array([3.0, 0, 0]), CORNERS])
    adj = np.stack([at_pixel(16, 16), at_pixel(12, 16)])
    found = diagnose(SQUARE, VIEW, SoftRasterizer(softness(0.5, 32)), {"square": x}, SIZE, adj)
    assert found["square"].reason is Reason.MOVES


def test_inner_edges_are_no_outline():
    # The diagonal passes through the middle; the nearest edge of the outline is 4 pixels away.
    assert asked(CORNERS, at_pixel(15, 15)).distance == pytest.approx(3.5, rel=1e-12)


def test_the_distance_from_edges_without_length_is_that_from_their_point():
    assert nearest(np.array([[3.0, 4.0]]), np.zeros((1, 2, 2))) == 5.0
    assert nearest(np.empty((0, 2)), np.zeros((1, 2, 2))) == np.inf


def test_an_adjoint_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"`adj_images` must have shape \(32, 32, 4\)"):
        asked(CORNERS, np.zeros((32, 32)))
