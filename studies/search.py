"""How a study searches: method, budget, and from how many points it starts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjsim import checks
from render.losses import ImageLoss, Mse, PyramidMse
from studies import run_folder
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options, Result
from studies.parameters import Parameters
from studies.progress import EvaluationProgress
from studies.run_folder import RunFolder
from studies.video_problem import VideoProblem


@dataclass(frozen=True)
class Search:
    """How the optimum is looked for: the table `optimizer` of the settings.

    Attributes
    ----------
    max_evaluations : int
        Budget of each start.
    starts : int
        From the given start, and from so many less one drawn inside the bounds.
    enough : float
        Part of the loss at the given start; once a search ends below it, no other begins.
    """

    method: Method
    max_evaluations: int
    tolerance: float
    options: Options
    starts: int = 1
    enough: float = 0.0


@dataclass(frozen=True, eq=False)
class Found:
    """The best of all starts, and how each of them ended."""

    best: Result
    start: int
    all: tuple[Result, ...]

    @property
    def log(self) -> str:
        """Name of the log of the start that ended best."""
        return log_name(self.start)

    @property
    def evaluations(self) -> int:
        """Rollouts of all starts together."""
        return sum(result.evaluations for result in self.all)


def log_name(start: int) -> str:
    """Return the name of the log of a start: iterations.jsonl, iterations-2.jsonl, ..."""
    name = run_folder.ITERATIONS
    return name if start == 0 else name.replace(".", f"-{start + 1}.")


def search(
    problem: VideoProblem,
    how: Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: int,
) -> Found:
    """Search from every start, or go on where the folder's logs end."""
    results: list[Result] = []
    thetas = start_points(problem.parameters, how.starts, seed)
    enough = 0.0
    for k, theta in enumerate(thetas):
        progress.begin(f"start {k + 1}/{how.starts}" if how.starts > 1 else "")
        log = folder.file(log_name(k))
        losses: list[float] = []

        def watch(evaluation: Any, losses: list[float] = losses) -> None:
            losses.append(evaluation.loss)
            progress(evaluation)

        results.append(
            minimize(
                problem,
                theta,
                how.method,
                max_evaluations=how.max_evaluations,
                tolerance=how.tolerance,
                options=how.options,
                log=log,
                callback=watch,
            )
        )
        if k == 0 and losses and np.isfinite(losses[0]):
            enough = how.enough * losses[0]
        if results[-1].loss <= enough:
            break
    best = int(np.argmin([result.loss for result in results]))
    return Found(results[best], best, tuple(results))


def start_points(parameters: Parameters, count: int, seed: int) -> list[np.ndarray]:
    """Return the given start, and others drawn evenly inside the bounds of theta."""
    rng = np.random.default_rng([seed, 1])
    low, high = parameters.lower, parameters.upper
    if count > 1 and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise StudyError("`optimizer.starts` above 1 needs finite bounds to draw starts from.")
    return [
        parameters.start if k == 0 else low + (high - low) * rng.uniform(size=len(low))
        for k in range(count)
    ]


def make_search(table: dict[str, Any]) -> Search:
    """Return the search of the settings' table `optimizer`."""
    names = [str(method) for method in Method]
    try:
        method = Method(checks.known_key("method in `optimizer.method`", table["method"], names))
    except ValueError as error:
        raise StudyError(str(error)) from error
    for key in ("max_evaluations", "tolerance"):
        checks.positive(f"optimizer.{key}", table[key])
    starts, enough = table.get("starts", 1), table.get("enough", 0.0)
    checks.positive("optimizer.starts", starts)
    checks.non_negative("optimizer.enough", enough)
    momentum = table.get("momentum", Options.momentum)
    if not 0.0 <= momentum < 1.0:
        raise StudyError(f"`optimizer.momentum` must be in [0, 1), got {momentum:g}.")
    rate = table.get("learning_rate", Options.learning_rate)
    checks.positive("optimizer.learning_rate", rate)
    options = Options(learning_rate=rate, momentum=momentum)
    return Search(method, table["max_evaluations"], table["tolerance"], options, starts, enough)


def make_loss(table: dict[str, Any]) -> ImageLoss:
    """Return the loss of the settings' table `loss`."""
    kinds = ("mse", "pyramid")
    if checks.known_key("kind in `loss.kind`", table["kind"], kinds) == "mse":
        return Mse()
    checks.positive("loss.levels", table["levels"])
    return PyramidMse(table["levels"])
