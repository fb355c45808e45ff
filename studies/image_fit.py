"""Fit free parameters to images: search, certify, quantify, write the run folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from studies import outcome
from studies.certificate import certificate
from studies.errors import FailedSearchError
from studies.image_problem import ImageProblem
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Status
from studies.progress import EvaluationProgress
from studies.registry import RunOptions
from studies.reports.scene_run import write_report
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.search.local import Found, Search, search
from studies.truth import Truth
from studies.uncertainty import Uncertainty, uncertainty


REFIT_EVALUATIONS, REFIT_TOLERANCE = 20, 1e-6  # warm starts: a few steps are enough


@dataclass(frozen=True, eq=False)
class ImageFit(ABC):
    """A `studies.registry.Job`: fit a problem whose loss compares images.

    Attributes
    ----------
    problem : ImageProblem
    search : Search
    options : RunOptions
    title : str
        Heading of the report.
    units : dict
        Unit of each path.
    what : str
        What is looked at, for the report, e.g. "960 tetrahedra, 325 nodes".
    truth : Truth, optional
        Of a synthetic study.
    noise_repeats : int
        Further noise seeds to refit from the optimum, to count what the intervals cover.
    findings : callable, optional
        findings(theta) is what else the study has to say of its optimum, in sentences.
    instance : int
        Its number where there are many.
    """

    errors_are: ClassVar[str] = "relative error"  # what `errors` returns; "" for other measures

    problem: ImageProblem
    search: Search
    options: RunOptions
    title: str = field(kw_only=True)
    units: dict[str, str] = field(kw_only=True)
    what: str = field(kw_only=True)
    truth: Truth | None = field(default=None, kw_only=True)
    noise_repeats: int = field(default=0, kw_only=True)
    findings: Callable[[np.ndarray], list[str]] | None = field(default=None, kw_only=True)
    instance: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.truth is not None:
            self.truth.require_reachable(self.problem.parameters)

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what the result says of the images that are compared."""

    @abstractmethod
    def write_seen(self, folder: RunFolder, found: Found) -> None:
        """Write the images of start, target and fit, and what else there is to see."""

    def run(self, folder: RunFolder) -> str:
        """Search, or go on searching; then write results, figures and report."""
        with EvaluationProgress(self.search.max_evaluations) as progress:
            found, spread = self.solve(folder, progress, say=progress.say)
        progress.say("certifying the gradient")
        return "\n".join(self.finish(folder, found, spread, progress.say))

    def solve(
        self,
        folder: RunFolder,
        progress: EvaluationProgress,
        place: str = "",
        say: Callable[[str], None] = lambda _text: None,
    ) -> tuple[Found, Uncertainty]:
        """Search, or go on searching, and say how well the optimum is determined.

        `place` is where in the folder the logs are; `say` is told when the search has ended.
        """
        seed = (self.options.seed, self.instance)
        found = search(self.problem, self.search, folder, progress, seed=seed, place=place)
        if found.best.status is Status.NOT_FINITE:
            raise FailedSearchError(self.why_not_finite(found))
        say("search ended; looking how well its end is determined: tangents may first be compiled")
        return found, uncertainty(self.problem, found.best.theta)

    def why_not_finite(self, found: Found) -> str:
        """Return why there is no loss at the start."""
        return found.best.message

    def finish(
        self,
        folder: RunFolder,
        found: Found,
        spread: Uncertainty,
        say: Callable[[str], None] = lambda _text: None,
    ) -> list[str]:
        """Write results, figures and report; return a few lines of outcome.

        `say` is told what is done meanwhile.
        """
        theta = found.best.theta
        certified = certificate(self.problem, theta, self.options, say)
        say("certified; drawing films, figures and the report")
        result = outcome.result_json(self, found, spread, self._coverage(theta))
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        outcome.write_parameters(self, folder, found, spread)
        self.write_seen(folder, found)
        report = write_report(folder)
        return [*outcome.summary(result, certified), f"report: {report}"]

    def rows(self, theta: np.ndarray, spread: Uncertainty) -> list[dict[str, Any]]:
        """Return what is told of the optimum, one row for each number."""
        return outcome.rows(self, theta, spread)

    def errors(self, theta: np.ndarray) -> dict[str, Any]:
        """Return by name how far an optimum is from the truth: {"mean": .., more}."""
        if self.truth is None:
            raise TypeError("Instances need a truth to be held against.")
        parameters = self.problem.parameters
        errors = self.truth.errors(parameters.paths, parameters.natural(theta))
        by_path: dict[str, Any] = {}
        first = 0
        for path, value in parameters.values(theta).items():
            own = errors[first : first + np.size(value)]
            first += np.size(value)
            by_path[path] = {"mean": float(own.mean())}
            if np.size(value) > 1:
                by_path[path]["max"] = float(own.max())
            else:
                hidden = float(np.asarray(self.truth.values[path]).item())
                by_path[path] |= {"truth": hidden, "estimate": float(np.asarray(value).item())}
        return by_path

    def _coverage(self, theta: np.ndarray) -> dict[str, Any] | None:
        """Refit the images under other noise; count the intervals that hold the truth."""
        if self.truth is None or not self.noise_repeats:
            return None
        paths = self.problem.parameters.paths
        labels = self.problem.parameters.labels
        hits = np.zeros((self.noise_repeats, len(labels)), bool)
        errors = np.zeros((self.noise_repeats, len(labels)))
        for k in range(self.noise_repeats):
            rng = np.random.default_rng([self.options.seed, k + 1])
            problem = self.problem.with_targets(self.truth.noise(self.truth.images, rng))
            found = minimize(
                problem,
                theta,
                Method.GAUSS_NEWTON,
                max_evaluations=REFIT_EVALUATIONS,
                tolerance=REFIT_TOLERANCE,
            )
            low, high = uncertainty(problem, found.theta).interval
            value = self.truth.flat(paths)
            hits[k] = (low <= value) & (value <= high)
            errors[k] = self.truth.errors(paths, problem.parameters.natural(found.theta))
        return {
            "repeats": self.noise_repeats,
            "covered": dict(zip(labels, hits.sum(axis=0).tolist(), strict=True)),
            "covered_jointly": int(hits.all(axis=1).sum()),
            "largest_relative_error": dict(zip(labels, errors.max(axis=0).tolist(), strict=True)),
        }
