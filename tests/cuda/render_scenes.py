"""Toy scenes of the renderer that every CUDA check shares."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np

from adjoint.render.outputs import rasterize_outputs_jvp, record_outputs
from adjoint.render.soft_raster import rasterize_jvp, record_images
from render.blending import DIBR, Hard, Over, Softmax
from render.lenses import Orthographic
from render.posed_camera import PosedCamera
from render.raster import cuda_bins
from render.scene import Mesh, Scene, SphericalHarmonics
from tests.render.scenes import camera, glossy, jumping, soft, tetrahedron, textured, two_tetrahedra


SIZE = (5, 6)
BLENDS = {
    "over": {"blend": Over()},
    "softmax": {"blend": Softmax(), "gamma": 0.3, "epsilon": 0.9},
    "culled": {"blend": Over(), "cull": True},
    "dibr": {"blend": DIBR(2e-2)},
    "hard": {"blend": Hard()},
    "seamless": {"blend": Over(), "seamless": True},
}
FLAT = PosedCamera((0.3, -0.4, 0.1), (0.03, 0.05, -3.5), lens=Orthographic(2.9))
# What a blend does not know; spherical harmonics know no materials.
UNKNOWN = dict.fromkeys(("over", "over outputs", "culled", "seamless"), ("gamma", "epsilon"))
UNKNOWN |= dict.fromkeys(("dibr", "hard"), ("sigma", "gamma", "epsilon"))
ZERO = {f"{blend} vjp rasterizer.{name}" for blend, names in UNKNOWN.items() for name in names} | {
    f"culled vjp {name}.{coefficient}"
    for name in ("left", "right", "high")
    for coefficient in ("ambient", "diffuse")
}
ZERO |= {"dibr jvp mask", "hard jvp mask"}  # the one nearest face
ZERO |= {"seamless vjp high.diffuse"}  # its normals cancel
ZERO |= {f"{blend} vjp camera{k}.near" for blend in UNKNOWN for k in ("", ".0", ".1")}


def toy(blend, dtype=np.float64, size=SIZE):
    """Two frames of two objects, face and vertex colours, and a third that leaves the view.

    In "over" one has a texture and a highlight, in "softmax" all have highlights,
    and one colours that jump at edges, and in
    "culled" one has a texture and smooth normals, in a sky. In "seamless" the third has two
    sides, whose normals cancel.
    """
    rng = np.random.default_rng(11)
    scene, vertices = two_tetrahedra(rng)
    scene = Scene({**scene.objects, "high": Mesh([[0, 1, 2]])}, scene.lights)
    vertices["left"] = np.stack([vertices["left"], tetrahedron(rng, [-0.3, 0.2, 0.1])])
    vertices["high"] = np.array([[-0.3, 0.4, 0.2], [0.3, 0.4, 0.2], [0.0, 9.0, 0.2]])
    vertices["high"] = np.stack([vertices["high"], vertices["high"] + [0.0, 9.0, 0.0]])
    vertices = {name: x.astype(dtype) for name, x in vertices.items()}
    if blend != "over":
        objects = {**scene.objects, "left": replace(scene.objects["left"], smooth_normals=True)}
        scene = Scene(objects, scene.lights)
    if blend == "seamless":
        high = Mesh([[0, 1, 2], [1, 0, 2]], smooth_normals=True)
        scene = Scene({**scene.objects, "high": high}, scene.lights)
        vertices["high"] = 0.9 * vertices["high"]
    covered = textured(scene)
    if blend == "over":
        scene = Scene({**scene.objects, "right": covered.objects["right"]}, scene.lights)
    if blend == "softmax":
        scene = jumping(glossy(scene))
    if blend == "culled":
        scene = Scene({**scene.objects, "left": covered.objects["left"]}, scene.lights)
        sky = SphericalHarmonics(rng.uniform(-0.3, 0.5, (9, 3)))
        scene = Scene(scene.objects, {"sky": sky})
    views = camera() if blend == "over" else [camera(), FLAT]
    settings = BLENDS[blend]
    if blend == "dibr":
        settings = {**settings, "background": rng.random((*size, 3)), "supersample": 2}
    return scene, views, soft(sigma=2e-2, **settings), vertices


def empty(dtype=np.float64):
    """A scene with a face that is never seen, and no light."""
    x = np.array([[0.0, 0.0, 9.0], [1.0, 0.0, 9.0], [0.0, 1.0, 9.0]], dtype)
    return Scene({"behind": Mesh([[0, 1, 2]])}), camera(), soft(), {"behind": x}


def everything(problem, device, size=SIZE):
    """Images, every gradient and a tangent of a scene on a device, by name."""
    rng = np.random.default_rng(12)
    record = record_images(*problem, size, device=device)
    gradient = record.vjp(rng.standard_normal(record.images.shape))
    out = {f"vjp {path}": value for path, value in gradient.items()}
    tangents = {path: rng.standard_normal(value.shape) for path, value in gradient.items()}
    images, tan_images = rasterize_jvp(*problem, size, tangents, device=device)
    return out | {"images": record.images, "jvp images": images, "jvp": tan_images}


def all_outputs(problem, device, size=SIZE):
    """Depth, normals and masks of a scene, every gradient and a tangent, by name."""
    rng = np.random.default_rng(13)
    record = record_outputs(*problem, size, device=device)
    images = record.images
    gradient = record.vjp({name: rng.standard_normal(x.shape) for name, x in images.items()})
    out = {f"vjp {path}": value for path, value in gradient.items()}
    tangents = {path: rng.standard_normal(value.shape) for path, value in gradient.items()}
    again, tan_images = rasterize_outputs_jvp(*problem, size, tangents, device=device)
    for name, value in images.items():
        out |= {name: value, f"jvp images {name}": again[name], f"jvp {name}": tan_images[name]}
    return out


def all_scenes(device, dtype=np.float64, size=SIZE):
    """`everything` of the toy with each blend, by name."""
    return by_blend(everything, device, dtype, size)


def outputs_of_scenes(device, dtype=np.float64, size=SIZE):
    """`all_outputs` of the toy with each blend, by name."""
    return by_blend(all_outputs, device, dtype, size)


def in_small_batches(device, dtype=np.float64):
    """`everything` and `all_outputs` of a toy whose images are drawn one by one, bin by bin."""
    problem = toy("over", dtype, (20, 40))
    with patch.multiple(cuda_bins, MOST_FACES=1, MOST_FRAGMENTS=1):
        drawn = {"over": everything(problem, device, (20, 40))}
        drawn["over outputs"] = all_outputs(problem, device, (20, 40))
    return {f"{k} {name}": value for k, values in drawn.items() for name, value in values.items()}


def by_blend(what, device, dtype, size):
    """Return what is asked of the toy with each blend, by name."""
    return {
        f"{blend} {name}": value
        for blend in BLENDS
        for name, value in what(toy(blend, dtype, size), device, size).items()
    }
