"""Which file is a scene: a bundled one by its name, or the user's own."""

import tomllib
from pathlib import Path

from studies.runs.errors import StudyError


SCENE = "scene"  # what the manifest of a run calls its study
BUNDLED = Path(__file__).resolve().parents[1] / "bundled"


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
    data = path.read_bytes()
    try:
        values = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return path if b"[bodies" in data else None
    has_other_kind = any(key in values for key in ("study", "scan", "dataset"))
    return None if has_other_kind else path


def find_scene(name: str) -> Path:
    """Return the file of a scene, as `scene_file` finds it."""
    from studies.scene.tables import unknown  # with Pydantic, which `adjsim list` does not need

    if path := scene_file(name):
        return path
    if (name.endswith(".toml") or "/" in name) and not Path(name).exists():
        raise StudyError(f"There is no scene file {name}.")
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
