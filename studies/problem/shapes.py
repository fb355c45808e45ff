r"""Losses of shape of free vertices, beside the loss of the pictures.

    loss = sum over pictures of their mean square of differences in colour / SEEN^2
           + n / SEEN^2 (laplacian L(x/s) + edge_length E(x/s) + normals N(x))

with n the sum of the weights of the pictures, s half of the body's longest side, and L, E and N as
in `render/shape_losses.py`. So a weight does not depend on the size of the body, nor on how many
pictures there are.

Tests: `tests/studies/problem/test_still.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adjoint.render.shape_losses import shape_loss_vjp
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency, ShapeLoss
from studies.scene import declared
from studies.scene.building import Built


VERTICES = ".vertices"


@dataclass(frozen=True, eq=False)
class ShapeLosses:
    """Weighted losses of the vertices of one body."""

    path: str  # "BODY.vertices"
    weighted: Sequence[tuple[float, ShapeLoss]]

    def value(self, x: np.ndarray) -> float:
        """Return their sum at vertices x, (n, 3) [m]."""
        return sum((weight * loss(x) for weight, loss in self.weighted), start=0.0)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return its gradient, (n, 3) [1/m]."""
        parts = [shape_loss_vjp(loss, x, weight) for weight, loss in self.weighted]
        return sum(parts, start=np.zeros_like(x))


def shape_losses(free: Mapping[str, declared.Free], built: Built) -> tuple[ShapeLosses, ...]:
    """Return the losses of shape of all bodies whose vertices are free."""
    found = []
    for path, one in free.items():
        if not path.endswith(VERTICES) or path not in built.values:
            continue
        known = built.values[path]
        points, size = known.value, float(known.scale)
        faces = np.asarray(built.meshes[path.removesuffix(VERTICES)].faces)
        laplacian, edges = Laplacian(faces), EdgeLength(faces)
        ends = points[edges.ends]
        length = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean())
        weighted = [
            (one.laplacian / size**2, laplacian),
            (one.edge_length / size**2, EdgeLength(faces, length)),
            (one.normals, NormalConsistency(faces)),
        ]
        found.append(ShapeLosses(path, [pair for pair in weighted if pair[0]]))
    return tuple(found)
