"""What a finished fit leaves in its folder: numbers, arrays and videos."""

from typing import TYPE_CHECKING, Any

import numpy as np

from adjsim.meshes.tet_mesh import TetMesh
from studies import run_folder
from studies.optimizers.evaluations import Evaluation, read_log
from studies.optimizers.problem import Result
from studies.run_folder import RunFolder
from studies.uncertainty import Uncertainty
from studies.video_problem import VideoProblem


if TYPE_CHECKING:
    from studies.fit import Fit

SECONDS = 2.5  # how long a video plays; the motion itself is mostly shorter
LARGEST_TABLE = 64  # parameters listed one by one


def result_json(
    fit: "Fit", found: Result, spread: Uncertainty, covered: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the result of a fit as plain numbers."""
    problem, parameters = fit.problem, fit.problem.parameters
    estimate = parameters.natural(found.theta)
    start = parameters.natural(parameters.start)
    paths = _path_of_each(parameters.values(found.theta))
    rows = []
    for i, label in enumerate(parameters.labels[:LARGEST_TABLE]):
        low, high = (float(end[i]) for end in spread.interval)
        row: dict[str, Any] = {
            "name": label,
            "unit": fit.units.get(paths[i], ""),
            "start": float(start[i]),
            "estimate": float(estimate[i]),
            "interval": [low, high] if np.isfinite([low, high]).all() else None,
        }
        if fit.truth is not None:
            truth = float(fit.truth.values[paths[i]])
            row |= {"truth": truth, "relative_error": abs(row["estimate"] / truth - 1.0)}
        rows.append(row)
    return {
        "title": fit.title,
        "status": found.status.name,
        "message": found.message,
        "loss": found.loss,
        "evaluations": found.evaluations,
        "method": str(fit.search.method),
        "loss_function": repr(problem.loss),
        "n_parameters": parameters.size,
        "n_values": problem.n_pixels,
        "frames": problem.motion.frames.tolist(),
        "dt": problem.motion.dt,
        "n_nodes": problem.motion.model.n_nodes,
        "n_tets": fit.mesh.n_tets,
        "size": list(problem.filming.size),
        "parameters": rows,
        "theta_labels": list(parameters.theta_labels[:LARGEST_TABLE]),
        "uncertainty": spread.to_dict(),
        "coverage": covered,
    }


def _path_of_each(values: dict[str, np.ndarray]) -> list[str]:
    return [path for path, value in values.items() for _ in range(np.size(value))]


def summary(result: dict[str, Any], certified: dict[str, Any]) -> list[str]:
    """Return a few lines for the terminal."""
    lines = [f"{result['status'].lower()}: {result['message']}"]
    for row in result["parameters"][:12]:
        line = f"  {row['name']} = {row['estimate']:.8g} {row['unit']}"
        if row["interval"]:
            line += f"  95 % interval [{row['interval'][0]:.6g}, {row['interval'][1]:.6g}]"
        if "truth" in row:
            line += f"  truth {row['truth']:.6g}, relative error {row['relative_error']:.1e}"
        lines.append(line)
    lines.append(f"  loss {result['loss']:.3e} after {result['evaluations']} evaluations")
    if covered := result["coverage"]:
        parts = ", ".join(f"{name} {count}" for name, count in covered["covered"].items())
        lines.append(f"  intervals held the truth in {parts} of {covered['repeats']} noise seeds")
    lines.append(f"gradient certificate: {'passed' if certified['passed'] else 'FAILED'}")
    return lines


def write_arrays(
    folder: RunFolder, problem: VideoProblem, theta: np.ndarray, mesh: TetMesh
) -> None:
    """Write parameters with their history, the fitted motion, and the frames."""
    history = accepted(read_log(folder.file(run_folder.ITERATIONS)))
    parameters = problem.parameters
    thetas = np.array([evaluation.theta for evaluation in history])
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
    )
    motion = problem.trajectory(theta)
    folder.write_npz(
        run_folder.TRAJECTORY,
        steps=motion.steps,
        times=motion.times,
        x=motion.x,
        v=motion.v,
        rest=mesh.points,
        tets=mesh.tets,
    )
    folder.write_npz(
        run_folder.FRAMES,
        times=motion.times,
        target=problem.targets.astype(np.float32),
        fitted=problem.filming.shoot(motion.x).astype(np.float32),
        start=problem.images(parameters.start).astype(np.float32),
    )


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
    from studies.media import write_video

    frames = folder.read_npz(run_folder.FRAMES)
    fps = playback_fps(len(frames["target"]))
    for name, key in ((run_folder.TARGET_VIDEO, "target"), (run_folder.FITTED_VIDEO, "fitted")):
        images = enlarged(frames[key][..., :3])
        write_video(folder.file(name), images, fps, pad=True)


def playback_fps(n_frames: int) -> float:
    """Return the rate at which n frames play for about `SECONDS`."""
    return float(np.clip(round(n_frames / SECONDS), 2, 30))


def enlarged(images: np.ndarray, width: int = 480) -> np.ndarray:
    """Return small images with every pixel repeated, so that a browser does not blur them."""
    factor = max(1, width // images.shape[2])
    return images.repeat(factor, axis=1).repeat(factor, axis=2)
