"""Start a run of a scene in a new folder, or go on with one that was stopped."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from studies.fitting.fit import SceneFit, make_fit
from studies.fitting.inspecting import growth_warnings
from studies.fitting.instances import FAILURES, Instances
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder
from studies.runs.options import make_options
from studies.runs.pool import HERE, DaskPool, Pool
from studies.runs.starting import Recipe, recalled, start_or_resume, warn
from studies.scene.declared import SceneFile
from studies.scene.drawing import instance_of
from studies.scene.files import SCENE
from studies.scene.likely_units import notes_on_units
from studies.scene.own_code import sources
from studies.scene.reading import plain, read_scene, to_toml


def start_scene(
    path: Path,
    overrides: Sequence[str],
    out: Path | None,
    given: dict[str, Any],
    *,
    spread: Pool = HERE,
    resume: bool = False,
) -> tuple[RunFolder, SceneFit | Instances]:
    """Check a scene and its observations, then make the folder of its run or open that to resume.

    `overrides` are such as "bodies.duck.E=2e5", `given` the options of the command line, None where
    not given. A resumed run has those that it was started with. Without `out` the folder is the
    next free one under `runs/`. Where something in the scene is wrong, nothing is written.
    """
    given = recalled(out, {**given, "overrides": list(overrides)}, resume=resume)
    options = make_options(given)
    overrides = [*(given["overrides"] or ()), *["blind=true"] * bool(given.get("blind"))]
    file = read_scene(path, overrides)
    warn(notes_on_units(file))
    if file.instances == 1:
        file = instance_of(file, options.seed)
    settings = plain(file)
    if code := sources(file):
        settings["own_code"] = code
    recipe = Recipe("run", str(path), SCENE, settings, to_toml(file), options, given)
    title = file.title or path.stem

    def make() -> SceneFit | Instances:
        if file.instances > 1:
            instances = Instances(file, options, title, spread)
            with suppress(*FAILURES):
                instances.make(0)  # what does not fit is said before anything is written
            return instances
        if isinstance(spread, DaskPool):
            raise StudyError(
                "`--scheduler` spreads instances, and this run is a single search. Give "
                "`instances=N`, or leave `--scheduler` out."
            )
        return make_fit(file, options, title=title)

    folder, job = start_or_resume(recipe, out, make, resume=resume)
    if isinstance(job, SceneFit):
        warn(job.made.notes)
        if not resume:
            problem = job.made.problem
            warn(growth_warnings(problem, problem.parameters.start, *advice_on_growth(job.file)))
    return folder, job


def advice_on_growth(file: SceneFile) -> tuple[str, float]:
    """Return what to do where a gradient grows a lot, and the part of the motion that counts."""
    if file.purpose == "control":
        return "Try a shorter `world.duration` first.", 1.0
    share = file.search.stages[0]
    advice = (
        f"Fit a shorter part of the motion first: `search.stages` begins with {share:g}, and "
        "should begin with about {first:.1g}."
    )
    return advice, share
