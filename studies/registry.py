"""The studies that `adjsim run` knows. Their modules are imported when they are run."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from studies.errors import StudyError
from studies.runs.options import RunOptions
from studies.scene.files import SCENE, bundled_scenes


if TYPE_CHECKING:
    from studies.runs.folder import RunFolder


class Job(Protocol):
    """A study whose settings are checked, ready to run."""

    def run(self, folder: "RunFolder") -> str:
        """Run, or go on where the folder's log ends; return a few lines of outcome."""
        ...


@dataclass(frozen=True)
class Study:
    """A kind of study.

    `module` has `prepare(settings, options) -> Job`, `reporter` has `write_report(folder)`;
    `moves` says whether its runs hold a motion to view, `searches` whether one fits one problem to
    images, whose loss can be scanned.
    """

    name: str
    module: str
    summary: str
    reporter: str = "studies.reports.scene_run"
    moves: bool = True
    searches: bool = True

    def prepare(self, settings: dict[str, Any], options: RunOptions) -> Job:
        """Check the settings and return what can be run."""
        return import_module(self.module).prepare(settings, options)

    def write_report(self, folder: "RunFolder", formats: tuple[str, ...] = ()) -> Path:
        """Write the report of a run, its figures in these formats too, and return its path."""
        more = (formats,) if formats else ()
        return import_module(self.reporter).write_report(folder, *more)


STUDIES = {
    study.name: study
    for study in (
        Study(
            "beam",
            "studies.beam",
            "identify mu and lam of a soft cantilever from a video with hidden truth",
        ),
    )
}


SCENE_RUN = Study(SCENE, "studies.problem.fit", "a scene file")


def find_study(name: str) -> Study:
    """Return a study by name, or what runs of scene files have in its place.

    Raises
    ------
    StudyError
        If it is unknown; the nearest known one is named.
    """
    if name == SCENE:
        return SCENE_RUN
    from adjsim import checks  # it brings Numba, which `adjsim list` can do without

    scenes = bundled_scenes()
    try:
        known = checks.known_key("scene or study", name, [*scenes, *STUDIES])
    except ValueError as error:
        raise StudyError(
            f'{error} Or give a scene file, or a TOML file that names a study: `study = "beam"`.'
        ) from error
    if known not in STUDIES:  # while scans of scenes are no scans of studies
        raise StudyError(f"`{name}` is a scene, not a study: use it by `adjsim run {name}`.")
    return STUDIES[known]
