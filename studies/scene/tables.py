"""Tables of a TOML file as dataclasses, and what Pydantic finds wrong with them in words.

Numba is not imported here or in what this imports: `adjsim list` reads scene files too.
"""

import difflib
import functools
import json
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from studies.runs.errors import error_of


BARE = re.compile(r"[A-Za-z0-9_-]+")
PLAIN = {float: "a number", int: "a whole number", bool: "true or false", str: "a text in quotes"}
LIMITS = {Gt: ("gt", "above"), Ge: ("ge", "of at least"), Lt: ("lt", "below"), Le: ("le", "up to")}
UNKNOWN, MISSING, NO_KIND = "unexpected_keyword_argument", "missing", "union_tag_not_found"
# A misspelt key hides a key that is missing because of it, or a wrong type.
ORDER = (UNKNOWN, MISSING, NO_KIND, "union_tag_invalid", "value_error")
# How other names of a number begin, which are spelt too differently to be guessed.
SYNONYMS = {"young": "E", "elastic": "E", "poisson": "nu", "rho": "density"}
SMALLEST, LARGEST = 1e-100, 1e30  # beyond, products of numbers are 0 or infinite
T = TypeVar("T")
_adapter = functools.cache(TypeAdapter)
_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


def joined(path: str, key: str) -> str:
    """Return the dotted path of a key, in quotes where TOML wants them: free."duck.E"."""
    quoted = key if BARE.fullmatch(key) else f'"{key}"'
    return f"{path}.{quoted}" if path else quoted


def unknown(what: str, key: str, known: Iterable[str]) -> str:
    """Return a message on an unknown name: the nearest one that is known, and all of them."""
    names = list(known)
    by_lower = {name.lower(): name for name in names}
    stem, dot, last = key.lower().rpartition(".")
    near = [f"{stem}{dot}{name}" for word, name in SYNONYMS.items() if last.startswith(word)]
    near = [name for name in near if name.lower() in by_lower]
    near = near or difflib.get_close_matches(key.lower(), by_lower, n=1)
    ask = f" Did you mean `{by_lower[near[0].lower()]}`?" if near else ""
    return f"Unknown {what} `{key}`.{ask} Known: {', '.join(names) or 'none'}."


def validated(
    cls: type[T], values: Mapping[str, Any], folder: Any = None, source: str = "the file"
) -> T:
    """Return the dataclass of a table; types must be right, as in JSON.

    Files are looked for from `folder` on, if one is given. Where several mistakes are found, the
    error says that they are in `source`.
    """
    text, context = json.dumps(values, default=str), {"folder": folder}
    try:
        instance: T = _adapter(cls).validate_json(text, strict=True, context=context)
    except ValidationError as error:
        raise error_of(_mistakes(cls, values, error), source) from error
    if wrong := list(dict.fromkeys(_out_of_scale(values))):
        raise error_of(wrong, source)
    return instance


def _out_of_scale(value: Any, path: str = "") -> Iterator[str]:
    """Yield what is wrong with numbers that are too large or too small to compute with."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _out_of_scale(item, joined(path, key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _out_of_scale(item, path)
    elif isinstance(value, int | float) and value and not SMALLEST <= abs(value) <= LARGEST:
        yield (
            f"`{path}` must be 0 or from {SMALLEST:g} to {LARGEST:g} in size, got {value!r}. "
            "Check its unit."
        )


def _mistakes(cls: type, values: Mapping[str, Any], error: ValidationError) -> list[str]:
    """Return what is wrong with a table, the gravest mistakes first.

    What follows from a graver mistake is left out: a key that is missing beside a misspelt one, and
    what the other branches of a union find at the same place.
    """

    def kind_of(detail: ErrorDetails) -> str:
        is_grave = detail["type"] in ORDER and isinstance(detail["loc"][-1], str)
        return detail["type"] if is_grave else ""

    rank = {kind: k for k, kind in enumerate((*ORDER, ""))}
    messages: dict[str, str] = {}  # by path
    misspelt = set()  # tables with such keys
    # Of other mistakes the innermost: a table was tried as a text, too.
    order = sorted(error.errors(), key=lambda detail: (rank[kind_of(detail)], -len(detail["loc"])))
    for detail in order:
        kind, location = kind_of(detail), detail["loc"]
        is_key = kind in (UNKNOWN, MISSING)
        at = _field_at(cls, values, location[:-1] if is_key else location)
        if at is None:
            continue
        path = joined(at[0], str(location[-1])) if is_key else at[0]
        prefix, others = f"{path}.", [f"{other}." for other in messages]
        is_due = kind == MISSING and at[0] in misspelt
        if is_due or any(prefix.startswith(k) or k.startswith(prefix) for k in others):
            continue
        if kind == UNKNOWN:
            misspelt.add(at[0])
        messages[path] = _message(kind, detail, at)
    return list(messages.values())


def _message(kind: str, detail: ErrorDetails, at: tuple[str, Any, Any]) -> str:
    """Return what is wrong at a place, given as by `_field_at`, or with a key of its table."""
    path, hint, value = at
    if kind in (UNKNOWN, MISSING):
        key, hints = str(detail["loc"][-1]), _hints(_class_of(hint, value))
        if kind == MISSING:
            return f"`{joined(path, key)}` is missing: give {expected(hints[key])}."
        message = unknown("key", key, hints)
        return f"`{path}`: {message}" if path else message
    if kind == "value_error":
        return f"`{path}`{detail.get('ctx', {})['error']}"
    if kind in ORDER:  # of a table that may be of several kinds
        kinds, path = list(_kinds(hint)), joined(path, "kind")
        if kind == NO_KIND:
            return f"`{path}` is missing: give one of {', '.join(kinds)}."
        return f"`{path}`: {unknown('kind', str(value['kind']), kinds)}"
    return f"`{path}` must be {expected(hint)}, got {value!r}."


def _field_at(cls: type, values: Any, location: Iterable[Any]) -> tuple[str, Any, Any] | None:
    """Return path, annotation and value of the key that Pydantic's location of an error leads to.

    The names of unions' branches in a location are left out; the items of a list are not entered.
    It is None where a table was tried as another dataclass than the one that it is likely to be.
    """
    path, hint, here = "", cls, values
    for key in location:
        if not isinstance(here, Mapping):
            continue
        if key not in here:
            classes = {kind.__name__: kind for kind in _kinds(hint).values()}
            if key in classes and classes[key] is not _class_of(hint, here):
                return None
            continue
        is_named = get_origin(_plain(hint)) is dict
        hint = get_args(_plain(hint))[1] if is_named else _hints(_class_of(hint, here))[key]
        path, here = joined(path, key), here[key]
    return path, hint, here


def expected(hint: Any) -> str:
    """Return what an annotation allows, in words: "a list of 3 numbers"."""
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        texts = [item for item in metadata if isinstance(item, str)]
        if texts:
            return texts[0] if texts[0].startswith(('"', "a ")) else f"the {texts[0]}"
        return expected(inner) + _limits(metadata)
    if get_origin(hint) in (Union, types.UnionType):
        parts = [expected(item) for item in get_args(hint) if item is not types.NoneType]
        return " or ".join(dict.fromkeys(parts))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(f'"{item}"' for item in get_args(hint))
    if get_origin(hint) is tuple:
        return _expected_list(get_args(hint))
    return PLAIN.get(hint, "a table of keys and values")


def _expected_list(items: tuple[Any, ...]) -> str:
    item = expected(items[0])
    if items[-1] is Ellipsis:
        return f"a list, each {item}"
    plural = item.removeprefix("a ").replace("number", "numbers", 1).replace("list", "lists", 1)
    return f"a list of {len(items)} {plural}"


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _kinds(hint: Any) -> dict[str, type]:
    """Return the dataclasses that an annotation allows, by kind, or by name without kinds."""
    hint = _plain(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return {kind: cls for item in get_args(hint) for kind, cls in _kinds(item).items()}
    if not hasattr(hint, "__dataclass_fields__"):
        return {}
    kind = _hints(hint).get("kind")
    return {get_args(kind)[0] if kind else hint.__name__: hint}


def _class_of(hint: Any, value: Mapping[str, Any]) -> type:
    """Return the dataclass of a table: by its kind, else the one that has most of its keys."""
    kinds = _kinds(hint)
    if (kind := value.get("kind")) in kinds:
        return kinds[kind]
    return max(kinds.values(), key=lambda cls: len(value.keys() & _hints(cls).keys()))


def _limits(metadata: Iterable[Any]) -> str:
    """Return " above 0 and below 1" of Pydantic's limits."""
    limits = []
    for item in metadata:
        for limit in item.metadata if isinstance(item, FieldInfo) else ():
            if type(limit) in LIMITS:
                name, word = LIMITS[type(limit)]
                limits.append(f"{word} {getattr(limit, name):g}")
    return f" {' and '.join(limits)}" if limits else ""
