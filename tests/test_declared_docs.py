"""The pages on scene files have every key of every table, with its default."""

import dataclasses
import json
import re
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from PIL import Image

from studies.problem.making import make_problem
from studies.scene import declared
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED, SCHEMA, bundled_scenes, read_toml
from studies.scene.reading import scene_from_dict


sys.path.append(str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
import scene_pages
from scene_films import SCENES as FILMED, digest, scenes_of_pages
from scene_schema import CLASSES, ENTRY, NO_SECTION, PAGES, rows, schema


DOCS = Path(__file__).resolve().parents[1] / "docs"
STEPS = (DOCS / "own_video.md").read_text("utf-8")
TABLES = ENTRY.read_text("utf-8")
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
VALIDATOR = Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))


def own_fields(cls):
    """Return the fields that a class does not inherit from a class with a section."""
    inherited = {
        field.name
        for base in cls.__mro__[1:]
        if dataclasses.is_dataclass(base)
        for field in dataclasses.fields(base)
    }
    return [field for field in dataclasses.fields(cls) if field.name not in inherited]


def as_toml(value):
    """Return a default as a scene file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - NO_SECTION))
def test_every_key_is_in_its_table_with_its_default(name):
    table, fields = rows(CLASSES[name]), own_fields(CLASSES[name])
    assert list(table) == [field.name for field in fields]
    for field in fields:
        default = table[field.name][1]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            assert default == "required", field.name
        elif field.default is not None and field.default is not dataclasses.MISSING:
            assert default == f"`{as_toml(field.default)}`", field.name
        else:
            assert default, field.name


def test_the_tables_of_a_scene_are_named():
    for field in dataclasses.fields(declared.SceneFile):
        assert re.search(rf"^\| `(\[{field.name}[\].]|{field.name}`)", TABLES, re.MULTILINE), (
            field.name
        )


def test_the_schema_is_that_of_the_classes_and_the_page():
    """`python docs/_ext/scene_schema.py` writes it."""
    assert json.loads(SCHEMA.read_text("utf-8")) == schema()


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*.toml")), ids=lambda path: path.stem)
def test_every_bundled_scene_names_the_schema_and_keeps_it(path):
    assert path.read_text("utf-8").startswith(f"#:schema {SCHEMA.name}\n")
    assert [error.message for error in VALIDATOR.iter_errors(read_toml(path))] == []


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "'bodies' is a required property"),
        ({"bodies": {}, "camera": {}}, "'camera' was unexpected"),
        ({"bodies": {"duck": {"mesh": "ball"}}}, "is not valid under any"),
        ({"bodies": {}, "search": {"stages": [2.0]}}, "2.0 is greater than the maximum of 1.0"),
        ({"bodies": {}, "world": {"gravity": [0.0, 1.0]}}, "[0.0, 1.0] is too short"),
    ],
)
def test_the_schema_refuses_what_reading_refuses(tables, message):
    with pytest.raises(ValueError, match=r"."):
        scene_from_dict(tables)
    (error,) = VALIDATOR.iter_errors(tables)
    assert message in error.message


def test_the_schema_has_units_and_sentences():
    properties = VALIDATOR.schema["$defs"]["Soft"]["properties"]
    assert "[Pa]" in properties["E"]["description"]
    assert "Young's modulus" in properties["E"]["description"]
    assert "[m]" in properties["position"]["description"]
    assert VALIDATOR.schema["properties"]["title"]["description"] == "heading of the report"


def test_small_tables_have_all_their_keys():
    for cls in (declared.Box, declared.Plane, declared.Ball):
        row = rf"^\| `held\.{cls.__name__.lower()}` \|.*$"
        line = re.search(row, PAGES["bodies"], re.MULTILINE)[0]
        for field in dataclasses.fields(cls):
            assert f"`{field.name}`" in line


def test_the_complete_example_is_a_scene_file(tmp_path):
    for name in ("duck.stl", "duck.mp4"):
        (tmp_path / name).touch()
    scene = scene_from_dict(tomllib.loads(BLOCK.search(TABLES)[1]), tmp_path)
    assert scene.bodies["duck"].held.plane.normal == (0.0, 1.0, 0.0)


SCENES = scenes_of_pages()


def test_a_page_begins_with_a_scene_and_its_picture():
    assert set(PAGES) - set(SCENES) == {"search", "intervals"}  # these have a bundled one
    for name, page in PAGES.items():
        picture = re.search(r"^!\[.+\]\((.+)\)$", page, re.MULTILINE)[1]
        path = DOCS / "scene_files" / picture
        assert path.is_file(), name
        if name in SCENES:  # `python docs/_ext/scene_films.py NAME` draws it
            with Image.open(path) as drawn:
                assert drawn.info["comment"] == digest(SCENES[name]), name


def test_the_tiles_of_the_first_page_are_the_films_that_can_be_made():
    assert set(scene_pages.names()) == set(FILMED)
    for name in FILMED:
        assert name in bundled_scenes()
        assert (scene_pages.FILMS / f"{name}.jpg").is_file()


@pytest.mark.parametrize("name", SCENES)
def test_the_scene_of_a_page_can_be_run(name):
    assert [error.message for error in VALIDATOR.iter_errors(SCENES[name])] == []
    prepared = make_problem(instance_of(scene_from_dict(SCENES[name]), seed=0), fits_first=False)
    assert prepared.everything.parameters.paths


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
