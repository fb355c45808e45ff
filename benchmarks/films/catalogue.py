"""The meshes of the films, by the name of the file that the user has."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pyvista

from benchmarks.films.meshes import box, fill


Mesh = tuple[np.ndarray, np.ndarray]


@cache
def ball(radius: float, edge: float) -> Mesh:
    """Return a ball of tetrahedra."""
    return fill(pyvista.Icosphere(radius=radius, nsub=2), edge)


MESHES: dict[str, Callable[[], Mesh]] = {
    "beam.vtu": partial(box, (0.4, 0.06, 0.06), (16, 3, 2)),
    "ball.vtu": partial(ball, 0.1, 0.045),
}
