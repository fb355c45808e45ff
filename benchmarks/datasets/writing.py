"""What loaders share: files that must be there, and the scene file that they write."""

import json
import shutil
from pathlib import Path
from typing import Any

import tomlkit

from studies.runs.errors import StudyError


def required(folder: Path, name: str, dataset: str) -> Path:
    """Return the path of a file or folder; raise an error that says what is missing."""
    if not folder.is_dir():
        raise StudyError(f"`FOLDER`: there is no folder {folder}.")
    path = folder / name
    if not path.exists():
        raise StudyError(
            f"{folder} is no folder of {dataset}: {path.relative_to(folder)} is missing."
        )
    return path


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise StudyError(f"{path} is no JSON file: {error}.") from error


def copied_mesh(mesh: Path, out: Path) -> str:
    """Copy the mesh of a body beside the scene, and return its name there."""
    if not mesh.is_file():
        raise StudyError(f"`--mesh`: there is no file {mesh}.")
    shutil.copyfile(mesh, out / f"body{mesh.suffix}")
    return f"body{mesh.suffix}"


def write_scene(out: Path, scene: dict[str, Any], notes: tuple[str, ...]) -> Path:
    """Write scene.toml with notes on what is a guess above it; return its path."""
    text = "".join(f"# {note}\n" for note in notes)
    (out / "scene.toml").write_text(f"{text}\n{tomlkit.dumps(scene)}", "utf-8")
    return out / "scene.toml"
