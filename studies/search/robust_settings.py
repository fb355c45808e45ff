"""What a robust search needs to know: its settings, and the problem it searches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np

from studies.problem.parameters import Parameters
from studies.runs.errors import StudyError
from studies.search.optimizers.problem import Method, Options, Problem, Stall


MOST_TANGENTS = 40  # with more components of theta a gradient is cheaper than a Jacobian


class RobustProblem(Problem, Protocol):
    """A problem whose loss has parts by frame, and which knows easier ones to begin with."""

    @property
    def parameters(self) -> Parameters:
        """What is free."""
        ...

    def at_stage(self, stage: float) -> Self:
        """Return an easier problem; 1 is the problem itself."""
        ...

    def name_of_stage(self, stage: float) -> str:
        """Return what is looked at in a stage."""
        ...

    def with_steps_for(self, theta: np.ndarray) -> Self:
        """Return the same problem with time steps that are stable at theta."""
        ...

    def steps_are_long(self, theta: np.ndarray) -> bool:
        """Whether its own time steps are too long at theta."""
        ...

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are the question, not nuisances."""
        ...

    def losses_by_frame(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return the loss of each frame alone, (n_points, n_frames); inf where it blew up."""
        ...


@dataclass(frozen=True)
class RobustSearch:
    """How the answer is searched: the table `search` of a scene file."""

    # Points of the coarse set beside the start; None: 13 for one axis, 64 for more. 0: none.
    coarse: int | None = None
    basins: int = 3  # local searches start from so many of the best basins
    # Growing parts of the film, the last one 1; or of pictures at rest shrinking factors of the
    # softness of edges, the last one 1
    stages: tuple[float, ...] = (0.3, 0.6, 1.0)
    max_evaluations: int = 200  # budget of each local search [rollouts]
    # Of `studies.search.optimizers.minimize`; stages before the last end at its root
    tolerance: float = 1e-5
    stall: Stall | None = field(default_factory=Stall)  # when the loss counts as settled
    # None: Gauss-Newton, or L-BFGS-B if theta has more than `MOST_TANGENTS` components
    method: Method | None = None
    options: Options = field(default_factory=Options)  # settings of the method
    # Components of theta that the coarse set varies; None: the problem's answers
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        steps = np.diff(self.stages)
        ends_well = bool(self.stages) and self.stages[0] > 0.0 and self.stages[-1] == 1.0
        if not ends_well or not ((steps > 0.0).all() or (steps < 0.0).all()):
            raise StudyError(
                "`search.stages` must be growing parts of the film that end with 1.0, such as "
                f"[0.3, 0.6, 1.0]; got {list(self.stages)}."
            )

    def method_for(self, size: int) -> Method:
        """Return how local searches with so many components of theta go."""
        return self.method or (Method.LBFGSB if size > MOST_TANGENTS else Method.GAUSS_NEWTON)
