"""Rigid bodies: a closed surface and a density, a mass, or equal masses at its vertices.

What is not uniform has an inertia and a centre of mass of its own beside the mass, and its surface
may be open then.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.mass_properties import to_six
from adjsim.rotations import rotation_matrix
from render.scene import Mesh
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.bodies.part import drag_values, motion_values, positive
from studies.scene.declared import Rigid
from studies.scene.looks import drawn_mesh
from studies.scene.maps import Arrays, ParameterMap, Scaled, Value
from studies.scene.mesh_source import in_world, read_source, surface_of, tried
from studies.scene.motions import BodyMotion


DENSITY = 1000.0  # where nothing says how heavy a body is
KINDS = {"density": "kg/m3", "mass": "kg", "vertex_mass": "kg"}  # what says it, and in which unit
SPHERES = ("ball", "shape:sphere")  # generated meshes whose points lie on a sphere
ROUND = 0.05  # of the radius, by which points of a ball may lie off it
CENTRE = "centre"  # name of the point at the centre of mass
INERTIA_WIDE = 3.0  # times and part of its moments, within which they are searched by default
SYMMETRIC = 1e-6  # part of the largest entry by which rows that were rounded may differ
ROUNDING = 1e-12  # by which the moments of a flat body may miss the bound that they meet


@dataclass(frozen=True, eq=False)
class RigidPart:
    """A rigid body."""

    name: str
    bodies: RigidBodies  # A set of one, its mesh in the world
    values: dict[str, Value]  # by path, with those of its motion
    maps: list[ParameterMap]
    mesh: Mesh  # what is drawn
    notes: tuple[str, ...]
    ball: float | None = None  # radius [m], where it touches as a ball

    @property
    def center(self) -> np.ndarray:
        """Centre of mass in the declared pose, (3,) [m]."""
        return self.bodies.centers[0]

    @property
    def size(self) -> float:
        """Longest edge of the bounding box [m]."""
        return float(np.ptp(self.bodies.arms, axis=0).max())

    @property
    def has_vertex_masses(self) -> bool:
        """Whether its centre of mass moves in its mesh as the masses of vertices do."""
        return any(isinstance(map_, VertexMasses) for map_ in self.maps)


def make_rigid(
    name: str,
    body: Rigid,
    gravity: float,
    free: frozenset[str],
    *,
    resized: tuple[float, np.ndarray] = (1.0, np.zeros(3)),
) -> RigidPart:
    """Return a rigid body; `gravity` [m/s2] sets the default bounds of its speed.

    `free` are the scene's free paths. `resized` is a factor of its size and the point that stays
    where it is, (3,) [m].
    """
    key = f"bodies.{name}"
    kinds = [which for which in KINDS if getattr(body, which) is not None]
    if len(kinds) > 1:
        raise StudyError(f"`{key}` must have one of {', '.join(KINDS)}, got {' and '.join(kinds)}.")
    which = kinds[0] if kinds else "density"
    _check_own_inertia(key, body)
    source = read_source(key, body)
    factor, fixed = resized
    surface = surface_of(key, source)
    surface = replace(surface, points=fixed + factor * (surface.points - fixed))
    if body.center_of_mass is None:  # else nothing is taken from the mesh
        _require_closed(f"{key}.mesh", surface)
    number = getattr(body, which) if kinds else DENSITY
    note = (
        f"`{key}` has none of {', '.join(KINDS)}: a density of {DENSITY:g} kg/m3 is taken. It "
        "does not matter unless an obstacle's `stiffness` or `damping` is given."
    )
    path, size = f"{name}.{which}", float(np.ptp(surface.points, axis=0).max())
    values = {path: positive(number, KINDS[which]), **motion_values(name, body, size, gravity)}
    factors: dict[str, Any] = {path: 1.0}
    weight: dict[str, Any] = {which: number}
    maps: list[ParameterMap] = []
    if which == "vertex_mass":
        masses = _per_vertex(f"{key}.{which}", number, len(surface.points))
        center = masses @ surface.points / masses.sum()
        inertias = _vertex_inertias(surface.points - center)
        factors = {f"{name}.mass": float(len(masses)), f"{name}.inertia": inertias.sum(axis=1)}
        weight = {"mass": masses.sum(), "inertia": inertias @ masses, "center": center}
    if body.inertia is not None:
        moments, axes = _principal_moments(f"{key}.inertia", body.inertia)
        turned = PrincipalMoments(name, rotation_matrix(np.radians(body.rotation)) @ axes)
        weight["inertia"] = turned.values({turned.path: moments})[turned.path]
        values[turned.path] = positive(moments, "kg m2", INERTIA_WIDE)
        maps.append(turned)
    if body.center_of_mass is not None:
        center = in_world(body, np.array(body.center_of_mass))
        weight["center"] = fixed + factor * (center - fixed)
    for drag, value in drag_values(name, body, free).items():
        values[drag], weight["drag_rate"] = value, value.value
        maps.append(Scaled(drag, {drag: 1.0}))
    points = {CENTRE: BodyPoint()}
    bodies = tried(f"{key}.mesh", lambda: RigidBodies(surface, points=points, **weight))
    start = BodyMotion(name, np.array(bodies.centers[0]), np.asarray(body.position))
    maps += [VertexMasses(name, bodies) if np.ndim(number) else Scaled(path, factors), start]
    mesh = drawn_mesh(f"{key}.look", body.look, surface, source)
    ball = _ball_radius(key, body, bodies)
    return RigidPart(name, bodies, values, maps, mesh, () if kinds else (note,), ball)


def _ball_radius(key: str, body: Rigid, bodies: RigidBodies) -> float | None:
    """Return the radius of a body that touches as a ball; None if its points do."""
    may_touch_as_ball = body.touches == "ball" or body.mesh in SPHERES
    if not may_touch_as_ball or body.touches == "points" or np.ndim(body.vertex_mass or 0.0):
        return None
    distances = np.linalg.norm(bodies.arms[bodies.hull], axis=1)
    near, far = float(distances.min()), float(distances.max())
    if far - near <= ROUND * far:
        return far
    if body.touches is None:
        return None
    raise StudyError(
        f'`{key}.touches` must be "points" for a body that is no ball: its points are {near:.4g} '
        f"to {far:.4g} m from its centre of mass."
    )


def _check_own_inertia(key: str, body: Rigid) -> None:
    if body.inertia is not None and body.mass is None:
        raise StudyError(
            f"`{key}.inertia` needs `{key}.mass`. Give the mass, or leave out the inertia to take "
            "it from the mesh."
        )
    if body.center_of_mass is not None and body.inertia is None:
        raise StudyError(
            f"`{key}.center_of_mass` needs `{key}.inertia` about this centre: that of the mesh is "
            "about the centre of a uniform body."
        )


def _require_closed(key: str, surface: TriangleMesh) -> None:
    try:
        surface.require_closed()
    except ValueError as error:
        raise StudyError(
            f"`{key}`: {error} Or give `mass`, `inertia` and `center_of_mass`, with which a rigid "
            "body may be open."
        ) from error


def _principal_moments(key: str, declared_inertia: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the principal moments of a declared inertia, (3,) [kg m2], and their axes as columns.

    Raise a StudyError if the rows are not symmetric, or no body has this inertia.
    """
    inertia = np.array(declared_inertia, np.float64)
    if inertia.ndim == 1:
        moments, axes = inertia, np.eye(3)
    else:
        if not np.abs(inertia - inertia.T).max() <= SYMMETRIC * np.abs(inertia).max():
            raise StudyError(f"`{key}` must be symmetric, got the rows {inertia.tolist()}.")
        moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    if not _is_possible(moments):
        raise StudyError(
            f"`{key}` must be positive, with no principal moment above the sum of the other two, "
            f"got the moments {', '.join(f'{moment:.6g}' for moment in moments)} kg m2. It is "
            "about the centre of mass; off the diagonal are -sum of m x y. Leave it out to take it "
            "from the mesh."
        )
    return moments, axes


def _is_possible(moments: np.ndarray) -> bool:
    """Return whether a body can have these principal moments, (3,)."""
    largest = moments.max()
    others = moments.sum() - largest
    return bool(moments.min() > 0.0 and largest <= others * (1.0 + ROUNDING))


class PrincipalMoments(ParameterMap):
    """The inertia of a rigid body with principal moments `NAME.inertia` about fixed axes.

    `axes` are columns, (3, 3), in those of the world in the declared pose. I = A moments, where the
    columns of A are the six numbers of each axis times itself.
    """

    def __init__(self, name: str, axes: np.ndarray) -> None:
        self.path = f"{name}.inertia"
        self.sources = self.targets = (self.path,)
        self.matrix = to_six(np.einsum("ik,jk->kij", axes, axes)).T

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the six numbers of the inertia.

        Raise a NotFiniteError if no body has these moments, so that a search takes others.
        """
        moments = np.asarray(sources[self.path])
        if not _is_possible(moments):
            raise NotFiniteError(
                f"`{self.path}` has a moment above the sum of the other two, which no body has: "
                f"{', '.join(f'{moment:.6g}' for moment in moments)} kg m2."
            )
        return {self.path: self.matrix @ moments}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        return {self.path: self.matrix @ tangents.get(self.path, np.zeros(3))}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        return {self.path: self.matrix.T @ adjoints.get(self.path, np.zeros(6))}


class VertexMasses(ParameterMap):
    r"""What a rigid body weighs by masses `NAME.vertex_mass` m_k at its vertices X_k.

    With the declared centre of mass c and r = X - c,

        M = sum m_k,   s = sum m_k r_k / M,   a = r - s,   I = sum m_k (a a 1 - a a^T)

    The engine has the centre of mass at c in the mesh's coordinates, so the vertices are moved to
    X - s, and the body's position, which is that of its centre, by s.
    """

    def __init__(self, name: str, bodies: RigidBodies) -> None:
        self.path, self.points, self.center = f"{name}.vertex_mass", bodies.vertices, bodies.centers
        self.sources = (self.path,)
        self.targets = tuple(f"{name}.{key}" for key in ("mass", "inertia", "vertices", "position"))

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return mass, inertia, vertices, and the shift of the centre, (1, 3) [m]."""
        m = np.asarray(sources[self.path])
        arms, shift = self._about_center(m)
        return self._by_target(m.sum(), _vertex_inertias(arms) @ m, self.points - shift, shift)

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return their tangents; that of the arms leaves the inertia alone, as sum m a = 0."""
        m, tan = np.asarray(sources[self.path]), np.asarray(tangents[self.path])
        arms, _ = self._about_center(m)
        tan_shift = (tan @ arms / m.sum())[None]
        tan_vertices = np.broadcast_to(-tan_shift, self.points.shape)
        return self._by_target(tan.sum(), _vertex_inertias(arms) @ tan, tan_vertices, tan_shift)

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        m = np.asarray(sources[self.path])
        arms, _ = self._about_center(m)
        missing = (0.0, np.zeros(6), np.zeros((1, 3)), np.zeros((1, 3)))
        adj_mass, adj_inertia, adj_vertices, adj_position = (
            np.asarray(adjoints.get(target, zero))
            for target, zero in zip(self.targets, missing, strict=True)
        )
        adj_shift = adj_position[0] - adj_vertices.sum(axis=0)
        adj = adj_mass + adj_inertia @ _vertex_inertias(arms) + arms @ adj_shift / m.sum()
        return {self.path: adj}

    def _about_center(self, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the arms a, (n, 3), and the shift s, (1, 3)."""
        r = self.points - self.center
        shift = (m @ r / m.sum())[None]
        return r - shift, shift

    def _by_target(self, *values: Any) -> dict[str, np.ndarray]:
        return dict(zip(self.targets, map(np.asarray, values), strict=True))


def _per_vertex(key: str, masses: Any, n: int) -> np.ndarray:
    """Return the masses of n vertices."""
    if np.ndim(masses) and len(masses) != n:
        raise StudyError(
            f"`{key}` must be one number, or one for each of the {n} vertices, got {len(masses)}."
        )
    return np.broadcast_to(np.asarray(masses, np.float64), n)


def _vertex_inertias(arms: np.ndarray) -> np.ndarray:
    """Return the inertia of 1 kg at each arm, (n, 3) [m]: xx, yy, zz, xy, xz, yz in columns."""
    x, y, z = arms.T
    return np.stack([y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z])
