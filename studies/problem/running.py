"""Start a run of a scene in a new folder, or go on with one that was stopped."""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.errors import StudyError
from studies.fillings import KEPT, keep_fillings_of, write_fillings
from studies.manifest import manifest, now
from studies.problem.fit import SceneFit, make_fit
from studies.registry import RunOptions
from studies.run_folder import MANIFEST, STUDY, RunFolder, new_folder
from studies.running import check_device, warn, with_budget
from studies.scene import declared
from studies.scene.files import SCENE
from studies.scene.reading import read_scene, to_toml


def start_scene(
    path: Path, overrides: Sequence[str], out: Path | None, given: dict[str, Any]
) -> tuple[RunFolder, SceneFit]:
    """Check a scene and its observations, then make the folder of its run.

    Parameters
    ----------
    path : pathlib.Path
        The scene file.
    overrides : sequence of str
        Such as "bodies.duck.E=2e5".
    out : pathlib.Path, optional
        The folder; by default the next free one under `runs/`.
    given : dict
        Options of the command line; None where not given.

    Raises
    ------
    StudyError, ValueError
        If something in the scene is wrong. Nothing was written.
    """
    options = RunOptions(**{key: value for key, value in given.items() if value is not None})
    check_device(options.device)
    RunFolder.require_free(out)
    file = read_scene(path, overrides)
    job = make_fit(file, options, title=file.title or path.stem)
    warn(job.made.notes)
    folder = RunFolder.create(out or new_folder(path.stem))
    command = " ".join(["adjsim", *sys.argv[1:]])
    stored = manifest(SCENE, vars(options), command)
    folder.write_json(MANIFEST, {**stored, "name": path.stem, "inputs": input_hashes(file)})
    write_fillings(folder, KEPT)
    folder.write_text(STUDY, to_toml(file))  # last: with it the run has begun
    return folder, job


def resume_scene(
    path: Path, overrides: Sequence[str], out: Path | None, given: dict[str, Any]
) -> tuple[RunFolder, SceneFit]:
    """Open the folder of a run and prepare the scene that it holds, or start where none has begun.

    Raises
    ------
    StudyError
        If the scene, an option or an input file differs from that of the run.
    """
    if out is None:
        raise StudyError("`--resume` needs the run's folder: add `--out DIR`.")
    if RunFolder.clear_unbegun(out, "run"):
        return start_scene(path, overrides, out, given)
    folder = RunFolder.reopen(out)
    stored = folder.read_json(MANIFEST)
    if stored.get("study") != SCENE:
        raise StudyError(f"{out} holds a run of `{stored.get('study')}`, not of a scene.")
    file = read_scene(folder.file(STUDY))
    if to_toml(read_scene(path, overrides)) != folder.file(STUDY).read_text(encoding="utf-8"):
        raise StudyError(
            f"{path} is not the scene that {out} was started with. Resume with the file as it was, "
            f"or start a new run; {folder.file(STUDY)} holds the scene of the run."
        )
    if changed := _changed(stored.get("inputs", {}), input_hashes(file)):
        raise StudyError(
            f"`{changed}` is not the file that {out} was started with. Put it back, or start a new "
            "run."
        )
    kept = {key: stored[key] for key in ("seed", "dtype", "device", "certificate")}
    for key, value in kept.items():
        if given.get(key) is not None and given[key] != value:
            raise StudyError(
                f"{out} was run with `--{key}` {value}, not {given[key]}. Leave it out, or start a "
                "new run."
            )
    options = with_budget(RunOptions(**kept), stored.get("checkpoint"), given.get("checkpoint"))
    check_device(options.device)
    keep_fillings_of(folder)
    job = make_fit(file, options, title=file.title or stored["name"])
    folder.clear_parts()
    resumed = [*stored["resumed"], now()]
    folder.write_json(MANIFEST, {**stored, "checkpoint": options.checkpoint, "resumed": resumed})
    return folder, job


def input_hashes(file: declared.SceneFile) -> dict[str, str]:
    """Return the SHA-256 of every input file of a scene, by path; folders by their names."""
    found = {}
    for path in sorted(set(_paths(file))):
        if path.is_file():
            with path.open("rb") as stream:
                found[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()
        elif path.is_dir():
            digest = hashlib.sha256()
            for one in sorted(p for p in path.iterdir() if p.is_file()):
                digest.update(one.name.encode() + one.read_bytes())
            found[str(path)] = digest.hexdigest()
    return found


def _paths(value: Any) -> list[Path]:
    """Return all texts of a scene that are paths of files."""
    if isinstance(value, str):
        is_path = "/" in value and Path(value).exists()
        return [Path(value)] if is_path else []
    if isinstance(value, dict):
        return [path for one in value.values() for path in _paths(one)]
    if isinstance(value, tuple | list):
        return [path for one in value for path in _paths(one)]
    if hasattr(value, "__dataclass_fields__"):
        return [path for one in vars(value).values() for path in _paths(one)]
    return []


def _changed(before: dict[str, str], after: dict[str, str]) -> str | None:
    paths = sorted({*before, *after})
    return next((path for path in paths if before.get(path) != after.get(path)), None)
