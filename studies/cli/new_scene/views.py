"""A new scene file of a body without a mesh: a camera and an observation for each of its films."""

import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from studies.cli.new_scene.command import check_file, path_of, rendered, write
from studies.cli.new_scene.observations import Footage
from studies.runs.errors import StudyError
from studies.scene.files import SCHEMA
from studies.scene.reading import scene_from_dict
from studies.scene.tables import unknown


KINDS = ("soft", "rigid")
RADIUS, HEIGHTS = 2.0, (0.5, 1.2, 2.0)  # of the guessed cameras around the body [m]


def new_from_views(file: Path, films: Sequence[str], kind: str | None) -> list[str]:
    """Write a scene file of a body that several films show, and return what to say."""
    check_file(file, has_meshes=False)
    kind = kind or KINDS[0]
    if kind not in KINDS:
        raise StudyError(f"`--kind`: {unknown('kind', kind, KINDS)}")
    if len(films) < 2:
        raise StudyError(
            "`--film` must be given once for each view, from two calibrated cameras or more "
            f"(eight leave little of the hull unknown), got {len(films)}."
        )
    folder, views = file.parent.resolve(), []
    names = [re.sub(r"\W", "_", Path(path).stem, flags=re.ASCII) for path in films]
    if len(set(names)) < len(names):
        names = [f"view{k + 1}" for k in range(len(films))]
    for k, (name, path) in enumerate(zip(names, films, strict=True)):
        turn = 2.0 * np.pi * k / len(films)
        eye = [RADIUS * np.sin(turn), HEIGHTS[k % len(HEIGHTS)], RADIUS * np.cos(turn)]
        film = Footage.read(path_of("film", path), folder)
        views.append({"name": name, "eye": np.round(eye, 2), "film": film})
    text = rendered(
        "views.toml.j2", schema=SCHEMA.as_uri(), file=file.name, title=file.stem, kind=kind,
        views=views,
    )  # fmt: skip
    scene = tomllib.loads(text)
    for observation in scene["observations"].values():  # the picture is still to be taken
        observation.get("background", {}).pop("picture", None)
    scene_from_dict(scene, folder, source=str(file))
    write(file, text)
    guesses = f"{text.count('# guess')} guesses, each marked as one"
    return [f"{file.resolve()}: {guesses}", f"next: adjsim preview {shlex.quote(str(file))}"]
