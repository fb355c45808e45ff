"""Random throws of a curtain: the velocity of every point that is not held."""

from dataclasses import replace

import numpy as np

from studies.scene.declared import SceneFile


SLOWEST, FASTEST = (0.5, -0.5, -0.5), (1.5, 0.5, 0.5)  # [m/s]
POINTS = 22
VELOCITY = "curtain.node_velocity"


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene with the hidden velocities of an instance."""
    del instance
    hidden = rng.uniform(SLOWEST, FASTEST, size=(POINTS, 3))
    return replace(file, truth={**file.truth, VELOCITY: tuple(map(tuple, hidden.tolist()))})
