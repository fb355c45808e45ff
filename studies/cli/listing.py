"""What `adjsim list` names. It reads and imports little, so that it answers at once."""

import tomllib
from pathlib import Path

from studies.scene.files import bundled_scenes


SCANS = Path(__file__).resolve().parents[1] / "scans" / "configs"


def listed() -> str:
    """Return bundled scenes and scans, one line each, under their commands."""
    scans = {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["title"]
        for path in sorted(SCANS.glob("*.toml"))
    }
    groups = {"adjsim run NAME": bundled_scenes(), "adjsim scan NAME": scans}
    width = max(len(name) for named in groups.values() for name in named)
    lines = []
    for command, named in groups.items():
        lines += [f"{command}:", *(f"  {name:{width}}  {text}" for name, text in named.items()), ""]
    return "\n".join(lines[:-1])
