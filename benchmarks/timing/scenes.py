"""What is timed: tetrahedra on a floor, sheets, bodies that touch, smoke, a ball in an image."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.reduced.smoke import Smoke, SmokeState
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.textures import Texture


CELL = 0.1  # edge of a grid cell [m]
TETS_PER_CELL = 5
MU, LAM, DENSITY, VISCOSITY = 1e4, 2e4, 1e3, 1.0  # [Pa], [Pa], [kg/m3], [Pa s]
FLOOR: dict[str, Any] = {
    "stiffness": 1e4,
    "damping": 1.0,
    "friction_stiffness": 10.0,
    "friction": 0.5,
}
STRETCH, SINK, SPEED = 1.02, 0.01, 1.0  # initial stretch [-], depth in the floor [m], slide [m/s]
DT = 1e-4  # [s], about a twentieth of the stable step
CLOTH_MU, CLOTH_LAM, BENDING = 100.0, 150.0, 1e-4  # [N/m], [N/m], [N m]
AREAL_DENSITY, WAVE = 0.2, 0.02  # [kg/m2], height of the waves [m]
# Radius of surfaces in edges [-]; of a fold its radius in radii, its slope [-], so that edges of
# both halves cross, and the speed at which it closes [m/s].
THIN, FOLD, SLOPE, CLOSING = 0.15, 1.5, 0.2, 0.5
TOUCH: dict[str, Any] = {
    "stiffness": 80.0,
    "dissipation": 0.3,
    "friction_stiffness": 0.05,
    "friction": 0.3,
}
# Of a pile: blocks that hardly sink under their weight, and press each other by a seventh of the
# thickness. The upper one slides for a third of a second, and then rests.
PILE_MU, PILE_LAM = 3e5, 6e5  # [Pa]
PILE_TOUCH: dict[str, Any] = {
    "stiffness": 1e4,
    "dissipation": 3.0,
    "friction_stiffness": 100.0,
    "friction": 0.3,
}
WHIRL, LAYER = 0.5, 0.34  # fastest [cells/step], part of the grid that holds smoke at first
DISTANCE = 4.0  # of the camera from the middle of the unit ball [m]
FLAT, PHONG, TEXTURE = LOOKS = ("flat", "phong", "texture")
TEXELS = 64  # edge of the texture


@dataclass(frozen=True, eq=False)
class Body:
    """A model at its start; the forces of a block are "block" and "floor"."""

    mesh: Any
    model: Model
    state: State
    dt: float = DT

    @property
    def n_tets(self) -> int:
        """Number of tetrahedra."""
        return len(self.mesh.tets)


def block_cells(n_tets: int) -> tuple[int, int, int]:
    """Return the grid whose number of tetrahedra is nearest, the most cubic of these."""
    n = max(1, round(n_tets / TETS_PER_CELL))
    grids = []
    for short in range(1, math.isqrt(n) + 1):
        for middle in range(short, math.isqrt(n // short) + 1):
            long = max(middle, round(n / (short * middle)))
            grids.append((abs(short * middle * long - n), long - short, (long, middle, short)))
    return min(grids)[2]


def make_block(n_tets: int, *, viscous: bool = False, has_floor: bool = True) -> Body:
    """Return a stretched block of about `n_tets` tetrahedra that slides on a floor with friction.

    All nodes of its skin may touch the floor.
    """
    cells = block_cells(n_tets)
    mesh = box_tets(cells, [CELL * n for n in cells])
    viscosity = VISCOSITY if viscous else None
    tets = NeoHookeanTets(mesh.tets, mesh.points, MU, LAM, viscosity=viscosity)
    skin = mesh.surface().nodes  # no other node can be the first to touch
    contact = HalfSpaceContact(height=SINK, contact_nodes=skin, **FLOOR)
    x = STRETCH * mesh.points
    v = np.broadcast_to([SPEED, 0.0, 0.0], x.shape)
    forces = {"block": tets, "floor": contact} if has_floor else {"block": tets}
    return Body(mesh, Model(tets.lumped_mass(DENSITY), forces), State(x, v))


def make_cloth(n_triangles: int) -> Body:
    """Return a wavy sheet of 1 m2, about `n_triangles` triangles, that hangs by two corners."""
    n = max(1, round(math.sqrt(n_triangles / 2)))
    mesh = sheet((n, n))
    cloth = NeoHookeanTriangles(mesh.faces, mesh.points, CLOTH_MU, CLOTH_LAM)
    hinges = Hinges(mesh_hinges(mesh.faces), mesh.points, BENDING)
    x = mesh.points + [0.0, 0.0, WAVE] * np.sin(2.0 * np.pi * mesh.points[:, :1])
    pinned = np.isin(np.arange(len(x)), (n, len(x) - 1))  # the corners at y = 1
    mass = cloth.lumped_mass(AREAL_DENSITY)
    return Body(mesh, Model(mass, {"cloth": cloth, "hinges": hinges}, pinned=pinned), State(x))


def make_fold(n_triangles: int, *, touches: bool) -> Body:
    """Return a sheet of 1 m2, about `n_triangles` triangles, folded over, whose upper half lands.

    It `touches` itself, or goes through.
    """
    n = max(2, round(math.sqrt(n_triangles / 2)))
    mesh = sheet((n, n))
    radius = THIN / n
    across = np.array([1.0, SLOPE]) / math.hypot(1.0, SLOPE)
    r, s = FOLD * radius, (mesh.points[:, :2] - 0.5) @ across
    turn = np.clip(s / r, 0.0, np.pi)
    x, v = mesh.points.copy(), np.zeros_like(mesh.points)
    over = np.where(s > 0.0, r * np.sin(turn) - np.maximum(s - np.pi * r, 0.0) - s, 0.0)
    x[:, :2] += over[:, None] * across
    x[:, 2] = r * (1.0 - np.cos(turn))
    v[s > np.pi * r, 2] = -CLOSING
    forces: dict[str, Any] = {
        "cloth": NeoHookeanTriangles(
            mesh.faces, mesh.points, CLOTH_MU, CLOTH_LAM, VISCOSITY / 50.0, density=AREAL_DENSITY
        ),
        "hinges": Hinges(mesh_hinges(mesh.faces), mesh.points, BENDING, damping=BENDING / 100.0),
    }
    if touches:
        forces["touch"] = SurfaceContact(
            triangles=mesh.faces, radius=radius, rest_positions=mesh.points, **TOUCH
        )
    return Body(mesh, Model(None, forces), State(x, v), DT * 32.0 / max(n, 32))


def make_pile(n_tets: int, *, touches: bool) -> Body:
    """Return a block of about `n_tets` tetrahedra that slides on another one, held from below."""
    cells = block_cells(n_tets)
    mesh = box_tets(cells, [CELL * n for n in cells])
    n, radius = len(mesh.points), 0.5 * THIN * CELL
    up = np.array([0.3 * CELL, CELL * cells[1] + 1.9 * radius, 0.2 * CELL])
    points = np.concatenate([mesh.points, mesh.points + up])
    forces: dict[str, Any] = {
        "blocks": NeoHookeanTets(
            np.concatenate([mesh.tets, mesh.tets + n]), points, PILE_MU, PILE_LAM, density=DENSITY
        )
    }
    if touches:
        faces = mesh.surface().faces
        forces["touch"] = SurfaceContact(
            triangles=faces, other_triangles=faces + n, radius=radius, other_radius=radius,
            **PILE_TOUCH,
        )  # fmt: skip
    pinned, v = points[:, 1] <= points[:, 1].min(), np.zeros_like(points)
    v[n:, 0] = SPEED
    return Body(mesh, Model(None, forces, pinned=pinned), State(points, v))


def make_smoke(n: int) -> tuple[Smoke, SmokeState]:
    """Return a layer of smoke under whirls, on a square grid of n x n cells."""
    angle = 2.0 * np.pi * np.arange(n) / n
    along, across = np.cos(2.0 * angle + 0.3), np.sin(3.0 * angle + 0.7)
    velocity = WHIRL * np.stack([np.outer(along, across), np.outer(across, along)], axis=-1)
    density = np.broadcast_to((np.arange(n) >= (1.0 - LAYER) * n)[:, None], (n, n))
    return Smoke((n, n)), SmokeState(velocity, density.astype(float))


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball of triangles that fills half of a square image."""

    scene: Scene
    camera: Camera
    points: np.ndarray
    faces: np.ndarray


def make_ball(n_faces: int, look: str = FLAT) -> Ball:
    """Return an icosphere of 20 * 4^k faces in random colours.

    A unit ball at distance d is seen under the angle asin(1/d) on either side; the field of view
    is chosen so that its disc covers half of the square. With the look "phong" the ball has smooth
    normals and a highlight, with "texture" a picture of `TEXELS`² texels, seen from the front.
    """
    points, faces = icosphere(n_faces)
    rng = np.random.default_rng(0)
    radius = 1.0 / math.sqrt(DISTANCE**2 - 1.0)  # tan(asin(1/d))
    half = radius * math.sqrt(math.pi / 2.0)  # pi r^2 = (2 half)^2 / 2
    camera = Camera(
        (0.0, 0.0, DISTANCE), (0.0, 0.0, 0.0), fov_y=2.0 * math.degrees(math.atan(half))
    )
    if look == TEXTURE:
        picture = Texture(rng.random((TEXELS, TEXELS, 3)))
        mesh = Mesh(faces, texture=picture, uv=0.5 + 0.5 * points[:, :2])
    else:
        shiny = Material(specular=0.5) if look == PHONG else Material()
        colors = rng.random((len(faces), 3))
        mesh = Mesh(faces, face_colors=colors, material=shiny, smooth_normals=look == PHONG)
    scene = Scene({"ball": mesh}, {"sun": DirectionalLight((1.0, 1.0, 1.0))})
    return Ball(scene, camera, points, faces)


def icosphere(n_faces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) and faces (n_faces, 3) of an icosahedron cut in four k times."""
    import pyvista  # not on every machine with a GPU

    level = round(math.log(n_faces / 20.0, 4))
    if n_faces != 20 * 4**level:
        raise ValueError(f"`n_faces` must be 20, 80, 320, 1280, 5120, ..., got {n_faces}.")
    ball = pyvista.Icosphere(radius=1.0, nsub=level)
    points = np.asarray(ball.points, float)
    return points / np.linalg.norm(points, axis=1, keepdims=True), ball.regular_faces
