"""Small scenes that several tests of the renderer draw."""

from dataclasses import replace

import numpy as np

from render.blending import DIBR, Hard, Over, Softmax
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer
from render.textures import Texture, Wrap
from tests.reference.soft_raster import reference_image


BLENDS = [Over(), Softmax(), DIBR(2e-3), Hard()]
CAMERA_KEYS = ("eye", "target", "up", "fov_y")
RASTER_KEYS = ("sigma", "gamma", "epsilon", "background")
TETRAHEDRON = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


def tetrahedron(rng, center, size=1.0):
    """Vertices (4, 3) of a tetrahedron turned at random."""
    corners = size * np.array([[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) / np.sqrt(3)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return corners @ turn + center


def two_tetrahedra(rng):
    """A scene of two overlapping objects, one with face and one with vertex colours."""
    scene = Scene(
        {
            "left": Mesh(
                TETRAHEDRON, face_colors=rng.random((4, 3)), material=Material(0.3, (0.5, 0.6, 0.7))
            ),
            "right": Mesh(
                TETRAHEDRON, vertex_colors=rng.random((4, 3)), material=Material((0.2, 0.3, 0.4))
            ),
        },
        {
            "sun": DirectionalLight((0.3, 0.8, 0.6), (1.0, 0.9, 0.8)),
            "lamp": DirectionalLight((-1.0, 0.2, 0.4), (0.2, 0.3, 0.5)),
        },
    )
    vertices = {
        "left": tetrahedron(rng, [-0.4, 0.1, 0.2]),
        "right": tetrahedron(rng, [0.3, -0.1, -0.3]),
    }
    return scene, vertices


def rounded(scene):
    """The same scene, every object with smooth normals."""
    objects = {name: replace(mesh, smooth_normals=True) for name, mesh in scene.objects.items()}
    return Scene(objects, scene.lights)


def glossy(scene):
    """The same scene, every object with a highlight, the first also with smooth normals."""
    objects = {
        name: replace(
            mesh,
            material=replace(mesh.material, specular=(0.5, 0.7, 0.3 * i + 0.2), shininess=3.5 + i),
            smooth_normals=i == 0,
        )
        for i, (name, mesh) in enumerate(scene.objects.items())
    }
    return Scene(objects, scene.lights)


def textured(scene):
    """The same scene with textures: one clamped, by vertices; the other repeated, by corners.

    The first has smooth normals, the second a highlight.
    """
    rng = np.random.default_rng(31)
    objects = {}
    for i, (name, mesh) in enumerate(scene.objects.items()):
        by_corner = i == 1
        n_uv = 3 * len(mesh.faces) if by_corner else int(mesh.faces.max()) + 1
        texels = rng.random((5, 4, 3) if by_corner else (3, 6, 3))
        objects[name] = Mesh(
            mesh.faces,
            material=replace(mesh.material, specular=0.4 if by_corner else None, shininess=4.0),
            smooth_normals=i == 0,
            texture=Texture(texels, Wrap.REPEAT if by_corner else Wrap.CLAMP),
            uv=rng.uniform(-0.6, 1.5, (n_uv, 2)),
            uv_faces=rng.permutation(n_uv).reshape(-1, 3) if by_corner else None,
        )
    return Scene(objects, scene.lights)


def jumping(scene):
    """The same, with colours at the corners of the second object that jump at its edges."""
    objects, rng = dict(scene.objects), np.random.default_rng(37)
    (name, mesh) = list(objects.items())[1]
    n = 3 * len(mesh.faces)
    rows = rng.permutation(n).reshape(-1, 3)
    rows[0, 0] = rows[1, 0]  # a row that two corners have
    objects[name] = replace(mesh, vertex_colors=rng.random((n, 3)), color_faces=rows)
    return Scene(objects, scene.lights)


def camera(**changes):
    """A camera that sees the unit ball, a little off every axis."""
    numbers = {"eye": (0.3, 0.4, 3.5), "target": (0.02, 0.03, 0.0), "up": (0.1, 1.0, 0.05)}
    return Camera(**{**numbers, "fov_y": 40.0, **changes})


def soft(**changes):
    """A rasterizer whose edges are some pixels wide on a small image."""
    return SoftRasterizer(**{"sigma": 2e-3, "background": (0.1, 0.2, 0.3), **changes})


def fitted(size, **changes):
    """A camera whose image of any shape the objects fill, and as soft a rasterizer for it.

    The screen reaches from -aspect to aspect, while the objects are about a unit wide.
    """
    aspect = max(1.0, size[1] / size[0])
    fov_y = 2 * np.degrees(np.arctan(np.tan(np.radians(20.0)) / aspect))
    softness = {"sigma": 2e-3, **changes}
    softness["sigma"] *= aspect**2
    if isinstance(changes.get("blend"), DIBR):
        softness["blend"] = DIBR(changes["blend"].kappa * aspect**2)
    return camera(fov_y=fov_y), soft(**softness)


def layered_problem(rng, blend, **changes):
    """Two objects, smooth normals and a texture, and a background that shines through."""
    scene, vertices = two_tetrahedra(rng)
    objects = {"left": rounded(scene).objects["left"], "right": textured(scene).objects["right"]}
    scene = Scene(objects, scene.lights)
    raster = soft(blend=blend, gamma=0.3, epsilon=0.9, **changes)
    return scene, camera(near=0.5, far=9.0), raster, vertices


def reference(scene, view, rasterizer, vertices, size):
    """The image that `tests/reference/soft_raster.py` draws of the same."""
    return reference_image(*plain(scene, view, rasterizer, vertices), size)


def plain(scene, view, rasterizer, vertices):
    """Objects, lights, camera and settings as mappings, for the references."""
    objects = {
        name: {
            "vertices": vertices[name],
            "faces": mesh.faces,
            "face_colors": mesh.face_colors,
            "vertex_colors": mesh.vertex_colors,
            "color_faces": mesh.color_faces,
            "ambient": mesh.material.ambient,
            **({} if mesh.texture is None else vars(mesh.texture)),
            "uv": mesh.uv,
            "uv_faces": mesh.uv_faces,
            "diffuse": mesh.material.diffuse,
            "specular": mesh.material.specular,
            "shininess": mesh.material.shininess,
            "smooth_normals": mesh.smooth_normals,
        }
        for name, mesh in scene.objects.items()
    }
    lights = {name: vars(light) for name, light in scene.lights.items()}
    lens = {key: getattr(view, key) for key in ("eye", "target", "up", "near", "far")}
    lens |= {key: float(getattr(view.optics, key)) for key in view.optics.PARAMETERS}
    raster = {key: getattr(rasterizer, key) for key in ("sigma", "gamma", "epsilon", "background")}
    raster |= {"cull": rasterizer.cull, "supersample": rasterizer.supersample}
    raster["seamless"] = rasterizer.seamless
    raster["blend"] = type(rasterizer.blend).__name__.lower()
    raster |= vars(rasterizer.blend)
    return objects, lights, lens, raster


def moved(problem, tangents, step):
    """The arguments of `rasterize` with every parameter moved along its tangent."""
    scene, view, rasterizer, vertices = problem

    def at(path, value):
        return np.asarray(value, float) + step * tangents[path] if path in tangents else value

    def color(path, value):
        return None if value is None else at(path, value)

    objects = {
        name: replace(
            mesh,
            face_colors=color(f"{name}.face_colors", mesh.face_colors),
            vertex_colors=color(f"{name}.vertex_colors", mesh.vertex_colors),
            uv=color(f"{name}.uv", mesh.uv),
            texture=mesh.texture
            and replace(mesh.texture, texels=at(f"{name}.texels", mesh.texture.texels)),
            material=Material(
                **{key: at(f"{name}.{key}", k) for key, k in mesh.material.parameters().items()}
            ),
        )
        for name, mesh in scene.objects.items()
    }
    lights = {
        name: DirectionalLight(
            at(f"{name}.direction", light.direction), at(f"{name}.color", light.color)
        )
        for name, light in scene.lights.items()
    }
    lens = {key: at(f"camera.{key}", getattr(view, key)) for key in CAMERA_KEYS}
    raster = {key: at(f"rasterizer.{key}", getattr(rasterizer, key)) for key in RASTER_KEYS}
    if "rasterizer.kappa" in tangents:
        raster["blend"] = DIBR(at("rasterizer.kappa", rasterizer.blend.kappa))
    return (
        Scene(objects, lights),
        replace(view, **lens),
        replace(rasterizer, **raster),
        {name: at(f"{name}.vertices", x) for name, x in vertices.items()},
    )
