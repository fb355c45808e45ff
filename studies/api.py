"""A problem in Python: the same names as in a scene file, and residuals of one's own.

from studies.api import Problem, fit
from studies.scene.declared import Camera, Film, Free, Scene, Soft

scene = Scene(
    bodies={"duck": Soft(mesh="duck.vtu", E=2e5, nu=0.4, density=1000.0)},
    cameras={"front": Camera(eye=(0, 0.3, 2), target=(0, 0.2, 0), fov_y=35)},
)
problem = Problem(
    scene,
    observations={"film": Film(video="duck.mp4")},
    free={"duck.E": Free(bounds=(1e4, 1e7))},
)
answer = fit(problem)
answer.values["duck.E"], answer.intervals["duck.E"], answer.verdict.kind
"""

import inspect
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from adjsim.extras import named_extras


with named_extras():
    import tomlkit

from adjsim import checks
from studies.answer.solution import Solution
from studies.answer.verdict import Verdict
from studies.fitting.solve import solve
from studies.problem.forward import Simulated, simulate
from studies.problem.making import PreparedProblem, make_problem, without_own
from studies.problem.own import OwnResiduals
from studies.runs.blas import one_blas_thread
from studies.runs.folder import digest_of
from studies.runs.options import RunOptions
from studies.runs.progress import EvaluationProgress
from studies.runs.starting import Recipe, is_nothing, start_or_resume
from studies.scene.declared import Free, Observation, Scene, SceneFile, Search
from studies.scene.files import SCENE
from studies.scene.own_code import sources
from studies.scene.reading import plain


@dataclass(frozen=True, eq=False)
class Problem:
    """A scene, what was observed of it, what is free, and how films are compared.

    Attributes
    ----------
    scene : studies.scene.declared.Scene
    observations : mapping of str to Film, Points, States, Cloud, Depth, Encoder or OwnResiduals
    free : mapping of str to Free
        By path, such as "duck.E".
    loss : str
        Of films: "pyramid" or "mse".
    search : Search
    """

    scene: Scene
    observations: Mapping[str, Observation | OwnResiduals]
    free: Mapping[str, Free]
    loss: Literal["pyramid", "mse"] = "pyramid"
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        """Raise a TypeError on what is of the wrong kind."""
        checks.instance("scene", self.scene, Scene)
        for name in ("observations", "free"):
            checks.instance(name, getattr(self, name), Mapping)

    def file(self) -> SceneFile:
        """Return the same as a scene file declares it, without residuals of one's own."""
        scene = {name: getattr(self.scene, name) for name in Scene.__dataclass_fields__}
        residuals, search = self.own(), replace(self.search, loss=self.loss)
        declared: dict[str, Any] = {
            k: v for k, v in self.observations.items() if k not in residuals
        }
        return SceneFile(**scene, observations=declared, free=dict(self.free), search=search)

    def own(self) -> dict[str, OwnResiduals]:
        """Return the residuals of one's own by name."""
        return {
            k: terms for k, terms in self.observations.items() if isinstance(terms, OwnResiduals)
        }

    def make(self, **options: Any) -> PreparedProblem:
        """Read the observations and build the model; `options` as `make_problem` takes them."""
        from studies.scene.checking import check_scene

        file, residuals = self.file(), self.own()
        check_scene(without_own(file, residuals))
        return make_problem(file, residuals, **options)


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found.

    Attributes
    ----------
    values : dict
        Of the free paths.
    intervals : dict
        Their 95 % intervals with model error, (lower, upper).
    verdict : Verdict
    solved : Solution
        Everything else: basins, pixel-noise intervals, the problem at the answer.
    verdicts : dict
        Kind of the verdict on every number alone, by label; empty for more than twelve.
    """

    values: dict[str, np.ndarray]
    intervals: dict[str, tuple[np.ndarray, np.ndarray]]
    verdict: Verdict
    solved: Solution
    verdicts: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each number that was free, as `pandas.DataFrame` takes them.

        Each has "name", "unit", "value", "lower" and "upper" (NaN without an interval), and
        "verdict", None where there is none of its own.
        """
        parameters = self.solved.problem.parameters
        flat = {k: np.ravel(value) for k, value in self.values.items()}
        rows = []
        for free in parameters.free:
            ends = self.intervals.get(free.path)
            low, high = ends or (np.full(free.start.shape, np.nan),) * 2
            columns = (free.labels(), flat[free.path], np.ravel(low), np.ravel(high))
            for label, value, lower, upper in zip(*columns, strict=True):
                row = {"name": label, "unit": free.unit.strip("-"), "value": float(value)}
                row |= {"lower": float(lower), "upper": float(upper)}
                rows.append({**row, "verdict": self.verdicts.get(label)})
        return rows

    def table(self) -> str:
        """Return the verdict and the rows as lines of text."""
        lines = [f"{self.verdict.kind}: {self.verdict.reason}"]
        for row in self.rows():
            ends = f"  {row['lower']:.6g} to {row['upper']:.6g}"
            unit, ends = f" {row['unit']}".rstrip(), ends if np.isfinite(row["lower"]) else ""
            verdict = f"  {row['verdict']}" if row["verdict"] else ""
            lines.append(f"  {row['name']:<24} {row['value']:.6g}{unit}{ends}{verdict}")
        return "\n".join(lines)


def fit(problem: Problem, out: str | Path | None = None, *, seed: int = 0) -> Answer:
    """Return the answer of a problem.

    Parameters
    ----------
    problem : Problem
    out : path, optional
        Folder for the logs of the search, new or empty; with it a killed search can be resumed by
        calling again. By default they are not kept.
    seed : int

    Raises
    ------
    ValueError
        If something in the problem does not fit.

    Examples
    --------
    >>> from studies.api import Problem, fit
    >>> from studies.scene.declared import Free, Points, Rigid, Scene, Simulated
    >>> scene = Scene(bodies={"ball": Rigid(mesh="ball", size=(0.1,), mass=0.5)})
    >>> seen = Simulated(frames=10, duration=0.5)
    >>> track = Points(body="ball", at={"top": (0.0, 0.1, 0.0)}, simulate=seen)
    >>> free = {"world.gravity[1]": Free(start=-5.0, bounds=(-20.0, 0.0))}
    >>> answer = fit(Problem(scene, observations={"track": track}, free=free))
    >>> print(round(float(answer.values["world.gravity[1]"]), 6), answer.verdict.is_found)
    -9.81 True
    """
    checks.instance("problem", problem, Problem)
    with one_blas_thread(), tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "run" if out is None else Path(out)
        recipe, goes_on = _recipe(problem, seed), not is_nothing(path)
        folder, prepared = start_or_resume(recipe, path, problem.make, resume=goes_on)
        search = problem.file().search
        with folder, EvaluationProgress(search.max_evaluations) as progress:
            solved = solve(prepared, search, folder, progress, seed=seed)
    parameters, theta = solved.problem.parameters, solved.result.theta
    ends = zip(*(parameters.parts(end) for end in solved.intervals.model), strict=True)
    intervals = {free.path: (low, high) for (free, low), (_, high) in ends}
    values = parameters.values(theta)
    return Answer(values, intervals, solved.verdict, solved, solved.verdicts)


def _recipe(problem: Problem, seed: int) -> Recipe:
    """Return what the numbers of a fit follow from."""
    settings = plain(problem.file())
    residuals = {
        name: {
            "times": np.asarray(terms.times).tolist(),
            "weight": terms.weight,
            "functions": [_source(fn) for fn in (terms.residuals, terms.vjp, terms.jvp)],
        }
        for name, terms in problem.own().items()
    }
    dependent = {**_absolute(settings), "own": residuals} if residuals else _absolute(settings)
    if code := sources(problem.file()):
        dependent["own_code"] = code
    options = RunOptions(seed=seed)
    return Recipe("fit", "problem", SCENE, dependent, tomlkit.dumps(settings), options)


def _source(function: Any) -> str:
    """Return the source of a function, or its name where there is none, and numbers bound in it."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(getattr(function, "__qualname__", None))
    cells = getattr(function, "__closure__", None) or ()
    bound = [np.asarray(cell.cell_contents) for cell in cells]
    return source + "".join(
        digest_of(array.tobytes()) for array in bound if array.dtype.kind in "biuf"
    )


def _absolute(value: Any) -> Any:
    """Return settings whose files are named by absolute paths."""
    if isinstance(value, dict):
        return {key: _absolute(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_absolute(entry) for entry in value]
    is_path = isinstance(value, str) and "\0" not in value and Path(value).exists()
    return str(Path(value).resolve()) if is_path else value


__all__ = ["Answer", "OwnResiduals", "Problem", "Simulated", "fit", "simulate"]
