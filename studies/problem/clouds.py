r"""Clouds of points in space as observations: how far what was measured is from a surface.

    r_j = rho(d_j)/error,   d_j = +-|y_j - p_j|,   p_j the point of the surface nearest to y_j

with the sign, and the exact derivative by the surface, of `adjsim/pairs/nearest.py`. Where the
cloud is whole its other side counts too: of each vertex x_i the vector to the nearest measured
point, which has no derivative. Its error includes how far points are from each other. rho is
Huber's loss as a residual, with h = `HUBER` errors:

    rho(d) = d for |d| <= h, else +-sqrt(2 h |d| - h^2),   rho' = 1 or h/|rho|

Rows are rho(d_j), 0, 0, 0, and those of vertices rho(|v|) v/|v|, 0 [m]; a target is 0.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse
from scipy.spatial import KDTree

from adjsim.jit.backend import thread_count
from adjsim.pairs.nearest import SurfaceSearch
from studies.problem.observations.clouds import CloudData
from studies.problem.observers import Back, MeasuredObserver, Moved, RecordedPrediction, Values
from studies.problem.steps import Sampling
from studies.runs.errors import StudyError
from studies.scene import declared


HUBER = 3.0  # errors
LARGE = 20_000  # points, from which on threads are worth their start
SHOWN = 3  # frames in a picture
FAR = 0.5  # of the size of the bodies, beyond which half of the points are not theirs
# times the size of the bodies, of a cloud that is in another unit
LOOKS_LIKE = (("mm", (200.0, 5000.0)), ("cm", (50.0, 200.0)))


class Rho(NamedTuple):
    """Huber's residual of distances, and its derivative."""

    values: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(cls, distances: np.ndarray, error: float) -> Self:
        """Return it for an error of one standard deviation [m]."""
        h, far = HUBER * error, np.abs(distances)
        root = np.sqrt(np.maximum(2.0 * h * far - h * h, h * h))
        is_near = far <= h
        values = np.where(is_near, distances, np.sign(distances) * root)
        return cls(values, np.where(is_near, 1.0, h / root))


@dataclass(frozen=True, eq=False)
class CloudObserver(MeasuredObserver):
    """Points that were measured on the surfaces of bodies."""

    KIND, BY_FRAME = "cloud", "clouds"

    clouds: np.ndarray  # (n_frames, n_points, 3) [m], NaN behind the last point of a frame
    search: SurfaceSearch  # on the faces of all bodies
    begun: Mapping[str, np.ndarray]  # vertices of each body at the start, (n_vertices, 3) [m]
    is_two_sided: bool = False
    # of a cloud that is to be simulated: its points, by all vertices, (n_points, n_vertices)
    samples: scipy.sparse.csr_array | None = None

    @property
    def n_points(self) -> int:
        """Points of a frame, at most."""
        return self.clouds.shape[1]

    @property
    def n_vertices(self) -> int:
        """Vertices of all bodies."""
        return sum(len(x) for x in self.begun.values())

    @cached_property
    def is_measured(self) -> np.ndarray:
        """Which points there are, (n_frames, n_points)."""
        return np.isfinite(self.clouds[..., 0])

    @cached_property
    def _trees(self) -> list[KDTree]:
        pairs = zip(self.clouds, self.is_measured, strict=True)
        return [KDTree(points[mask]) for points, mask in pairs]

    def rows_per_frame(self) -> int:
        """Return the number of points, and of vertices that look for one."""
        return self.n_points + self.is_two_sided * self.n_vertices

    def targets(self) -> np.ndarray:
        """Return 0: what distances should be."""
        return np.zeros((len(self.times) * self.rows_per_frame(), 3))

    def still(self) -> np.ndarray:
        """Return the rows of bodies that stay where they begin: what there is to explain."""
        seen = {k: np.broadcast_to(x, (len(self.times), *x.shape)) for k, x in self.begun.items()}
        return self.shown(seen, {}).rows[:, :3]

    def mean(self) -> np.ndarray:
        """Return the rows of a surface that is as small as a point, in the middle of each cloud."""
        rows = np.zeros((len(self.times), self.rows_per_frame(), 3))
        middles = np.nanmean(self.clouds, axis=1, keepdims=True)
        distances = np.nan_to_num(np.linalg.norm(self.clouds - middles, axis=2))
        rows[:, : self.n_points, 0] = Rho.of(distances, self.error).values
        return rows.reshape(-1, 3)

    def fields(self, moved: Moved) -> Moved:
        return {name: moved[name] for name in self.begun}

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the rows; of a cloud that is to be simulated, its places."""
        if self.samples is None:
            return super().predict(moved, at, values)
        places = np.stack([self.samples @ x for x in self._vertices(self.seen(moved, at))])
        return np.pad(places.reshape(-1, 3), [(0, 0), (0, 1)])

    def simulated(self, rows: np.ndarray) -> Self:
        return replace(self, clouds=rows[:, :3].reshape(self.clouds.shape), samples=None)

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        x = self._vertices(seen)
        n, n_points = len(x), self.n_points
        rows = np.zeros((n, self.rows_per_frame(), 4))
        rho, slopes = self._of_points(x)
        rows[:, :n_points, 0] = rho
        to_points = self._of_vertices(x) if self.is_two_sided else None
        if to_points is not None:
            rows[:, n_points:, :3] = to_points.rows

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            del tan_values
            tan_x = self._vertices({k: tan.get(k, np.zeros_like(seen[k])) for k in self.begun})
            out = np.zeros(rows.shape)
            out[:, :n_points, 0] = (slopes @ tan_x.ravel()).reshape(n, -1)
            if to_points is not None:
                out[:, n_points:, :3] = to_points.applied(tan_x)
            return out.reshape(-1, 4)

        def vjp(adj_rows: np.ndarray) -> Back:
            adj = adj_rows.reshape(rows.shape)
            adj_x = (slopes.T @ adj[:, :n_points, 0].ravel()).reshape(x.shape)
            if to_points is not None:
                adj_x = adj_x + to_points.applied(adj[:, n_points:, :3])  # which is symmetric
            ends = np.cumsum([len(places) for places in self.begun.values()])[:-1]
            return dict(zip(self.begun, np.split(adj_x, ends, axis=1), strict=True)), {}

        return RecordedPrediction(rows.reshape(-1, 4), jvp, vjp)

    def _vertices(self, seen: Moved) -> np.ndarray:
        """Return the vertices of all bodies, (n_frames, n_vertices, 3)."""
        return np.concatenate([np.asarray(seen[k], np.float64) for k in self.begun], axis=1)

    def _of_points(self, x: np.ndarray) -> tuple[np.ndarray, scipy.sparse.csr_array]:
        """Return rho of all points, (n_frames, n_points), and its derivative by all x."""
        with ThreadPoolExecutor(thread_count(None, large=self.clouds.size > LARGE)) as pool:
            near = [*pool.map(self.search.nearest, x, self.clouds)]
        distances, normals, faces, weights = map(np.stack, zip(*near, strict=True))
        rho, slope = Rho.of(distances, self.error)
        slope = slope * self.is_measured
        corners = self.search.faces[faces] + x.shape[1] * np.arange(len(x))[:, None, None]
        columns = 3 * corners[..., None] + np.arange(3)
        entries = -slope[..., None, None] * weights[..., None] * normals[:, :, None, :]
        starts = np.arange(0, entries.size + 1, 9)
        matrix = (entries.ravel(), columns.ravel(), starts)
        return rho, scipy.sparse.csr_array(matrix, shape=(rho.size, x.size))

    @cached_property
    def _error_of_vertices(self) -> float:
        """The error, and how far points of a cloud are from each other: so far is a vertex [m].

        Of a frame with a single point that is not known, and counts as 0.
        """
        near = [tree.query(tree.data, k=min(2, tree.n))[0] for tree in self._trees]
        gaps = [each.reshape(len(each), -1)[:, -1] for each in near]
        return float(np.sqrt(self.error**2 + np.square(np.concatenate(gaps)).mean()))

    def _of_vertices(self, x: np.ndarray) -> "_ToPoints":
        nearest = [
            tree.data[tree.query(places)[1]] for tree, places in zip(self._trees, x, strict=True)
        ]
        v = x - np.stack(nearest)
        length = np.linalg.norm(v, axis=2, keepdims=True)
        rho, slope = Rho.of(length, self._error_of_vertices)
        less = self.error / self._error_of_vertices
        safe = np.where(length > 0.0, length, 1.0)
        across = less * np.where(length > 0.0, rho / safe, 1.0)
        return _ToPoints(across * v, across, less * slope, v / safe)

    # Residuals

    @cached_property
    def _is_compared(self) -> np.ndarray:
        """Which numbers of the rows of a frame are residuals, (rows_per_frame, 3)."""
        mask = np.ones((self.rows_per_frame(), 3), bool)
        mask[: self.n_points, 1:] = False
        return mask

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r, frame after frame: of a point one number, of a vertex three."""
        return self.residuals_jvp(rows)

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        scaled = (self._factor() * tan_rows[:, :3]).reshape(len(self.times), -1, 3)
        return scaled[:, self._is_compared].ravel()

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        out = np.zeros((len(self.times), self.rows_per_frame(), 4))
        out[..., :3][:, self._is_compared] = adj_r.reshape(len(self.times), -1)
        return self._factor() * out.reshape(-1, 4)

    def _factor(self) -> np.ndarray:
        """Return what scales each row, (n_rows, 1): 0 where nothing was measured."""
        count = self.is_measured.sum(axis=1, keepdims=True)
        parts = [np.where(self.is_measured, 1.0 / np.maximum(count, 1), 0.0)]
        if self.is_two_sided:
            parts.append(np.full((len(self.times), self.n_vertices), 1.0 / self.n_vertices))
        squares = np.concatenate(parts, axis=1) * self.weight / len(self.times)
        return np.sqrt(squares).reshape(-1, 1) / self.error

    def over_surface(self, seen: Moved) -> dict[str, np.ndarray]:
        """Return points, their distances and the surface at the first, middle and last frame."""
        n = min(len(self.times), len(next(iter(seen.values()))))
        chosen = np.unique(np.linspace(0, n - 1, SHOWN).round().astype(int))
        x = self._vertices(seen)[chosen]
        pairs = zip(x, self.clouds[chosen], strict=True)
        distances = [self.search.nearest(*pair).distances for pair in pairs]
        return {
            "times": self.times[chosen], "points": self.clouds[chosen], "vertices": x,
            "distances": np.stack(distances), "faces": self.search.faces,
        }  # fmt: skip


class _ToPoints(NamedTuple):
    """Vectors from the nearest measured points to vertices, and their derivative."""

    rows: np.ndarray  # (n_frames, n_vertices, 3)
    across: np.ndarray  # factor of what changes across them, (n_frames, n_vertices, 1)
    along: np.ndarray  # and along them
    directions: np.ndarray  # (n_frames, n_vertices, 3)

    def applied(self, tan: np.ndarray) -> np.ndarray:
        """Return the tangent for one of the vertices, or the cotangent: both are the same."""
        length = np.sum(self.directions * tan, axis=2, keepdims=True)
        return self.across * tan + (self.along - self.across) * length * self.directions


def surface_samples(
    x: np.ndarray, faces: np.ndarray, count: int, seed: int
) -> scipy.sparse.csr_array:
    """Return W, (count, n_vertices), whose rows weigh the corners of points drawn by area."""
    rng = np.random.default_rng(seed)
    a, b = (x[faces[:, i]] - x[faces[:, 0]] for i in (1, 2))
    areas = np.linalg.norm(np.cross(a, b), axis=1)
    drawn = rng.choice(len(faces), count, p=areas / areas.sum())
    u, v = rng.random((2, count))
    root = np.sqrt(u)
    weights = np.stack([1.0 - root, root * (1.0 - v), root * v], axis=1)
    rows = np.arange(0, 3 * count + 1, 3)
    entries: Any = (weights.ravel(), faces[drawn].ravel(), rows)
    return scipy.sparse.csr_array(entries, shape=(count, len(x)))


def require_on_surface(
    data: CloudData, search: SurfaceSearch, x: np.ndarray, *, spec: declared.Cloud, key: str
) -> None:
    """Raise if the first frame of a cloud is not where its bodies are at the start, at x (n, 3).

    A cloud that is in other units is much larger or smaller.
    """
    points = data.frames[0]
    sizes = [float(np.linalg.norm(np.ptp(each, axis=0))) for each in (points, x)]
    ratio = sizes[0] / sizes[1]
    if spec.units == "m" and (unit := next((u for u, r in LOOKS_LIKE if r[0] < ratio < r[1]), "")):
        raise StudyError(
            f"`{key}.file`: its first frame is {sizes[0]:.3g} m across and the bodies "
            f"{sizes[1]:.3g} m, so its points seem to be in {unit}. Give `{key}.units = "
            f'"{unit}"`; points of other things are left out by `{key}.box`.'
        )
    far = np.abs(search.nearest(x, points).distances)
    if np.median(far) > FAR * sizes[1]:
        raise StudyError(
            f"`{key}.file`: half of the points of its first frame are more than "
            f"{np.median(far):.3g} m away from the bodies, which are {sizes[1]:.3g} m across at "
            f"the start. The middle of the points is at {points.mean(axis=0).round(4).tolist()} m, "
            f"of the bodies at {x.mean(axis=0).round(4).tolist()} m. Check `units`, `rotation` "
            "and `position`, or leave points of other things out by `box`."
        )
