"""A pendulum as a subject: rods and bobs, whose lengths are those of the system itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.render.pendulum import rods_and_bobs_jvp, rods_and_bobs_vjp
from render.pendulum import RodsAndBobs
from studies.scene.filming import Pulled, Subject
from studies.scene.motion import Motion


@dataclass(frozen=True, eq=False)
class HangingRods(Subject):
    """The vertices of a pendulum. An image shows its length twice: as it swings, and as drawn."""

    shape: RodsAndBobs

    def vertices(self, motion: Motion, run: Any) -> np.ndarray:
        """Return the vertices of every frame."""
        return self.shape.vertices(run.angle, length_of(motion))

    def vertices_jvp(
        self, motion: Motion, run: Any, tan_run: Any, tangents: Mapping[str, Any]
    ) -> np.ndarray:
        """Return their tangent."""
        length = length_of(motion)
        tan_length = tangents.get("length", np.zeros_like(length))
        return rods_and_bobs_jvp(self.shape, run.angle, length, tan_run.angle, tan_length)

    def vertices_vjp(self, motion: Motion, run: Any, adj_vertices: np.ndarray) -> Pulled:
        """Pull their cotangent back to the angles and the lengths."""
        length = length_of(motion)
        adj_angle, adj_length = rods_and_bobs_vjp(self.shape, run.angle, length, adj_vertices)
        return Pulled({"angle": adj_angle}, {"length": adj_length})


def length_of(motion: Motion) -> np.ndarray:
    """Return the lengths of the rods [m]."""
    return motion.system.parameters()["length"]
