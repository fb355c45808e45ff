"""A scene at its start values beside and over its films and tracks, and what looks wrong about it.

For every film the picture has three rows, the first, the middle and the last frame, and three
columns: the film, the scene, and the film with the outline of the scene, both with obstacles as
wire, held nodes, paths of grips, the axes of the world and gravity. For every table of tracked
points or states from a file it has their coordinates over time, and of a cloud or a depth film the
points over the surface. Many films are laid out in a grid.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from scipy.ndimage import binary_dilation, binary_erosion

from render.picture_files import open_picture
from studies.problem.free import more_values, start_values
from studies.problem.from_views import with_hulls
from studies.problem.joint_marks import marked, seen_by
from studies.problem.making import make_problem
from studies.problem.observations.film_tracker import PINK
from studies.problem.observations.outlines import faint_foreground, foreground
from studies.problem.observers import Observer
from studies.problem.observing import make_observers
from studies.reports.figures import cloud, png, points
from studies.reports.preview.advice import advice_on
from studies.reports.preview.overlay import Overlay, draw_overlays, overlays
from studies.reports.preview.shots import Shot, places_at, shoot
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.building import BuiltScene, build
from studies.scene.checking import camera_of
from studies.scene.declared import Film, SceneFile
from studies.scene.drawing import instance_of
from studies.scene.exif import notes_on_fields_of_view
from studies.scene.joints import JointMark
from studies.scene.likely_units import notes_on_units
from studies.scene.motion import SETTLING, Settled
from studies.scene.reading import read_scene
from studies.scene.seams import notes_on_seams
from studies.scene.steps import longest_step


FAR_OFF = 0.1  # of the size of the bodies: measured points that belong elsewhere
ROW = 360  # pixels of a row of the picture
GAP, WIDE_GAP = 6, 24  # within a film, and between films [pixels]
TITLE = 5.5  # width of a title over a chart [inches]


def preview(
    scene: SceneFile | Path | str,
    out: Path | str,
    overrides: Sequence[str] = (),
    *,
    say: Callable[[str], None] = lambda _text: None,
) -> list[str]:
    """Write a picture (*.png) of a scene at its start values, and return what looks wrong.

    `overrides` of a scene file are such as "bodies.duck.scale=0.02". What the scene draws
    at random is as in `adjsim run` with its default seed. `say` gets a line about hulls
    and held nodes, and about what takes long.
    """
    file = scene if isinstance(scene, SceneFile) else read_scene(scene, overrides)
    file = with_hulls(instance_of(file, seed=0), say=say)
    built = build(file)
    if not built.subjects:
        raise StudyError("`bodies` must hold something with a surface: smoke is a picture already.")
    for name, held in built.held_counts().items():
        say(f"{name}: {held}")
    if isinstance(built.system, Settled):
        say(SETTLING)
    shots, warnings = inspect(file, built)
    charts = []
    try:
        charts, said = _charts(file, built, shots)
        warnings += said
    except StudyError as error:
        if not shots:
            raise
        warnings.append(str(error))
    strips = [_strip(shot, built.joints, overlays(file, built, shot)) for shot in shots]
    picture = _stacked([*_in_rows(strips), *charts], axis=0, gap=WIDE_GAP)
    media.write_png(out, media.as_float(picture))
    moving = {shot.key.removeprefix("observations.") for shot in shots if len(shot.indices) > 1}
    films = {name: film for name, film in file.films.items() if name in moving}
    notes = built.notes + notes_on_fields_of_view(file) + notes_on_seams(file, built, films)
    return [*notes_on_units(file), *notes, *warnings, *_refused(file, warnings)]


def inspect(file: SceneFile, built: BuiltScene) -> tuple[list[Shot], list[str]]:
    """Return a scene at its start values in all films, or else cameras, and what looks wrong."""
    shots, warnings = [], []
    views: list[tuple[str, str, Film | None]] = [
        (f"observations.{name}", camera_of(f"observations.{name}", film.camera, file), film)
        for name, film in file.films.items()
    ]
    views = views or [(f"cameras.{name}", name, None) for name in file.cameras]
    if not views and not _tracks(file):
        raise StudyError(
            "`cameras` is empty: a preview needs a table [cameras.NAME], or tracked points."
        )
    for key, camera, film in views:
        shot, said = shoot(file, built, key, name=camera, film=film)
        warnings += said
        if shot.data is not None:
            seen, faint = foreground(shot.data), faint_foreground(shot.data)
            warnings += advice_on(file, built, shot, seen, faint=faint)
        shots.append(shot)
    return shots, warnings


def _refused(file: SceneFile, warnings: list[str]) -> list[str]:
    """Return why the search cannot begin, unless that follows from what looks wrong."""
    if not (file.observations and file.free):
        return []
    try:
        make_problem(file, fits_first=False)
    except ValueError as error:
        if not warnings or "`free" in str(error):
            return [f"`adjsim run` will refuse this scene: {error}"]
    return []


def _tracks(file: SceneFile) -> list[str]:
    """Return the names of tracked points and states that are read from files."""
    return [
        name
        for name, observation in file.observations.items()
        if getattr(observation, "file", None) is not None
    ]


def _charts(
    file: SceneFile, built: BuiltScene, shots: Sequence[Shot]
) -> tuple[list[np.ndarray], list[str]]:
    """Return pictures of tracks over time with the scene at its start values, and what is wrong."""
    films = {
        shot.key.removeprefix("observations."): shot.data for shot in shots if shot.data is not None
    }
    observers = make_observers(file, built, films, names=_tracks(file))
    charts, said = [], [note for observer in observers for note in observer.notes]
    values = start_values(file.free, {**built.values, **more_values(observers)})
    dt = longest_step(file.world)
    for observer in observers:
        begin = float(values.get(observer.start_path, observer.start))
        moved, failed = places_at(
            built, dt, observer.instants(values), observer.sensor, values=values
        )
        seen = observer.fields(moved)
        if over := observer.over_surface(seen):
            said += _far_off(observer, over)
            figure, start = cloud({**over, "times": begin + over["times"]}), "grey"
        else:
            rows = observer.shown(seen, values).rows
            said += [] if failed else observer.doubts(rows)
            curves, start = observer.curves(rows), "lines"
            figure = points({**curves, "times": begin + curves["times"]})
        figure.set_figwidth(max(figure.get_figwidth(), TITLE))
        figure.suptitle(
            f"observations.{observer.name}: dots; the scene at its start values: {start}",
            fontsize=10,
        )
        picture = open_picture(io.BytesIO(png(figure, dpi=110))).convert("RGB")
        charts.append(np.asarray(picture))
        said += [failed] if failed and not shots else []
    return charts, said


def _far_off(observer: Observer, over: Mapping[str, np.ndarray]) -> list[str]:
    """Return what is doubtful where half of the first points are far from the surface."""
    off = np.abs(over["distances"][0][np.isfinite(over["points"][0, :, 0])])
    size = float(np.linalg.norm(np.ptp(over["vertices"][0], axis=0)))
    if not len(off) or np.median(off) <= FAR_OFF * size:
        return []
    return [
        f"`observations.{observer.name}`: half of the points of its first frame are more than "
        f"{np.median(off):.3g} m from the surface at the start, which is {size:.3g} m large. Check "
        "where the bodies begin and, of a depth film, the camera."
    ]


def _strip(shot: Shot, joints: Mapping[str, JointMark], marks: Sequence[Overlay]) -> np.ndarray:
    """Return the rows of one film: footage, scene with its joints, and footage with its outline.

    Over the scene and the outline are `marks`: obstacles, held nodes, axes and gravity.
    """
    n = len(shot.images)
    rows = []
    for k in dict.fromkeys((0, n // 2, n - 1)):
        drawn = _enlarged(shot.images[k])
        places = {name: points[k] for name, points in shot.places.items()}
        seen_at = seen_by(shot.camera, (drawn.shape[0], drawn.shape[1]))
        scene = marked(media.as_uint8(drawn[..., :3]), joints, places, seen_at)
        scene = draw_overlays(scene, marks, k, shot)
        panels = {"scene": media.as_float(scene)}
        if shot.data is not None:
            footage = _enlarged(shot.data.frames[shot.indices[k]])
            footage = media.hatched(footage, shot.data.ignored)
            inside = drawn[..., 3] > 0.5
            line = np.logical_xor(binary_dilation(inside), binary_erosion(inside))
            over = media.as_uint8(np.where(line[..., None], PINK, footage))
            over = media.as_float(draw_overlays(over, marks, k, shot))
            panels = {"film": footage, **panels, "outline of the scene over the film": over}
        label = f"{shot.key}, {shot.times[k]:.3g} s"
        labelled = [_labelled(panel, f"{title}: {label}") for title, panel in panels.items()]
        rows.append(_stacked(labelled, axis=1))
    return _stacked(rows, axis=0)


def _enlarged(image: np.ndarray) -> np.ndarray:
    """Return an image (H, W, C) as high as a row, linear between pixels."""
    height, width = image.shape[:2]
    return media.resized(image, (ROW, max(round(width * ROW / height), 1)), by="BILINEAR")


def _labelled(panel: np.ndarray, text: str) -> np.ndarray:
    """Return a panel with a line of text in its corner."""
    picture: Any = Image.fromarray(media.as_uint8(panel))
    draw = ImageDraw.Draw(picture)
    box = draw.textbbox((6, 4), text)
    draw.rectangle((box[0] - 3, box[1] - 2, box[2] + 3, box[3] + 2), fill=(255, 255, 255))
    draw.text((6, 4), text, fill=(0, 0, 0))
    return np.asarray(picture)


def _in_rows(strips: list[np.ndarray]) -> list[np.ndarray]:
    """Return rows of films that make a picture about as wide as it is high."""
    side = np.sqrt(sum(strip[..., 0].size for strip in strips))
    count = max(round(side / max((strip.shape[1] for strip in strips), default=1)), 1)
    starts = range(0, len(strips), count)
    return [_stacked(strips[k : k + count], axis=1, gap=WIDE_GAP) for k in starts]


def _stacked(images: list[np.ndarray], axis: int, gap: int = GAP) -> np.ndarray:
    """Return images below (axis 0) or beside each other, white between and after them."""
    longest = max(image.shape[1 - axis] for image in images)
    padded = []
    for image in images:
        after = np.full(2, gap)
        after[1 - axis] = longest - image.shape[1 - axis]
        padded.append(np.pad(image, [(0, after[0]), (0, after[1]), (0, 0)], constant_values=255))
    whole = np.concatenate(padded, axis=axis)
    return whole[:-gap] if axis == 0 else whole[:, :-gap]
