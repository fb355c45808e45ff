"""Tracked points and states as observations, in space or in the pixels of a camera."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from adjsim.meshes.embedding import embedding
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.values import values_under
from render.posed_camera import PosedCamera
from studies.problem.observers import (
    NODES,
    Back,
    MeasuredObserver,
    Moved,
    RecordedPrediction,
    Values,
)
from studies.problem.pixels import rays, to_pixels, to_pixels_jvp, to_pixels_vjp
from studies.runs.errors import StudyError
from studies.scene.bodies.shape import Shape


MILLIMETRE = 1e-3  # default standard deviation
NEAR = 0.05  # part of a body's size: how far from a thin body's surface a point may be
FAR = 1.0  # part of its longest side: how far from a body that carries points beside it
THIN = 0.5  # part of its shortest side, beyond which that is said
ON = 1e-6  # part of a body's size: how far off a surface is on it


def carried_by_tets(
    name: str, x: np.ndarray, tets: np.ndarray, places: np.ndarray
) -> scipy.sparse.csr_array:
    """Return W, (n_points, n_nodes), whose rows weigh the corners of the nearest tetrahedron.

    It carries a point beside it as it carries those in it: by an affine map.
    """
    mesh = TetMesh(x, tets)
    _require_near(name, x, _distances(x, mesh.surface().faces, places)[0], places=places, share=FAR)
    return embedding(mesh, places, max_distance=np.inf)


def carried_by_surface(
    name: str, surface: np.ndarray, faces: np.ndarray, places: np.ndarray, *, is_stiff: bool
) -> scipy.sparse.csr_array:
    """Return W, (n_points, n_vertices), whose rows weigh the corners of the nearest triangle.

    Where the surface `is_stiff`, the piece of it that has this triangle carries points in it and
    beside it, by all of its vertices. Other points are those of the triangle.
    """
    far, cells, nearest = _distances(surface, faces, places)
    _require_near(name, surface, far, places=places, share=FAR if is_stiff else NEAR)
    weights = scipy.sparse.lil_array((len(places), len(surface)))
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    joined = scipy.sparse.coo_array((np.ones(len(sides)), sides.T), shape=(len(surface),) * 2)
    pieces = connected_components(joined)[1]
    size = float(np.linalg.norm(np.ptp(surface, axis=0)))
    for k, (corners, place) in enumerate(zip(faces[cells], places, strict=True)):
        if is_stiff and far[k] > ON * size:
            piece = np.flatnonzero(pieces == pieces[corners[0]])
            # the smallest weights that sum up to 1, and with the corners to the place
            middle = surface[piece].mean(axis=0)
            shares = np.linalg.pinv(surface[piece] - middle).T @ (place - middle)
            weights[[k], piece] = (affine := 1.0 / len(piece) + shares)
            if np.linalg.norm(affine @ surface[piece] - place) > ON * size:
                raise StudyError(
                    f"`observations.{name}` has a point {far[k]:.3g} m off a flat body, which "
                    "carries points in its own plane alone. Give the body a thickness."
                )
        else:
            weights[[k], corners] = _barycentric(surface[corners][None], nearest[k][None])[0]
    return weights.tocsr()


def advice_on_markers(
    key: str, places: np.ndarray, surface: np.ndarray, faces: np.ndarray
) -> list[str]:
    """Return what is doubtful about points (n, 3) that stand far off a surface."""
    far = _distances(surface, faces, places)[0]
    side = float(np.ptp(surface, axis=0).min())
    if far.max() <= THIN * side:
        return []
    return [
        f"`{key}`: a point is {far.max():.3g} m off the surface of its body, more than half of the "
        f"body's shortest side, {side:.3g} m. What is nearest carries it along, as if it were "
        "fixed there by a stiff rod. Check `at`, and where the body is at the start: a pendulum by "
        "its `pivot`, `angle` and `length`."
    ]


def _require_near(
    name: str, x: np.ndarray, far: np.ndarray, *, places: np.ndarray, share: float
) -> None:
    sides = np.ptp(x, axis=0)
    size = float(np.linalg.norm(sides)) if share == NEAR else float(sides.max())
    if (far > share * size).any():
        k = int(np.argmax(far))
        raise StudyError(
            f"`observations.{name}` must have points on its body at the start, but one is at "
            f"{places[k].round(4).tolist()} m, {far[k]:.3g} m away from it. Check units and pose "
            "of the points and the body, or say where they are by `at`."
        )


def _distances(
    surface: np.ndarray, faces: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how far a surface is from points, its nearest triangles, and where on these."""
    import pyvista

    mesh = pyvista.PolyData.from_regular_faces(surface, faces)
    closest: Any = mesh.find_closest_cell(places, return_closest_point=True)
    cells, nearest = closest
    return np.linalg.norm(nearest - places, axis=1), np.atleast_1d(cells), nearest


def _barycentric(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return weights (n, 3) of corners (n, 3, 3) that sum up to points (n, 3) in their planes."""
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    d = points - corners[:, 0]
    aa, ab, bb = (np.einsum("ij,ij->i", p, q) for p, q in ((a, a), (a, b), (b, b)))
    da, db = np.einsum("ij,ij->i", d, a), np.einsum("ij,ij->i", d, b)
    area = np.maximum(aa * bb - ab**2, np.finfo(float).tiny)
    u, v = (bb * da - ab * db) / area, (aa * db - ab * da) / area
    return np.stack([1.0 - u - v, u, v], axis=1)


def first_hit(
    camera: PosedCamera,
    size: tuple[int, int],
    pixel: np.ndarray,
    *,
    surface: np.ndarray,
    faces: np.ndarray,
) -> np.ndarray | None:
    """Return where the ray through a pixel (u, v) first meets a surface, (3,) [m]; None: nowhere.

    Source: Moeller & Trumbore, Fast, minimum storage ray/triangle intersection, 1997.
    """
    eye, ray = camera.pose()[0], rays(camera, pixel, size)
    origin, a, b = (
        surface[faces[:, 0]],
        *(surface[faces[:, i]] - surface[faces[:, 0]] for i in (1, 2)),
    )
    p = np.cross(ray, b)
    area = np.einsum("ij,ij->i", a, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = eye - origin
        u = np.einsum("ij,ij->i", d, p) / area
        q = np.cross(d, a)
        v = q @ ray / area
        depth = np.einsum("ij,ij->i", b, q) / area
    is_hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (depth > 0.0)
    if not is_hit.any():
        return None
    return eye + depth[is_hit].min() * ray


@dataclass(frozen=True, eq=False)
class ReshapedCarriers:
    r"""Points that stay where they were measured, in a soft body whose shape has an error.

    A point at p is carried by the corners x_a of a tetrahedron, whose places at the start go with
    the amplitudes c of the shape:

        y = sum_a w_a x_a(t),   w = A^-1 (p, 1),   A = [x_a(0); 1],   x(0) = x_0 + phi c

    so that dy = sum_a w_a dx_a - F sum_a w_a phi_a dc, with the deformation gradient
    F = [x_a(t)] A^-1 (its first three columns).
    """

    path: str  # of the amplitudes
    nodes: np.ndarray  # of the model, (n_points, 4)
    begun: np.ndarray  # x_0, (n_points, 4, 3) [m]
    modes: np.ndarray  # phi, (n_points, 4, 3, m) [-]
    places: np.ndarray  # p, (n_points, 3) [m]

    @classmethod
    def of(
        cls, shape: Shape, first: int, x: np.ndarray, *, matrix: Any, places: np.ndarray
    ) -> "ReshapedCarriers":
        """Return the carriers that a matrix weighs, of a body whose first node is `first`.

        `x` are all nodes of the model at the start, (n_nodes, 3) [m].
        """
        nodes = matrix.indices.reshape(-1, 4)
        return cls(shape.path, nodes, x[nodes], shape.modes[nodes - first], places)

    def at(self, values: Values, rows: np.ndarray) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Return the matrix to the points, and dy/dc at fixed x, (n_frames, n_points, 3, m).

        `rows` (n_frames, n_nodes, 3) are x.
        """
        x = self.begun + self.modes @ values[self.path]
        A = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=2).swapaxes(1, 2)
        inverse = np.linalg.inv(A)
        w = (inverse[..., :3] @ self.places[..., None] + inverse[..., 3:])[..., 0]
        F = np.einsum("tpai,pab->tpib", rows[:, self.nodes], inverse[..., :3])
        slope = -F @ np.einsum("pa,paim->pim", w, self.modes)
        entries = (w.ravel(), (np.repeat(np.arange(len(w)), 4), self.nodes.ravel()))
        return scipy.sparse.csr_array(entries, shape=(len(w), rows.shape[1])), slope


@dataclass(frozen=True, eq=False)
class PointObserver(MeasuredObserver):
    """Tracked points, as weighted sums of vertices of an object or of nodes."""

    KIND, BY_FRAME, IS_CARRIED = "points", "places", True

    places: np.ndarray  # (n_frames, n_points, 2 or 3), NaN where a point was not tracked
    matrix: scipy.sparse.csr_array  # (n_points, n_vertices)
    object: str  # of which vertices; "": of the nodes of the model
    size: tuple[int, int] = (1, 1)  # of the picture of points in pixels (u, v)
    is_center: bool = False  # whether it is the centre of mass
    # (n_points, 2 or 3): where the points of a body that is seen at rest were before it gave way
    begun: np.ndarray | None = None
    reshaped: ReshapedCarriers | None = None  # of points in a body whose shape has an error

    def targets(self) -> np.ndarray:
        """Return the places in rows, 0 where a point was not tracked."""
        places = np.nan_to_num(self.places)
        return np.pad(places, [(0, 0), (0, 0), (0, 3 - places.shape[-1])]).reshape(-1, 3)

    def still(self) -> np.ndarray:
        """Return the first place of every point at every frame, or `begun`."""
        begun = self.begun
        if begun is None:
            first = np.argmax(np.isfinite(self.places[..., 0]), axis=0)
            begun = self.places[first, np.arange(self.places.shape[1])]
        begun = begun[:, : self.places.shape[-1]]
        return replace(self, places=np.broadcast_to(begun, self.places.shape)).targets()

    def simulated(self, rows: np.ndarray) -> Self:
        return replace(self, places=rows[:, : self.places.shape[-1]].reshape(self.places.shape))

    def refined(self, nodes_before: scipy.sparse.csr_array) -> Self:
        """Return the points by the nodes of a finer mesh, if they go by nodes."""
        if self.object:
            return self
        reshaped = self.reshaped
        if reshaped is not None:
            reshaped = replace(reshaped, nodes=nodes_before.indices[reshaped.nodes])
        return replace(self, matrix=self.matrix @ nodes_before, reshaped=reshaped)

    def carried_as(self, other: "PointObserver") -> Self:
        return replace(self, matrix=other.matrix, begun=other.begun, reshaped=other.reshaped)

    def curves(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the coordinates over time; of a prediction of fewer frames, of these."""
        n = len(rows) // self.places.shape[1]
        predicted = rows.reshape(n, self.places.shape[1], 4)[..., : self.places.shape[-1]]
        names, unit = ("uv", "pixels") if self.places.shape[-1] == 2 else ("xyz", "m")
        labels = np.array([f"{name} [{unit}]" for name in names])
        observed = self.places[:n]
        return {
            "times": self.times[:n], "observed": observed, "predicted": predicted, "labels": labels
        }  # fmt: skip

    def fields(self, moved: Moved) -> Moved:
        name = self.object or NODES
        return {name: moved[name]}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        ((name, rows),) = seen.items()
        matrix, slope, path = self.matrix, None, ""
        if self.reshaped is not None and self.reshaped.path in values:
            path = self.reshaped.path
            matrix, slope = self.reshaped.at(values, rows)
        points, camera = _applied(matrix, rows), self.camera_at(values)
        ahead = points - self.center  # as the camera has them

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            tan_points = _applied(matrix, tan[name]) if name in tan else np.zeros_like(points)
            if slope is not None and path in tan_values:
                tan_points = tan_points + slope @ tan_values[path]
            if camera is None:
                return _in_rows(tan_points)
            tangents = values_under(self.camera_path, tan_values)
            return _in_rows(
                to_pixels_jvp(camera, ahead, self.size, tan_points=tan_points, tangents=tangents)
            )

        def vjp(adj_rows: np.ndarray) -> Back:
            adj = adj_rows.reshape(*points.shape[:2], 4)
            adj_points, by_path = adj[..., :3], {}
            if camera is not None:
                adj_points, by_name = to_pixels_vjp(camera, ahead, self.size, adj[..., :2])
                by_path = {f"{self.camera_path}.{key}": value for key, value in by_name.items()}
            if slope is not None:
                by_path[path] = np.einsum("tpi,tpim->m", adj_points, slope)
            return {name: _applied(matrix.T, adj_points)}, by_path

        shown = points if camera is None else to_pixels(camera, ahead, self.size)
        return RecordedPrediction(_in_rows(shown), jvp, vjp)

    def _factor(self) -> np.ndarray:
        """Return what scales each row, (n_frames n_points, 1): 0 where nothing was tracked."""
        is_known = np.isfinite(self.places[..., 0])
        count = np.maximum(is_known.sum(axis=1, keepdims=True), 1) * len(self.times)
        scale = np.sqrt(self.weight / count) / self.error
        return np.where(is_known, scale, 0.0).reshape(-1, 1)


def _applied(matrix: Any, rows: np.ndarray) -> np.ndarray:
    """Return a matrix times each frame, (n_frames, n, 3)."""
    return np.stack([matrix @ frame for frame in rows])


def _in_rows(places: np.ndarray) -> np.ndarray:
    """Return places (n_frames, n_points, 2 or 3) in rows of four."""
    return np.pad(places, [(0, 0), (0, 0), (0, 4 - places.shape[-1])]).reshape(-1, 4)
