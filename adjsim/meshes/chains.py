"""Points in a row, each joined to the next: what springs make a rope of.

Tests: `tests/meshes/test_chains.py`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adjsim import checks


class Chain(NamedTuple):
    """Points and the edges between neighbours.

    Attributes
    ----------
    points : ndarray
        Positions, (n_points, 3) [m].
    edges : ndarray
        The two points of each edge, (n_points - 1, 2) int64.
    """

    points: np.ndarray
    edges: np.ndarray


def chain(
    n_points: int, start: Sequence[float] = (0.0, 0.0, 0.0), end: Sequence[float] = (1.0, 0.0, 0.0)
) -> Chain:
    """Return evenly spaced points from `start` to `end`, both included.

    Parameters
    ----------
    n_points : int
        At least 2.
    start, end : sequence of float
        First and last point, (3,) [m].

    Returns
    -------
    Chain

    Raises
    ------
    ValueError
        If there are fewer than two points, or the ends are at the same place.

    Examples
    --------
    >>> from adjsim.meshes import chain
    >>> print(chain(3).points)
    [[0.  0.  0. ]
     [0.5 0.  0. ]
     [1.  0.  0. ]]
    """
    n_points = checks.whole("n_points", n_points, 2)
    first, last = checks.array("start", start, (3,)), checks.array("end", end, (3,))
    if (first == last).all():
        raise ValueError(
            f"`start` and `end` must differ, got {first.tolist()} twice: the chain would have "
            "no length."
        )
    points = first + np.linspace(0.0, 1.0, n_points)[:, None] * (last - first)
    points[-1] = last
    number = np.arange(n_points)
    return Chain(points, np.stack([number[:-1], number[1:]], axis=1))
