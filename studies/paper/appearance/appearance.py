"""How fast is the mass of a body found where the video shows one colour, shade, or a texture?

    adjsim run appearance

The figure 7 of the gradSim paper: one body, one impulse, one start and one budget; what differs
is how the body is drawn, in the target and in the fit alike. A correct run ends with a certificate
of each kind that passed, and Gauss-Newton within 1e-10 of the hidden mass with all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage

from adjsim import checks
from studies import outcome, rigid, run_folder
from studies.certificate import Say, certificate, gathered, told, verdict_of
from studies.distribution import HERE, Spread
from studies.errors import FailedSearchError, StudyError
from studies.filming import Hulls, MeshFilming, make_filming
from studies.instances import (
    FAILURES,
    parted,
    place,
    recorded,
    spread_out,
)
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method, NotFiniteError
from studies.painting import Kind, check_paint, painted
from studies.paper.appearance import results
from studies.paper.appearance.report import write_report
from studies.parameters import Parameters, positive_block
from studies.progress import EvaluationProgress
from studies.registry import Job, RunOptions
from studies.run_folder import RunFolder
from studies.search.local import Search, make_loss, make_options, make_search
from studies.settings import bounds_of, require_chosen
from studies.synthetic import film
from studies.truth import Truth
from studies.video_problem import VideoProblem


BODY, MASS = rigid.BODY, rigid.PATHS["mass"]
# The scene is that of rigid-mass: no floor, and one free number.
SCENE = {"free": ["mass"], "floor": {"exists": False, "at": [0.0, 1.0, 0.0], "clearance": 0.1}}
TABLES = (str(Method.GRADIENT_DESCENT), str(Method.ADAM))  # of methods, with what only they have
REACH = 2.5  # widths of soft edges that the outline reaches: there its coverage is below 2e-3


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the searches of all bodies, kinds and methods.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    settings = settings | SCENE
    count = checks.positive("instances", settings["instances"])
    require_chosen("kinds", settings["kinds"], map(str, Kind))
    require_chosen("methods", settings["methods"], map(str, Method))
    rigid.check_settings(settings)
    check_paint(settings)
    make = partial(make_case, settings, options)
    try:
        make(0)  # complains of settings before anything is run
    except FAILURES:
        if count == 1:
            raise
    return Appearance(settings, options, make, make_searches(settings), make_grid(settings), count)


def make_searches(settings: Mapping[str, Any]) -> dict[str, Search]:
    """Return the search of each method, by its name; a budget is common to all."""
    table = settings["optimizer"]
    options = {name: make_options(settings[name], name) for name in TABLES}
    searches = {name: make_search({**table, "method": name}) for name in settings["methods"]}
    return {
        name: replace(one, options=options.get(name, one.options)) for name, one in searches.items()
    }


def make_grid(settings: Mapping[str, Any]) -> np.ndarray:
    """Return the masses at which the loss is drawn, in parts of the hidden one."""
    table = settings["landscape"]
    low, high = checks.array("landscape.between", table["between"], (2,))
    if not 0.0 < low < 1.0 < high:
        raise StudyError(
            "`landscape.between` must be parts of the hidden mass, one below 1 and one above, got "
            f"{[low, high]}."
        )
    return np.geomspace(low, high, checks.whole("landscape.points", table["points"], 3))


@dataclass(frozen=True, eq=False)
class Case:
    """One body, and its problem with every kind of appearance.

    Attributes
    ----------
    what : str
        Its shape.
    mass, start : float
        Hidden, and where searches begin [kg].
    problems : dict
        By kind; its theta is the logarithm of the mass.
    """

    what: str
    mass: float
    start: float
    problems: dict[str, VideoProblem]


def make_case(settings: dict[str, Any], options: RunOptions, instance: int) -> Case:
    """Draw the body of an instance and film it, painted in every way."""
    rng = np.random.default_rng([options.seed, instance])
    name, mesh, motion, hidden, start = rigid.draw_thrown(settings, options, instance, rng)
    free = positive_block(MASS, start["mass"], {MASS: bounds_of(settings, ("mass",))["mass"]})
    parameters, loss = Parameters([free]), make_loss(settings["loss"])
    problems = {}
    for kind in settings["kinds"]:
        body = painted(Kind(kind), mesh, settings, rng)
        filming: MeshFilming = make_filming(
            settings, {BODY: (body, Hulls(BODY))}, device=options.device
        )
        images = film(filming, motion, {})
        Truth({MASS: hidden["mass"]}, images).require_reachable(parameters)
        problems[kind] = VideoProblem(motion, filming, parameters, loss, images)
    return Case(name, hidden["mass"], start["mass"], problems)


@dataclass(frozen=True, eq=False)
class Appearance:
    """A `studies.registry.Job`: search with every method, kind and body; compare the curves.

    Attributes
    ----------
    make : callable
        make(k) is the case of instance k.
    searches : mapping
        By method.
    grid : numpy.ndarray
        Masses at which the loss is drawn, in parts of the hidden one.
    count : int
        Bodies.
    spread : Spread
        Where bodies are searched for.
    """

    settings: Mapping[str, Any]
    options: RunOptions
    make: Callable[[int], Case]
    searches: Mapping[str, Search]
    grid: np.ndarray
    count: int
    spread: Spread = HERE

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write numbers, figures and the report."""
        budget = self.settings["optimizer"]["max_evaluations"]
        record = replace(self, spread=HERE)._record
        spread_out(folder, self.spread, record, count=self.count, max_evaluations=budget)
        with EvaluationProgress(budget) as progress:
            ended = [self._record(folder, progress, k) for k in range(self.count)]
        progress.say("searches ended; certifying their gradients and drawing the report")
        kinds, methods = self.settings["kinds"], list(self.searches)
        records, failed = parted(ended)
        case = self.make(records[0]["instance"])
        certified = self._certified(case, records[0], progress.say)
        result = {
            "title": "The mass of a body from video, by its appearance",
            "instances": len(records),
            "kinds": kinds,
            "methods": methods,
            "evaluations": budget,
            "descent": self.settings[Method.GRADIENT_DESCENT],
            "loss_function": repr(case.problems[kinds[0]].loss),
            "size": list(case.problems[kinds[0]].filming.size),
            "table": results.summed_up(records, kinds, methods),
            "explained": results.explained(records, kinds),
            "records": records,
            "failed": failed,
        }
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        folder.write_text(run_folder.CURVES_CSV, results.as_csv(records))
        write_seen(folder, case)
        report = write_report(folder)
        verdict = told(verdict_of(certified))
        lines = [*results.told(result), f"gradient certificates: {verdict}"]
        return "\n".join([*lines, f"report: {report}"])

    def _record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        return recorded(folder, progress, self._searched, k, count=self.count)

    def _searched(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        """Search for a body with every kind and method; return its record."""
        case = self.make(k)
        found, looked = [], {}
        for kind, problem in case.problems.items():
            for method in self.searches:
                log = folder.file(f"{place(k)}/{kind}/{method}/{run_folder.ITERATIONS}")
                found.append(self._curve(case, kind, method, log=log, progress=progress))
            looked[kind] = looked_at(problem, case, self.grid)
        return {
            "instance": k,
            "what": case.what,
            "mass": case.mass,
            "start": case.start,
            "searches": found,
            "kinds": looked,
        }

    def _curve(
        self, case: Case, kind: str, method: str, *, log: Path, progress: EvaluationProgress
    ) -> dict[str, Any]:
        """Search, or go on where the log ends; return every evaluation."""
        progress.begin(f"{kind}, {method}")
        problem, how, history = case.problems[kind], self.searches[method], []

        def seen(evaluation: Any) -> None:
            history.append(evaluation)
            progress(evaluation)

        found = minimize(
            problem, problem.parameters.start, how.method,
            max_evaluations=how.max_evaluations, tolerance=how.tolerance, options=how.options,
            log=log, callback=seen,
        )  # fmt: skip
        if not np.isfinite(found.loss):
            raise FailedSearchError(f"The search of {case.what} with {kind}: {found.message}")
        return {
            "kind": kind,
            "method": method,
            "status": found.status.name,
            "theta": found.theta.tolist(),
            "spent": [one.spent for one in history],
            "masses": [float(np.asarray(one.values[MASS]).item()) for one in history],
            "losses": [one.loss if np.isfinite(one.loss) else None for one in history],
        }

    def _certified(self, case: Case, record: dict[str, Any], say: Say) -> dict[str, Any]:
        """Return the certificate of each kind, at the start and at the end of the last method."""
        last = {one["kind"]: np.array(one["theta"]) for one in record["searches"]}
        return gathered(
            {
                kind: certificate(problem, last[kind], self.options, say)
                for kind, problem in case.problems.items()
            }
        )


def looked_at(problem: VideoProblem, case: Case, grid: np.ndarray) -> dict[str, Any]:
    """Return curvature of the loss at the truth, where it comes from, and the loss over masses.

    The curvature is that in the logarithm of the mass, 2 |dr/dtheta|^2 of the residuals r; `inside`
    is the part of the squared derivatives of pixels that lies within the outline, out of its reach.
    """
    theta = np.log([case.mass])
    slope = np.square(pixel_slopes(problem, theta)).sum(axis=-1)
    losses = np.array([problem.loss_at(theta + np.log(part)) for part in grid])
    if not np.isfinite(losses).all():
        raise NotFiniteError("The loss is not finite between `landscape.between`. Narrow them.")
    start = case.start / case.mass
    return {
        "curvature": 2.0 * float(np.square(problem.residuals_jvp(theta, np.ones(1))).sum()),
        "inside": float(slope[inside(problem)].sum() / slope.sum()),
        "is_falling": results.is_falling(grid, losses, start),
        "grid": grid.tolist(),
        "landscape": losses.tolist(),
    }


def pixel_slopes(problem: VideoProblem, theta: np.ndarray) -> np.ndarray:
    """Return the derivative of every pixel in log m, (n_frames, height, width, 4)."""
    return problem.images_jvp(theta, np.ones(1))[1]


def inside(problem: VideoProblem) -> np.ndarray:
    """Return the pixels of the target so far within the outline that it does not reach them."""
    assert isinstance(problem.filming, MeshFilming)
    height = problem.filming.size[0]
    softness = 0.5 * height * np.sqrt(problem.filming.rasterizer.sigma)
    shrink = max(1, int(np.ceil(REACH * softness)))
    covered = problem.targets[..., 3] > 0.5
    return np.stack([scipy.ndimage.binary_erosion(one, iterations=shrink) for one in covered])


def write_seen(folder: RunFolder, case: Case) -> None:
    """Write the video of each kind, where its pixels feel the mass, and the motion."""
    theta = np.log([case.mass])
    problems = list(case.problems.values())
    motion = problems[0].motion_at(theta)
    run = motion.run()
    folder.write_npz(run_folder.TRAJECTORY, **outcome.moved(problems[0], motion, run))
    slopes = [np.sqrt(np.square(pixel_slopes(one, theta)).sum(axis=-1)) for one in problems]
    folder.write_npz(
        run_folder.FRAMES,
        times=run.times,
        kinds=np.array(list(case.problems)),
        target=np.stack([one.targets for one in problems]).astype(np.float32),
        start=np.stack([one.images(one.parameters.start) for one in problems]).astype(np.float32),
        slope=np.stack(slopes).astype(np.float32),
    )
