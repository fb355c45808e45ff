"""What every body made of nodes gives to the model, and helpers for its values."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.element import Force
from adjsim.forces.linear_drag import LinearDrag
from adjsim.meshes.subdivision import Subdivision, subdivided
from adjsim.values import values_under
from render.scene import Mesh
from studies.runs.errors import StudyError
from studies.scene.bodies.shape import Shape
from studies.scene.declared import Held
from studies.scene.maps import ParameterMap, Scaled, Value, all_targets, values_of
from studies.scene.mesh_source import Source, turned
from studies.scene.series import Series, Sines, Varying, in_steps


ROUNDING = 1e-9  # of the body's diagonal, by which a place of a held node may be missed
WIDE = 30.0  # times its declared value, within which a positive one is searched by default


@dataclass(frozen=True, eq=False)
class NodePart:
    """A body made of nodes, before it has its rows in the model."""

    name: str
    points: np.ndarray  # nodes at rest in the world, (n, 3) [m]
    held: np.ndarray  # mask of held nodes, (n,)
    mass: np.ndarray  # at the declared values, (n,) [kg]
    touching: np.ndarray  # the nodes that may touch, (n_touching,)
    faces: np.ndarray | None  # triangles of its surface, (n_faces, 3); None: it has none
    values: dict[str, Value]  # of its material, by path
    material: list[ParameterMap]  # maps to the parameters of its forces
    # mass_map(rows, n): from the body's rows in the model and the number of all nodes.
    mass_map: Callable[[slice, int], ParameterMap]
    # make_forces(rest, first, targets): by name, from the rest positions of all nodes of the model,
    # the number of the body's first node, and what the material's maps give.
    make_forces: Callable[[np.ndarray, int, dict[str, Any]], dict[str, Force]]
    mesh: Mesh  # what is drawn
    skin: scipy.sparse.csr_array  # drawn vertices over the nodes, (n_vertices, n)
    # Of each node at the start, beside velocity and spin of the body, in the declared pose [m/s].
    node_velocity: np.ndarray  # (n, 3)
    offset: Any = 0.0  # of drawn vertices from these, (n_vertices, 3) or () [m]
    varying: dict[str, Varying] = field(default_factory=dict)  # what varies in time, by target
    notes: tuple[str, ...] = ()
    finer: Subdivision[Any] | None = None  # how its mesh was made twice as fine
    first: int = 0  # number of its first node in the model
    dimension: int = 0  # its mass goes with this power of its size
    shape: Shape | None = None  # how it may differ from its mesh

    @property
    def rows(self) -> slice:
        """Its rows in the model."""
        return slice(self.first, self.first + len(self.points))

    def forces(self, rest: np.ndarray) -> dict[str, Force]:
        """Return its forces by name, from the rest positions of all nodes of the model."""
        targets = all_targets(self.material, values_of(self.values))
        with_courses = {**targets, **in_steps(self.varying, targets, 1.0)}
        made = self.make_forces(rest, self.first, with_courses)
        if drag := values_under(f"{self.name}_drag", targets):
            nodes = self.first + np.arange(len(self.points))
            made[f"{self.name}_drag"] = LinearDrag(**drag, drag_nodes=nodes)
        return made

    def with_drag(self, body: Any, free: frozenset[str]) -> "NodePart":
        """Return the part with the drag per mass of its body."""
        values = drag_values(self.name, body, free)
        maps = [Scaled(path, {f"{self.name}_drag.rate": 1.0}) for path in values]
        return replace(self, values=self.values | values, material=[*self.material, *maps])

    def resized(self, factor: float, fixed: np.ndarray) -> "NodePart":
        """Return the part as large as `factor` says, about the point `fixed`, (3,) [m]."""
        weight = factor**self.dimension
        grow = {f"{self.name}.mass_factors": weight, f"{self.name}.rest_length": factor}
        larger = {
            path: replace(value, value=grow[path] * value.value)
            for path, value in self.values.items()
            if path in grow
        }
        points, mass = fixed + factor * (self.points - fixed), weight * self.mass
        return replace(self, points=points, mass=mass, values=self.values | larger)

    @property
    def center(self) -> np.ndarray:
        """Centre of mass at rest, (3,) [m]."""
        return self.mass @ self.points / self.mass.sum()

    @property
    def size(self) -> float:
        """Longest edge of the bounding box [m]."""
        return float(np.ptp(self.points, axis=0).max())


@dataclass(frozen=True, eq=False)
class Cage:
    """The mesh on which a body is simulated."""

    mesh: Any
    source: Source  # with the fields of its cells
    held: np.ndarray  # mask of held points, (n,)
    skin: scipy.sparse.csr_array  # drawn vertices over the points, (n_vertices, n)
    mass_factors: Any  # as the body declares them
    finer: Subdivision[Any] | None = None  # how it was made twice as fine

    def refined(self, key: str, body: Any, muscles: "Additions") -> "Cage":
        """Return the mesh twice as fine, of the body with this key and these muscles.

        Places that are held are looked for again, and a midpoint between two held points is held.
        The drawn vertices stay those of this mesh, so that pictures differ by the motion only.
        """
        curves = muscles.varying.values()
        if any(isinstance(curve, Sines) or np.ndim(curve.values) > 1
               for curve in curves if isinstance(curve, Sines | Series)):  # fmt: skip
            raise StudyError(f"`{key}` has muscles with a number for each element of its mesh.")
        finer, factors = subdivided(self.mesh), self.mass_factors
        points = finer.mesh.points
        held = held_nodes(f"{key}.held", body.held, points, numbered=True)
        return Cage(
            finer.mesh,
            self.source.refined(finer),
            held | finer.selected(self.held),
            finer.widened(self.skin),
            finer.of_points(np.asarray(factors)) if isinstance(factors, tuple) else factors,
            finer,
        )


@dataclass(frozen=True, eq=False)
class Additions:
    """What contacts, pushes or muscles add to a model."""

    forces: dict[str, Force] = field(default_factory=dict)  # by name
    values: dict[str, Value] = field(default_factory=dict)  # by path
    maps: list[ParameterMap] = field(default_factory=list)
    varying: dict[str, Varying] = field(default_factory=dict)  # by target


def node_stiffness(forces: Mapping[str, Force], n: int) -> np.ndarray:
    """Return what the elements of forces hold each of n nodes with, (n,) [N/m]."""
    k = np.zeros(n)
    for force in forces.values():
        each = force.nodes.shape[1]
        k += np.bincount(force.nodes.ravel(), np.repeat(force.stiffness_bound(), each), n)
    return k


def positive(value: Any, unit: str, wide: float = WIDE) -> Value:
    """Return a positive value, searched by its logarithm; one that may be 0 is linear there."""
    given = np.array(value, np.float64)
    if given.min() > 0.0:
        return Value(given, unit, "log", (float(given.min()) / wide, float(given.max()) * wide))
    return Value(given, unit, "linear", (0.0, np.inf))


def linear(value: Any, unit: str, reach: float) -> Value:
    """Return a value of any sign, searched up to a distance `reach` from the declared one."""
    given = np.array(value, np.float64)
    return Value(given, unit, "linear", (float(given.min()) - reach, float(given.max()) + reach))


def mass_factors(name: str, given: Any, lumping: scipy.sparse.csr_array) -> dict[str, Value]:
    """Return by what the mass of each node is multiplied, by path.

    `given` is what the body declares, `lumping` the matrix from densities of elements to masses of
    nodes.
    """
    lumped = np.asarray(lumping.sum(axis=1))
    n = len(lumped)
    given = np.ones(n) if given is None else given
    if isinstance(given, str):  # even
        given = lumped.mean() / lumped
    given = np.array(given, np.float64)
    if given.shape != (n,):
        raise StudyError(
            f"`bodies.{name}.mass_factors` must have one number for each of the {n} nodes, got "
            f"{given.size}."
        )
    return {f"{name}.mass_factors": positive(given, "-")}


def motion_values(name: str, body: Any, size: float, gravity: float) -> dict[str, Value]:
    """Return position, rotation, velocity and spin of a body; size [m] and gravity [m/s2]."""
    speed = 4.0 * math.sqrt((gravity or 9.81) * size)
    velocity = uniform_velocity(body)
    return {
        f"{name}.position": linear(body.position, "m", size),
        f"{name}.rotation": linear(np.zeros(3), "rad", 1.0),
        f"{name}.velocity": linear(velocity, "m/s", speed + math.hypot(*velocity)),
        f"{name}.spin": linear(body.spin, "rad/s", 20.0 + math.hypot(*body.spin)),
    }


def drag_values(name: str, body: Any, free: frozenset[str]) -> dict[str, Value]:
    """Return the drag per mass of a body by path; nothing where it is 0 and not free."""
    path = f"{name}.drag_rate"
    has_drag = body.drag_rate > 0.0 or path in free
    return {path: positive(body.drag_rate, "1/s", 100.0)} if has_drag else {}


def uniform_velocity(body: Any) -> tuple[float, float, float]:
    """Return the declared velocity of a whole body [m/s], 0 where each node has its own."""
    return (0.0, 0.0, 0.0) if isinstance(body.velocity, str) else body.velocity


def node_velocities(
    name: str, body: Any, source: Source, points: np.ndarray, *, numbered: bool
) -> np.ndarray:
    """Return the declared velocity of each node in the world, (n_nodes, 3) [m/s].

    `points` are the nodes; `numbered` says whether they have the numbers of the body's mesh file.
    """
    if not isinstance(body.velocity, str):
        return np.zeros_like(points)
    key = f"bodies.{name}.velocity"
    if not numbered:
        raise StudyError(
            f"`{key}` must be a vector for a mesh whose nodes are not those of its file, got "
            f"{body.velocity!r}. Give a volume mesh to a soft body, a surface to a cloth."
        )
    return turned(body, source.vectors(key, body.velocity))


def field_or_number(key: str, given: Any, source: Source, *, is_filled: bool = False) -> np.ndarray:
    """Return a number, or a field of the mesh file with one for each element."""
    if not isinstance(given, str):
        return np.array(given, np.float64)
    if is_filled:
        raise StudyError(
            f"`{key}` must be a number for a surface that is filled with tetrahedra, got "
            f"{given!r}. Give a volume mesh with that array."
        )
    values = source.field(key, given)
    if not key.endswith(".lam") and not values.min() > 0.0:
        raise StudyError(f"`{key}` must be positive, but {given!r} has {values.min():g}.")
    return values


def held_nodes(key: str, held: Held | None, points: np.ndarray, *, numbered: bool) -> np.ndarray:
    """Return the mask of the nodes that a table selects, (n_nodes,).

    `points` are the nodes in the world, (n_nodes, 3) [m]; `numbered` says whether they have the
    numbers of the body's mesh file.
    """
    mask = np.zeros(len(points), bool)
    if held is None:
        return mask
    low, high = points.min(axis=0), points.max(axis=0)
    near = ROUNDING * float(np.linalg.norm(high - low))
    if held.box is not None:
        lower, upper = np.asarray(held.box.lower), np.asarray(held.box.upper)
        mask |= np.all((points >= lower - near) & (points <= upper + near), axis=1)
    if held.plane is not None:
        normal = np.asarray(held.plane.normal)
        mask |= (points - held.plane.point) @ (normal / np.linalg.norm(normal)) <= near
    if held.ball is not None:
        distance = np.linalg.norm(points - held.ball.center, axis=1)
        mask |= distance <= held.ball.radius + near
    if held.nodes and not numbered:
        raise StudyError(
            f"`{key}.nodes` must be left out for a surface that is filled with tetrahedra, "
            "whose nodes have other numbers. Use a box, a plane or a ball."
        )
    check_numbers(f"{key}.nodes", held.nodes, len(mask))
    mask[list(held.nodes)] = True
    if not mask.any() or mask.all():
        body = ".".join(key.split(".")[:2])
        scale = f"`{body}.scale`" if body.startswith("bodies.") else "its `scale`"
        ends = (", ".join(f"{value:.4g}" for value in end) for end in (low, high))
        raise StudyError(
            f"`{key}` must select some nodes and leave some out, but it selects "
            f"{int(mask.sum())} of {len(mask)}. The body reaches from [{next(ends)}] to "
            f"[{next(ends)}] m in the world. If it should be smaller or larger, correct "
            f"{scale}: a file in millimetres needs 0.001."
        )
    return mask


def check_numbers(key: str, nodes: Sequence[int], n: int) -> None:
    """Raise if nodes are not all among n."""
    outside = [node for node in nodes if not 0 <= node < n]
    if outside:
        raise StudyError(f"`{key}` must be numbers from 0 to {n - 1}, got {outside[0]}.")
