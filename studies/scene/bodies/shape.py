r"""A body whose shape is known up to an error: its nodes may rest elsewhere than in its mesh.

    X(c) = X + sum over k of phi_k(X) c_k,    c_k = 0 +- error

The displacement is sum over a of N_a(X) d_a, with quadratic B-splines N_a on a coarse grid along
the axes of the mesh, of `cells` cells along its longest side, and vectors d_a. What of it is seen
is how far the surface lies outward, A d, one number for each face. Its prior variance error^2 has
two parts: `COMMON` is that of the whole surface (a mask that is a little too wide makes all of a
body thicker, on which its stiffness hangs most), the rest is that of each d_a alone:

    d = R z,   R = [s 1, sqrt(COMMON) g],   z ~ N(0, error^2),   A g = 1

Rows of A R are made orthogonal, each time the one of the face that is the least known so far, until
no face has more than `LEFT`^2 of the variance left. The directions q_k in z are the modes,
phi = N R q_k, so that their amplitudes c_k are independent and as many as the surface can show.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.interpolate import BSpline

from adjoint.forces.lumping import share_equally_vjp
from adjoint.forces.neo_hookean import rest_shape_vjp
from adjsim.forces.neo_hookean import rest_shape_jvp
from adjsim.meshes.tet_mesh import TetMesh, signed_volumes
from studies.runs.errors import NotFiniteError
from studies.scene.bodies.materials import lumping_of
from studies.scene.maps import Arrays, ParameterMap, Value, Weighed
from studies.scene.mesh_source import along_mesh


SHAPE = ".shape"  # end of the path
COMMON = 0.75  # of the variance
LEFT = 0.2  # of the error of a face, which no mode has
RIDGE = 1e-4  # of the mean square, in the least squares for what is common


@dataclass(frozen=True, eq=False)
class Shape:
    """Modes of the error of a body's shape."""

    name: str  # of the body
    modes: np.ndarray  # phi, (n, 3, m) [-]
    error: float  # standard deviation of their amplitudes [m]
    side: float  # the body's shortest side, along an axis of its mesh [m]
    thicker: np.ndarray  # the amplitudes that make it 1 % longer, (m,) [m]

    @property
    def path(self) -> str:
        """Path of the amplitudes, (m,) [m]."""
        return f"{self.name}{SHAPE}"

    @property
    def value(self) -> Value:
        """The amplitudes of the mesh itself."""
        none = np.zeros(self.modes.shape[2])
        return Value(none, "m", "linear", (-np.inf, np.inf), scale=self.error)

    def at_points(self, finer: Any) -> "Shape":
        """Return the modes at the points of a mesh twice as fine, a `Subdivision`."""
        return replace(self, modes=finer.of_points(self.modes))

    def about(self, stays: np.ndarray) -> "Shape":
        """Return the modes that leave the middle of some nodes where it is, a mask (n,)."""
        return replace(self, modes=self.modes - self.modes[stays].mean(axis=0))

    def moved(self, values: Arrays) -> np.ndarray:
        """Return phi c, (n, 3) [m], of values or tangents by path; 0 where there are none."""
        c = values.get(self.path)
        return np.zeros(self.modes.shape[:2]) if c is None else self.modes @ np.asarray(c)

    def cotangent(self, adj_x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the cotangent of the amplitudes from that of the nodes, (n, 3)."""
        return {self.path: np.einsum("nim,ni->m", self.modes, adj_x)}


def make_shape(name: str, body: Any, volume: TetMesh) -> Shape:
    """Return the modes of a soft body with a `shape_error`, at the nodes of its tetrahedra."""
    X = along_mesh(body, volume.points)
    N = _splines(X, body.shape_cells)
    faces = np.asarray(volume.surface().faces)
    a, b, c = (volume.points[faces[:, k]] for k in range(3))
    normals = 0.5 * np.cross(b - a, c - a)
    areas = np.linalg.norm(normals, axis=1)
    weights = areas / areas.sum()
    at_faces = N[faces].mean(axis=1)
    normals /= areas[:, None]
    A = (at_faces[:, :, None] * normals[:, None]).reshape(len(faces), -1)
    H, eye = A.T @ (weights[:, None] * A), np.eye(A.shape[1])
    g = np.linalg.solve(H + RIDGE * np.trace(H) / len(H) * eye, A.T @ weights)
    g /= np.sqrt(weights @ np.square(A @ g))
    s = 1.0 / np.sqrt(weights @ np.square(at_faces).sum(axis=1))
    R = np.column_stack([np.sqrt(1.0 - COMMON) * s * eye, np.sqrt(COMMON) * g])
    factors: Any = scipy.linalg.qr((A @ R).T, mode="economic", pivoting=True)
    q, left, _ = factors
    modes = (R @ q[:, np.abs(np.diag(left)) > LEFT]).T
    d = modes.reshape(len(modes), N.shape[1], 3)
    sides = np.ptp(X, axis=0)
    axis = sides.argmin()
    arms = X[faces].mean(axis=1)[:, axis] - 0.5 * (X[:, axis].min() + X[:, axis].max())
    outward = 0.01 * arms * along_mesh(body, normals)[:, axis]
    of_faces = A @ modes.T
    thicker = np.linalg.lstsq(of_faces, outward, rcond=None)[0]
    thicker *= (outward @ outward) / (outward @ of_faces @ thicker)  # the modes miss a little
    phi = np.einsum("na,mai->nim", N, d)
    return Shape(name, phi, body.shape_error, float(sides[axis]), thicker)


def _splines(points: np.ndarray, cells: int) -> np.ndarray:
    """Return quadratic B-splines on a grid about points, (n, n_splines)."""
    low, sides = points.min(axis=0), np.ptp(points, axis=0)
    counts = np.maximum(np.ceil(sides / (sides.max() / cells) - 1e-9), 1).astype(int)
    each = []
    for places, count in zip(((points - low) / sides * counts).T, counts, strict=True):
        knots = np.arange(-2.0, count + 3)
        each.append(BSpline.design_matrix(np.clip(places, 0.0, count), knots, 2).toarray())
    return np.einsum("na,nb,nc->nabc", *each).reshape(len(points), -1)


class RestShape(ParameterMap):
    """The rest positions of a body's tetrahedra, among all nodes of the model, (n, 3) [m]."""

    def __init__(self, shape: Shape, rest: np.ndarray, rows: slice) -> None:
        self.sources, self.targets = (shape.path,), (f"{shape.name}.rest_positions",)
        self.shape, self.rest, self.rows = shape, rest, rows

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return X(c)."""
        return {self.targets[0]: self.rest + self.jvp({}, sources)[self.targets[0]]}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return phi tan_c."""
        out = np.zeros_like(self.rest)
        out[self.rows] = self.shape.moved(tangents)
        return {self.targets[0]: out}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return phi^T adj."""
        adj = adjoints.get(self.targets[0], np.zeros_like(self.rest))
        return self.shape.cotangent(adj[self.rows])


class WeighedShape(Weighed):
    """Masses of a body's nodes whose volumes go with its shape: m = factors A(X(c)) density.

    The points of `mesh` are X.
    """

    def __init__(self, shape: Shape, mesh: TetMesh, rows: slice, n: int) -> None:
        super().__init__(shape.name, None, rows, n)
        self.sources = (*self.sources, shape.path)
        self.shape, self.points, self.tets = shape, mesh.points, mesh.tets

    def lumping(self, sources: Arrays) -> scipy.sparse.csr_array:
        """Return A(X(c))."""
        volumes = signed_volumes(self._placed_points(sources), self.tets)
        if not (volumes > 0.0).all():
            raise NotFiniteError(f"`{self.shape.path}` turns tetrahedra inside out.")
        return self._lumped(volumes)

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Add factors (A' tan_X) density."""
        out, X = super().jvp(sources, tangents), self._placed_points(sources)
        tan_V = rest_shape_jvp(X, self.tets, self.shape.moved(tangents))[1]
        density = np.broadcast_to(sources[self.density], tan_V.shape)
        out["mass"][self.rows] += sources[self.factors] * (self._lumped(tan_V) @ density)
        return out

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        out, X = super().vjp(sources, adjoints), self._placed_points(sources)
        adj = sources[self.factors] * adjoints.get("mass", np.zeros(self.n))[self.rows]
        adj_V = sources[self.density] * share_equally_vjp(adj, self.tets)
        adj_X = rest_shape_vjp(X, self.tets, np.zeros((len(self.tets), 3, 3)), adj_V)
        return out | self.shape.cotangent(adj_X)

    def _placed_points(self, sources: Arrays) -> np.ndarray:
        return self.points + self.shape.moved(sources)

    def _lumped(self, volumes: np.ndarray) -> scipy.sparse.csr_array:
        return lumping_of(self.tets, volumes, len(self.points))
