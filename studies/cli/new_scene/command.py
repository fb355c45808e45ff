"""What `adjsim new` does: writes a scene file of what there is, with a comment on every guess.

`scene.toml.j2` is the file. It is read, and its scene is built, before it is written.
"""

import math
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adjsim.meshes.files import poly_data
from studies.cli.new_scene.body import KINDS, NewBody, body_of
from studies.cli.new_scene.observations import Footage, Scan, Seen, Track, from_middle
from studies.cli.new_scene.robot import robot_of
from studies.cli.new_scene.toml_text import aligned, value_text
from studies.cli.new_scene.view import view_of
from studies.runs.errors import StudyError
from studies.runs.files import explained
from studies.scene.building import build
from studies.scene.declared import resolved
from studies.scene.files import BUNDLED, SCHEMA, bundled_scenes
from studies.scene.mesh_source import GENERATORS, SHAPE
from studies.scene.reading import scene_from_dict
from studies.scene.tables import unknown


PENDULUM = "pendulum"
LENGTH, ANGLE = 0.5, 20.0  # of a pendulum [m], [deg]
AROUND = 0.6  # of its length, how far what is shown reaches on each side
SIZE = (360, 480)  # of pictures where nothing says it [pixels]


def new_command(file: Path, start: str | None, things: Mapping[str, str | None]) -> list[str]:
    """Write a scene file and return what to say.

    `start` is a bundled scene; `things` are the options film, mesh, kind, points, cloud, depth
    and urdf.
    """
    check_file(file, has_meshes=things.get("urdf") is not None)
    options = {name: text for name, text in things.items() if text is not None}
    ways = [str(file.resolve()), f"next: adjsim preview {shlex.quote(str(file))}"]
    if start is None:
        _check_together(options)
        guesses, notes = _compose(file, options)
        return [*notes, f"{ways[0]}: {guesses} guesses, each marked as one", ways[1]]
    if options:
        raise StudyError(f"`--from` must come alone, got `--{next(iter(options))}` beside it.")
    if start not in bundled_scenes():
        raise StudyError(f"`--from`: {unknown('scene', start, bundled_scenes())}")
    _, text = (BUNDLED / f"{start}.toml").read_text(encoding="utf-8").split("\n", 1)
    write(file, f"#:schema {SCHEMA.as_uri()}\n{text}")
    return ways


def check_file(file: Path, *, has_meshes: bool) -> None:
    """Raise unless a scene file can be written there, and nothing is."""
    if file.suffix != ".toml":
        raise StudyError(f"`FILE` must end in .toml, got {file}.")
    if not file.parent.is_dir():
        raise StudyError(f"`FILE`: there is no folder {file.parent}.")
    for path in (file, _mesh_folder(file)) if has_meshes else (file,):
        if path.exists():
            raise StudyError(f"`FILE`: {path} is there already. Name another: nothing is replaced.")


def _check_together(options: Mapping[str, str]) -> None:
    """Raise if options do not fit each other, or there is no body."""
    if not options:
        raise StudyError(
            "Say what there is: `--film`, `--points`, `--cloud` or `--depth` with `--mesh`, or "
            "`--urdf`; or the bundled scene to begin with, `--from NAME`. `adjsim new --help` "
            "shows the ways."
        )
    kind = options.get("kind")
    if kind is not None and kind not in (*KINDS, PENDULUM):
        raise StudyError(f"`--kind`: {unknown('kind', kind, [*KINDS, PENDULUM])}")
    if "urdf" in options and (others := options.keys() - {"urdf", "film"}):
        raise StudyError(
            f"`--{min(others)}` must be left out beside `--urdf`: a robot is its bodies."
        )
    if kind == PENDULUM and (scans := options.keys() & {"cloud", "depth"}):
        raise StudyError(f"`--{min(scans)}` needs a body with a surface, not a pendulum.")
    if kind == PENDULUM and "mesh" in options:
        raise StudyError("`--mesh` must be left out of a pendulum, which is drawn as rod and bob.")
    if not ("urdf" in options or "mesh" in options or kind == PENDULUM):
        raise StudyError(
            "`--mesh` is missing, the body that is observed: a file, or one of "
            f"{', '.join(GENERATORS)}, {SHAPE}NAME. `--kind {PENDULUM}` needs none."
        )


def path_of(option: str, text: str) -> str:
    """Return the absolute path of what an option names, or a generator as it is."""
    try:
        return resolved(text, option, Path.cwd())
    except StudyError as error:
        raise StudyError(f"`--{option}`{error}") from error


@dataclass(frozen=True, eq=False)
class Subject:
    """What is filmed or tracked: one of a body, a pendulum and a robot."""

    box: np.ndarray  # lower and upper corner, (2, 3) [m]
    body: NewBody | None = None
    pendulum: dict[str, Any] | None = None
    robot: dict[str, Any] | None = None
    up: int = 1  # the axis that points up
    bob: np.ndarray | None = None  # of a pendulum, of which tracks are, (3,) [m]


def _subject(
    options: Mapping[str, str], paths: Mapping[str, str], file: Path, place: np.ndarray | None
) -> Subject:
    """Return what is filmed or tracked; its middle, or its bob, is put at a place (3,) [m]."""
    if "urdf" in paths:
        robot = robot_of(Path(paths["urdf"]), _mesh_folder(file).name)
        box = np.stack([robot["points"].min(axis=0), robot["points"].max(axis=0)])
        return Subject(box, robot=robot, up=2)
    if options.get("kind") != PENDULUM:
        body = body_of(paths["mesh"], options.get("kind"), file.parent.resolve(), place)
        return Subject(body.box, body)
    angle = math.radians(ANGLE)
    bob = LENGTH * np.array([math.sin(angle), -math.cos(angle), 0.0])
    pivot = np.zeros(3) if place is None else place - bob
    box = pivot + 0.5 * bob + AROUND * LENGTH * np.array([[-1.0], [1.0]])
    pendulum = {"length": LENGTH, "angle": ANGLE, "pivot": pivot}
    return Subject(box, pendulum=pendulum, bob=pivot + bob)


def _compose(file: Path, options: Mapping[str, str]) -> tuple[int, list[str]]:
    """Write a scene file of what there is; return the number of guesses, and notes."""
    folder = file.parent.resolve()
    paths = {name: path_of(name, text) for name, text in options.items() if name != "kind"}
    film = Footage.read(paths["film"], folder) if "film" in paths else None
    track = Track.read(paths["points"], folder) if "points" in paths else None
    scans = [Scan.read(paths[kind], folder, kind) for kind in ("cloud", "depth") if kind in paths]
    depth = next((scan for scan in scans if scan.size is not None), None)
    pixels = track.first if track is not None and track.data.is_in_picture else {}
    middles = [scan.middle for scan in scans if scan.middle is not None]
    place = next(iter(middles), None) if track is None or pixels else track.middle
    subject = _subject(options, paths, file, place)
    body, is_pendulum = subject.body, subject.pendulum is not None
    # Of a pendulum a film shows the rod as well, and perhaps only a part of it.
    seen = film.seen if film is not None and not is_pendulum else Seen()
    size = film.data.full_size if film is not None else SIZE
    size = size if depth is None or depth.size is None else depth.size
    if track is not None and pixels:
        size = size if film is not None else track.film_size()
        seen = from_middle(track.middle, size)._replace(diagonal=seen.diagonal)
    field = None if film is None else film.exif_field()
    middle = subject.bob if pixels and subject.bob is not None else subject.box.mean(axis=0)
    view = view_of(subject.box, middle, subject.up, seen=seen, size=size, fov_y=field)
    text = rendered(
        "scene.toml.j2", schema=SCHEMA.as_uri(), file=file.name, title=file.stem,
        robot=subject.robot, body=body, pendulum=subject.pendulum, film=film, track=track,
        scans=scans, depth=depth, size=size, view=view, exif_field=field,
        at={name: view.point(from_middle(pixel, size)) for name, pixel in pixels.items()},
        settles=film is not None and film.is_still and body is not None and body.kind != "rigid",
    )  # fmt: skip
    with _written_meshes(file, subject.robot):
        build(scene_from_dict(tomllib.loads(text), folder, source=str(file)))
        write(file, text)
    notes = [] if body is None or body.scale == 1.0 else [f"{body.mesh}: {body.note}."]
    return text.count("# guess"), notes


@contextmanager
def _written_meshes(file: Path, robot: dict[str, Any] | None) -> Iterator[None]:
    """Write the meshes of a robot; they go again if the block raises."""
    if robot is None:
        yield
        return
    folder = _mesh_folder(file)
    folder.mkdir()
    try:
        for name, mesh in robot["surfaces"].items():
            poly_data(mesh).save(folder / name)
        yield
    except BaseException:
        shutil.rmtree(folder)
        raise


def _mesh_folder(file: Path) -> Path:
    """Return the folder of the meshes of a robot."""
    return file.with_name(f"{file.stem}-meshes")


def rendered(template: str, **values: Any) -> str:
    """Return the text of a template."""
    folder = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False,  # it is no HTML
    )  # fmt: skip
    environment.filters["toml"] = value_text
    return aligned(environment.get_template(template).render(values).rstrip() + "\n")


def write(file: Path, text: str) -> None:
    """Write a file that is not there yet."""
    with explained(file), file.open("x", encoding="utf-8") as stream:
        stream.write(text)
