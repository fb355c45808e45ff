import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from render import frames
from render.frames import setup_frame
from render.packing import pack
from render.reach import CURVED, SHINY
from render.scene import DirectionalLight, Material, Mesh, Scene
from studies.timing_scenes import ball_mesh
from tests.render.scenes import camera, soft


def lit_ball(rng, *, smooth_normals, two_lights=False):
    """A glossy ball of 80 faces in light from one side, or from two."""
    points, mesh_faces = ball_mesh(80)
    colors = rng.random((len(mesh_faces), 3))
    shiny = Material(0.2, 0.6, specular=0.5, shininess=5.0)
    mesh = Mesh(mesh_faces, face_colors=colors, material=shiny, smooth_normals=smooth_normals)
    lights = {"sun": DirectionalLight((1.0, 0.6, 0.5))}
    if two_lights:
        lights["lamp"] = DirectionalLight((-0.2, 0.9, -0.5), (0.4, 0.2, 0.3))
    return Scene({"ball": mesh}, lights), {"ball": 0.8 * points}


def cosines(frame, scene, f, w, is_rounded):
    """n.l and r.e of face f in the first light where its corners have the weights w, (n, 3)."""
    normals, l = frame.faces.shaded[f].reshape(3, 3), scene.directions[0]
    n = w @ normals if is_rounded else normals[:1] + 0.0 * w
    e = w @ frame.faces.towards[scene.faces[f]]
    n, e = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (n, e))
    return n @ l, 2.0 * (n @ l) * (n * e).sum(axis=1) - e @ l


@pytest.mark.parametrize("is_rounded", [True, False])
def test_what_light_does_not_reach_is_dark_at_every_pixel(rng, is_rounded):
    scene, vertices = lit_ball(rng, smooth_normals=is_rounded)
    job = pack(scene, [camera()], soft(), vertices, (32, 32))[0]
    frame = setup_frame(job, 0)
    w = rng.dirichlet([0.5, 0.5, 0.5], 400)
    found = []
    for f in range(len(job.scene.faces)):
        lit, mirrored = (c.max() > 0.0 for c in cosines(frame, job.scene, f, w, is_rounded))
        found.append((is_rounded and (lit or mirrored), mirrored))
    found, reach = np.array(found), frame.faces.reach
    assert not (found & ~reach).any()
    assert (found != reach).mean() < 0.1  # the bounds are near
    assert 0.2 < reach[:, SHINY].mean() < 0.8
    assert reach[:, CURVED].mean() < 0.95


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("two_lights", [False, True])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_what_is_left_out_changes_nothing(rng, monkeypatch, is_rounded, two_lights, dtype):
    scene, vertices = lit_ball(rng, smooth_normals=is_rounded, two_lights=two_lights)
    vertices = {"ball": vertices["ball"].astype(dtype)}

    def pulled_back():
        record = record_images(scene, camera(), soft(), vertices, (40, 40))
        adj = np.random.default_rng(1).standard_normal(record.images.shape).astype(dtype)
        return record.images, record.vjp(adj)

    def reach_all(scene, faces):
        faces.reach[:, CURVED], faces.reach[:, SHINY] = scene.rounded, True

    image, gradient = pulled_back()
    monkeypatch.setattr(frames, "find_reach", reach_all)
    full_image, full_gradient = pulled_back()
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(image, full_image, rtol=0, atol=32 * eps)
    for path, expected in full_gradient.items():
        atol = 256 * eps * np.abs(expected).max()
        np.testing.assert_allclose(gradient[path], expected, rtol=0, atol=atol, err_msg=path)
