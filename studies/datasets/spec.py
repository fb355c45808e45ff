"""What data set is made: a scene file that draws something, how many scenes, by which seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, SPEC, STUDY, RunFolder
from studies.runs.options import RunOptions, make_options
from studies.scene.declared import Drawn, SceneFile, SimulatedFilm
from studies.scene.drawing import instance_of
from studies.scene.files import bundled_scenes, scene_file
from studies.scene.reading import read_scene
from studies.scene.tables import unknown


COUNT, MOST = 1000, 10_000_000  # scenes
PER_SHARD = 100
TEST = 5  # every so many scenes one is in the test set


@dataclass(frozen=True)
class Spec:
    """A data set: so many scenes of a file."""

    name: str  # as it was asked for: a bundled scene, or a file
    file: SceneFile  # with all that is drawn still to be drawn
    options: RunOptions
    count: int

    @property
    def film(self) -> str:
        """The name of the first film."""
        return next(iter(simulated_films(self.file)))

    def shards(self) -> list[tuple[int, int]]:
        """Return the scenes of every shard as first and stop."""
        firsts = range(0, self.count, PER_SHARD)
        return [(first, min(first + PER_SHARD, self.count)) for first in firsts]


def simulated_films(file: SceneFile) -> dict[str, SimulatedFilm]:
    """Return how the films of a scene that are simulated are taken, by name."""
    return {name: film.simulate for name, film in file.films.items() if film.simulate}


def _is_drawn(value: Any) -> bool:
    """Whether a value, or one of the values in it, is drawn."""
    return isinstance(value, Drawn) or (isinstance(value, tuple) and any(map(_is_drawn, value)))


def split(number: int) -> str:
    """Return "test" for every fifth scene, or "train"."""
    return "test" if number % TEST == TEST - 1 else "train"


def resolve(arguments: Mapping[str, Any]) -> Spec:
    """Return the data set of a command line: `name`, `overrides`, `count` and the options."""
    path = scene_file(arguments["name"])
    if path is None:
        raise StudyError(unknown("scene", arguments["name"], bundled_scenes()))
    count = COUNT if arguments["count"] is None else arguments["count"]
    if not 1 <= count <= MOST:
        count_text = str(count) if abs(count) < 10**12 else "a number of more digits"
        raise StudyError(f"`--count` must be from 1 to {MOST:,}, got {count_text}.")
    file = read_scene(path, arguments["overrides"] or ())
    if not simulated_films(file):
        raise StudyError(
            "`observations` must hold a film with `simulate = { height = 64, width = 64, "
            "frames = 20 }`: a data set is simulated."
        )
    starts = [free.start for free in file.free.values()]
    if file.draw is None and not any(map(_is_drawn, [*file.truth.values(), *starts])):
        raise StudyError(
            "The scene draws nothing, so that all scenes of the data set would be equal: give "
            '[truth] a number such as "duck.E" = { between = [1e4, 1e5] }.'
        )
    options = make_options(arguments)
    instance_of(file, options.seed)  # raises where nothing can be drawn
    return Spec(arguments["name"], file, options, count)


def read_spec(folder: RunFolder) -> Spec:
    """Return the data set of a folder."""
    if not folder.has(SPEC):
        raise StudyError(f"{folder.path} holds no data set: it has no {SPEC}.")
    stored, manifest = folder.read_json(SPEC), folder.read_json(MANIFEST)
    folder.read_study()  # raises if it was changed
    file = read_scene(folder.file(STUDY))
    return Spec(stored["name"], file, make_options(manifest), stored["count"])
