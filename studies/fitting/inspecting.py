"""The command `adjsim inspect RUN`: look at the adjoint of a run's motion."""

import tomllib
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from adjoint.inspector import GROWTH_WARNING
from render.blending import Hard
from render.outputs import rasterize_outputs
from render.scene import Scene
from render.soft_raster import SoftRasterizer
from studies.optimizers.problem import NOT_FINITE
from studies.problem.films import Scenery
from studies.problem.making import make_problem
from studies.problem.problem import SceneProblem
from studies.reports.inspection import Pixels, inspection_page
from studies.runs import folder as run_folder
from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, PARAMETERS, RunFolder
from studies.runs.meshes import keep_meshes
from studies.scene.filming import Still
from studies.scene.reading import scene_from_dict


INSTANCES = "instances"  # where a run of many has their folders
PLACES = START, ANSWER = "start", "answer"
PAUSES = 16  # enough to measure growth


def inspect_run(path: Path, at: str) -> tuple[list[Path], list[str]]:
    """Write a page and its numbers to a run's folder; return where they are, and sentences.

    `inspect.html` and `inspect.nc`, at the answer `inspect-answer.html` and `inspect-answer.nc`.
    Raise StudyError if the folder holds no run of one scene that moves, or, at the answer, it is
    not finished.
    """
    if at not in PLACES:
        raise StudyError(f"`--at` must be {' or '.join(PLACES)}, got {at!r}.")
    folder = RunFolder.open(path)
    for name, what in ((run_folder.SPEC, "data set"), (run_folder.SCAN, "scan")):
        if folder.has(name):
            raise StudyError(
                f"`RUN` must be the folder of `adjsim run`, got {path}, which holds a {what}. "
                "Run its scene, and inspect that run."
            )
    if (folder.path / INSTANCES).is_dir():
        raise StudyError(
            f"`RUN` must hold one search, got {path}, which holds many instances. Run one of them "
            f"alone, `adjsim run {path}/{INSTANCES}/000/{run_folder.STUDY}`, and inspect that run."
        )
    problem, theta = _problem_at(folder, at)
    if not problem.rolls_out:
        raise StudyError(
            f"`RUN` must hold a run of a scene that moves, got {path}, which compares pictures of "
            "things at rest: no step leads to them. Its gradient is checked in its report."
        )
    inspection, judged = problem.inspect(theta, thorough=True)
    moved = problem.motion_at(theta).at(inspection.steps)
    meshes = {
        name: (
            subject.vertices(moved, inspection.trajectory),
            np.asarray(problem.built.meshes[name].faces),
        )
        for name, subject in problem.built.subjects.items()
        if not isinstance(subject, Still)
    }
    sceneries, films = problem.sceneries_at(theta), []
    for observer, rows, adj in judged:
        swaps = depth_swaps(sceneries[observer.name]) if observer.name in sceneries else None
        if observer.IS_PICTURE:
            images, cotangents = observer.as_images(rows)[..., :3], observer.as_images(adj)[..., :3]
            films.append(Pixels(observer.name, observer.times, images, cotangents, swaps))
    where = "where the search began" if at == START else "at the answer"
    title = f"The adjoint of {folder.read_json(MANIFEST)['name']}, {where}"
    name = "inspect" if at == START else "inspect-answer"
    folder.write_dataset(f"{name}.nc", inspection.dataset())
    folder.write_text(f"{name}.html", inspection_page(inspection, title, meshes, films))
    return [folder.file(f"{name}.{end}") for end in ("nc", "html")], inspection.summary()


def depth_swaps(seen: Scenery) -> np.ndarray:
    """Return in how many pixels two objects have traded places since the last frame, (n_frames,).

    There colours jump, and with them the loss. An object is where its nearest face is.
    """
    raster = SoftRasterizer(blend=Hard())
    depths = []
    for name, mesh in seen.scene.objects.items():
        vertices = {name: seen.vertices[name]}
        alone = (Scene({name: mesh}), seen.camera, raster, vertices, seen.size, "depth")
        depths.append(rasterize_outputs(*alone)["depth"])
    swaps = np.zeros(len(next(iter(seen.vertices.values()))), int)
    for depth, other in combinations(depths, 2):
        there, ahead = np.maximum(depth, other) < seen.camera.far, depth < other
        swapped = there[1:] & there[:-1] & (ahead[1:] != ahead[:-1])
        swaps[1:] += swapped.sum(axis=(1, 2))
    return swaps


@dataclass(frozen=True)
class Growth:
    """How much a gradient grows on its way back through a first part of a motion."""

    share: float  # of the motion
    seconds: float  # that this part lasts
    log: float  # of how many times it grows

    @property
    def times(self) -> float:
        """How many times it grows."""
        return float(np.exp(min(self.log, 700.0)))

    def warnings(self, advice: str) -> list[str]:
        """Return a sentence if it grows a lot.

        `{first:.1g}` in the advice is the part in which it would grow 1000 times.
        """
        if self.log <= np.log(GROWTH_WARNING):
            return []
        first = self.share * np.log(GROWTH_WARNING) / self.log
        return [
            f"the gradient grows {self.times:.0e} times in {self.seconds:.3g} s of motion, 10 "
            f"times every {self.seconds * np.log(10.0) / self.log:.2g} s. It is exact, but it "
            "holds in an ever smaller neighbourhood and may not lead to the answer. "
            f"{advice.format(first=first)} `adjsim inspect` says what makes it grow."
        ]


def growth_at(problem: SceneProblem, theta: np.ndarray, share: float = 1.0) -> Growth | None:
    """Return how much the gradient at theta grows in a first part of the motion.

    None where nothing moves, where the simulation blows up, and on a GPU, where it is not measured.
    """
    if not problem.rolls_out or problem.device != "cpu" or not problem.parameters.size:
        return None
    try:
        inspection, _ = problem.with_stable_steps(theta).inspect(theta, most_pauses=PAUSES)
    except NOT_FINITE:
        return None
    end = share * inspection.frames[-1]
    later = np.interp(end, [*inspection.steps, inspection.frames[-1]], [*inspection.growth, 0.0])
    return Growth(share, float(end * inspection.dt), float(inspection.growth[0] - later))


def growth_warnings(
    problem: SceneProblem, theta: np.ndarray, advice: str, share: float = 1.0
) -> list[str]:
    """Return a sentence if the gradient at theta grows a lot in a first part of the motion."""
    growth = growth_at(problem, theta, share)
    return [] if growth is None else growth.warnings(advice)


def _problem_at(folder: RunFolder, at: str) -> tuple[SceneProblem, np.ndarray]:
    manifest = folder.read_json(MANIFEST)
    keep_meshes(folder)
    options = {key: manifest[key] for key in ("dtype", "device", "checkpoint")}
    problem = make_problem(scene_from_dict(tomllib.loads(folder.read_study())), **options).problem
    parameters, theta = problem.parameters, problem.parameters.start
    if at == ANSWER:
        answer = folder.read_npz(PARAMETERS, "names", "estimate")
        values = dict(zip(answer["names"].tolist(), answer["estimate"].tolist(), strict=True))
        pairs = zip(parameters.labels, parameters.natural(theta), strict=True)
        theta = parameters.theta(np.array([values.get(name, value) for name, value in pairs]))
    return problem.with_stable_steps(theta), theta
