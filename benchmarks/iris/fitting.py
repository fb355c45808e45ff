"""Fit one film: track what the template names, fill in its scene, search, and keep the answer.

A template is a scene file with a table [iris]:

    classes       the classes that it is for
    parameters    numbers that the scene names as "$name"; `parameters.json` has the last word
    track.NAME    colour, tolerance and region (parts of width and height) of what the observation
                  NAME follows; without a colour, what differs from the background
    window        what part of the tracks is fitted, as below, without what is nearer to the edge
                  of the picture than `margin` [heights]
    numbers.NAME  `path` of the scene, `factor` (a list is multiplied) and `add` that make a number
                  of the benchmark of it, and `truth`, where `parameters.json` has none
    swayed        a ball and the tip of its support, whose ropes are `$unswayed` times as long as
                  what swings
    films.STEM    settings of this table for one film

`$width`, `$height`, `$focal`, `$u` and `$v` are of the film [pixels], the focal length that of
`parameters.focal` [widths].
"""

import copy
import csv
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import tomlkit
from av.error import FFmpegError

from benchmarks.iris.folder import GRAVITY, Film
from studies.api import Answer, Problem, fit
from studies.cli.tracking import track_command
from studies.runs.errors import StudyError
from studies.runs.files import replacing
from studies.scene.reading import read_scene


Tracks = Mapping[str, np.ndarray]  # columns and rows by name, (n_frames, 2) [pixels]
SCENE, ANSWER = "scene.toml", "answer.json"
LEAST = 8  # frames of a track that is lost before the film ends
MOVES = 0.02  # of its whole way: how far something is that has begun to move
STRUCK = 0.6  # of the usual speed: below it something was stopped or deflected
FLIES = 0.7  # of the longest way between two strikes
UNDER_WAY = 0.5  # of the next step: what flies already has made it


def fit_film(film: Film, template: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """Return the numbers of a film, which `out` keeps with its scene, its tracks and pictures.

    Each number has `value`, `low` and `high` of its 95 % interval, `verdict` and `truth`, None
    where nobody measured it.
    """
    out.mkdir(parents=True, exist_ok=True)
    scene = copy.deepcopy(dict(template))
    settings = scene.pop("iris")
    settings = merged(settings, settings.get("films", {}).get(film.path.stem, {}))
    width, height = size_of(film.path)
    numbers = {"unswayed": 1.0, **settings.get("parameters", {}), **film.measured}
    numbers |= {"width": width, "height": height, "u": (width - 1) / 2, "v": (height - 1) / 2}
    numbers["focal"] = numbers.get("focal", 1.0) * width
    tracks = {}
    for name, how in settings["track"].items():
        table = out / f"{name}.csv"
        if _track(film.path, table, how, (width, height)):
            tracks[name] = read_track(table)
        else:
            del scene["observations"][name]
    margin = settings.get("margin", 0.0) * height
    for name, window in WINDOWS[settings.get("window", "all")](tracks).items():
        frames = range(*settings.get("frames", window))
        first, end = inside(tracks[name], frames, margin, (width, height))
        scene["observations"][name]["frames"] = [first, end]
        way = tracks[name][first:end, 0] - tracks[name][first, 0]
        numbers[f"{name}_side"] = float(np.sign(way[np.argmax(np.abs(way))]) or 1.0)
    (out / SCENE).write_text(tomlkit.dumps(filled(scene, numbers)), "utf-8")
    file = read_scene(out / SCENE)
    answer = fit(Problem(file, file.observations, file.free, search=file.search))
    if "swayed" in settings and all(name in tracks for name in settings["swayed"]):
        numbers["unswayed"] = 1.0 / (1.0 + sway(answer, *settings["swayed"]))
    result = {
        "verdict": answer.verdict.kind,
        "reason": answer.verdict.reason,
        "numbers": {
            name: number(answer, how, numbers) | {"truth": _truth(name, how, film, numbers)}
            for name, how in settings["numbers"].items()
        },
    }
    with replacing(out / ANSWER) as unfinished:
        unfinished.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    return result


def merged(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of others in their place, table by table."""
    out = dict(settings)
    for key, value in others.items():
        is_table = isinstance(value, dict)
        out[key] = merged(settings.get(key, {}), value) if is_table else value
    return out


def size_of(film: Path) -> tuple[int, int]:
    """Return width and height of a film [pixels]."""
    try:
        with av.open(str(film)) as opened:
            stream = opened.streams.video[0]
            return stream.width, stream.height
    except (FFmpegError, IndexError) as error:
        raise StudyError(f"{film} cannot be read as a film: {error}.") from error


def filled(value: Any, numbers: Mapping[str, float]) -> Any:
    """Return a table or list of a template with numbers where it has "$name" or "$-name"."""
    if isinstance(value, dict):
        return {key: filled(each, numbers) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, numbers) for each in value]
    if not (isinstance(value, str) and value.startswith("$")):
        return value
    name = value[1:].removeprefix("-")
    if name not in numbers:
        raise StudyError(
            f"The template names `{value}`, which neither `iris.parameters` nor parameters.json "
            f"has. There are {', '.join(sorted(numbers))}."
        )
    return -numbers[name] if value.startswith("$-") else numbers[name]


def number(
    answer: Answer, how: Mapping[str, Any], numbers: Mapping[str, float]
) -> dict[str, float | str]:
    """Return a number of the benchmark with its interval and verdict."""
    path, factor = how["path"], float(np.prod(filled(how.get("factor", 1.0), numbers)))
    add = filled(how.get("add", 0.0), numbers)
    (row,) = [row for row in answer.rows() if row["name"] == path]
    low, value, high = (factor * row[key] + add for key in ("lower", "value", "upper"))
    low, high = min(low, high), max(low, high)
    return {"value": value, "low": low, "high": high, "verdict": row["verdict"]}


def sway(answer: Answer, ball: str, tip: str) -> float:
    """Return by what part of the rope its upper end is below a pivot that stays.

    A support that gives way sways to the ball's side, as a point of the rope does that is a little
    below a fixed pivot. What swings is longer than the rope by so much: the slope of the tip's
    column against that of the ball seen from the tip.
    """
    columns = {each.name: each.targets()[:, 0] for each in answer.solved.problem.observers}
    return float(np.polyfit(columns[ball] - columns[tip], columns[tip], 1)[0])


def _truth(
    name: str, how: Mapping[str, Any], film: Film, numbers: Mapping[str, float]
) -> float | None:
    if name == "g":
        return GRAVITY
    truth = film.measured.get(name, filled(how.get("truth"), numbers))
    return None if truth is None else float(truth)


def _track(film: Path, table: Path, how: Mapping[str, Any], size: tuple[int, int]) -> bool:
    """Write the track of what is declared; return whether it was found, if it is optional.

    What leaves the picture is followed as far as it is seen.
    """
    color, region = how.get("color"), how.get("region")
    scale = np.array([*size, *size])
    numbers = {
        "color": None if color is None else " ".join(map(str, color)),
        "frames": None,
        "region": None if region is None else " ".join(map(str, np.rint(region * scale))),
    }
    try:
        track_command(
            film, table, numbers, background=color is None, tolerance=how["tolerance"],
            fps=None, point=table.stem, force=True, hue=how.get("hue"),
        )  # fmt: skip
    except StudyError:
        if how.get("optional", False):
            return False
        if not table.exists() or len(read_track(table)) < LEAST:
            raise
    return True


def read_track(table: Path) -> np.ndarray:
    """Return columns and rows of a track, (n_frames, 2) [pixels]."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = [(float(row["u"]), float(row["v"])) for row in csv.DictReader(file)]
    return np.array(rows)


def everything(tracks: Tracks) -> dict[str, tuple[int, int]]:
    """Return the first frame and the end of every track: all of it."""
    return {name: (0, len(track)) for name, track in tracks.items()}


def after_release(tracks: Tracks) -> dict[str, tuple[int, int]]:
    """Return what follows the frame in which something begins to move."""
    windows = {}
    for name, track in tracks.items():
        far = np.linalg.norm(track - np.median(track[:3], axis=0), axis=1)
        away = far > MOVES * far.max()
        first = int(np.argmax(away)) if away.any() else 0
        windows[name] = (first, len(track))
    return windows


def until_struck(tracks: Tracks) -> dict[str, tuple[int, int]]:
    """Return what precedes the frame in which something loses much of its usual speed."""
    windows = {}
    for name, track in tracks.items():
        speed = np.linalg.norm(np.diff(track, axis=0), axis=1)
        slow = speed < STRUCK * np.median(speed[: max(LEAST, len(speed) // 4)])
        end = int(np.argmax(slow)) if slow.any() else len(speed)
        windows[name] = (0, max(end, 2))
    return windows


def between_strikes(tracks: Tracks) -> dict[str, tuple[int, int]]:
    """Return the first flight of each of two balls after a strike, up to the next one.

    It begins where the ball has passed its lowest point.
    Two balls strike each other where they are closest. A ball flies between two strikes if its way
    is long beside its longest one.
    """
    first, second = (track[: min(map(len, tracks.values()))] for track in tracks.values())
    apart = np.linalg.norm(first - second, axis=1)
    inner = apart[1:-1]
    near = inner < apart.min() + 0.2 * np.ptp(apart)
    strikes = 1 + np.flatnonzero(near & (inner <= apart[:-2]) & (inner < apart[2:]))
    pairs = [(a, b) for a, b in pairwise(map(int, strikes)) if b - a > 3]
    if not pairs:
        raise StudyError("The two balls do not strike each other twice in this film.")
    windows = {}
    for name, track in tracks.items():
        spans = [(flight_begins(track, a, b), b) for a, b in pairs]
        ways = np.array([np.ptp(track[a:b, 0]) if b - a > 3 else 0.0 for a, b in spans])
        windows[name] = spans[int(np.argmax(ways > FLIES * ways.max()))]
    return windows


def flight_begins(track: np.ndarray, strike: int, end: int) -> int:
    """Return the first frame of a flight after the ball has passed its lowest point.

    The frame that is nearest to that may be before it.
    """
    columns, rows = track.T
    farthest = strike + int(np.argmax(np.abs(columns[strike:end] - columns[strike])))
    lowest = strike + int(np.argmax(rows[strike : farthest + 1]))
    into, out = np.diff(columns)[strike - 1 : strike + 1]
    return strike if lowest == strike and into / out > UNDER_WAY else lowest + 1


def inside(
    track: np.ndarray, frames: range, margin: float, size: tuple[int, int]
) -> tuple[int, int]:
    """Return first and end of frames without those at the ends that are near the picture's edge.

    What is nearer to it than `margin` [pixels] may be outside in part.
    """
    near = np.minimum(track, np.array(size) - 1.0 - track).min(axis=1) < margin
    seen = [k for k in frames if not near[k]]
    return (seen[0], seen[-1] + 1) if seen else (frames.start, frames.stop)


WINDOWS: dict[str, Callable[[Tracks], dict[str, tuple[int, int]]]] = {
    "all": everything,
    "after release": after_release,
    "until struck": until_struck,
    "between strikes": between_strikes,
}
