"""What a run of a scene shows: films beside their fits, tracked points, and the motion."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from studies import figures, report, run_folder
from studies.fit_warnings import offset
from studies.media import as_uint8, write_video
from studies.motion import trajectory_fields
from studies.optimizers.problem import NOT_FINITE
from studies.outcome import enlarged, playback_fps
from studies.problem.films import FilmObserver
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem
from studies.problem.smoke import SmokeObserver
from studies.problem.solve import Solved
from studies.report_parts import FACES_SWAP, counted, wide
from studies.run_folder import RunFolder
from studies.video_report import video_source


FILMS = "films.json"  # what a run of a scene shows, by name
POINTS = 6  # tracked points whose curves are drawn


def write_seen(folder: RunFolder, start: SceneProblem, solved: Solved) -> None:
    """Write the fitted motion, every film beside its fit, and the curves of tracked points.

    Parameters
    ----------
    folder : RunFolder
    start : SceneProblem
        At the start of the search.
    solved : Solved
    """
    problem, theta = solved.problem, solved.result.theta
    motion = problem.motion_at(theta)
    run = motion.run()
    arrays: dict[str, np.ndarray] = {"steps": run.steps, "times": run.times}
    arrays |= trajectory_fields(run)
    for name, subject in problem.built.subjects.items():
        arrays[f"faces.{name}"] = np.asarray(problem.built.meshes[name].faces)
        arrays[f"vertices.{name}"] = subject.vertices(motion, run)
    folder.write_npz(
        run_folder.TRAJECTORY, objects=np.array(list(problem.built.subjects), str), **arrays
    )
    fitted, begun = _parts(problem, theta), _at_start(start)
    names = []
    for one in problem.observers:
        if isinstance(one, FilmObserver | SmokeObserver):
            images = one.as_images(fitted[one.name]).astype(np.float32)
            before = one.as_images(begun[one.name]) if begun else np.zeros_like(images)
            _write_film(folder, one, images, before.astype(np.float32))
            names.append(one.name)
        elif isinstance(one, PointObserver) and len(one.times) > 1:
            curves = _curves(one, fitted[one.name])
            folder.write_figures({f"points-{one.name}": curves})
    folder.write_json(FILMS, {"films": names})


def _parts(problem: SceneProblem, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the predicted rows of every observation, by name."""
    rows = problem.images(theta)
    ends = np.cumsum([one.rows_per_frame() * len(one.times) for one in problem.observers])
    parts = np.split(rows, ends[:-1])
    return {one.name: part for one, part in zip(problem.observers, parts, strict=True)}


def _at_start(start: SceneProblem) -> dict[str, np.ndarray]:
    theta = start.parameters.start
    try:
        return _parts(start.with_steps_for(theta), theta)
    except NOT_FINITE:
        return {}


def _write_film(
    folder: RunFolder, one: FilmObserver | SmokeObserver, fitted: np.ndarray, start: np.ndarray
) -> None:
    target = one.frames.astype(np.float32)
    folder.write_npz(
        f"frames-{one.name}.npz", times=one.times, target=target, fitted=fitted, start=start
    )
    fps = playback_fps(len(target))
    for kind, images in (("target", target), ("fitted", fitted[..., :3])):
        path = folder.file(f"{kind}-{one.name}.mp4")
        write_video(path, enlarged(as_uint8(images)), fps, pad=True)


def _curves(one: PointObserver, rows: np.ndarray) -> bytes:
    """Draw tracked points and their predictions over time, as a PNG."""
    axes_of = "uv" if one.places.shape[-1] == 2 else "xyz"
    predicted = rows.reshape(*one.places.shape[:2], 4)
    figure, axes = figures.make_axes(1, len(axes_of), (3.2 * len(axes_of), 2.8))
    for k, (ax, name) in enumerate(zip(axes, axes_of, strict=True)):
        for point in range(min(one.places.shape[1], POINTS)):
            ax.plot(one.times, one.places[:, point, k], ".", color=figures.SOFT, ms=4)
            ax.plot(one.times, predicted[:, point, k], color=figures.BLUE, lw=1.2)
        unit = "pixels" if len(axes_of) == 2 else "m"
        ax.set_xlabel("time [s]")
        ax.set_ylabel(f"{name} [{unit}]")
    return figures.png(figure)


def facts_of(problem: SceneProblem) -> dict[str, Any]:
    """Return what the result says of frames, sizes and time steps."""
    return {
        "frames": problem.n_frames,
        "dt": problem.steps.dt,
        "n_steps": int(problem.motion_at(problem.parameters.start).n_steps),
        "observations": {
            one.name: {
                "frames": len(one.times),
                "size": list(one.size) if isinstance(one, FilmObserver | SmokeObserver) else None,
            }
            for one in problem.observers
        },
    }


def look_offset(problem: SceneProblem, theta: np.ndarray) -> dict[str, Any]:
    """Return by how much the fit of the first film is brighter than the film, on the whole."""
    parts = _parts(problem, theta)
    films = [one for one in problem.observers if isinstance(one, FilmObserver) and one.paths]
    if not films:
        return {"body": [0.0] * 3, "background": [0.0] * 3, "share": 0.0}
    return offset(films[0].as_images(parts[films[0].name]), films[0].frames)


# The part of a report, as `studies.report` asks for it


def write_report(folder: RunFolder) -> Path:
    """Write the page of a run of a scene; return its path."""
    return report.write_report(folder, sys.modules[__name__])


def seen(folder: RunFolder, result: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return the section of the report, and its figures by name."""
    parts, drawn = [], {}
    for name in folder.read_json(FILMS)["films"]:
        frames = folder.read_npz(f"frames-{name}.npz")
        strip, _ = figures.strip(frames)
        drawn[f"strip-{name}"] = strip
        parts.append(_film_section(folder, name, strip))
    for name in result["observations"]:
        path = folder.file(f"{run_folder.FIGURES}/points-{name}.png")
        if path.is_file():
            picture = wide(path.read_bytes(), f"points of {name}: observed and fitted")
            parts.append(
                f"<section>\n<h2>Observed and fitted: {name}</h2>\n{picture}\n"
                "<p>Dots were observed, lines are the fit.</p>\n</section>"
            )
    return "".join(parts), drawn


def _film_section(folder: RunFolder, name: str, strip: bytes) -> str:
    target, fitted = (
        video_source(Path(folder.file(f"{kind}-{name}.mp4"))) for kind in ("target", "fitted")
    )
    return f"""<section>
<h2>Film and fit: {name}</h2>
<div class="pair">
<figure><video src="{target}" controls loop muted autoplay playsinline></video>
<figcaption>the film, as it is compared</figcaption></figure>
<figure><video src="{fitted}" controls loop muted autoplay playsinline></video>
<figcaption>the fit</figcaption></figure>
</div>
{wide(strip, "start, film, fit and their difference at a few instants")}
</section>"""


def facts(result: dict[str, Any]) -> dict[str, str]:
    """Return what the set-up says of the observations."""
    described = []
    for name, one in result["observations"].items():
        frames = counted(one["frames"], "frame")
        size = "" if one["size"] is None else f" of {one['size'][0]} x {one['size'][1]} pixels"
        described.append(f"{name}: {frames}{size}")
    return {
        "what moves": result["what"],
        "observations": "; ".join(described),
        "time": f"{result['n_steps']} steps of {result['dt']:g} s",
    }


def jumps(folder: RunFolder) -> str:
    """Return where a pixel may jump."""
    del folder
    return FACES_SWAP
