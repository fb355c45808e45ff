"""Other packages that `python -m benchmarks.timing peers` times beside ours.

Each has a file of its own, written against the package's public interface, whose `prepare` returns
a `PeerRun`. A package is timed only if it computes what adjsim does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PeerRun:
    """What a peer can do with one problem."""

    forward: Callable[[], object]  # runs the rollout, or draws the image, and waits for it
    # Of the last `forward`: positions (n_nodes, 3), or covered pixels, (height, width) bool.
    result: Callable[[], np.ndarray]
    gradient: Callable[[], object]  # runs forward and reverse, and waits
    # The last gradient of sum(x^2)/2 by mu of each tetrahedron, (n_tets,).
    grad_mu: Callable[[], np.ndarray] | None = None
