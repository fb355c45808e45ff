"""Settings of a scene file by dotted key: bodies.duck.E=2e5, free."duck.E".bounds=[1e3, 1e6].

Keys are TOML's. What stands behind `free.` may be written without quotes, in a file and in an
override, because a shell takes quotes away: free.duck.E.bounds=[1e3, 1e6] is the same, whether
"duck.E" is there already or not. So is what stands behind `truth.`: truth.duck.E=2e5.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from studies.runs.errors import StudyError
from studies.scene.declared import Drawn, Free
from studies.scene.files import parse_toml
from studies.scene.tables import unknown


FREE_KEYS = frozenset(field.name for field in dataclasses.fields(Free))
COMPONENT = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]+\[[0-9, ]+\]")  # velocity[0]
OWNERS = (
    "bodies", "obstacles", "contacts", "joints", "grips", "pushes", "forces", "cameras", "lights",
    "observations",
)  # fmt: skip
DRAWN_KEYS = frozenset(field.name for field in dataclasses.fields(Drawn))


def set_override(values: dict[str, Any], text: str) -> None:
    """Set key=value in the tables of a scene file; a text may stand without quotes.

    A table replaces what was there, but for tables of `free`, which are added to.
    """
    keys, value = _parsed(text)
    table = keys[0]
    if table in JOINED and len(keys) > 1:
        for key in reversed(keys[1:]):
            value = {key: value}
        old, new = (JOINED[table](tables) for tables in (values.get(table, {}), value))
        values[table] = _merged(old, new) if table == "free" else {**old, **new}
        return
    owners = [name for name, tables in values.items() if name in OWNERS and table in tables]
    if table not in values and owners:
        path = ".".join(keys)
        raise StudyError(f"Unknown key `{path}`. Did you mean `{owners[0]}.{path}`?")
    bodies = values.get("bodies") or {}
    is_new = table == "bodies" and len(keys) > 2 and keys[1] not in bodies
    if bodies and is_new and keys[2:] != ["kind"]:  # a body of one's own begins with its kind
        raise StudyError(unknown("body", keys[1], bodies))
    here: Any = values
    for depth, key in enumerate(keys[:-1], start=1):
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            raise StudyError(f"`{'.'.join(keys[:depth])}` is no table, so {text!r} cannot be set.")
    here[keys[-1]] = value


def _joined(tables: Any, is_value: Callable[[str, Any], bool], path: str = "") -> Any:
    """Return tables with one key for each path: duck = {E = {}} becomes "duck.E"."""
    if not isinstance(tables, Mapping):
        return tables
    flat: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, Mapping) and not is_value(f"{path}{name}", value):
            flat |= _joined(value, is_value, f"{path}{name}.")
        else:
            flat[f"{path}{name}"] = value
    return flat


def _merged(old: Any, new: Any) -> Any:
    """Return tables with others added, whose values win."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _merged(old.get(key), item) for key, item in new.items()}}


def _is_free(path: str, table: Mapping[str, Any]) -> bool:
    """Whether a table says how a value is free, rather than holding such tables."""
    if "." not in path and not FREE_KEYS.issuperset(table):
        return False
    holds_numbers = not all(isinstance(item, Mapping) for item in table.values())
    settings = {key for key, item in table.items() if key == "prior" or _is_drawn(item)}
    return not table or holds_numbers or settings == set(table)


def _is_drawn(table: Any) -> bool:
    """Whether a table says how a number is drawn."""
    return isinstance(table, Mapping) and bool(table) and DRAWN_KEYS.issuperset(table)


JOINED: dict[str, Callable[[Any], Any]] = {
    "free": lambda tables: _joined(tables, _is_free),
    "truth": lambda tables: _joined(tables, lambda _, table: _is_drawn(table)),
}


def _parsed(text: str) -> tuple[list[str], Any]:
    """Return the keys and the value of "key=value"."""
    key, equals, raw = text.partition("=")
    if "\n" in text.strip():
        raise StudyError(f"A setting must be one line, got {text.strip()[:80]!r}.")
    nested: Any = None
    for written in (key, COMPONENT.sub(r'"\g<0>"', key)):
        try:
            nested = nested or parse_toml(f"{written} = 0")
        except ValueError:
            continue
    if nested is None or not equals:
        raise StudyError(
            f"A setting must read key=value with a key of the scene file, got {text!r}. "
            "E.g. bodies.duck.E=2e5."
        )
    keys = []
    while isinstance(nested, dict):
        ((name, nested),) = nested.items()
        keys.append(name)
    try:
        return keys, parse_toml(f"value = {raw.strip()}")["value"]
    except ValueError as error:
        if not raw.strip() or raw.strip()[0] in "[{\"'":
            raise StudyError(
                f"`{key.strip()}`: {raw.strip()!r} is no TOML value: {error}."
            ) from error
        return keys, raw.strip()
