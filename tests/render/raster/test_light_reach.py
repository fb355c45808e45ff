import numpy as np
import pytest

from adjoint.render.soft_raster import record_images
from benchmarks.timing.scenes import icosphere
from render.lenses import Orthographic
from render.raster import frames
from render.raster.frames import setup_frame
from render.raster.light_reach import CURVED, SHINY
from render.raster.packing import pack
from render.raster.tile_curved import is_lit_alone
from render.raster.tile_shading import is_plain
from render.raster.tile_textured import is_draped
from render.scene import DirectionalLight, Material, Mesh, Scene, SphericalHarmonics
from render.textures import Texture
from tests.render.scenes import camera, soft


def painted(rng, paint, points, mesh_faces):
    """Colours of faces or of vertices, or a texture, at random: what a `Mesh` gets."""
    if paint == "faces":
        return {"face_colors": rng.random((len(mesh_faces), 3))}
    if paint == "vertices":
        return {"vertex_colors": rng.random((len(points), 3))}
    uv = rng.uniform(-0.3, 1.4, (len(points), 2))
    return {"texture": Texture(rng.random((4, 6, 3))), "uv": uv}


def lit_ball(rng, *, smooth_normals, two_lights=False, in_a_sky=False, paint="faces", specular=0.5):
    """A ball of 80 faces, matt without `specular`, in light from one side, two, or everywhere."""
    points, mesh_faces = icosphere(80)
    material = Material(0.2, 0.6, specular=specular, shininess=5.0)
    look = painted(rng, paint, points, mesh_faces)
    mesh = Mesh(mesh_faces, material=material, smooth_normals=smooth_normals, **look)
    lights: dict = {"sun": DirectionalLight((1.0, 0.6, 0.5))}
    if two_lights:
        lights["lamp"] = DirectionalLight((-0.2, 0.9, -0.5), (0.4, 0.2, 0.3))
    if in_a_sky:
        lights = {"sky": SphericalHarmonics(np.linspace(-0.2, 0.5, 27).reshape(9, 3))}
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
    is_reached = []
    for f in range(len(job.scene.faces)):
        lit, mirrored = (c.max() > 0.0 for c in cosines(frame, job.scene, f, w, is_rounded))
        is_reached.append((is_rounded and (lit or mirrored), mirrored))
    is_reached, reach = np.array(is_reached), frame.faces.reach
    assert not (is_reached & ~reach).any()
    assert (is_reached != reach).mean() < 0.1  # the bounds are near
    assert 0.2 < reach[:, SHINY].mean() < 0.8
    assert reach[:, CURVED].mean() < 0.95


PARALLEL = camera(fov_y=None, lens=Orthographic(2.2))
PATHS = {"plain", "draped", "lit alone", "staged"}
LOOKS = [  # what sets them apart, the camera, and the paths that their faces take
    ({"specular": None}, camera(), {"plain", "lit alone"}),
    ({}, PARALLEL, {"plain", "lit alone"}),
    ({"smooth_normals": False}, PARALLEL, {"plain", "staged"}),
    ({"paint": "vertices"}, camera(), {"staged"}),
    ({"paint": "texture"}, camera(), {"draped", "staged"}),
    ({"paint": "texture", "smooth_normals": False}, camera(), {"draped", "staged"}),
    ({"paint": "texture", "specular": None}, camera(), {"draped", "staged"}),
    ({"in_a_sky": True, "specular": None}, camera(), {"staged"}),
]


def path(f, faces, scene):
    """How face f is worked in blocks."""
    if is_plain(f, faces, scene):
        return "plain"
    if is_draped(f, faces, scene):
        return "draped"
    return "lit alone" if is_lit_alone(f, faces, scene) else "staged"


def reach_all(scene, faces):
    """In the place of `find_reach`: whatever may be lit is worked."""
    faces.reach[:, CURVED] = scene.rounded
    faces.reach[:, SHINY] = scene.shininess[scene.owner, 0] > 0.0


def paths_taken(scene, view, vertices):
    """The paths of the faces that are drawn, and how many get more work from `reach_all`."""
    job = pack(scene, [view], soft(), vertices, (40, 40))[0]
    faces = setup_frame(job, 0).faces
    drawn = np.flatnonzero(faces.box[:, 0] < faces.box[:, 1])
    paths, reach = {path(f, faces, job.scene) for f in drawn}, faces.reach[drawn]
    reach_all(job.scene, faces)
    return paths, (reach < faces.reach[drawn]).any(axis=1).sum()


def assert_nothing_is_missed(monkeypatch, scene, view, vertices):
    """Images and gradients are the same where every face is worked in full."""
    eps = np.finfo(vertices["ball"].dtype).eps

    def pulled_back():
        record = record_images(scene, view, soft(), vertices, (40, 40))
        adj = np.random.default_rng(1).standard_normal(record.images.shape)
        return record.images, record.vjp(adj.astype(record.images.dtype))

    image, gradient = pulled_back()
    monkeypatch.setattr(frames, "find_reach", reach_all)
    full_image, full_gradient = pulled_back()
    np.testing.assert_allclose(image, full_image, rtol=0, atol=32 * eps)
    for name, expected in full_gradient.items():
        atol = 256 * eps * np.abs(expected).max()
        np.testing.assert_allclose(gradient[name], expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("two_lights", [False, True])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_what_is_left_out_changes_nothing(rng, monkeypatch, is_rounded, two_lights, dtype):
    scene, vertices = lit_ball(rng, smooth_normals=is_rounded, two_lights=two_lights)
    vertices = {"ball": vertices["ball"].astype(dtype)}
    assert_nothing_is_missed(monkeypatch, scene, camera(), vertices)


@pytest.mark.parametrize(("look", "view", "expected"), LOOKS)
def test_what_is_left_out_changes_nothing_on_any_path(rng, monkeypatch, look, view, expected):
    scene, vertices = lit_ball(rng, **{"smooth_normals": True, **look})
    paths, n_spared = paths_taken(scene, view, vertices)
    assert paths == expected
    assert n_spared == 0 if "in_a_sky" in look else n_spared > 10  # a sky reaches every face
    assert_nothing_is_missed(monkeypatch, scene, view, vertices)


def test_the_looks_take_every_path():
    assert set.union(*(expected for _, _, expected in LOOKS)) == PATHS
