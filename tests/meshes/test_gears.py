import numpy as np
import pytest

from adjsim.meshes.gears import gear_tets


def test_the_gear_is_like_that_of_the_paper():
    mesh = gear_tets()
    surface = mesh.surface()
    assert (mesh.n_points, mesh.n_tets) == (480, 1152)
    # All points lie on the surface, a ring: V - E + F = V - F/2 = 0.
    assert (len(surface.nodes), len(surface.faces)) == (480, 960)
    assert mesh.volumes.sum() == pytest.approx(9.677, abs=5e-4)
    assert np.ptp(mesh.points[:, :2], axis=0) == pytest.approx([5.0, 5.0], rel=0.02)


def test_the_volume_is_that_of_the_outlines_times_the_thickness():
    mesh = gear_tets(5, rings=2, layers=3, hole=0.5, root=1.0, tip=1.3, thickness=0.2)
    # Four sectors to a tooth; a triangle of the outline has the area 1/2 r1 r2 sin(step).
    sides = 1.0 * 1.0 + 2 * 1.0 * 1.3 + 1.3 * 1.3 - 4 * 0.5 * 0.5
    outline = 5 * 0.5 * sides * np.sin(np.pi / 10)
    assert mesh.volumes.sum() == pytest.approx(0.2 * outline, rel=1e-13)
    assert mesh.n_points == 4 * 5 * 3 * 4
    assert mesh.n_tets == 24 * 5 * 2 * 3


def test_teeth_are_counted_at_the_tips():
    mesh = gear_tets(7)
    r = np.hypot(*mesh.points[:, :2].T)
    assert int((r > 2.4999).sum()) == 7 * 2 * 2  # two corners to a tooth, two layers of points
    assert np.abs(mesh.points.mean(axis=0)).max() < 1e-14


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"teeth": 2}, "`teeth` must be a whole number of at least 3, got 2"),
        ({"rings": 0}, "`rings` must be a whole number of at least 1, got 0"),
        ({"layers": 1.5}, "`layers` must be a whole number of at least 1, got 1.5"),
        ({"root": 3.0}, "`hole`, `root` and `tip` must increase from above 0, got 1.2, 3, 2.5"),
        ({"hole": 0.0}, "`hole`, `root` and `tip` must increase from above 0"),
        ({"thickness": 0.0}, "`thickness` must be positive, got 0"),
    ],
)
def test_impossible_gears_are_refused(kwargs, match):
    with pytest.raises(ValueError, match=match):
        gear_tets(**kwargs)
