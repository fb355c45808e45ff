"""Pictures of two tetrahedra, with every parameter of scene, camera and rasterizer.

One object has face colours, the other vertex colours; in the Softmax picture one of them
moves through two frames. The pictures are small and soft, so that no kink is near.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.verify.problem import Problem, Values, changed, systems
from adjoint.verify.systems.pixel_margins import picture_margins
from render.blending import DIBR, Hard, Over, Softmax
from render.camera import Camera
from render.lenses import Orthographic
from render.picture import Picture
from render.scene import DirectionalLight, Material, Mesh, Scene, SphericalHarmonics
from render.soft_raster import SoftRasterizer, rasterize
from render.textures import Texture, Wrap


FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
CORNERS = np.array([[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) / np.sqrt(3.0)
SIZE = (9, 10)
OWNERS = {
    "vertices": "Mesh", "face_colors": "Mesh", "vertex_colors": "Mesh",
    "uv": "Mesh", "texels": "Texture",
    "ambient": "Material", "diffuse": "Material",
    "specular": "Material", "shininess": "Material",
    "direction": "DirectionalLight", "color": "DirectionalLight",
    "coefficients": "SphericalHarmonics", "near": "AnyCamera", "far": "AnyCamera",
    "sigma": "SoftRasterizer", "gamma": "SoftRasterizer", "epsilon": "SoftRasterizer",
    "background": "SoftRasterizer", "kappa": "DIBR",
}  # fmt: skip
INERT = {Over: ("gamma", "epsilon"), Softmax: (), DIBR: ("sigma", "gamma", "epsilon")}
INERT[Hard] = INERT[DIBR]


def picture_problem(build: Callable[[], Picture]) -> Problem:
    """Return a picture as a problem; its outputs are the channels of its pixels."""
    picture = build()
    run = record_images(*picture.arguments)
    point = picture.parameters()
    inert = {f"rasterizer.{key}" for key in INERT[type(picture.rasterizer.blend)]}
    in_sky = any(isinstance(m, SphericalHarmonics) for m in picture.scene.lights.values())
    owners = dict(OWNERS)  # by the last part of a path, but for cameras by all of it
    for name, view in picture.views.items():
        for key in view.parameters():
            of = view if key in view.POSE else view.lens or view
            owners[f"{name}.{key}"] = type(of).__name__

    def owner(path: str) -> tuple[str, str]:
        key = path.rpartition(".")[2]
        return owners.get(path) or owners[key], key

    def forward(values: Values) -> np.ndarray:
        return rasterize(*picture.at(changed(values, point)).arguments).ravel()

    def jvp(tangents: Values) -> np.ndarray:
        return rasterize_jvp(*picture.arguments, tangents=tangents)[1].ravel()

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        return run.vjp(adj.reshape(run.images.shape), wrt)

    def margins(values: Values) -> np.ndarray:
        moved = picture.at(changed(values, point))
        scene, _, soft, vertices, size = moved.arguments
        views = moved.views.values()
        return np.concatenate([picture_margins(scene, v, soft, vertices, size) for v in views])

    return Problem(
        point=point,
        owners={path: owner(path) for path in point},
        forward=forward,
        jvp=jvp,
        vjp=vjp,
        margins=margins,
        inert=tuple(
            path
            for path in point
            if path in inert or (in_sky and path.endswith((".ambient", ".diffuse")))
        ),
    )


def two_tetrahedra(seed: int, n_frames: int, rasterizer: SoftRasterizer) -> Picture:
    """Return two tetrahedra, one behind the other, under two lights."""
    rng = np.random.default_rng(seed)
    turns = [np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2)]
    matt, bright = Material(0.3, [0.5, 0.6, 0.7]), Material([0.2, 0.3, 0.4], 0.6)
    scene = Scene(
        {
            "near": Mesh(FACES, face_colors=rng.random((4, 3)), material=matt),
            "far": Mesh(FACES, vertex_colors=rng.random((4, 3)), material=bright),
        },
        {
            "sun": DirectionalLight((0.3, 0.8, 0.6), (1.0, 0.9, 0.8)),
            "lamp": DirectionalLight((-1.0, 0.2, 0.4), (0.2, 0.3, 0.5)),
        },
    )
    near = 0.8 * CORNERS @ turns[0] + np.array([-0.3, 0.1, 0.9])
    far = CORNERS @ turns[1] + np.array([0.3, -0.1, -0.9])
    if n_frames > 1:
        near = near + 0.05 * rng.standard_normal((n_frames, 1, 3))
    camera = Camera((0.3, 0.4, 3.5), (0.02, 0.03, 0.0), (0.1, 1.0, 0.05), 45.0, near=0.5, far=8.0)
    return Picture(scene, camera, rasterizer, {"near": near, "far": far}, SIZE)


def over() -> Picture:
    """One frame, blended by Over."""
    soft = SoftRasterizer(sigma=0.02, background=(0.1, 0.2, 0.3), blend=Over())
    return two_tetrahedra(OVER_SEED, 1, soft)


def softmax() -> Picture:
    """Two frames, blended by Softmax, at a temperature that lets everything in."""
    soft = SoftRasterizer(0.1, 0.2, 0.6, (0.1, 0.2, 0.3), Softmax())
    return two_tetrahedra(SOFTMAX_SEED, 2, soft)


def sky() -> Picture:
    """The picture of `over` in the light of spherical harmonics."""
    picture = over()
    light = SphericalHarmonics(np.random.default_rng(5).uniform(-0.3, 0.5, (9, 3)))
    return dataclasses.replace(picture, scene=Scene(picture.scene.objects, {"sky": light}))


def smooth() -> Picture:
    """One frame, blended by Over, with the normals of the vertices."""
    picture = two_tetrahedra(SMOOTH_SEED, 1, over().rasterizer)
    objects = {
        name: dataclasses.replace(mesh, smooth_normals=True)
        for name, mesh in picture.scene.objects.items()
    }
    return dataclasses.replace(picture, scene=Scene(objects, picture.scene.lights))


def smooth_sky() -> Picture:
    """Two frames, blended by Softmax: one object with smooth normals, in spherical harmonics."""
    picture = softmax()
    objects = dict(picture.scene.objects)
    objects["far"] = dataclasses.replace(objects["far"], smooth_normals=True)
    return dataclasses.replace(picture, scene=Scene(objects, sky().scene.lights))


def samples() -> Picture:
    """One frame over an image, with four samples for each pixel."""
    picture = two_tetrahedra(SAMPLES_SEED, 1, over().rasterizer)
    behind = np.random.default_rng(7).random((*picture.size, 3))
    finer = dataclasses.replace(picture.rasterizer, background=behind, supersample=2)
    return dataclasses.replace(picture, rasterizer=finer)


def seamless() -> Picture:
    """One frame, blended by Over, with seamless coverage."""
    return two_tetrahedra(SEAMLESS_SEED, 1, dataclasses.replace(over().rasterizer, seamless=True))


def dibr() -> Picture:
    """One frame, blended by DIBR; the far object has smooth normals."""
    picture = two_tetrahedra(DIBR_SEED, 1, dataclasses.replace(over().rasterizer, blend=DIBR(0.02)))
    objects = dict(picture.scene.objects)
    objects["far"] = dataclasses.replace(objects["far"], smooth_normals=True)
    return dataclasses.replace(picture, scene=Scene(objects, picture.scene.lights))


def hard() -> Picture:
    """Two frames, blended by Hard."""
    return two_tetrahedra(HARD_SEED, 2, dataclasses.replace(over().rasterizer, blend=Hard()))


def glossy(seed: int | None = None) -> Picture:
    """One frame, blended by Over: highlights on a rounded and on a flat object."""
    picture = two_tetrahedra(seed or GLOSSY_SEED, 1, over().rasterizer)
    near, far = picture.scene.objects.values()
    dull = dataclasses.replace(near.material, specular=[0.3, 0.5, 0.4], shininess=2.5)
    bright = dataclasses.replace(far.material, specular=0.6, shininess=4.0)
    objects = {
        "near": dataclasses.replace(near, material=dull, smooth_normals=True),
        "far": dataclasses.replace(far, material=bright),
    }
    return dataclasses.replace(picture, scene=Scene(objects, picture.scene.lights))


def textured() -> Picture:
    """One frame, blended by Over: a clamped texture by vertices, a repeated one by corners.

    The first object has smooth normals, the second a highlight.
    """
    picture = two_tetrahedra(TEXTURED_SEED, 1, over().rasterizer)
    rng = np.random.default_rng(TEXTURED_SEED)
    near, far = (mesh.material for mesh in picture.scene.objects.values())
    clamped, repeated = Texture(rng.random((2, 2, 3)), Wrap.CLAMP), Texture(rng.random((2, 1, 3)))
    uv, corners = rng.uniform(0.1, 0.9, (4, 2)), rng.uniform(0.6, 1.4, (12, 2))
    far = dataclasses.replace(far, specular=0.6, shininess=4.0)
    objects = {
        "near": Mesh(FACES, material=near, smooth_normals=True, texture=clamped, uv=uv),
        "far": Mesh(
            FACES,
            material=far,
            texture=repeated,
            uv=corners,
            uv_faces=rng.permutation(12).reshape(4, 3),
        ),
    }
    return dataclasses.replace(picture, scene=Scene(objects, picture.scene.lights))


def flat() -> Picture:
    """The same as `softmax` in an orthographic view, with other tetrahedra."""
    return seen_from_afar(two_tetrahedra(FLAT_SEED, 2, softmax().rasterizer))


def flat_glossy() -> Picture:
    """The same as `glossy` in an orthographic view, with other tetrahedra."""
    return seen_from_afar(glossy(FLAT_GLOSSY_SEED))


def seen_from_afar(picture: Picture) -> Picture:
    """Return a picture in an orthographic view."""
    flat_camera = dataclasses.replace(picture.camera, fov_y=None, lens=Orthographic(2.9))
    return dataclasses.replace(picture, camera=flat_camera)


# Of the seeds tried, those farthest from every kink.
OVER_SEED, SOFTMAX_SEED, FLAT_SEED, SMOOTH_SEED = 119, 29, 365, 707
DIBR_SEED, HARD_SEED, SAMPLES_SEED, SEAMLESS_SEED = 104, 218, 90, 296
GLOSSY_SEED, TEXTURED_SEED, FLAT_GLOSSY_SEED = 266, 266, 104

PICTURES = (
    *(over, softmax, sky, smooth, smooth_sky, dibr, hard),
    *(samples, seamless, glossy, textured, flat, flat_glossy),
)
SYSTEMS = systems(
    "pixels", picture_problem, {f"raster/{build.__name__}": build for build in PICTURES}
)
