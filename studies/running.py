"""Start a run in a new folder, or go on with one that was stopped."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies import config
from studies.distribution import HERE, Cluster, Spread
from studies.errors import StudyError
from studies.manifest import manifest, now
from studies.registry import Job, RunOptions, find_study
from studies.run_folder import ITERATIONS, MANIFEST, SCAN, SPEC, STUDY, RunFolder, new_folder
from studies.scene.files import SCENE
from studies.stable_steps import advice_on_steps


DTYPES, DEVICES = ("float64", "float32"), ("cpu", "cuda")
CHECKPOINT, CERTIFICATE = "checkpoint", "certificate"  # options that may change in a resumed run


def cuda_problem() -> str | None:
    """Return why CUDA cannot be used here, None if it can."""
    from adjsim import backend

    probe = getattr(backend, "cuda_problem", None)
    return "This build has no CUDA launcher." if probe is None else probe()


def check_device(device: str) -> None:
    """Complain if the device cannot be had."""
    if device == "cuda" and (problem := cuda_problem()):
        raise StudyError(
            f"`--device cuda` is not possible here: {problem.rstrip('.')}. Run with "
            "`--device cpu`, which needs no GPU; `adjsim info` lists what is missing and how "
            "to get it."
        )


def start(
    study: str,
    overrides: Sequence[str],
    out: Path | None,
    given: dict[str, Any],
    *,
    spread: Spread = HERE,
) -> tuple[RunFolder, Job]:
    """Check a study's settings, then make its folder.

    Parameters
    ----------
    study, overrides
        As `studies.config.resolve` takes them.
    out : pathlib.Path, optional
        The folder; by default the next free one under `runs/`.
    given : dict
        Options of the command line: seed, dtype, device, checkpoint; None where not given.
    spread : Spread
        Where pieces of the work are done.

    Raises
    ------
    StudyError, ValueError
        If a setting is wrong, or the folder holds something already. Nothing was written.
    """
    options = RunOptions(**{key: value for key, value in given.items() if value is not None})
    settings = config.resolve(study, overrides)
    check_device(options.device)
    RunFolder.require_free(out)  # what follows may compile, which takes minutes
    job = over(find_study(settings.kind).prepare(settings.values, options), options, spread)
    warn([advice_on_steps(job)])
    folder = RunFolder.create(out or new_folder(settings.kind))
    command = " ".join(["adjsim", *sys.argv[1:]])
    folder.write_json(MANIFEST, manifest(settings.kind, vars(options), command))
    folder.write_text(STUDY, settings.to_toml())  # last: with it the run has begun
    return folder, job


def resume(
    study: str,
    overrides: Sequence[str],
    out: Path | None,
    given: dict[str, Any],
    *,
    spread: Spread = HERE,
) -> tuple[RunFolder, Job]:
    """Open a run's folder and prepare the study that it holds, or start where none has begun.

    Settings and options given again must be those of the run; only `checkpoint` and `certificate`,
    which change no number, may be other ones.

    Raises
    ------
    StudyError
        If there is no run, or something given differs from it.
    """
    if out is None:
        raise StudyError("`--resume` needs the run's folder: add `--out DIR`.")
    if RunFolder.clear_unbegun(out, "run"):
        return start(study, overrides, out, given, spread=spread)
    folder = RunFolder.reopen(out)
    if folder.has(SCAN):
        raise StudyError(f"{out} holds a scan. Go on with it by `adjsim scan`, not `adjsim run`.")
    if folder.has(SPEC):
        raise StudyError(f"{out} holds a data set. Go on with it by `adjsim dataset`.")
    stored = folder.read_json(MANIFEST)
    if stored.get("study") == SCENE:
        raise StudyError(
            f"{out} holds the run of a scene. Go on with it by `adjsim run SCENE.toml`."
        )
    settings = config.resolve(str(folder.file(STUDY)))
    asked = config.resolve(study, overrides)
    if asked.kind != settings.kind:
        raise StudyError(f"{out} holds a run of `{settings.kind}`, not of `{asked.kind}`.")
    for key, value in asked.explicit.items():
        _same(out, key, value, config.get(settings.values, key))
    kept = {key: stored[key] for key in ("seed", "dtype", "device")}
    for key, value in kept.items():
        if given.get(key) is not None:
            _same(out, f"--{key}", given[key], value)
    options = with_budget(RunOptions(**kept), stored.get(CHECKPOINT), given.get(CHECKPOINT))
    asked_for = given.get(CERTIFICATE)
    options = replace(options, certificate=stored[CERTIFICATE] if asked_for is None else asked_for)
    check_device(options.device)
    job = over(find_study(settings.kind).prepare(settings.values, options), options, spread)
    folder.clear_parts()
    say_what_is_kept(folder)
    changed = {key: getattr(options, key) for key in (CHECKPOINT, CERTIFICATE)}
    folder.write_json(MANIFEST, {**stored, **changed, "resumed": [*stored["resumed"], now()]})
    return folder, job


def over(job: Job, options: RunOptions, spread: Spread) -> Job:
    """Return a job that spreads its pieces as asked, or in series where nothing was asked for.

    Raises
    ------
    StudyError
        If workers are asked for, and it has no pieces.
    """
    is_asked, has_pieces = isinstance(spread, Cluster), hasattr(job, "spread")
    if is_asked and not has_pieces:
        raise StudyError(
            "`--scheduler` spreads instances, and this run is a single search. Give "
            "`instances=N` if the study has it, or leave `--scheduler` out."
        )
    if not has_pieces or (options.device == "cuda" and not is_asked):  # the GPU is one
        return job
    return replace(job, spread=spread)  # pyright: ignore[reportArgumentType, reportCallIssue, reportReturnType]


def warn(lines: Iterable[str | None]) -> None:
    """Print warnings, apart from those that are None."""
    for line in filter(None, lines):
        print(f"warning: {line}", file=sys.stderr, flush=True)


def say_what_is_kept(folder: RunFolder) -> None:
    """Print how many evaluations a stopped run left; they are read, not computed again."""
    logs = sorted(folder.path.rglob(ITERATIONS.replace(".", "*.")))
    count = sum(log.read_bytes().count(b"\n") for log in logs)
    if count:
        print(f"{count} evaluations are read from the log and not computed again", flush=True)


def with_budget(options: RunOptions, *budgets: str | None) -> RunOptions:
    """Return options with the last of the budgets that is given; None: as they are."""
    known = [budget for budget in budgets if budget is not None]
    return replace(options, checkpoint=known[-1]) if known else options


def _same(out: Path, key: str, asked: Any, stored: Any) -> None:
    if asked != stored:
        raise StudyError(
            f"{out} was run with `{key}` = {stored!r}, not {asked!r}. A run resumes with the "
            "settings it was started with: leave it out, or start a new run."
        )
