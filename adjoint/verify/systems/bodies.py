"""Rigid bodies: free and pushed, on a plane in stick and in slip, on every shape, beside cloth.

As in `solids`, some vertices are inside the obstacle through the whole rollout, and the
others never are: nothing changes between touching and not, stick and slip on the way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.examples import Example
from adjoint.rigid.pose import mesh_vertices_vjp, vertices_vjp
from adjoint.verify.problem import Problem, System, Values, systems
from adjoint.verify.systems.solids import rollout_problem
from adjsim.courses import Signal
from adjsim.forces.box import BoxContact
from adjsim.forces.capsule import CapsuleContact
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState, BodyTrajectory, vertices, vertices_jvp


DT = 3e-4  # [s]
GRAVITY = (0.3, -9.8, 0.5)
BRICK = np.array([0.2, 0.1, 0.14])  # its edges [m]
TILT = np.array([0.1, 1.0, -0.05])  # the floor's normal, not of length 1


def brick(rng: np.random.Generator, rough: float = 0.0) -> TriangleMesh:
    """Return a box about the origin whose corners are pushed about by `rough` [m]."""
    cube = shape("cube")
    half = np.abs(cube.points).max(axis=0)
    return TriangleMesh(
        cube.points / half * BRICK / 2 + rough * rng.standard_normal((8, 3)), cube.faces
    )


def poses(rng: np.random.Generator, x: Any, *, speed: float, spin: float, turn: float) -> BodyState:
    """Return bodies at x that move at random: speed [m/s], spin [rad/s], turn [rad]."""
    n = len(x)
    nominal = np.array([0.0, 0.0, 0.0, 1.0]) + 0.5 * turn * rng.standard_normal((n, 4))
    v, omega, theta = rng.standard_normal((3, n, 3))
    return BodyState(x, nominal, speed * v, spin * omega, 0.5 * turn * theta)


def pushed(n_steps: int) -> Example:
    """Two spinning bodies with given forces at a vertex, a named point and a centre of mass.

    Each has a drag of its own.
    """
    rng = np.random.default_rng(51)
    points = {"tip": BodyPoint([0.1, 0.06, -0.08]), "middle": BodyPoint(body=1)}
    meshes = [brick(rng, 0.02), brick(rng, 0.02)]
    lumps = RigidBodies(meshes, density=[300.0, 500.0], drag_rate=[2.0, 0.7], points=points)
    signal = Signal([-1.0, 7.5, 21.0], 5.0 * rng.standard_normal((3, 2, 3)))
    middle = (n_steps // 5, n_steps - n_steps // 5)
    forces = {
        "impulse": ExternalForces(["tip", "middle"], signal, middle, acts_on="lumps"),
        "wobble": ExternalForces(
            [0, 11], 5.0 * rng.standard_normal((n_steps, 2, 3)), acts_on="lumps"
        ),
    }
    start = poses(rng, rng.standard_normal((2, 3)), speed=1.0, spin=10.0, turn=2.0)
    model = Model(forces=forces, gravity=GRAVITY, bodies={"lumps": lumps})
    return Example(model, State(bodies={"lumps": start}), 1e-3, n_steps)


def _on_the_floor(
    rng: np.random.Generator,
    n_steps: int,
    bricks: RigidBodies,
    speed: float,
    inert: str,
    **law: Any,
) -> Example:
    """Return bricks pressed into a tilted floor that slide along it at `speed` [m/s]."""
    unit = TILT / np.linalg.norm(TILT)
    along = np.array([1.0, -0.1, 0.0])
    n = bricks.n_bodies
    # Their lower faces are 15 mm inside, less the tilt; the upper ones 80 mm away.
    x = np.outer(np.arange(n), (0.5, -0.05, 0.0)) + (BRICK[1] / 2 - 0.018) * unit
    start = poses(rng, x, speed=0.02, spin=0.2, turn=0.04)
    start = start.with_values({"velocity": start.velocity + speed * along - 0.6 * unit})
    floor = HalfSpaceContact(normal=2.0 * TILT, height=0.005, radius=0.005, acts_on="bricks", **law)
    model = Model(forces={"floor": floor}, gravity=GRAVITY, bodies={"bricks": bricks})
    return Example(model, State(bodies={"bricks": start}), DT, n_steps, (inert,))


def stick(n_steps: int) -> Example:
    """A brick of one gram in stick, where mu does not act: contact scaled to its mass."""
    rng = np.random.default_rng(52)
    gram = RigidBodies(brick(rng), mass=1e-3, inertia=1e-6 * np.array([3, 6, 5, 0.2, -0.1, 0.3]))
    return _on_the_floor(
        rng, n_steps, gram, 0.1, "floor.friction", stiffness=0.4, damping=0.004,
        friction_stiffness=0.006, friction=0.9,
    )  # fmt: skip


def slip(n_steps: int) -> Example:
    """Two bricks in slip, where k_f does not act; every scalar for each vertex."""
    rng = np.random.default_rng(53)
    inertias = 1e-3 * np.array([[2, 3, 4, 0.2, -0.1, 0.3], [3, 2, 4, -0.2, 0.1, 0.1]])
    bricks = RigidBodies([brick(rng), brick(rng)], density=200.0, inertia=inertias)
    each = rng.uniform(0.8, 1.2, (4, 16))
    return _on_the_floor(
        rng, n_steps, bricks, 2.0, "floor.friction_stiffness", stiffness=120.0 * each[0],
        damping=2.0 * each[1], friction_stiffness=50.0 * each[2], friction=0.4 * each[3],
    )  # fmt: skip


def _rough(stiffness: float, damping: float, friction_stiffness: float) -> dict[str, Any]:
    """Return a contact in stick."""
    law = {"stiffness": stiffness, "damping": damping, "friction_stiffness": friction_stiffness}
    return {**law, "friction": 0.9, "radius": 0.003}


def crowd(n_steps: int) -> Example:
    """A brick touched by a sphere, a box and a capsule, beside a sheet of cloth on the sphere.

    The brick has a drag.
    """
    rng = np.random.default_rng(54)
    bricks = RigidBodies(brick(rng), mass=0.5, drag_rate=1.5)
    rough = _rough(120.0, 1.0, 1.0)
    corner = BRICK / 2  # of the brick; each obstacle has one corner inside, 15 mm deep
    forces = {
        "ball": SphereContact(corner + 0.035, 0.075, acts_on="bricks", **rough),
        "crate": BoxContact(
            corner * [-1, 1, 1] + [-0.045, 0.01, 0.02], [0.1, -0.2, 0.1], [0.06, 0.08, 0.09],
            velocity=[1.4, 0.2, 0.1], acts_on="bricks", **rough,
        ),
        "rod": CapsuleContact(
            corner * [1, -1, -1] + [0.04, -0.02, 0.01], [0.1, 0.3, 0.5], 0.1, 0.06,
            acts_on="bricks", **rough,
        ),
    }  # fmt: skip
    sheet = np.array([(x, 0.145 + x * z, z) for x in (0.1, 0.2) for z in (0.07, 0.17)])
    faces = [[0, 1, 2], [1, 3, 2]]
    forces["cloth"] = NeoHookeanTriangles(faces, sheet, 20.0, 30.0, density=2.0)
    light = _rough(2.0, 0.05, 0.05)
    forces["touch"] = SphereContact(corner + 0.035, 0.112, **light)
    start = poses(rng, np.zeros((1, 3)), speed=0.02, spin=0.2, turn=0.02)
    start = start.with_values({"velocity": start.velocity + np.array([0.7, 0.4, 0.3])})
    x = sheet + 0.003 * rng.standard_normal((4, 3))
    v = 0.1 * rng.standard_normal((4, 3)) - np.array([0.0, 0.3, 0.0])
    state = State(x, v, {"bricks": start})
    model = Model(None, forces, gravity=GRAVITY, bodies={"bricks": bricks})
    inert = tuple(f"{name}.friction" for name in ("ball", "crate", "rod", "touch"))
    return Example(model, state, DT, n_steps, inert)


def drawn() -> Problem:
    """Return the vertices of two bodies at two frames, as a map of their poses."""
    rng = np.random.default_rng(55)
    lumps = RigidBodies([brick(rng, 0.02), brick(rng, 0.02)], mass=1.0, points={"at": [0, 0, 0]})
    r = rng.standard_normal((2, 2, 4))
    r /= np.linalg.norm(r, axis=-1, keepdims=True)
    point = {"poses.position": 0.1 * rng.standard_normal((2, 2, 3)), "poses.orientation": r}
    shown = {**point, "lumps.vertices": np.array(lumps.vertices)}

    def poses_of(values: Values) -> BodyTrajectory:
        """Return poses, or tangents of them, 0 where there are none."""
        x, turn = (np.asarray(values.get(path, np.zeros_like(at))) for path, at in point.items())
        return BodyTrajectory(x, turn, np.zeros_like(x), np.zeros_like(x))

    at = poses_of(point)

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        shape = (2, len(lumps.hull), 3)
        adj_poses = vertices_vjp(lumps, at, adj.reshape(shape) / BRICK[0])
        pulled = {"poses.position": adj_poses.position, "poses.orientation": adj_poses.orientation}
        pulled["lumps.vertices"] = mesh_vertices_vjp(lumps, at, adj.reshape(shape) / BRICK[0])
        return {path: pulled[path] for path in wrt}

    def forward(values: Values) -> np.ndarray:
        moved = lumps.with_values({"vertices": values["lumps.vertices"]})
        return vertices(moved, poses_of(values)).ravel() / BRICK[0]

    def jvp(tangents: Values) -> np.ndarray:
        tan = vertices_jvp(lumps, at, poses_of(tangents), tangents.get("lumps.vertices"))
        return tan.ravel() / BRICK[0]

    owners = {path: ("BodyTrajectory", path.split(".")[1]) for path in point}

    return Problem(
        point=shown,
        owners={**owners, "lumps.vertices": ("RigidBodies", "vertices")},
        forward=forward,
        jvp=jvp,
        vjp=vjp,
    )


SYSTEMS = (
    *systems(
        "bodies",
        rollout_problem,
        {f"bodies/{build.__name__}": build for build in (pushed, stick, slip, crowd)},
    ),
    System("bodies/drawn", drawn),
)
