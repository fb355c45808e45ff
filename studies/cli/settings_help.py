"""What `adjsim list` names, and help that shows settings: `adjsim run beam --help`.

The built-in files document every key, so they are what is shown. Little is read and imported, so
that both answer at once.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from studies.scene.files import bundled_scenes, scene_file


SCANS = Path(__file__).resolve().parents[1] / "scans" / "configs"


class SettingsCommand(TyperCommand):
    """A command whose help ends with the settings of the study, scan or data set named with it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments for the help: it is given before they are read."""
        ctx.meta[__name__] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what is behind the options."""
        super().format_epilog(ctx, formatter)
        formatter.write(settings_text(self.name or "", ctx.meta.get(__name__, [])))


def settings_text(command: str, args: Sequence[str]) -> str:
    """Return the documented settings of the first argument that has some, or how to see them."""
    for name in args:
        if files := documents(command, name):
            *before, settings = (file.read_text(encoding="utf-8") for file in files)
            about = "".join(f"\n{name}, {files[0]}:\n\n{text}" for text in before)
            return f"{about}\nSettings, each to be given as key=value, {files[-1]}:\n\n{settings}"
    return f"\n`adjsim {command} NAME --help` shows the settings of NAME as well.\n"


def documents(command: str, name: str) -> list[Path]:
    """Return the built-in files that document what a command makes of a name, its settings last."""
    scan = SCANS / f"{name}.toml"
    if command == "scan" and scan.is_file():
        settings = tomllib.loads(scan.read_text(encoding="utf-8"))
        return [scan, *documents("run", settings["scene"])]
    scene = scene_file(name)
    return [scene] if scene else []


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
