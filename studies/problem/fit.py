"""The run of a scene: search, judge, certify, write results and the report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from studies.answer.certificate import certificate
from studies.control.searching import solve_control
from studies.problem import outcome, seen
from studies.problem.making import Made, make_problem
from studies.problem.pictures import shown
from studies.problem.solve import Solved, robust, solve
from studies.reports import scene_run
from studies.reports.coarse import FILE as COARSE, coarse_json
from studies.reports.preview.showing import inspect
from studies.reports.scene_run import LOOKS
from studies.runs import folder as run_folder
from studies.runs.errors import FailedSearchError
from studies.runs.folder import RunFolder
from studies.runs.memory import make_plan, state_bytes
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.scene.motion import AtRest
from studies.search.optimizers.problem import Status


@dataclass(frozen=True, eq=False)
class SceneFit:
    """A `studies.runs.starting.Job`: the search for what is free in a scene."""

    file: declared.SceneFile
    made: Made
    options: RunOptions
    title: str

    def run(self, folder: RunFolder) -> str:
        """Search, or go on searching; then write results, figures and report."""
        with EvaluationProgress(self.file.search.max_evaluations) as progress:
            return "\n".join(self.finish(folder, self.solve(folder, progress), progress))

    def solve(self, folder: RunFolder, progress: EvaluationProgress) -> Solved:
        """Search, or go on searching, and judge the answer."""
        if self.file.purpose == "control":
            solved = solve_control(self.made, self.file, folder, progress, seed=self.options.seed)
        else:
            solved = solve(self.made, self.file.search, folder, progress, seed=self.options.seed)
        if solved.result.status is Status.NOT_FINITE:
            raise FailedSearchError(solved.result.message)
        return solved

    def finish(
        self, folder: RunFolder, solved: Solved, progress: EvaluationProgress, logs_in: str = ""
    ) -> list[str]:
        """Write results, figures and report; return a few lines on them.

        `logs_in` is the folder of the logs in that of the run.
        """
        if self.options.certificate:
            progress.say("certifying the gradient")
        theta = solved.result.theta
        certified = certificate(solved.problem, theta, self.options, progress.say, at_start=False)
        progress.say("drawing films, figures and the report")
        result = self.result(solved, logs_in)
        pictures = shown(self.made, self.file, solved.problem, theta)
        result["measures"], result["looks"] = pictures.measures, pictures.looks
        result["findings"] += pictures.findings
        if pictures.looks:
            folder.write_npz(LOOKS, **pictures.arrays)
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        outcome.write_parameters(folder, solved, self.made.truth, logs_in)
        seen.write_seen(folder, self.file, self.made, solved)
        units = solved.problem.parameters.units()
        if coarse := coarse_json(solved.found, solved.searched.parameters, units):
            folder.write_json(COARSE, coarse)
        report = scene_run.write_report(folder)
        return [*outcome.summary(result, certified), f"report: {report}"]

    def result(self, solved: Solved, logs_in: str = "") -> dict[str, Any]:
        """Return the result as plain numbers."""
        problem, theta, parameters = solved.problem, solved.result.theta, solved.problem.parameters
        start = self.made.everything.parameters.start
        first = self.made.everything.with_steps_for(start)
        try:
            loss_at_start = outcome.finite(float(first.loss_at(start)))
        except ValueError:  # it blows up there
            loss_at_start = None
        rows = outcome.parameter_rows(solved, start, self.made.truth)
        how, is_control = robust(self.file.search, problem), self.file.purpose == "control"
        return {
            "title": self.title,
            "purpose": self.file.purpose,
            "verdict": solved.verdict.to_dict(),
            "control": solved.control,
            "status": solved.result.status.name,
            "message": solved.result.status.value.partition(". ")[0].rstrip(".") + ".",
            "offset": seen.look_offset(problem, theta),
            "loss": solved.result.loss,
            "loss_at_start": loss_at_start,
            "evaluations": solved.evaluations,
            "method": f"{'' if is_control else 'coarse set, stages and '}"
            f"{how.method_for(parameters.size)}",
            "loss_function": self.file.search.loss,
            "n_parameters": parameters.size,
            "n_values": int(problem.targets.size),
            "what": outcome.what_moves(self.made.everything.built),
            **seen.facts_of(problem),
            "parameters": [row for row in rows if row["is_answer"]],
            "nuisances": [row for row in rows if not row["is_answer"]],
            "theta_labels": list(parameters.theta_labels),
            "uncertainty": solved.spread.to_dict(parameters.theta_labels),
            "start": solved.found.start,
            "logs": outcome.logs(solved, logs_in),
            "basins": outcome.basins_json(solved.searched.parameters, solved.found),
            "validation": solved.validation,
            "findings": outcome.findings(solved),
            "cameras": seen.cameras_json(problem, self.file, theta),
        }


def make_fit(
    file: declared.SceneFile,
    options: RunOptions,
    *,
    title: str,
    say: Callable[[str], None] = lambda text: print(text, flush=True),
) -> SceneFit:
    """Read the observations of a scene, fit cameras and looks, and return the job."""
    made = make_problem(
        file,
        dtype=options.dtype,
        device=options.device,
        checkpoint=options.checkpoint,
        say=say,
    )
    _check_budget(made, options)
    films = [one for one in file.observations.values() if isinstance(one, declared.Film)]
    if file.cameras and any(one.video for one in films):
        _, warnings = inspect(file, made.everything.built)
        made.notes.extend(one for one in warnings if one not in made.notes)
    return SceneFit(file, made, options, title)


def _check_budget(made: Made, options: RunOptions) -> None:
    """Raise if the budget of a reverse sweep has no room for two states."""
    built = made.everything.built
    if not isinstance(built.system, AtRest):
        dtype = "float64" if options.certificate else options.dtype  # certificates are in float64
        size = state_bytes(built.system, built.state, dtype, options.device)
        make_plan(options.checkpoint, 2, size)
