"""What a run of a scene writes to be seen: the motion, films beside their fits, tracked points.

`films.json` lists what the page shows of every film, in files of the run.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from adjsim.values import values_under
from render.scene import Material, Mesh, Scene
from render.soft_raster import rasterize
from studies.answer.fit_warnings import offset
from studies.answer.solution import Solution
from studies.optimizers.problem import NOT_FINITE
from studies.problem.film_pages import ROWS, PageFilm, page_rasterizer
from studies.problem.films import films_of
from studies.problem.forward import start_surfaces
from studies.problem.making import PreparedProblem
from studies.problem.observers import Moved, Observer
from studies.problem.problem import SceneProblem
from studies.reports.figures import difference_gain
from studies.reports.preview.overlay import obstacle_wires
from studies.reports.scene_run import FILMS, THUMBNAIL
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.runs.media import as_uint8, magnified, resized, write_jpeg, write_video
from studies.scene import declared
from studies.scene.filming import Skin
from studies.scene.motion import trajectory_fields


COLORS, UNKNOWN = "viridis", 0.6  # of a field, and the grey level where it has no value
MARGIN = 24  # pixels around a body with a field
FIELD_ROWS = 960  # of a picture of a field, before it is cut
QUALITY = 18  # of films on the page, as x264 counts it
THUMBNAIL_ROWS = 180
SECONDS = 2.5  # how long a film plays; the motion itself is mostly shorter


def fields_shown(
    prepared: PreparedProblem, solved: Solution, *, has_truth: bool
) -> dict[str, dict[str, Any]]:
    """Return pictures of the fields among the answers by path, seen by the first film's camera.

    Each has `images` by name ("truth" and "answer"), (height, width, 3), the `unit`, and the ends
    of its colours, `low` and `high`.
    """
    problem, theta = solved.problem, solved.result.theta
    film = next(iter(films_of(problem.observers)), None)
    if film is None:
        return {}
    surfaces, out = start_surfaces(problem.built), {}
    values = problem.parameters.values(theta).values()
    for free, value in zip(problem.parameters.free, values, strict=True):
        body = free.path.partition(".")[0]
        subject = problem.built.subjects.get(body)
        if not free.is_answer or not isinstance(subject, Skin):
            continue
        both = {"answer": value}
        if has_truth and prepared.truth is not None:
            both = {"truth": prepared.truth.flat((free.path,)).reshape(value.shape), **both}
        painted = {name: _of_vertices(solved, body, subject, each) for name, each in both.items()}
        painted = {name: each for name, each in painted.items() if each is not None}
        if not painted:
            continue
        low = min(float(np.nanmin(each)) for each in painted.values())
        high = max(float(np.nanmax(each)) for each in painted.values())
        place = surfaces[body][None] - film.center
        view = film.camera_at(problem.all_values(theta))
        height, width = film.size
        size = (FIELD_ROWS, max(round(FIELD_ROWS * width / height), 1))
        rasterizer = replace(page_rasterizer(FIELD_ROWS), background=(1.0, 1.0, 1.0))
        images = {}
        for name, each in painted.items():
            mesh = _painted(np.asarray(problem.built.meshes[body].faces), each, low, high)
            (drawn,) = rasterize(Scene({body: mesh}), view, rasterizer, {body: place}, size)
            images[name] = drawn[_around(drawn[..., 3])][..., :3]
        unit = problem.parameters.units().get(free.path, "")
        out[free.path] = {"images": images, "unit": unit, "low": low, "high": high}
    return out


def _of_vertices(
    solved: Solution, body: str, subject: Skin, value: np.ndarray
) -> np.ndarray | None:
    """Return a value for each drawn vertex, NaN where there is none; None of what is no field."""
    if value.ndim == 0 or value.size < 2:
        return None
    built = solved.problem.built
    field = np.linalg.norm(value.reshape(len(value), -1), axis=1) if value.ndim > 1 else value
    rows = built.nodes.get(body)
    if rows is None or built.held is None:
        return None
    n_nodes = len(built.held)
    nodal = np.full(n_nodes, np.nan)
    nodes = np.arange(n_nodes)[rows]
    free = nodes[~built.held[rows]]
    elements = getattr(getattr(built.system, "forces", {}).get(body), "nodes", None)
    if len(field) == len(nodes):
        nodal[nodes] = field
    elif len(field) == len(free):
        nodal[free] = field
    elif elements is not None and len(field) == len(elements):
        corners, each = np.asarray(elements).ravel(), elements.shape[1]
        total = np.bincount(corners, np.repeat(field, each), n_nodes)
        count = np.bincount(corners, minlength=n_nodes)
        nodal = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    else:
        return None
    is_known = np.isfinite(nodal)
    weight = subject.matrix @ is_known.astype(float)
    mean = subject.matrix @ np.where(is_known, nodal, 0.0) / np.where(weight > 0.0, weight, 1.0)
    return np.where(weight > 0.0, mean, np.nan)


def _around(alpha: np.ndarray) -> tuple[slice, slice]:
    """Return the rows and columns where something is drawn, and a margin."""
    cuts = []
    for axis in (1, 0):
        (there,) = np.nonzero(alpha.max(axis=axis) > 0.0)
        first, last = (there[0], there[-1]) if there.size else (0, alpha.shape[1 - axis] - 1)
        cuts.append(slice(max(first - MARGIN, 0), last + MARGIN))
    return cuts[0], cuts[1]


def _painted(faces: np.ndarray, values: np.ndarray, low: float, high: float) -> Mesh:
    """Return a mesh in the colours of its vertices' values, whatever the light."""
    from matplotlib import colormaps

    share = (values - low) / (high - low) if high > low else np.full_like(values, 0.5)
    colors = colormaps[COLORS](np.nan_to_num(share))[:, :3]
    colors[np.isnan(values)] = UNKNOWN
    return Mesh(faces, vertex_colors=colors, material=Material(ambient=1.0, diffuse=0.0))


def write_seen(
    folder: RunFolder, file: declared.SceneFile, prepared: PreparedProblem, solved: Solution
) -> None:
    """Write the fitted motion, every film beside its fit, and the curves of tracked points."""
    problem, theta = solved.problem, solved.result.theta
    _, motion, samplings = problem.moment(theta)
    run = motion.run()
    moved = problem.moved_by(motion, run)
    arrays: dict[str, np.ndarray] = {"steps": run.steps, "times": run.times}
    arrays |= trajectory_fields(run)
    for name in problem.built.subjects:
        arrays[f"faces.{name}"] = np.asarray(problem.built.meshes[name].faces)
        arrays[f"vertices.{name}"] = moved[name]
    arrays |= _wires(file, problem, moved, run.times)
    folder.write_npz(
        run_folder.TRAJECTORY, objects=np.array(list(problem.built.subjects), str), **arrays
    )
    fitted, begun = _parts(problem, theta), {}
    start = prepared.everything.parameters.start
    with suppress(*NOT_FINITE):
        begun = _parts(prepared.everything.with_steps_for(start), start)
    for observer, at in zip(problem.observers, samplings, strict=True):
        _write_points(folder, observer, fitted[observer.name], observer.seen(moved, at))
    films, longest, thumbnail = [], 0, None
    values, truth = problem.all_values(theta), None
    if prepared.hidden is not None and prepared.true_values is not None:
        truth = prepared.hidden, {**prepared.hidden.fixed, **prepared.true_values}
    for observer in problem.observers:
        rows = fitted[observer.name]
        if frames := observer.frames_compared(rows, begun.get(observer.name)):
            folder.write_npz(f"frames-{observer.name}.npz", **frames)
            page = observer.page(problem, file, values, truth)
            films.append(
                _write_film(folder, observer, page, frames, goal=file.purpose == "control")
            )
            if len(observer.times) > longest:
                longest, thumbnail = len(observer.times), page.answer[-1]
    if thumbnail is not None:
        height, width = thumbnail.shape[:2]
        size = (THUMBNAIL_ROWS, max(round(THUMBNAIL_ROWS * width / height), 1))
        write_jpeg(folder.file(THUMBNAIL), as_uint8(resized(thumbnail / 255.0, size)))
    fields = {}
    pictured = fields_shown(prepared, solved, has_truth=file.purpose == "identify")
    for k, (path, picture) in enumerate(pictured.items()):
        folder.write_npz(f"field-{k + 1}.npz", **picture.pop("images"))
        fields[path] = {**picture, "file": f"field-{k + 1}.npz"}
    folder.write_json(FILMS, {"films": films, "fields": fields})


def _wires(
    file: declared.SceneFile, problem: SceneProblem, moved: Moved, times: np.ndarray
) -> dict[str, np.ndarray]:
    """Return ends of lines that show obstacles near the bodies, "wires" (1 or n_frames, n, 3)."""
    x = [moved[name].reshape(-1, 3) for name in problem.built.subjects if name in file.bodies]
    if not x:
        return {}
    low, high = np.concatenate(x).min(axis=0), np.concatenate(x).max(axis=0)
    far = float(np.linalg.norm(high - low))
    wires = obstacle_wires(file, problem.built, 0.5 * (low + high), far=far, times=times)
    if not wires:
        return {}
    count = max(map(len, wires.values()))
    ends = [np.broadcast_to(lines, (count, *lines.shape[1:])) for lines in wires.values()]
    return {"wires": np.concatenate(ends, axis=1).reshape(count, -1, 3)}


def _write_points(folder: RunFolder, observer: Observer, rows: np.ndarray, seen: Moved) -> None:
    """Write curves of points over time, and points over the surface, of what has these."""
    if len(observer.times) > 1 and (curves := observer.curves(rows)):
        folder.write_npz(f"points-{observer.name}.npz", **curves)
    if cloud := observer.over_surface(seen):
        folder.write_npz(f"cloud-{observer.name}.npz", **cloud)


def _parts(problem: SceneProblem, theta: np.ndarray) -> dict[str, np.ndarray]:
    return {
        observer.name: rows for observer, rows in problem.by_observer(problem.predicted_rows(theta))
    }


def _write_film(
    folder: RunFolder,
    observer: Observer,
    page: PageFilm,
    frames: Mapping[str, np.ndarray],
    *,
    goal: bool,
) -> dict[str, Any]:
    """Write what the page shows of a film; return where it is, with captions."""
    difference = frames["fitted"][..., :3] - frames["target"]
    largest = float(np.abs(difference).max())
    gain = difference_gain(largest)
    grey = magnified(as_uint8(0.5 + gain * difference), height=ROWS)
    height, width = difference.shape[1:3]
    is_picture = len(observer.times) == 1
    name = "goal" if goal else "picture" if is_picture else "film"
    ignored = "" if not page.is_hatched else ", hatched where it is not compared"
    captions = {
        "film": f"the {name}{', drawn again from the truth' * page.is_simulated}{ignored}",
        "answer": (f"the answer, drawn over the {name}" if page.is_over_film else "the answer")
        + (", with its joints" if page.has_joints else ""),
        "difference": f"answer - {name} as compared, {height} x {width} pixels, around mid grey"
        + (f", enlarged {gain:g} times" if gain > 1.0 else "")
        + f": at most {largest:.1g}",
    }
    items = []
    pictures = [("film", page.footage), ("answer", page.answer)]
    pictures += [("difference", grey)] if largest else []
    for kind, images in pictures:
        place = f"films/{observer.name}-{kind}"
        middle = images[len(images) // 2 if len(images) > 2 else -1]
        write_jpeg(folder.file(f"{place}.jpg"), middle)
        item = {
            "alt": f"{observer.name}: {kind}",
            "caption": captions[kind],
            "file": f"{place}.jpg",
        }
        if len(images) > 1:
            fps = float(np.clip(round(len(images) / SECONDS), 2, 30))
            write_video(folder.file(f"{place}.mp4"), images, fps, crf=QUALITY, pad=True)
            item |= {"file": f"{place}.mp4", "poster": f"{place}.jpg"}
        items.append(item)
    return {
        "title": f"{name.capitalize()} and answer: {observer.name}",
        "name": observer.name,
        "frames": f"frames-{observer.name}.npz",
        "items": items,
    }


def facts_of(problem: SceneProblem) -> dict[str, Any]:
    """Return what the result says of frames, sizes and time steps."""
    return {
        "frames": problem.n_frames,
        **steps_of(problem),
        "observations": {
            observer.name: observer.facts()
            for observer in problem.observers
            if observer.weight  # of a control others are only measured
        },
    }


def steps_of(problem: SceneProblem) -> dict[str, Any]:
    """Return size [s] and number of the time steps; None where nothing is rolled out."""
    if not problem.rolls_out:
        return {"dt": None, "n_steps": None}
    n_steps = int(problem.motion_at(problem.parameters.start).n_steps)
    return {"dt": float(problem.steps.dt), "n_steps": n_steps}


def look_offset(problem: SceneProblem, theta: np.ndarray) -> dict[str, Any]:
    """Return by how much the fit of the first film is brighter than the film, on the whole."""
    parts = _parts(problem, theta)
    films = [film for film in films_of(problem.observers) if film.paths]
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
    values, parameters = problem.all_values(theta), problem.parameters
    out = {}
    for observer in problem.observers:
        path, camera, center = observer.camera_path, observer.camera, observer.center
        mine = [k for k, label in enumerate(parameters.labels) if label.startswith(f"{path}.")]
        if camera is None or path in out or not mine:
            continue
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
