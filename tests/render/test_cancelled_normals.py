"""Smooth normals that cancel are none: nothing is shaded by what rounding leaves of them."""

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.camera import Camera
from render.outputs import rasterize_outputs
from render.scene import DirectionalLight, Material, Mesh, Scene
from tests.reference.outputs import reference_outputs
from tests.render.scenes import camera, plain, reference, soft


SIZE = (14, 17)
LAMP = {"lamp": DirectionalLight((0.2, 0.3, 1.0))}  # at the camera's back: e.l > 0
DULL, SHINY = Material(0.4, 0.6), Material(0.4, 0.6, 0.5, 3.0)


def crumpled_sheet(rng):
    """A sheet of nodes of which half are moved off a plane, and its faces, on both sides."""
    grid = np.stack(np.meshgrid(*2 * [np.linspace(-0.9, 0.9, 4)]), axis=-1).reshape(-1, 2)
    x = np.column_stack([grid, np.zeros(16)]) + rng.uniform(-0.15, 0.15, (16, 3))
    at = [4 * i + j for i in range(3) for j in range(3)]
    front = [face for a in at for face in ((a, a + 1, a + 5), (a, a + 5, a + 4))]
    return x, np.array([*front, *[np.roll(face[::-1], rng.integers(3)) for face in front]])


def sheet_problem(rng, material, smooth, dtype=np.float64):
    x, faces = crumpled_sheet(rng)
    sheet = Mesh(faces, vertex_colors=rng.random((16, 3)), material=material, smooth_normals=smooth)
    return Scene({"sheet": sheet}, LAMP), camera(), soft(), {"sheet": x.astype(dtype)}


@pytest.mark.parametrize("material", [DULL, SHINY])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sheet_with_two_sides_that_share_vertices_has_ambient_light_alone(rng, material, dtype):
    state = rng.bit_generator.state
    args = sheet_problem(rng, material, True, dtype)
    rng.bit_generator.state = state
    unlit = sheet_problem(rng, Material(0.4, 0.0), False, dtype)
    record, expected = record_images(*args, SIZE), record_images(*unlit, SIZE)
    # The sides tie in depth but for rounding, and have the same colours at the same place.
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(record.images, expected.images, rtol=0, atol=200 * eps)
    adj = rng.normal(size=record.images.shape)
    wanted = expected.vjp(adj)["sheet.vertices"]
    largest = np.abs(wanted).max()
    gradient = record.vjp(adj)["sheet.vertices"]
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e4 * eps * largest)
    tangent = {"sheet.vertices": rng.normal(size=wanted.shape)}
    tan = [rasterize_jvp(*each, SIZE, tangent)[1] for each in (args, unlit)]
    np.testing.assert_allclose(tan[0], tan[1], rtol=0, atol=1e4 * eps * np.abs(tan[1]).max())


def test_its_normals_are_zero_as_an_output_too(rng):
    args = sheet_problem(rng, DULL, True)
    record = record_outputs(*args, SIZE, ["normals"])
    np.testing.assert_array_equal(record.images["normals"], 0.0)
    gradient = record.vjp({"normals": rng.normal(size=(*SIZE, 3))})
    np.testing.assert_array_equal(gradient["sheet.vertices"], 0.0)
    objects, _, lens, raster = plain(*args)
    np.testing.assert_array_equal(reference_outputs(objects, lens, raster, SIZE)["normals"], 0.0)


def bow(rng, way):
    """Two faces that meet in a vertex, at which the second turns its back on the first.

    A face and its image in that vertex, of which the corners go round the other way: the normals
    are opposite, and their sum is that of the rounding.
    """
    a, b = rng.normal(size=(2, 3)) * [0.5, 0.5, 0.2]
    faces = [(0, 1, 2), np.roll((0, 4, 3), way)]
    mesh = Mesh(faces, vertex_colors=rng.random((5, 3)), smooth_normals=True, material=DULL)
    lamp = {"lamp": DirectionalLight((0.3, 0.2, -1.0))}
    view = Camera((0.1, 0.3, 4.0), (0.0, 0.0, 0.0), fov_y=30.0)
    return (
        Scene({"bow": mesh}, lamp),
        view,
        soft(sigma=5e-2),
        {"bow": np.array([0 * a, a, b, -a, -b])},
    )


@pytest.mark.parametrize("way", range(3))
def test_opposite_normals_at_a_vertex_leave_a_slope_of_moderate_size(rng, way):
    for _ in range(10):
        args = bow(rng, way)
        record = record_images(*args, (9, 9))
        np.testing.assert_allclose(record.images, reference(*args, (9, 9)), rtol=0, atol=1e-12)
        assert np.abs(record.vjp(np.ones((9, 9, 4)))["bow.vertices"]).max() < 1e4
        assert np.isfinite(rasterize_outputs(*args, (9, 9), ["normals"])["normals"]).all()
