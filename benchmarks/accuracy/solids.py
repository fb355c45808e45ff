"""Solids at rest: a bar that hangs, a ball pressed into a block, pieces stretched and sheared."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from adjsim.equilibrium import Equilibrium
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.log_neo_hookean import LogNeoHookeanTets
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.sphere import SphereContact
from adjsim.meshes.grid import box_tets, grid_tets
from adjsim.model import Model, State
from benchmarks.accuracy.fem import hanging_bar
from benchmarks.accuracy.resting import Resting, Slopes, force_of
from benchmarks.accuracy.rows import Row, measure


Built = tuple[Model, State, Slopes]
NO_GRAVITY = (0.0, 0.0, 0.0)

# The bar: as in github.com/AustrianTradingMachine/Newton, src/common/params.py
BAR, BAR_CELLS = (0.6, 0.6, 1.6), (6, 6, 16)  # [m]
BAR_MU, BAR_LAM, BAR_DENSITY, G = 1e4, 5e4, 100.0, 9.80665
BAR_E = BAR_MU * (3.0 * BAR_LAM + 2.0 * BAR_MU) / (BAR_LAM + BAR_MU)
FEM_CELLS = (3, 3, 12)  # of a quarter


def by_fem() -> tuple[float, float]:
    """Return how far the bar sinks by finite elements [m], and its slope by ln E."""
    return hanging_bar(BAR, FEM_CELLS, (BAR_MU, BAR_LAM), BAR_DENSITY * G)


def bar(E: float, finer: float) -> Built:
    """Return a bar of Young's modulus E that hangs from its upper face."""
    mesh = box_tets([round(finer * n) for n in BAR_CELLS], BAR)
    mu, lam = BAR_MU * E / BAR_E, BAR_LAM * E / BAR_E
    body = LogNeoHookeanTets.from_lame(mesh.tets, mesh.points, mu, lam, density=BAR_DENSITY)
    held = mesh.points[:, 2] == BAR[2]
    model = Model(None, {"bar": body}, gravity=(0.0, 0.0, -G), pinned=held)
    return model, State(mesh.points), {"bar.mu": mu / E, "bar.lam": lam / E}


def sunk(rest: Equilibrium) -> tuple[float, dict[str, np.ndarray]]:
    """Return how far the middle of the lower face sank, and its gradient."""
    X = rest.field.model.forces["bar"].rest_positions
    middle = np.argmin(np.abs(X - [0.5 * BAR[0], 0.5 * BAR[1], 0.0]).sum(axis=1))
    adj = np.zeros_like(X)
    adj[middle, 2] = -1.0
    return float(X[middle, 2] - rest.state.x[middle, 2]), {"state.x": adj}


def hanging() -> Iterator[Row]:
    """Yield the bar on the published mesh, and on one twice as fine."""
    tip, by_log = by_fem()
    for finer in (1, 2):
        scene = Resting(partial(bar, finer=finer), sunk)
        cells = " × ".join(str(finer * n) for n in BAR_CELLS)
        yield measure(
            f"sinks by, {cells} cells", "m", ("E", BAR_E), partial(scene.value_and_slope, BAR_E),
            value=scene.value, exact=lambda E: tip + by_log * np.log(E / BAR_E), reference="FEM",
        )  # fmt: skip


# The ball: a wedge of a cylinder, from its axis to where the ball is hardly felt
YOUNG, NU, BALL, DEPTH = 1e5, 0.3, 1.0, 0.01  # [Pa], [-], [m], [m]
CONTACT = float(np.sqrt(BALL * DEPTH))  # radius of the contact
N_WEDGES, CELL, FINE, OUTSIDE, GROWTH = 48, CONTACT / 12.5, 19, 160.0 * CONTACT, 1.15
NODE_STIFFNESS, PLANE_STIFFNESS = 1e5, 1e7  # [N/m]; a cell has E h = 800


def graded() -> np.ndarray:
    """Return places from 0 to `OUTSIDE`: cells alike near 0, then each larger by `GROWTH`."""
    q = GROWTH
    n = int(np.ceil(np.log1p((OUTSIDE / CELL - FINE) * (q - 1.0) / q) / np.log(q)))
    beyond = np.cumsum(CELL * q ** np.arange(1, n + 1))
    near = CELL * np.arange(FINE + 1)
    return np.concatenate([near, near[-1] + beyond * (OUTSIDE - near[-1]) / beyond[-1]])


def wedge() -> tuple[np.ndarray, np.ndarray]:
    """Return points and tetrahedra of one of `N_WEDGES` parts of a cylinder about y, top y = 0."""
    r, angle = graded(), np.array([0.0, 2.0 * np.pi / N_WEDGES])
    index = np.arange(2 * len(r) ** 2).reshape(len(r), len(r), 2)
    across, up, along = np.meshgrid(r, -r[::-1], angle, indexing="ij")
    points = np.stack([across * np.cos(along), up, -across * np.sin(along)], axis=-1).reshape(-1, 3)
    index[0, :, 1] = index[0, :, 0]  # the axis
    tets = grid_tets(index, tets_per_cell=6)
    flat = (np.diff(np.sort(tets, axis=1), axis=1) == 0).any(axis=1)
    used, tets = np.unique(tets[~flat], return_inverse=True)
    return points[used], tets.reshape(-1, 4)[:, [0, 1, 3, 2]]


def pressed(E: float) -> Built:
    """Return a ball that is pressed into the block of Young's modulus E."""
    points, tets = wedge()
    r, angle = np.hypot(points[:, 0], points[:, 2]), 2.0 * np.pi / N_WEDGES
    body = NeoHookeanTets.from_young(tets, points, E, NU, density=1.0)
    top = np.flatnonzero((points[:, 1] == 0.0) & (r < FINE * CELL))
    center = (0.0, BALL - DEPTH, 0.0)
    ball = SphereContact(
        center=center, sphere_radius=BALL, stiffness=NODE_STIFFNESS, contact_nodes=top
    )
    forces: dict[str, Any] = {"block": body, "ball": ball}
    for name, normal in {
        "first": np.array([0.0, 0.0, 1.0]),
        "second": np.array([np.sin(angle), 0.0, np.cos(angle)]),
    }.items():
        on = np.flatnonzero(np.abs(points @ normal) < 1e-9)
        for side, sign in (("below", 1.0), ("above", -1.0)):
            forces[f"{name}_{side}"] = HalfSpaceContact(
                normal=sign * normal, stiffness=PLANE_STIFFNESS, contact_nodes=on
            )
    held = (r > 0.999 * OUTSIDE) | (points[:, 1] == -OUTSIDE)
    model = Model(None, forces, gravity=NO_GRAVITY, pinned=held)
    return model, State(points), {"block.mu": float(body.mu) / E, "block.lam": float(body.lam) / E}


def hertz(E: float, depth: float = DEPTH) -> float:
    """Return the force of Hertz, 4/3 E/(1 - nu^2) sqrt(R) d^(3/2) [N]."""
    return 4.0 / 3.0 * E / (1.0 - NU**2) * np.sqrt(BALL) * depth**1.5


def push_of_ball(rest: Equilibrium) -> tuple[float, dict[str, np.ndarray]]:
    """Return the force on the ball, and its gradient."""
    down = np.zeros((rest.field.model.n_nodes, 3))
    down[:, 1] = -N_WEDGES
    return force_of(rest, ("ball",), down)


def indented() -> Iterator[Row]:
    """Yield the force on the ball."""
    scene = Resting(pressed, push_of_ball)
    yield measure(
        "force on the ball", "N", ("E", YOUNG), partial(scene.value_and_slope, YOUNG),
        value=scene.value, exact=hertz, step=1e-2,
    )  # fmt: skip


def pressure() -> tuple[np.ndarray, np.ndarray]:
    """Return radii of nodes over that of the contact, and their pressure over Hertz's largest."""
    rest, _ = Resting(pressed, push_of_ball).rest(YOUNG)
    ball, x = rest.field.model.forces["ball"], rest.state.x
    points = rest.field.model.forces["block"].rest_positions
    r = np.hypot(points[:, 0], points[:, 2])
    depth = np.maximum(BALL - np.linalg.norm(x - ball.center, axis=1), 0.0)
    places = CELL * np.arange(FINE + 1)
    top = ball.contact_nodes
    ring = np.rint(r[top] / CELL).astype(int)
    area = 2.0 * np.pi * places * CELL
    area[0] = np.pi * CELL**2 / 3.0  # what a linear function that is 1 on the axis has
    force = N_WEDGES * np.bincount(ring, NODE_STIFFNESS * depth[top], FINE + 1)
    largest = 2.0 / np.pi * YOUNG / (1.0 - NU**2) * CONTACT / BALL
    return places / CONTACT, force / area / largest


# Pieces of a material: an eighth of a bar that is pulled, a cube that is sheared
PIECE, PIECE_CELLS, STRETCH, SHEAR = (0.3, 0.2, 0.2), (3, 2, 2), 1.5, 0.4
PLATE = 1e10  # [Pa/m] of the planes that hold a face
PLATES = {"pull": 1.0, "push": -1.0}  # of the end, by the direction in which they act


def moduli() -> tuple[float, float]:
    """Return mu and lam of the law."""
    return NeoHookeanTets.moduli(YOUNG, NU)


def stress(s: float) -> float:
    """Return the pull per area of a bar that is s times as long and free sideways [Pa].

    F = diag(s, t, t) and P of `adjsim/forces/neo_hookean.py`; t is where P_yy = 0.
    """
    mu, lam = moduli()
    alpha = 1.0 + 0.75 * mu / lam

    def stresses(t: float) -> tuple[float, float]:
        k = mu * (1.0 - 1.0 / (s * s + 2.0 * t * t + 1.0))
        p = lam * (s * t * t - alpha)
        return k * s + p * t * t, k * t + p * s * t

    t: Any = brentq(lambda t: stresses(t)[1], 0.1, 10.0, xtol=1e-15, rtol=1e-15)  # pyright: ignore[reportArgumentType]
    return stresses(t)[0]


def areas(points: np.ndarray, cells: Sequence[int], size: Sequence[float]) -> np.ndarray:
    """Return the part of the face of each node at x = 0 or the end [m2]."""
    share = np.full(len(points), size[1] * size[2] / (cells[1] * cells[2]))
    for axis in (1, 2):
        share[(points[:, axis] == 0.0) | np.isclose(points[:, axis], size[axis])] *= 0.5
    return share


def pulled(s: float) -> Built:
    """Return a bar that a plate pulls to s times its length, an eighth of it in planes."""
    mesh, (mu, lam) = box_tets(PIECE_CELLS, PIECE), moduli()
    X = mesh.points
    area = areas(X, PIECE_CELLS, PIECE)
    forces: dict[str, Any] = {"bar": NeoHookeanTets(mesh.tets, X, mu, lam, density=1.0)}
    for axis, name in enumerate("xyz"):
        on = np.flatnonzero(X[:, axis] == 0.0)
        for side, sign in (("below", 1.0), ("above", -1.0)):
            forces[f"{name}_{side}"] = HalfSpaceContact(
                normal=sign * np.eye(3)[axis], stiffness=PLATE * area[on], contact_nodes=on
            )
    end = np.flatnonzero(X[:, 0] == PIECE[0])
    heights = {}
    for name, sign in PLATES.items():
        forces[name] = HalfSpaceContact(
            normal=(sign, 0.0, 0.0), height=sign * s * PIECE[0], stiffness=PLATE * area[end],
            contact_nodes=end,
        )  # fmt: skip
        heights[f"{name}.height"] = sign * PIECE[0]
    model = Model(None, forces, gravity=NO_GRAVITY)
    return model, State(X * [s, 1.0, 1.0]), heights


def pull_of_plate(rest: Equilibrium) -> tuple[float, dict[str, np.ndarray]]:
    """Return the force of the plate over its face."""
    along = np.zeros((rest.field.model.n_nodes, 3))
    along[:, 0] = 1.0 / (PIECE[1] * PIECE[2])
    return force_of(rest, tuple(PLATES), along)


def shear_stress(amount: float) -> float:
    """Return P_xy of F = 1 + amount e_x e_y [Pa]: J is 1, so only the first term is left."""
    return moduli()[0] * (1.0 - 1.0 / (4.0 + amount**2)) * amount


def sheared(amount: float) -> Built:
    """Return a cube whose surface is held where a simple shear brings it."""
    mesh, (mu, lam) = box_tets((4, 4, 4), (PIECE[1],) * 3), moduli()
    X = mesh.points
    held = (np.isclose(X, 0.0) | np.isclose(X, PIECE[1])).any(axis=1)
    by_amount = np.zeros_like(X)
    by_amount[held, 0] = X[held, 1]
    body = NeoHookeanTets(mesh.tets, X, mu, lam)
    model = Model(np.ones(len(X)), {"cube": body}, gravity=NO_GRAVITY, pinned=held)
    return model, State(X + amount * by_amount), {"state.x": by_amount}


def stress_of_cube(rest: Equilibrium) -> tuple[float, dict[str, np.ndarray]]:
    """Return P_xy by virtual work: the outer force of each held node times y, over the volume."""
    weights = np.zeros_like(rest.state.x)
    X = rest.field.model.forces["cube"].rest_positions
    held = rest.field.model.pinned
    weights[held, 0] = -X[held, 1] / PIECE[1] ** 3
    return force_of(rest, ("cube",), weights)


def tested() -> Iterator[Row]:
    """Yield the stress of a stretched and of a sheared piece."""
    stretched, simple = Resting(pulled, pull_of_plate), Resting(sheared, stress_of_cube)
    yield measure(
        f"stress, {STRETCH:g} times as long", "Pa", ("stretch", STRETCH),
        partial(stretched.value_and_slope, STRETCH), value=stretched.value, exact=stress,
    )  # fmt: skip
    yield measure(
        f"stress, sheared by {SHEAR:g}", "Pa", ("shear", SHEAR),
        partial(simple.value_and_slope, SHEAR), value=simple.value, exact=shear_stress,
    )  # fmt: skip
