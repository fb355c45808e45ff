import numpy as np
import pytest

from adjsim.meshes.files import unstructured_grid, write_tet_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.runs.errors import StudyError
from studies.scene.declared import ASSETS, Cloth, Rigid, Soft, Springs
from studies.scene.mesh_source import read_source, skin_of, surface_of, volume_of


def source_of(kind=Soft, **given):
    return read_source("bodies.a", kind(**given))


@pytest.mark.parametrize(
    ("given", "kind", "size"),
    [
        ({"mesh": "box", "size": (4, 2, 1), "cells": (4, 2, 1)}, TetMesh, (4, 2, 1)),
        ({"mesh": "ball", "size": (0.5,), "cells": (2,)}, TetMesh, None),
        ({"mesh": "sheet", "size": (2, 1), "cells": (2, 1)}, TriangleMesh, (2, 1, 0)),
        ({"mesh": "shape:torus", "size": (0.2,)}, TriangleMesh, None),
    ],
)
def test_generators_are_centred_and_of_their_size(given, kind, size):
    mesh = source_of(**given).mesh
    assert isinstance(mesh, kind)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    if size is None:
        radius = np.linalg.norm(mesh.points, axis=1).max()
        assert radius == pytest.approx(given["size"][0], rel=0.02)
    else:
        np.testing.assert_allclose(high - low, size, rtol=1e-14)
        np.testing.assert_allclose(high + low, 0.0, atol=1e-14)


def test_the_bundled_gear_is_like_that_of_the_paper():
    mesh = source_of(mesh=str(ASSETS / "gear.vtu")).mesh
    surface = mesh.surface()
    assert (mesh.n_points, mesh.n_tets) == (480, 1152)
    # All points lie on the surface, a ring: V - E + F = V - F/2 = 0.
    assert (len(surface.nodes), len(surface.faces)) == (480, 960)
    assert mesh.volumes.sum() == pytest.approx(9.677, abs=5e-4)


def test_the_bundled_bell_is_a_sheet_with_one_margin_that_faces_outwards():
    mesh = source_of(Cloth, mesh=str(ASSETS / "bell.vtp")).mesh
    assert (mesh.points.shape, mesh.faces.shape) == ((121, 3), (192, 3))
    hinges = mesh_hinges(mesh.faces)  # it refuses an edge of more than two triangles
    assert len(hinges) == 264
    assert int((mesh.points[hinges, 1] > -1e-9).all(axis=1).sum()) == 240  # but for lappets
    # A sheet with one margin: V - E + F = 1, and each edge has one triangle or two.
    n_margin = 3 * len(mesh.faces) - 2 * len(hinges)
    assert len(mesh.points) - (len(hinges) + n_margin) + len(mesh.faces) == 1
    a, b, c = mesh.points[mesh.faces].transpose(1, 0, 2)
    outwards = (a + b + c) / 3.0 - [0.0, -0.3, 0.0]
    assert ((np.cross(b - a, c - a) * outwards).sum(axis=1) > 0.0).all()


def test_a_chain_has_links_and_a_rigid_box_few_points():
    mesh = source_of(Springs, mesh="chain", size=(2.0,), cells=(4,)).mesh
    assert mesh.edges.shape == (4, 2)
    assert surface_of("bodies.a", source_of(Rigid, mesh="box")).points.shape == (8, 3)
    assert source_of(mesh="box", size=(0.4, 0.1, 0.1)).mesh.n_tets == 5 * 8 * 2 * 2


def test_a_pose_scales_then_turns_then_moves():
    placed = source_of(
        mesh="box", cells=(1, 1, 1), scale=2.0, rotation=(0, 0, 90), position=(1, 2, 3)
    )
    x, y, z = 2.0 * source_of(mesh="box", cells=(1, 1, 1)).mesh.points.T
    np.testing.assert_allclose(placed.mesh.points, np.stack([1 - y, 2 + x, 3 + z], 1), atol=1e-14)


def test_a_volume_is_drawn_by_its_surface(tmp_path):
    source = source_of(mesh=str(write_tet_mesh(tmp_path / "a.vtu", box_tets((2, 2, 2)))))
    volume = volume_of("bodies.a", source, 0.1)
    skin, surface = skin_of(source, volume)
    assert volume is source.mesh
    assert skin.shape == (26, 27)
    np.testing.assert_array_equal(skin @ volume.points, surface.points)
    surface.require_closed()


def test_a_closed_surface_is_filled_and_carried():
    source = source_of(mesh="shape:cube", size=(1.0,))
    volume = volume_of("bodies.a", source, 0.3)
    skin, surface = skin_of(source, volume)
    np.testing.assert_allclose(skin @ volume.points, surface.points, atol=1e-12)
    assert volume.volumes.sum() == pytest.approx(surface.volume, rel=0.05)


def test_fields_are_read_by_name(tmp_path):
    mesh = box_tets((2, 1, 1))
    grid = unstructured_grid(mesh)
    grid.cell_data["E"] = np.arange(1.0, mesh.n_tets + 1)
    grid.point_data["x"] = mesh.points[:, 0]
    grid.point_data["normals"] = mesh.points
    grid.save(tmp_path / "a.vtu")
    source = source_of(mesh=str(tmp_path / "a.vtu"))
    np.testing.assert_array_equal(source.field("k", "field:E"), np.arange(1.0, mesh.n_tets + 1))
    of_cells = mesh.points[mesh.tets, 0].mean(axis=1)
    np.testing.assert_allclose(source.field("k", "field:x"), of_cells)
    with pytest.raises(StudyError, match=r"`k` must name an array .*`E`\? Known: E, normals, x"):
        source.field("k", "field:EE")
    with pytest.raises(StudyError, match="one finite number for each cell"):
        source.field("k", "field:normals")


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Soft, {"mesh": "bux"}, r"`bodies.a.mesh`: Unknown generator `bux`. Did you mean `box`"),
        (Soft, {"mesh": "shape:cub"}, "Unknown shape `cub`. Did you mean `cube`"),
        (Soft, {"mesh": "none.obj"}, "`bodies.a.mesh`: there is no file none.obj"),
        (Soft, {"mesh": "box", "size": (1.0,)}, r"`bodies.a.size` must be 3 positive"),
        (Soft, {"mesh": "box", "cells": (1, 0, 1)}, r"`bodies.a.cells` must be 3 whole"),
        (Soft, {"mesh": "shape:gear", "cells": (1,)}, "`bodies.a.cells` means nothing"),
        (Soft, {"mesh": "pyvista:hexbeam.vtk", "size": (1.0,)}, "`bodies.a.size` is for generated"),
    ],
)
def test_what_is_no_mesh_is_told_by_key(kind, given, message):
    with pytest.raises(StudyError, match=message):
        source_of(kind, **given)


PLY = """ply
format ascii 1.0
element vertex {}
property float x
property float y
property float z
element face 4
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
0 0 1
3 0 2 1
3 0 1 3
3 0 3 2
3 1 2 3
"""


def test_a_mesh_whose_header_lies_is_refused_before_its_reader_crashes(tmp_path):
    path = tmp_path / "a.ply"
    path.write_text(PLY.format(4))
    assert source_of(mesh=str(path)).mesh.points.shape == (4, 3)
    path.write_text(PLY.format(2_000_000_000))
    with pytest.raises(StudyError, match=r"`bodies.a.mesh`: .*a\.ply .* header counts more"):
        source_of(mesh=str(path))


@pytest.mark.parametrize("scale", [1e-30, 1e29])
def test_a_mesh_of_no_sensible_size_is_refused(scale):
    with pytest.raises(
        StudyError, match=r"`bodies.a.mesh` must be longer .* Check `bodies.a.scale"
    ):
        source_of(mesh="box", scale=scale)


def test_meshes_that_do_not_fit_a_body_are_told_by_key():
    sheet = source_of(Cloth, mesh="sheet")
    with pytest.raises(StudyError, match=r"`bodies.a.mesh`: `surface` must be closed"):
        volume_of("bodies.a", sheet, 0.1)
    rope = source_of(Springs, mesh="chain")
    for fails in (lambda: volume_of("bodies.a", rope, 0.1), lambda: surface_of("bodies.a", rope)):
        with pytest.raises(StudyError, match="got a chain"):
            fails()
