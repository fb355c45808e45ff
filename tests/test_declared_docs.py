"""The page on scene files has every key of every table, with its default."""

import dataclasses
import re
from pathlib import Path

import pytest

from studies.scene import declared


PAGE = (Path(__file__).resolve().parent.parent / "docs" / "scene_files.md").read_text("utf-8")
BODY, OBSTACLE = "Keys of every body with a mesh", "Keys of every obstacle"
OBSERVATION = "Keys of every observation"
SECTIONS = {
    "_Body": BODY,
    "_Obstacle": OBSTACLE,
    "_Observation": OBSERVATION,
    **{f"{kind}Obstacle": f"{kind} obstacle" for kind in ("Plane", "Sphere", "Box", "Capsule")},
}
# Tables that hold tables, and those of two keys that stand in the table above them.
NO_SECTION = ("Scene", "SceneFile", "Box", "Plane", "Ball")
CLASSES = [
    one
    for name, one in vars(declared).items()
    if dataclasses.is_dataclass(one)
    and one.__module__ == declared.__name__
    and name not in NO_SECTION
]


def own_fields(cls):
    """Return the fields that a class does not inherit from a class with a section."""
    inherited = {
        field.name
        for base in cls.__mro__[1:]
        if dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
    }
    return [field for field in dataclasses.fields(cls) if field.name not in inherited]


def rows(title):
    """Return the rows of the first table under a heading: keys, and the cells behind them."""
    section = re.split(rf"^#+ {re.escape(title)}$", PAGE, maxsplit=1, flags=re.MULTILINE)[1]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = {}
    for line in section.splitlines():
        key = re.match(r"\| `(\w+)` \|", line)
        if key:
            found.setdefault(key[1], line.split("|")[2:])
        elif found and not line.startswith("|"):
            break
    return found


def as_toml(value):
    """Return a default as a scene file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_key_is_in_its_table_with_its_default(cls):
    table = rows(SECTIONS.get(cls.__name__, cls.__name__))
    fields = own_fields(cls)
    assert list(table) == [field.name for field in fields]
    for field in fields:
        default = table[field.name][1].strip()
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            assert default == "required", field.name
        elif field.default is not None and field.default is not dataclasses.MISSING:
            assert default == f"`{as_toml(field.default)}`", field.name
        else:
            assert default, field.name


def test_the_tables_of_a_scene_are_named():
    for field in dataclasses.fields(declared.SceneFile):
        assert re.search(rf"^\| `(\[{field.name}[\].]|{field.name}`)", PAGE, re.MULTILINE), (
            field.name
        )


def test_small_tables_have_all_their_keys():
    for cls in (declared.Box, declared.Plane, declared.Ball):
        line = re.search(rf"^\| `held\.{cls.__name__.lower()}` \|.*$", PAGE, re.MULTILINE)[0]
        for field in dataclasses.fields(cls):
            assert f"`{field.name}`" in line
