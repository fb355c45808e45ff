r"""Tables 1 to 3 of gradSim: masses, contacts, materials and velocities, by several methods.

    python -m studies.paper.tables 1                        200 bodies, as many as the paper has
    python -m studies.paper.tables 3 --count 10 --method film --method states
    python -m studies.paper.tables 2 --out runs/table-2 --resume
    python -m studies.paper.tables 1 --paper-sizes          a mass for each vertex

    film        the search of the bundled scene, from its film alone
    states      3-D supervision: the same search, told where all nodes are, or six points of a rigid
                body, in place of pictures
    reinforce   the simulator as a black box, from values of the loss of the film alone
    average     the middle of the range that hidden values are drawn from
    random      a value drawn like the hidden one

A policy draws theta_i = theta + sigma e_i, with e_i standard normal, five in each of 125 steps.
With the loss L_t of frame t the return of a draw and the step are

    G_i = -sum_t decay^t L_t(theta_i),     A_i = (G_i - mean G)/std G over the draws of a step
    theta <- theta + rate mean_i A_i e_i / sigma

Of a hidden value p, even in [a, b], with 0 < a < b, the relative error expected is

    average    m = (a + b)/2     E |m - p|/p = m ln(m^2/(a b)) / (b - a)
    random     q like p          E |q - p|/p = ((a^2 + b^2) ln(b/a) - (b^2 - a^2)) / (2 (b - a)^2)

The first: the integrals of (m - p)/p over [a, m] and of (p - m)/p over [m, b] are
m ln(m/a) - (m - a) and (b - m) - m ln(b/m). The second: E_q |q - p| =
((p - a)^2 + (b - p)^2)/(2 (b - a)), over p.

Source of REINFORCE: Williams, Machine Learning 8 (1992), eq. 4; budget, sigma and decay are those
of the paper's appendix.
"""

import importlib
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from studies.bundled import curtain
from studies.optimizers.problem import NOT_FINITE
from studies.problem.forward import start_surfaces
from studies.problem.making import PreparedProblem, make_problem
from studies.problem.problem import SceneProblem
from studies.problem.truth import Truth
from studies.runs.errors import NotFiniteError
from studies.runs.folder import RESULT, RunFolder
from studies.runs.pool import open_pool
from studies.runs.progress import EvaluationProgress
from studies.scene.building import build
from studies.scene.declared import Drawn, Points, Rigid, SceneFile, Simulated, States
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from studies.search.robust import robust_search


PUBLISHED = tomllib.loads((Path(__file__).parent / "published.toml").read_text())
# Scenes, and how they differ from the bundled ones.
TABLES: dict[int, dict[str, tuple[str, ...]]] = {
    1: {"rigid-mass": ()},
    2: {"rigid-contact": ()},
    3: {
        "ball-material": (),
        "ball-stiffness": (),
        "beam": (
            "truth.beam.mu={between=[1.5e5, 3.0e5]}",
            "truth.beam.lam={between=[2.0e5, 4.0e5]}",
            "free.beam.mu.start={between=[4.0e5, 8.0e5]}",
            "free.beam.lam.start={between=[0.9e5, 1.4e5]}",
        ),
        "cloth-velocity": (),
    },
}
BALL = (
    'bodies.ball={kind="soft", mesh="adjsim:ball.vtu", position=[-1.0, 1.2, 0.0], mu=750.0, '
    "lam=375.0, viscosity=1.0, density=10.0, velocity=[2.0, 0.0, 0.0], "
    "look={color=[0.85, 0.4, 0.25], ambient=0.2, diffuse=0.8}}"
)
# And to have the sizes of the paper.
PAPER_SIZES: dict[str, tuple[str, ...]] = {
    "rigid-mass": (
        'bodies.body={kind="rigid", mesh="shape:cube", vertex_mass=[0.25], '
        "position=[0.0, 1.0, 0.0], "
        "look={color=[0.85, 0.4, 0.25], ambient=1.0, diffuse=0.0}}",
        'truth={"body.vertex_mass"={between=[0.2, 0.3]}}',
        'free={"body.vertex_mass"={start={between=[0.2, 0.3]}, bounds=[0.01, 5.0]}}',
        'search={method="newton-cg", coarse=0, stages=[0.5, 1.0], held_back=0.0, '
        "max_evaluations=1500, tolerance=1e-7, levels=5}",
    ),
    "rigid-contact": (
        "truth.floor.stiffness={between=[1.0, 500.0]}",
        "truth.floor.damping={between=[1.0, 500.0]}",
        "truth.floor.friction_stiffness={between=[1.0, 500.0]}",
        "free.floor.stiffness.bounds=[0.3, 1500.0]",
        "free.floor.damping.bounds=[0.3, 1500.0]",
        "free.floor.friction_stiffness.bounds=[0.3, 1500.0]",
        "search.stages=[0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]",
    ),
    "ball-material": (
        BALL,
        "truth.ball.mass_factors={between=[0.5, 1.5], shape=[163]}",
        "observations.film.simulate.frames=48",
        f"search.stages={[round((k - 0.5) / 48, 4) for k in range(19, 48, 2)] + [1.0]}",
        "search.method=levenberg",
        "search.max_evaluations=6000",
        "search.tolerance=0.01",
    ),
    "ball-stiffness": (BALL,),
    "cloth-velocity": (
        "bodies.curtain.mesh=adjsim:fine-curtain.vtp",
        "bodies.curtain.held.nodes=[10, 230]",
        "bodies.curtain.look.ambient=0.5",
        "bodies.curtain.look.diffuse=0.5",
        "lights={left={direction=[-1.0, 0.0, 1.0], color=[1.0, 0.5, 0.0]}, "
        "above={direction=[0.0, 1.0, 1.0], color=[0.0, 0.5, 1.0]}}",
        "observations.film.simulate.height=48",
        "observations.film.simulate.width=66",
        "observations.film.simulate.duration=0.05",
        "search.stages=[0.25, 1.0]",
        "search.max_evaluations=30000",
    ),
}
INSTANCES = {1: 200, 2: 200, 3: 100}  # of the paper
MASSES = "body.vertex_mass"
SUM = f"sum of {MASSES}"  # a motion of a rigid body shows ten numbers: this one, centre and inertia
HOOKED = {curtain.VELOCITY: (curtain.SLOWEST, curtain.FASTEST)}  # drawn by a hook
SAMPLES, STEPS, DEVIATION, DECAY, RATE = 5, 125, 0.05, 0.925, 1e-3  # of REINFORCE
STREAMS = {"reinforce": 102, "random": 101}  # of draws; those of the scene are of (seed, k) alone
TINY = 1e-300
ATTEMPTS = {"rigid-mass": 8, "rigid-contact": 8, "cloth-velocity": 8}  # of a search
EXACT = 1e-12  # part of the loss at the start, below which a search has not ended wrong


class Method(StrEnum):
    """How hidden values are estimated."""

    FILM = "film"
    STATES = "states"
    REINFORCE = "reinforce"
    AVERAGE = "average"
    RANDOM = "random"


OF_TABLE = (
    "1: masses of rigid bodies. 2: their contacts. 3: soft bodies and cloth, masses of particles, "
    "material and velocities."
)
OF_COUNT = "Instances; by default 200, 200 and 100."
OF_METHOD = (
    "May be repeated; by default all but reinforce. film: from pixels alone; states: 3-D "
    "supervision; average, random: guesses."
)
CHEAP = (Method.FILM, Method.STATES, Method.AVERAGE, Method.RANDOM)


@dataclass(frozen=True, eq=False)
class TableCase:
    """Instance k of a scene, by the seed; `overrides` of the bundled one."""

    scene: str
    overrides: tuple[str, ...]
    seed: int
    k: int

    @cached_property
    def random_file(self) -> SceneFile:
        """The scene with numbers that are still to be drawn."""
        return read_scene(BUNDLED / f"{self.scene}.toml", self.overrides)

    @cached_property
    def file(self) -> SceneFile:
        """The instance."""
        return instance_of(self.random_file, self.seed, self.k)

    @cached_property
    def made(self) -> PreparedProblem:
        """Its problem from the film."""
        return make_problem(self.file)

    @property
    def problem(self) -> SceneProblem:
        """Its problem from the film."""
        return self.made.problem

    @property
    def truth(self) -> Truth:
        """Its hidden values."""
        assert self.made.truth is not None
        return self.made.truth

    def range_of(self, path: str) -> tuple[Any, Any]:
        """Return between what a hidden value is drawn evenly."""
        value = self.random_file.truth.get(path.removeprefix("sum of "))
        ends = value.between if isinstance(value, Drawn) else HOOKED[path]
        assert ends is not None
        return ends

    def between(self, share: Any) -> np.ndarray:
        """Return theta of this part of the way through the ranges of all hidden values."""
        ends = [
            [np.broadcast_to(end, np.shape(self.truth.values[path])).ravel()
             for end in self.range_of(path)]
            for path in self.problem.parameters.paths
        ]  # fmt: skip
        low, high = np.concatenate(ends, axis=1)
        return self.problem.parameters.theta(low + share * (high - low))

    def errors(self, theta: np.ndarray) -> dict[str, float]:
        """Return the mean relative error of each path, and of masses of vertices of their sum."""
        values = self.problem.parameters.values(theta)
        errors = {k: float(self.truth.errors((k,), np.ravel(v)).mean()) for k, v in values.items()}
        if MASSES in values:
            total = float(np.sum(self.truth.values[MASSES]))
            errors[SUM] = abs(float(values[MASSES].sum()) - total) / total
        return errors

    def rng(self, method: Method) -> np.random.Generator:
        """Return the generator of a method; each has a stream of its own."""
        return np.random.default_rng([self.seed, self.k, STREAMS[method]])


def estimate(case: TableCase, method: Method) -> tuple[np.ndarray, float | None]:
    """Return theta as a method finds it, and the loss there if it lowered one."""
    match method:
        case Method.FILM:
            return _searched(case, case.made)
        case Method.STATES:
            return _searched(case, make_problem(with_places(case.file)))
        case Method.REINFORCE:
            return _reinforce(case.problem, case.rng(method))
        case Method.AVERAGE:
            return case.between(0.5), None
        case Method.RANDOM:
            return case.between(case.rng(method).uniform(size=case.problem.parameters.size)), None


def _searched(case: TableCase, prepared: PreparedProblem) -> tuple[np.ndarray, float]:
    """Return where the search of the scene ends, without judging it.

    What was observed has no noise: a search whose loss is not that of rounding has ended in a wrong
    optimum. Of a scene in `ATTEMPTS` it is then made again, with another coarse set and from
    another start within the ranges that hidden values are drawn from.
    """
    how, problem = case.file.search, prepared.problem
    rounding = EXACT * problem.loss_at(problem.parameters.start)
    ends, why = [], ""
    for attempt in range(ATTEMPTS.get(case.scene, 1)):
        seed = (case.seed, case.k, attempt) if attempt else (case.seed, case.k)
        if attempt:
            problem = problem.at(case.between(np.random.default_rng([*seed, 0]).uniform()))
        with tempfile.TemporaryDirectory() as place:
            quiet = EvaluationProgress(how.max_evaluations, Console(quiet=True))
            best = robust_search(problem, how, RunFolder(Path(place)), quiet, seed=seed).best
        why = best.message
        if np.isfinite(best.loss):
            ends.append((best.loss, best.theta))
        if best.loss <= rounding:
            break
    if not ends:
        raise NotFiniteError(why)
    loss, theta = min(ends, key=lambda end: end[0])
    return theta, loss


def with_places(file: SceneFile) -> SceneFile:
    """Return the scene that is told places at the times of its film, in place of pictures."""
    (film,) = file.observations.values()
    assert film.simulate is not None
    duration = film.simulate.duration or file.world.duration
    simulate = Simulated(frames=film.simulate.frames, duration=duration)
    ((name, body),) = file.bodies.items()
    if not isinstance(body, Rigid):
        return replace(file, observations={"places": States(simulate=simulate, body=name)})
    points = start_surfaces(build(file))[name]
    extremes = dict.fromkeys([*points.argmin(axis=0).tolist(), *points.argmax(axis=0).tolist()])
    at = {f"v{number}": tuple(points[number].tolist()) for number in extremes}
    places = Points(simulate=simulate, body=name, at=at)
    return replace(file, observations={"places": places})


def _reinforce(problem: SceneProblem, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return the last theta of all steps, not the best one drawn."""
    (low, high), theta = problem.bounds, problem.parameters.start
    for _ in range(STEPS):
        e = rng.standard_normal((SAMPLES, len(theta)))
        tried = np.clip(theta + DEVIATION * e, low, high)
        returns = np.array([_return_of(problem, point) for point in tried])
        theta = np.clip(theta + RATE * score_gradient(returns, e, DEVIATION), low, high)
    return theta, problem.loss_at(theta)


def _return_of(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return minus the discounted losses of all frames; NaN if the motion blew up."""
    try:
        losses = problem.frame_losses(problem.predicted_rows(theta))
    except NOT_FINITE:
        return np.nan
    return -float(DECAY ** np.arange(len(losses)) @ losses)


def score_gradient(returns: np.ndarray, e: np.ndarray, deviation: float) -> np.ndarray:
    """Return the estimate of the gradient, (n,), from returns (m,) and standard draws (m, n)."""
    if np.isnan(returns).all():
        raise NotFiniteError("No motion of a step of REINFORCE stayed finite.")
    returns = np.where(np.isnan(returns), np.nanmin(returns), returns)
    advantage = (returns - returns.mean()) / (returns.std() + TINY)
    return (advantage @ e) / (len(returns) * deviation)


def expected(method: Method, low: Any, high: Any, scale: float | None = None) -> float:
    """Return the mean error that a method that looks at nothing is expected to have.

    Relative to the value itself, or to a known scale; 0 where both ends are one.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    width = high - low
    if scale is not None:
        return float(np.mean(width)) / scale / (4.0 if method is Method.AVERAGE else 3.0)
    middle, squares = 0.5 * (low + high), low**2 + high**2
    with np.errstate(invalid="ignore", divide="ignore"):
        if method is Method.AVERAGE:
            error = middle * np.log(middle**2 / (low * high)) / width
        else:
            error = (squares * np.log(high / low) - width * (low + high)) / (2.0 * width**2)
    return float(np.mean(np.where(width > 0.0, error, 0.0)))


def run_task(task: tuple[TableCase, Method]) -> dict[str, Any]:
    """Return the errors of one method for one instance; or why it failed."""
    case, method = replace(task[0]), task[1]  # what is made of it is not kept
    try:
        theta, loss = estimate(case, method)
        return {"errors": case.errors(theta), "loss": loss}
    except NOT_FINITE as error:
        return {"failed": str(error)}


def record_name(case: TableCase, method: Method) -> str:
    """Return where in the folder the record of an instance is."""
    return f"records/{case.scene}/{method}/{case.k:03d}.json"


def summed_up(
    cases: Sequence[TableCase], method: Method, folder: RunFolder
) -> list[dict[str, Any]]:
    """Return mean, median and worst error of a method for each path of a scene."""
    records = [folder.read_json(record_name(case, method)) for case in cases]
    first, ended = cases[0], [record["errors"] for record in records if "errors" in record]
    rows = []
    for path in ended[0] if ended else first.problem.parameters.paths:
        errors = np.array([by_path[path] for by_path in ended]) if ended else np.full(1, np.nan)
        blind = method in (Method.AVERAGE, Method.RANDOM)
        scale = first.truth.scales.get(path)
        row: dict[str, Any] = {"scene": first.scene, "path": path, "method": str(method)}
        row |= {"instances": len(ended), "failed": len(records) - len(ended)}
        row |= summary(errors)
        row["expected"] = expected(method, *first.range_of(path), scale) if blind else None
        row["published"] = PUBLISHED.get(first.scene, {}).get(path, {}).get(str(method))
        rows.append(row)
    return rows


def summary(errors: np.ndarray) -> dict[str, float]:
    """Return mean, median and worst of errors."""
    return {
        "mean": float(errors.mean()),
        "median": float(np.median(errors)),
        "worst": float(errors.max()),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table in Markdown."""
    columns = ("mean", "median", "worst", "expected", "published")
    head = ("scene", "path", "method", "instances", *columns)
    lines = []
    for row in rows:
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        names = [row["scene"], row["path"], row["method"], f"{row['instances']}{failed}"]
        lines.append([*names, *cells(row, columns)])
    return markdown(head, lines)


def cells(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    """Return numbers of a row as two digits, empty where there is none."""
    return ["" if row[key] is None else f"{row[key]:.2g}" for key in columns]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def scenes_of(number: int, *, paper_sizes: bool) -> dict[str, tuple[str, ...]]:
    """Return the scenes of a table with their overrides."""
    return {
        scene: more + (PAPER_SIZES.get(scene, ()) if paper_sizes else ())
        for scene, more in TABLES[number].items()
    }


def main(
    number: Annotated[int, typer.Argument(min=1, max=3, help=OF_TABLE)],
    *,
    count: Annotated[int | None, typer.Option(min=1, help=OF_COUNT)] = None,
    method: Annotated[list[Method] | None, typer.Option(help=OF_METHOD)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="A new folder.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on with that folder.")] = False,
    paper_sizes: Annotated[bool, typer.Option(help="Sizes and ranges of the paper.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="serial, local:N or an address.")] = None,
) -> None:
    """Estimate the hidden values of many instances, and print the errors."""
    place = out or Path(f"runs/table-{number}")
    folder = RunFolder(place) if resume else RunFolder.create(place)
    if resume:
        folder.lock()
    methods = method or list(CHEAP)
    scenes = {
        scene: [TableCase(scene, more, seed, k) for k in range(count or INSTANCES[number])]
        for scene, more in scenes_of(number, paper_sizes=paper_sizes).items()
    }
    tasks = [
        (case, estimator) for cases in scenes.values() for case in cases for estimator in methods
        if not folder.has(record_name(case, estimator))
    ]  # fmt: skip
    with open_pool(scheduler) as pool:
        for done, ((case, estimator), record) in enumerate(pool(run_task, tasks), 1):
            folder.write_json(record_name(case, estimator), record)
            typer.echo(f"{done} of {len(tasks)}: {case.scene} {case.k}, {estimator}")
    rows = [row for cases in scenes.values() for estimator in methods
            for row in summed_up(cases, estimator, folder)]  # fmt: skip
    result = {"table": number, "seed": seed, "paper_sizes": paper_sizes, "rows": rows}
    folder.write_json(RESULT, result)
    folder.write_text("table.md", table(rows) + "\n")
    typer.echo(table(rows))
    typer.echo(folder.path)
    folder.release()


if __name__ == "__main__":
    # by this name, not as `__main__`, workers find what they are sent
    typer.run(importlib.import_module("studies.paper.tables").main)
