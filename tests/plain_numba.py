"""Run a small scene and print numbers of it as JSON: for `test_elements.py`, in two modes."""

import json
import sys

import numpy as np

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.engine.jit.backend import PRIVATE
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model, State
from render.camera import Camera
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer


def main():
    mesh = box_tets(cells=(1, 1, 1), size=(0.2, 0.2, 0.2))
    forces = {
        "block": NeoHookeanTets(mesh.tets, mesh.points, 1e4, 2e4, density=1e3),
        "floor": HalfSpaceContact(height=0.05, stiffness=1e3),
    }
    run = record(Model(forces=forces), State(1.1 * mesh.points), 1e-4, 5)
    gradient = run.vjp(np.ones_like(run.trajectory.x))
    camera, raster = (
        Camera((0.0, 0.0, 1.0), (0.1, 0.1, 0.0), fov_y=45.0),
        SoftRasterizer(sigma=1e-3),
    )
    scene, vertices = Scene({"block": Mesh(mesh.surface().faces)}), {"block": mesh.points}
    images = record_images(scene, camera, raster, vertices, (8, 9))
    pulled = images.vjp(np.ones_like(images.images))
    found = {"x": run.trajectory.x, "images": images.images, **gradient, **pulled}
    numbers = {name: np.ravel(value).tolist() for name, value in found.items()}
    json.dump({"private": PRIVATE is not None, "numbers": numbers}, sys.stdout)


if __name__ == "__main__":
    main()
