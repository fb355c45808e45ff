"""Other packages that `adjsim run timing` times beside adjsim, where they are installed.

Each has a file of its own, imported when it is run, written against the package's public
interface. A module has `prepare(problem, ...)`; what it returns computes the same thing as
adjsim, and that is checked before a time is believed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np


TETS, IMAGES = "tets", "images"
MAX_DIFFERENCE = 1e-3  # of a peer's trajectory from ours, over the largest displacement


@dataclass(frozen=True)
class Peer:
    """Another package.

    Attributes
    ----------
    name : str
    module : str
        Module under `studies.peers`.
    part : str
        "tets" or "images".
    needs : tuple of str
        Modules that must be importable.
    install : str
        How to get them.
    note : str
        What of it is timed.
    """

    name: str
    module: str
    part: str
    needs: tuple[str, ...]
    install: str
    note: str

    def missing(self) -> str | None:
        """Return what is missing and how to get it, or None."""
        absent = [name for name in self.needs if find_spec(name) is None]
        return f"not installed: {self.install}" if absent else None

    def load(self) -> Any:
        """Import the module."""
        return import_module(f"studies.peers.{self.module}")


@dataclass(frozen=True, eq=False)
class PeerRun:
    """What a peer can do with one problem.

    Attributes
    ----------
    forward : callable
        Runs the rollout, or draws the image, and waits for it.
    result : callable
        What the last `forward` computed: last positions (n_nodes, 3), or an RGB(A) image.
    gradient : callable, optional
        Runs forward and reverse, and waits.
    grad_mu : callable, optional
        The last gradient of sum(x^2)/2 by mu of each tetrahedron, (n_tets,).
    reset : callable
        What must be done before `forward` or `gradient`, not timed.
    """

    forward: Callable[[], object]
    result: Callable[[], np.ndarray]
    gradient: Callable[[], object] | None = None
    grad_mu: Callable[[], np.ndarray] | None = None
    reset: Callable[[], object] = field(default=lambda: None)


PEERS = (
    Peer(
        "Taichi",
        "taichi_tets",
        TETS,
        ("taichi",),
        "pip install taichi",
        "neo-Hookean tetrahedra with contact, unrolled steps in one kernel, forward",
    ),
    Peer(
        "JAX",
        "jax_tets",
        TETS,
        ("jax", "jaxlib"),
        "pip install jax",
        "the same in jax.numpy, lax.scan over the steps, jit, value_and_grad",
    ),
)


def node_slots(tets: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the corners of each node are: `slots[ptr[i]:ptr[i + 1]]`, e * 4 + corner."""
    flat = tets.ravel()
    order = np.argsort(flat, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=n_nodes))])
    return ptr, order
