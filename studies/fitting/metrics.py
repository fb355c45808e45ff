"""The metrics of the field for a fit: of films, of motions, and of values with a known truth.

Where frames were held back they are those of the frames that the fit of the others predicts.
"""

from typing import Any

import numpy as np

from adjsim.jit.device_arrays import to_host
from studies.answer.field_metrics import WIDTH, chamfer, log10_error, psnr, ssim
from studies.optimizers.problem import NOT_FINITE
from studies.problem.making import PreparedProblem
from studies.problem.observations.outlines import overlap
from studies.problem.observers import Moved, Observer
from studies.problem.problem import SceneProblem
from studies.scene.declared import SceneFile


MOST_POINTS = 20_000  # of a surface, whose distance to another one is measured


def metrics_of(
    prepared: PreparedProblem, problem: SceneProblem, theta: np.ndarray, *, n_fitted: int
) -> list[dict[str, Any]]:
    """Return a row for each observation and moving surface, with what others report of it.

    `theta` is the fit of the first `n_fitted` frames, and what follows them counts; of an
    observation that has no frame after them all do. Rows have `of`, `frames` and `held_back`, and
    of films `psnr` [dB], `ssim` and `iou`; of points `error`, the mean distance in the unit of
    `axis`. Of a twin there are rows of its surfaces with `error` and `chamfer` [m], to where the
    truth has them.
    """
    try:
        stepped = problem.with_steps_for(theta)
        moved, samplings, values = stepped.run_at(theta)
        predicted = [to_host(rows) for rows in stepped.rows_of(moved, samplings, values)]
        truths = _seen_of_truth(prepared)
    except NOT_FINITE:
        return []
    out, surfaces = [], {}
    for observer, at, rows in zip(problem.observers, samplings, predicted, strict=True):
        is_late = observer.index >= n_fitted
        counted = is_late if is_late.any() else np.ones_like(is_late)
        frames = {"frames": int(counted.sum()), "held_back": bool(is_late.any())}
        if numbers := _of_observation(observer, rows, counted):
            out.append({"of": observer.name, **frames, **numbers})
        here, there = observer.seen(moved, at), truths.get(observer.name, {})
        for name in (here.keys() & there.keys() & stepped.built.subjects.keys()) - surfaces.keys():
            # A problem of the first frames sees as many of the truth's.
            apart = _of_surface(here[name][counted], there[name][: len(counted)][counted])
            surfaces[name] = {"of": name, **frames, **apart}
    return out + [surfaces[name] for name in sorted(surfaces)]


def _seen_of_truth(prepared: PreparedProblem) -> dict[str, Moved]:
    """Return what each observation of a twin sees of the truth, by name."""
    if prepared.hidden is None or prepared.true_values is None:
        return {}
    hidden = prepared.hidden
    moved, samplings = hidden.moved({**hidden.fixed, **prepared.true_values})
    pairs = zip(hidden.observers, samplings, strict=True)
    return {observer.name: observer.seen(moved, at) for observer, at in pairs}


def _of_observation(observer: Observer, rows: np.ndarray, counted: np.ndarray) -> dict[str, Any]:
    """Return the metrics of pictures or of points in the frames that count."""
    if pictures := observer.pictures(rows):
        images, targets, masks, target_masks = (each[counted] for each in pictures)
        numbers = {"psnr": psnr(images, targets), "iou": overlap(masks, target_masks)}
        numbers |= {"ssim": ssim(images, targets)} if min(images.shape[1:3]) >= WIDTH else {}
        return {name: value for name, value in numbers.items() if np.isfinite(value)}
    if curves := observer.curves(rows):
        apart = np.linalg.norm(curves["predicted"] - curves["observed"], axis=-1)[counted]
        seen = apart[np.isfinite(apart)]
        return {"error": float(seen.mean()), "axis": str(curves["labels"][0])} if seen.size else {}
    return {}


def _of_surface(x: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return how far vertices (n_frames, n, 3) are from those of the truth, (n_frames, m, 3)."""
    out = {}
    if x.shape == truth.shape:
        out["error"] = float(np.linalg.norm(x - truth, axis=-1).mean())
    if max(x.shape[1], truth.shape[1]) <= MOST_POINTS:
        out["chamfer"] = float(np.mean([chamfer(a, b) for a, b in zip(x, truth, strict=True)]))
    return out


def measured_truth(file: SceneFile) -> dict[str, float]:
    """Return what `truth` says of footage, by the labels of free numbers; {} of a twin."""
    out: dict[str, float] = {}
    for path, value in () if file.is_simulated else file.truth.items():
        if path.endswith(".mesh"):  # a file, which `studies.fitting.pictures` compares
            continue
        numbers = np.asarray(value, float)
        for index in np.ndindex(numbers.shape):
            out[path + "".join(f"[{i}]" for i in index)] = float(numbers[index])
    return out


def with_value_metrics(row: dict[str, Any], *, is_positive: bool) -> dict[str, Any]:
    """Return the row of a number with `error`, and of a positive one `log10_error`.

    A row without a truth stays as it is.
    """
    if "truth" not in row or row["count"] > 1:
        return row
    errors = {"error": abs(row["estimate"] - row["truth"])}
    if is_positive and row["truth"] > 0.0 and row["estimate"] > 0.0:
        errors["log10_error"] = log10_error(row["estimate"], row["truth"])
    return row | errors
