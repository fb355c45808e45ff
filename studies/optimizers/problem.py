"""What an optimizer needs to know of a study, and how it ends."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adjsim.system import RolloutError
from studies.optimizers.jacobian import Jacobian
from studies.runs.errors import NotFiniteError
from studies.scene.declared import Search


# What is raised where numbers are not finite: by a rollout, a loss, or a matrix of a fit.
NOT_FINITE = (RolloutError, NotFiniteError, FloatingPointError, np.linalg.LinAlgError)


class Problem(Protocol):
    """A loss over theta; with few parameters also residuals r with loss = r @ r."""

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of theta, `(n,)` each; infinite where there are none."""
        ...

    @property
    def dtype(self) -> str:
        """Kind of number that the loss is worked out in."""
        ...

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient, `(n,)`: one forward and one reverse sweep."""
        ...

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return the residuals r, flat, with loss = r @ r."""
        ...

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, Jacobian | np.ndarray]:
        """Return r and dr/dtheta, `(n_residuals, n)`: one tangent rollout a column."""
        ...

    def values(self, theta: np.ndarray) -> Mapping[str, Any]:
        """Return the natural values by path, for the log."""
        ...


class Method(enum.StrEnum):
    """How theta is improved."""

    GRADIENT_DESCENT = "gradient-descent"
    ADAM = "adam"
    LBFGSB = "l-bfgs-b"
    GAUSS_NEWTON = "gauss-newton"
    NEWTON_CG = "newton-cg"
    LEVENBERG = "levenberg"
    POLYAK = "polyak"


class Status(enum.Enum):
    """How a minimization ended; the value is the message."""

    CONVERGED = "The tolerance is reached."
    SETTLED = "The loss no longer falls."
    MAX_EVALUATIONS = (
        "The evaluations are spent before the tolerance is reached. Raise "
        "`search.max_evaluations`, or loosen `search.tolerance`."
    )
    STALLED = (
        "No step lowers the loss any further, though the tolerance is not reached. At a "
        "loss near rounding this is as far as it goes; otherwise start nearer, or take a "
        "pyramid loss."
    )
    NOT_FINITE = (
        "The loss is not finite: the rollout blew up. Lower `world.dt`, move the start, or "
        "tighten the bounds."
    )

    @property
    def is_finished(self) -> bool:
        """Whether the search went as far as it can: more evaluations would not help."""
        return self in (Status.CONVERGED, Status.SETTLED)


@dataclass(frozen=True, eq=False)
class Settings:
    """What every method takes beside an evaluator and a start."""

    how: Search
    tolerance: float  # at which it ends, see `minimize`
    bounds: tuple[np.ndarray, np.ndarray]  # of theta, (n,) each
    eps: float  # rounding of the problem's numbers


class SearchEnd(Exception):  # noqa: N818 -- no error
    """Raised inside an optimizer to end the search with a status."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


@dataclass(frozen=True)
class Stall:
    """When a loss counts as settled: it has hardly fallen over the last trials.

    A trial is an evaluation with a finite loss at a new theta; Jacobians do not count.
    """

    # The best loss must fall by more than this part of itself over `trials` trials [-]
    least_fall: float = 1e-4
    # First-order methods, whose curves have plateaus, need more than line searches do
    trials: int = 8
    # It is given up where the best loss is above this after `tries` trials
    hopeless: float = np.inf
    tries: int = 4
    # It is given up where so many steps that fall as the last Jacobian promises end above `needed`
    needed: float = np.inf
    steps: int = 6


@dataclass(frozen=True)
class Result:
    """The best theta evaluated, and how the search ended; `evaluations` counts rollouts."""

    theta: np.ndarray
    loss: float
    status: Status
    evaluations: int

    @property
    def message(self) -> str:
        """What the status means."""
        return self.status.value
