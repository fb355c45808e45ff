"""What a run of a scene writes to be seen: the motion, films beside their fits, tracked points.

`films.json` lists what the page shows of every film, in files of the run.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim.values import values_under
from render.annealing import softness
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.answer.fit_warnings import offset
from studies.answer.solution import Solution
from studies.optimizers.problem import NOT_FINITE
from studies.problem.films import FilmObserver, SmokeObserver
from studies.problem.forward import start_surfaces
from studies.problem.making import PreparedProblem
from studies.problem.observations.films import film_pictures
from studies.problem.observers import Observer
from studies.problem.observing import camera_of
from studies.problem.points import PointObserver
from studies.problem.problem import SceneProblem
from studies.reports.figures import difference_gain
from studies.reports.joint_marks import marked, seen_by
from studies.reports.scene_run import FILMS, THUMBNAIL
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.runs.media import (
    SHARP,
    as_float,
    as_uint8,
    hatched,
    magnified,
    resized,
    write_jpeg,
    write_video,
)
from studies.scene import declared
from studies.scene.filming import Skin
from studies.scene.joints import JointMark
from studies.scene.motion import trajectory_fields
from studies.scene.obstacles import DRAWN_CELLS, drawn_obstacle


ROWS = 480  # of a film on a page, at least
MOST_FRAMES = 48
AT_ONCE = 4  # frames
SUPERSAMPLED = 24  # films of so many frames or fewer are drawn with twice the rows
SOFT = 0.5  # width of edges [pixels]
OPACITY = 0.3  # of obstacles that the scene does not draw
PLAIN = 0.1  # by how much the colours of a background may differ that shows no obstacles
AROUND = 2.0  # times the distance of the camera: edge of the part of a floor that is shown
SQUARES = (0.35, 0.75)  # grey levels of a floor
COLORS, UNKNOWN = "viridis", 0.6  # of a field, and the grey level where it has no value
MARGIN = 24  # pixels around a body with a field
FIELD_ROWS = 960  # of a picture of a field, before it is cut
QUALITY = 18  # of films on the page, as x264 counts it
THUMBNAIL_ROWS = 180
SECONDS = 2.5  # how long a film plays; the motion itself is mostly shorter


@dataclass(frozen=True, eq=False)
class PageFilm:
    """What a page shows of one film, in RGB of 8 bits, (n, height, width, 3)."""

    footage: np.ndarray
    answer: np.ndarray  # the whole motion where the film is a picture
    is_simulated: bool = False  # whether the film was drawn again from the truth
    has_joints: bool = False  # whether joints are marked in the answer


def page_film(
    problem: SceneProblem,
    one: FilmObserver,
    file: declared.SceneFile,
    *,
    values: Mapping[str, np.ndarray],
    made: PreparedProblem,
) -> PageFilm:
    """Return what a page shows of a film at the answer; a simulated one is drawn again."""
    n = len(one.times)
    chosen = np.unique(np.linspace(0, n - 1, min(n, MOST_FRAMES)).round().astype(int))
    spec = file.observations[one.name]
    assert isinstance(spec, declared.Film)
    footage = None
    if spec.video is not None:
        footage = film_pictures(spec, camera_of(file, spec), one.name, rows=ROWS, chosen=chosen)
    height, width = one.size if footage is None else footage.shape[1:3]
    times = max(1, min(-(-ROWS // height), SHARP // width))  # a wide one is not drawn as high
    size = (height * times, width * times)
    instants = one.instants(values)[chosen] if n > 1 else _until(one, values)
    plate = _plate(one, footage, size)
    joints = problem.built.joints
    answer = _images(problem, one, file, plate, values=values, instants=instants, joints=joints)
    if footage is None and made.hidden is not None and made.true_values is not None:
        shown = next(each for each in made.hidden.observers if each.name == one.name)
        assert isinstance(shown, FilmObserver)
        truth = {**made.hidden.fixed, **made.true_values}
        instants = one.instants(truth)[chosen]
        footage = _images(made.hidden, shown, file, plate, values=truth, instants=instants)
    if footage is None:
        footage = as_uint8(one.frames[chosen])
    if one.ignored is not None:
        footage = as_uint8(hatched(as_float(footage), one.ignored))
    return PageFilm(footage, answer, spec.video is None, bool(joints))


def smoke_film(
    problem: SceneProblem, one: SmokeObserver, values: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return the frames of smoke at the answer; the whole motion where the film is a picture."""
    times = one.times if len(one.times) > 1 else _until(one, values) - one.start
    frames = np.broadcast_to(np.float32(0.0), (len(times), *one.frames.shape[1:]))
    shown = replace(one, times=times, index=np.arange(len(times)), frames=frames)
    moved, (at,) = replace(problem, observers=(shown,)).moved(values)
    return as_uint8(shown.as_images(shown.predict(moved, at, values))[..., :3])


def _until(one: Observer, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return times from the start of the motion to that of a picture."""
    end = float(one.instants(values)[0])
    return np.linspace(0.0, end, MOST_FRAMES) if end > 0.0 else np.array([end])


def _images(
    problem: SceneProblem,
    one: FilmObserver,
    file: declared.SceneFile,
    plate: np.ndarray,
    *,
    values: Mapping[str, np.ndarray],
    instants: np.ndarray,
    joints: Mapping[str, JointMark] | None = None,
) -> np.ndarray:
    """Return a film at these times of the scene over `plate`, (n, height, width, 3) of 8 bits.

    `joints` are those that are marked in it.
    """
    parts = np.array_split(instants, -(-len(instants) // AT_ONCE))
    factor = 2 if len(instants) <= SUPERSAMPLED else 1
    height, width = plate.shape[:2]
    start = float(np.asarray(values.get(one.start_path, one.start)))
    looks = one.scene if one.paths else Scene(problem.built.meshes, problem.built.lights)
    plate = _with_obstacles(plate, problem, one, file, values=values)
    rasterizer = replace(_rasterizer(height), background=plate, supersample=factor)
    pages = [
        replace(
            one,
            scene=looks,
            times=part - start,
            index=np.arange(len(part)),
            frames=np.broadcast_to(np.float32(0.0), (len(part), height, width, 3)),
            rasterizer=rasterizer,
        )
        for part in parts
    ]
    out = []
    moved, samplings = replace(problem, observers=tuple(pages)).moved(values)
    for page, at in zip(pages, samplings, strict=True):
        images = as_uint8(page.as_images(page.predict(moved, at, values)))[..., :3]
        if joints:
            seen = page.scenery(page.seen(moved, at), values)
            seen_at = seen_by(seen.camera, images.shape[1:3])
            for k, image in enumerate(images):
                places = {name: x[k] for name, x in seen.vertices.items()}
                images[k] = marked(image, joints, places, seen_at)
        out.append(images)
    return np.concatenate(out)


def _with_obstacles(
    plate: np.ndarray,
    problem: SceneProblem,
    one: FilmObserver,
    file: declared.SceneFile,
    *,
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Return a plain background with the obstacles that the scene does not draw, lightly.

    A picture shows the real ones: a second floor would lie beside its own. One that a body carries
    does not stand still.
    """
    if float(np.ptp(plate, axis=(0, 1)).max()) > PLAIN:
        return plate
    meshes: dict[str, Mesh] = {}
    vertices: dict[str, np.ndarray] = {}
    for name, obstacle in file.obstacles.items():
        if not (obstacle.draw or obstacle.fixed_to):
            for key, (mesh, points) in _obstacle_meshes(one, name, obstacle).items():
                meshes[key], vertices[key] = mesh, (points - one.center)[None]
    if not meshes:
        return plate
    size = plate.shape[0], plate.shape[1]
    rasterizer = _rasterizer(size[0])
    scene = Scene(meshes, problem.built.lights)
    (drawn,) = rasterize(scene, one.camera_at(values), rasterizer, vertices, size)
    return plate * (1.0 - OPACITY * drawn[..., 3:]) + OPACITY * drawn[..., :3]


def _obstacle_meshes(
    one: FilmObserver, name: str, obstacle: declared.Obstacle
) -> dict[str, tuple[Mesh, np.ndarray]]:
    """Return the meshes of an obstacle: of a plane, the squares of a floor near the bodies."""
    if not isinstance(obstacle, declared.PlaneObstacle):
        mesh, points = drawn_obstacle(name, obstacle)
        return {name: (_grey(mesh.faces, SQUARES[1]), points)}
    normal = np.asarray(obstacle.normal) / np.linalg.norm(obstacle.normal)
    below = one.center - normal * (normal @ (one.center - np.asarray(obstacle.point)))
    size = AROUND * float(np.linalg.norm(one.camera.translation))
    near = replace(obstacle, point=tuple(below.tolist()), extent=min(obstacle.extent, size))
    mesh, points = drawn_obstacle(name, near)
    edges = points[[1, DRAWN_CELLS + 1]] - points[0]
    offsets = (points[mesh.faces].mean(axis=1) - points[0]) @ edges.T
    cells = np.floor(offsets / (edges**2).sum(axis=1) / 2.0).astype(int).sum(axis=1) % 2
    return {
        f"{name}-{k}": (_grey(mesh.faces[cells == k], grey), points)
        for k, grey in enumerate(SQUARES)
    }


def _rasterizer(rows: int) -> SoftRasterizer:
    return SoftRasterizer(sigma=softness(SOFT, rows), seamless=True)


def _grey(faces: np.ndarray, level: float) -> Mesh:
    return Mesh(faces, material=Material(ambient=0.6 * level, diffuse=0.4 * level))


def _plate(one: FilmObserver, footage: np.ndarray | None, size: tuple[int, int]) -> np.ndarray:
    """Return what is behind the bodies, as large as the page's film, (height, width, 3)."""
    background = np.asarray(one.rasterizer.background, np.float64)
    if not one.paths and footage is not None:  # silhouettes: the film itself, half as bright
        return 0.5 * resized(as_float(footage[0]), size)
    if background.ndim == 1:
        return np.broadcast_to(background, (*size, 3))
    return resized(background, size)


def fields_shown(
    made: PreparedProblem, solved: Solution, *, has_truth: bool
) -> dict[str, dict[str, Any]]:
    """Return pictures of the fields among the answers by path, seen by the first film's camera.

    Each has `images` by name ("truth" and "answer"), (height, width, 3), the `unit`, and the ends
    of its colours, `low` and `high`.
    """
    problem, theta = solved.problem, solved.result.theta
    camera = next((one for one in problem.observers if isinstance(one, FilmObserver)), None)
    if camera is None:
        return {}
    surfaces, out = start_surfaces(problem.built), {}
    values = problem.parameters.values(theta).values()
    for one, value in zip(problem.parameters.free, values, strict=True):
        body = one.path.partition(".")[0]
        subject = problem.built.subjects.get(body)
        if not one.is_answer or not isinstance(subject, Skin):
            continue
        both = {"answer": value}
        if has_truth and made.truth is not None:
            both = {"truth": made.truth.flat((one.path,)).reshape(value.shape), **both}
        found = {name: _of_vertices(solved, body, subject, each) for name, each in both.items()}
        painted = {name: each for name, each in found.items() if each is not None}
        if not painted:
            continue
        low = min(float(np.nanmin(each)) for each in painted.values())
        high = max(float(np.nanmax(each)) for each in painted.values())
        place = surfaces[body][None] - camera.center
        view = camera.camera_at(problem._values(theta))
        height, width = camera.size
        size = (FIELD_ROWS, max(round(FIELD_ROWS * width / height), 1))
        rasterizer = replace(_rasterizer(FIELD_ROWS), background=(1.0, 1.0, 1.0))
        images = {}
        for name, each in painted.items():
            mesh = _painted(np.asarray(problem.built.meshes[body].faces), each, low, high)
            (drawn,) = rasterize(Scene({body: mesh}), view, rasterizer, {body: place}, size)
            images[name] = drawn[_around(drawn[..., 3])][..., :3]
        unit = problem.parameters.units().get(one.path, "")
        out[one.path] = {"images": images, "unit": unit, "low": low, "high": high}
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
    own = np.arange(n_nodes)[rows]
    free = own[~built.held[rows]]
    elements = getattr(getattr(built.system, "forces", {}).get(body), "nodes", None)
    if len(field) == len(own):
        nodal[own] = field
    elif len(field) == len(free):
        nodal[free] = field
    elif elements is not None and len(field) == len(elements):
        corners, each = np.asarray(elements).ravel(), elements.shape[1]
        total = np.bincount(corners, np.repeat(field, each), n_nodes)
        count = np.bincount(corners, minlength=n_nodes)
        nodal = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    else:
        return None
    known = np.isfinite(nodal)
    weight = subject.matrix @ known.astype(float)
    mean = subject.matrix @ np.where(known, nodal, 0.0) / np.where(weight > 0.0, weight, 1.0)
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
    folder: RunFolder, file: declared.SceneFile, made: PreparedProblem, solved: Solution
) -> None:
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
    films = [one for one in problem.observers if isinstance(one, FilmObserver | SmokeObserver)]
    longest = max(films, key=lambda one: len(one.times), default=None)
    for one in problem.observers:
        if isinstance(one, FilmObserver | SmokeObserver):
            images = one.as_images(fitted[one.name]).astype(np.float32)
            before = one.as_images(begun[one.name]) if begun else np.zeros_like(images)
            target = hatched(one.frames, one.ignored).astype(np.float32)
            for pictures in (images, before):
                pictures[..., :3] = hatched(pictures[..., :3], one.ignored)
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
            if one is longest:
                _write_thumbnail(folder, page.answer[-1])
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
    ignored = "" if one.ignored is None else ", hatched where it is not compared"
    captions = {
        "film": f"the {name}{', drawn again from the truth' * page.is_simulated}{ignored}",
        "answer": (f"the answer, drawn over the {name}" if is_silhouette else "the answer")
        + (", with its joints" if page.has_joints else ""),
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
    return {
        "title": f"{name.capitalize()} and answer: {one.name}",
        "name": one.name,
        "frames": f"frames-{one.name}.npz",
        "items": items,
    }


def _write_thumbnail(folder: RunFolder, image: np.ndarray) -> None:
    """Write a small copy of a picture, (height, width, 3) uint8."""
    height, width = image.shape[:2]
    size = (THUMBNAIL_ROWS, max(round(THUMBNAIL_ROWS * width / height), 1))
    write_jpeg(folder.file(THUMBNAIL), as_uint8(resized(image / 255.0, size)))


def facts_of(problem: SceneProblem) -> dict[str, Any]:
    """Return what the result says of frames, sizes and time steps."""
    return {
        "frames": problem.n_frames,
        **steps_of(problem),
        "observations": {
            one.name: {
                "frames": len(one.times),
                "size": list(one.size) if isinstance(one, FilmObserver | SmokeObserver) else None,
            }
            for one in problem.observers
            if one.weight  # of a control others are only measured
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
        path, camera, center = one.camera_path, one.camera, one.center
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
