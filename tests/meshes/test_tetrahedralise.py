import sys

import numpy as np
import pytest

from adjsim.meshes.embedding import embedding
from adjsim.meshes.files import read_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.smoothing import least_heights
from adjsim.meshes.tetrahedralise import tetrahedralise
from adjsim.meshes.triangle_mesh import TriangleMesh


def test_a_sphere_that_pyvista_ships_is_filled_and_carries_its_surface():
    surface = read_mesh("pyvista:sphere.ply", scale=1e-2)
    assert isinstance(surface, TriangleMesh)
    mesh = tetrahedralise(surface, edge_length=0.15)
    # The envelope is 2e-3 of the diagonal, the radius 0.29 of it: a shell of that width
    # is 3 * 2e-3 / 0.29 = 2 % of the volume.
    assert mesh.volumes.sum() == pytest.approx(surface.volume, rel=0.02)
    heights = least_heights(mesh.points[mesh.tets])
    assert heights.min() > 0.3 * np.median(heights)
    vertices = embedding(mesh, surface.points) @ mesh.points
    assert np.abs(vertices - surface.points).max() < 1e-12


def test_an_open_surface_is_refused_with_the_number_of_open_edges():
    surface = read_mesh("pyvista:airplane.ply")
    assert isinstance(surface, TriangleMesh)
    with pytest.raises(ValueError, match="`surface` must be closed, but 223 of its 3789 edges"):
        tetrahedralise(surface)


def test_the_missing_extra_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytetwild.pytetwild", None)
    mesh = box_tets((1, 1, 1))
    with pytest.raises(ImportError, match=r"pip install -e '\.\[mesh\]' in your clone"):
        tetrahedralise(TriangleMesh(mesh.points, mesh.surface().faces))


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"edge_length": 0.0}, r"`edge_length` must be in \(0, 1\), got 0.0"),
        ({"edge_length": 1e-9}, "`edge_length` = 1e-09 gives about .* tetrahedra, more than 3e"),
        ({"envelope": 0.2}, r"`envelope` must be in \(0, 0.1\], got 0.2"),
    ],
)
def test_lengths_out_of_range_are_refused(kwargs, match):
    mesh = box_tets((1, 1, 1))
    with pytest.raises(ValueError, match=match):
        tetrahedralise(TriangleMesh(mesh.points, mesh.surface().faces), **kwargs)
