"""How far a picture is from its kinks, in NumPy, written a second time from the equations.

Each margin changes sign where the picture is not smooth: a barycentric coordinate at 0 or
1 (the clip, the end of a face, a seam), two edges equally near (the medial axis, inside), two
faces equally deep (a swap in order), a coverage at D_min, a face edge-on to a light, or, where
coverage is seamless, to the camera, an eye at a right angle to mirrored light, the centre of a
row or column of texels, a corner in the plane near or far.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from render.blending import DIBR, Hard
from render.camera import AnyCamera
from render.projection import pixel_centers
from render.scene import DirectionalLight, Scene
from render.soft_raster import SoftRasterizer


FAINT = 1e-6  # of coverages below this the kinks are not felt; their end, D_min, is


def picture_margins(
    scene: Scene,
    camera: AnyCamera,
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, np.ndarray],
    size: tuple[int, int],
) -> np.ndarray:
    """Return the margins of every frame as one flat array; NaN where there is no kink."""
    size = (rasterizer.supersample * size[0], rasterizer.supersample * size[1])
    n_frames = max((len(x) for x in vertices.values() if x.ndim == 3), default=1)
    frames = [
        {name: x[i] if x.ndim == 3 else x for name, x in vertices.items()} for i in range(n_frames)
    ]
    margins = []
    for frame in frames:
        triangles = _triangles(scene, camera, frame)
        places = _felt_places(triangles, rasterizer, size)
        flat = camera.optics.is_orthographic
        weights = places[1] if flat else places[1] / triangles[None, :, :, 2]
        felt = places[2] > np.log(FAINT)
        margins += [
            *_pixel_margins(triangles, places, rasterizer, is_orthographic=flat),
            *_light_margins(scene, frame),
            *_shade_margins(scene, camera, frame, weights, felt),
            *_texel_margins(scene, weights, felt),
            triangles[..., 2] - camera.near,
            camera.far - triangles[..., 2],
        ]
    return np.concatenate([array.ravel() for array in margins])


def _triangles(scene: Scene, camera: AnyCamera, vertices: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return screen x, y and depth of the corners of all faces, (n_faces, 3, 3)."""
    eye, axes = camera.pose()
    corners = np.concatenate(
        [(vertices[name] - eye)[mesh.faces] for name, mesh in scene.objects.items()]
    )
    seen = corners @ axes.T
    f_x, k, c_x, f_y, c_y = camera.optics.numbers()
    w = 1.0 if camera.optics.is_orthographic else seen[..., 2:]
    on_plane = seen[..., :2] @ np.array([[f_x, 0.0], [k, f_y]]) / w + [c_x, c_y]
    return np.concatenate([on_plane, seen[..., 2:]], axis=-1)


def _felt_places(
    triangles: np.ndarray, rasterizer: SoftRasterizer, size: tuple[int, int]
) -> tuple[np.ndarray, ...]:
    """Return coordinates b, clipped and not, logits y, insides and medial margins of all pairs."""
    px, py = pixel_centers(*size, np.dtype(np.float64))
    p = np.stack(np.meshgrid(px, py), axis=-1).reshape(-1, 1, 2)
    a = triangles[None, :, :, :2]
    b = np.stack(
        [
            _cross(a[:, :, (k + 2) % 3] - a[:, :, (k + 1) % 3], p - a[:, :, (k + 1) % 3])
            for k in range(3)
        ],
        axis=-1,
    )
    b = b / b.sum(axis=-1, keepdims=True)
    near = np.stack([_square_distance(p, a[:, :, k - 2], a[:, :, k - 1]) for k in range(3)], -1)
    if rasterizer.seamless:
        corners = np.square(p[:, :, None] - a).sum(axis=-1)
        corners = np.where((b >= 0.0).all(axis=-1)[..., None], corners, 1e9)  # inside alone
        near = np.where(_soft(triangles), np.concatenate([near, corners], axis=-1), 1e9)
    near = np.sort(near)
    is_inside = (b >= 0.0).all(axis=-1)
    y = np.where(is_inside, near[..., 0], -near[..., 0]) / rasterizer.spread
    clipped = np.clip(b, 0.0, 1.0)
    clipped /= clipped.sum(axis=-1, keepdims=True)
    return b, clipped, y, is_inside, near[..., 1] - near[..., 0]


def _pixel_margins(
    triangles: np.ndarray,
    places: tuple[np.ndarray, ...],
    rasterizer: SoftRasterizer,
    *,
    is_orthographic: bool,
) -> list[np.ndarray]:
    """Return the margins of all pairs of pixel and face, and of pairs of faces."""
    b, clipped, y, is_inside, medial = places
    coverage = _coverage(y, rasterizer)
    felt = coverage > FAINT
    if rasterizer.seamless:  # kinks outside too; edges that share their nearest point stay tied
        is_inside = (medial > 1e-12) & (medial < 1e8)
        felt = felt | (b > -0.1).all(axis=-1)  # at a seam full coverage begins
        turns = _cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    else:
        turns = np.empty(0)
    z = triangles[None, :, :, 2]
    depth = (clipped * z).sum(axis=-1) if is_orthographic else 1.0 / (clipped / z).sum(axis=-1)
    swaps = [_swap_margin(depth, coverage, i, j) for i, j in combinations(range(len(triangles)), 2)]
    return [
        np.where(felt[..., None], b, np.nan),
        np.where(felt[..., None], 1.0 - b, np.nan),
        np.where(is_inside & felt, medial, np.nan),
        y - rasterizer.blend.lowest,
        turns,
        *swaps,
    ]


def _soft(triangles: np.ndarray) -> np.ndarray:
    """Return which edges and corners soften, (n_faces, 6); corners of soft edges of their own not.

    Corners are the same vertex if they are at the same place.
    """
    sides: dict[frozenset, list[tuple[int, int]]] = {}
    names = [[tuple(corner) for corner in face] for face in triangles]
    for f, face in enumerate(names):
        for k in range(3):
            sides.setdefault(frozenset((face[k - 2], face[k - 1])), []).append((f, k))
    soft = np.zeros((len(names), 6), bool)
    for ends, faces in sides.items():
        a, b = (np.array(end[:2]) for end in ends)
        turn = [_cross(b - a, triangles[f, k, :2] - a) for f, k in faces]
        for (f, k), side in zip(faces, turn, strict=True):
            soft[f, k] = not any(side * other < 0.0 for other in turn)
    ends = {
        corner
        for edge, faces in sides.items()
        for corner in edge
        if any(soft[f, k] for f, k in faces)
    }
    for f, face in enumerate(names):
        for k in range(3):
            soft[f, 3 + k] = face[k] in ends and not (soft[f, k - 2] or soft[f, k - 1])
    return soft


def _coverage(y: np.ndarray, rasterizer: SoftRasterizer) -> np.ndarray:
    """Return how much each face covers of each pixel."""
    if isinstance(rasterizer.blend, DIBR | Hard):
        return np.where(y >= rasterizer.blend.lowest, np.exp(np.minimum(y, 0.0)), 0.0)
    return 1.0 / (1.0 + np.exp(np.minimum(-y, 700.0)))


def _swap_margin(depth: np.ndarray, coverage: np.ndarray, i: int, j: int) -> np.ndarray:
    """Return how much deeper face i is; faces tied at a shared corner stay tied."""
    ahead = depth[:, i] - depth[:, j]
    is_felt = (coverage[:, i] * coverage[:, j] > FAINT) & (np.abs(ahead) > 1e-12)
    return np.where(is_felt, ahead, np.nan)


def _light_margins(scene: Scene, vertices: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return n.l of all faces and lights."""
    margins = []
    for name, mesh in scene.objects.items():
        if mesh.smooth_normals:
            continue
        x = vertices[name][mesh.faces]
        n = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
        n /= np.linalg.norm(n, axis=-1, keepdims=True)
        far_away = [m for m in scene.lights.values() if isinstance(m, DirectionalLight)]
        margins += [n @ light.direction for light in far_away]
    return margins


def _shade_margins(
    scene: Scene,
    camera: AnyCamera,
    vertices: Mapping[str, np.ndarray],
    weights: np.ndarray,
    felt: np.ndarray,
) -> list[np.ndarray]:
    """Return n.l of all pixels, faces with smooth normals, and lights; r.e of glossy ones."""
    meshes, normals, towards, rounded = scene.objects, [], [], []
    if not any(m.smooth_normals or m.material.specular is not None for m in meshes.values()):
        return []
    eye, axes = camera.pose()
    for name, mesh in meshes.items():
        x, m = vertices[name][mesh.faces], np.zeros_like(vertices[name])
        face_normals = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])[:, None]
        np.add.at(m, mesh.faces, face_normals)
        m /= np.linalg.norm(m, axis=-1, keepdims=True)
        normals.append(np.where(mesh.smooth_normals, m[mesh.faces], face_normals))
        v = np.where(camera.optics.is_orthographic, -axes[2], eye - x)
        towards.append(np.where(mesh.material.specular is None, np.nan, v))
        rounded.append(np.full(len(x), mesh.smooth_normals))
    n = np.einsum("pfk,fkc->pfc", weights, np.concatenate(normals))
    n /= np.linalg.norm(n, axis=-1, keepdims=True)
    e = np.einsum("pfk,fkc->pfc", weights, np.concatenate(towards))
    e /= np.linalg.norm(e, axis=-1, keepdims=True)
    margins = []
    for light in scene.lights.values():
        if isinstance(light, DirectionalLight):
            c = n @ light.unit_direction()
            margins.append(np.where(felt & np.concatenate(rounded), c, np.nan))
            mirrored = 2.0 * c * (n * e).sum(axis=-1) - e @ light.unit_direction()
            margins.append(np.where(felt, mirrored, np.nan))
    return margins


def _texel_margins(scene: Scene, weights: np.ndarray, felt: np.ndarray) -> list[np.ndarray]:
    """Return sines that vanish where u or v of a pixel passes the centre of a texel."""
    uv, n_texels = [], []
    if not any(mesh.texture for mesh in scene.objects.values()):
        return []
    for mesh in scene.objects.values():
        shape = mesh.texture.texels.shape[:2] if mesh.texture else (1, 1)
        corners = mesh.faces if mesh.uv_faces is None else mesh.uv_faces
        known = mesh.uv[corners] if mesh.texture else np.full((*corners.shape, 2), np.nan)
        uv.append(known)
        n_texels.append(np.broadcast_to((shape[1], shape[0]), (len(corners), 2)))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    places = np.einsum("pfk,fkc->pfc", weights, np.concatenate(uv)) * np.concatenate(n_texels)
    sines = np.sin(np.pi * (places - 0.5))
    return [np.where(felt[..., None], sines, np.nan)]


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _square_distance(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the squared distance of p from the edge ab."""
    u = b - a
    t = np.clip(((p - a) * u).sum(axis=-1) / (u * u).sum(axis=-1), 0.0, 1.0)
    return np.square(p - a - t[..., None] * u).sum(axis=-1)
