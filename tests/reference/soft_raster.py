r"""A slow, complete image of a scene: every pixel sees every face, in plain NumPy.

The oracle of `render/`, written from the equations alone. No bins, no early exit, no
kernels. For a pixel s and a face with screen corners s_k and depths z_k:

    D  = sigmoid(delta d^2 / sigma)        d: distance of s to the boundary of the triangle
    b  = clip(barycentrics of s, 0, 1), renormalised
    z  = 1 / sum(b_k / z_k),   a = z sum(b_k a_k / z_k)    (orthographic: sums of b_k z_k, b_k a_k)
    C  = k_a C_0 + sum over lights of L (k_d max(0, n.l) C_0 + k_s max(0, r.e)^p)
    r  = 2 (n.l) n - l,  e: from the interpolated point to the eye, orthographic: -forward

With `seamless`, d is the distance that `tests/reference/seamless.py` takes.
Blended over faces as `blend_over`, `blend_softmax`, `blend_dibr` or `blend_hard` say.

Source: Liu, Li, Chen & Li, Soft Rasterizer, ICCV 2019, eq. 1, 2, 4 and 5; the blend
"over" and the perspective-correct depth are this project's. Chen et al., DIB-R, NeurIPS 2019.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.seamless import soft_features, square_distance


D_MIN_OVER = 1e-10
D_MIN_SOFTMAX = 1e-4
D_MIN_DIBR = 1e-10


def reference_image(
    objects: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    lights: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    camera: Mapping[str, Any],
    raster: Mapping[str, Any],
    size: tuple[int, int],
    dtype: npt.DTypeLike = np.float64,
) -> np.ndarray:
    """Draw one frame.

    Parameters
    ----------
    objects : mapping or sequence of mappings
        Each: `vertices` (nv, 3), `faces` (nf, 3) integers, either `face_colors` (nf, 3)
        or `vertex_colors` (nv, 3), `ambient` and `diffuse`: a number or (3,), and
        `smooth_normals` (bool, default False), `specular` (a number or (3,), default none)
        and `shininess`. In place of colours `texels` (H, W, 3), `uv` (n, 2), `uv_faces`
        (nf, 3, default `faces`) and `wrap` ("repeat" or "clamp").
        Ties in depth are broken by the order of objects, then of faces.
    lights : mapping or sequence of mappings
        Each: `direction` (3,), towards the light, any length, and `color` (3,); or one
        alone with `coefficients` (9, 3) of spherical harmonics, in place of everything.
    camera : mapping
        `eye` (3,), `target` (3,), `up` (3,), `fov_y` [deg], `near`, `far`; or, for an
        orthographic view, `height` [m] of the image in place of `fov_y`.
    raster : mapping
        `sigma`, `background` (3,) or (height, width, 3), `supersample` (samples of a pixel in
        each direction, default 1), `blend` ("over", "softmax", "dibr" or "hard"), `cull`
        (bool, default False), `seamless` (bool, default False), for "softmax" `gamma` and
        `epsilon`, for "dibr" `kappa`.
    size : (height, width)
    dtype : dtype
        float64 or longdouble; every number is converted to it first.

    Returns
    -------
    ndarray
        (height, width, 4): red, green, blue over the background, alpha.
    """
    height, width = size
    k = raster.get("supersample", 1)
    if k > 1:
        behind = np.asarray(raster["background"], dtype)
        behind = behind if behind.ndim == 1 else np.kron(behind, np.ones((k, k, 1), dtype))
        raster = {**raster, "supersample": 1, "background": behind}
        samples = reference_image(objects, lights, camera, raster, (k * height, k * width), dtype)
        return samples.reshape(height, k, width, k, 4).sum(axis=(1, 3)) / k**2
    faces = gather_faces(_values(objects), _values(lights), camera, raster, dtype)
    blend = BLENDS[raster["blend"]]
    image = np.empty((height, width, 4), dtype)
    behind = np.broadcast_to(np.asarray(raster["background"], dtype), (height, width, 3))
    for row in range(height):
        row_raster = {**raster, "background": behind[row]}
        image[row] = blend(*pixel_row(faces, camera, raster, row, size), row_raster, camera)
    return image


def view_axes(camera, dtype=np.float64):
    """Right, up and forward of the camera, unit vectors, one a row (3, 3)."""
    eye, target, up = (np.asarray(camera[key], dtype) for key in ("eye", "target", "up"))
    forward = normalise(target - eye)
    right = normalise(np.cross(forward, up))
    return np.stack([right, np.cross(right, forward), forward])


def project(points, camera, dtype=np.float64):
    """Screen coordinates (n, 2), y in [-1, 1] in the image, and depths (n,) [m]."""
    in_camera = (np.asarray(points, dtype) - np.asarray(camera["eye"], dtype)) @ view_axes(
        camera, dtype
    ).T
    depth = in_camera[:, 2]
    if "height" in camera:
        return in_camera[:, :2] / (np.asarray(camera["height"], dtype) / 2), depth
    pi = 4 * np.arctan(np.asarray(1, dtype))
    slope = np.tan(np.asarray(camera["fov_y"], dtype) * pi / 360)  # of half the angle
    with np.errstate(divide="ignore", invalid="ignore"):  # at the eye: not drawn, near > 0
        return in_camera[:, :2] / depth[:, None] / slope, depth


def gather_faces(objects, lights, camera, raster, dtype):
    """Every face that is drawn, of all objects: corners, depths, bare colours of the corners.

    Then, object by object, how many these are, normals and points of their corners, mesh, lights.
    Last, with `seamless`, the soft edges and corners of each face.
    """
    corners, depths, colors, looks, soft = [], [], [], [], []
    for mesh in objects:
        points = np.asarray(mesh["vertices"], dtype)
        index = np.asarray(mesh["faces"])
        screen, depth = project(points, camera, dtype)
        if mesh.get("texels") is not None:  # u, v and 0 in the place of a colour
            uv = np.asarray(mesh["uv"], dtype)
            uv = uv[index if mesh.get("uv_faces") is None else np.asarray(mesh["uv_faces"])]
            albedo = np.concatenate([uv, np.zeros((*uv.shape[:2], 1), dtype)], axis=-1)
        elif mesh.get("face_colors") is not None:
            albedo = np.repeat(np.asarray(mesh["face_colors"], dtype)[:, None, :], 3, axis=1)
        else:
            rows = index if mesh.get("color_faces") is None else np.asarray(mesh["color_faces"])
            albedo = np.asarray(mesh["vertex_colors"], dtype)[rows]
        drawn = is_drawn(screen[index], depth[index], camera, raster)
        corners.append(screen[index][drawn])
        depths.append(depth[index][drawn])
        colors.append(albedo[drawn])
        normals = np.repeat(face_normals(points[index])[:, None], 3, axis=1)
        if mesh.get("smooth_normals", False):
            normals = vertex_normals(points, index)[index]
        looks.append((int(drawn.sum()), normals[drawn], points[index][drawn], mesh, lights))
        soft += soft_features(index[drawn], screen) if raster.get("seamless", False) else []
    return (
        np.concatenate([*corners, np.empty((0, 3, 2), dtype)]),
        np.concatenate([*depths, np.empty((0, 3), dtype)]),
        np.concatenate([*colors, np.empty((0, 3, 3), dtype)]),
        looks,
        soft,
    )


def face_normals(corners):
    """Unit normals (nf, 3) of faces with corners (nf, 3, 3), not flipped towards the eye."""
    return normalise(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))


def vertex_normals(points, faces):
    """Unit normals (nv, 3): the sum of those of the faces, each as long as its area."""
    total, size = np.zeros_like(points), np.zeros_like(points[:, :1])
    for face in faces:
        a, b, c = points[face]
        for vertex in face:
            total[vertex] += np.cross(b - a, c - a)
            size[vertex] += abs(b - a).sum() * abs(c - a).sum()
    return normalise(total, size)


def face_shade(normal, mesh, lights, dtype):
    """What multiplies the colour C at unit normals (n, 3): k_a + sum L k_d max(0, n.l), (n, 3)."""
    for light in lights:
        if "coefficients" in light:
            return spherical_harmonics(normal) @ np.asarray(light["coefficients"], dtype)
    ambient = np.broadcast_to(np.asarray(mesh["ambient"], dtype), 3)
    diffuse = np.broadcast_to(np.asarray(mesh["diffuse"], dtype), 3)
    shade = np.repeat(ambient[None], len(normal), axis=0)
    for light in lights:
        towards = normalise(np.asarray(light["direction"], dtype))
        lambert = np.maximum(0, normal @ towards)
        shade = shade + lambert[:, None] * diffuse * np.asarray(light["color"], dtype)
    return shade


def bilinear(uv, mesh, dtype):
    """Colours (..., 3) of a texture at uv (..., 2); texel (0, 0) is centred at (1/2W, 1 - 1/2H)."""
    texels = np.asarray(mesh["texels"], dtype)
    height, width = texels.shape[:2]
    x = uv[..., 0] * width - np.asarray(0.5, dtype)
    y = (1 - uv[..., 1]) * height - np.asarray(0.5, dtype)
    color = np.zeros((*uv.shape[:-1], 3), dtype)
    for down in (0, 1):
        for across in (0, 1):
            row, column = np.floor(y).astype(int) + down, np.floor(x).astype(int) + across
            weight = (1 - np.abs(x - column)) * (1 - np.abs(y - row))
            if mesh["wrap"] == "clamp":
                row, column = row.clip(0, height - 1), column.clip(0, width - 1)
            color += weight[..., None] * texels[row % height, column % width]
    return color


def highlights(normal, point, mesh, lights, camera, dtype):
    """What is added at unit normals and points (n, 3): sum of L k_s max(0, r.e)^p, (n, 3)."""
    total = np.zeros_like(point)
    if mesh.get("specular") is None:
        return total
    if "height" in camera:
        e = -view_axes(camera, dtype)[2]
    else:
        e = normalise(np.asarray(camera["eye"], dtype) - point)
    specular = np.broadcast_to(np.asarray(mesh["specular"], dtype), 3)
    for light in lights:
        towards = normalise(np.asarray(light["direction"], dtype))
        mirrored = 2 * (normal @ towards)[:, None] * normal - towards
        cosine = np.maximum(0, (mirrored * e).sum(axis=-1))
        gleam = cosine ** np.asarray(mesh["shininess"], dtype)
        total = total + gleam[:, None] * specular * np.asarray(light["color"], dtype)
    return total


def spherical_harmonics(normal):
    """Y_0 to Y_8 at unit normals (nf, 3): (nf, 9)."""
    x, y, z = normal.T
    return np.stack(
        [0.2820948 * np.ones_like(x)]
        + [0.4886025 * linear for linear in (y, z, x)]
        + [1.0925484 * product for product in (x * y, y * z, x * z)]
        + [0.3153916 * (3 * z**2 - 1), 0.5462742 * (x**2 - y**2)],
        axis=-1,
    )


def is_drawn(corners, depths, camera, raster):
    """Mask (nf,): within near and far, screen area not zero, facing us where culled."""
    inside = ((depths >= camera["near"]) & (depths <= camera["far"])).all(axis=1)
    area = np.zeros(len(corners), corners.dtype)
    area[inside] = twice_area(corners[inside])
    return inside & ((area > 0) if raster.get("cull", False) else (area != 0))


def pixel_row(faces, camera, raster, row, size):
    """Log-coverage, depth (W, nf) and colour (W, nf, 3) of every face at each pixel.

    Faces without normals show what their corners have, unlit.
    """
    corners, depths, colors, looks, soft = faces
    dtype = corners.dtype
    height, width = size
    column = np.arange(width, dtype=dtype)
    s = np.stack(
        [
            np.asarray(width, dtype) / height * ((2 * column + 1) / width - 1),
            np.full(width, 1 - np.asarray(2 * row + 1, dtype) / height),
        ],
        axis=-1,
    )[:, None, :]  # (W, 1, 2)

    total = twice_area(corners)
    b = np.stack(
        [edge_area(corners[:, (k + 1) % 3], corners[:, (k + 2) % 3], s) / total for k in range(3)],
        axis=-1,
    )  # (W, nf, 3)
    delta = np.where((b >= 0).all(axis=-1), 1, -1)
    if raster.get("seamless", False):
        pairs = [[square_distance(f, p[0], d > 0) for f, d in zip(soft, row, strict=True)]
                 for p, row in zip(s, delta, strict=True)]  # fmt: skip
        squared = np.array(pairs, dtype).reshape(width, len(corners))
    else:
        squared = np.minimum.reduce(
            [squared_distance(corners[:, k], corners[:, (k + 1) % 3], s) for k in range(3)]
        )
    spread = raster["kappa"] if raster["blend"] == "dibr" else raster["sigma"]
    exponent = delta * squared / np.asarray(spread, dtype)

    b = np.clip(b, 0, 1)
    b = b / b.sum(axis=-1, keepdims=True)
    if "height" in camera:
        w, z = b, (b * depths).sum(axis=-1)
    else:
        z = 1 / (b / depths).sum(axis=-1)
        w = z[..., None] * (b / depths)
    color = (w[..., None] * colors).sum(axis=-2)
    first = 0
    for count, normals, points, mesh, lights in looks:
        of_mesh = slice(first, first + count)
        first += count
        if normals is None:
            continue
        n = normalise((w[:, of_mesh, :, None] * normals).sum(axis=-2), 1).reshape(-1, 3)
        x = (w[:, of_mesh, :, None] * points).sum(axis=-2).reshape(-1, 3)
        if mesh.get("texels") is not None:
            color[:, of_mesh] = bilinear(color[:, of_mesh, :2], mesh, dtype)
        color[:, of_mesh] *= face_shade(n, mesh, lights, dtype).reshape(width, count, 3)
        color[:, of_mesh] += highlights(n, x, mesh, lights, camera, dtype).reshape(width, count, 3)
    return exponent, z, color


def blend_over(exponent, z, color, raster, camera):
    """One row of pixels (W, 4): faces by depth, nearest first, each over the rest."""
    del camera
    coverage = sigmoid(exponent)
    coverage = np.where(coverage >= D_MIN_OVER, coverage, 0)
    order = np.argsort(z, axis=1, kind="stable")
    coverage = np.take_along_axis(coverage, order, axis=1)
    color = np.take_along_axis(color, order[:, :, None], axis=1)
    through = np.concatenate(
        [np.ones((len(z), 1), z.dtype), (1 - coverage).cumprod(axis=1)], axis=1
    )
    rgb = ((through[:, :-1] * coverage)[..., None] * color).sum(axis=1)
    rgb = rgb + through[:, -1:] * np.asarray(raster["background"], z.dtype)
    return np.concatenate([rgb, 1 - through[:, -1:]], axis=1)


def blend_softmax(exponent, z, color, raster, camera):
    """One row of pixels (W, 4): the paper's weights D e^(z/gamma), in logarithms."""
    dtype = z.dtype
    near, far, gamma, epsilon = (
        np.asarray(value, dtype)
        for value in (camera["near"], camera["far"], raster["gamma"], raster["epsilon"])
    )
    coverage = sigmoid(exponent)
    kept = coverage >= D_MIN_SOFTMAX
    logarithm = log_sigmoid(exponent) + (far - z) / (far - near) / gamma
    logarithm = np.where(kept, logarithm, -np.inf)
    logarithm = np.concatenate([logarithm, np.full((len(z), 1), epsilon / gamma)], axis=1)
    weight = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    weight = weight / weight.sum(axis=1, keepdims=True)
    background = np.asarray(raster["background"], dtype)
    rgb = (weight[:, :-1, None] * color).sum(axis=1) + weight[:, -1:] * background
    alpha = 1 - np.where(kept, 1 - coverage, 1).prod(axis=1)
    return np.concatenate([rgb, alpha[:, None]], axis=1)


def blend_dibr(exponent, z, color, raster, camera):
    """One row of pixels (W, 4): the nearest face that covers one, else a soft alpha alone."""
    coverage = np.exp(np.minimum(exponent, 0))
    image = blend_hard(exponent, z, color, raster, camera)
    passes = np.where(coverage >= D_MIN_DIBR, 1 - coverage, 1).prod(axis=1)
    image[:, 3] = np.where(image[:, 3] == 1, 1, 1 - passes)
    return image


def blend_hard(exponent, z, color, raster, camera):
    """One row of pixels (W, 4): the nearest face that covers one, or the background."""
    del camera
    image = np.zeros((len(z), 4), z.dtype)
    image[:, :3] = raster["background"]
    for row, covers in enumerate(exponent >= 0):
        if covers.any():
            nearest = np.argmin(np.where(covers, z[row], np.inf))
            image[row] = [*color[row, nearest], 1]
    return image


BLENDS = {"over": blend_over, "softmax": blend_softmax, "dibr": blend_dibr, "hard": blend_hard}


def twice_area(corners):
    """Signed, positive where the corners (nf, 3, 2) run counter-clockwise on the screen."""
    return edge_area(corners[:, 0], corners[:, 1], corners[:, 2])


def edge_area(start, end, s):
    """Twice the signed area of the triangle start, end, s."""
    edge, to_s = end - start, s - start
    return edge[..., 0] * to_s[..., 1] - edge[..., 1] * to_s[..., 0]


def squared_distance(start, end, s):
    """Of the point s to the segment from start to end."""
    edge, to_s = end - start, s - start
    length = (edge * edge).sum(axis=-1)
    at = np.clip((edge * to_s).sum(axis=-1) / np.where(length > 0, length, 1), 0, 1)
    away = np.where((at < 1)[..., None], to_s - at[..., None] * edge, s - end)
    return (away * away).sum(axis=-1)


def sigmoid(t):
    """1 / (1 + e^-t), without overflow on either side."""
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + small), small / (1 + small))


def log_sigmoid(t):
    """log sigmoid(t), without overflow on either side."""
    return np.minimum(t, 0) - np.log1p(np.exp(-np.abs(t)))


def normalise(vectors, size=0):
    """Vectors of unit length along the last axis; 0 where a sum of this size is rounding."""
    length = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    is_some = length > 8 * np.finfo(vectors.dtype).eps * size
    return np.where(is_some, vectors, 0) / np.where(is_some, length, 1)


def _values(group):
    return list(group.values()) if isinstance(group, Mapping) else list(group)
