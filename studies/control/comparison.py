"""Control of many instances, by picture, by states and at random, on equal terms.

Every finished instance leaves its curves in the run folder, and every evaluation a line in a log,
so that a run that was stopped goes on where it was. One that fails under any kind of supervision
leaves the reason, and the others go on. The curves are raw: an evaluation counts with its own
distance, not with the best before it. What a search returns is its evaluation of the lowest loss,
which it knows; the distance it does not know.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from studies import outcome, run_folder
from studies.certificate import Say, certificate, gathered, told, verdict_of
from studies.control import report, results
from studies.control.case import Case, Measured, Supervision
from studies.distribution import HERE, Spread
from studies.errors import FailedSearchError, StudyError
from studies.instances import (
    FAILURES,
    KEY,
    Bar,
    parted,
    place,
    recorded,
    spread_out,
)
from studies.media import as_uint8, write_png, write_video
from studies.optimizers.evaluations import Evaluation, Evaluator
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Status
from studies.progress import EvaluationProgress
from studies.registry import Job, RunOptions
from studies.run_folder import RunFolder
from studies.settings import require_not_negative, require_positive


Settings = dict[str, Any]


def require_policy(settings: Settings) -> None:
    """Complain of what all studies of a policy ask for, by key.

    Its tables `policy`, `start` and `random`; and one frame, the last: the target is one picture.
    """
    require_positive(settings, "policy", "sines", "frequency", "scale")
    require_not_negative(settings, "start", "size")
    require_not_negative(settings, "random", "size")
    if settings["time"]["frames"] != 1:
        raise ValueError(
            f"`time.frames` must be 1, the last picture, got {settings['time']['frames']}: "
            "the target is a single one."
        )


def preparing(
    check: Callable[[Settings], None],
    make: Callable[[Settings, RunOptions, int], Case],
    bars: Mapping[str, Bar],
    *,
    measures: Sequence[str] = results.USUAL,
) -> Callable[[Settings, RunOptions], Job]:
    """Return the `prepare` of a control study.

    Parameters
    ----------
    check : callable
        check(settings) complains of settings out of range, by key.
    make : callable
        make(settings, options, k) is the case of instance k.
    bars, measures
        As `make_job` takes them.
    """

    def prepare(settings: Settings, options: RunOptions) -> Job:
        """Check the settings and return the search, or the comparison of all instances.

        Raises
        ------
        ValueError
            If a setting is out of range; the message names its key.
        """
        check(settings)
        return make_job(
            settings, options, partial(make, settings, options), bars, measures=measures
        )

    return prepare


def make_job(
    settings: Settings,
    options: RunOptions,
    make: Callable[[int], Case],
    bars: Mapping[str, Bar],
    *,
    measures: Sequence[str] = results.USUAL,
) -> Job:
    """Return the job of a control study.

    A single search by the picture is a fit like that of other studies; everything else is a
    comparison, of all kinds of supervision where `instances` is more than one. The one that the
    settings name comes first: by it the instances are judged. `measures` are of `results.MEASURES`.
    """
    count = checks.positive(KEY, settings[KEY])
    known = [str(kind) for kind in Supervision]
    try:
        name = checks.known_key("name in `supervision`", settings["supervision"], known)
        given = Supervision(name)
    except ValueError as error:
        raise StudyError(str(error)) from error
    if count > 1 and given is Supervision.RANDOM:
        raise StudyError(
            f"`supervision=random` is for a single instance, got {count} instances: these compare "
            "all kinds of supervision. Leave it out, or set `instances=1`."
        )
    try:
        first = make(0)  # complains of settings before anything is run
    except FAILURES:
        if count == 1:
            raise
    else:
        if count == 1 and given is Supervision.PICTURE:
            return first.fit
    others = [kind for kind in Supervision if kind is not given] if count > 1 else []
    budget, kinds = settings["optimizer"]["max_evaluations"], (given, *others)
    return Comparison(options, budget, make, kinds, count, bars, measures)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A `studies.registry.Job`: search every instance under each supervision, compare the ends.

    Attributes
    ----------
    max_evaluations : int
        Budget of a search.
    make : callable
        make(k) is the case of instance k.
    kinds : tuple of Supervision
    count : int
        Of instances.
    bars : mapping
        What a measure is held against.
    measures : sequence of str
        Of `results.MEASURES`.
    spread : Spread
        Where instances are run.
    """

    options: RunOptions
    max_evaluations: int
    make: Callable[[int], Case]
    kinds: tuple[Supervision, ...]
    count: int
    bars: Mapping[str, Bar]
    measures: Sequence[str]
    spread: Spread = HERE

    def run(self, folder: RunFolder) -> str:
        """Run what is not finished; write numbers, figures, videos and the report."""
        budget, record = self.max_evaluations, replace(self, spread=HERE)._record
        spread_out(folder, self.spread, record, count=self.count, max_evaluations=budget)
        with EvaluationProgress(budget) as progress:
            found = [self._record(folder, progress, k) for k in range(self.count)]
        progress.say("searches ended; certifying their gradients and drawing the report")
        records, failed = parted(found)
        shown = results.worst(records, str(self.kinds[0]))
        case = self.make(shown)
        first = case.fit
        result = {
            "title": first.title,
            "what": first.what,
            "instances": self.count,
            "kinds": [str(kind) for kind in self.kinds],
            "evaluations": budget,
            "method": str(first.search.method),
            "loss_function": repr(first.problem.loss),
            "n_parameters": first.problem.parameters.size,
            **first.facts(),
            "bars": {name: [bar.ours, bar.published] for name, bar in self.bars.items()},
            "shown": shown,
            "table": results.summed_up(records),
            "records": records,
            "failed": failed,
        }
        certified = self._certified(folder, case, shown, progress.say)
        folder.write_json(run_folder.RESULT, result)
        folder.write_json(run_folder.CERTIFICATE, certified)
        folder.write_text(run_folder.INSTANCES_CSV, results.ends_csv(records, failed))
        folder.write_text(run_folder.CURVES_CSV, results.curves_csv(records))
        self._write_seen(folder, case, shown)
        written = report.write_report(folder)
        proof = (
            [f"gradient certificate: {told(verdict_of(certified))}"] if certified["kinds"] else []
        )
        return "\n".join([*results.told(result), *proof, f"report: {written}"])

    def _record(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        return recorded(folder, progress, self._ended, k, count=self.count)

    def _ended(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        """Search under every kind of supervision; keep what was found, and return the record."""
        case = self.make(k)
        ends, thetas = {}, {}
        for kind in self.kinds:
            progress.begin(str(kind))
            ends[str(kind)], thetas[str(kind)] = self._search(folder, progress, case, kind)
        problem = case.fit.problem
        pictures = {f"picture.{key}": problem.images(theta)[-1] for key, theta in thetas.items()}
        folder.write_npz(
            f"{place(k)}/{run_folder.POLICIES}", target=problem.targets[-1], **pictures, **thetas
        )
        return {"instance": k, "center": case.center.tolist(), "searches": ends}

    def _search(
        self, folder: RunFolder, progress: EvaluationProgress, case: Case, kind: Supervision
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Search, or go on where the log ends; return every evaluation, and what was found."""
        problem = Measured(case.problem(kind), case.measure)
        how, k, history = case.fit.search, case.fit.instance, []
        log = folder.file(f"{place(k)}/{kind}/{run_folder.ITERATIONS}")

        def seen(evaluation: Evaluation) -> None:
            history.append(evaluation)
            progress(evaluation)

        if kind is Supervision.RANDOM:
            rng = np.random.default_rng([self.options.seed + k, 1])
            evaluator = Evaluator(problem, how.max_evaluations, log=log, callback=seen)
            for _ in range(how.max_evaluations):
                evaluator.residual(case.drawn(rng))
            status = Status.MAX_EVALUATIONS
        else:
            status = minimize(
                problem, case.fit.problem.parameters.start, how.method,
                max_evaluations=how.max_evaluations, tolerance=how.tolerance, options=how.options,
                log=log, callback=seen,
            ).status  # fmt: skip
        finite = [one for one in history if np.isfinite(one.loss)]
        if not finite:
            raise FailedSearchError(f"{kind}: no rollout stayed finite.")
        return results.curve(status.name, history, self.measures), min(
            finite, key=lambda one: one.loss
        ).theta

    def _certified(self, folder: RunFolder, case: Case, k: int, say: Say) -> dict[str, Any]:
        """Return the certificate of the first kind, unless its policies are drawn at random."""
        found = folder.read_npz(f"{place(k)}/{run_folder.POLICIES}")
        return gathered(
            {
                str(kind): certificate(case.problem(kind), found[str(kind)], self.options, say)
                for kind in self.kinds[:1]
                if kind is not Supervision.RANDOM
            }
        )

    def _write_seen(self, folder: RunFolder, case: Case, k: int) -> None:
        """Write how the instance that is shown moves under each kind: arrays and videos."""
        found = folder.read_npz(f"{place(k)}/{run_folder.POLICIES}")
        problem, films, times = case.fit.problem, {}, np.zeros(0)
        played = problem.motion.frames if case.fit.played is None else case.fit.played
        for kind in reversed(self.kinds):
            motion = problem.motion_at(found[str(kind)]).at(played)
            run = motion.run()
            times = run.times
            films[str(kind)] = problem.filming.shoot(motion, run)
            if kind is self.kinds[0]:
                folder.write_npz(run_folder.TRAJECTORY, **outcome.moved(problem, motion, run))
        shown = {key: images.astype(np.float32) for key, images in films.items()}
        folder.write_npz(run_folder.FRAMES, times=times, target=problem.targets[-1], **shown)
        still = outcome.enlarged(problem.targets[-1:, ..., :3])[0]
        write_png(folder.file(run_folder.TARGET_PICTURE), still)
        fps = outcome.playback_fps(len(times))
        for key, images in films.items():
            large = outcome.enlarged(as_uint8(images[..., :3]))
            write_video(folder.file(results.video(key)), large, fps, pad=True)
