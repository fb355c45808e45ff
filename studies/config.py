"""A study's settings are data: TOML, with every key documented in the built-in file.

The built-in file of a study, `studies/configs/NAME.toml`, is also its schema: a user's
file or a `key=value` override may set any key that is there, to a value of the same type.
Nothing in a study file is run. The data sets of `studies/datasets` are another `Family`,
with files of their own.
"""

import difflib
import json
import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjsim import checks
from studies.errors import StudyError
from studies.registry import STUDIES, find_study


OPTIONS = ("out", "device", "dtype", "seed", "scheduler", "resume")  # of commands, no keys


@dataclass(frozen=True)
class Family:
    """What settings can be of: kinds of one sort, each with its built-in file.

    Attributes
    ----------
    key : str
        What a kind is called, and the key that names it in a file: `study = "beam"`.
    configs : pathlib.Path
        Folder of the built-in files, NAME.toml.
    names : collection of str
    find : callable
        find(name) complains of an unknown name.
    options : tuple of str
        What the command takes as an option, and a user may mistake for a key.
    """

    key: str
    configs: Path
    names: Collection[str]
    find: Callable[[str], Any]
    options: tuple[str, ...] = OPTIONS

    def file(self, kind: str) -> Path:
        """Return the built-in file of a kind."""
        return self.configs / f"{kind}.toml"

    def text(self, kind: str) -> str:
        """Return what it holds."""
        return self.file(kind).read_text(encoding="utf-8")


STUDY = Family("study", Path(__file__).resolve().parent / "configs", STUDIES, find_study)


@dataclass(frozen=True)
class StudySettings:
    """A resolved study.

    Attributes
    ----------
    kind : str
        Name of the built-in study it is an instance of.
    values : dict
        Every setting, nested as in the file.
    explicit : dict
        The settings that the user gave, by dotted key.
    family : Family
    """

    kind: str
    values: dict[str, Any]
    explicit: dict[str, Any]
    family: Family = STUDY

    def to_toml(self) -> str:
        """Return the study as TOML, with the comments of the built-in file."""
        import tomlkit

        document = tomlkit.parse(self.family.text(self.kind))
        _assign(document, self.values)
        return tomlkit.dumps(document)


def resolve(
    study: str,
    overrides: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    family: Family = STUDY,
) -> StudySettings:
    """Return a built-in study or a TOML file's, with `key=value` overrides applied.

    Parameters
    ----------
    study : str
        Name of a built-in study, or path of a TOML file that holds `study = "NAME"`.
    overrides : sequence of str
        Such as "beam.mu=2e5" or "camera.eye=[0, 1, 3]".
    settings : mapping, optional
        Settings as nested tables, before the overrides.
    family : Family
        Of which `study` is a kind.

    Raises
    ------
    StudyError
        If the study or a key is unknown (the nearest known one is named), a file is
        missing or no TOML, or a value has another type than the built-in one.
    """
    given: dict[str, Any] = {}
    kind = study
    if study not in family.names and (study.endswith(".toml") or Path(study).is_file()):
        given = _read(Path(study), family)
        kind = given.pop(family.key, "")
        if not isinstance(kind, str) or not kind:
            names = ", ".join(family.names)
            raise StudyError(
                f"{study} must name its kind in the key `{family.key}`, one of {names}; e.g. "
                f'`{family.key} = "{next(iter(family.names))}"` in its first line.'
            )
    family.find(kind)
    values = builtin(kind, family)
    explicit = flatten(given) | flatten(settings or {})
    for override in overrides:
        key, value = _parse_override(override, kind, values, family)
        explicit[key] = value
    for key, value in explicit.items():
        explicit[key] = _set(values, kind, key, value, family=family)
    return StudySettings(kind, values, explicit, family)


def builtin(kind: str, family: Family = STUDY) -> dict[str, Any]:
    """Return the settings of a built-in study, without the key that names it."""
    values = tomllib.loads(family.text(kind))
    values.pop(family.key, None)
    return values


def get(values: Mapping[str, Any], key: str) -> Any:
    """Return a value by its dotted key."""
    here: Any = values
    for part in key.split("."):
        here = here[part]
    return here


def _read(path: Path, family: Family) -> dict[str, Any]:
    if not path.is_file():
        raise StudyError(
            f"There is no {family.key} file {path}. Built-in ones: {', '.join(family.names)}."
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not valid TOML: {error}.") from error


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return all settings by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _parse_override(
    text: str, kind: str, defaults: Mapping[str, Any], family: Family
) -> tuple[str, Any]:
    """Return key and value of "key=value"; a text may stand without quotes."""
    known = flatten(defaults)
    key, equals, raw = text.partition("=")
    key, raw = key.strip(), raw.strip()
    if not equals or not key:
        near = (difflib.get_close_matches(text, known, n=1) or list(known))[0]
        raise StudyError(
            f"A setting must read key=value, got {text!r}. E.g. {near}={json.dumps(known[near])}. "
            f"Every key is documented in {family.file(kind)}."
        )
    _known(kind, key, known, family)
    if isinstance(known[key], str) and not raw.startswith(('"', "'")):
        return key, raw
    try:
        return key, tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise StudyError(
            f"`{key}` must be {_type_name(known[key])}, got {raw!r}, which is no TOML value."
        ) from error


def _known(kind: str, key: str, known: Mapping[str, Any], family: Family) -> str:
    """Return a key if it is known; otherwise name the nearest, and where all are."""
    try:
        return checks.known_key("key", key, known)
    except ValueError as error:
        message = str(error).split(" Known:", 1)[0]
        if key in family.options:
            message = f"Unknown key `{key}`. It is an option: `--{key}`."
        elif own := _same_behind_the_table(key, known):
            message = f"Unknown key `{key}`. Did you mean `{'` or `'.join(own)}`?"
        table = key.split(".", maxsplit=1)[0]
        siblings = [name for name in known if name.startswith(f"{table}.")]
        where = f" Keys of `{table}`: {', '.join(siblings)}." if siblings else ""
        raise StudyError(
            f"{message}{where} Every key is documented in {family.file(kind)}."
        ) from error


def _same_behind_the_table(key: str, known: Mapping[str, Any]) -> list[str]:
    """Return the known keys that are `key`, or nearest to it, but for the table they are in."""
    by_last: dict[str, list[str]] = {}
    for name in known:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    near = difflib.get_close_matches(key, by_last, n=1, cutoff=0.7)
    return by_last[near[0]] if near else []


def _set(values: dict[str, Any], kind: str, key: str, value: Any, *, family: Family) -> Any:
    """Set a dotted key to a value of the type that is there; return what was set."""
    _known(kind, key, flatten(values), family)
    *tables, last = key.split(".")
    here = values
    for table in tables:
        here = here[table]
    here[last] = _typed(key, value, here[last])
    return here[last]


def _typed(key: str, value: Any, like: Any) -> Any:
    """Return `value` in the type of `like`; an integer may stand for a float."""
    if isinstance(like, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(like, list) and isinstance(value, list):
        return [_typed(key, item, like[0]) for item in value] if like else value
    if type(value) is not type(like):
        raise StudyError(f"`{key}` must be {_type_name(like)}, got {value!r}.")
    if isinstance(value, float) and not _may_be(key, value):
        raise StudyError(f"`{key}` must be finite, got {value}.")
    return value


def _may_be(key: str, value: float) -> bool:
    """Whether a number is finite; a bound may be infinite, which is none."""
    return math.isfinite(value) or (math.isinf(value) and key.startswith("bounds."))


def _type_name(value: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    if isinstance(value, list):
        inner = f", each {_type_name(value[0])}" if value else ""
        return f"a list in brackets{inner}"
    return names.get(type(value), type(value).__name__)


def _assign(document: Any, values: Mapping[str, Any]) -> None:
    """Set the values in a TOML document; what is equal keeps its spelling."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _assign(document[key], value)
        elif document[key] != value:
            document[key] = value
