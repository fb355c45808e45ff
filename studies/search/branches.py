"""Local searches from several starts, stage by stage: merged, compared and given up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.search.coarse import is_log
from studies.search.found import Basin
from studies.search.logs import log_names
from studies.search.optimizers.evaluations import Evaluation, Evaluator
from studies.search.optimizers.minimize import minimize
from studies.search.optimizers.problem import Method, Result, Status
from studies.search.robust_settings import (
    RobustProblem,
    RobustSearch,
    answers_of,
    steps_are_long,
    with_steps_for,
)


HOPELESS = 4.0  # times the best loss of the same stage
SAME = 0.01  # of a positive value, or of the range of another one: two answers are the same
REPEATS = 3  # with new time steps


@dataclass(eq=False)
class _Watch:
    """Shows evaluations, and keeps whether one blew up: its time steps may have been too long."""

    progress: EvaluationProgress
    blew_up: bool = False

    def __call__(self, evaluation: Evaluation) -> None:
        self.blew_up |= not np.isfinite(evaluation.loss)
        self.progress(evaluation)


@dataclass(frozen=True, eq=False)
class LocalSearches:
    """The local searches of a robust search."""

    problem: RobustProblem
    how: RobustSearch
    folder: RunFolder
    progress: EvaluationProgress
    n_stages: int
    place: str
    n_basins: int

    @property
    def method(self) -> Method:
        """How the local searches go."""
        return self.how.method_for(self.problem.parameters.size)

    def log_name(self, basin: Basin, number: int, ending: str = "") -> str:
        """Return the name of a log of a stage."""
        name = log_names(basin.number, self.n_stages, self.place)[number]
        return name.replace(".jsonl", f"{ending}.jsonl")

    def search(
        self,
        problem: RobustProblem,
        basin: Basin,
        number: int,
        label: str,
    ) -> Basin:
        """Return a basin after a stage, repeated while its end needs shorter time steps."""
        is_whole = number == self.n_stages - 1
        tolerance = self.how.tolerance if is_whole else float(np.sqrt(self.how.tolerance))
        basin = self._with_better_start(problem, basin, number)
        for attempt in range(REPEATS + 1):
            name = self.log_name(basin, number, f"-steps-{attempt + 1}" if attempt else "")
            stage = f"{label}, new time step" if attempt else label
            self.progress.begin(f"basin {basin.number + 1}/{self.n_basins}, stage {stage}")
            stepped = with_steps_for(problem, basin.theta)
            watch = _Watch(self.progress)
            result = minimize(
                stepped,
                basin.theta,
                self.method,
                max_evaluations=self.how.max_evaluations,
                tolerance=tolerance,
                options=self.how.options,
                log=self.folder.file(name),
                callback=watch,
                stage=stage,
                stall=self.how.stall,
            )
            basin = replace(
                basin,
                theta=result.theta,
                loss=result.loss,
                status=result.status,
                evaluations=basin.evaluations + result.evaluations,
                logs=(*basin.logs, name),
                step_theta=basin.theta,
                is_searched=is_whole,
            )
            is_walled = result.status is Status.STALLED and watch.blew_up
            has_moved = not np.array_equal(basin.theta, basin.step_theta)
            if not (has_moved and (is_walled or steps_are_long(stepped, result.theta))):
                break
        return basin

    def _with_better_start(self, problem: RobustProblem, basin: Basin, number: int) -> Basin:
        """Return the basin at its coarse point if the stage before led away from the answer."""
        if not basin.logs:
            return basin
        log = self.log_name(basin, number, "-start")
        thetas = (basin.theta, basin.starts[0])
        losses = [one.loss for one in self._evaluations(problem, thetas, log)]
        theta = thetas[int(np.argmin(losses))]
        return replace(basin, theta=theta, evaluations=basin.evaluations + len(losses))

    def evaluated(self, problem: RobustProblem, basin: Basin) -> Basin:
        """Return a basin with the loss of a problem where it is; one evaluation."""
        name = self.log_name(basin, self.n_stages - 1, "-end")
        (one,) = self._evaluations(problem, (basin.theta,), name)
        return replace(
            basin, loss=one.loss, evaluations=basin.evaluations + 1, step_theta=basin.theta
        )

    def _evaluations(
        self, problem: RobustProblem, thetas: Sequence[np.ndarray], log: str
    ) -> list[Result]:
        """Return the losses at points, each with time steps that are stable there."""
        results = []
        for number, theta in enumerate(thetas):
            file = log.replace(".jsonl", f"-{number + 1}.jsonl") if number else log
            stepped = with_steps_for(problem, theta)
            evaluator = Evaluator(stepped, 1, log=self.folder.file(file))
            is_squares = self.method is Method.GAUSS_NEWTON
            one = evaluator.residual(theta) if is_squares else evaluator.gradient(theta)
            results.append(Result(theta, one.loss, Status.MAX_EVALUATIONS, 1))
        return results

    def merged(self, basins: Sequence[Basin]) -> list[Basin]:
        """Return the basins without those that arrived at the point of a better one."""
        kept: list[Basin] = []
        for basin in sorted(basins, key=lambda basin: (basin.loss, basin.number)):
            same = [i for i, one in enumerate(kept) if self._is_same(one.theta, basin.theta)]
            if not same:
                kept.append(basin)
                continue
            one = kept[same[0]]
            self.progress.say(f"basin {basin.number + 1} led to the same point as {one.number + 1}")
            kept[same[0]] = replace(one, starts=np.concatenate([one.starts, basin.starts]))
        return sorted(kept, key=lambda basin: basin.number)

    def _is_same(self, a: np.ndarray, b: np.ndarray) -> bool:
        """Return whether two answers differ by no more than `SAME`."""
        parameters, answers = self.problem.parameters, list(answers_of(self.problem))
        width = parameters.upper - parameters.lower
        scale = np.where(np.isfinite(width), width, np.maximum(np.abs(a), np.abs(b)))
        scale = np.where(is_log(parameters), 1.0, scale)
        return bool((np.abs(a - b) <= SAME * scale)[answers].all())

    def split_hopeless(self, basins: Sequence[Basin]) -> tuple[list[Basin], list[Basin]]:
        """Return the basins to go on with, and those to give up."""
        best = min((basin.loss for basin in basins), default=np.inf)
        limit = HOPELESS * best if np.isfinite(best) else np.inf
        for basin in basins:
            if basin.loss > limit:
                self.progress.say(
                    f"basin {basin.number + 1} is given up: its loss {basin.loss:.3e} is more than "
                    f"{HOPELESS:g} times the best of this stage, {best:.3e}"
                )
        keep = [basin for basin in basins if basin.loss <= limit]
        return keep, [basin for basin in basins if basin.loss > limit]
