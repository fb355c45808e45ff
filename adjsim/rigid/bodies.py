"""`RigidBodies`: bodies of a model, by meshes and what they weigh; `BodyState` and its frames.

Tests: `tests/rigid/test_bodies.py`. Adjoint of the mass properties: `adjoint/rigid/bodies.py`.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from adjsim import checks
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.mass_properties import (
    MassProperties,
    check_inertia,
    from_six,
    inverse_inertia,
    mass_properties,
    mass_properties_jvp,
    to_six,
)
from adjsim.rigid.rows import INVERSE, PARAMS_SIZE, W
from adjsim.tiles.loop_arrays import Bodies
from adjsim.values import Parameter, broadcast


# Arms of frame points [m]: the centre of mass, and a lever along each axis of the body. Where they
# are says where the body is and how it is turned; forces on them are any force and torque.
FRAME = np.concatenate([np.zeros((1, 3)), np.eye(3)])


@dataclass(frozen=True, eq=False)
class BodyPoint:
    """A point fixed in a body, beside the vertices of its mesh.

    Parameters
    ----------
    position : array, optional
        Where it is in the coordinates of the body's mesh, (3,) [m]. None: at the body's
        centre of mass, where a force turns nothing.
    body : int
        Which body of the set it is fixed in.
    """

    position: Any = None
    body: int = 0

    def __post_init__(self) -> None:
        if self.position is not None:
            checks.freeze(self, "position", checks.array("position", self.position, (3,)))
        object.__setattr__(self, "body", checks.whole("body", self.body, 0))


class BarePoints(NamedTuple):
    """The points of a body without a surface, as a mesh without faces."""

    points: np.ndarray
    faces: np.ndarray = np.zeros((0, 3), np.int64)


@dataclass(frozen=True, eq=False)
class RigidBodies:
    """A set of rigid bodies, one per mesh.

    A body's axes are its mesh's axes and its position is its centre of mass, which is that
    of the enclosed volume unless `center` says otherwise. Its hull are all points of its mesh.

    Parameters
    ----------
    meshes : TriangleMesh or array, or a sequence of them
        The surface of each body, in any coordinates of its own; or only the points at which it
        may be touched, (n_points, 3) [m], with `mass` and `inertia`. The centre of mass is then
        at the origin, unless `center` says otherwise.
    density : float or array, optional
        rho, () or (n_bodies,) [kg/m^3], positive: m = rho V and I follow from it.
    mass : float or array, optional
        m, () or (n_bodies,) [kg], positive. Give it or `density`; I = m/V times that of the
        volume, unless `inertia` is given.
    inertia : array, optional
        About the centre of mass in the mesh's axes, (6,) or (n_bodies, 6) [kg m^2]: xx, yy,
        zz, xy, xz, yz, with I_xy = -int rho x y. Then with `mass` and `center` the meshes
        may be open.
    center : array, optional
        Centre of mass in the coordinates of the mesh, (3,) or (n_bodies, 3) [m], of a body
        that is not uniform; needs `inertia`.
    drag_rate : float or array, optional
        kappa, () or (n_bodies,), not negative [1/s]: a drag with the force -kappa m v and the
        moment -kappa I omega. None: no drag, and no parameter.
    points : mapping of str to BodyPoint or array, optional
        Named points for forces to act at; a bare position is one in body 0.
    framed : sequence of int, optional
        Which bodies offer frame points, by which a force acts on their pose. A model sets it to
        what its forces ask for.

    Attributes
    ----------
    centers : array
        Centres of mass in the coordinates of the meshes, (n_bodies, 3) [m].
    arms : array
        All points about their centre of mass, body after body: the points of its mesh, then
        its named ones, then its frame points, (n_points, 3) [m].
    point_ptr : array
        Where the points of each body begin in `arms`, (n_bodies + 1,).
    hull : array
        Which of `arms` are vertices of meshes, (n_vertices,).
    faces : array
        Triangles of all bodies by numbers of vertices, (n_faces, 3).

    Raises
    ------
    ValueError
        If a mesh that is to be weighed is open or inside out, a mass is not positive, or an
        inertia is none that a body can have.
    """

    meshes: Any
    _: KW_ONLY
    density: Any = None
    mass: Any = None
    inertia: Any = None
    center: Any = None
    drag_rate: Any = None
    points: Mapping[str, Any] = field(default_factory=dict)
    framed: Sequence[int] = ()

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("density", "ρ", "kg/m3", "() or (n_bodies,)", positive=True),
        Parameter("mass", "m", "kg", "() or (n_bodies,)", positive=True),
        Parameter("inertia", "I", "kg m2", "(6,) or (n_bodies, 6)"),
        Parameter("drag_rate", "κ", "1/s", "() or (n_bodies,)", positive=True),
        Parameter("vertices", "X", "m", "(n_vertices, 3)"),
        Parameter("point_positions", "X_p", "m", "(n_placed, 3)"),
    )

    centers: np.ndarray = field(init=False)
    arms: np.ndarray = field(init=False)
    point_ptr: np.ndarray = field(init=False)
    hull: np.ndarray = field(init=False)
    faces: np.ndarray = field(init=False)
    volumes: np.ndarray = field(init=False)  # (n_bodies,), of the meshes [m^3]; nan unweighed
    unit_inertia: np.ndarray = field(init=False)  # (n_bodies, 6), of the meshes at density 1

    def __post_init__(self) -> None:
        given = self.meshes
        alone = isinstance(given, np.ndarray | BarePoints) or not isinstance(given, Iterable)
        meshes = (given,) if alone else tuple(given)
        kinds = (TriangleMesh, BarePoints, np.ndarray)
        if not meshes or not all(isinstance(mesh, kinds) for mesh in meshes):
            raise TypeError(
                "`meshes` must be a TriangleMesh, an array of points or a sequence of these, one "
                f"per body, got {', '.join(type(mesh).__name__ for mesh in meshes) or 'none'}."
            )
        object.__setattr__(self, "meshes", tuple(map(_surface, range(len(meshes)), meshes)))
        self._check_weights(len(meshes))
        self._weigh()
        self._lay_out()

    def _check_weights(self, n: int) -> None:
        """Check what says how heavy the bodies are, and their drag."""
        if (self.density is None) == (self.mass is None):
            both = "neither" if self.mass is None else "both"
            raise ValueError(f"Give either `density` or `mass`, got {both}.")
        name = "mass" if self.density is None else "density"
        value = checks.scalar_or_array(name, getattr(self, name), n, "n_bodies")
        checks.freeze(self, name, checks.positive(name, value))
        if self.inertia is not None:
            inertia = _per_body("inertia", self.inertia, n, 6)
            check_inertia("inertia", np.broadcast_to(inertia, (n, 6)))
            checks.freeze(self, "inertia", inertia)
        if self.center is not None:
            if self.inertia is None:
                raise ValueError(
                    "`center` must come with `inertia`: a body of uniform density has both from "
                    "its mesh."
                )
            checks.freeze(self, "center", _per_body("center", self.center, n, 3))
        if self.drag_rate is not None:
            rate = checks.scalar_or_array("drag_rate", self.drag_rate, n, "n_bodies")
            checks.freeze(self, "drag_rate", checks.non_negative("drag_rate", rate))

    def _weigh(self) -> None:
        """Set centres, volumes and inertias at density 1; meshes not weighed need none."""
        n = len(self.meshes)
        if self.density is None and self.inertia is not None and self.center is not None:
            nothing = MassProperties(np.nan, np.full(3, np.nan), np.full(6, np.nan))
            properties = [nothing] * n
        else:
            properties = [self._weighed(b, mesh) for b, mesh in enumerate(self.meshes)]
        centers = np.array([body.center for body in properties])
        if self.center is not None:
            centers = np.broadcast_to(self.center, (n, 3))
        checks.freeze(self, "centers", centers)
        checks.freeze(self, "volumes", np.array([body.volume for body in properties]))
        checks.freeze(self, "unit_inertia", np.array([body.inertia for body in properties]))

    def _weighed(self, b: int, mesh: Any) -> MassProperties:
        """Return the mass properties of a mesh, or the origin as the centre of bare points."""
        if isinstance(mesh, TriangleMesh):
            return mass_properties(mesh, f"meshes[{b}]")
        if self.mass is None or self.inertia is None:
            raise ValueError(
                f"`meshes[{b}]` is points alone, which have no volume: give `mass` and `inertia`, "
                "or a TriangleMesh."
            )
        return MassProperties(np.nan, np.zeros(3), np.full(6, np.nan))

    def _lay_out(self) -> None:
        """Set the points about their centres of mass, body after body, and the faces."""
        points = checks.mapping("points", self.points, "{'tip': (0.0, 0.1, 0.0)}")
        named = {name: self._check_point(name, point) for name, point in points.items()}
        object.__setattr__(self, "points", named)
        arms, hull, faces, ptr, n_vertices = [], [], [], [0], 0
        for b, mesh in enumerate(self.meshes):
            center = self.centers[b]
            positions = [p.position for p in named.values() if p.body == b]
            positions = [(center if at is None else at)[None] for at in positions]
            frame = FRAME[: len(FRAME) if b in self.framed else 0]
            arms.append(np.concatenate([np.concatenate([mesh.points, *positions]) - center, frame]))
            hull.append(ptr[-1] + np.arange(len(mesh.points)))
            faces.append(n_vertices + mesh.faces)
            ptr.append(ptr[-1] + len(arms[-1]))
            n_vertices += len(mesh.points)
        checks.freeze(self, "arms", np.concatenate(arms))
        checks.freeze(self, "hull", np.concatenate(hull))
        checks.freeze(self, "faces", np.concatenate(faces))
        checks.freeze(self, "point_ptr", np.array(ptr, np.int64))

    def _check_point(self, name: str, point: Any) -> BodyPoint:
        """Return a named point that lies in a body of the set."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"`points` must have names, got {name!r}.")
        if not isinstance(point, BodyPoint):
            point = BodyPoint(checks.array(f"points[{name!r}]", point, (3,)))
        if point.body >= self.n_bodies:
            raise ValueError(
                f"`points[{name!r}].body` must be 0 to {self.n_bodies - 1}, got {point.body}."
            )
        return point

    @property
    def n_bodies(self) -> int:
        """Number of bodies."""
        return len(self.meshes)

    @property
    def n_points(self) -> int:
        """Number of points: vertices and named points of all bodies."""
        return len(self.arms)

    @cached_property
    def vertices(self) -> np.ndarray:
        """The points of all meshes, in their coordinates, (n_vertices, 3) [m]."""
        return np.concatenate([mesh.points for mesh in self.meshes])

    @property
    def placed(self) -> list[str]:
        """Names of the points that have a position, those of `point_positions`."""
        return [name for name, point in self.points.items() if point.position is not None]

    @property
    def point_positions(self) -> np.ndarray:
        """Positions of named points, in the coordinates of the meshes, (n_placed, 3) [m]."""
        return np.array([self.points[name].position for name in self.placed]).reshape(-1, 3)

    @property
    def masses(self) -> np.ndarray:
        """Mass of each body, (n_bodies,) [kg]."""
        if self.density is None:
            return np.array(broadcast(self.mass, self.n_bodies))
        return self.density * self.volumes

    @property
    def inertias(self) -> np.ndarray:
        """Inertia of each body, (n_bodies, 6) [kg m^2]."""
        if self.inertia is not None:
            return np.array(np.broadcast_to(self.inertia, (self.n_bodies, 6)))
        return (self.masses / self.volumes)[:, None] * self.unit_inertia

    @property
    def drag_rates(self) -> np.ndarray:
        """Drag per mass of each body, (n_bodies,) [1/s]."""
        rate = np.zeros(()) if self.drag_rate is None else self.drag_rate
        return np.array(broadcast(rate, self.n_bodies))

    @cached_property
    def packed_params(self) -> np.ndarray:
        """Rows of w = 1/m, I, its inverse and kappa, (n_bodies, 14), read-only."""
        inertia = self.inertias
        w, drag = 1.0 / self.masses, self.drag_rates
        rows = np.column_stack([w, inertia, inverse_inertia(inertia), drag])
        rows.setflags(write=False)
        return rows

    def parameters(self) -> dict[str, np.ndarray]:
        """Return the differentiable parameters that these bodies have, by name."""
        present = {p.name: getattr(self, p.name) for p in self.PARAMETERS}
        if not self.placed:
            del present["point_positions"]
        return {name: value for name, value in present.items() if value is not None}

    def with_values(self, values: Mapping[str, Any]) -> "RigidBodies":
        """Return the bodies with other values of some parameters, all at once."""
        changes = dict(values)
        if "vertices" in changes:
            x = checks.array("vertices", changes.pop("vertices"), self.vertices.shape)
            parts = np.split(x, np.cumsum([len(mesh.points) for mesh in self.meshes])[:-1])
            changes["meshes"] = [
                TriangleMesh(points, mesh.faces) if isinstance(mesh, TriangleMesh) else points
                for mesh, points in zip(self.meshes, parts, strict=True)
            ]
        if "point_positions" in changes:
            shape = self.point_positions.shape
            x = checks.array("point_positions", changes.pop("point_positions"), shape)
            moved = {
                name: BodyPoint(at, self.points[name].body)
                for name, at in zip(self.placed, x, strict=True)
            }
            changes["points"] = {**self.points, **moved}
        return replace(self, **changes) if changes else self

    def with_frames(self, framed: Iterable[int]) -> "RigidBodies":
        """Return the bodies where these, and no others, offer frame points."""
        numbers = tuple(sorted(set(framed)))
        if numbers == self.framed:
            return self
        bodies = copy.copy(self)  # the rest is checked
        object.__setattr__(bodies, "framed", numbers)
        bodies._lay_out()
        return bodies

    def frame_row(self, body: int) -> int:
        """Return which of `arms` is the centre of a body that offers frame points."""
        return int(self.point_ptr[body + 1]) - len(FRAME)

    def point_row(self, name: str) -> int:
        """Return which of `arms` a named point is.

        Raises
        ------
        ValueError
            If there is no point of the name.
        """
        checks.known_key("body point", name, self.points)
        body = self.points[name].body
        before = [key for key, point in self.points.items() if point.body == body]
        n_vertices = len(self.meshes[body].points)
        return int(self.point_ptr[body]) + n_vertices + before.index(name)


def pack_bodies(bodies: Mapping[str, RigidBodies], n_nodes: int, dtype: np.dtype) -> Bodies:
    """Return all sets as `adjsim/rigid/rows.py` has them.

    The points are rows of the nodes' arrays from row `n_nodes` on.
    """
    sets = list(bodies.values())
    sizes = [np.diff(s.point_ptr) for s in sets]
    ptr = n_nodes + np.cumsum(np.concatenate([[0], *sizes]))
    arms = np.concatenate([np.zeros((0, 3)), *(s.arms for s in sets)])
    params = np.concatenate([np.zeros((0, PARAMS_SIZE)), *(s.packed_params for s in sets)])
    return Bodies(ptr.astype(np.int64), arms.astype(dtype), params.astype(dtype))


def _surface(b: int, mesh: Any) -> TriangleMesh | BarePoints:
    """Return a mesh, or bare points that were given as an array."""
    if not isinstance(mesh, np.ndarray):
        return mesh
    points = checks.array(f"meshes[{b}]", mesh, ("n_points", 3)).copy()
    points.setflags(write=False)
    return BarePoints(points)


def _per_body(name: str, value: Any, n: int, size: int) -> np.ndarray:
    """Return a finite array of shape (size,) or (n_bodies, size)."""
    out = checks.array(name, value)
    if out.shape not in ((size,), (n, size)):
        raise ValueError(
            f"`{name}` must have shape ({size},) or (n_bodies, {size}) = ({n}, {size}), got "
            f"{out.shape}."
        )
    return out


def pack_params_jvp(bodies: RigidBodies, tangents: dict[str, np.ndarray]) -> np.ndarray:
    """Push tangents of parameters to packed rows, (n_bodies, 14); a missing one is zero."""
    tan_volumes, _, tan_unit = weigh_jvp(bodies, tangents.get("vertices"))
    n = bodies.n_bodies
    packed = bodies.packed_params
    w, J = packed[:, W], from_six(packed[:, INVERSE])
    name = "mass" if bodies.density is None else "density"
    tan = np.broadcast_to(tangents.get(name, 0.0), (n,))
    tan_mass = tan
    if bodies.density is not None:
        tan_mass = tan * bodies.volumes + bodies.density * tan_volumes
    tan_inertia = np.broadcast_to(tangents.get("inertia", 0.0), (n, 6))
    if bodies.inertia is None:
        rho = bodies.masses / bodies.volumes
        tan_rho = (tan_mass - rho * tan_volumes) / bodies.volumes
        tan_inertia = tan_rho[:, None] * bodies.unit_inertia + rho[:, None] * tan_unit
    tan_J = to_six(-J @ from_six(np.array(tan_inertia)) @ J)
    tan_drag = np.broadcast_to(tangents.get("drag_rate", 0.0), (n,))
    return np.column_stack([-w * w * tan_mass, tan_inertia, tan_J, tan_drag])


def arms_jvp(bodies: RigidBodies, tangents: dict[str, np.ndarray]) -> np.ndarray:
    """Push tangents of vertices and positions of points to the arms, (n_points, 3)."""
    tan = np.zeros_like(bodies.arms)
    _, tan_centers, _ = weigh_jvp(bodies, tangents.get("vertices"))
    tan[bodies.hull] = tangents.get("vertices", 0.0)
    rows = [bodies.point_row(name) for name in bodies.placed]
    tan[rows] = tangents.get("point_positions", np.zeros((len(rows), 3)))
    moving = np.concatenate([bodies.hull, np.array(rows, np.int64)])
    tan[moving] -= np.repeat(tan_centers, np.diff(bodies.point_ptr), axis=0)[moving]
    return tan


def weigh_jvp(
    bodies: RigidBodies, tan_vertices: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Push a tangent of the vertices to volumes, centres and inertias at density 1."""
    n = bodies.n_bodies
    out = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 6))
    if tan_vertices is None:
        return out
    parts = np.split(tan_vertices, np.cumsum([len(mesh.points) for mesh in bodies.meshes])[:-1])
    for b, (mesh, tan_points) in enumerate(zip(bodies.meshes, parts, strict=True)):
        if is_weighed(bodies, b):
            tan = mass_properties_jvp(mesh, tan_points)
            out[0][b], out[2][b] = tan.volume, tan.inertia
            if bodies.center is None:
                out[1][b] = tan.center
    return out


def is_weighed(bodies: RigidBodies, b: int) -> bool:
    """Whether volume, centre and inertia of a body's mesh were computed."""
    return isinstance(bodies.meshes[b], TriangleMesh) and bool(np.isfinite(bodies.volumes[b]))
