"""Random soft balls: what is known of them differs from instance to instance."""

from dataclasses import replace
from typing import Any

import numpy as np

from studies.scene.declared import SceneFile, Soft
from studies.scene.mesh_source import read_source


BALL = "ball"
SPEED = (1.0, 3.0)  # along x [m/s]
PARTS = (0.5, 1.5)  # of the mass that an even ball's particle has
MU, LAM = (675.0, 825.0), (300.0, 450.0)  # [Pa]


def draw(file: SceneFile, rng: np.random.Generator, instance: int) -> SceneFile:
    """Return the scene with speed, and mass or material, whichever is known, of an instance."""
    del instance
    ball = file.bodies[BALL]
    assert isinstance(ball, Soft)
    known: dict[str, Any] = {"velocity": (rng.uniform(*SPEED), 0.0, 0.0)}
    if f"{BALL}.mu" not in file.free:
        known |= {"mu": rng.uniform(*MU), "lam": rng.uniform(*LAM)}
    if f"{BALL}.mass_factors" not in file.free:
        n = len(read_source(f"bodies.{BALL}", ball).mesh.points)
        known["mass_factors"] = tuple(rng.uniform(*PARTS, size=n).tolist())
    return replace(file, bodies={**file.bodies, BALL: replace(ball, **known)})
