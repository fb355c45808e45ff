"""A square cloth of a random size, turned about its first corner, somewhere on the left."""

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from studies.scene.declared import Cloth, SceneFile


CLOTH = "cloth"
CELLS, CELL = (8, 31), 0.125  # along an edge, from and to; edge of a cell [m]
MASS = 2.0  # of every node [kg]
LEFT, HEIGHTS = -5.0, (2.0, 3.0)  # of the corner [m]
AXIS = np.array([2.0, 1.0, 0.0]) / np.sqrt(5.0)  # about which it is turned by a right angle


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene with the cloth's size, mass and pose; cells that the file gives are kept."""
    del instance
    body = file.bodies[CLOTH]
    assert isinstance(body, Cloth)
    count = int(rng.integers(CELLS[0], CELLS[1] + 1))
    corner = np.array([LEFT, rng.uniform(*HEIGHTS), 0.0])
    if body.cells is not None:
        count = body.cells[0]
    edge = count * CELL
    turn = Rotation.from_rotvec(90.0 * AXIS, degrees=True)
    middle = corner + turn.apply([0.5 * edge, 0.5 * edge, 0.0])
    facing_up = turn * Rotation.from_euler("x", 180.0, degrees=True)
    cloth = replace(
        body,
        cells=(count, count),
        size=(edge, edge),
        position=tuple(middle.tolist()),
        rotation=tuple(facing_up.as_rotvec(degrees=True).tolist()),
        density=MASS * (count + 1) ** 2 / (edge**2 * body.thickness),
    )
    return replace(file, bodies={**file.bodies, CLOTH: cloth})
