"""The run of a scene: search, judge, certify, write results and the report."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from adjsim.jit.kernel_pack import processors_used
from studies.answer.certificate import (
    certificate,
    in_words,
    verdict_of,
    why_not_made,
    with_certificate,
)
from studies.answer.fit_warnings import fit_warnings
from studies.answer.solution import Solution
from studies.control.searching import solve_control
from studies.fitting import writing
from studies.fitting.judging import loss_where_finite
from studies.fitting.metrics import measured_truth, with_value_metrics
from studies.fitting.pictures import shown
from studies.fitting.solve import solve
from studies.optimizers.minimize import method_for
from studies.optimizers.problem import Status
from studies.problem.making import PreparedProblem, make_problem
from studies.problem.parameters import Parameters
from studies.problem.truth import Truth
from studies.reports import scene_run
from studies.reports.coarse import FILE as COARSE, coarse_json
from studies.reports.numbers import estimate, interval, truth_error
from studies.reports.preview.showing import inspect
from studies.reports.scene_run import LOOKS
from studies.runs import folder as run_folder
from studies.runs.errors import FailedSearchError, StudyError
from studies.runs.evaluations import Evaluation
from studies.runs.folder import RunFolder
from studies.runs.memory import check_room, state_bytes
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.scene import declared
from studies.scene.building import BuiltScene
from studies.scene.motion import AtRest, model_of
from studies.scene.steps import step_of
from studies.search.coarse import SearchResult, read_search


LARGEST_LIST = 12  # components of one parameter listed one by one; more are summed up
MEASURED = (
    "The truth beside the answer is what `truth` of the scene file says was measured otherwise. If "
    "the file is a copy of a simulated scene, that is the truth of its film and not of this one: "
    "leave it out."
)
BLIND = "Blind: neither the search nor the verdict knew the truth, or that the film is simulated."


@dataclass(frozen=True, eq=False)
class SceneFit:
    """A `studies.runs.starting.Job`: the search for what is free in a scene."""

    file: declared.SceneFile
    made: PreparedProblem
    options: RunOptions
    title: str

    def run(self, folder: RunFolder) -> str:
        """Search, or go on searching; then write results, figures and report."""
        with EvaluationProgress(self.file.search.max_evaluations) as progress:
            return "\n".join(self.finish(folder, self.solve(folder, progress), progress))

    def solve(self, folder: RunFolder, progress: EvaluationProgress) -> Solution:
        """Search, or go on searching, and judge the answer."""
        if self.file.purpose == "control":
            solved = solve_control(self.made, self.file, folder, progress)
        else:
            made = self.made.without_truth() if self.file.blind else self.made
            solved = solve(made, self.file.search, folder, progress, seed=self.options.seed)
        if solved.result.status is Status.NOT_FINITE:
            raise FailedSearchError(solved.result.message)
        return solved

    def finish(
        self, folder: RunFolder, solved: Solution, progress: EvaluationProgress, logs_in: str = ""
    ) -> list[str]:
        """Write results, figures and report; return a few lines on them.

        `logs_in` is the folder of the logs in that of the run.
        """
        if self.options.certificate:
            progress.say("certifying the gradient")
        theta = solved.result.theta
        certified = certificate(solved.problem, theta, self.options, progress.say)
        verdict = with_certificate(solved.verdict, certified)
        if verdict is not solved.verdict:
            solved = replace(
                solved, verdict=verdict, verdicts=dict.fromkeys(solved.verdicts, str(verdict.kind))
            )
        progress.say("drawing films, figures and the report")
        result = self.result(solved, logs_in)
        pictures = shown(self.made, self.file, solved.problem, theta)
        result["measures"], result["looks"] = pictures.measures, pictures.looks
        result["findings"] += pictures.findings
        result["kernels"] = sorted(processors_used)
        if pictures.looks:
            folder.write_npz(LOOKS, **pictures.arrays)
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        _write_parameters(folder, solved, self.made.truth, logs_in)
        writing.write_seen(folder, self.file, self.made, solved)
        units = solved.problem.parameters.units()
        if coarse := coarse_json(solved.search, solved.searched.parameters, units):
            folder.write_json(COARSE, coarse)
        report = scene_run.write_report(folder)
        return [*summary(result, certified), f"report: {report}"]

    def result(self, solved: Solution, logs_in: str = "") -> dict[str, Any]:
        """Return the result as plain numbers."""
        problem, theta, parameters = solved.problem, solved.result.theta, solved.problem.parameters
        start = self.made.everything.parameters.start
        rows = parameter_rows(solved, start, self.made.truth, measured_truth(self.file))
        is_control = self.file.purpose == "control"
        is_measured = any("truth" in row for row in rows) and not self.file.is_simulated
        return {
            "title": self.title,
            "purpose": self.file.purpose,
            "verdict": solved.verdict.to_dict(),
            "control": solved.control,
            "status": solved.result.status.name,
            "message": solved.result.status.value.partition(". ")[0].rstrip(".") + ".",
            "offset": writing.look_offset(problem, theta),
            "loss": solved.result.loss,
            "loss_at_start": finite(loss_where_finite(self.made.everything, start)),
            "evaluations": solved.evaluations,
            "method": f"{'' if is_control else 'coarse set, stages and '}"
            f"{method_for(self.file.search, parameters.size)}",
            "loss_function": self.file.search.loss,
            "n_parameters": parameters.size,
            "n_values": int(problem.targets.size),
            "what": what_moves(self.made.everything.built),
            **writing.facts_of(problem),
            "parameters": [row for row in rows if row["is_answer"]],
            "nuisances": [row for row in rows if not row["is_answer"]],
            "theta_labels": list(parameters.theta_labels),
            "uncertainty": solved.intervals.to_dict(parameters.theta_labels),
            "budget": {} if solved.budget is None else solved.budget.to_dict(),
            "logs": logs(solved, logs_in),
            "basins": _basins_json(solved.searched.parameters, solved.search),
            "validation": solved.validation,
            "metrics": solved.metrics,
            "findings": findings(solved) + [BLIND] * self.file.blind + [MEASURED] * is_measured,
            "cameras": writing.cameras_json(problem, self.file, theta),
        }


def make_fit(
    file: declared.SceneFile,
    options: RunOptions,
    *,
    title: str,
    say: Callable[[str], None] = lambda text: print(text, flush=True),
) -> SceneFit:
    """Read the observations of a scene, fit cameras and looks, and return the job."""
    if not step_of(file.world).IS_FOR_ALL:
        for option, only in (("dtype", "float64"), ("device", "cpu")):
            if (value := getattr(options, option)) != only:
                raise StudyError(
                    f'`--{option}` must be {only} where `world.step` is "{file.world.step}", '
                    f"got {value}."
                )
    prepared = make_problem(
        file, dtype=options.dtype, device=options.device, checkpoint=options.checkpoint, say=say
    )
    built = prepared.everything.built
    if not isinstance(built.system, AtRest):  # two states must fit the budget of a reverse sweep
        dtype = "float64" if options.certificate else options.dtype  # certificates are in float64
        size = state_bytes(built.system, built.state, dtype, options.device)
        check_room(options.checkpoint, size)
    if file.cameras and any(film.video for film in file.films.values()):
        _, warnings = inspect(file, built)
        prepared.notes.extend(warning for warning in warnings if warning not in prepared.notes)
    return SceneFit(file, prepared, options, title)


def parameter_rows(
    solved: Solution,
    start: np.ndarray,
    truth: Truth | None,
    measured: Mapping[str, float] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return one row for each component of answers and nuisances; many of a path are summed up.

    `measured` has by label what is known of footage, which has no truth.
    """
    parameters, theta = solved.problem.parameters, solved.result.theta
    estimate, labels = parameters.natural(theta), parameters.labels
    begun = parameters.held_at(start)  # of the same paths
    first = begun.natural(begun.start)
    hidden = errors = np.empty(0)
    if truth is not None:
        hidden = truth.flat(parameters.paths)
        errors = truth.errors(parameters.paths, estimate)
    out: list[dict[str, Any]] = []
    for free in parameters.free:
        count, done = free.start.size, sum(row["count"] for row in out)
        is_long = count > LARGEST_LIST
        for i in range(done, done + (1 if is_long else count)):
            rows = slice(i, i + (count if is_long else 1))
            row: dict[str, Any] = {
                "name": free.path if is_long else labels[i],
                "index": None if is_long else i,
                "count": count if is_long else 1,
                "unit": free.unit,
                "start": float(first[rows].mean()),
                "estimate": float(estimate[rows].mean()),
                "verdict": None if is_long else solved.verdicts.get(labels[i]),
                "interval": None if is_long else _ends(solved.intervals.model, i),
                "pixel_interval": None if is_long else _ends(solved.intervals.pixel, i),
                "bounds": [*map(float, free.bounds)] if np.isfinite(free.bounds).all() else None,
            }
            if is_long:  # the mean of some does not move: weights of sines with even phases
                row["start_rms"] = float(np.sqrt(np.mean(first[rows] ** 2)))
                row["estimate_rms"] = float(np.sqrt(np.mean(estimate[rows] ** 2)))
            if truth is not None:
                row["truth"] = float(hidden[rows].mean())
                row["relative_error"] = float(errors[rows].mean())
                if is_long:
                    row["largest_error"] = float(errors[rows].max())
            elif row["name"] in measured:
                row["truth"] = measured[row["name"]]
                off = abs(row["estimate"] - row["truth"])
                row["relative_error"] = off / (abs(row["truth"]) or 1.0)
            is_positive = free.transform.prefix == "log "
            out.append(
                {**with_value_metrics(row, is_positive=is_positive), "is_answer": free.is_answer}
            )
    return out


def _ends(interval: tuple[np.ndarray, np.ndarray], i: int) -> list[float] | None:
    """Return the ends of an interval of one value; None if there is none."""
    ends = [float(end[i]) for end in interval] if len(interval[0]) else [math.nan]
    return ends if np.isfinite(ends).all() else None


def _basins_json(parameters: Parameters, search: SearchResult) -> list[dict[str, Any]]:
    """Return where every start ended, the answer among them: values of few parameters, loss."""
    few = parameters.size <= LARGEST_LIST
    return [
        {
            "values": dict(zip(parameters.labels, map(float, values), strict=True)) if few else {},
            "loss": finite(basin.loss),
            "status": basin.status.name,
            "evaluations": basin.evaluations,
            "is_answer": k == 0,
        }
        for k, basin in enumerate(search.basins)
        for values in [parameters.natural(basin.theta)]
    ]


def finite(value: float) -> float | None:
    """Return a number, or None where it is infinite or none."""
    return value if np.isfinite(value) else None


def what_moves(built: BuiltScene) -> str:
    """Return the bodies in a few words: "beam: 640 tetrahedra (12 of 240 nodes held)".

    Behind them come contacts between bodies, and joints.
    """
    model, parts = model_of(built.system), dict[str, str]()
    held = {name: f" ({held})" for name, held in built.held_counts().items()}
    for name, force in (model.forces if model else {}).items():
        for key, kind in (("tets", "tetrahedra"), ("triangles", "triangles")):
            elements = getattr(force, key, None)
            if elements is not None and name in built.meshes and len(elements):
                parts[name] = f"{name}: {len(elements)} {kind}{held.get(name, '')}"
    parts |= {name: f"{name}: rigid" for name in (model.bodies if model else ())}
    parts |= {name: f"{name}{held.get(name, '')}" for name in built.nodes if name not in parts}
    return ", ".join((*parts.values(), *built.links)) or ", ".join(built.meshes)


def logs(solved: Solution, place: str = "") -> list[list[str]]:
    """Return the logs of every basin; those of the answer go on with cameras and all frames."""
    by_basin = [list(basin.logs) for basin in solved.search.basins]
    by_basin[0] += solved.logs
    return [[f"{place}/{name}" if place else name for name in names] for names in by_basin]


def findings(solved: Solution) -> list[str]:
    """Return what else is to be said of the answer, in sentences."""
    return [
        f"`{name}` could not be predicted: the simulation blew up."
        if left is None
        else f"`{name}` was predicted by the fit of the others, which left {left:.1%} of its "
        "motion unexplained; then it was fitted too."
        for name, left in solved.validation.items()
    ] + solved.notes


def _write_parameters(
    folder: RunFolder, solved: Solution, truth: Truth | None, logs_in: str = ""
) -> None:
    """Write the answer with the history of the search and its spectrum."""
    history: list[Evaluation] = []  # one for each theta with a finite loss
    for evaluation in read_search(folder, logs(solved, logs_in)[0]):
        if np.isfinite(evaluation.loss):
            if history and np.array_equal(history[-1].theta, evaluation.theta):
                history.pop()
            history.append(evaluation)
    searched, parameters = solved.searched.parameters, solved.problem.parameters
    theta = solved.result.theta
    first = list(solved.problem.staged)
    thetas = [
        evaluation.theta if len(evaluation.theta) == searched.size else evaluation.theta[first]
        for evaluation in history
    ]
    folder.write_npz(
        run_folder.PARAMETERS,
        names=np.array(parameters.labels),
        theta_names=np.array(parameters.theta_labels),
        estimate=parameters.natural(theta),
        theta=theta,
        evaluations=np.array([evaluation.spent for evaluation in history]),
        history_theta=np.array(thetas),
        history=np.array([searched.natural(point) for point in thetas]),
        history_loss=np.array([evaluation.loss for evaluation in history]),
        singular_values=solved.intervals.singular_values,
        directions=solved.intervals.directions,
        **({} if truth is None else {"truth": truth.flat(parameters.paths)}),
    )


def summary(result: dict[str, Any], certified: dict[str, Any]) -> list[str]:
    """Return a few lines for the terminal, the verdict first."""
    verdict = result["verdict"]
    lines = [f"verdict: {verdict['kind']}. {verdict['reason']}"]
    lines += [f"warning: {warning}" for warning in fit_warnings(result)]
    for row in result["parameters"][:LARGEST_LIST]:
        differs = row.get("verdict") not in (None, verdict["kind"])
        lines.append(_parameter_line(row) + (f"  ({row['verdict']})" if differs else ""))
    lines.append(
        f"  loss {result['loss']:.3e} after {result['evaluations']} evaluations "
        f"({result['status'].lower().replace('_', ' ')}: {result['message']})"
    )
    lines += [f"  {finding}" for finding in result["findings"]]
    lines.append(f"gradient certificate: {in_words(verdict_of(certified))}")
    lines += [f"warning: {reason}" for reason in why_not_made(certified)]
    return lines


def _parameter_line(row: dict[str, Any]) -> str:
    unit = f" {row['unit']}" if row["unit"].strip("-") else ""
    line = f"  {row['name']} = {estimate(row)}{unit}"
    if row["count"] > 1:
        line = f"  {row['name']}: {row['count']} values, mean {row['estimate']:.6g}{unit}, "
        line += f"root mean square {row['estimate_rms']:.4g}{unit}"
    if row["interval"]:
        both = [interval(row, key).replace("\n", ", ") for key in ("interval", "pixel_interval")]
        line += f"  95 % interval with model error {both[0]} (noise only: {both[1]})"
    if "truth" in row:
        kind, size = truth_error(row)
        line += f"  truth {row['truth']:.6g}, {kind} {size}"
    return line
