"""What `adjsim new` does: writes a scene file of what there is, with a comment on every guess.

The camera looks along the shorter level axis of the body, which is in the middle of the view, or
where the first frame of a film or the first rows of a table of pixels have it. A file that was
composed is read, and its scene built, before it is written.
"""

import math
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adjsim.meshes.files import poly_data
from studies.cli.new_scene.bodies import KINDS, PENDULUM, Subject, meshed_body, pendulum
from studies.cli.new_scene.commented_toml import Row, table_text
from studies.cli.new_scene.observations import Footage, Seen, Track, from_middle, guessed_lens
from studies.cli.new_scene.robot import robot_tables
from studies.runs.errors import StudyError
from studies.runs.files import explained
from studies.scene.building import build
from studies.scene.declared import resolved
from studies.scene.files import BUNDLED, SCHEMA, bundled_scenes
from studies.scene.mesh_source import GENERATORS, SHAPE
from studies.scene.reading import scene_from_dict
from studies.scene.tables import unknown


ROOM = 3.0  # times the body is the picture, where nothing says how large the body is seen
SIZE = (360, 480)  # of pictures where nothing says it [pixels]
GRAVITY = 9.81  # [m/s2]


class View(NamedTuple):
    """How a camera sees the plane through the middle of a body."""

    target: np.ndarray  # (3,) [m]
    right: np.ndarray
    up: np.ndarray
    height: float  # of the picture [m]

    def point(self, right: float, down: float) -> np.ndarray:
        """Return the point of the plane that is seen so many heights from the middle, (3,) [m]."""
        return self.target + self.height * (right * self.right - down * self.up)


def new_command(file: Path, start: str | None, things: Mapping[str, str | None]) -> list[str]:
    """Write a scene file and return what to say.

    `start` is a bundled scene; `things` are the options film, mesh, kind, points and urdf.
    """
    _check_file(file)
    given = {name: text for name, text in things.items() if text is not None}
    schema = f"#:schema {SCHEMA.as_uri()}\n"
    if start is None:
        _check_together(given)
        text, subject = _composed(file, given)
        _write(file, schema + text, subject)
        guesses = f": {text.count('# guess')} guesses, each marked as one"
        return [*subject.notes, f"{file.resolve()}{guesses}", f"next: adjsim preview {file}"]
    if given:
        raise StudyError(f"`--from` must come alone, got `--{next(iter(given))}` beside it.")
    if start not in bundled_scenes():
        raise StudyError(f"`--from`: {unknown('scene', start, bundled_scenes())}")
    _, text = (BUNDLED / f"{start}.toml").read_text(encoding="utf-8").split("\n", 1)
    with explained(file), file.open("x", encoding="utf-8") as stream:
        stream.write(schema + text)
    return [str(file.resolve()), f"next: adjsim preview {file}"]


def _mesh_folder(file: Path) -> Path:
    return file.with_name(f"{file.stem}-meshes")


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


def _composed(file: Path, given: Mapping[str, str]) -> tuple[str, Subject]:
    """Return the text of a scene file of what there is."""
    folder = file.parent
    paths = {name: _path(name, text) for name, text in given.items() if name != "kind"}
    film = Footage.read(paths["film"]) if "film" in paths else None
    track = Track.read(paths["points"]) if "points" in paths else None
    seen, color = film.first_seen() if film else (Seen(), None)
    size = film.data.full_size if film else SIZE
    if track is not None and track.is_in_picture:
        size = film.data.full_size if film else track.size()
        seen = seen._replace(
            **dict(zip(("right", "down"), from_middle(track.middle(), size), strict=True))
        )
    place = track.middle() if track is not None and not track.is_in_picture else None
    if "urdf" in paths:
        robot = robot_tables(Path(paths["urdf"]), _mesh_folder(file).name)
        box = np.stack([robot.points.min(axis=0), robot.points.max(axis=0)])
        subject = Subject(robot.text, box, robot.free, up=2, meshes=robot.meshes)
    elif given.get("kind") == PENDULUM:
        subject = pendulum(place)
        seen = seen._replace(diagonal=None) if track is not None else Seen()
    else:
        is_still = film is not None and film.is_still
        subject = meshed_body(
            paths["mesh"], given.get("kind"), folder, place=place, color=color, is_still=is_still
        )
    lens = film.lens() if film else guessed_lens(size)
    view, camera = _camera(subject, seen, size, lens)
    if track is not None and track.is_in_picture and film is None:
        camera.append(("size", list(size), "guess: height and width of the film [pixels]"))
    tables = [
        subject.text,
        table_text("[cameras.front]", camera),
        table_text("[lights.sun]", [("direction", [1.0, 2.0, 1.0], "guess: towards the light")]),
        table_text("[world]", _world(subject)),
    ]
    if film is not None:
        tables.append(film.table(folder))
    if track is not None:
        at = (
            {name: view.point(*from_middle(place, size)) for name, place in track.first.items()}
            if track.is_in_picture
            else {}
        )
        tables.append(track.table(folder, subject.name, at))
    is_observed = film is not None or track is not None
    free: list[Row] = [
        (f'"{path}"', settings, "guess: what is asked for")
        for path, settings in subject.free.items()
    ]
    tables.append(table_text("[free]" if is_observed else "# [free]", free))
    return "\n".join([_heading(file), *tables]), subject


def _heading(file: Path) -> str:
    """Return the comment at the top, and the title."""
    return f"""\
# SI units, angles in degrees. Each "guess" is one: look at it, correct it, delete the word.
#
#   adjsim preview {file.name}      the scene at its start values: does the first row fit?
#   adjsim check {file.name}        whether what was observed can show what [free] asks for
#   adjsim run {file.name}          search, judge, report
#
# All keys are in the manual, page "Scene files", and in the schema above, which editors read.

title = "{file.stem}"
"""


def _world(subject: Subject) -> list[Row]:
    """Return the rows of the world."""
    gravity = np.zeros(3)
    gravity[subject.up] = -GRAVITY
    rows: list[Row] = [("gravity", gravity, f"guess: {'xyz'[subject.up]} points up [m/s2]")]
    if subject.settles:
        rows.append(("motion", "equilibrium", "guess: the photograph shows it at rest"))
    return rows


def _camera(
    subject: Subject, seen: Seen, size: tuple[int, int], lens: Row
) -> tuple[View, list[Row]]:
    """Return how the body is seen, and the rows of the camera."""
    low, high = subject.box
    up = np.eye(3)[subject.up]
    # The sides from which a robot, whose z points up, and anything else is seen.
    sides = np.array([[0.0, -1.0, 0.0] if subject.up == 2 else [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    depths = np.abs(sides @ (high - low))
    back = sides[int(depths[1] < 0.99 * depths[0])]
    right = np.cross(up, back)
    width, height, depth = (abs(float(axis @ (high - low))) for axis in (right, up, back))
    if seen.diagonal is None:
        whole, what = ROOM * max(height, width * size[0] / size[1]), "a third of the picture"
    else:
        whole, what = math.hypot(width, height) / seen.diagonal, "as large as in the first frame"
    middle = 0.5 * (low + high) if subject.tracked is None or seen == Seen() else subject.tracked
    view = View(middle, right, up, whole)
    view = view._replace(target=view.point(-seen.right, -seen.down))
    distance = max(0.5 * whole / math.tan(math.radians(0.5 * lens[1])), depth)
    return view, [
        ("eye", view.target + distance * back, f"guess: where it is {what} [m]"),
        ("target", view.target, "guess: what is in the middle of the picture [m]"),
        *([("up", up, "")] if subject.up != 1 else []),
        lens,
    ]


def _write(file: Path, text: str, subject: Subject) -> None:
    """Write the file and its meshes, if the scene can be read and built; else nothing."""
    folder = _mesh_folder(file)
    try:
        if subject.meshes:
            folder.mkdir()
            for name, mesh in subject.meshes.items():
                poly_data(mesh).save(folder / name)
        build(scene_from_dict(tomllib.loads(text), file.parent, source=str(file)))
        with explained(file), file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except BaseException:
        if subject.meshes:
            shutil.rmtree(folder, ignore_errors=True)
        raise
