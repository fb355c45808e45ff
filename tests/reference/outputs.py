r"""Slow pictures of depth, normals and objects: the attributes of `soft_raster.py` exchanged.

With the weights w_j of a blend, which that file applies to colours C_j over C_bg:

    depth  sum w_j z_j + w_bg far,   normals  sum w_j n_j,   mask of object o  sum over o of w_j

n_j is constant on a face, or sum_k w_k n_k normalised where an object is smooth.
"""

import numpy as np

from tests.reference.soft_raster import (
    BLENDS,
    face_normals,
    gather_faces,
    is_drawn,
    normalise,
    pixel_row,
    project,
    vertex_normals,
)


def reference_outputs(objects, camera, raster, size, dtype=np.float64):
    """Depth (H, W), normals (H, W, 3) and mask (H, W, n_objects) of one frame, by name."""
    k = raster.get("supersample", 1)
    if k > 1:
        finer = {**raster, "supersample": 1}
        samples = reference_outputs(objects, camera, finer, (k * size[0], k * size[1]), dtype)
        return {name: blocks(value, k) for name, value in samples.items()}
    meshes = list(objects.values())
    corners, depths, _, looks, soft = gather_faces(meshes, [], camera, raster, dtype)
    counts = [count for count, *_ in looks]
    owner = np.repeat(np.arange(len(meshes)), counts)
    is_smooth = np.repeat([mesh.get("smooth_normals", False) for mesh in meshes], counts)
    shown = np.concatenate([corner_normals(m, camera, raster, dtype) for m in meshes])
    faces = (corners, depths, shown, [(count, *4 * (None,)) for count in counts], soft)
    depth, normals = np.empty(size, dtype), np.empty((*size, 3), dtype)
    mask = np.empty((*size, len(meshes)), dtype)
    for row in range(size[0]):
        exponent, z, n = pixel_row(faces, camera, raster, row, size)
        n = np.where(is_smooth[:, None], normalise(n, 1), n)

        def blend(attribute, behind, exponent=exponent, z=z):
            row_raster = {**raster, "background": np.full((size[1], 3), behind, dtype)}
            return BLENDS[raster["blend"]](exponent, z, attribute, row_raster, camera)[:, :3]

        depth[row] = blend(np.repeat(z[..., None], 3, axis=-1), camera["far"])[:, 0]
        normals[row] = blend(n, 0.0)
        for o in range(len(meshes)):
            belongs = np.broadcast_to((owner == o)[:, None], n.shape).astype(dtype)
            mask[row, :, o] = blend(belongs, 0.0)[:, 0]
    return {"depth": depth, "normals": normals, "mask": mask}


def corner_normals(mesh, camera, raster, dtype):
    """Normals (nf, 3, 3) at the corners of the drawn faces of a mesh."""
    points, index = np.asarray(mesh["vertices"], dtype), np.asarray(mesh["faces"])
    screen, depth = project(points, camera, dtype)
    drawn = is_drawn(screen[index], depth[index], camera, raster)
    if mesh.get("smooth_normals", False):
        return vertex_normals(points, index)[index][drawn]
    return np.repeat(face_normals(points[index])[:, None], 3, axis=1)[drawn]


def blocks(samples, k):
    """Means of k x k samples."""
    h, w, *rest = samples.shape
    return samples.reshape(h // k, k, w // k, k, *rest).sum(axis=(1, 3)) / k**2
