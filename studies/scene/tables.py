"""The tables of a scene file against the dataclasses of `declared`: keys, kinds, types and paths.

What is wrong is said by its key, in one sentence, before anything is made of the tables. Numba is
not imported here or in what this imports: `adjsim list` reads scene files too.
"""

import dataclasses
import difflib
import functools
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from studies.runs.errors import StudyError


BARE = re.compile(r"[A-Za-z0-9_-]+")
PLAIN = {float: "a number", int: "a whole number", bool: "true or false", str: "a text in quotes"}
LIMITS = {Gt: ("gt", "above"), Ge: ("ge", "of at least"), Lt: ("lt", "below"), Le: ("le", "up to")}


def joined(path: str, key: str) -> str:
    """Return the dotted path of a key, in quotes where TOML wants them: free."duck.E"."""
    quoted = key if BARE.fullmatch(key) else f'"{key}"'
    return f"{path}.{quoted}" if path else quoted


def unknown(what: str, key: str, known: Iterable[str]) -> str:
    """Return a message on an unknown name: the nearest one that is known, and all of them."""
    names = list(known)
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(key.lower(), by_lower, n=1)
    ask = f" Did you mean `{by_lower[near[0]]}`?" if near else ""
    return f"Unknown {what} `{key}`.{ask} Known: {', '.join(names) or 'none'}."


def check_table(cls: type, table: Any, path: str) -> None:
    """Raise if a table has an unknown key, lacks one, or holds such a table; types are not read."""
    if not isinstance(table, Mapping):
        raise StudyError(f"`{path}` must be a table of keys and values, got {table!r}.")
    hints = _hints(cls)
    for key in table:
        if key not in hints:
            message = unknown("key", key, hints)
            raise StudyError(f"`{path}`: {message}" if path else message)
    for field in dataclasses.fields(cls):
        has_default = field.default_factory is not dataclasses.MISSING
        if field.name not in table and not has_default and field.default is dataclasses.MISSING:
            raise StudyError(
                f"`{joined(path, field.name)}` is missing: give {expected(hints[field.name])}."
            )
    for key, value in table.items():
        _check_value(hints[key], value, joined(path, key))


def _check_value(hint: Any, value: Any, path: str) -> None:
    """Go down where a value is a table, or a table of named ones."""
    if get_origin(_plain(hint)) is dict:
        if not isinstance(value, Mapping):
            raise StudyError(f"`{path}` must be a table of keys and values, got {value!r}.")
        for name, item in value.items():
            _check_value(get_args(_plain(hint))[1], item, joined(path, name))
    elif classes := [] if _is_number(hint, value) else _classes(hint):
        check_table(_choose(classes, value, path), value, path)


def _is_number(hint: Any, value: Any) -> bool:
    """Whether a value is no table, where a number is allowed in place of one."""
    return not isinstance(value, Mapping) and _holds_numbers(hint)


def _holds_numbers(hint: Any) -> bool:
    """Whether a number is allowed in place of a table."""
    hint = _plain(hint)
    return hint is float or (_is_union(hint) and any(_holds_numbers(one) for one in get_args(hint)))


def field_at(cls: type, values: Mapping[str, Any], location: Iterable[Any]) -> tuple[str, Any, Any]:
    """Return path, annotation and value of the key that Pydantic's location of an error leads to.

    The names of unions' branches in a location are left out; the items of a list are not entered.
    """
    path, hint, here = "", cls, values
    for part in location:
        if not isinstance(here, Mapping) or part not in here:
            continue
        if get_origin(_plain(hint)) is dict:
            hint = get_args(_plain(hint))[1]
        else:
            hint = _hints(_choose(_classes(hint), here, path))[part]
        path, here = joined(path, part), here[part]
    return path, hint, here


def expected(hint: Any) -> str:
    """Return what an annotation allows, in words: "a list of 3 numbers"."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        texts = [item for item in metadata if isinstance(item, str)]
        if texts:
            return texts[0] if texts[0].startswith(('"', "a ")) else f"the {texts[0]}"
        return expected(inner) + _limits(metadata)
    if _is_union(hint):
        return " or ".join(expected(item) for item in get_args(hint) if item is not types.NoneType)
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f'"{item}"' for item in get_args(hint))
    if get_origin(hint) is tuple:
        return _expected_list(get_args(hint))
    return PLAIN.get(hint, "a table of keys and values")


def each_path(hint: Any, value: Any, path: str = "") -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield (table, key, dotted path) of every text in the tables that is the path of a file."""
    if not isinstance(value, Mapping):
        return
    if get_origin(_plain(hint)) is dict:
        for name, item in value.items():
            yield from each_path(get_args(_plain(hint))[1], item, joined(path, name))
    elif classes := _classes(hint):
        hints = _hints(_choose(classes, value, path))
        for key, item in value.items():
            if isinstance(item, str) and _is_path(hints[key]):
                assert isinstance(value, dict)
                yield value, key, joined(path, key)
            yield from each_path(hints[key], item, joined(path, key))


def _is_path(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return any(isinstance(item, str) and item.startswith("path") for item in get_args(hint)[1:])
    return _is_union(hint) and any(_is_path(item) for item in get_args(hint))


def _choose(classes: list[type], value: Any, path: str) -> type:
    """Return the class of a table: the only one, or that of its kind."""
    if len(classes) == 1:
        return classes[0]
    kinds = {_hints(cls)["kind"].__args__[0]: cls for cls in classes}
    if not isinstance(value, Mapping):
        raise StudyError(f"`{path}` must be a table of keys and values, got {value!r}.")
    kind = value.get("kind")
    if kind is None:
        raise StudyError(f"`{joined(path, 'kind')}` is missing: give one of {', '.join(kinds)}.")
    if not isinstance(kind, str) or kind not in kinds:
        message = unknown("kind", str(kind), kinds)
        raise StudyError(f"`{joined(path, 'kind')}`: {message}")
    return kinds[kind]


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _classes(hint: Any) -> list[type]:
    """Return the dataclasses that an annotation allows."""
    hint = _plain(hint)
    if _is_union(hint):
        return [cls for item in get_args(hint) for cls in _classes(item)]
    return [hint] if dataclasses.is_dataclass(hint) and isinstance(hint, type) else []


def _limits(metadata: Iterable[Any]) -> str:
    """Return " above 0 and below 1" of Pydantic's limits."""
    limits = []
    for item in metadata:
        for limit in item.metadata if isinstance(item, FieldInfo) else ():
            if type(limit) in LIMITS:
                name, word = LIMITS[type(limit)]
                limits.append(f"{word} {getattr(limit, name):g}")
    return f" {' and '.join(limits)}" if limits else ""


def _expected_list(items: tuple[Any, ...]) -> str:
    if items[-1] is Ellipsis:
        return f"a list, each {expected(items[0])}"
    one = expected(items[0])
    plural = one.removeprefix("a ").replace("number", "numbers", 1).replace("list", "lists", 1)
    return f"a list of {len(items)} {plural}"
