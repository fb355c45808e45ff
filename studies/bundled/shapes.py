"""Instance k looks at shape k of fourteen, from the first again after the last.

With a free camera it is seen from anywhere, in colours that tell its places apart. With a free
texture another one is hidden, or with free vertices another shape, stretched and turned.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.meshes.shapes import shape
from studies.scene.declared import Rigid, SceneFile


THING = "thing"
SHAPES = (
    "apple", "banana", "dog", "airplane", "cube", "sphere", "cylinder", "cone", "capsule", "torus",
    "star", "gear", "bowl", "chair",
)  # fmt: skip
HIDDEN = (  # of free vertices: a sphere cannot become a shape with a hole
    "banana", "apple", "star", "dog", "cone", "cube", "capsule", "cylinder", "airplane", "gear",
    "bowl", "chair", "sphere",
)  # fmt: skip
TEXELS = 32, 48  # rows and columns of a hidden texture
STRETCH, TURN = (0.8, 1.2), (0.0, 180.0)  # along each axis, and about a random one [deg]


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene of an instance."""
    body = file.bodies[THING]
    assert isinstance(body, Rigid)
    if f"{THING}.vertices" in file.free:
        hidden = _stretched_and_turned(HIDDEN[instance % len(HIDDEN)], rng)
        truth = {f"bodies.{THING}.{key}": value for key, value in hidden.items()}
        return replace(file, truth={**truth, **file.truth})
    name = SHAPES[instance % len(SHAPES)]
    if f"{THING}.look.texels" in file.free:
        height, width = body.look.texels or TEXELS
        painted = {f"{THING}.look.texels": _painted(height, width, rng)}
        file = replace(file, truth={**painted, **file.truth})
    return replace(file, bodies={**file.bodies, THING: replace(body, mesh=f"shape:{name}")})


def _painted(height: int, width: int, rng: np.random.Generator) -> Any:
    """Return a texture, height rows of width colours, all of it inside (0, 1).

    Six fields, three across, of smooth colours whose phases are drawn; on every other field a
    checkerboard darkens them, on the others lies a disc.
    """
    y, x = np.meshgrid(
        (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width, indexing="ij"
    )
    phase = rng.uniform(0.0, 2.0 * np.pi, (2, 3))
    wave = np.sin(2.0 * np.pi * x[..., None] + phase[0]) * np.cos(
        2.0 * np.pi * y[..., None] + phase[1]
    )
    colors = 0.58 + 0.34 * wave
    field = (np.floor(2.0 * y) + np.floor(3.0 * x)) % 2 == 0
    across, down = (3.0 * x) % 1.0, (2.0 * y) % 1.0
    board = (np.floor(8.0 * across) + np.floor(8.0 * down)) % 2 == 1
    colors[field & board] *= 0.3
    colors[~field & (np.hypot(across - 0.5, down - 0.5) < 0.25)] = (0.95, 0.93, 0.88)
    return tuple(tuple(tuple(texel) for texel in row) for row in colors.tolist())


def _stretched_and_turned(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """Return the keys of a body whose farthest point from the middle of its box is 1 m away."""
    factors = rng.uniform(*STRETCH, size=3)
    axis = rng.standard_normal(3)
    turn = Rotation.from_rotvec(np.radians(rng.uniform(*TURN)) * axis / np.linalg.norm(axis))
    points = turn.apply(shape(name).points * factors)
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    scale = 1.0 / np.linalg.norm(points - middle, axis=1).max()
    return {
        "mesh": f"shape:{name}",
        "scale": tuple((scale * factors).tolist()),
        "rotation": tuple(turn.as_rotvec(degrees=True).tolist()),
        "position": tuple((-scale * middle).tolist()),
    }
