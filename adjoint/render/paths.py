"""Names of everything a render differentiates, and where each lies in the packed arrays.

    "<object>.vertices", ".face_colors" or ".vertex_colors", ".ambient", ".diffuse", and with
    a highlight ".specular", ".shininess"; of a textured one ".texels" and ".uv"
    "<light>.direction", ".color"; or of spherical harmonics ".coefficients"
    "camera." and a parameter of its pose or lens, or ".near", ".far" where depths count; of the
    k-th in a sequence: "camera.k."
    "rasterizer.sigma", ".gamma", ".epsilon", ".background"; with the blend DIBR ".kappa"

Tests: `tests/render/test_soft_raster.py`, `tests/render/test_views.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjoint.render.camera import view_jvp, view_vjp
from adjsim import checks
from render.camera import AnyCamera
from render.faces.face_setup import PackedScene
from render.projection import VIEW_SIZE
from render.raster.packing import Job, behind_samples
from render.scene import DirectionalLight, Scene, SphericalHarmonics
from render.shaders.harmonics import N_HARMONICS


NUMBERS = ("sigma", "gamma", "epsilon")
SIGMA, GAMMA, EPSILON, NEAR, FAR = 0, 1, 2, 4, 5  # of `Packed.numbers`
CLIPPING = slice(NEAR, FAR + 1)
PLANES = ("near", "far")  # of a camera; in numbers, behind them
Cameras = Mapping[str, AnyCamera]  # by the first part of the paths of their parameters


class Packed(NamedTuple):
    """Adjoints or tangents of all that a frame depends on, packed as in the forward.

    A background image has its pixels here, and those of its samples where kernels read it.
    Adjoints of several images have an axis of images in all but the scene, which has their sums.
    """

    x: np.ndarray  # (n_vertices, 3), or of several images; of tangents (n_frames, n_vertices, 3)
    scene: PackedScene
    view: np.ndarray  # (18,)
    # (6,) sigma, or in its place kappa; gamma, epsilon; a sigma not used; near and far
    numbers: np.ndarray


def zeros(job: Job) -> Packed:
    """Return room for the adjoints of one frame."""
    dtype = job.x.dtype
    floats = [np.zeros(a.shape, dtype) if a.dtype == dtype else a for a in job.scene]
    scene, shape = PackedScene(*floats), job.background_shape
    scene = scene._replace(
        background=np.zeros((1, 1, 3) if len(shape) == 1 else shape, job.x.dtype)
    )
    view, numbers = np.zeros(VIEW_SIZE, job.x.dtype), np.zeros(6, job.x.dtype)
    return Packed(np.zeros(job.x.shape[1:], dtype), scene, view, numbers)


def views(scene: Scene, job: Job, packed: Packed) -> dict[str, np.ndarray]:
    """Return the part of the packed arrays behind every path but those of cameras.

    Writing to a part writes to the arrays. A material's coefficient keeps its three channels.
    """
    arrays = packed.scene
    out, n_colors = {}, 0
    for i, (name, mesh) in enumerate(scene.objects.items()):
        nodes = slice(int(job.offsets[i]), int(job.offsets[i + 1]))
        faces = slice(int(job.face_offsets[i]), int(job.face_offsets[i + 1]))
        out[f"{name}.vertices"] = packed.x[..., nodes, :]
        if mesh.face_colors is not None:
            out[f"{name}.face_colors"] = arrays.face_colors[faces]
        if mesh.vertex_colors is not None:
            first_color, n_colors = n_colors, n_colors + len(mesh.vertex_colors)
            out[f"{name}.vertex_colors"] = arrays.vertex_colors[first_color:n_colors]
        if mesh.texture is not None:
            first, height, width, _, first_uv = (int(n) for n in job.scene.images[i])
            texels = arrays.texels[first : first + height * width]
            out[f"{name}.texels"] = texels.reshape(height, width, 3)
            out[f"{name}.uv"] = arrays.uv[first_uv : first_uv + len(mesh.uv)]
        for key in mesh.material.parameters():
            out[f"{name}.{key}"] = getattr(arrays, key)[i]
    for k, (name, light) in enumerate(scene.lights.items()):
        if isinstance(light, SphericalHarmonics):
            out[f"{name}.coefficients"] = arrays.harmonics
            continue
        out[f"{name}.direction"] = arrays.directions[k]
        out[f"{name}.color"] = arrays.lights[k]
    names = ("kappa", *NUMBERS[1:], "sigma") if job.has_kappa else NUMBERS
    for k, name in enumerate(names):
        out[f"rasterizer.{name}"] = packed.numbers[k : k + 1].reshape(())
    out["rasterizer.background"] = arrays.background.reshape(job.background_shape)
    return out


def shapes(
    scene: Scene, cameras: Cameras, vertices: Mapping[str, Any], job: Job
) -> dict[str, tuple]:
    """Return the shape of each parameter, as the caller gave it."""
    behind = np.empty(job.background_shape, job.x.dtype)
    packed = Packed(job.x[0], job.scene._replace(background=behind), job.view, np.empty(6))
    out = {}
    for path in views(scene, job, packed):
        owner, _, name = path.rpartition(".")
        if name == "vertices":
            value = vertices[owner]
            out[path] = value.shape if hasattr(value, "shape") else np.shape(value)
        elif name in {"ambient", "diffuse", "specular", "shininess"}:
            out[path] = np.shape(getattr(scene.objects[owner].material, name))
        elif name in {"face_colors", "vertex_colors", "uv"}:
            out[path] = np.shape(getattr(scene.objects[owner], name))
        elif name == "background":
            out[path] = job.background_shape
        elif name == "texels":
            out[path] = np.shape(getattr(scene.objects[owner].texture, name))
        elif name == "coefficients":
            out[path] = (N_HARMONICS, 3)
        else:
            out[path] = () if name in {*NUMBERS, "kappa"} else (3,)
    for owner, camera in cameras.items():
        out |= {f"{owner}.{name}": value.shape for name, value in camera.parameters().items()}
        if job.settings.is_deep:
            out |= {f"{owner}.{name}": () for name in PLANES}
    return out


def named(cameras: Sequence[AnyCamera], *, many: bool) -> dict[str, AnyCamera]:
    """Return the cameras by the paths that their gradients begin with."""
    return {f"camera.{i}" if many else "camera": camera for i, camera in enumerate(cameras)}


def asked(shapes: Mapping[str, tuple], wrt: Iterable[str] | None) -> dict[str, tuple]:
    """Return the shapes of the gradients wanted, by default all; raise if a path is unknown."""
    wanted = list(shapes) if wrt is None else checks.paths("wrt", wrt)
    for path in wanted:
        known_path("wrt", path, shapes)
    return {path: shapes[path] for path in wanted}


def known_path(argument: str, path: str, shapes: Mapping[str, tuple]) -> str:
    """Return a path that is known; of several cameras, a path must say which."""
    if path in shapes:
        return path
    numbered = [key for key in shapes if re.fullmatch(r"camera\.\d+\.\w+", key)]
    owner, _, name = str(path).rpartition(".")
    if owner == "camera" and numbered:
        matching = [key for key in numbered if key.endswith(f".{name}")]
        ends = [matching[0], matching[-1]] if matching else [numbered[0], numbered[-1]]
        is_of_all = len(matching) == len({key.split(".")[1] for key in numbered}) > 2
        which = "` to `".join(ends) if is_of_all or not matching else "`, `".join(matching)
        raise ValueError(
            f"Unknown path in `{argument}` `{path}`: the cameras are a sequence, and a path says "
            f"which of them. Known: `{which}`."
        )
    return checks.known_key(f"path in `{argument}`", path, shapes)


def gradient(
    scene: Scene,
    cameras: Cameras,
    job: Job,
    shape_of: Mapping[str, tuple],
    frames: Iterable[Packed],
) -> dict[str, np.ndarray]:
    """Sum the adjoints of the frames into one mapping of paths, first to last.

    They come view by view, all frames of the first camera before those of the second, one by one
    or several at once.
    """
    n_frames, dtype = len(job.x), job.x.dtype
    sums = _sums(scene, list(cameras), job, shape_of, frames)
    of_cameras = {}
    for owner, camera in cameras.items():
        adj = view_vjp(camera, sums[owner, 0])
        adj |= dict(zip(PLANES, sums[f"{owner}.planes", 0], strict=True))
        of_cameras |= {f"{owner}.{name}": value for name, value in adj.items()}
    out: dict[str, np.ndarray] = {}
    suns = _suns(scene)
    for path, shape in shape_of.items():
        if path in of_cameras:
            out[path] = np.asarray(of_cameras[path], dtype)
        elif _moves(path, shape):
            out[path] = np.stack([sums[path, i] for i in range(n_frames)])
        else:
            total = sums[path, 0]
            total = total.sum() if total.shape != shape else total
            owner, _, name = path.rpartition(".")
            if name == "direction":
                total = through_unit(suns[owner], total)
            out[path] = np.asarray(total, dtype).reshape(shape)
    return out


def _sums(
    scene: Scene,
    owners: list[str],
    job: Job,
    shape_of: Mapping[str, tuple],
    frames: Iterable[Packed],
) -> dict[tuple[str, int], np.ndarray]:
    """Return sums by path, and by frame of what moves; those of views by their camera.

    A frame is added as it comes and let go: it has a number for each texel.
    """
    sums: dict[tuple[str, int], np.ndarray] = {}

    def add(path: str, frame: int, term: np.ndarray) -> None:
        if (path, frame) in sums:
            sums[path, frame] += term
        else:
            sums[path, frame] = term.copy()

    n_frames, k = len(job.x), 0
    for packed in frames:
        for n, image in enumerate(_images(packed)):
            add(owners[k // n_frames], 0, image.view)
            add(f"{owners[k // n_frames]}.planes", 0, image.numbers[CLIPPING])
            for path, term in views(scene, job, image).items():
                if path in shape_of and (n == 0 or _has_images(path)):
                    add(path, k % n_frames if _moves(path, shape_of[path]) else 0, term)
            k += 1
    return sums


def _images(packed: Packed) -> Iterator[Packed]:
    """Yield the adjoints of each image; what they share is in each."""
    if packed.x.ndim == 2:
        yield packed
        return
    for x, view, numbers in zip(packed.x, packed.view, packed.numbers, strict=True):
        yield Packed(x, packed.scene, view, numbers)


def _has_images(path: str) -> bool:
    """Whether the adjoint of a path has an axis of images in adjoints of several."""
    owner, _, name = path.rpartition(".")
    return name == "vertices" or (owner == "rasterizer" and name != "background")


def _moves(path: str, shape: tuple) -> bool:
    """Whether a path is of vertices with a place for each frame."""
    return path.endswith(".vertices") and len(shape) == 3


def _suns(scene: Scene) -> dict[str, DirectionalLight]:
    return {
        name: light for name, light in scene.lights.items() if isinstance(light, DirectionalLight)
    }


def through_unit(light: DirectionalLight, change: np.ndarray) -> np.ndarray:
    """Push a tangent of m through l = m/|m|, or pull an adjoint of l back: the same map."""
    l, m = light.unit_direction(), light.direction
    return (change - l * (l @ change)) / np.linalg.norm(m)


def pack_tangents(
    scene: Scene,
    cameras: Cameras,
    job: Job,
    shape_of: Mapping[str, tuple],
    tangents: Mapping[str, Any],
) -> list[Packed]:
    """Pack the given tangents for each camera; parameters without one have the tangent 0."""
    packed = zeros(job)._replace(x=np.zeros(job.x.shape, job.x.dtype))
    target, suns = views(scene, job, packed), _suns(scene)
    of_cameras: dict[str, dict[str, np.ndarray]] = {owner: {} for owner in cameras}
    tangents = checks.mapping("tangents", tangents, "{'camera.eye': (0.0, 0.0, 1.0)}")
    for path, tangent in tangents.items():
        known_path("tangents", path, shape_of)
        value = checks.array(f"tangents[{path!r}]", tangent, shape_of[path], dtype=job.x.dtype)
        owner, _, name = path.rpartition(".")
        if owner in of_cameras:
            of_cameras[owner][name] = value
        elif name == "direction":
            target[path][...] = through_unit(suns[owner], value)
        else:
            target[path][...] = value
    behind = behind_samples(packed.scene.background.reshape(job.background_shape), job.samples)
    packed = packed._replace(scene=packed.scene._replace(background=behind))
    return [_of_camera(packed, camera, of_cameras[owner]) for owner, camera in cameras.items()]


def _of_camera(packed: Packed, camera: AnyCamera, tangents: dict[str, np.ndarray]) -> Packed:
    """Return packed tangents with those of a camera."""
    view, numbers = view_jvp(camera, tangents), packed.numbers.copy()
    numbers[CLIPPING] = [tangents.get(name, 0.0) for name in PLANES]
    return packed._replace(view=view.astype(packed.view.dtype), numbers=numbers)
