"""Fit free parameters to a video: search, certify, quantify, write the run folder."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh
from render.losses import ImageLoss, Mse, PyramidMse
from studies import outcome, run_folder
from studies.certificate import certificate
from studies.errors import StudyError
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options, Result, Status
from studies.progress import EvaluationProgress
from studies.registry import RunOptions
from studies.report import write_report
from studies.run_folder import RunFolder
from studies.uncertainty import uncertainty
from studies.video_problem import VideoProblem


REFIT_EVALUATIONS, REFIT_TOLERANCE = 20, 1e-6  # warm starts: a few steps are enough


@dataclass(frozen=True)
class Search:
    """How the optimum is looked for: the table `optimizer` of the settings."""

    method: Method
    max_evaluations: int
    tolerance: float
    options: Options


@dataclass(frozen=True, eq=False)
class Truth:
    """What a synthetic study knows: hidden values, clean images, and its noise."""

    values: dict[str, float]
    images: np.ndarray
    noise: Callable[[np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fit:
    """A `studies.registry.Job`: fit a video problem.

    Attributes
    ----------
    problem : VideoProblem
    search : Search
    options : RunOptions
    title : str
        Heading of the report.
    units : dict
        Unit of each path.
    mesh : TetMesh
        What moves, for the 3-D view.
    truth : Truth, optional
        Of a synthetic study.
    noise_repeats : int
        Further noise seeds to refit from the optimum, to count what the intervals cover.
    """

    problem: VideoProblem
    search: Search
    options: RunOptions
    title: str = field(kw_only=True)
    units: dict[str, str] = field(kw_only=True)
    mesh: TetMesh = field(kw_only=True)
    truth: Truth | None = field(default=None, kw_only=True)
    noise_repeats: int = field(default=0, kw_only=True)

    def run(self, folder: RunFolder) -> str:
        """Search, or go on searching; then write results, figures and report."""
        log = folder.file(run_folder.ITERATIONS)
        with EvaluationProgress(self.search.max_evaluations) as progress:
            found = self._minimize(self.problem, self.problem.parameters.start, log, progress)
        if found.status is Status.NOT_FINITE:
            raise StudyError(self._why_not_finite(found))
        progress.say("search ended; certifying its gradient and drawing the report")
        spread = uncertainty(self.problem, found.theta)
        covered = self._coverage(found.theta)
        result = outcome.result_json(self, found, spread, covered)
        certified = certificate(self.problem, found.theta, self.options)
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        outcome.write_arrays(folder, self.problem, found.theta, self.mesh)
        outcome.write_videos(folder)
        report = write_report(folder)
        return "\n".join([*outcome.summary(result, certified), f"report: {report}"])

    def _minimize(
        self, problem: VideoProblem, theta: np.ndarray, log: Path | None, callback: Any
    ) -> Result:
        return minimize(
            problem,
            theta,
            self.search.method,
            max_evaluations=self.search.max_evaluations,
            tolerance=self.search.tolerance,
            options=self.search.options,
            log=log,
            callback=callback,
        )

    def _why_not_finite(self, found: Result) -> str:
        """Return the message of the rollout that blew up at the start."""
        try:
            self.problem.trajectory(self.problem.parameters.start)
        except ValueError as error:
            return f"{error} (At the start of the search; the step is `time.dt`.)"
        return found.message

    def _coverage(self, theta: np.ndarray) -> dict[str, Any] | None:
        """Refit the video under other noise; count the intervals that hold the truth."""
        if self.truth is None or not self.noise_repeats:
            return None
        paths = list(self.truth.values)
        hits = np.zeros((self.noise_repeats, len(paths)), bool)
        errors = np.zeros((self.noise_repeats, len(paths)))
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
            value = np.array([self.truth.values[path] for path in paths])
            natural = problem.parameters.natural(found.theta)
            hits[k] = (low <= value) & (value <= high)
            errors[k] = np.abs(natural / value - 1.0)
        return {
            "repeats": self.noise_repeats,
            "covered": dict(zip(paths, hits.sum(axis=0).tolist(), strict=True)),
            "covered_jointly": int(hits.all(axis=1).sum()),
            "largest_relative_error": dict(zip(paths, errors.max(axis=0).tolist(), strict=True)),
        }


def make_search(table: dict[str, Any]) -> Search:
    """Return the search of the settings' table `optimizer`."""
    names = [str(method) for method in Method]
    try:
        method = Method(checks.known_key("method in `optimizer.method`", table["method"], names))
    except ValueError as error:
        raise StudyError(str(error)) from error
    for key in ("max_evaluations", "tolerance", "learning_rate"):
        checks.positive(f"optimizer.{key}", table[key])
    momentum = table["momentum"]
    if not 0.0 <= momentum < 1.0:
        raise StudyError(f"`optimizer.momentum` must be in [0, 1), got {momentum:g}.")
    options = Options(learning_rate=table["learning_rate"], momentum=momentum)
    return Search(method, table["max_evaluations"], table["tolerance"], options)


def make_loss(table: dict[str, Any]) -> ImageLoss:
    """Return the loss of the settings' table `loss`."""
    kinds = ("mse", "pyramid")
    if checks.known_key("kind in `loss.kind`", table["kind"], kinds) == "mse":
        return Mse()
    checks.positive("loss.levels", table["levels"])
    return PyramidMse(table["levels"])
