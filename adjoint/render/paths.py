"""Names of everything a render differentiates, and where each lies in the packed arrays.

    "<object>.vertices", ".face_colors" or ".vertex_colors", ".ambient", ".diffuse"
    "<light>.direction", ".color"
    "camera.eye", ".target", ".up", ".fov_y" (per degree)
    "rasterizer.sigma", ".gamma", ".epsilon", ".background"

Tests: `tests/render/test_soft_raster.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from adjsim import checks
from render.face_setup import PackedScene
from render.packing import Job
from render.scene import Scene


class Packed(NamedTuple):
    """Adjoints or tangents of all that a frame depends on, packed as in the forward."""

    x: np.ndarray  # (n_vertices, 3), or (n_frames, n_vertices, 3)
    scene: PackedScene
    camera: np.ndarray  # (10,)
    numbers: np.ndarray  # (3,) sigma, gamma, epsilon


def zeros(job: Job) -> Packed:
    """Return room for the adjoints of one frame."""
    floats = [np.zeros_like(array) if array.dtype == job.x.dtype else array for array in job.scene]
    dtype = job.x.dtype
    return Packed(
        np.zeros_like(job.x[0]), PackedScene(*floats), np.zeros(10, dtype), np.zeros(3, dtype)
    )


def views(scene: Scene, job: Job, packed: Packed) -> dict[str, np.ndarray]:
    """Return the part of the packed arrays behind every path; writing to them writes there.

    A material's coefficient keeps its three channels here.
    """
    part = packed.scene
    out = {}
    for i, (name, mesh) in enumerate(scene.objects.items()):
        nodes = slice(int(job.offsets[i]), int(job.offsets[i + 1]))
        faces = slice(int(job.face_offsets[i]), int(job.face_offsets[i + 1]))
        out[f"{name}.vertices"] = packed.x[..., nodes, :]
        if mesh.face_colors is not None:
            out[f"{name}.face_colors"] = part.face_colors[faces]
        if mesh.vertex_colors is not None:
            out[f"{name}.vertex_colors"] = part.vertex_colors[nodes]
        out[f"{name}.ambient"] = part.ambient[i]
        out[f"{name}.diffuse"] = part.diffuse[i]
    for k, name in enumerate(scene.lights):
        out[f"{name}.direction"] = part.directions[k]
        out[f"{name}.color"] = part.lights[k]
    out["camera.eye"], out["camera.target"] = packed.camera[0:3], packed.camera[3:6]
    out["camera.up"], out["camera.fov_y"] = packed.camera[6:9], packed.camera[9:10].reshape(())
    for k, name in enumerate(("sigma", "gamma", "epsilon")):
        out[f"rasterizer.{name}"] = packed.numbers[k : k + 1].reshape(())
    out["rasterizer.background"] = part.background
    return out


def shapes(scene: Scene, vertices: Mapping[str, Any], paths: Iterable[str]) -> dict[str, tuple]:
    """Return the shape of each parameter, as the caller gave it."""
    out = {}
    for path in paths:
        owner, _, name = path.rpartition(".")
        if name == "vertices":
            out[path] = np.shape(vertices[owner])
        elif name in {"ambient", "diffuse"}:
            out[path] = np.shape(getattr(scene.objects[owner].material, name))
        elif name in {"face_colors", "vertex_colors"}:
            out[path] = np.shape(getattr(scene.objects[owner], name))
        else:
            scalars = {"fov_y", "sigma", "gamma", "epsilon"}
            out[path] = () if name in scalars else (3,)
    return out


def gradient(
    scene: Scene, job: Job, shape_of: Mapping[str, tuple], frames: list[Packed]
) -> dict[str, np.ndarray]:
    """Sum the adjoints of the frames, first to last, into one mapping of paths."""
    out: dict[str, np.ndarray] = {}
    parts = [views(scene, job, frame) for frame in frames]
    for path, shape in shape_of.items():
        if path.endswith(".vertices") and len(shape) == 3:
            out[path] = np.stack([part[path] for part in parts])
            continue
        total = parts[0][path].copy()
        for part in parts[1:]:
            total += part[path]
        out[path] = total.sum() if total.shape != shape else total
        out[path] = np.asarray(out[path], job.x.dtype).reshape(shape)
    return out


def pack_tangents(
    scene: Scene, job: Job, shape_of: Mapping[str, tuple], tangents: Mapping[str, Any]
) -> Packed:
    """Pack the given tangents; parameters without one have the tangent 0."""
    packed = zeros(job)._replace(x=np.zeros_like(job.x))
    target = views(scene, job, packed)
    for path, tangent in tangents.items():
        checks.known_key("path in `tangents`", path, shape_of)
        value = checks.array(f"tangents[{path!r}]", tangent, shape_of[path], dtype=job.x.dtype)
        target[path][...] = value
    return packed
