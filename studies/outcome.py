"""What a finished fit leaves in its folder: numbers, arrays and videos."""

import math
from typing import Any

import numpy as np

from studies import certificate
from studies.answer.image_evidence import image_evidence
from studies.answer.verdict import judge
from studies.fit_warnings import ending, fit_warnings, offset
from studies.image_problem import ImageProblem
from studies.motion import Motion, trajectory_fields
from studies.optimizers.evaluations import Evaluation
from studies.optimizers.problem import NOT_FINITE
from studies.parameters import Parameters
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.search.found import Found
from studies.search.local import read_search
from studies.stable_steps import steps_at
from studies.uncertainty import Uncertainty
from studies.video_problem import VideoProblem


SECONDS = 2.5  # how long a video plays; the motion itself is mostly shorter
LARGEST_LIST = 12  # components of one parameter listed one by one; more are summed up


def result_json(
    fit: Any, found: Found, spread: Uncertainty, covered: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the result of a fit as plain numbers."""
    problem, parameters, theta = fit.problem, fit.problem.parameters, found.best.theta
    labels, images = parameters.theta_labels, problem.images(theta)
    at_start = loss_at_start(problem)
    truth = None if fit.truth is None else fit.truth.flat(parameters.paths)
    verdict = judge(
        image_evidence(problem, found, spread, images, loss_at_start=at_start, truth=truth)
    )
    return {
        "title": fit.title,
        "verdict": verdict.to_dict(),
        "status": found.best.status.name,
        "message": ending(found.best.status, verdict.kind),
        "offset": offset(images, problem.targets),
        "steps": steps_at(problem, theta),
        "loss": found.best.loss,
        "loss_at_start": at_start,
        "evaluations": found.evaluations,
        "method": str(fit.search.method),
        "loss_function": repr(problem.loss),
        "n_parameters": parameters.size,
        "n_values": problem.n_pixels,
        "what": fit.what,
        **fit.facts(),
        "parameters": fit.rows(theta, spread),
        "theta_labels": list(labels[:LARGEST_LIST]),
        "uncertainty": spread.to_dict(labels),
        "coverage": covered,
        "start": found.start,
        "logs": [list(names) for names in found.logs],
        "basins": basins_json(parameters, found),
        "findings": fit.findings(theta) if fit.findings else [],
    }


def basins_json(parameters: Parameters, found: Found) -> list[dict[str, Any]]:
    """Return where every start ended, the answer among them: values of few parameters, loss."""
    few = parameters.size <= LARGEST_LIST
    return [
        {
            "values": dict(zip(parameters.labels, map(float, values), strict=True)) if few else {},
            "loss": _finite(one.loss),
            "status": one.status.name,
            "evaluations": one.evaluations,
            "is_answer": k == found.start,
        }
        for k, one in enumerate(found.all)
        for values in [parameters.natural(one.theta)]
    ]


def loss_at_start(problem: ImageProblem) -> float | None:
    """Return the loss at the given start; None where it blows up."""
    try:
        return _finite(float(problem.loss_at(problem.parameters.start)))
    except ValueError:
        return None


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def rows(fit: Any, theta: np.ndarray, spread: Uncertainty) -> list[dict[str, Any]]:
    """Return what is told of each parameter: by component, or summed up if they are many."""
    parameters = fit.problem.parameters
    estimate, start = parameters.natural(theta), parameters.natural(parameters.start)
    truth = errors = None
    if fit.truth is not None:
        truth = fit.truth.flat(parameters.paths)
        errors = fit.truth.errors(parameters.paths, estimate)
    out: list[dict[str, Any]] = []
    first = 0
    for path, value in parameters.values(theta).items():
        components = range(first, first + np.size(value))
        first = components.stop
        if len(components) > LARGEST_LIST:
            own = slice(components.start, components.stop)
            row: dict[str, Any] = {
                "name": path,
                "index": None,
                "count": len(components),
                "unit": fit.units.get(path, ""),
                "start": float(start[own].mean()),
                "estimate": float(estimate[own].mean()),
                # the mean of some does not move: of weights of sines with evenly spread phases
                "start_rms": _root_mean_square(start[own]),
                "estimate_rms": _root_mean_square(estimate[own]),
                "interval": None,
                "pixel_interval": None,
            }
            if truth is not None and errors is not None:
                row |= {
                    "truth": float(truth[own].mean()),
                    "relative_error": float(errors[own].mean()),
                    "largest_error": float(errors[own].max()),
                }
            out.append(row)
            continue
        for i in components:
            row = {
                "name": parameters.labels[i],
                "index": i,
                "count": 1,
                "unit": fit.units.get(path, ""),
                "start": float(start[i]),
                "estimate": float(estimate[i]),
                "interval": _ends(spread.intervals.model, i),
                "pixel_interval": _ends(spread.interval, i),
            }
            if truth is not None and errors is not None:
                row |= {"truth": float(truth[i]), "relative_error": float(errors[i])}
            out.append(row)
    return out


def _ends(interval: tuple[np.ndarray, np.ndarray], i: int) -> list[float] | None:
    """Return the ends of an interval of one value; None if there is none."""
    ends = [float(end[i]) for end in interval] if len(interval[0]) else [math.nan]
    return ends if np.isfinite(ends).all() else None


def interval_text(row: dict[str, Any], key: str = "interval") -> str:
    """Return an interval of a parameter for terminal and report.

    `key` is "interval", with model error, or "pixel_interval", of pixel noise only.
    """
    if not row[key]:
        return "none"
    low, high = row[key]
    half = (high - low) / 2.0
    relative = half / abs(row["estimate"]) if row["estimate"] else math.inf
    if relative < 1e-13:
        return "within rounding"
    if relative < 1e-6:
        return f"± {relative:.0e} relative"
    return f"{low:.6g} to {high:.6g}"


def verdict_line(verdict: dict[str, Any]) -> str:
    """Return a verdict in one line."""
    return f"verdict: {verdict['kind']}. {verdict['reason']}"


def summary(result: dict[str, Any], certified: dict[str, Any]) -> list[str]:
    """Return a few lines for the terminal, the verdict first."""
    lines = [verdict_line(result["verdict"])]
    lines += [f"warning: {warning}" for warning in fit_warnings(result)]
    lines += [_parameter_line(row) for row in result["parameters"][:LARGEST_LIST]]
    lines.append(
        f"  loss {result['loss']:.3e} after {result['evaluations']} evaluations "
        f"({result['status'].lower().replace('_', ' ')}: {result['message']})"
    )
    if len(result["basins"]) > 1:
        lines.append(f"  from start {result['start'] + 1} of {len(result['basins'])} searched")
    lines += [f"  {finding}" for finding in result["findings"]]
    if covered := result["coverage"]:
        parts = ", ".join(f"{name} {count}" for name, count in covered["covered"].items())
        lines.append(
            f"  pixel-noise intervals held the truth in {parts} of {covered['repeats']} noise seeds"
        )
    lines.append(f"gradient certificate: {certificate.told(certificate.verdict_of(certified))}")
    lines += [f"warning: {reason}" for reason in certificate.why_not_made(certified)]
    return lines


def _parameter_line(row: dict[str, Any]) -> str:
    """Return what was identified of a parameter, in one line."""
    unit = f" {row['unit']}" if row["unit"].strip("-") else ""
    line = f"  {row['name']} = {row['estimate']:.8g}{unit}"
    if row["count"] > 1:
        line = f"  {row['name']}: {row['count']} values, mean {row['estimate']:.6g}{unit}, "
        line += f"root mean square {row['estimate_rms']:.4g}{unit}"
    if row["interval"]:
        line += f"  95 % interval with model error {interval_text(row)}"
        line += f" (pixel noise only: {interval_text(row, 'pixel_interval')})"
    if "truth" in row:
        mean = "mean relative error" if row["count"] > 1 else "relative error"
        line += f"  truth {row['truth']:.6g}, {mean} {row['relative_error']:.1e}"
    if "largest_error" in row:
        line += f", largest {row['largest_error']:.1e}"
    return line


def write_parameters(fit: Any, folder: RunFolder, found: Found, spread: Uncertainty) -> None:
    """Write the parameters with their history and their spectrum."""
    theta = found.best.theta
    history = accepted(read_search(folder, found.logs[found.start]))
    parameters = fit.problem.parameters
    thetas = np.array([evaluation.theta for evaluation in history])
    known = {} if fit.truth is None else {"truth": fit.truth.flat(parameters.paths)}
    folder.write_npz(
        run_folder.PARAMETERS,
        names=np.array(parameters.labels),
        theta_names=np.array(parameters.theta_labels),
        estimate=parameters.natural(theta),
        theta=theta,
        evaluations=np.array([evaluation.spent for evaluation in history]),
        history_theta=thetas,
        history=np.array([parameters.natural(row) for row in thetas]),
        history_loss=np.array([evaluation.loss for evaluation in history]),
        singular_values=spread.singular_values,
        directions=spread.directions,
        **known,
    )


def write_frames(
    folder: RunFolder, problem: VideoProblem, theta: np.ndarray, played: np.ndarray | None
) -> None:
    """Write the fitted motion and the frames, at steps that are played or at those compared."""
    compared = problem.motion.frames
    steps = compared if played is None else played
    motion = problem.motion_at(theta).at(steps)
    run = motion.run()
    folder.write_npz(run_folder.TRAJECTORY, **moved(problem, motion, run))
    fitted = problem.filming.shoot(motion, run).astype(np.float32)
    folder.write_npz(
        run_folder.FRAMES,
        times=run.times,
        compared=np.isin(steps, compared),
        # beside a step that is only shown, the target that comes next
        target=problem.targets[np.searchsorted(compared, steps)].astype(np.float32),
        fitted=fitted,
        start=_at_start(problem, steps, blank=np.zeros_like(fitted)),
    )


def _at_start(problem: VideoProblem, steps: np.ndarray, *, blank: np.ndarray) -> np.ndarray:
    """Return the frames at the start; blank ones where its rollout blows up."""
    motion = problem.motion_at(problem.parameters.start).at(steps)
    try:
        return problem.filming.shoot(motion, motion.run()).astype(np.float32)
    except NOT_FINITE:
        return blank


def moved(problem: VideoProblem, motion: Motion, run: Any) -> dict[str, np.ndarray]:
    """Return the trajectory's arrays by name, and the faces and vertices of what is drawn."""
    out: dict[str, np.ndarray] = {"steps": run.steps, "times": run.times}
    out |= trajectory_fields(run)
    meshes = problem.filming.meshes(motion, run)
    for name, (faces, vertices) in meshes.items():
        out |= {f"faces.{name}": faces, f"vertices.{name}": vertices}
    return {"objects": np.array(list(meshes), str), **out}


def accepted(log: list[Evaluation]) -> list[Evaluation]:
    """Return the evaluations where the loss is finite, one for each theta."""
    kept: list[Evaluation] = []
    for evaluation in log:
        if not np.isfinite(evaluation.loss):
            continue
        if kept and np.array_equal(kept[-1].theta, evaluation.theta):
            kept[-1] = evaluation
        else:
            kept.append(evaluation)
    return kept


def write_videos(folder: RunFolder) -> None:
    """Write target and fitted frames as mp4, slowed down to a few seconds."""
    from studies.media import as_uint8, write_video

    frames = folder.read_npz(run_folder.FRAMES)
    fps = playback_fps(len(frames["target"]))
    items = []
    for name, key in ((run_folder.TARGET_VIDEO, "target"), (run_folder.FITTED_VIDEO, "fitted")):
        images = enlarged(as_uint8(frames[key][..., :3]))  # as numbers it takes gigabytes
        write_video(folder.file(name), images, fps, pad=True)
        items.append({"file": name, "alt": key, "caption": key})
    shown = {"title": "Target and fit", "name": "video", "frames": run_folder.FRAMES}
    folder.write_json("films.json", {"films": [{**shown, "items": items}]})


def playback_fps(n_frames: int) -> float:
    """Return the rate at which n frames play for about `SECONDS`."""
    return float(np.clip(round(n_frames / SECONDS), 2, 30))


def enlarged(images: np.ndarray, width: int = 480) -> np.ndarray:
    """Return small images with every pixel repeated, so that a browser does not blur them."""
    from studies.media import magnified

    return magnified(images, width=width)
