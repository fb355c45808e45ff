"""A hull that is fitted to the outlines of masks: nearer to the body, tips and all."""

from dataclasses import replace

import numpy as np
import pytest
import pyvista

from adjsim.meshes.shapes import shape
from adjsim.meshes.surfaces import blocks
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.problem.carving import OUTLINE, View, hull
from studies.problem.outlines import fitted_to_outlines, surface_from_views
from tests.studies.problem.test_carving import (
    AROUND,
    BODY,
    MIDDLE,
    RADIUS,
    looking,
    view,
    views,
    with_one_aside,
)


def distance(surface, body=BODY):
    """Return the root mean square distance of a surface from that of a body about `MIDDLE` [m]."""
    true = pyvista.PolyData.from_regular_faces(body.points + MIDDLE, body.faces)
    there = pyvista.PolyData.from_regular_faces(surface.points, surface.faces)
    off = np.asarray(there.compute_implicit_distance(true)["implicit_distance"])
    return float(np.sqrt(np.square(off).mean()))


@pytest.mark.parametrize("count", [11, 3])
def test_a_fitted_surface_is_nearer_to_the_body_than_its_hull(count):
    seen = views(*AROUND[:count])
    carved = hull(seen, 24, "x")
    surface, left = fitted_to_outlines(carved.surface, list(seen.values()))
    surface.require_closed()
    assert np.array_equal(surface.faces, carved.surface.faces)
    assert left <= OUTLINE
    assert distance(surface) < 0.8 * distance(carved.surface)
    again, _ = fitted_to_outlines(carved.surface, list(seen.values()))
    assert np.array_equal(again.points, surface.points)


def test_thin_tips_are_as_long_as_in_the_masks():
    bird = shape("airplane")
    seen = {f"film{k}": view(looking(*angle), bird) for k, angle in enumerate(AROUND)}
    carved = hull(seen, 32, "x").surface
    surface, _ = fitted_to_outlines(carved, list(seen.values()))
    pixel = 6.0 * RADIUS * seen["film0"].width

    def too_short(mesh: TriangleMesh) -> float:
        return float((np.ptp(bird.points, axis=0) - np.ptp(mesh.points, axis=0)).max())

    assert too_short(carved) > pixel
    assert too_short(surface) < 0.5 * too_short(carved)


def test_a_plate_is_not_thinned_by_the_outlines_of_its_other_side():
    sides = [(-0.8 * RADIUS, 0.8 * RADIUS)] * 2 + [(-0.08 * RADIUS, 0.08 * RADIUS)]
    plate = blocks(sides, np.ones((1, 1, 1)))
    seen = {f"film{k}": view(looking(*angle), plate) for k, angle in enumerate(AROUND)}
    carved, fitted = (built(seen, 24, "x").surface for built in (hull, surface_from_views))
    assert carved.volume > 1.3 * plate.volume
    assert fitted.volume == pytest.approx(plate.volume, rel=0.15)
    assert distance(fitted, plate) < 0.7 * distance(carved, plate)


def test_a_camera_in_the_wrong_place_makes_the_error_larger_and_the_surface_no_rougher():
    seen = with_one_aside(0.2)
    carved, fitted = (built(seen, 24, "x") for built in (hull, surface_from_views))
    assert fitted.error > 1.02 * carved.error
    assert distance(fitted.surface) < 0.6 * distance(carved.surface)


def test_a_camera_may_have_planes_that_do_not_enclose_the_body_and_its_pictures_any_size():
    seen = views(*AROUND)
    surface = surface_from_views(seen, 24, "x").surface
    far = replace(seen["film0"].camera, near=1e3, far=1e4)
    seen["film0"] = View(seen["film0"].mask, far)
    assert np.array_equal(surface_from_views(seen, 24, "x").surface.points, surface.points)
    large = np.kron(seen["film1"].mask, np.ones((12, 12)))
    seen["film1"] = View(large, seen["film1"].camera)
    assert distance(surface_from_views(seen, 24, "x").surface) < 1.2 * distance(surface)


def test_the_error_of_a_surface_does_not_hang_on_how_large_pictures_are():
    small = with_one_aside(0.2)
    large = {
        name: View(np.kron(each.mask, np.ones((24, 24))), each.camera)
        for name, each in small.items()
    }
    errors = [surface_from_views(seen, 24, "x").error for seen in (small, large)]
    assert errors[1] == pytest.approx(errors[0], rel=0.1)


def test_two_views_have_their_hull():
    seen = views((0.0, 10.0), (90.0, 40.0))
    ours, carved = surface_from_views(seen, 24, "x"), hull(seen, 24, "x")
    assert np.array_equal(ours.surface.points, carved.surface.points)
