r"""What pictures tell of each texel of a texture, and in which units a search should see them.

Pictures of a known mesh under known light are affine in its texels T: where the blend is `Hard`, a
pixel sees one face and four texels, and in each channel

    image = A T + b,   loss = |A T + b - target|^2 / N

Texels of a class no two of which meet in a pixel, every other one along rows and columns, have
their weights in one tangent of the pictures. Tangents of 1, i and j on texel (i, j) say whose
weight it is, too: twelve sweeps find A whole. Where a size is odd, the last row or column
would meet the first one across the border, and is a class of its own.

Column k of A is how the pictures feel texel k; where it is 0, no pixel looks at it. With
D = diag |a_k| and the spectrum D^-1 A^T A D^-1 = V diag(lam) V^T, without what is at rounding,

    R_k = sum_i V_ki^2                           1 if the pictures tell T_k by itself
    g_k = (sum_i V_ki^2 / lam_i)^(1/2) / |a_k|   standard error of T_k by that of a pixel

Source: Aster, Borchers & Thurber, Parameter Estimation and Inverse Problems, 2013, sec. 3.3.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from adjoint.render.soft_raster import record_images
from render.blending import Hard
from studies.problem.films import films_of
from studies.problem.observers import Observer


Arrays = Mapping[str, np.ndarray]
Matrices = tuple[csr_array, ...]
TEXELS = ".look.texels"  # the end of a scene path
ROUNDING = 1e-12  # of the largest eigenvalue: below, a direction leaves no trace
WHOLE = 1e-6  # what may lack of R_k where a texel is told by itself


def texel_gain(matrix: csr_array, shape: tuple[int, int]) -> np.ndarray:
    """Return g_k of the texels that pictures of this A show, (height, width).

    It is infinite where the pictures tell a texel only together with others, NaN where no pixel
    looks.
    """
    squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
    (seen,) = np.nonzero(squares)
    norm = np.sqrt(squares[seen])
    columns = matrix[:, seen]
    eigenvalues, V = np.linalg.eigh((columns.T @ columns).toarray() / np.outer(norm, norm))
    kept = eigenvalues > ROUNDING * eigenvalues[-1]
    V = V[:, kept]
    gain = np.full(squares.shape, np.nan)
    gain[seen] = np.sqrt((V**2 / eigenvalues[kept]).sum(axis=1)) / norm
    gain[seen[(V**2).sum(axis=1) < 1.0 - WHOLE]] = np.inf
    return gain.reshape(shape)


def felt_by(observers: Sequence[Observer], surfaces: Arrays, path: str) -> Matrices:
    """Return A of each channel, three of (n_pixels, n_texels), by all films of a texture.

    Their first frames count. `surfaces` are the vertices of everything that is drawn, (n, 3) [m],
    and `path` is that of the texels, "ball.look.texels".
    """
    films = [film for film in films_of(observers) if path in film.paths.values()]
    body = path.removesuffix(TEXELS)
    target = f"{body}.texels"
    entries: list[list[tuple[np.ndarray, ...]]] = [[], [], []]
    first = 0
    texture: Any = films[0].scene.objects[body].texture
    height, width = texture.texels.shape[:2]
    code = np.stack([np.ones((height, width)), *np.indices((height, width))])
    for film in films:
        hard = replace(film.rasterizer, blend=Hard(), background=np.zeros(3))
        vertices = {name: surfaces[name] - film.center for name in film.scene.objects}
        record = record_images(film.scene, film.camera, hard, vertices, film.size)
        for chosen in _classes(height, width):
            tans = [
                record.jvp({target: np.repeat((values[..., None] * chosen), 3, axis=-1)})
                for values in code
            ]
            weight, row, column = (
                values[..., :3].reshape(-1, 3).astype(np.float64) for values in tans
            )
            for c in range(3):
                (pixel,) = np.nonzero(weight[:, c])
                i, j = (np.rint(k[pixel, c] / weight[pixel, c]).astype(int) for k in (row, column))
                entries[c].append((weight[pixel, c], first + pixel, i * width + j))
        first += math.prod(film.size)
    joined = (map(np.concatenate, zip(*channel, strict=True)) for channel in entries)
    size = (first, height * width)
    return tuple(csr_array((w, (pixel, texel)), shape=size) for w, pixel, texel in joined)


def texel_units(matrices: Matrices, shape: tuple[int, int]) -> np.ndarray:
    """Return units in which a search feels all texels alike, 1 of unseen ones, (H, W, 3)."""
    columns = [np.asarray(A.multiply(A).sum(axis=0)).reshape(shape) for A in matrices]
    squares = np.stack(columns, axis=-1)  # |a_k|^2
    return np.where(squares > 0.0, 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0)), 1.0)


def _classes(height: int, width: int) -> Iterator[np.ndarray]:
    """Yield 1 on texels of which no two meet in a pixel, (height, width, 1), else 0."""
    down, across = (np.arange(n) % 2 for n in (height, width))
    for k in (down, across):
        k[-1] = 2 if len(k) % 2 else k[-1]
    for i in np.unique(down):
        for j in np.unique(across):
            yield ((down == i)[:, None] & (across == j)).astype(float)[..., None]
