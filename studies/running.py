"""Start a run of a study in a new folder, or go on with one that was stopped."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies import config
from studies.errors import StudyError
from studies.registry import Job, RunOptions, find_study
from studies.runs.folder import RunFolder
from studies.runs.options import check_device, cuda_problem, make_options
from studies.runs.pool import HERE, DaskPool, Pool
from studies.runs.starting import Recipe, recalled, start_or_resume, warn
from studies.stable_steps import advice_on_steps


__all__ = ["check_device", "cuda_problem", "over", "resume", "start", "warn"]


def start(
    study: str,
    overrides: Sequence[str],
    out: Path | None,
    given: dict[str, Any],
    *,
    spread: Pool = HERE,
    resume: bool = False,
) -> tuple[RunFolder, Job]:
    """Check a study's settings, then make its folder, or open the one to resume.

    Parameters
    ----------
    study, overrides
        As `studies.config.resolve` takes them.
    out : pathlib.Path, optional
        The folder; by default the next free one under `runs/`.
    given : dict
        Options of the command line: seed, dtype, device, checkpoint; None where not given.
    spread : Pool
        Where pieces of the work are done.
    resume : bool

    Raises
    ------
    StudyError, ValueError
        If a setting is wrong, or the folder holds something else. Nothing was written.
    """
    given = recalled(out, {**given, "overrides": list(overrides)}, resume=resume)
    options = make_options(given)
    settings = config.resolve(study, given["overrides"] or [])
    kind = settings.kind
    recipe = Recipe("run", study, kind, settings.values, settings.to_toml(), options, given)

    def make() -> Job:
        prepared = find_study(kind).prepare(settings.values, options)
        return over(prepared, options, spread)

    folder, job = start_or_resume(recipe, out, make, resume=resume)
    warn([advice_on_steps(job)])
    return folder, job


def resume(*args: Any, **more: Any) -> tuple[RunFolder, Job]:
    """Go on with a run; as `start` otherwise."""
    return start(*args, resume=True, **more)


def over(job: Job, options: RunOptions, spread: Pool) -> Job:
    """Return a job that spreads its pieces as asked, or in series where nothing was asked for.

    Raises
    ------
    StudyError
        If workers are asked for, and it has no pieces.
    """
    is_asked, has_pieces = isinstance(spread, DaskPool), hasattr(job, "spread")
    if is_asked and not has_pieces:
        raise StudyError(
            "`--scheduler` spreads instances, and this run is a single search. Give "
            "`instances=N` if the study has it, or leave `--scheduler` out."
        )
    if not has_pieces or (options.device == "cuda" and not is_asked):  # the GPU is one
        return job
    return replace(job, spread=spread)  # pyright: ignore[reportArgumentType, reportCallIssue, reportReturnType]
