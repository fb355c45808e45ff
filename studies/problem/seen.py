"""What a run of a scene writes to be seen: the motion, films beside their fits, tracked points.

`films.json` lists what the page shows of every film, in files of the run.
"""

from contextlib import suppress
from typing import Any

import numpy as np

from studies.answer.fit_warnings import offset
from studies.problem.films import FilmObserver, SmokeObserver
from studies.problem.making import Made
from studies.problem.observers import values_under
from studies.problem.page_films import (
    ROWS,
    PageFilm,
    enlarged,
    fields_shown,
    page_film,
    smoke_film,
)
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem
from studies.problem.solve import Solved
from studies.reports.figures import difference_gain
from studies.reports.scene_run import FILMS, THUMBNAIL
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.runs.media import as_uint8, magnified, write_jpeg, write_video
from studies.scene import declared
from studies.scene.motion import trajectory_fields
from studies.search.optimizers.problem import NOT_FINITE


QUALITY = 18  # of films on the page, as x264 counts it
THUMBNAIL_ROWS = 180
SECONDS = 2.5  # how long a film plays; the motion itself is mostly shorter


def write_seen(folder: RunFolder, file: declared.SceneFile, made: Made, solved: Solved) -> None:
    """Write the fitted motion, every film beside its fit, and the curves of tracked points."""
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
    fitted, begun = _parts(problem, theta), {}
    start = made.everything.parameters.start
    with suppress(*NOT_FINITE):
        begun = _parts(made.everything.with_steps_for(start), start)
    shown = []
    for one in problem.observers:
        if isinstance(one, FilmObserver | SmokeObserver):
            images = one.as_images(fitted[one.name]).astype(np.float32)
            before = one.as_images(begun[one.name]) if begun else np.zeros_like(images)
            target = one.frames.astype(np.float32)
            folder.write_npz(
                f"frames-{one.name}.npz",
                times=one.times,
                target=target,
                fitted=images,
                start=before.astype(np.float32),
            )
            if isinstance(one, FilmObserver):
                page = page_film(problem, one, file, values=problem._values(theta), made=made)
            else:
                smoke = smoke_film(problem, one, problem._values(theta))
                page = PageFilm(
                    magnified(as_uint8(target), height=ROWS), magnified(smoke, height=ROWS)
                )
            difference = images[..., :3] - target[..., :3]
            shown.append(_write_film(folder, one, page, difference, goal=file.purpose == "control"))
        elif isinstance(one, PointObserver) and len(one.times) > 1:
            predicted = fitted[one.name].reshape(*one.places.shape[:2], 4)
            folder.write_npz(
                f"points-{one.name}.npz",
                times=one.times,
                observed=one.places,
                predicted=predicted[..., : one.places.shape[-1]],
            )
    fields = {}
    found = fields_shown(made, solved, has_truth=file.purpose == "identify")
    for k, (path, one) in enumerate(found.items()):
        folder.write_npz(f"field-{k + 1}.npz", **one.pop("images"))
        fields[path] = {**one, "file": f"field-{k + 1}.npz"}
    folder.write_json(FILMS, {"films": shown, "fields": fields})


def _parts(problem: SceneProblem, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the predicted rows of every observation, by name."""
    return {one.name: rows for one, rows in problem.by_observer(problem.images(theta))}


def _write_film(
    folder: RunFolder,
    one: FilmObserver | SmokeObserver,
    page: PageFilm,
    difference: np.ndarray,
    *,
    goal: bool,
) -> dict[str, Any]:
    """Write what the page shows of a film; return where it is, with captions."""
    largest = float(np.abs(difference).max())
    gain = difference_gain(largest)
    grey = magnified(as_uint8(0.5 + gain * difference), height=ROWS)
    is_silhouette = isinstance(one, FilmObserver) and not one.paths
    height, width = one.size
    is_picture = len(one.times) == 1
    name = "goal" if goal else "picture" if is_picture else "film"
    captions = {
        "film": f"the {name}" + (", drawn again from the truth" if page.is_simulated else ""),
        "answer": f"the answer, drawn over the {name}" if is_silhouette else "the answer",
        "difference": f"answer - {name} as compared, {height} x {width} pixels, around mid grey"
        + (f", enlarged {gain:g} times" if gain > 1.0 else "")
        + (f": at most {largest:.1g}" if largest else ": none"),
    }
    items = []
    for kind, images in (("film", page.footage), ("answer", page.answer), ("difference", grey)):
        place = f"films/{one.name}-{kind}"
        middle = images[len(images) // 2 if len(images) > 2 else -1]
        write_jpeg(folder.file(f"{place}.jpg"), middle)
        item = {"alt": f"{one.name}: {kind}", "caption": captions[kind], "file": f"{place}.jpg"}
        if len(images) > 1:
            fps = float(np.clip(round(len(images) / SECONDS), 2, 30))
            write_video(folder.file(f"{place}.mp4"), images, fps, crf=QUALITY, pad=True)
            item |= {"file": f"{place}.mp4", "poster": f"{place}.jpg"}
        items.append(item)
    if not folder.has(THUMBNAIL):
        height, width = page.answer.shape[1:3]
        size = (THUMBNAIL_ROWS, max(round(THUMBNAIL_ROWS * width / height), 1))
        write_jpeg(folder.file(THUMBNAIL), as_uint8(enlarged(page.answer[-1] / 255.0, size)))
    return {
        "title": f"{name.capitalize()} and answer: {one.name}",
        "name": one.name,
        "frames": f"frames-{one.name}.npz",
        "items": items,
    }


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
            if one.weight  # of a control others are only measured
        },
    }


def look_offset(problem: SceneProblem, theta: np.ndarray) -> dict[str, Any]:
    """Return by how much the fit of the first film is brighter than the film, on the whole."""
    parts = _parts(problem, theta)
    films = [one for one in problem.observers if isinstance(one, FilmObserver) and one.paths]
    if not films:
        return {"body": [0.0] * 3, "background": [0.0] * 3, "share": 0.0}
    return offset(films[0].as_images(parts[films[0].name]), films[0].frames)


def cameras_json(
    problem: SceneProblem, file: declared.SceneFile, theta: np.ndarray
) -> list[dict[str, Any]]:
    """Return every camera that was fitted, as it was declared and as it is at the answer.

    `moved` is how many standard deviations of its prior a part of it moved at most, and `most`
    which one.
    """
    values, parameters = problem._values(theta), problem.parameters
    out = {}
    for one in problem.observers:
        path = getattr(one, "camera_path", "")
        mine = [k for k, label in enumerate(parameters.labels) if label.startswith(f"{path}.")]
        if not path or path in out or not mine:
            continue
        camera, center = one.camera, one.center  # pyright: ignore[reportAttributeAccessIssue]
        spec = file.cameras[path.partition(".")[2]]
        far = float(np.linalg.norm(camera.translation))
        if spec.eye is not None and spec.target is not None:
            far = float(np.linalg.norm(np.subtract(spec.target, spec.eye)))
        deviations = np.abs(theta - parameters.prior_mean) / parameters.prior_error
        most = max(mine, key=lambda k: deviations[k])
        out[path] = {
            "name": path.partition(".")[2],
            "declared": _view(camera, center, far),
            "fitted": _view(camera.with_values(values_under(path, values)), center, far),
            "moved": float(deviations[most]) if np.isfinite(deviations[most]) else None,
            "most": parameters.labels[most].removeprefix(f"{path}."),
        }
    return list(out.values())


def _view(camera: Any, center: np.ndarray, far: float) -> dict[str, Any]:
    """Return eye and target [m] and the lens of a camera that looks at points minus `center`."""
    eye, axes = camera.pose()
    place = eye + center
    lens = "fov_y" if camera.lens is None else "focal"
    value = np.asarray(camera.parameters()[lens]).tolist()
    return {"eye": place.tolist(), "target": (place + far * axes[2]).tolist(), lens: value}
