"""Mass properties: closed forms, invariances, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.transform import Rotation

from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.mass_properties import (
    check_inertia,
    from_six,
    inverse_inertia,
    mass_properties,
    to_six,
)


SIZE = np.array([0.2, 0.5, 1.1])
CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
BOX = np.array([t for a, b, c, d in QUADS for t in ((a, b, c), (a, c, d))])
TETRAHEDRON = TriangleMesh(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
)


def box(origin=(0.0, 0.0, 0.0)):
    return TriangleMesh(CORNERS * SIZE + np.array(origin), BOX)


def sphere(n, radius=1.0):
    """A UV sphere of about n^2 points."""
    import pyvista

    surface = pyvista.Sphere(radius=radius, theta_resolution=2 * n, phi_resolution=n).clean()
    return TriangleMesh(surface.points, surface.faces.reshape(-1, 4)[:, 1:])


def moved(mesh, rotation, shift):
    return TriangleMesh(mesh.points @ rotation.T + shift, mesh.faces)


def lumpy(rng):
    """A closed mesh without any symmetry."""
    mesh = sphere(6)
    return TriangleMesh(mesh.points * rng.uniform(0.5, 1.0, (len(mesh.points), 1)), mesh.faces)


def test_a_box_has_its_closed_form():
    properties = mass_properties(box((3.0, -2.0, 0.5)))
    volume, (a2, b2, c2) = SIZE.prod(), SIZE**2
    diagonal = volume / 12.0 * np.array([b2 + c2, a2 + c2, a2 + b2])
    assert properties.volume == pytest.approx(volume, rel=1e-14)
    np.testing.assert_allclose(properties.center, np.array([3.0, -2.0, 0.5]) + SIZE / 2, rtol=1e-14)
    np.testing.assert_allclose(properties.inertia[:3], diagonal, rtol=1e-13)
    np.testing.assert_allclose(properties.inertia[3:], 0.0, atol=1e-16)


def test_a_tetrahedron_has_its_closed_form():
    # int x^2 = 1/60 and int xy = 1/120 about the corner, V = 1/6, c = 1/4 in each direction.
    properties = mass_properties(TETRAHEDRON)
    square, mixed = 1 / 60 - 1 / 96, 1 / 120 - 1 / 96
    assert properties.volume == pytest.approx(1 / 6, rel=1e-14)
    np.testing.assert_allclose(properties.center, 0.25, rtol=1e-14)
    np.testing.assert_allclose(properties.inertia, [2 * square] * 3 + [-mixed] * 3, rtol=1e-13)


def test_a_sphere_converges_at_second_order():
    errors = []
    for n in (12, 24, 48):
        properties = mass_properties(sphere(n))
        exact = 8 / 15 * np.pi
        errors.append(np.abs(properties.inertia[:3] / exact - 1).max())
        np.testing.assert_allclose(properties.inertia[3:], 0.0, atol=1e-7)  # float32 points
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert errors[-1] < 1e-2
    assert (slopes > 1.9).all(), slopes


def test_far_from_the_origin_the_digits_are_kept(rng):
    mesh, shift = lumpy(rng), np.array([1e5, -2e5, 1e5])
    near, far = mass_properties(mesh), mass_properties(moved(mesh, np.eye(3), shift))
    # The points themselves are rounded to 3e-11 there.
    np.testing.assert_allclose(far.inertia, near.inertia, atol=1e-9 * near.inertia.max())


@given(st.permutations(range(4)), st.integers(0, 2**32 - 1))
def test_the_order_of_points_and_faces_does_not_matter(order, seed):
    rng = np.random.default_rng(seed)
    points = np.empty((4, 3))
    points[list(order)] = TETRAHEDRON.points
    faces = rng.permutation(np.array(order)[TETRAHEDRON.faces])
    faces = np.stack([np.roll(face, rng.integers(3)) for face in faces])
    properties, kept = mass_properties(TriangleMesh(points, faces)), mass_properties(TETRAHEDRON)
    np.testing.assert_allclose(properties.inertia, kept.inertia, rtol=1e-12)
    np.testing.assert_allclose(properties.center, kept.center, rtol=1e-12)


def test_the_inertia_turns_with_the_body(rng):
    mesh, turn = lumpy(rng), Rotation.random(random_state=5).as_matrix()
    kept, properties = mass_properties(mesh), mass_properties(moved(mesh, turn, [1.0, 2.0, 3.0]))
    turned = turn @ from_six(kept.inertia) @ turn.T
    np.testing.assert_allclose(from_six(properties.inertia), turned, atol=1e-14)
    np.testing.assert_allclose(properties.center, turn @ kept.center + [1.0, 2.0, 3.0], rtol=1e-13)


def test_two_halves_add_up_by_the_parallel_axis_theorem(rng):
    first, second = lumpy(rng), moved(lumpy(rng), np.eye(3), [2.5, 0.3, -0.4])
    both = TriangleMesh(
        np.concatenate([first.points, second.points]),
        np.concatenate([first.faces, second.faces + len(first.points)]),
    )
    properties, parts = mass_properties(both), [mass_properties(first), mass_properties(second)]
    total = np.zeros((3, 3))
    for half in parts:
        d = half.center - properties.center
        total += from_six(half.inertia) + half.volume * (d @ d * np.eye(3) - np.outer(d, d))
    np.testing.assert_allclose(from_six(properties.inertia), total, atol=1e-13)


def test_six_numbers_and_matrices_are_the_same(rng):
    six = rng.normal(size=(4, 6)) + np.array([9.0, 9.0, 9.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(to_six(from_six(six)), six)
    product = from_six(six) @ from_six(inverse_inertia(six))
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(3), (4, 3, 3)), atol=1e-14)


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (TriangleMesh(CORNERS, BOX[:-1]), "`mesh` must be closed"),
        (TriangleMesh(CORNERS, BOX[:, ::-1]), "`mesh` must face outwards"),
        (TriangleMesh(CORNERS, [*BOX[:-1], BOX[-1][::-1]]), "agree on which side is outside"),
    ],
    ids=["open", "inside out", "one face turned"],
)
def test_meshes_without_an_inside_are_refused(mesh, message):
    with pytest.raises(ValueError, match=message):
        mass_properties(mesh)


@pytest.mark.parametrize(
    ("six", "message"),
    [
        ([1.0, 1.0, -0.1, 0.0, 0.0, 0.0], "positive definite"),
        ([1.0, 1.0, 1.0, 2.0, 0.0, 0.0], "positive definite"),
        ([1.0, 1.0, 2.1, 0.0, 0.0, 0.0], "sum of the other two"),
    ],
)
def test_an_inertia_that_no_body_has_is_refused(six, message):
    good = [1.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    assert check_inertia("inertia", np.array([good])) is not None
    with pytest.raises(ValueError, match=f"{message}.*body 1"):
        check_inertia("inertia", np.array([good, six]))
