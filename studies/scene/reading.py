"""Scene files: TOML in, checked dataclasses out, and back.

`kind` may be left out of a light (`coefficients` are of a sky), of an observation (a `video` is a
film, a `file` .csv holds points, .npz states, what is simulated with a `height` is a film, `at`
places points) and of an obstacle (`ends`: capsule, `radius`: sphere, `size`: box, else plane). File
names are relative to the folder of the scene file; "adjsim:NAME" is in studies/bundled/assets.
"""

import copy
import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.runs.errors import StudyError
from studies.scene.checking import check_scene
from studies.scene.declared import SceneFile, resolved
from studies.scene.overrides import JOINED, set_override
from studies.scene.rings import spread
from studies.scene.tables import validated


def read_scene(path: Path | str, overrides: Sequence[str] = ()) -> SceneFile:
    """Read a scene file, with overrides such as "bodies.duck.E=2e5" applied.

    Raises
    ------
    StudyError
        On the first mistake, by its key.
    """
    path = Path(path)
    if not path.is_file():
        raise StudyError(f"There is no scene file {path}.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{path} is not valid TOML: {_in_words(error)}.") from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is no text in UTF-8: {error}.") from error
    for override in overrides:
        set_override(values, override)
    return scene_from_dict(values, path.parent)


def scene_from_dict(values: Mapping[str, Any], folder: Path | str = ".") -> SceneFile:
    """Return the scene that the tables of a scene file declare; paths are relative to `folder`."""
    values = copy.deepcopy(dict(values))
    values |= {key: join(values[key]) for key, join in JOINED.items() if key in values}
    truth = values.get("truth")
    for path, one in truth.items() if isinstance(truth, dict) else ():
        if path.endswith(".mesh"):
            try:
                values["truth"][path] = resolved(one, "mesh", Path(folder))
            except StudyError as error:
                raise StudyError(f"`{path}`{error}") from error
    _infer_kinds(values)
    if not values.get("bodies"):
        raise StudyError(
            "`bodies` is missing: a scene needs a table [bodies.NAME] with its kind, such as soft."
        )
    scene = spread(validated(SceneFile, values, Path(folder)))
    check_scene(scene)
    return scene


def to_toml(scene: SceneFile) -> str:
    """Return a scene as TOML without what is at its default; to read it gives an equal scene."""
    import tomlkit

    return tomlkit.dumps(plain(scene))


def plain(scene: SceneFile) -> dict[str, Any]:
    """Return a scene as nested tables of plain values, without what is at its default."""
    return json.loads(json.dumps(_changed(scene), default=lambda value: value.tolist()))


def _in_words(error: tomllib.TOMLDecodeError) -> str:
    """Return an error of the TOML parser; that of a table that is there twice in plain words."""
    twice = re.match(r"Cannot declare \((.*?),?\) twice(.*)", str(error))
    if not twice:
        return str(error)
    names = re.findall(r"'([^']*)'", twice[1])
    what = names[0] if names[0] in ("bodies", "obstacles", "cameras", "lights") else "tables"
    return f"two {what} with one name, [{'.'.join(names)}]{twice[2]}. Rename one of them"


def _infer_kinds(values: dict[str, Any]) -> None:
    """Set the kinds of observations and obstacles that their other keys give away."""
    for table in _tables(values.get("observations")):
        suffix = Path(str(table.get("file", ""))).suffix.lower()
        kind = "film" if "video" in table else {".csv": "points", ".npz": "states"}.get(suffix)
        if isinstance(simulate := table.get("simulate"), dict):
            kind = "film" if "height" in simulate else "points" if "at" in table else "states"
        if kind:
            table.setdefault("kind", kind)
    for table in _tables(values.get("lights")):
        table.setdefault("kind", "sky" if "coefficients" in table else "sun")
    for table in _tables(values.get("obstacles")):
        keys = {"ends": "capsule", "radius": "sphere", "size": "box"}
        table.setdefault("kind", next((keys[key] for key in keys if key in table), "plane"))


def _tables(named: Any) -> list[dict[str, Any]]:
    tables = named.values() if isinstance(named, dict) else ()
    return [table for table in tables if isinstance(table, dict)]


def _changed(value: Any) -> Any:
    """Return a dataclass as tables without None and defaults; the kind is kept."""
    if isinstance(value, tuple | list):
        return [_changed(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _changed(item) for key, item in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    tables = {}
    for field in sorted(dataclasses.fields(value), key=lambda field: field.name != "kind"):
        item, default = getattr(value, field.name), field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name == "kind" or (item is not None and item != default):
            tables[field.name] = _changed(item)
    return tables
