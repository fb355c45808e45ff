"""What is timed: tetrahedra on a floor, a hanging sheet, smoke, a ball in an image."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.ball import icosahedron
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.reduced.smoke import Smoke, SmokeState
from render.camera import Camera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.textures import Texture


CELL = 0.1  # edge of a grid cell [m]
MU, LAM, DENSITY, VISCOSITY = 1e4, 2e4, 1e3, 1.0  # [Pa], [Pa], [kg/m3], [Pa s]
FLOOR: dict[str, Any] = {
    "stiffness": 1e4,
    "damping": 1.0,
    "friction_stiffness": 10.0,
    "friction": 0.5,
}
STRETCH, SINK, SPEED = 1.02, 0.01, 1.0  # initial stretch [-], depth in the floor [m], slide [m/s]
DT = 1e-4  # [s], about a twentieth of the stable step
TETS_PER_CELL = 5
CLOTH_MU, CLOTH_LAM, BENDING = 100.0, 150.0, 1e-4  # [N/m], [N/m], [N m]
AREAL_DENSITY, WAVE = 0.2, 0.02  # [kg/m2], height of the waves [m]
WHIRL, LAYER = 0.5, 0.34  # fastest [cells/step], part of the grid that holds smoke at first
CUBE_FACES = 12
DISTANCE = 4.0  # of the camera from the middle of the unit ball [m]
FLAT, PHONG, TEXTURE = LOOKS = ("flat", "phong", "texture")
TEXELS = 64  # edge of the texture


def block_cells(n_tets: int) -> tuple[int, int, int]:
    """Return the grid whose number of tetrahedra is nearest, the most cubic of these."""
    n = max(1, round(n_tets / TETS_PER_CELL))
    found = []
    for short in range(1, math.isqrt(n) + 1):
        for middle in range(short, math.isqrt(n // short) + 1):
            long = max(middle, round(n / (short * middle)))
            found.append((abs(short * middle * long - n), long - short, (long, middle, short)))
    return min(found)[2]


@dataclass(frozen=True, eq=False)
class Block:
    """A stretched block that slides on a floor with friction.

    Attributes
    ----------
    mesh : TetMesh
    model, state : Model, State
        The forces are named "block" and "floor".
    dt : float
        Step [s].
    """

    mesh: Any
    model: Model
    state: State
    dt: float = DT

    @property
    def n_tets(self) -> int:
        """Number of tetrahedra."""
        return len(self.mesh.tets)

    @property
    def contacts_per_tet(self) -> float:
        """Nodes that may touch the floor, per tetrahedron."""
        floor = self.model.forces.get("floor")
        return 0.0 if floor is None else len(floor.nodes) / self.n_tets


def make_block(
    n_tets: int, *, viscous: bool = False, has_floor: bool = True, n_contacts: int | None = None
) -> Block:
    """Return the block of about `n_tets` tetrahedra, at least five.

    All nodes of its skin may touch the floor, or `n_contacts` of them, evenly spread.
    """
    cells = block_cells(n_tets)
    mesh = box_tets(cells, [CELL * n for n in cells])
    viscosity = VISCOSITY if viscous else None
    tets = NeoHookeanTets(mesh.tets, mesh.points, MU, LAM, viscosity=viscosity)
    skin = mesh.surface().nodes  # no other node can be the first to touch
    if n_contacts is not None:
        skin = skin[np.linspace(0, len(skin) - 1, n_contacts).round().astype(int)]
    contact = HalfSpaceContact(height=SINK, contact_nodes=skin, **FLOOR)
    floor = {"floor": contact} if has_floor else {}
    x = STRETCH * mesh.points
    v = np.broadcast_to([SPEED, 0.0, 0.0], x.shape)
    model = Model(tets.lumped_mass(DENSITY), {"block": tets, **floor})
    return Block(mesh, model, State(x, v))


@dataclass(frozen=True, eq=False)
class Cloth:
    """A wavy square sheet that hangs by two corners.

    Attributes
    ----------
    n_triangles, n_hinges : int
    model, state : Model, State
        The forces are named "cloth" and "hinges".
    dt : float
        Step [s].
    """

    n_triangles: int
    n_hinges: int
    model: Model
    state: State
    dt: float = DT


def make_cloth(n_triangles: int) -> Cloth:
    """Return the sheet of 1 m2 with about `n_triangles` triangles, at least two."""
    n = max(1, round(math.sqrt(n_triangles / 2)))
    mesh = sheet((n, n))
    cloth = NeoHookeanTriangles(mesh.faces, mesh.points, CLOTH_MU, CLOTH_LAM)
    hinges = Hinges(mesh_hinges(mesh.faces), mesh.points, BENDING)
    x = mesh.points + [0.0, 0.0, WAVE] * np.sin(2.0 * np.pi * mesh.points[:, :1])
    pinned = np.isin(np.arange(len(x)), (n, len(x) - 1))  # the corners at y = 1
    mass = cloth.lumped_mass(AREAL_DENSITY)
    model = Model(mass, {"cloth": cloth, "hinges": hinges}, pinned=pinned)
    return Cloth(len(mesh.faces), len(hinges.hinges), model, State(x))


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

    @property
    def fov_y(self) -> float:
        """Angle of view [deg]."""
        return float(self.camera.fov_y)


def make_ball(n_faces: int, seed: int, look: str = FLAT) -> Ball:
    """Return the cube, or the icosphere of 20 * 4^k faces, in colours drawn from `seed`.

    The outline of a unit ball at distance d is seen under the angle asin(1/d); the field of
    view is chosen so that the disc of that angle covers half of the square. With the look
    "phong" the ball has smooth normals and a highlight, with "texture" a picture of `TEXELS`²
    texels, seen from the front.
    """
    points, faces = ball_mesh(n_faces)
    rng = np.random.default_rng(seed)
    radius = 1.0 / math.sqrt(DISTANCE**2 - 1.0)  # tan(asin(1/d))
    half = radius * math.sqrt(math.pi / 2.0)  # pi r^2 = (2 half)^2 / 2
    camera = Camera(
        (0.0, 0.0, DISTANCE), (0.0, 0.0, 0.0), fov_y=2.0 * math.degrees(math.atan(half))
    )
    light = DirectionalLight((1.0, 1.0, 1.0))
    if look == TEXTURE:
        picture = Texture(rng.random((TEXELS, TEXELS, 3)))
        mesh = Mesh(faces, texture=picture, uv=0.5 + 0.5 * points[:, :2])
    else:
        colors = rng.random((len(faces), 3))
        shiny = Material(specular=0.5) if look == PHONG else Material()
        mesh = Mesh(faces, face_colors=colors, material=shiny, smooth_normals=look == PHONG)
    return Ball(Scene({"ball": mesh}, {"sun": light}), camera, points, faces)


def ball_mesh(n_faces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) on the unit sphere and faces (n_faces, 3): a cube, or an icosphere.

    Raises
    ------
    ValueError
        If neither has so many faces.
    """
    if n_faces != CUBE_FACES:
        return icosphere(n_faces)
    cube = box_tets((1, 1, 1), (2.0, 2.0, 2.0))
    faces = cube.surface().faces
    return (cube.points - 1.0) / math.sqrt(3.0), np.asarray(faces)


def icosphere(n_faces: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) and faces (n_faces, 3) of an icosahedron cut in four k times.

    Raises
    ------
    ValueError
        If there is no such k.
    """
    level = round(math.log(max(n_faces, 1) / 20.0, 4)) if n_faces >= 20 else -1
    if n_faces != 20 * 4 ** max(level, 0):
        raise ValueError(f"`faces` must be 12, 20, 80, 320, 1280, 5120, ..., got {n_faces}.")
    points, faces = icosahedron()
    for _ in range(level):
        points, faces = _cut_in_four(points, faces)
    return points, faces


def _cut_in_four(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    unique, inverse = np.unique(edges, axis=0, return_inverse=True)
    middle = points[unique].sum(axis=1)
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    ab, bc, ca = (inverse.reshape(-1, 3) + len(points)).T
    a, b, c = faces.T
    corners = [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
    cut = np.concatenate([np.stack(triple, axis=1) for triple in corners])
    return np.concatenate([points, middle]), cut
