import numpy as np
import pytest

from adjsim.meshes.bells import bell
from adjsim.meshes.hinges import mesh_hinges


N_BELL = 97  # points that are not the tips of lappets


def test_the_bell_is_a_sheet_with_one_margin_that_faces_outwards():
    mesh = bell()
    assert (mesh.points.shape, mesh.faces.shape) == ((121, 3), (192, 3))
    hinges = mesh_hinges(mesh.faces)  # it refuses an edge of more than two triangles
    assert len(hinges) == 264
    assert int((hinges < N_BELL).all(axis=1).sum()) == 240
    # A sheet with one margin: V - E + F = 1, and each edge has one triangle or two.
    n_margin = 3 * len(mesh.faces) - 2 * len(hinges)
    assert len(mesh.points) - (len(hinges) + n_margin) + len(mesh.faces) == 1
    assert n_margin == 48
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    outwards = (a + b + c) / 3.0 - [0.0, -0.3, 0.0]
    assert ((normals * outwards).sum(axis=1) > 0.0).all()
    lengths = np.linalg.norm([b - a, c - b, a - c], axis=2)
    assert (lengths.min(), lengths.max()) == pytest.approx((0.21, 0.34), abs=0.01)


def test_the_bell_lies_on_its_ellipsoid():
    mesh = bell(2.0, 0.5, 0.1)
    x, y, z = mesh.points[:N_BELL].T
    np.testing.assert_allclose((x**2 + z**2) / 4.0 + y**2 / 0.25, 1.0, rtol=1e-12)
    np.testing.assert_allclose(mesh.points[N_BELL:, 1], -0.1, rtol=1e-12)


def test_a_length_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="`lappet`"):
        bell(lappet=0.0)
