"""Other packages that `adjsim run timing` times beside adjsim, where they are installed.

Each has a file of its own, imported when it is run, written against the package's public
interface. A module has `prepare(problem, ...)`; what it returns computes the same thing as
adjsim, and that is checked before a time is believed.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np

from adjsim.extras import how_to_install
from studies.manifest import version


TETS, IMAGES = "tets", "images"
TOGETHER = how_to_install("peers")
MAX_DIFFERENCE = 1e-3  # of a peer's trajectory from ours, over the largest displacement
MAX_UNCOVERED = 0.03  # pixels covered in one image only; the outline is 2 % of them
TRIAL = 60.0  # longest trial of a package that may abort [s]


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
    may_abort : bool
        It may end the process where it cannot run; so its module is first run in one apart.
    """

    name: str
    module: str
    part: str
    needs: tuple[str, ...]
    install: str
    note: str
    may_abort: bool = False

    @property
    def version(self) -> str | None:
        """The version, by whatever name it was distributed; None where it is not installed."""
        module = self.needs[0]
        names = metadata.packages_distributions().get(module, [])
        return next(iter(map(version, names)), None)

    def missing(self) -> str | None:
        """Return what is missing and how to get it, or None."""
        absent = [name for name in self.needs if find_spec(name) is None]
        return f"not installed: {self.install}" if absent else None

    def trouble(self) -> str | None:
        """Run a module that may abort in a process apart; return how it ended, if badly."""
        if not self.may_abort:
            return None
        command = [sys.executable, "-m", f"studies.peers.{self.module}"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TRIAL, check=False)
        except subprocess.TimeoutExpired:
            return f"its trial took more than {TRIAL:g} s"
        if done.returncode == 0:
            return None
        return f"its trial ended with {done.returncode}; it needs: {self.install}"

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
        What the last `forward` computed: last positions (n_nodes, 3), or which pixels are
        covered, (height, width) bool.
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
        TOGETHER,
        "neo-Hookean tetrahedra with contact, unrolled steps in one kernel, forward",
    ),
    Peer(
        "JAX",
        "jax_tets",
        TETS,
        ("jax", "jaxlib"),
        TOGETHER,
        "the same in jax.numpy, lax.scan over the steps, jit, value_and_grad",
    ),
    Peer(
        "Newton",
        "newton_tets",
        TETS,
        ("newton", "warp"),
        TOGETHER,
        "its neo-Hookean tetrahedra in free fall, semi-implicit, graph capture, tape",
    ),
    Peer(
        "DEODR",
        "deodr_images",
        IMAGES,
        ("deodr", "trimesh"),
        TOGETHER,
        "hard faces with antialiased outline, its C++ adjoint",
    ),
    Peer(
        "PyTorch3D",
        "pytorch3d_images",
        IMAGES,
        ("pytorch3d", "torch"),
        "pip install torch==2.12.0 easypytorch3d fvcore, or PyTorch3D from its sources",
        "SoftRas: 8 faces a pixel, flat colours in the paper's blend, gradient of the vertices",
    ),
    Peer(
        "Mitsuba",
        "mitsuba_images",
        IMAGES,
        ("mitsuba", "drjit"),
        f"{TOGETHER}, and LLVM as a shared library, e.g. Debian's libllvm19",
        "16 samples a pixel, projective integrator, gradient of the vertices",
        may_abort=True,
    ),
)


def node_slots(tets: np.ndarray, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the corners of each node are: `slots[ptr[i]:ptr[i + 1]]`, e * 4 + corner."""
    flat = tets.ravel()
    order = np.argsort(flat, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(flat, minlength=n_nodes))])
    return ptr, order
