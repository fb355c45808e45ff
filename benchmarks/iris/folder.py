"""The films of a folder of IRIS, what was measured of them, and the template of each."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.runs.errors import StudyError


PARAMETERS = "parameters.json"
SUFFIXES = (".mp4", ".mov", ".gif")
TEMPLATES = Path(__file__).parent / "templates"
GRAVITY = 9.80665  # [m/s2], the benchmark's, which has no number of its own in the file


@dataclass(frozen=True)
class Film:
    """A film, and what was measured beside it."""

    path: Path
    kind: str  # the class: the name of a template
    setting: str  # "" of a film that lies in the folder itself
    measured: Mapping[str, float]  # by name [SI units, degrees]

    @property
    def name(self) -> str:
        """What identifies the film, also as a folder: class/setting/take."""
        return "/".join(filter(None, (self.kind, self.setting, self.path.stem)))


def read_templates(folder: Path = TEMPLATES) -> dict[str, dict[str, Any]]:
    """Return the templates of a folder by class."""
    templates = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            template = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise StudyError(f"{path} is no TOML file: {error}.") from error
        for key in ("classes", "track", "numbers"):
            if key not in template.get("iris", {}):
                raise StudyError(f"{path} lacks `iris.{key}`: begin with one of {TEMPLATES}.")
        templates |= dict.fromkeys(template["iris"]["classes"], template)
    if not templates:
        raise StudyError(f"`--templates`: {folder} has no files *.toml. Copy those of {TEMPLATES}.")
    return templates


def find_films(folder: Path, templates: Mapping[str, Any]) -> list[Film]:
    """Return the films of a folder, in the order of their names.

    Raise an error if there is none, or if films in settings lack `parameters.json`.
    """
    if not folder.is_dir():
        raise StudyError(f"`FOLDER`: there is no folder {folder}.")
    loose = [
        Film(path, kind, "", {})
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in SUFFIXES
        for kind in [path.stem.lower().removeprefix("iris_")]
        if kind in templates
    ]
    in_settings = [
        path
        for path in sorted(folder.glob("*/*/*"))
        if path.suffix.lower() in SUFFIXES and "mask" not in path.stem.lower()
        if path.parts[-3].lower() in templates
    ]
    if not (loose or in_settings):
        raise StudyError(
            f"`FOLDER`: {folder} has no films CLASS/SETTING/TAKE.mp4, with CLASS one of "
            f"{', '.join(sorted(templates))}. The whole set is rasulkhanbayov/IRIS on Hugging Face."
        )
    measured = read_measured(folder / PARAMETERS) if in_settings else {}
    films = []
    for path in in_settings:
        kind, setting = (name.lower() for name in path.parts[-3:-1])
        films.append(Film(path, kind, setting, measured.get(kind, {}).get(setting, {})))
    return loose + films


def read_measured(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Return the numbers of `parameters.json` by class, setting and name, all in lower case."""
    if not path.is_file():
        raise StudyError(f"{path} is missing: it has what was measured for each class and setting.")
    try:
        stored = json.loads(path.read_text("utf-8"))
        return {
            kind.lower(): {
                setting.lower(): {
                    name: float(value["mean"])
                    for name, value in numbers.items()
                    if isinstance(value, dict) and "mean" in value
                }
                for setting, numbers in settings.items()
            }
            for kind, settings in stored.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise StudyError(
            f"{path} must have {{class: {{setting: {{name: {{'mean': number}}}}}}}}: {error}."
        ) from error
