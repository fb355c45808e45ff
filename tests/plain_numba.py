"""Run a small scene and print numbers of it as JSON: for `test_elements.py`, in two modes."""

import json
import sys

import numpy as np

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.jit.backend import PRIVATE
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from adjsim.rollout import rollout
from render.camera import Camera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer


def block():
    """Return the model of a block on a floor, its state, the step and the number of steps."""
    mesh = box_tets(cells=(1, 1, 1), size=(0.2, 0.2, 0.2))
    forces = {
        "block": NeoHookeanTets(mesh.tets, mesh.points, 1e4, 2e4, density=1e3),
        "floor": HalfSpaceContact(height=0.05, stiffness=1e3),
    }
    return Model(forces=forces), State(1.1 * mesh.points), 1e-4, 5


def rollout_numbers():
    """Return the block's positions."""
    return {"x": rollout(*block()).x}


def gradient_numbers():
    """Return the gradient of the block's positions."""
    run = record(*block())
    return run.vjp(np.ones_like(run.trajectory.x))


def images_numbers():
    """Return an image of a block, and its gradient."""
    mesh = box_tets(cells=(1, 1, 1), size=(0.2, 0.2, 0.2))
    camera = Camera((0.0, 0.0, 1.0), (0.1, 0.1, 0.0), fov_y=45.0)
    scene, vertices = Scene({"block": Mesh(mesh.surface().faces)}), {"block": mesh.points}
    run = record_images(scene, camera, SoftRasterizer(sigma=1e-3), vertices, (8, 9))
    return {"images": run.images, **run.vjp(np.ones_like(run.images))}


if __name__ == "__main__":
    RUNS = {"rollout": rollout_numbers, "gradient": gradient_numbers, "images": images_numbers}
    results = RUNS[sys.argv[1]]()
    numbers = {name: np.ravel(value).tolist() for name, value in results.items()}
    json.dump({"private": PRIVATE is not None, "numbers": numbers}, sys.stdout)
