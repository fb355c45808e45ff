"""A hull that is fitted to the outlines of masks: nearer to the body, tips and all."""

from dataclasses import replace

import numpy as np
import pytest
import pyvista

from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.problem.carving import OUTLINE, View, hull
from studies.problem.outlines import fitted_to_outlines, surface_from_views
from tests.studies.problem.test_carving import AROUND, BODY, MIDDLE, RADIUS, looking, view, views


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


def test_outlines_that_contradict_each_other_are_part_of_the_error():
    seen = views(*AROUND)
    good, aside = surface_from_views(seen, 24, "x"), looking(*AROUND[3], target=MIDDLE + 0.1)
    wrong = replace(seen["film3"], camera=view(aside).camera)
    bad = surface_from_views({**seen, "film3": View(wrong.mask, wrong.camera)}, 24, "x")
    assert good.error == pytest.approx(hull(seen, 24, "x").error, rel=0.2)
    assert bad.error > 1.2 * good.error
