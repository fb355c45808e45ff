"""Which file is a scene: a bundled one by its name, or the user's own."""

import tomllib
from pathlib import Path


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


def bundled_scenes() -> dict[str, str]:
    """Return the titles of the bundled scenes by name."""
    return {
        path.stem: str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
        for path in sorted(BUNDLED.glob("*.toml"))
    }
