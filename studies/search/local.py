"""How a study searches: method, budget, and from how many points it starts."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self, cast

import numpy as np

from adjsim import checks
from render.losses import ImageLoss, Mse, PyramidMse
from studies.errors import StudyError
from studies.optimizers.evaluations import Evaluation, read_log
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, Options, Problem, Result, Stall
from studies.parameters import Parameters
from studies.progress import EvaluationProgress
from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder
from studies.search.found import Found


STALL_TRIALS = {True: 8, False: 30}  # with and without a line search, see `Stall.trials`


class Staged(Problem, Protocol):
    """A problem that knows easier ones to begin with."""

    @property
    def parameters(self) -> Parameters:
        """What is free."""
        ...

    def at_stage(self, stage: float) -> Self:
        """Return an easier problem; 1 is the problem itself."""
        ...

    def name_of_stage(self, stage: float) -> str:
        """Return what is looked at in a stage."""
        ...


@dataclass(frozen=True)
class Search:
    """How the optimum is looked for: the table `optimizer` of the settings.

    Attributes
    ----------
    max_evaluations : int
        Budget of each start and stage.
    starts : int
        From the given start, and from so many less one drawn inside the bounds.
    enough : float
        Part of the loss at the given start; once a search ends below it, no other begins.
    stages : tuple of float
        A search begins with the problem `at_stage` of the first, then goes on with the next
        one, anew from where it ended; the last one is 1, the problem itself. Of a video they are
        parts of its frames: a long one has many wrong optima, its beginning has few. Of pictures
        they are factors of their softness: wide edges feel what is far away. Stages before the
        last end at the root of the tolerance.
    finer : tuple of float
        Stages of the second start, which then is the given start again; none: it is drawn. A loss
        that is rough, as where many vertices touch, has its optimum in so narrow a place that a
        search must be in it already when the part of the video grows.
    stall : Stall, optional
        When the loss counts as settled, which ends a local search; none: never.
    """

    method: Method
    max_evaluations: int
    tolerance: float
    options: Options
    starts: int = 1
    enough: float = 0.0
    stages: tuple[float, ...] = (1.0,)
    finer: tuple[float, ...] = ()
    stall: Stall | None = None

    def stages_of(self, start: int) -> tuple[float, ...]:
        """Return the stages of a start."""
        return self.finer if start == 1 and self.finer else self.stages


def log_names(start: int, stages: int, place: str = "") -> tuple[str, ...]:
    """Return the names of a start's logs: iterations.jsonl, iterations-2.jsonl, ...

    Stages before the last have their number too: iterations-1-stage-1.jsonl.
    """
    base = run_folder.ITERATIONS
    names = [base.replace(".", f"-{start + 1}-stage-{k + 1}.") for k in range(stages - 1)]
    names.append(base if start == 0 else base.replace(".", f"-{start + 1}."))
    return tuple(f"{place}/{name}" if place else name for name in names)


def read_search(folder: RunFolder, names: Sequence[str]) -> list[Evaluation]:
    """Return the evaluations of a start, its stages one after the other."""
    whole: list[Evaluation] = []
    for name in names:
        spent, seconds = (whole[-1].spent, whole[-1].seconds) if whole else (0, 0.0)
        whole += [
            replace(one, spent=one.spent + spent, seconds=one.seconds + seconds)
            for one in read_log(folder.file(name))
        ]
    return whole


@dataclass(eq=False)
class _Watch:
    """Shows evaluations, and keeps the first finite loss."""

    progress: EvaluationProgress
    first: float = np.nan

    def __call__(self, evaluation: Any) -> None:
        if np.isnan(self.first) and np.isfinite(evaluation.loss):
            self.first = evaluation.loss
        self.progress(evaluation)


def search(
    problem: Staged,
    how: Search,
    folder: RunFolder,
    progress: EvaluationProgress,
    *,
    seed: Sequence[int],
    place: str = "",
) -> Found:
    """Search from every start, or go on where the folder's logs end.

    `place` is where in the folder they are.
    """
    results: list[Result] = []
    logs: list[tuple[str, ...]] = []
    spent, enough = 0, 0.0
    points = start_points(problem.parameters, how.starts, seed, again=bool(how.finer))
    for k, theta in enumerate(points):
        stages = how.stages_of(k)
        at, result, names = theta, None, log_names(k, len(stages), place)
        for number, stage in enumerate(stages):
            name = _name(problem, stages, number)
            progress.begin(_label(how, k, name))
            watch = _Watch(progress)
            result = minimize(
                problem if stage == 1.0 else problem.at_stage(stage),
                at,
                how.method,
                max_evaluations=how.max_evaluations,
                tolerance=how.tolerance if stage == 1.0 else math.sqrt(how.tolerance),
                options=how.options,
                log=folder.file(names[number]),
                callback=watch,
                stage=name,
                stall=how.stall,
            )
            at, spent = result.theta, spent + result.evaluations
            if k == number == 0:
                enough = how.enough * watch.first
        results.append(cast(Result, result))
        logs.append(names)
        if results[-1].loss <= enough and (left := how.starts - k - 1):
            progress.say(
                f"start {k + 1}/{how.starts} ended at the loss {results[-1].loss:.3e}, below "
                f"`optimizer.enough` = {how.enough:g} times that at the given start: the other "
                f"{left} {'start is' if left == 1 else 'starts are'} not needed"
            )
            break
    best = int(np.argmin([result.loss for result in results]))
    return Found(results[best], best, tuple(results), tuple(logs), spent)


def _name(problem: Staged, stages: Sequence[float], number: int) -> str:
    """Return the name of a stage, as in "1/2: edges 1.5 pixels soft"; none where it is alone."""
    if len(stages) == 1:
        return ""
    return f"{number + 1}/{len(stages)}: {problem.name_of_stage(stages[number])}"


def _label(how: Search, start: int, stage: str) -> str:
    parts = [f"start {start + 1}/{how.starts}"] if how.starts > 1 else []
    parts += [f"stage {stage}"] if stage else []
    return ", ".join(parts)


def start_points(
    parameters: Parameters, count: int, seed: Sequence[int], *, again: bool = False
) -> list[np.ndarray]:
    """Return the given start, maybe once again, and others drawn evenly inside the bounds."""
    rng = np.random.default_rng([*seed, 1])
    low, high = parameters.lower, parameters.upper
    if count > 1 and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise StudyError("`optimizer.starts` above 1 needs finite bounds to draw starts from.")
    return [
        parameters.start if k <= again else low + (high - low) * rng.uniform(size=len(low))
        for k in range(count)
    ]


def make_search(table: dict[str, Any], without: Collection[Method] = ()) -> Search:
    """Return the search of the settings' table `optimizer`, by any method but those."""
    names = [str(method) for method in Method if method not in without]
    try:
        method = Method(checks.known_key("method in `optimizer.method`", table["method"], names))
    except ValueError as error:
        raise StudyError(str(error)) from error
    for key in ("max_evaluations", "tolerance"):
        checks.positive(f"optimizer.{key}", table[key])
    starts, enough = table.get("starts", 1), table.get("enough", 0.0)
    checks.positive("optimizer.starts", starts)
    checks.non_negative("optimizer.enough", enough)
    has_softness = "softness" in table
    stages = check_softness(table["softness"]) if has_softness else check_stages(table)
    finer = check_stages(table, "finer") if table.get("finer") else ()
    return Search(
        method,
        table["max_evaluations"],
        table["tolerance"],
        make_options(table),
        starts=starts,
        enough=enough,
        stages=stages,
        finer=finer,
        stall=make_stall(table, method),
    )


def make_stall(table: Mapping[str, Any], method: Method) -> Stall | None:
    """Return when the loss counts as settled by the key `stall` of a table; 0 or none: never."""
    least_fall = table.get("stall", 0.0)
    checks.non_negative("optimizer.stall", least_fall)
    has_line_search = method in (Method.LBFGSB, Method.GAUSS_NEWTON)
    return Stall(least_fall, STALL_TRIALS[has_line_search]) if least_fall else None


def make_options(table: Mapping[str, Any], name: str = "optimizer") -> Options:
    """Return the settings of the methods that a table has, and defaults for the rest."""
    given = {field.name: table[field.name] for field in fields(Options) if field.name in table}
    for key in ("learning_rate", "memory"):
        checks.positive(f"{name}.{key}", given.get(key, getattr(Options, key)))
    for key in ("momentum", "beta1", "beta2"):
        if not 0.0 <= given.get(key, 0.0) < 1.0:
            raise StudyError(f"`{name}.{key}` must be in [0, 1), got {given[key]:g}.")
    if not 0.0 < given.get("decay", 1.0) <= 1.0:
        raise StudyError(f"`{name}.decay` must be in (0, 1], got {given['decay']:g}.")
    return Options(**given)


def check_stages(table: dict[str, Any], key: str = "stages") -> tuple[float, ...]:
    """Return the parts of the video that are looked at one after the other."""
    parts = checks.array(f"optimizer.{key}", table.get(key, [1.0]), ("n_stages",))
    if not parts.size or parts[-1] != 1.0 or (np.diff(parts) <= 0.0).any() or parts[0] <= 0.0:
        raise StudyError(
            f"`optimizer.{key}` must be parts of the video that grow to 1.0, the whole, such as "
            f"[0.3, 1.0]; got {parts.tolist()}."
        )
    return tuple(float(part) for part in parts)


def check_softness(factors: Any) -> tuple[float, ...]:
    """Return the factors by which edges are softer, one after the other."""
    given = checks.array("optimizer.softness", factors, ("n_stages",))
    if not given.size or given[-1] != 1.0 or (np.diff(given) >= 0.0).any():
        raise StudyError(
            "`optimizer.softness` must be factors that fall to 1.0, the softness of the pictures, "
            f"such as [4.0, 1.0], or [1.0] to begin with sharp edges; got {given.tolist()}."
        )
    return tuple(float(factor) for factor in given)


def make_loss(table: dict[str, Any]) -> ImageLoss:
    """Return the loss of the settings' table `loss`."""
    kinds = ("mse", "pyramid")
    if checks.known_key("kind in `loss.kind`", table["kind"], kinds) == "mse":
        return Mse()
    checks.positive("loss.levels", table["levels"])
    checks.positive("loss.growth", table.get("growth", 1.0))
    return PyramidMse(table["levels"], table.get("growth", 1.0))
