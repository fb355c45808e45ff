"""What `adjsim new` does: writes a scene file of what there is, with a comment on every guess.

The camera looks along the shorter level axis of the body, which is in the middle of the view, or
where the first frame of a film or the first rows of a table of pixels have it. `scene.toml.j2` is
the file; it is read, and its scene built, before it is written.
"""

import math
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adjsim.meshes.files import poly_data
from studies.cli.new_scene.body import KINDS, body_of
from studies.cli.new_scene.observations import Footage, Seen, Track, from_middle
from studies.cli.new_scene.robot import robot_of
from studies.cli.new_scene.toml_text import aligned, value_text
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
ROOM = 3.0  # times the body is the picture, where nothing says how large the body is seen
HALF_VIEW = math.radians(20.0)  # of the shorter side of a picture: a phone's
NEARLY = 0.99  # part of a depth that counts as less


def new_command(file: Path, start: str | None, things: Mapping[str, str | None]) -> list[str]:
    """Write a scene file and return what to say.

    `start` is a bundled scene; `things` are the options film, mesh, kind, points and urdf.
    """
    _check_file(file)
    given = {name: text for name, text in things.items() if text is not None}
    ways = [str(file.resolve()), f"next: adjsim preview {shlex.quote(str(file))}"]
    if start is None:
        _check_together(given)
        guesses, notes = _compose(file, given)
        return [*notes, f"{ways[0]}: {guesses} guesses, each marked as one", ways[1]]
    if given:
        raise StudyError(f"`--from` must come alone, got `--{next(iter(given))}` beside it.")
    if start not in bundled_scenes():
        raise StudyError(f"`--from`: {unknown('scene', start, bundled_scenes())}")
    _, text = (BUNDLED / f"{start}.toml").read_text(encoding="utf-8").split("\n", 1)
    _write(file, f"#:schema {SCHEMA.as_uri()}\n{text}")
    return ways


def _check_file(file: Path) -> None:
    """Raise unless a scene file can be written there, and nothing is."""
    if file.suffix != ".toml":
        raise StudyError(f"`FILE` must end in .toml, got {file}.")
    if not file.parent.is_dir():
        raise StudyError(f"`FILE`: there is no folder {file.parent}.")
    for path in (file, _mesh_folder(file)):
        if path.exists():
            raise StudyError(f"`FILE`: {path} is there already. Name another: nothing is replaced.")


def _check_together(given: Mapping[str, str]) -> None:
    """Raise if options do not fit each other, or there is no body."""
    if not given:
        raise StudyError(
            "Say what there is: `--film` or `--points` with `--mesh`, or `--urdf`; or the bundled "
            "scene to begin with, `--from NAME`. `adjsim new --help` shows the ways."
        )
    kind = given.get("kind")
    if kind is not None and kind not in (*KINDS, PENDULUM):
        raise StudyError(f"`--kind`: {unknown('kind', kind, [*KINDS, PENDULUM])}")
    if "urdf" in given and (others := given.keys() - {"urdf", "film"}):
        raise StudyError(
            f"`--{min(others)}` must be left out beside `--urdf`: a robot is its bodies."
        )
    if kind == PENDULUM and "mesh" in given:
        raise StudyError("`--mesh` must be left out of a pendulum, which is drawn as rod and bob.")
    if not ("urdf" in given or "mesh" in given or kind == PENDULUM):
        raise StudyError(
            "`--mesh` is missing, the body that is observed: a file, or one of "
            f"{', '.join(GENERATORS)}, {SHAPE}NAME. `--kind {PENDULUM}` needs none."
        )


def _path(option: str, text: str) -> str:
    """Return the absolute path of what an option names, or a generator as it is."""
    try:
        return resolved(text, option, Path.cwd())
    except StudyError as error:
        raise StudyError(f"`--{option}`{error}") from error


def _compose(file: Path, given: Mapping[str, str]) -> tuple[int, list[str]]:
    """Write a scene file of what there is; return the number of guesses, and notes."""
    folder, meshes = file.parent, _mesh_folder(file)
    paths = {name: _path(name, text) for name, text in given.items() if name != "kind"}
    film = Footage.read(paths["film"], folder) if "film" in paths else None
    track = Track.read(paths["points"], folder) if "points" in paths else None
    is_in_picture = track is not None and track.data.is_in_picture
    size, seen = (film.data.full_size, film.seen) if film else (SIZE, Seen())
    place = None
    if track is not None and is_in_picture:
        size = size if film else track.film_size()
        seen = from_middle(track.middle, size)._replace(diagonal=seen.diagonal)
    elif track is not None:
        place = track.middle
    robot = body = pendulum = middle = None
    if "urdf" in paths:
        robot = robot_of(Path(paths["urdf"]), meshes.name)
        box = np.stack([robot["points"].min(axis=0), robot["points"].max(axis=0)])
    elif given.get("kind") == PENDULUM:
        angle = math.radians(ANGLE)
        bob = LENGTH * np.array([math.sin(angle), -math.cos(angle), 0.0])
        pivot = np.zeros(3) if place is None else place - bob
        pendulum = {"length": LENGTH, "angle": ANGLE, "pivot": pivot}
        around = AROUND * LENGTH * np.array([[-1.0], [1.0]])
        box = pivot + 0.5 * bob + around
        middle = pivot + bob if is_in_picture else None
        seen = seen._replace(diagonal=None) if is_in_picture else Seen()
    else:
        body = body_of(paths["mesh"], given.get("kind"), folder, place)
        box = body.box
    field = film.exif_field() if film else None
    view = View.of(box, seen, size, field, up=1 if robot is None else 2, middle=middle)
    at = {}
    if track is not None and is_in_picture:
        at = {name: view.point(from_middle(pixel, size)) for name, pixel in track.first.items()}
    is_bending = body is not None and body.kind != "rigid"
    text = _rendered(
        schema=SCHEMA.as_uri(), file=file.name, title=file.stem, robot=robot, body=body,
        pendulum=pendulum, film=film, track=track, at=at, size=size, view=view, exif_field=field,
        color=film.color if film else [],
        settles=film is not None and film.is_still and is_bending,
    )  # fmt: skip
    try:
        if robot is not None:
            meshes.mkdir()
            for name, mesh in robot["surfaces"].items():
                poly_data(mesh).save(meshes / name)
        build(scene_from_dict(tomllib.loads(text), folder, source=str(file)))
        _write(file, text)
    except BaseException:
        if robot is not None:
            shutil.rmtree(meshes, ignore_errors=True)
        raise
    notes = [] if body is None or body.scale == 1.0 else [f"{body.mesh}: {body.note}."]
    return text.count("# guess"), notes


def _mesh_folder(file: Path) -> Path:
    """Return the folder of the meshes of a robot."""
    return file.with_name(f"{file.stem}-meshes")


def _rendered(**values: Any) -> str:
    """Return the text of the template."""
    folder = FileSystemLoader(Path(__file__).parent)
    made = Environment(
        loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False,  # it is no HTML
    )  # fmt: skip
    made.filters["toml"] = value_text
    return aligned(made.get_template("scene.toml.j2").render(values).rstrip() + "\n")


def _write(file: Path, text: str) -> None:
    """Write a file that is not there yet."""
    with explained(file), file.open("x", encoding="utf-8") as stream:
        stream.write(text)


@dataclass(frozen=True, eq=False)
class View:
    """How a camera sees the plane through the middle of what is filmed."""

    eye: np.ndarray  # (3,) [m]
    target: np.ndarray
    right: np.ndarray  # (3,), of length 1
    up: np.ndarray
    height: float  # of the picture there [m]
    fov_y: float  # [deg]
    is_sized: bool  # whether it has the size of the first frame

    def point(self, seen: Seen) -> np.ndarray:
        """Return the point of the plane that is seen there, (3,) [m]."""
        return self.target + self.height * (seen.right * self.right - seen.down * self.up)

    @classmethod
    def of(
        cls, box: np.ndarray, seen: Seen, size: tuple[int, int], fov_y: float | None, *,
        up: int, middle: np.ndarray | None,
    ) -> "View":  # fmt: skip
        """Return the view in which the middle of a box (2, 3) [m], or another point, is seen.

        `up` is the axis that points up; a robot, whose z does, is seen from -y or x, else a body
        from z or x.
        """
        extent, upwards = box[1] - box[0], np.eye(3)[up]
        sides = np.array([[0.0, -1.0, 0.0] if up == 2 else [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
        depths = np.abs(sides @ extent)
        side = int(depths[1] < NEARLY * depths[0])
        back, right = sides[side], np.cross(upwards, sides[side])
        width, height = abs(right @ extent), upwards @ extent
        whole = ROOM * max(height, width * size[0] / size[1])
        if seen.diagonal is not None:
            whole = math.hypot(width, height) / seen.diagonal
        if fov_y is None:
            fov_y = math.degrees(2.0 * math.atan(math.tan(HALF_VIEW) * size[0] / min(size)))
        distance = max(0.5 * whole / math.tan(math.radians(0.5 * fov_y)), depths[side])
        centre = box.mean(axis=0) if middle is None else middle
        target = centre - whole * (seen.right * right - seen.down * upwards)
        eye, is_sized = target + distance * back, seen.diagonal is not None
        return cls(eye, target, right, upwards, float(whole), fov_y, is_sized)
