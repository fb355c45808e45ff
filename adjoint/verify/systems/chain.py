"""The whole chain: moduli -> rollout -> video -> one number, and all the way back."""

from collections.abc import Sequence

import numpy as np

from adjoint.render.losses import loss_jvp, loss_vjp
from adjoint.render.soft_raster import rasterize_jvp, record_images
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.problem import Problem, System, Values
from adjoint.verify.systems.pixel_margins import picture_margins
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from render.camera import Camera
from render.losses import PyramidMse
from render.scene import DirectionalLight, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


DT, N_STEPS, FRAMES = 1e-3, 60, (20, 40, 60)
SIZE = (8, 12)
POINT = {"beam.mu": np.array(1e4), "beam.lam": np.array(1.5e4)}
TARGET = {"beam.mu": np.array(2e4), "beam.lam": np.array(3e4)}
OWNERS = {path: ("NeoHookeanTets", path.split(".")[1]) for path in POINT}


def video() -> Problem:
    """Return a swinging cantilever seen in three frames, compared with another one's."""
    mesh = box_tets((2, 1, 1), (0.4, 0.1, 0.1))
    surface = mesh.surface()
    colors = np.random.default_rng(21).random((len(surface.faces), 3))
    scene = Scene(
        {"beam": Mesh(surface.local_faces, face_colors=colors)},
        {"sun": DirectionalLight((0.2, 1.0, 0.9))},
    )
    camera = Camera((0.23, 0.14, 0.75), (0.2, 0.02, 0.05))
    soft = SoftRasterizer(sigma=5e-3, background=(0.2, 0.1, 0.3))
    pinned = mesh.points[:, 0] == 0.0
    loss = PyramidMse(2)

    def model(values: Values) -> Model:
        mu, lam = values["beam.mu"], values["beam.lam"]
        tets = NeoHookeanTets(mesh.tets, mesh.points, mu, lam)
        return Model(tets.lumped_mass(500.0), {"beam": tets}, pinned=pinned)

    def vertices(x: np.ndarray) -> dict[str, np.ndarray]:
        return {"beam": np.ascontiguousarray(x[:, surface.nodes])}

    def moved(values: Values) -> dict[str, np.ndarray]:
        return vertices(rollout(model(values), state, DT, N_STEPS, frames=FRAMES).x)

    swing = mesh.points[:, :1] * np.array([-1.0, -6.0, 2.0])  # 1/s times metres
    state = State(mesh.points, swing)
    targets = rasterize(scene, camera, soft, moved(TARGET), SIZE)
    at_point = model(POINT)
    run = record(at_point, state, DT, N_STEPS, frames=FRAMES)
    film = record_images(scene, camera, soft, vertices(run.trajectory.x), SIZE)

    def forward(values: Values) -> np.ndarray:
        images = rasterize(scene, camera, soft, moved(values), SIZE)
        return np.array([loss(images, targets)])

    def jvp(tangents: Values) -> np.ndarray:
        end, tan_end = rollout_jvp(at_point, state, DT, N_STEPS, tangents, frames=FRAMES)
        tan_vertices = {"beam.vertices": vertices(tan_end.x)["beam"]}
        images, tan_images = rasterize_jvp(
            scene, camera, soft, vertices(end.x), SIZE, tangents=tan_vertices
        )
        return np.array([loss_jvp(loss, images, targets, tan_images)])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        adj_images = loss_vjp(loss, film.images, targets, float(adj[0]))
        adj_x = np.zeros_like(run.trajectory.x)
        adj_x[:, surface.nodes] = film.vjp(adj_images)["beam.vertices"]
        return run.vjp(adj_x, wrt=wrt)

    return Problem(
        POINT, OWNERS, forward, jvp, vjp,
        margins=lambda values: picture_margins(scene, camera, soft, moved(values), SIZE),
        dot_tolerance=1e-10,
    )  # fmt: skip


SYSTEMS = (System("chain/video", video),)
