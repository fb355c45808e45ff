r"""Where bodies start and how they move there: a rigid motion on top of the declared pose.

With the declared nodes X, their centre of mass C, R = exp([theta]x) and r = R (X - C),

    x = X + (p - p0) + (R - 1)(X - C),   v = velocity + spin x r + R u

where p is the value "B.position", p0 the declared position, theta the value "B.rotation", a
rotation vector in world axes [rad] that is 0 at the declared rotation, and u "B.node_velocity", in
the declared pose. The rotation is about the centre of mass, so position and rotation are
independent. Held nodes move with the body to where it starts, and have v = 0. Where its shape has
an error, X in x and r is that of `studies/scene/bodies/shape.py`, and C stays. A rigid body has the
same by its own parameters, without u:

    position = C + p - p0,   rotation = theta,   angular_velocity = R^T spin     in body axes

whose axes are those of the world in the declared pose. Along theta',

    R' = [w]x R,  w = J(theta) theta'

with J of `adjsim/rotations.py`. Where nothing moves, X are the vertices of a body, a value too
("B.vertices"), and C is the middle of the box around them.
"""

import numpy as np

from adjsim.rotations import rotation_matrix, rotation_rate
from studies.scene.bodies.shape import Shape
from studies.scene.maps import Arrays, ParameterMap


class _Pose(ParameterMap):
    """What the maps below have: paths of a body's vectors, its centre C and its position p0."""

    keys = ("position", "rotation", "velocity", "spin")

    def __init__(self, name: str, center: np.ndarray, position: np.ndarray) -> None:
        self.name, self.center, self.position = name, center, position
        self.sources = tuple(f"{name}.{key}" for key in self.keys)

    def _vectors(self, sources: Arrays) -> list[np.ndarray]:
        """Return the values of the sources; missing ones are zero."""
        return [np.asarray(sources.get(path, np.zeros(3))) for path in self.sources]

    def _by_path(self, *vectors: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.sources, vectors, strict=True))

    def _moved(self, points: np.ndarray, position: np.ndarray, R: np.ndarray) -> np.ndarray:
        """Return x of the points X."""
        return points + (position - self.position) + (points - self.center) @ (R - np.eye(3)).T


class NodeMotion(_Pose):
    """The start of a body made of nodes X, `points` (n_own, 3) [m].

    `is_free` is the mask of those that are not held; `rows` are theirs among the `n` of the model.
    """

    keys = (*_Pose.keys, "node_velocity")
    targets = ("state.x", "state.v")

    def __init__(
        self,
        name: str,
        points: np.ndarray,
        center: np.ndarray,
        position: np.ndarray,
        *,
        is_free: np.ndarray,
        rows: slice,
        n: int,
        shape: Shape | None = None,
    ) -> None:
        super().__init__(name, center, position)
        self.points, self.is_free, self.rows, self.n = points, is_free, rows, n
        self.shape = shape
        if shape is not None:
            self.sources = (*self.sources, shape.path)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return positions and velocities of all nodes, 0 for those of other bodies."""
        position, rotation, velocity, spin, u, *_ = self._vectors(sources)
        R, X = rotation_matrix(rotation), self._at_rest(sources)
        v = velocity + np.cross(spin, (X - self.center) @ R.T)
        v[self.is_free] += u @ R.T
        return self._placed(self._moved(X, position, R), v)

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        _, rotation, _, spin, u, *_ = self._vectors(sources)
        tan_position, tan_rotation, tan_velocity, tan_spin, tan_u, *_ = self._vectors(tangents)
        R = rotation_matrix(rotation)
        r = (self._at_rest(sources) - self.center) @ R.T
        turning = rotation_rate(rotation) @ tan_rotation
        tan_r = np.cross(turning, r)
        if self.shape is not None:
            tan_r += self.shape.moved(tangents) @ R.T
        tan_v = tan_velocity + np.cross(tan_spin, r) + np.cross(spin, tan_r)
        tan_v[self.is_free] += np.cross(turning, u @ R.T) + tan_u @ R.T
        return self._placed(tan_position + tan_r, tan_v)

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        _, rotation, _, spin, u, *_ = self._vectors(sources)
        nothing = np.zeros((self.n, 3))
        adj_x = adjoints.get("state.x", nothing)[self.rows]
        adj_v = adjoints.get("state.v", nothing)[self.rows] * self.is_free[:, None]
        R = rotation_matrix(rotation)
        r = (self._at_rest(sources) - self.center) @ R.T
        adj_r, of_nodes = adj_x + np.cross(adj_v, spin), adj_v[self.is_free]
        moment = np.cross(r, adj_r).sum(axis=0) + np.cross(u @ R.T, of_nodes).sum(axis=0)
        adj_rotation = rotation_rate(rotation).T @ moment
        adj_spin = np.cross(r, adj_v).sum(axis=0)
        of_shape = {} if self.shape is None else self.shape.cotangent(adj_r @ R)
        vectors = (adj_x.sum(axis=0), adj_rotation, adj_v.sum(axis=0), adj_spin, of_nodes @ R)
        return dict(zip(self.sources, vectors, strict=False)) | of_shape

    def _at_rest(self, sources: Arrays) -> np.ndarray:
        """Return X, or X(c) of a body whose shape has an error."""
        return self.points if self.shape is None else self.points + self.shape.moved(sources)

    def _placed(self, x: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        out = np.zeros((2, self.n, 3))
        out[0, self.rows], out[1, self.rows] = x, v * self.is_free[:, None]
        return {"state.x": out[0], "state.v": out[1]}


class BodyMotion(_Pose):
    """The start of a rigid body whose axes are the world's in its declared pose."""

    def __init__(self, name: str, center: np.ndarray, position: np.ndarray) -> None:
        super().__init__(name, center, position)
        keys = ("position", "rotation", "velocity", "angular_velocity")
        self.targets = tuple(f"{name}.{key}" for key in keys)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the state of the body, rows of one."""
        position, rotation, velocity, spin = self._vectors(sources)
        omega = rotation_matrix(rotation).T @ spin
        return self._rows(self.center + (position - self.position), rotation, velocity, omega)

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        _, rotation, _, spin = self._vectors(sources)
        tan_position, tan_rotation, tan_velocity, tan_spin = self._vectors(tangents)
        turning = rotation_rate(rotation) @ tan_rotation
        tan_omega = rotation_matrix(rotation).T @ (tan_spin - np.cross(turning, spin))
        return self._rows(tan_position, tan_rotation, tan_velocity, tan_omega)

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        _, rotation, _, spin = self._vectors(sources)
        adj = [np.reshape(adjoints.get(target, np.zeros(3)), 3) for target in self.targets]
        adj_position, adj_rotation, adj_velocity, adj_omega = adj
        adj_spin = rotation_matrix(rotation) @ adj_omega
        turned = rotation_rate(rotation).T @ np.cross(adj_spin, spin)
        return self._by_path(adj_position, adj_rotation + turned, adj_velocity, adj_spin)

    def _rows(self, *vectors: np.ndarray) -> dict[str, np.ndarray]:
        rows = [np.array(vector, float)[None] for vector in vectors]
        return dict(zip(self.targets, rows, strict=True))


class RestingPose(_Pose):
    """Where the vertices of a body at rest are."""

    keys = ("vertices", "position", "rotation")

    def __init__(self, name: str, center: np.ndarray, position: np.ndarray) -> None:
        super().__init__(name, center, position)
        self.targets = (f"{name}.vertices",)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        V, position, rotation = self._vectors(sources)
        return {self.targets[0]: self._moved(V, position, rotation_matrix(rotation))}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return R tan_V + tan_p + w x R (V - C), w = J tan_theta."""
        V, _, rotation = self._vectors(sources)
        tan_V, tan_position, tan_rotation = self._vectors(tangents)
        R = rotation_matrix(rotation)
        turning = np.cross(rotation_rate(rotation) @ tan_rotation, (V - self.center) @ R.T)
        return {self.targets[0]: tan_V @ R.T + tan_position + turning}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        V, _, rotation = self._vectors(sources)
        adj = np.asarray(adjoints.get(self.targets[0], np.zeros_like(V)))
        R = rotation_matrix(rotation)
        moment = np.cross((V - self.center) @ R.T, adj).sum(axis=0)
        return self._by_path(adj @ R, adj.sum(axis=0), rotation_rate(rotation).T @ moment)
