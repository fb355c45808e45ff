import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from benchmarks.timing.scenes import icosphere
from render.scene import DirectionalLight, Material, Mesh, Scene
from tests.render.scenes import camera, soft


SIZE = (40, 36)


def smooth_ball(specular, lights, **colors):
    """A ball with smooth normals in one colour C, or in the same colour at every vertex."""
    _, faces = icosphere(80)
    shiny = Material(0.2, (0.6, 0.5, 0.4), specular=specular, shininess=5.5)
    mesh = Mesh(faces, material=shiny, smooth_normals=True, **colors)
    return Scene({"ball": mesh}, {f"light{i}": light for i, light in enumerate(lights)})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_lights", [0, 1, 3])
@pytest.mark.parametrize("specular", [None, (0.5, 0.4, 0.6)])
def test_one_colour_is_that_colour_at_every_vertex(specular, n_lights, dtype):
    points, faces = icosphere(80)
    vertices = {"ball": (0.8 * points).astype(dtype)}
    directions = [(1.0, 0.6, 0.5), (-0.2, 0.9, -0.5), (0.1, -0.7, 0.9)]
    lights = [DirectionalLight(l, (0.9, 0.7, 0.3)) for l in directions[:n_lights]]
    C = np.array([0.7, 0.3, 0.9])
    by_faces = smooth_ball(specular, lights, face_colors=np.tile(C, (len(faces), 1)))
    by_vertices = smooth_ball(specular, lights, vertex_colors=np.tile(C, (len(points), 1)))
    adj = np.random.default_rng(7).standard_normal((*SIZE, 4)).astype(dtype)
    image, gradient = pulled_back(by_faces, vertices, adj)
    expected, expected_gradient = pulled_back(by_vertices, vertices, adj)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(image, expected, rtol=0, atol=64 * eps)
    of_faces = gradient.pop("ball.face_colors").sum(axis=0)
    of_vertices = expected_gradient.pop("ball.vertex_colors").sum(axis=0)
    np.testing.assert_allclose(of_faces, of_vertices, rtol=2e3 * eps)
    assert gradient.keys() == expected_gradient.keys()
    for path, value in expected_gradient.items():
        atol = 500 * eps * np.abs(value).max()
        np.testing.assert_allclose(gradient[path], value, rtol=0, atol=atol, err_msg=path)


def pulled_back(scene, vertices, adj):
    """The image, and the gradient for this adjoint of it."""
    record = record_images(scene, camera(), soft(), vertices, SIZE)
    return record.images, record.vjp(adj)
