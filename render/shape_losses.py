r"""Shape regularisers: how rough a mesh is, one number, whatever it is compared with.

    Laplacian            mean over vertices of |delta|^2,  delta_i = x_i - mean of its neighbours
    EdgeLength           mean over edges of (l - l_0)^2,   l = |x_j - x_i|
    NormalConsistency    mean over edges between two faces of 1 - n_1.n_2

with unit normals n_1, n_2 of the two faces, so that a flat mesh loses nothing and a fold of
180 degrees loses 2. Of several frames each is the mean. The faces are fixed.

Adjoint: `adjoint/render/shape_losses.py`. Tests: `tests/render/test_shape_losses.py`.
Sources: Desbrun, Meyer, Schroeder & Barr, SIGGRAPH 1999, sec. 2.3 (Laplacian); Liu et al.,
Soft Rasterizer, ICCV 2019, sec. 4.1 (normals).
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse

from adjsim import checks
from adjsim.meshes.hinges import mesh_hinges


class ShapeLoss(ABC):
    """A regulariser of the vertices of a mesh, whose faces are (n_faces, 3) corner vertices.

    Raise a ValueError if the faces are no triangles of different corners, or there are none.
    """

    faces: np.ndarray

    def __init__(self, faces: Any) -> None:
        given = checks.integers("faces", faces, ("n_faces", 3))
        if given.size == 0 or given.min() < 0:
            raise ValueError(
                f"`faces` must index vertices from 0 on, got {len(given)} faces"
                + (f" with the index {given.min()}." if given.size else ".")
            )
        checks.freeze(self, "faces", given)

    def __call__(self, x: Any) -> float:
        """Return the loss of vertices x, (n_vertices, 3) or (n_frames, n_vertices, 3) [m].

        Raises
        ------
        ValueError
            If the shape does not fit, a number is not finite or a face misses its vertex.
        """
        frames = self.checked(x)
        return sum((self.frame(frame) for frame in frames), start=0.0) / len(frames)

    @abstractmethod
    def frame(self, x: np.ndarray) -> float:
        """Return the loss of one frame (n_vertices, 3)."""

    def checked(self, x: Any) -> np.ndarray:
        """Return the vertices as (n_frames, n_vertices, 3), or raise."""
        if np.ndim(x) not in {2, 3}:
            raise ValueError(
                "`x` must have shape (n_vertices, 3) or (n_frames, n_vertices, 3), got "
                f"{np.shape(x)}."
            )
        names = ("n_frames", "n_vertices", 3)
        frames = checks.array("x", x, names[-np.ndim(x) :]).reshape(-1, np.shape(x)[-2], 3)
        if len(frames) == 0 or self.faces.max() >= frames.shape[1]:
            raise ValueError(
                f"`faces` must index the {frames.shape[1]} vertices of each of {len(frames)} "
                f"frames, got the index {self.faces.max()}."
            )
        return frames

    def edges(self) -> np.ndarray:
        """Return the two vertices of each edge, (n_edges, 2), sorted."""
        pairs = self.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
        return np.unique(np.sort(pairs, axis=1), axis=0)


class Laplacian(ShapeLoss):
    """Mean squared distance of a vertex from the mean of its neighbours [m^2]."""

    def __init__(self, faces: Any) -> None:
        super().__init__(faces)
        self.matrix = self._matrix()
        self.n_reached = int(self.faces.max()) + 1
        self.n_used = len(np.unique(self.faces))

    def _matrix(self) -> scipy.sparse.csr_array:
        """Return I - D^-1 A, with empty rows for vertices of no face."""
        n, edges = int(self.faces.max()) + 1, self.edges()
        rows, columns = np.concatenate([edges, edges[:, ::-1]]).T
        degree = np.bincount(rows, minlength=n)
        used = np.flatnonzero(degree)
        weights = np.concatenate([-1.0 / degree[rows], np.ones(len(used))])
        at = (np.concatenate([rows, used]), np.concatenate([columns, used]))
        return scipy.sparse.csr_array((weights, at), shape=(n, n))

    def frame(self, x: np.ndarray) -> float:
        """Return the loss of one frame (n_vertices, 3)."""
        delta = self.matrix @ x[: self.n_reached]  # (1)
        return float(np.square(delta).sum() / self.n_used)  # (2)


class EdgeLength(ShapeLoss):
    """Mean squared difference of the lengths of edges from a given one [m^2].

    Parameters
    ----------
    faces : array_like
        Corner vertices of each face, (n_faces, 3) integers.
    length : array_like
        l_0, () or, in the order of `edges()`, (n_edges,) [m]; not differentiated.
    """

    def __init__(self, faces: Any, length: Any = 0.0) -> None:
        super().__init__(faces)
        self.ends = self.edges()
        given = checks.scalar_or_array("length", length, len(self.ends), "n_edges")
        self.length = checks.non_negative("length", given)

    def frame(self, x: np.ndarray) -> float:
        """Return the loss of one frame (n_vertices, 3)."""
        e = x[self.ends[:, 1]] - x[self.ends[:, 0]]  # (1)
        l = np.sqrt(np.square(e).sum(axis=1))  # (2)
        return float(np.square(l - self.length).mean())  # (3)


class NormalConsistency(ShapeLoss):
    """Mean over edges of 1 - cos of the angle between the normals of their two faces [-].

    Raises
    ------
    ValueError
        If no edge has two faces, or one has more; at vertices where a face has no area.
    """

    def __init__(self, faces: Any) -> None:
        super().__init__(faces)
        self.hinges = mesh_hinges(self.faces)
        if len(self.hinges) == 0:
            raise ValueError("`faces` must share edges, got faces that touch at most in corners.")

    def frame(self, x: np.ndarray) -> float:
        """Return the loss of one frame (n_vertices, 3)."""
        m_1, m_2 = self.normals(x)  # (1)
        length_1, length_2 = norms(m_1), norms(m_2)  # (2)
        cos = (m_1 * m_2).sum(axis=1) / (length_1 * length_2)  # (3)
        return float((1.0 - cos).mean())  # (4)

    def normals(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the normals m_1, m_2 of the two faces of each edge, (n_edges, 3) [m^2]."""
        x_1, x_2, x_3, x_4 = (x[self.hinges[:, k]] for k in range(4))
        m_1 = np.cross(x_1 - x_3, x_1 - x_4)
        m_2 = np.cross(x_2 - x_4, x_2 - x_3)
        flat = (norms(m_1) == 0.0) | (norms(m_2) == 0.0)
        if flat.any():
            where = self.hinges[int(np.argmax(flat)), 2:].tolist()
            raise ValueError(
                "`x` must give every face an area, got a face without one at the edge between "
                f"vertices {where[0]} and {where[1]}."
            )
        return m_1, m_2


def norms(v: np.ndarray) -> np.ndarray:
    """Return the lengths of the rows of v, (n,)."""
    return np.sqrt(np.square(v).sum(axis=1))
