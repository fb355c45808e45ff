"""What a finished fit leaves and says: rows of its parameters, basins, lines for the terminal."""

import math
from typing import Any

import numpy as np

from studies.answer import certificate
from studies.answer.fit_warnings import fit_warnings
from studies.answer.uncertainty import Uncertainty
from studies.problem.parameters import Parameters
from studies.problem.problem import SceneProblem
from studies.search.found import Found
from studies.search.optimizers.evaluations import Evaluation


LARGEST_LIST = 12  # components of one parameter listed one by one; more are summed up


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


def loss_at_start(problem: SceneProblem) -> float | None:
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
