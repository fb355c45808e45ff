"""Checks what a render is asked for, and packs it as arrays of one type.

A scene is packed once: its arrays are kept as long as it lives, for they cannot change.

Tests: `tests/render/test_bad_input.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from adjsim import checks
from adjsim.jit.device_arrays import to_device, to_host
from adjsim.jit.devices import Device, array_module, module_of
from render.blending import DIBR, SOFTMAX
from render.camera import AnyCamera
from render.faces.face_setup import PackedScene, Settings
from render.projection import image_size, pixel_centers
from render.raster.fragments import TILE_SHIFT, TileGrid
from render.raster.supersampling import repeat
from render.scene import DirectionalLight, Mesh, Scene, SphericalHarmonics
from render.seamless import NO_EDGES, Edges, shared_edges
from render.shaders.normals import VertexCorners, vertex_corners
from render.textures import Wrap


class Job(NamedTuple):
    """Everything that the frames of a view share, and their vertices."""

    view: np.ndarray  # (18,)
    scene: PackedScene
    settings: Settings
    grid: TileGrid
    x: np.ndarray  # (n_frames, n_vertices, 3)
    batched: bool  # whether the images have an axis of frames
    corners: VertexCorners  # of every vertex
    offsets: np.ndarray  # (n_objects + 1,) first vertex of each object
    face_offsets: np.ndarray  # (n_objects + 1,) first face of each object
    has_kappa: bool  # whether the softness is that of DIBR
    samples: int  # of a pixel, in each direction: the grid counts samples
    background_shape: tuple[int, ...]  # (3,) or (height, width, 3)
    edges: Edges  # empty where coverage is not seamless


class PackedOnce(NamedTuple):
    """What a scene is in every render of vertices of these numbers and this type."""

    scene: PackedScene  # in front of black
    corners: VertexCorners
    offsets: np.ndarray  # (n_objects + 1,)
    face_offsets: np.ndarray  # (n_objects + 1,)
    edges: Edges  # empty where coverage is not seamless


# Where a scene keeps it, by the numbers of vertices, their type, and whether coverage is seamless
PACKED = "_packed"
MOST_PACKED = 2  # of these, the last ones: one for each type


def pack(
    scene: Scene,
    cameras: Sequence[AnyCamera],
    rasterizer: Any,
    vertices: Mapping[str, Any],
    size: Any,
) -> list[Job]:
    """Check the arguments of `rasterize` and pack them, a job for each camera.

    The jobs share everything but the view and the planes near and far.
    """
    height, width = image_size(size)
    shape = rasterizer.background.shape
    if len(shape) == 3 and shape[:2] != (height, width):
        raise ValueError(
            "`rasterizer.background` must have a colour for each pixel of the image, "
            f"{(height, width, 3)}, with supersampling too, got {shape}. Or give one colour, (3,)."
        )
    k = rasterizer.supersample
    moves, batched = _vertices(scene, vertices)
    dtypes = [x.dtype for x in moves.values()] or [np.float64]
    dtype = np.result_type(*dtypes)
    n_frames = next((len(x) for x in moves.values() if x.shape[0] != 1), 1)
    _check_room((height, width), k, len(cameras) * n_frames, dtype)
    packed, corners, offsets, face_offsets, edges = _pack_once(
        scene, moves, dtype, seamless=rasterizer.seamless
    )
    x = np.empty((n_frames, int(offsets[-1]), 3), dtype)
    placed, modules = tuple(moves.values()), [module_of(value) for value in moves.values()]
    if any(module is not np for module in modules):
        x = array_module(Device.CUDA).empty(x.shape, dtype)
        placed = to_device(placed, Device.CUDA)
    for i, value in enumerate(placed):
        x[:, offsets[i] : offsets[i + 1]] = value
    grid = TileGrid(*pixel_centers(k * height, k * width, dtype), TILE_SHIFT)
    background = behind_samples(rasterizer.background, k)
    packed = packed._replace(background=background.astype(dtype))
    return [
        Job(
            camera.view().astype(dtype),
            packed,
            _settings(camera, rasterizer, dtype),
            grid,
            x,
            batched,
            corners,
            offsets,
            face_offsets,
            isinstance(rasterizer.blend, DIBR),
            k,
            rasterizer.background.shape,
            edges,
        )
        for camera in cameras
    ]


def _check_room(size: tuple[int, int], k: int, n_images: int, dtype: np.dtype) -> None:
    """Raise unless there is memory for the images, and for the samples of one."""
    n_bytes = size[0] * size[1] * 4 * dtype.itemsize * (n_images + (k * k if k > 1 else 0))
    try:
        np.empty(n_bytes, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:  # the others beyond 63 bits
        samples = f" of {k} x {k} samples a pixel" if k > 1 else ""
        raise MemoryError(
            f"`size` must leave the images room in memory: {n_images} of {size[0]} x {size[1]} "
            f"pixels{samples} need {n_bytes:,} bytes. Draw smaller images, or fewer at once."
        ) from error


def behind_samples(background: np.ndarray, k: int) -> np.ndarray:
    """Return the background as kernels read it: (1, 1, 3), or of all samples."""
    return background.reshape(1, 1, 3) if background.ndim == 1 else repeat(background, k)


def check_cameras(scene: Any, camera: Any) -> tuple[tuple[AnyCamera, ...], bool]:
    """Return the cameras, and whether they came as a sequence; raise if scene or camera is none."""
    if not isinstance(scene, Scene):
        raise TypeError(f"`scene` must be a Scene, got {type(scene).__name__}.")
    if isinstance(camera, AnyCamera):
        return (camera,), False
    if not isinstance(camera, Sequence):
        raise TypeError(
            f"`camera` must be a camera or a sequence of cameras, got {type(camera).__name__}."
        )
    for i, view in enumerate(camera):
        if not isinstance(view, AnyCamera):
            raise TypeError(f"`camera[{i}]` must be a camera, got {type(view).__name__}.")
    if not camera:
        raise ValueError("`camera` must hold at least one camera, got an empty sequence.")
    return tuple(camera), True


def _vertices(scene: Scene, vertices: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], bool]:
    """Return the checked vertices, (n_frames or 1, n_vertices, 3), in the scene's order."""
    vertices = checks.mapping("vertices", vertices, "{'beam': trajectory.x}")
    for key in vertices:
        checks.known_key("object in `vertices`", key, scene.objects)
    moves, batched, n_frames = {}, False, None
    for name, mesh in scene.objects.items():
        if name not in vertices:
            raise ValueError(
                f"`vertices` must hold every object of the scene: {name!r} is missing."
            )
        x = _finite_vertices(name, vertices[name], mesh)
        if x.ndim == 3:
            batched = True
            if n_frames is not None and len(x) != n_frames:
                raise ValueError(
                    f"`vertices[{name!r}]` must have {n_frames} frames like the objects before "
                    f"it, got {len(x)}. Pass (n_vertices, 3) for an object at rest."
                )
            n_frames = len(x)
        moves[name] = x if x.ndim == 3 else x[None]
    return moves, batched


def _finite_vertices(name: str, value: Any, mesh: Mesh) -> np.ndarray:
    try:
        dtype = np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64
        x = module_of(value).ascontiguousarray(value, dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`vertices[{name!r}]` must be an array of numbers: {error}.") from error
    if x.ndim in {2, 3} and x.shape[-1] == 3 and x.size == 0:
        raise ValueError(
            f"`vertices[{name!r}]` must hold at least one vertex and one frame, got shape "
            f"{x.shape}. Leave an object that is empty out of the scene."
        )
    if x.ndim not in {2, 3} or x.shape[-1] != 3:
        raise ValueError(
            f"`vertices[{name!r}]` must have shape (n_vertices, 3) or (n_frames, n_vertices, 3), "
            f"got {x.shape}."
        )
    if not module_of(x).isfinite(x).all():
        x = to_host(x)
        where = np.argwhere(~np.isfinite(x))[0]
        frame = f" of frame {where[0]}" if x.ndim == 3 else ""
        used = np.argwhere(mesh.faces == where[-2])
        face = f", a corner of face {used[0, 0]}" if len(used) else ""
        raise ValueError(
            f"`vertices[{name!r}]` must be finite, got {x[tuple(where)]} at vertex "
            f"{where[-2]}{frame}{face}."
        )
    return x


def _check_faces(name: str, mesh: Mesh, n_vertices: int) -> None:
    if mesh.faces.size and mesh.faces.max() >= n_vertices:
        face = int(np.argwhere(mesh.faces >= n_vertices)[0, 0])
        raise ValueError(
            f"`faces` of {name!r} must index its {n_vertices} vertices, got "
            f"{mesh.faces[face].tolist()} in face {face}."
        )
    if mesh.uv is not None and mesh.uv_faces is None and len(mesh.uv) != n_vertices:
        raise ValueError(
            f"`uv` of {name!r} must have shape ({n_vertices}, 2), one row for each vertex, got "
            f"{mesh.uv.shape}. If corners have their own, pass `uv_faces`."
        )
    colors = mesh.vertex_colors if mesh.color_faces is None else None
    if colors is not None and len(colors) != n_vertices:
        raise ValueError(
            f"`vertex_colors` of {name!r} must have shape ({n_vertices}, 3), one row for each "
            f"vertex, got {colors.shape}. If corners have their own, pass "
            "`color_faces`."
        )


def _pack_once(
    scene: Scene, moves: Mapping[str, np.ndarray], dtype: np.dtype, *, seamless: bool
) -> PackedOnce:
    """Return the scene packed for such vertices, (n_frames or 1, n_vertices, 3), packed once."""
    of_scene: dict[Any, PackedOnce] = vars(scene).setdefault(PACKED, {})
    counts = tuple(x.shape[1] for x in moves.values())
    key = counts, dtype, seamless
    packed_once = of_scene.get(key)
    if packed_once is None:
        for (name, mesh), n_vertices in zip(scene.objects.items(), counts, strict=True):
            _check_faces(name, mesh, n_vertices)
        offsets = np.cumsum([0, *counts])
        face_offsets = np.cumsum([0, *(len(mesh.faces) for mesh in scene.objects.values())])
        packed = _pack_scene(scene, offsets, face_offsets, dtype)
        corners = vertex_corners(packed.faces, int(offsets[-1]))
        edges = shared_edges(packed.faces) if seamless else NO_EDGES
        packed_once = of_scene[key] = PackedOnce(packed, corners, offsets, face_offsets, edges)
        for old in list(of_scene)[:-MOST_PACKED]:
            of_scene.pop(old, None)
    return packed_once


def _pack_scene(
    scene: Scene, offsets: np.ndarray, face_offsets: np.ndarray, dtype: np.dtype
) -> PackedScene:
    meshes = list(scene.objects.values())
    n_faces = int(face_offsets[-1])
    faces = np.empty((n_faces, 3), np.int64)
    owner = np.empty(n_faces, np.int64)
    smooth, rounded, by_pixel = (np.empty(n_faces, np.bool_) for _ in range(3))
    face_colors, color_faces = np.ones((n_faces, 3), dtype), np.full((n_faces, 3), -1, np.int64)
    vertex_colors, n_colors = [np.empty((0, 3), dtype)], 0
    ambient, diffuse, specular = (np.zeros((len(meshes), 3), dtype) for _ in range(3))
    shininess = np.zeros((len(meshes), 1), dtype)
    for i, mesh in enumerate(meshes):
        span = slice(int(face_offsets[i]), int(face_offsets[i + 1]))
        faces[span] = mesh.faces + offsets[i]
        owner[span], smooth[span] = i, mesh.vertex_colors is not None
        rounded[span], is_glossy = mesh.smooth_normals, mesh.material.specular is not None
        by_pixel[span] = mesh.smooth_normals or is_glossy or mesh.texture is not None
        if mesh.face_colors is not None:
            face_colors[span] = mesh.face_colors
        if mesh.vertex_colors is not None:
            corners = mesh.faces if mesh.color_faces is None else mesh.color_faces
            color_faces[span] = n_colors + corners
            vertex_colors.append(mesh.vertex_colors.astype(dtype))
            n_colors += len(mesh.vertex_colors)
        ambient[i], diffuse[i] = mesh.material.ambient, mesh.material.diffuse
        if is_glossy:
            specular[i], shininess[i] = mesh.material.specular, mesh.material.shininess
    lights = list(scene.lights.values())
    far_away = [light for light in lights if isinstance(light, DirectionalLight)]
    sky = [light.coefficients for light in lights if isinstance(light, SphericalHarmonics)]
    return PackedScene(
        faces,
        smooth,
        rounded,
        by_pixel,
        owner,
        face_colors,
        np.concatenate(vertex_colors),
        color_faces,
        *_pack_textures(meshes, n_faces, face_offsets, dtype),
        ambient,
        diffuse,
        specular,
        shininess,
        np.array([light.unit_direction() for light in far_away], dtype).reshape(-1, 3),
        np.array([light.color for light in far_away], dtype).reshape(-1, 3),
        np.array(sky, dtype).reshape(-1, 3),
        np.zeros((1, 1, 3), dtype),
    )


def _pack_textures(
    meshes: Sequence[Mesh], n_faces: int, face_offsets: np.ndarray, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return uv, uv_faces, texels and images of a `PackedScene`."""
    uv, texels = [np.empty((0, 2), dtype)], [np.empty((0, 3), dtype)]
    uv_faces, images = np.full((n_faces, 3), -1, np.int64), np.zeros((len(meshes), 5), np.int64)
    n_uv, n_texels = 0, 0
    for i, mesh in enumerate(meshes):
        if mesh.texture is None:
            continue
        span = slice(int(face_offsets[i]), int(face_offsets[i + 1]))
        uv_faces[span] = n_uv + (mesh.faces if mesh.uv_faces is None else mesh.uv_faces)
        height, width = mesh.texture.texels.shape[:2]
        images[i] = n_texels, height, width, mesh.texture.wrap is Wrap.CLAMP, n_uv
        uv.append(mesh.uv.astype(dtype))
        texels.append(mesh.texture.texels.reshape(-1, 3).astype(dtype))
        n_uv, n_texels = n_uv + len(mesh.uv), n_texels + height * width
    return np.concatenate(uv), uv_faces, np.concatenate(texels), images


def _settings(camera: AnyCamera, rasterizer: Any, dtype: np.dtype) -> Settings:
    number, eps = dtype.type, np.finfo(dtype).eps
    # So that faces whose D rounds to 1 are kept in `Hard` too: `render/faces/nearest.py`.
    lowest = min(rasterizer.blend.lowest, -0.2 * eps)
    return Settings(
        number(rasterizer.spread),
        number(rasterizer.gamma),
        number(rasterizer.epsilon),
        number(camera.near),
        number(camera.far),
        number(lowest),
        eps,
        rasterizer.blend.kind,
        rasterizer.cull,
        rasterizer.blend.kind == SOFTMAX,
    )
