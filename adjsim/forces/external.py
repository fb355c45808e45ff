r"""External forces on nodes or points of bodies: given vectors in world axes.

    f_i = force_k   in steps first <= k < last, else 0

Row k of a series acts in step k, which makes state k + 1. The series is all that an element
knows. At a point of a body it turns the body too, by the moment of `adjsim/rigid/body_step.py`.

Adjoint: `adjoint/forces/external.py`. Tests: `tests/forces/test_external.py`.
Source: gradSim (ICLR 2021) eq. 4, and 2 for bodies: the given part of f.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.forces.acted_rows import NODES
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn
from adjsim.series import freeze_series
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter


@device_fn
def external_force(x, v, consts, params, series):
    """Return the force [N] on one node."""
    return (series,)  # (1)


@device_fn
def external_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `external_force`."""
    return (tan_series,)  # (1)


EXTERNAL = ElementKind(
    "external", external_force, 1, 0, 0, 3, uses_velocity=False, jvp=external_jvp
)


@dataclass(frozen=True, eq=False)
class ExternalForces(Force):
    """Given forces on nodes or points of bodies, in world axes.

    Parameters
    ----------
    load_nodes : array or sequence of str
        The nodes that they act on, (n_loads,) integer; forces on a node named twice add up.
        With bodies in `acts_on` names of their points, as "tip" or "block.tip", or numbers of
        their vertices too; one name may come alone.
    force : array or Signal
        [N]: (3,), the same on each of the nodes, or (n_loads, 3); (n_steps, n_loads, 3) with row k
        acting in step k; or a `Signal` over control points of either of the first two. Rows of
        steps that are the same for all loads are `Signal(range(n_steps), rows)`: an array (k, 3)
        is always one row per load.
    window : pair of int, optional
        (first, last): they act in steps first <= k < last. None: in all of them. A rollout
        that ends before the window opens says so in a warning: it is cut short, or the window
        is wrong, and then the gradient of the force is 0.
    acts_on : str or sequence of str
        "nodes", the name of a set of rigid bodies, or several of these.

    Raises
    ------
    ValueError
        If an array has the wrong shape or is not finite, or the window is empty.
    """

    load_nodes: Any
    force: Any
    window: Any = None
    acts_on: str | Sequence[str] = NODES

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("force", "f", "N", "(3,), (n_loads, 3) or (n_steps, n_loads, 3)"),
    )
    KIND = EXTERNAL
    SERIES: ClassVar = ("force", (3,))
    ELEMENTS = "load_nodes"

    def __post_init__(self) -> None:
        names = _names(self.load_nodes)
        if names is None:
            nodes = checks.integers("load_nodes", self.load_nodes, ("n_loads",))
            checks.freeze(self, "load_nodes", nodes)
        else:
            object.__setattr__(self, "load_nodes", names)
        freeze_series(self, "force", ((3,), (len(self.load_nodes), 3)))
        if self.window is not None:
            window = checks.integers("window", self.window, (2,))
            if not 0 <= window[0] < window[1]:
                raise ValueError(
                    f"`window` must be (first, last) with 0 <= first < last: forces act in steps "
                    f"first to last - 1, got {tuple(window.tolist())}."
                )
            object.__setattr__(self, "window", (int(window[0]), int(window[1])))

    def pack_series(self, n_steps: int) -> np.ndarray:
        """The forces, 0 outside the window, (1 or n_steps, n_loads, 3)."""
        return windowed(super().pack_series(n_steps), self.window, n_steps)

    def series_jvp(self, tangents: Mapping[str, np.ndarray], n_steps: int) -> np.ndarray:
        """Push a tangent of the force to rows, 0 outside the window."""
        return windowed(super().series_jvp(tangents, n_steps), self.window, n_steps)

    def check_steps(self, n_steps: int, name: str) -> None:
        """Raise on a series of another length, warn of a window that never opens."""
        super().check_steps(n_steps, name)
        if self.window is not None and self.window[0] >= n_steps:
            warnings.warn(
                f"`{name}.window` opens in step {self.window[0]}, but the last of the rollout's "
                f"{n_steps} steps is step {n_steps - 1}: these forces never act. Steps count from "
                "0, and row k of a series acts in step k.",
                stacklevel=2,
            )


def _names(given: Any) -> tuple[str, ...] | None:
    """Return the names of points that are given, or None for numbers."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, (list, tuple)) and given and all(isinstance(n, str) for n in given):
        return tuple(given)
    return None


def windowed(rows: np.ndarray, window: tuple[int, int] | None, n_steps: int) -> np.ndarray:
    """Return rows of every step, 0 outside the window; as they are where there is none."""
    if window is None:
        return rows
    steps = np.arange(n_steps)
    inside = (window[0] <= steps) & (steps < window[1])
    return np.where(inside[:, None, None], rows, 0.0)
