"""The run of a scene: search, judge, certify, write results and the report."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from studies.answer.certificate import certificate
from studies.answer.truth import Truth
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
from studies.search.logs import read_search
from studies.search.optimizers.problem import Status


@dataclass(frozen=True, eq=False)
class SceneFit:
    """A `studies.runs.starting.Job`: the search for what is free in a scene.

    Attributes
    ----------
    file : SceneFile
    made : Made
    options : RunOptions
    title : str
        Heading of the report.
    """

    file: declared.SceneFile
    made: Made
    options: RunOptions
    title: str

    def run(self, folder: RunFolder) -> str:
        """Search, or go on searching; then write results, figures and report."""
        with EvaluationProgress(self.file.search.max_evaluations) as progress:
            return "\n".join(self.finish(folder, self.solve(folder, progress), progress))

    def solve(self, folder: RunFolder, progress: EvaluationProgress) -> Solved:
        """Search, or go on searching, and judge the answer.

        Raises
        ------
        FailedSearchError
            If the loss is not finite at any point.
        """
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
        write_parameters(folder, solved, self.made.truth, logs_in)
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
        rows = parameter_rows(solved, start, self.made.truth)
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
            "loss_at_start": outcome.loss_at_start(first),
            "evaluations": solved.evaluations,
            "method": f"{'' if is_control else 'coarse set, stages and '}"
            f"{how.method_for(parameters.size)}",
            "loss_function": self.file.search.loss,
            "n_parameters": parameters.size,
            "n_values": int(problem.targets.size),
            "what": what_moves(self.made),
            **seen.facts_of(problem),
            "parameters": [row for row in rows if row["is_answer"]],
            "nuisances": [row for row in rows if not row["is_answer"]],
            "theta_labels": list(parameters.theta_labels),
            "uncertainty": solved.spread.to_dict(parameters.theta_labels),
            "start": solved.found.start,
            "logs": logs(solved, logs_in),
            "basins": outcome.basins_json(solved.searched.parameters, solved.found),
            "validation": solved.validation,
            "findings": findings(solved),
            "cameras": seen.cameras_json(problem, self.file, theta),
        }


def make_fit(
    file: declared.SceneFile,
    options: RunOptions,
    *,
    title: str,
    say: Callable[[str], None] = lambda text: print(text, flush=True),
) -> SceneFit:
    """Read the observations of a scene, fit cameras and looks, and return the job.

    `say` gets a line about what is done.

    Raises
    ------
    ValueError
        If something in the scene does not fit; the message names its key.
    """
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


def what_moves(made: Made) -> str:
    """Return the bodies in a few words, e.g. "beam: 640 tetrahedra"."""
    system = made.everything.built.system
    parts = []
    for name, force in getattr(system, "forces", {}).items():
        elements = getattr(force, "tets", None)
        kind = "tetrahedra" if elements is not None else "triangles"
        if elements is None:
            elements = getattr(force, "triangles", None)
        if elements is not None and name in made.everything.built.meshes and len(elements):
            parts.append(f"{name}: {len(elements)} {kind}")
    parts += [f"{name}: rigid" for name in getattr(system, "bodies", {})]
    return ", ".join(parts) or ", ".join(made.everything.built.meshes)


def parameter_rows(solved: Solved, start: np.ndarray, truth: Truth | None) -> list[dict[str, Any]]:
    """Return one row for each component of answers and nuisances; many of a path are summed up."""
    parameters = solved.problem.parameters
    begun = parameters.held_at(start)  # of the same paths
    fit: Any = SimpleNamespace(
        problem=SimpleNamespace(parameters=begun), truth=truth, units=parameters.units()
    )
    answers = {one.path for one in parameters.free if one.is_answer}
    answers |= {parameters.labels[i] for i in parameters.answers}
    return [
        {**row, "is_answer": row["name"] in answers}
        for row in outcome.rows(fit, solved.result.theta, solved.spread)
    ]


def logs(solved: Solved, place: str = "") -> list[list[str]]:
    """Return the logs of every basin; those of the answer go on with cameras and all frames."""
    found = [list(names) for names in solved.found.logs]
    found[solved.found.start] += solved.logs
    return [[f"{place}/{name}" if place else name for name in names] for names in found]


def findings(solved: Solved) -> list[str]:
    """Return what else is to be said of the answer, in sentences."""
    out = []
    for name, left in solved.validation.items():
        if left is None:
            out.append(f"`{name}` could not be predicted: the simulation blew up.")
        else:
            out.append(
                f"`{name}` was predicted by the fit of the others, which left {left:.1%} of its "
                "motion unexplained; then it was fitted too."
            )
    return out


def write_parameters(
    folder: RunFolder, solved: Solved, truth: Truth | None, logs_in: str = ""
) -> None:
    """Write the answer with the history of the search and its spectrum."""
    history = outcome.accepted(read_search(folder, logs(solved, logs_in)[solved.found.start]))
    searched, parameters = solved.searched.parameters, solved.problem.parameters
    theta = solved.result.theta
    first = list(parameters.first_answers)
    thetas = [one.theta if len(one.theta) == searched.size else one.theta[first] for one in history]
    folder.write_npz(
        run_folder.PARAMETERS,
        names=np.array(parameters.labels),
        theta_names=np.array(parameters.theta_labels),
        estimate=parameters.natural(theta),
        theta=theta,
        evaluations=np.array([one.spent for one in history]),
        history_theta=np.array(thetas),
        history=np.array([searched.natural(one) for one in thetas]),
        history_loss=np.array([one.loss for one in history]),
        singular_values=solved.spread.singular_values,
        directions=solved.spread.directions,
        **({} if truth is None else {"truth": truth.flat(parameters.paths)}),
    )
