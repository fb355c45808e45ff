"""Begin a run in a new folder, or go on with one that was stopped: one way for all of them.

    given = recalled(out, {"overrides": overrides, "seed": seed}, resume=resume)
    recipe = Recipe("run", target, ..., arguments=given)
    folder, job = start_or_resume(recipe, out, make, resume=resume)
    print(job.run(folder))

A run has begun as soon as its manifest is there, which is the first file that is written. Nothing
is ever deleted but half-written files of ours. `--resume` begins where nothing has begun.
"""

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from studies.runs import manifest
from studies.runs.contents import Manifest
from studies.runs.errors import StudyError
from studies.runs.folder import (
    ITERATIONS,
    MANIFEST,
    STUDY,
    RunFolder,
    digest_of,
    is_free,
    new_folder,
)
from studies.runs.manifest import hash_of, now
from studies.runs.meshes import keep_meshes, write_meshes
from studies.runs.options import CHANGEABLE, RunOptions, check_device


class Job(Protocol):
    """Something that is checked and ready to run."""

    def run(self, folder: RunFolder) -> str:
        """Run, or go on where the folder's logs end; return a few lines of outcome."""
        ...


AnyJob = TypeVar("AnyJob")
CUDA_THEN_CPU = "cuda, then cpu"  # the device of a run whose GPU was lost


@dataclass(frozen=True)
class Recipe:
    """What is to be made, and all that its numbers follow from."""

    verb: str  # the command of adjsim: run, scan or dataset
    target: str  # what it is given: a name or a file
    study: str  # the kind of study, by which a report finds its writer
    # All settings, resolved, as nested tables of plain values. Input files are named by absolute
    # paths.
    settings: Mapping[str, Any]
    toml: str  # the same as the file `study.toml`, for readers
    options: RunOptions
    # What `recalled` returned: what the command line gave
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What new folders are called after."""
        stem = Path(self.target).stem
        return stem if self.verb == "run" else f"{self.verb}-{stem}"

    def dependencies(self) -> dict[str, Any]:
        """Return everything the numbers depend on, by dotted key."""
        options = self.options
        settings = {**self.settings, "study": self.study, "command": self.verb}
        return manifest.dependencies(
            settings, seed=options.seed, dtype=options.dtype, device=options.device
        )

    def manifest(self) -> dict[str, Any]:
        """Return the manifest of a run that starts now."""
        parts = self.dependencies()
        return {
            "study": self.study,
            "name": Path(self.target).stem,
            "verb": self.verb,
            "target": self.target,
            **vars(self.options),
            "arguments": dict(self.arguments),
            "command": " ".join(["adjsim", *map(shlex.quote, sys.argv[1:])]),
            "started": now(),
            "resumed": [],
            "toml": digest_of(self.toml.encode()),
            "hash": hash_of(parts),
            "depends_on": parts,
            "versions": manifest.versions(),
            "machine": manifest.machine(),
            "commit": manifest.git_commit(),
        }


def recalled(out: Path | None, given: Mapping[str, Any], *, resume: bool) -> dict[str, Any]:
    """Return what a command line gave; with `resume`, what it leaves out is from the folder."""
    if not resume:
        RunFolder.require_free(out)
        return dict(given)
    if out is None:
        raise StudyError("`--resume` needs the run's folder: add `--out DIR`.")
    if is_nothing(out):
        return dict(given)
    stored = RunFolder.open(out).read_json(MANIFEST, Manifest).get("arguments", {})
    left_out = [key for key, value in given.items() if value is None or value in ([], ())]
    return {**given, **{key: stored.get(key) for key in left_out}}


def is_nothing(out: Path) -> bool:
    """Whether a folder holds no run to resume, and one may begin in it."""
    return not out.is_file() and is_free(out)


def start_or_resume(
    recipe: Recipe, out: Path | None, make: Callable[[], AnyJob], *, resume: bool
) -> tuple[RunFolder, AnyJob]:
    """Return the folder of a run, locked, and what `make` returns: the job, checked and ready.

    A new folder is made after `make`, so that a mistake leaves none.
    """
    check_device(recipe.options.device)
    if resume and out is not None and not is_nothing(out):
        return _resume(recipe, out, make)
    RunFolder.require_free(out)
    if resume:
        print(f"{out} holds nothing to resume: a new {recipe.verb} begins", flush=True)
    job = make()
    folder = RunFolder.create(out or new_folder(recipe.name))
    write_meshes(folder)
    folder.write_json(MANIFEST, recipe.manifest())
    folder.write_text(STUDY, recipe.toml)
    return folder, job


def _resume(recipe: Recipe, out: Path, make: Callable[[], AnyJob]) -> tuple[RunFolder, AnyJob]:
    folder = RunFolder.reopen(out)
    try:
        stored = folder.read_json(MANIFEST, Manifest)
        parts = _require_same(folder, stored, recipe)
        keep_meshes(folder)
        job = make()
        folder.clear_parts()
        logs = folder.path.rglob(ITERATIONS.replace(".", "*."))
        if count := sum(log.read_bytes().count(b"\n") for log in logs):
            print(f"{count} evaluations are read from the log and not computed again", flush=True)
        changed = {key: getattr(recipe.options, key) for key in CHANGEABLE}
        if parts["device"] != stored["device"]:
            arguments = {**stored["arguments"], "device": recipe.options.device}
            changed |= {"device": parts["device"], "arguments": arguments}
            changed |= {"depends_on": parts, "hash": hash_of(parts)}
        changed |= {"toml": digest_of(recipe.toml.encode()), "resumed": [*stored["resumed"], now()]}
        folder.write_json(MANIFEST, {**stored, **changed})
        folder.write_text(STUDY, recipe.toml)
    except BaseException:
        folder.release()
        raise
    return folder, job


def _require_same(folder: RunFolder, stored: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Return what the numbers depend on; raise if a folder was made by another recipe.

    A run on a GPU, which may be lost, may go on on the CPU: its numbers depend on both.
    """
    verb, before = stored.get("verb"), stored.get("depends_on")
    if verb != recipe.verb or not isinstance(before, dict):
        raise StudyError(
            f"{folder.path} holds what `adjsim {verb} {stored.get('target')}` made, not "
            f"`adjsim {recipe.verb}`. Go on with `{folder.how_to_go_on()}`."
        )
    parts = recipe.dependencies()
    if before.get("device") in ("cuda", CUDA_THEN_CPU) and parts["device"] == "cpu":
        parts["device"] = CUDA_THEN_CPU
        before = {**before, "device": CUDA_THEN_CPU}
    if hash_of(before) != hash_of(parts):
        raise StudyError(
            f"{folder.path} was started otherwise, and old and new numbers would not fit "
            f"together: {manifest.listed(manifest.differences(before, parts))}. Resume it as it "
            "was started, or choose another folder."
        )
    return parts


def warn(lines: Iterable[str | None]) -> None:
    """Print warnings, apart from those that are None."""
    for line in filter(None, lines):
        print(f"warning: {line}", file=sys.stderr, flush=True)
