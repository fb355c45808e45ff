"""Random throws of a curtain: the velocity of every point that is not held."""

from dataclasses import replace

import numpy as np

from studies.scene.declared import Cloth, SceneFile
from studies.scene.mesh_source import read_source


CURTAIN = "curtain"
SLOWEST, FASTEST = (0.5, -0.5, -0.5), (1.5, 0.5, 0.5)  # [m/s]
VELOCITY = f"{CURTAIN}.node_velocity"


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene with the hidden velocities of an instance."""
    del instance
    body = file.bodies[CURTAIN]
    assert isinstance(body, Cloth)
    assert body.held is not None
    n = len(read_source(f"bodies.{CURTAIN}", body).mesh.points) - len(body.held.nodes)
    hidden = rng.uniform(SLOWEST, FASTEST, size=(n, 3))
    return replace(file, truth={**file.truth, VELOCITY: tuple(map(tuple, hidden.tolist()))})
