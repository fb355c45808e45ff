import numpy as np
import pytest
import pyvista

from adjsim.meshes.files import read_mesh
from adjsim.meshes.grid import box_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies import fillings
from studies.body import lam_over_mu, pinned_nodes, read_body


POINTS = box_tets((4, 1, 1), (4.0, 1.0, 1.0)).points


def settings(mesh, **pinned):
    shape = {"shape": "box", "lower": [-1.0] * 3, "upper": [2.0, 2.0, 0.01], **pinned}
    return {"mesh": mesh, "body": {"scale": 1.0, "edge_length": 0.2}, "pinned": shape}


def test_a_volume_mesh_is_drawn_by_its_own_boundary():
    body = read_body(settings("pyvista:hexbeam.vtk"))
    surface = body.mesh.surface()
    assert (body.rest_vertices == body.mesh.points[surface.nodes]).all()
    assert (body.faces == surface.local_faces).all()
    assert body.pinned.sum() == 9


def test_a_closed_surface_is_filled_and_drawn_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(fillings, "CACHE_DIR", tmp_path / "kernels")
    given = settings("pyvista:sphere.ply", shape="none")
    body = read_body(given)
    surface = read_mesh("pyvista:sphere.ply")
    assert isinstance(surface, TriangleMesh)
    # Coordinates up to 127, four products each.
    assert np.abs(body.rest_vertices - surface.points).max() < 127 * 1e-13
    assert (body.faces == surface.faces).all()
    again = read_body(given)
    assert (again.mesh.points == body.mesh.points).all()
    assert (again.mesh.tets == body.mesh.tets).all()


def test_a_box_holds_the_nodes_inside():
    held = {"shape": "box", "lower": [-1.0] * 3, "upper": [0.5, 2.0, 2.0]}
    assert (pinned_nodes(POINTS, held) == (POINTS[:, 0] == 0.0)).all()


def test_a_plane_holds_the_nodes_behind_it():
    held = {"shape": "plane", "point": [2.5, 0.0, 0.0], "normal": [-1.0, 0.0, 0.0]}
    assert (pinned_nodes(POINTS, held) == (POINTS[:, 0] >= 3.0)).all()


@pytest.mark.parametrize("x", [-5.0, 9.0])
def test_holding_none_or_all_nodes_is_refused(x):
    held = {"shape": "plane", "point": [x, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}
    n = 0 if x < 0.0 else len(POINTS)
    with pytest.raises(ValueError, match=rf"`pinned` must hold some .* holds {n} of {len(POINTS)}"):
        pinned_nodes(POINTS, held)


@pytest.mark.parametrize(
    ("shape", "key", "value", "match"),
    [
        ("box", "lower", [0.0, 0.0], r"`pinned.lower` must have shape \(3,\), got \(2,\)"),
        ("box", "upper", [1.0] * 4, r"`pinned.upper` must have shape \(3,\), got \(4,\)"),
        ("plane", "point", [1.0], r"`pinned.point` must have shape \(3,\), got \(1,\)"),
        ("plane", "normal", [0.0, 1.0], r"`pinned.normal` must have shape \(3,\), got \(2,\)"),
        ("plane", "normal", [0.0] * 3, "`pinned.normal` must not be zero"),
    ],
)
def test_a_vector_of_what_is_held_is_named(shape, key, value, match):
    held = {"shape": shape, "lower": [-1.0] * 3, "upper": [0.5, 2.0, 2.0]}
    held |= {"point": [2.5, 0.0, 0.0], "normal": [1.0, 0.0, 0.0], key: value}
    with pytest.raises(ValueError, match=match):
        pinned_nodes(POINTS, held)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("scale", -1.0, "`body.scale` must be positive, got -1"),
        ("edge_length", 1.0, r"`body.edge_length` must be in \(0, 1\), got 1.0"),
    ],
)
def test_a_length_of_the_body_is_named(key, value, match):
    given = settings("pyvista:sphere.ply")
    given["body"][key] = value
    with pytest.raises(ValueError, match=match):
        read_body(given)


def test_an_unknown_shape_is_refused():
    with pytest.raises(ValueError, match=r"`pinned.shape` must be .* got 'ball'"):
        pinned_nodes(POINTS, {"shape": "ball"})


def test_an_open_surface_is_refused(tmp_path):
    pyvista.Plane().save(tmp_path / "plane.ply")
    with pytest.raises(ValueError, match="`mesh` must be closed"):
        read_body(settings(str(tmp_path / "plane.ply")))


def test_lam_over_mu_follows_from_small_strain():
    # mu_L = 3/4 mu and lam_L = lam - 5/8 mu at rest; nu = lam_L / (2 (lam_L + mu_L)).
    for nu in (0.0, 0.2, 0.4, 0.49):
        mu_l, lam_l = 0.75, lam_over_mu(nu) - 0.625
        assert lam_l / (2.0 * (lam_l + mu_l)) == pytest.approx(nu, abs=1e-14)


@pytest.mark.parametrize("nu", [0.5, -1.0, 0.7])
def test_a_poisson_ratio_out_of_range_is_refused(nu):
    with pytest.raises(ValueError, match=r"`body.poisson_ratio` must be in \(-1, 0.5\)"):
        lam_over_mu(nu)
