"""What data set is made: its settings, how many scenes, by which seed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjsim import checks
from studies import config
from studies.config import OPTIONS, Family, StudySettings
from studies.datasets.registry import DATASETS, Dataset, find_dataset
from studies.errors import StudyError
from studies.runs.folder import SPEC, STUDY, RunFolder
from studies.runs.options import RunOptions, make_options


FAMILY = Family(
    "dataset",
    Path(__file__).resolve().parent / "configs",
    tuple(DATASETS),
    find_dataset,
    (*OPTIONS, "count"),
)
COUNT = 1000


@dataclass(frozen=True)
class Spec:
    """A data set, resolved.

    Attributes
    ----------
    name : str
        As it was asked for: the name of a kind, or a file.
    settings : StudySettings
    options : RunOptions
    count : int
        Scenes.
    """

    name: str
    settings: StudySettings
    options: RunOptions
    count: int

    @property
    def kind(self) -> Dataset:
        """The kind of data set."""
        return find_dataset(self.settings.kind)

    @property
    def seen(self) -> dict[str, Any]:
        """The tables `time`, `image` and `camera` of its videos."""
        return self.kind.seen(self.settings.values)

    def check(self) -> None:
        """Complain of settings out of range, by key."""
        values = self.settings.values
        self.kind.check_settings(values)
        time, files = self.seen["time"], values["files"]
        for key in ("frames", "fps", "steps", "most_steps", "tolerance"):
            checks.positive(f"time.{key}", time[key])
        if time["most_steps"] < time["steps"]:
            raise StudyError(
                f"`time.most_steps` must be at least `time.steps` = {time['steps']}, got "
                f"{time['most_steps']}."
            )
        if not 0.0 <= values["split"]["test"] < 1.0:
            raise StudyError(
                f"`split.test` must be a part from 0 to below 1, got {values['split']['test']:g}."
            )
        checks.whole("files.scenes", files["scenes"], 1)
        if files["compression"] not in range(10):
            raise StudyError(f"`files.compression` must be 0 to 9, got {files['compression']}.")
        # The first scene complains of the rest, such as a camera that looks nowhere.
        self.kind.draw_scene(values, self.options, 0).make_motion(time["steps"])

    def shards(self) -> list[tuple[int, int]]:
        """Return the scenes of every shard as first and stop."""
        size = self.settings.values["files"]["scenes"]
        return [(first, min(first + size, self.count)) for first in range(0, self.count, size)]

    def to_json(self) -> dict[str, Any]:
        """Return all but the settings, which are a file of their own, as plain values."""
        return {
            "dataset": self.settings.kind,
            "count": self.count,
            "options": vars(self.options),
        }


@dataclass(frozen=True)
class Asked:
    """What a command line asks for; None: as in the folder, or by default."""

    name: str
    overrides: Sequence[str] = ()
    count: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the same as plain values."""
        given = {"name": self.name, "overrides": list(self.overrides), "count": self.count}
        return {**given, **self.options}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Asked":
        """Return what `to_json` was made of."""
        options = {k: one for k, one in given.items() if k not in ("name", "overrides", "count")}
        return cls(given["name"], given["overrides"] or (), given["count"], options)


def require_name(name: str | None) -> str:
    """Complain if no data set is named."""
    if name is None:
        raise StudyError(
            f"Name a data set: {', '.join(DATASETS)}, or a TOML file; or check one that is there: "
            "`adjsim dataset --verify DIR`."
        )
    return name


def resolve(asked: Asked) -> Spec:
    """Return the data set that is asked for, its settings checked.

    Raises
    ------
    StudyError, ValueError
        If a name or key is unknown (the nearest known one is named), or a value is out of range.
    """
    settings = config.resolve(asked.name, asked.overrides, family=FAMILY)
    count = checks.whole("--count", COUNT if asked.count is None else asked.count, 1)
    spec = Spec(asked.name, settings, make_options(asked.options), count)
    spec.check()
    return spec


def read_spec(folder: RunFolder) -> Spec:
    """Return the data set of a folder.

    Raises
    ------
    StudyError
        If the folder holds none.
    """
    if not folder.has(SPEC):
        raise StudyError(f"{folder.path} holds no data set: it has no {SPEC}.")
    settings = config.resolve(str(folder.file(STUDY)), family=FAMILY)
    stored = folder.read_json(SPEC)
    return Spec(settings.kind, settings, RunOptions(**stored["options"]), stored["count"])
