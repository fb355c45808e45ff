"""The command `adjsim inspect RUN`: look at the adjoint of a run's motion at its answer."""

import tomllib
from pathlib import Path

import numpy as np

from adjoint.inspector import Inspection
from studies.problem.films import FilmObserver, SmokeObserver
from studies.problem.making import make_problem
from studies.problem.problem import SceneProblem
from studies.reports.inspection import Pixels, inspection_page
from studies.runs import folder as run_folder
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, PARAMETERS, RunFolder
from studies.runs.meshes import keep_meshes
from studies.scene.filming import Still
from studies.scene.reading import scene_from_dict


PAGE, DATA = "inspect.html", "inspect.nc"


def inspect_run(path: Path) -> tuple[Path, list[str]]:
    """Write `inspect.html` and `inspect.nc` to a run's folder; return the page and its sentences.

    Raises
    ------
    StudyError
        If the folder holds no finished run of one scene that moves.
    """
    folder = RunFolder.open(path)
    for name, what in ((run_folder.SPEC, "data set"), (run_folder.SCAN, "scan")):
        if folder.has(name):
            raise StudyError(
                f"`RUN` must be the folder of `adjsim run`, got {path}, which holds a {what}. "
                "Run its scene, and inspect that run."
            )
    if folder.has(run_folder.INSTANCES):
        raise StudyError(
            f"`RUN` must hold one search, got {path}, which holds many instances. Name one of "
            f"them: {path}/instances/000."
        )
    problem, theta = _at_the_answer(folder)
    if problem.is_at_rest:
        raise StudyError(
            f"`RUN` must hold a run of a scene that moves, got {path}, which compares pictures of "
            "things at rest: no step leads to them. Its gradient is checked in its report."
        )
    found, judged = problem.inspect(theta)
    moved = problem.motion_at(theta).at(found.steps)
    meshes = {
        name: (one.vertices(moved, found.trajectory), np.asarray(problem.built.meshes[name].faces))
        for name, one in problem.built.subjects.items()
        if not isinstance(one, Still)
    }
    films = [
        Pixels(one.name, one.times, one.as_images(rows)[..., :3], one.as_images(adj)[..., :3])
        for one, rows, adj in judged
        if isinstance(one, FilmObserver | SmokeObserver)
    ]
    title = f"The adjoint of {folder.read_json(MANIFEST)['name']}"
    write_dataset(folder, found)
    folder.write_text(PAGE, inspection_page(found, title, meshes, films))
    return folder.file(PAGE), found.told()


def write_dataset(folder: RunFolder, found: Inspection) -> None:
    """Write the numbers."""
    with folder.replacing(DATA) as part:
        found.dataset().to_netcdf(part, engine="h5netcdf")


def _at_the_answer(folder: RunFolder) -> tuple[SceneProblem, np.ndarray]:
    """Return the problem of a finished run, and where its search ended."""
    answer = folder.read_npz(PARAMETERS, "names", "estimate")
    values = dict(zip(answer["names"].tolist(), answer["estimate"].tolist(), strict=True))
    manifest = folder.read_json(MANIFEST)
    keep_meshes(folder)
    options = {key: manifest[key] for key in ("dtype", "device", "checkpoint")}
    problem = make_problem(scene_from_dict(tomllib.loads(folder.read_study())), **options).problem
    parameters = problem.parameters
    natural = parameters.natural(parameters.start)
    natural = np.array([values.get(k, v) for k, v in zip(parameters.labels, natural, strict=True)])
    theta = parameters.theta(natural)
    return problem.with_steps_for(theta), theta
