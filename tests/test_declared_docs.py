"""The page on scene files has every key of every table, with its default."""

import dataclasses
import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from studies.scene import declared
from studies.scene.reading import scene_from_dict


DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, STEPS = ((DOCS / name).read_text("utf-8") for name in ("scene_files.md", "own_video.md"))
FREE = PAGE[PAGE.index("## Free\n") :]
BODY, OBSTACLE = "Keys of every body with a mesh", "Keys of every obstacle"
OBSERVATION = "Keys of every observation"
SECTIONS = {
    "_Body": BODY,
    "_Obstacle": OBSTACLE,
    "_Observation": OBSERVATION,
    "_Law": "Law of contact",
    "Contact": "Contacts",
    "_Joint": "Keys of every joint",
    "_Framed": "Keys of welds, hinges and sliders",
    "_Driven": "Keys of hinges and sliders",
    **{f"{kind}Joint": f"{kind} joint" for kind in ("Ball", "Pin")},
    "OwnForce": "Own force",
    "OwnObservation": "Own residuals",
    **{f"{kind}Obstacle": f"{kind} obstacle" for kind in ("Plane", "Sphere", "Box", "Capsule")},
}
# Tables that hold tables, those of two keys that stand in the table above them, and kinds of joints
# without keys of their own.
NO_SECTION = (
    "Scene", "SceneFile", "Box", "Plane", "Ball", "WeldJoint", "HingeJoint", "SliderJoint",
)  # fmt: skip
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


def test_the_complete_example_is_a_scene_file(tmp_path):
    for name in ("duck.stl", "duck.mp4"):
        (tmp_path / name).touch()
    example = re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    more = tomllib.loads(textwrap.dedent(re.search(r"(?:^    .*\n)+", FREE, re.MULTILINE)[0]))
    tables = tomllib.loads(example)
    scene = scene_from_dict(tables, tmp_path)
    assert scene.bodies["duck"].held.plane.normal == (0.0, 1.0, 0.0)
    both = {"duck": tables["bodies"]["duck"], "goose": tables["bodies"]["duck"]}
    scene = scene_from_dict({**tables, **more, "bodies": both}, tmp_path)
    assert scene.free["goose.E"].tied_to == "duck.E"


def test_the_steps_of_a_scene_file_fit_together(tmp_path):
    """The blocks of the page for newcomers, one after the other, are one scene file."""
    for name in ("part.stl", "clip.mp4"):
        (tmp_path / name).touch()
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", STEPS, re.MULTILINE)
    tables = {}
    for block in blocks:
        if block.lstrip().startswith("["):
            for path in merged(tables, tomllib.loads(textwrap.dedent(block))):
                pytest.fail(f"{path} stands in two blocks")
    scene = scene_from_dict(tables, tmp_path)
    assert set(scene.free) == {"beam.E"}
    assert scene.observations["film"].frames == (12, 80)


def merged(tables, more, path=""):
    """Add tables to others; yield the keys that were there."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(tables.get(key), dict):
            yield from merged(tables[key], value, f"{path}{key}.")
        elif key in tables:
            yield f"{path}{key}"
        else:
            tables[key] = value
