"""The hull of masks: its size, its hole, and what views must have in common."""

from typing import Any

import numpy as np
import pytest

from adjsim.meshes.shapes import shape
from adjsim.meshes.surfaces import blocks
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rotations import rotation_matrix
from render.blending import Hard
from render.camera import Camera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.carving import View, hull
from studies.problem.outlines import surface_from_views
from studies.problem.pixels import posed
from studies.runs.errors import StudyError


SIZE = (60, 80)
BODY = shape("torus")
MIDDLE = np.array([0.4, 1.0, -0.2])
RADIUS = float(np.linalg.norm(BODY.points, axis=1).max())


def looking(around, up, *, target=MIDDLE, distance=6.0, fov_y=30.0):
    """Return a camera that looks at a point from these angles [deg]."""
    a, e = np.radians([around, up])
    arm = [np.cos(e) * np.sin(a), np.sin(e), np.cos(e) * np.cos(a)]
    return Camera(target + distance * RADIUS * np.array(arm), target, fov_y=fov_y)


def view(camera, body=BODY):
    """Return what a camera sees of a body about `MIDDLE`, with antialiased edges."""
    raster = SoftRasterizer(blend=Hard(), supersample=4)
    scene, vertices = Scene({"body": Mesh(body.faces)}), {"body": body.points + MIDDLE}
    mask = rasterize(scene, camera, raster, vertices, SIZE)[..., 3]
    return View(np.reshape(mask, SIZE), posed(camera, np.zeros(3)))


def views(*angles, **more):
    return {f"film{k}": view(looking(*angle, **more)) for k, angle in enumerate(angles)}


AROUND = [(360.0 * k / 11, (8.0, 32.0, 56.0)[k % 3]) for k in range(11)]


def test_hull_of_many_views_is_the_body_to_a_part_of_a_pixel():
    seen = views(*AROUND)
    surface, error, _ = hull(seen, 24, "bodies.ring.mesh")
    surface.require_closed()
    assert len(surface.points) - len(surface.edges) + len(surface.faces) == 0  # it has a hole
    assert surface.volume == pytest.approx(BODY.volume, rel=0.06)
    pixel = 6.0 * RADIUS * seen["film0"].width
    for end in ("min", "max"):
        ours, true = (getattr(np, end)(x, axis=0) for x in (surface.points - MIDDLE, BODY.points))
        assert np.abs(ours - true).max() < pixel  # no view looks along its lower side
    assert 0.1 * pixel < error < pixel
    again, *_ = hull(views(*AROUND), 24, "bodies.ring.mesh")
    assert np.array_equal(again.points, surface.points)


def with_one_aside(by):
    """Return views of which one has a camera that is not where it was, by a part of the radius."""
    seen = views(*AROUND)
    there = looking(*AROUND[3], target=MIDDLE + np.array([0.0, by * RADIUS, 0.0]))
    return {**seen, "film3": View(seen["film3"].mask, posed(there, np.zeros(3)))}


def test_a_camera_in_the_wrong_place_is_named():
    assert not hull(views(*AROUND), 24, "x").warning
    assert not hull(views(*AROUND[:3]), 24, "x").warning
    for by, least in ((0.1, 1.0), (0.2, 10.0)):
        warning = hull(with_one_aside(by), 24, "bodies.ring.mesh").warning
        assert warning.startswith("warning: `bodies.ring.mesh`: the hull leaves ")
        assert float(warning.split("leaves ")[1].split(" %")[0]) >= least
        assert "empty, and 0 % without `film3`: check its camera and mask." in warning
    with pytest.raises(StudyError, match=r"^`x`: the hull leaves \d+ % .* and 0 % without `film3`"):
        hull(with_one_aside(0.4), 24, "x")


def test_two_views_that_contradict_each_other_are_refused():
    first, second = views((0.0, 10.0), (90.0, 40.0)).items()
    mask = second[1].mask.copy()
    mask[: SIZE[0] // 2] = 0.0
    cut = {first[0]: first[1], second[0]: View(mask, second[1].camera)}
    with pytest.raises(
        StudyError, match=r"of the mask of `film0` empty.* a camera or mask is wrong"
    ):
        hull(cut, 24, "x")


def test_fewer_views_leave_more_and_what_they_leave_is_taken_away():
    import pyvista

    sets = AROUND, [AROUND[k] for k in (0, 1, 5, 8)], [(0.0, 10.0), (90.0, 40.0)]
    hulls = [hull(views(*angles), 20, "x") for angles in sets]
    volumes = [surface.volume / BODY.volume for surface, *_ in hulls]
    # that of all places within the masks is 2, 26 and 97 % too large
    assert np.all(np.abs(np.subtract(volumes, 1.0)) < (0.02, 0.12, 0.2))
    errors = [error for _, error, _ in hulls]
    assert errors == sorted(errors)
    of_four = hulls[1].surface
    mesh = pyvista.PolyData.from_regular_faces(of_four.points, of_four.faces)
    true = pyvista.PolyData.from_regular_faces(BODY.points + MIDDLE, BODY.faces)
    apart = np.asarray(mesh.compute_implicit_distance(true)["implicit_distance"])
    assert 0.5 < errors[1] / np.sqrt(np.square(apart).mean()) < 2.0


def test_error_of_a_hull_counts_what_views_leave_over_flat_sides():
    import pyvista

    turn = rotation_matrix(np.array([0.0, 0.35, 0.2]))
    cube = blocks([(-0.6 * RADIUS, 0.6 * RADIUS)] * 3, np.ones((1, 1, 1)))
    cube = TriangleMesh(cube.points @ turn.T, cube.faces)
    seen = {f"film{k}": view(looking(*angle), cube) for k, angle in enumerate(AROUND)}
    surface, error, _ = hull(seen, 24, "x")
    sides: Any = pyvista.PolyData.from_regular_faces(cube.points + MIDDLE, cube.faces)
    carved = pyvista.PolyData.from_regular_faces(surface.points, surface.faces)
    places = sides.subdivide(4, "linear")
    off = -np.asarray(places.compute_implicit_distance(carved)["implicit_distance"])
    assert surface.volume > 1.05 * cube.volume
    assert np.sqrt(np.square(off).mean()) < error


def test_specks_in_a_mask_do_not_count():
    seen = views(*AROUND[::2])
    mask = seen["film1"].mask.copy()
    mask[0, 0] = mask[2, 3] = 1.0
    specked = {**seen, "film1": View(mask, seen["film1"].camera)}
    first, second = (hull(which, 16, "x").surface for which in (seen, specked))
    assert np.array_equal(first.points, second.points)


def refusal(seen):
    with pytest.raises(StudyError) as error:
        surface_from_views(seen, 16, "bodies.ring.mesh")
    return str(error.value)


def test_one_view_is_not_enough():
    assert "two views or more" in refusal({})
    assert "got only `film0`" in refusal(views((0.0, 10.0)))


def test_views_from_one_side_do_not_say_how_deep_it_is():
    assert "differ by 2 degrees at most" in refusal(views((0.0, 0.0), (2.0, 0.0)))


def test_a_mask_that_is_empty_or_touches_an_edge():
    blank = View(np.zeros(SIZE), posed(looking(90.0, 0.0), np.zeros(3)))
    assert "`blank` shows no body" in refusal({**views((0.0, 0.0)), "blank": blank})
    full = View(np.ones(SIZE), blank.camera)
    assert "must show a body before its `background`" in refusal({"full": full, **views(AROUND[0])})
    seen = views(AROUND[0])["film0"]
    shifted = View(np.roll(seen.mask, -int(np.nonzero(seen.body)[1].min()), axis=1), seen.camera)
    assert "touches the left edge" in refusal({**views((0.0, 0.0)), "near": shifted})


def test_cameras_that_look_at_different_places():
    seen = views(*AROUND[:4])
    above = MIDDLE + np.array([0.0, 40.0 * RADIUS, 0.0])
    away = View(seen["film0"].mask, posed(looking(90.0, 0.0, target=above), np.zeros(3)))
    message = refusal({"film": seen["film0"], "away": away})
    assert "the views do not overlap" in message
    assert "of the cameras of `film` and `away`" in message
    message = refusal({**seen, "away": away})
    assert "the views do not overlap" in message
    assert "of the camera of `away`, without which" in message
    opposite = views((0.0, 0.0), (180.0, 0.0))
    assert "of the camera of `away`" in refusal({**opposite, "away": away})
    beside = MIDDLE + np.array([0.0, 2.2 * RADIUS, 0.0])
    camera = posed(looking(90.0, 9.0, target=beside), np.zeros(3))
    message = refusal({**seen, "beside": View(seen["film0"].mask, camera)})
    assert "the hull is empty" in message
    assert "`beside`" in message
