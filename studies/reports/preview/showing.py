"""A scene at its start values beside and over its films, and what looks wrong about it.

For every film the picture has three rows, the first, the middle and the last frame, and three
columns: the film, the scene, and the film with the outline of the scene.

Tests: `tests/studies/reports/preview/test_showing.py`.
"""

from collections.abc import Sequence
from pathlib import Path

from studies.problem.making import make_problem
from studies.problem.observations.outlines import foreground
from studies.reports.preview.advice import advice_on_motion, advice_on_start
from studies.reports.preview.picture import stacked, strip
from studies.reports.preview.shots import Shot, shoot
from studies.runs import media
from studies.runs.errors import StudyError
from studies.scene.building import Built, build
from studies.scene.checking import camera_of
from studies.scene.declared import Film, SceneFile
from studies.scene.reading import read_scene


def preview(
    scene: SceneFile | Path | str, out: Path | str, overrides: Sequence[str] = ()
) -> list[str]:
    """Write a picture of a scene at its start values, and return what looks wrong.

    Parameters
    ----------
    scene : SceneFile or path
    out : path
        The picture, *.png.
    overrides : sequence of str
        Of a scene file, such as "bodies.duck.scale=0.02".

    Raises
    ------
    StudyError
        If the scene cannot be built, has no camera, or nothing that a camera sees.
    """
    file = scene if isinstance(scene, SceneFile) else read_scene(scene, overrides)
    built = build(file)
    if not built.subjects:
        raise StudyError("`bodies` must hold something with a surface: smoke is a picture already.")
    shots, warnings = inspect(file, built)
    media.write_png(out, stacked([strip(shot) for shot in shots], axis=0))
    return [*built.notes, *warnings, *_refused(file, warnings)]


def inspect(file: SceneFile, built: Built) -> tuple[list[Shot], list[str]]:
    """Return a scene as its cameras see it at its start values, and what looks wrong about it."""
    shots, warnings = [], []
    for key, camera, film in _views(file):
        shot, said = shoot(file, built, key, name=camera, film=film)
        warnings += said
        if shot.data is not None:
            seen = foreground(shot.data)
            warnings += advice_on_start(file, built, shot, seen)
            warnings += advice_on_motion(file, shot, seen)
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


def _views(file: SceneFile) -> list[tuple[str, str, Film | None]]:
    """Return key, camera and film of what is shown: all films, or else all cameras."""
    found: list[tuple[str, str, Film | None]] = [
        (f"observations.{name}", camera_of(f"observations.{name}", one.camera, file), one)
        for name, one in file.observations.items()
        if isinstance(one, Film)
    ]
    found = found or [(f"cameras.{name}", name, None) for name in file.cameras]
    if not found:
        raise StudyError("`cameras` is empty: a preview needs a table [cameras.NAME].")
    return found
