r"""The motion that looks the same in one film, but for its depth.

A film from far away shows no depth: a motion that is reflected in the plane across the view looks
nearly the same. With the unit vector n along the view, velocities and spins are reflected as

    v -> v - 2 (v n) n        a vector
    w -> -w + 2 (w n) n       an axial vector

A search that ends in one of the two has found a basin, and the other one is always worth a try.
"""

import numpy as np

from studies.problem.films import FilmObserver
from studies.problem.problem import SceneProblem


VECTORS, AXIAL = ("velocity",), ("spin", "rotation")  # the last parts of their paths
SMALL = 1e-3  # of a vector: a smaller change is none


def mirrored(problem: SceneProblem, theta: np.ndarray) -> np.ndarray | None:
    """Return theta of the motion reflected across the view of the first film.

    None if the free parameters hold no vector that changes.
    """
    views = [one for one in problem.observers if isinstance(one, FilmObserver)]
    if not views:
        return None
    along = views[0].camera.pose()[1][2]
    values = problem.parameters.values(theta)
    changed = False
    for path, value in values.items():
        name = path.rpartition(".")[2]
        if value.shape != (3,) or name not in (*VECTORS, *AXIAL) or path.startswith("cameras."):
            continue
        other = value - 2.0 * (value @ along) * along
        other = -other if name in AXIAL else other
        changed |= bool(np.abs(other - value).max() > SMALL * np.linalg.norm(value))
        values[path] = other
    if not changed:
        return None
    natural = np.concatenate([np.ravel(value) for value in values.values()])
    low, high = problem.bounds
    width = np.where(np.isfinite(high - low), high - low, 1.0)
    return np.clip(problem.parameters.theta(natural), low + 1e-6 * width, high - 1e-6 * width)
