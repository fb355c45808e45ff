"""Which file is a scene: a bundled one by its name, or the user's own."""

import re
import tomllib
from pathlib import Path
from typing import Any

from studies.runs.errors import StudyError


SCENE = "scene"  # what the manifest of a run calls its study
BUNDLED = Path(__file__).resolve().parents[1] / "bundled"
SCHEMA = BUNDLED / "scene.schema.json"  # of scene files; docs/_ext/scene_schema.py writes it
LARGEST = 10_000_000  # bytes of a TOML file
DEEPEST = 50  # tables and lists in each other


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file; raise what is wrong with it as one message."""
    if path.stat().st_size > LARGEST:
        raise StudyError(
            f"{path} must have at most {LARGEST // 10**6} MB, got {path.stat().st_size / 1e6:.0f}. "
            "Put long lists in files of their own, such as CSV."
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is no text in UTF-8: {error}.") from error
    try:
        return parse_toml(text)
    except ValueError as error:
        where = _line_of(error, text)
        raise StudyError(f"{path} is not valid TOML: {_in_words(error)}.{where}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text; a ValueError says what is wrong with it."""
    too_deep = ValueError(f"tables or lists are nested more than {DEEPEST} deep")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise too_deep from error
    except ValueError as error:  # Python's own message advises to change a setting of Python
        raise ValueError("a number has thousands of digits") from error
    layer: list[Any] = [values]
    for _ in range(DEEPEST):
        items = (node.values() if isinstance(node, dict) else node for node in layer)
        layer = [
            child for children in items for child in children if isinstance(child, dict | list)
        ]
    if layer:
        raise too_deep
    return values


def _in_words(error: ValueError) -> str:
    """Return an error of the TOML parser; that of a table that is there twice in plain words."""
    twice = re.match(r"Cannot declare \((.*?),?\) twice(.*)", str(error))
    if not twice:
        return str(error)
    names = re.findall(r"'([^']*)'", twice[1])
    what = names[0] if names[0] in ("bodies", "obstacles", "cameras", "lights") else "tables"
    return f"two {what} with one name, [{'.'.join(names)}]{twice[2]}. Rename one of them"


def _line_of(error: ValueError, text: str) -> str:
    """Return the line of an error of the TOML parser, and what is often wrong in such a line."""
    place = re.search(r"at line (\d+)", str(error))
    lines = text.splitlines()
    if not place or int(place[1]) > len(lines):
        return ""
    line = lines[int(place[1]) - 1].strip()
    unit = re.fullmatch(r"[^=]*=\s*[-+.\de]*\d\s*[A-Za-z°%]+\S*\s*(#.*)?", line)
    return f" The line is `{line}`.{' Numbers stand without their units.' if unit else ''}"


def scene_file(name: str) -> Path | None:
    """Return the file of a scene: a bundled one by name, or a TOML file without the key `study`.

    None if it is neither. A file that is not valid TOML counts if it has a table of bodies: reading
    it says what is wrong.
    """
    bundled = BUNDLED / f"{name}.toml"
    if "/" not in name and bundled.is_file():
        return bundled
    path = Path(name)
    if path.suffix != ".toml" or not path.is_file():
        return None
    try:
        values = read_toml(path)
    except StudyError:
        return path if b"[bodies" in path.read_bytes() else None
    has_other_kind = any(key in values for key in ("study", "scan", "dataset"))
    return None if has_other_kind else path


def find_scene(name: str) -> Path:
    """Return the file of a scene, as `scene_file` finds it."""
    from studies.scene.tables import unknown  # with Pydantic, which `adjsim list` does not need

    if path := scene_file(name):
        return path
    if (name.endswith(".toml") or "/" in name) and not Path(name).exists():
        way = f" `adjsim new {name}` writes one." if name.endswith(".toml") else ""
        raise StudyError(f"There is no scene file {name}.{way}")
    if name.endswith(".toml"):
        raise StudyError(f"{name} is no scene file: there must be a table [bodies.NAME] in it.")
    known = sorted(path.stem for path in BUNDLED.glob("*.toml"))
    raise StudyError(f"{unknown('scene', name, known)} Or give a scene file, NAME.toml.")


def bundled_scenes() -> dict[str, str]:
    """Return the titles of the bundled scenes by name."""
    return {
        path.stem: str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
        for path in sorted(BUNDLED.glob("*.toml"))
    }
