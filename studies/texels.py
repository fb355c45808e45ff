r"""Textures as a study has them: drawn, brought to a size, and what pictures tell of each texel.

Pictures of a known mesh under known light are affine in its texels T: where the blend is `Hard`, a
pixel sees one face and four texels, and in each channel

    image = A T + b,   loss = |A T + b - target|^2 / N

Texels of a class no two of which meet in a pixel, every other one along rows and columns, have
their weights in one tangent of the pictures. A tangent in the channels 1, i and j on texel (i, j)
says whose weight it is, too: four sweeps find A whole. Where a size is odd, the last row or column
would meet the first one across the border, and is a class of its own.

Column k of A is how the pictures feel texel k; where it is 0, no pixel looks at it. With
D = diag |a_k| and the spectrum D^-1 A^T A D^-1 = V diag(lam) V^T, without what is at rounding,

    R_k = sum_i V_ki^2                           1 if the pictures tell T_k by itself
    g_k = (sum_i V_ki^2 / lam_i)^(1/2) / |a_k|   standard error of T_k by that of a pixel

Source: Aster, Borchers & Thurber, Parameter Estimation and Inverse Problems, 2013, sec. 3.3.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from render.scene import Mesh
from render.textures import Wrap
from studies.scenery import Scenery


CELLS = 8  # of the checkerboard, along a side of its field
DARK, MEAN, SWING = 0.3, 0.58, 0.34
PAINT = (0.95, 0.93, 0.88)
ROUNDING = 1e-12  # of the largest eigenvalue: below, a direction leaves no trace
WHOLE = 1e-6  # what may lack of R_k where a texel is told by itself
SAMPLES = 3  # points on a face along the way across a texel


def drawn(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a texture, (height, width, 3), all of it inside (0, 1).

    Six fields, three across, of smooth colours whose phases are drawn; on every other field a
    checkerboard darkens them, on the others lies a disc.
    """
    y, x = np.meshgrid((np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width,
                       indexing="ij")  # fmt: skip
    phase = rng.uniform(0.0, 2.0 * np.pi, (2, 3))
    wave = np.sin(2.0 * np.pi * x[..., None] + phase[0]) * np.cos(
        2.0 * np.pi * y[..., None] + phase[1]
    )
    colors = MEAN + SWING * wave
    field = (np.floor(2.0 * y) + np.floor(3.0 * x)) % 2 == 0
    across, down = (3.0 * x) % 1.0, (2.0 * y) % 1.0
    board = (np.floor(CELLS * across) + np.floor(CELLS * down)) % 2 == 1
    colors[field & board] *= DARK
    colors[~field & (np.hypot(across - 0.5, down - 0.5) < 0.25)] = PAINT
    return colors


def averaged(texels: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return a texture brought to another size: means over areas, (height, width, 3)."""
    rows, columns = _shares(len(texels), height), _shares(texels.shape[1], width)
    return np.clip(np.einsum("ai,ijc,bj->abc", rows, texels, columns, optimize=True), 0.0, 1.0)


def _shares(n: int, m: int) -> np.ndarray:
    """Return how much of each of n equal parts of a line is in each of m, (m, n); rows sum to 1."""
    ends, mine = np.arange(n + 1) / n, np.arange(m + 1) / m
    low = np.maximum(mine[:-1, None], ends[:-1])
    high = np.minimum(mine[1:, None], ends[1:])
    return m * np.maximum(high - low, 0.0)


@dataclass(frozen=True, eq=False)
class Told:
    """What pictures tell of the texels of a texture.

    Attributes
    ----------
    squares : numpy.ndarray
        |a_k|^2, (height, width); 0 where no pixel looks.
    gain : numpy.ndarray
        g_k, (height, width); infinite where the pictures tell a texel only together with others,
        NaN where no pixel looks.
    eigenvalues : numpy.ndarray
        lam, (n_seen,), ascending, those at rounding included.
    """

    squares: np.ndarray
    gain: np.ndarray
    eigenvalues: np.ndarray

    @property
    def n_hidden(self) -> int:
        """Number of directions that leave no trace."""
        return int((self.eigenvalues <= ROUNDING * self.eigenvalues[-1]).sum())

    @classmethod
    def by(cls, matrix: csr_array, shape: tuple[int, int]) -> "Told":
        """Return what pictures of this A tell of a texture of (height, width)."""
        squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel()
        (seen,) = np.nonzero(squares)
        norm = np.sqrt(squares[seen])
        part = matrix[:, seen]
        eigenvalues, V = np.linalg.eigh((part.T @ part).toarray() / np.outer(norm, norm))
        kept = eigenvalues > ROUNDING * eigenvalues[-1]
        V = V[:, kept]
        gain = np.full(squares.shape, np.nan)
        gain[seen] = np.sqrt((V**2 / eigenvalues[kept]).sum(axis=1)) / norm
        gain[seen[(V**2).sum(axis=1) < 1.0 - WHOLE]] = np.inf
        return cls(squares.reshape(shape), gain.reshape(shape), eigenvalues)


def texel_matrix(scenery: Scenery, path: str) -> csr_array:
    """Return A of one channel, (n_pixels, n_texels); light and material must be without colour."""
    texture: Any = scenery.scene.objects[path.split(".", maxsplit=1)[0]].texture
    height, width = texture.texels.shape[:2]
    code = np.stack([np.ones((height, width)), *np.indices((height, width))], axis=-1)
    parts: list[tuple[np.ndarray, ...]] = []
    for chosen in _classes(height, width):
        _, tangent = scenery.jvp({path: code * chosen})
        weight, row, column = tangent[..., :3].reshape(-1, 3).T.astype(np.float64)
        (pixel,) = np.nonzero(weight)
        i, j = (np.rint(k[pixel] / weight[pixel]).astype(int) for k in (row, column))
        parts.append((weight[pixel], pixel, i * width + j))
    weight, pixel, texel = (np.concatenate(part) for part in zip(*parts, strict=True))
    n_pixels = len(scenery.cameras) * math.prod(scenery.size)
    return csr_array((weight, (pixel, texel)), shape=(n_pixels, height * width))


def _classes(height: int, width: int) -> Iterator[np.ndarray]:
    """Yield 1 on texels of which no two meet in a pixel, (height, width, 1), else 0."""
    down, across = (np.arange(n) % 2 for n in (height, width))
    for k in (down, across):
        k[-1] = 2 if len(k) % 2 else k[-1]
    for i in np.unique(down):
        for j in np.unique(across):
            yield ((down == i)[:, None] & (across == j)).astype(float)[..., None]


def on_faces(mesh: Mesh) -> np.ndarray:
    """Return which texels some place on the mesh looks up, (height, width) bool.

    Places are points spread over each face, `SAMPLES` for each texel that it runs across.
    """
    texture: Any = mesh.texture
    height, width = texture.texels.shape[:2]
    corners = mesh.uv[mesh.faces if mesh.uv_faces is None else mesh.uv_faces]
    corners = corners * (width, -height) + (-0.5, height - 0.5)
    longest = np.abs(corners - np.roll(corners, 1, axis=1)).max(axis=(1, 2))
    pieces = np.maximum(1, np.ceil(SAMPLES * longest)).astype(int)
    found = np.zeros((height, width), bool)
    for n in np.unique(pieces):
        a, b = np.nonzero(np.add.outer(np.arange(n + 1), np.arange(n + 1)) <= n)
        weights = np.stack([a, b, n - a - b], axis=1) / n
        at = np.floor(np.einsum("pk,fkd->fpd", weights, corners[pieces == n])).astype(int)
        for right, lower in ((0, 0), (0, 1), (1, 0), (1, 1)):
            j, i = at[..., 0] + right, at[..., 1] + lower
            if texture.wrap is Wrap.CLAMP:
                i, j = np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)
            found[i % height, j % width] = True
    return found
