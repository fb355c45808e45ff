"""The verdict on the answer of a search: one of six kinds, with the numbers behind it.

The kinds are tested in this order, and the first that applies is the verdict:

    search not finished           a step that matters is left: later tests would judge a point on
                                  the way
    at a bound                    a bound stops the search; what is wrong otherwise may be due to it
    search not finished           the evaluations are spent while the loss still falls, the search
                                  never left its start, the loss about the answer does not rise as
                                  its gradient promises, or a simulated film is not matched
    does not explain the footage  the motion is wrong, or a camera or a size, whatever the values
    not determined                the answer changes on a finer mesh or in other contacts, or its
                                  interval with model error is too wide; other basins may lie along
                                  the same valley
    several answers               another basin explains it as well
    not determined                the film was made here, and the value is far from the true one
    found                         none of these

Only `found` is green. Controls have two more kinds, `reached` and `not reached`
(`studies/answer/reached.py`). The thresholds are part of the manual: keep `docs` in step.
"""

import enum
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from studies.answer.evidence import (
    Evidence,
    MissingTerm,
    differences,
    how_much_worse,
    relative_half_widths,
    worst_combination,
)
from studies.answer.scales import NARROWEST, percent, theta_scale, value_scale
from studies.optimizers.problem import Status
from studies.problem.parameters import COLORS
from studies.search.coarse import is_log


# Part of the motion that may stay unexplained. Right answers to the test films and their variations
# leave at most 6.3 %. With a floor 3 cm off, the answer is 44 % off and leaves 9.6 %.
UNEXPLAINED = 0.08
# The same in frames held back: an error of 2 % in a frequency has grown to a visible phase there.
# Right answers leave at most 12.5 %; with the floor 3 cm off it is 23 %.
PREDICTED = 0.2
# Part of both that an answer without gradients may leave. A ball that bounced three times was found
# so with a velocity in depth 20 % off the speed, and left 7.2 % and 17 %.
WITHOUT_GRADIENTS = 0.5
# Residual of the first frame as a part of the motion. Beyond it, the look is wrong by more than all
# that moves, and a wrong motion may hide behind it.
FIRST = 1.0
# Part of the motion in a simulated film that an answer may leave beyond what the truth leaves.
SIMULATED = 1e-5
# Of pictures that do not move: part of their variance about the mean colour.
UNEXPLAINED_PICTURES = 0.15
# Relative half-width of an interval with model error beyond which a value is not an answer.
WIDE = 0.2
# Part of a value by which a mesh twice as fine, shorter steps, other contacts or laws may change it
COARSE = 0.05
REFINEMENTS = {
    "mesh": (
        "On a mesh twice as fine",
        "and on finer ones up to about twice as much. Refine it (more `cells`, a smaller "
        "`edge_length`, a finer file).",
    ),
    "step": ("At a shorter time step", "and more at still shorter ones. Shorten it (`world.dt`)."),
    "contact": (
        "With contacts 4 times as hard",
        "and with still harder ones up to about twice as much. Their `stiffness` was chosen: give "
        "one that is known, make it free, or fit a part of the film before they matter.",
    ),
    "loss": (
        "With contacts that lose 4 times as much",
        "and with more up to about twice as much. Their `dissipation` was chosen for a fall from "
        "the body's size: give the `speed` at which they touch, a `restitution` that is known, or "
        "make the dissipation free.",
    ),
    "shading": (
        "Drawn flat in place of smooth, or the other way round,",
        "so the edges of what is drawn lead the fit. Set `look.smooth` of the body as the film has "
        "it, or compare silhouettes.",
    ),
    **{
        source: (
            f"With one {row} held",
            "so it matters where the clamp ends. Check `held`, and take a finer mesh there.",
        )
        for source, row in (("held", "more row of nodes"), ("released", "row of nodes fewer"))
    },
    **{
        size: (
            f"With the nodes held that a {size} body would have held, by two uncertainties of its "
            "size",
            "so it matters which nodes the size lets `held` reach. Measure the size, declare it "
            "(`scale_error`), and set `held` so that its edge is between two rows of nodes.",
        )
        for size in ("larger", "smaller")
    },
    "law": (
        "With the other law of solids, the same at small strains,",
        "and with still others up to about twice as much. Set `law` of the body to the one that "
        "its material has, or observe smaller strains.",
    ),
}
# Relative difference from which another basin is another answer.
OTHER = 0.1
# Another basin is clearly worse if it leaves more than this factor of the best one's motion
# unexplained. Two fits whose model is wrong differ by less by chance.
WORSE = 1.3
# Part of the range of theta from a bound within which a search counts as at the bound; the
# trust-region method ends just inside.
NEAR_BOUND = 1e-3
# A Gauss-Newton step left at the end of a search matters beyond this part of the half-width of the
# interval, and beyond this in theta (2 % of a value under a logarithm).
STEP_OF_INTERVAL, STEP = 0.5, 0.02
# Standard deviations of its prior by which a camera may move between the fit of the first frame and
# that of the film. In the test films, right answers moved it by 2 at most, wrong ones by 3.2 up.
BENT = 3.0
# Standard deviations by which anything may end from where it is declared. A mesh that is 12 % or
# 30 % too large moves its camera by 6 and 14, right answers to films by 2.8 at most.
STRAYED = 3.0
# A search that was cut short is not called unfinished where it leaves so many times too much.
HOPELESS = 3.0
ROUNDING = 1e-12  # part of the loss at the start: as far as a search can go
MOSTLY = 0.5  # part of a half-width, from which on a declared number is named for it
SHOWN = 3  # components of a combination that are named


class Words(NamedTuple):
    """What is said of observations that move, of pictures of what does not, or of load cells."""

    seen: str
    better: str
    more: str


OF_MOTION = Words(
    "film",
    "film a motion that shows it better",
    "film more: a longer film, another view, another motion",
)
OF_PICTURES = Words(
    "picture",
    "take a picture that shows it better: from another side, in another light, or where it bears "
    "another load",
    "take more pictures: from another side, in another light, or where it bears another load",
)


OF_FORCES = Words(
    "measured force",
    "measure the force of a load that shows it better: larger, deeper, or elsewhere",
    "measure more: larger loads, deeper ones, or loads elsewhere",
)


def words_for(*, moves: bool, is_of_forces: bool = False) -> Words:
    """Return the words for load cells without films, or else for what moves, or for pictures."""
    if is_of_forces:
        return OF_FORCES
    return OF_MOTION if moves else OF_PICTURES


# What is left, what is accepted, what to say, and the numbers behind it.
Check = tuple[float | None, float, str, dict[str, Any]]


class Kind(enum.StrEnum):
    """What a verdict says."""

    FOUND = "found"
    AT_A_BOUND = "at a bound"
    NOT_DETERMINED = "not determined"
    SEVERAL_ANSWERS = "several answers"
    DOES_NOT_EXPLAIN = "does not explain the footage"
    NOT_FINISHED = "search not finished"
    REACHED = "reached"
    NOT_REACHED = "not reached"

    @property
    def is_good(self) -> bool:
        """Whether an answer may be used: only then it is shown in green."""
        return self in (Kind.FOUND, Kind.REACHED)


@dataclass(frozen=True)
class Verdict:
    """A kind, the reason in two sentences (what, and what to do), and the numbers behind it."""

    kind: Kind
    reason: str
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def is_found(self) -> bool:
        """Whether the answer may be used."""
        return self.kind.is_good

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, ready for JSON."""
        return {"kind": str(self.kind), "reason": self.reason, "numbers": self.numbers}


def judge_each(evidence: Evidence) -> dict[str, str]:
    """Return the kind of the verdict on every number that is asked for alone, by label.

    What is wrong with the whole, such as a motion that is not explained, is so with each.
    """
    labels = evidence.parameters.labels
    alone = {labels[i]: replace(evidence, answers=(i,)) for i in evidence.components}
    return {label: str(judge(each).kind) for label, each in alone.items()}


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict on an answer."""
    tests = (
        _not_finished,
        at_a_bound,
        _evaluations_spent,
        _stands_still,
        _fails_the_trial,
        _misses_simulated,
        _does_not_explain,
        _is_too_coarse,
        _not_determined,
        _several_answers,
        _misses_truth,
    )
    verdict = next((failed for test in tests if (failed := test(evidence)) is not None), None)
    if verdict is not None and verdict.kind is Kind.NOT_FINISHED:
        return _with_unexplained(verdict, evidence)
    return verdict or _found(evidence)


def _with_unexplained(verdict: Verdict, evidence: Evidence) -> Verdict:
    """Return the verdict of a search that is not finished, with how well it explains so far."""
    what, left, most = "motion", evidence.unexplained_pictures, UNEXPLAINED
    if evidence.explained is not None:
        left = evidence.explained.unexplained
    else:
        what, most = "variance in the pictures", UNEXPLAINED_PICTURES
    if left is None or "unexplained" in verdict.numbers:
        return verdict
    numbers = {**verdict.numbers, "unexplained": left}
    so_far = f"{percent(left)} of the {what} is unexplained"
    accepted = f"(at most {percent(most)} is accepted)"
    if left <= most:
        return Verdict(verdict.kind, f"{verdict.reason} So far {so_far} {accepted}.", numbers)
    misfit = (
        f"The fit is bad: {so_far} {accepted}. More evaluations alone may not be enough, so "
        "compare the films side by side."
    )
    return Verdict(verdict.kind, f"{misfit} {verdict.reason}", numbers)


def _not_finished(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a search with a step left that matters."""
    if evidence.status is Status.NOT_FINITE or not np.isfinite(evidence.loss):
        return Verdict(
            Kind.NOT_FINISHED,
            "The loss is not finite: the simulation blew up. Lower the time step, move the start, "
            "or tighten the bounds.",
            {"status": evidence.status.name},
        )
    if evidence.status is Status.CONVERGED or evidence.loss <= ROUNDING * evidence.loss_at_start:
        return None
    if not evidence.has_intervals:
        if evidence.status in (Status.STALLED, Status.SETTLED):
            return None
        return Verdict(
            Kind.NOT_FINISHED,
            "The evaluations are spent before the search converged, and no step left can be "
            "estimated. Allow more evaluations and resume.",
            {"status": evidence.status.name},
        )
    assert evidence.intervals is not None
    step = np.abs(evidence.intervals.remaining)
    scale = theta_scale(evidence.parameters, evidence.theta)
    half = np.minimum(evidence.intervals.half_width, WIDE * scale)  # far from an optimum it is wide
    matters = np.maximum(STEP * scale, STEP_OF_INTERVAL * half)
    worst = max(evidence.components, key=lambda i: step[i] / max(matters[i], 1e-300))
    if step[worst] <= matters[worst]:
        return None
    label = evidence.parameters.theta_labels[worst]
    return Verdict(
        Kind.NOT_FINISHED,
        f"The search ended ({evidence.status.name.lower().replace('_', ' ')}) with a step of "
        f"{evidence.intervals.remaining[worst]:+.2g} left in {label}. Allow more evaluations, or "
        "start from where it ended.",
        {"status": evidence.status.name, "remaining_step": float(step[worst]), "parameter": label},
    )


def _evaluations_spent(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a search whose evaluations were spent before its loss settled."""
    is_exact = evidence.loss <= ROUNDING * evidence.loss_at_start
    if evidence.status is not Status.MAX_EVALUATIONS or is_exact:
        return None
    if evidence.explained is not None and evidence.explained.unexplained > HOPELESS * UNEXPLAINED:
        return None  # it does not explain the footage, and a longer search would not either
    return Verdict(
        Kind.NOT_FINISHED,
        "The evaluations are spent while the loss still falls. Allow more evaluations "
        "(`search.max_evaluations`).",
        {"status": evidence.status.name},
    )


def _stands_still(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a search whose answers are where it began, to the bit."""
    chosen, intervals = evidence.components, evidence.intervals
    if evidence.start is None or not chosen or evidence.loss <= ROUNDING * evidence.loss_at_start:
        return None
    leaves_no_trace = intervals is not None and intervals.reason  # which says more
    if leaves_no_trace or not np.array_equal(evidence.theta[chosen], evidence.start[chosen]):
        return None
    return Verdict(
        Kind.NOT_FINISHED,
        "The answer is where the search began: no step lowered the loss. Start elsewhere, or look "
        "at the loss about it with `adjsim scan`.",
        {"status": evidence.status.name},
    )


def _fails_the_trial(evidence: Evidence) -> Verdict | None:
    """Return the verdict of an answer about which the loss is not as its gradient promises."""
    trial = evidence.trial
    if trial is None or not trial.is_rough:
        return None
    what = (
        f"A loss that is {percent(trial.gain)} lower lies beside the answer"
        if trial.lower is not None
        else "The loss about the answer rises so little that the interval would have to be "
        f"{trial.worst:.2g} times as wide"
    )
    jumps = (
        "contacts lose energy by `damping`, whose force jumps at touch (give them a `dissipation`)"
    )
    if evidence.film_without_seams:  # of a motion without touch
        jumps = (
            "colours jump at edges inside the outline of a body, which have no slope (set "
            f"`observations.{evidence.film_without_seams}.seams` = true)"
        )
    return Verdict(
        Kind.NOT_FINISHED,
        f"{what}: the gradient is not the slope of the loss here. So it is where {jumps}, and "
        "where a motion is chaotic (fit a shorter film).",
        trial.to_dict(),
    )


def _misses_simulated(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a simulated film of which the answer leaves more than the truth."""
    film, by_truth = evidence.explained, evidence.unexplained_by_truth
    if film is None or by_truth is None or film.unexplained <= (most := by_truth + SIMULATED):
        return None
    return Verdict(
        Kind.NOT_FINISHED,
        f"The answer leaves {percent(film.unexplained)} of the simulated motion unexplained, the "
        f"truth {percent(by_truth)}: the search ended before it. Start elsewhere, or fit a shorter "
        "part of the film first (`search.stages`).",
        {**film.to_dict(), "threshold": most},
    )


def _does_not_explain(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a fit that leaves too much of the motion, or of the pictures."""
    film, pictures = evidence.explained, evidence.unexplained_pictures
    share = WITHOUT_GRADIENTS if evidence.is_without_gradients else 1.0
    unexplained, predicted_most = share * UNEXPLAINED, share * PREDICTED
    checks: list[Check] = []
    if evidence.missing is not None:
        checks.append(_lacks_term(evidence, evidence.missing))
    if pictures is not None:
        text = (
            f"The fit leaves {percent(pictures)} of the variance in the pictures unexplained (at "
            f"most {percent(UNEXPLAINED_PICTURES)} is accepted). Check camera, light and what is "
            "held fixed."
        )
        checks.append((pictures, UNEXPLAINED_PICTURES, text, {"unexplained": pictures}))
    what, check = "variance", "light and background, and what the other pictures do not show"
    if film is not None:
        what, check = "motion", "start time and frame rate, and what differs between the films"
        what_to_do = (
            "Compare film and fit side by side: check scale, camera, frame rate, held nodes, "
            "contacts, the kind of body, and the bounds."
        )
        left = (
            f"The fit leaves {percent(film.unexplained)} of the motion unexplained (at "
            f"most {percent(unexplained)} is accepted). {what_to_do}"
        )
        first = (
            f"The first frame differs by {film.first:.2g} times the motion in the film (at most "
            f"{FIRST:g} is accepted). Check camera, pose, colours, light and background first."
        )
        predicted = (
            f"The fit of the first frames leaves {percent(film.predicted_unexplained or 0.0)} of "
            f"the motion unexplained in the {film.held_back} frames held back (at most "
            f"{percent(predicted_most)} is accepted). {what_to_do}"
        )
        numbers = film.to_dict()
        checks += [
            (film.unexplained, unexplained, left, numbers),
            (film.first, FIRST, first, numbers),
            (film.predicted_unexplained, predicted_most, predicted, numbers),
        ]
    for name, missed in evidence.predictions.items():
        text = (
            f"`{name}` was kept from the search, and the answer leaves {percent(missed)} of its "
            f"{what} unexplained (at most {percent(PREDICTED)} is accepted). Check its camera, "
            f"{check}."
        )
        checks.append((missed, PREDICTED, text, {"observation": name, "unexplained": missed}))
    if evidence.bent is not None:
        label, far = evidence.bent
        text = (
            f"The fit moves {label} by {far:.3g} of its standard deviations from where the first "
            f"frame shows it (at most {BENT:g} are accepted), to make up for something else. Check "
            "sizes, frame rate, masses, held nodes, start velocity and the kind of body, then the "
            "camera."
        )
        checks.append((far, BENT, text, {"parameter": label, "deviations": far}))
    if evidence.strayed is not None:
        label, far = evidence.strayed
        text = (
            f"{label} ends {far:.3g} standard deviations from what the scene declares (at most "
            f"{STRAYED:g} are accepted), to make up for something else. Check sizes, frame rate, "
            "masses, the mesh and how fine it is, and the kind of body, then the camera."
        )
        checks.append((far, STRAYED, text, {"parameter": label, "deviations": far}))
    if evidence.size_warning:
        checks.append((np.inf, 0.0, evidence.size_warning, {}))
    for left, most, text, numbers in checks:
        if left is not None and left > most:
            return Verdict(Kind.DOES_NOT_EXPLAIN, text, {**numbers, "threshold": most})
    return None


def _lacks_term(evidence: Evidence, missing: MissingTerm) -> Check:
    """Return how far a missing term changes the answers, in their half-widths without it."""
    counted = np.abs(missing.change)
    half = np.full_like(counted, np.inf)
    if evidence.has_intervals and evidence.intervals is not None:
        half = np.sqrt(np.maximum(np.square(evidence.intervals.half_width) - counted**2, 0.0))
    chosen = evidence.components
    worst = max(chosen, key=lambda i: counted[i] / max(half[i], 1e-300))
    before = evidence.parameters.natural(evidence.theta)[worst]
    after = evidence.parameters.natural(evidence.theta + missing.change)[worst]
    value = ", ".join(f"{number:.3g}" for number in np.ravel(missing.value))
    text = (
        f"One more number explains what is left: with {missing.path} = {value}"
        f"{f' {missing.unit}'.rstrip(' -')} the answer leaves {percent(missing.left_with)} of the "
        f"motion unexplained instead of {percent(missing.left)}, and "
        f"{evidence.parameters.labels[worst]} would be {after:.4g} instead of {before:.4g}. Add it "
        f"under [free] of the scene file: {missing.line}"
    )
    far = float(counted[worst] / max(half[worst], 1e-300))
    return far, 1.0, text, missing.to_dict()


def _several_answers(evidence: Evidence) -> Verdict | None:
    """Return the verdict where another basin with other values is not clearly worse."""
    value = evidence.parameters.natural(evidence.theta)
    for basin in sorted(evidence.basins, key=lambda basin: basin.loss):
        if not np.isfinite(basin.loss) or not (differ := differences(evidence, basin, OTHER)):
            continue
        ratio = how_much_worse(evidence, basin)
        if ratio > WORSE:
            continue
        other = evidence.parameters.natural(basin.theta)
        named = ", ".join(
            f"{evidence.parameters.labels[i]} = {other[i]:.4g} instead of {value[i]:.4g}"
            for i in differ[:SHOWN]
        )
        words = _words(evidence)
        return Verdict(
            Kind.SEVERAL_ANSWERS,
            f"Another optimum explains the {words.seen} as well (it leaves {ratio:.3g} times as "
            f"much): {named}. Narrow the bounds to exclude one of them, or {words.more}.",
            {"ratio": ratio, "threshold": WORSE, "loss": evidence.loss, "other_loss": basin.loss},
        )
    return None


def at_a_bound(evidence: Evidence) -> Verdict | None:
    """Return the verdict where a bound stops the search in some parameter.

    Colours may be black or white: nothing lies beyond.
    """
    parameters, theta = evidence.parameters, evidence.theta
    left = None if evidence.explained is None else evidence.explained.unexplained
    first = also = ""
    if left is not None and left > UNEXPLAINED:
        accepted = f"at most {percent(UNEXPLAINED)} is accepted"
        first = f"The fit is bad: {percent(left)} of the motion is unexplained ({accepted}). "
    elif left is not None:
        also = f" {percent(left)} of the motion is unexplained there."
    width = parameters.upper - parameters.lower
    near = NEAR_BOUND * np.where(np.isfinite(width), width, 1.0)
    slope = np.nan_to_num(evidence.slope)
    for end, distance, is_out in (
        ("lower", theta - parameters.lower, slope >= 0.0),
        ("upper", parameters.upper - theta, slope <= 0.0),
    ):
        for i in np.flatnonzero((distance <= near) & is_out):
            label = parameters.labels[i]
            if label.partition("[")[0].endswith(COLORS):
                continue
            return Verdict(
                Kind.AT_A_BOUND,
                f"{first}The {end} bound of {label} stops the search at "
                f"{parameters.natural(theta)[i]:.4g}: the optimum lies at the bound or beyond."
                f"{also} Widen the bound if values beyond it are possible, or check what is held "
                "fixed.",
                {"parameter": label, "bound": end, "slope": float(slope[i]), "unexplained": left},
            )
    return None


def _is_too_coarse(evidence: Evidence) -> Verdict | None:
    """Return the verdict of an answer that a finer mesh or step, other contacts or laws change."""
    value = evidence.parameters.natural(evidence.theta)
    scale = np.maximum(value_scale(evidence.parameters, evidence.theta), 1e-300)
    for source, step in evidence.refinements.items():
        relative = (evidence.parameters.natural(evidence.theta + step) - value) / scale
        changed = sorted(evidence.components, key=lambda i: -abs(relative[i]))
        changed = [i for i in changed if abs(relative[i]) > COARSE][:SHOWN]
        if not changed:
            continue
        named = " and ".join(
            f"{evidence.parameters.labels[i]} would be {percent(abs(relative[i]))} "
            f"{'larger' if relative[i] > 0.0 else 'smaller'}"
            for i in changed
        )
        finer, what_to_do = REFINEMENTS[source]
        return Verdict(
            Kind.NOT_DETERMINED,
            f"{finer} {named} (at most {percent(COARSE)} is accepted), {what_to_do}",
            {"parameter": evidence.parameters.labels[changed[0]], "threshold": COARSE,
             "relative_change": float(relative[changed[0]])},
        )  # fmt: skip
    return None


def _not_determined(evidence: Evidence) -> Verdict | None:
    """Return the verdict where the interval with model error of an answer is too wide."""
    if evidence.intervals is None:
        return None
    if evidence.intervals.reason:
        weights = evidence.intervals.worst_direction(evidence.parameters.theta_labels)
        if not weights and not evidence.needs_intervals:
            return None
        along = (
            f" The combination determined worst is {combination(weights)}. Fix one of these, or "
            f"{_words(evidence).better}."
            if weights
            else " Leave fewer parameters free."
        )
        return Verdict(
            Kind.NOT_DETERMINED,
            f"No intervals: {evidence.intervals.reason}.{along}",
            {"worst_direction": weights},
        )
    widths = relative_half_widths(evidence)
    chosen = evidence.components
    worst = max(chosen, key=lambda i: widths[i])
    if widths[worst] <= WIDE:
        return None
    weights = worst_combination(evidence)
    label = evidence.parameters.labels[worst]
    along = (
        f" The combination determined worst is {combination(weights)}." if len(chosen) > 1 else ""
    )
    what_to_do = f"Fix a value that you know, or {_words(evidence).better}."
    if advice := _advice(evidence, worst):
        along, what_to_do = "", advice
    return Verdict(
        Kind.NOT_DETERMINED,
        f"The 95 % interval of {label} with model error is ± "
        f"{_width(evidence, worst, widths[worst])} (at most ± {_width(evidence, worst, WIDE)} "
        f"is accepted).{along} {what_to_do}",
        {
            "parameter": label,
            "relative_half_width": float(min(widths[worst], 1e6)),
            "threshold": WIDE,
            "worst_direction": weights,
        },
    )


def _misses_truth(evidence: Evidence) -> Verdict | None:
    """Return the verdict of a synthetic study whose answer is far from the truth all the same."""
    if evidence.truth is None:
        return None
    value = evidence.parameters.natural(evidence.theta)
    off = np.abs(value - evidence.truth) / np.maximum(np.abs(evidence.truth), 1e-300)
    off = np.where(is_log(evidence.parameters), off, 0.0)
    worst = max(evidence.components, key=lambda i: off[i])
    if off[worst] <= WIDE:
        return None
    label, words = evidence.parameters.labels[worst], _words(evidence)
    return Verdict(
        Kind.NOT_DETERMINED,
        f"{label} is {percent(off[worst])} off the value that the {words.seen} was made with. "
        f"{words.better.capitalize()}.",
        {"parameter": label, "relative_error": float(off[worst]), "threshold": WIDE},
    )


def _found(evidence: Evidence) -> Verdict:
    """Return the verdict of an answer against which nothing was found."""
    numbers: dict[str, Any] = {}
    parts, quote = [], "Cite the interval with model error: the other one counts noise alone."
    if evidence.has_intervals:
        widths = relative_half_widths(evidence)
        worst = max(evidence.components, key=lambda i: widths[i])
        numbers["relative_half_width"] = float(widths[worst])
        label = evidence.parameters.labels[worst]
        parts.append(
            f"the widest 95 % interval with model error is that of {label}, "
            f"± {_width(evidence, worst, widths[worst])}"
        )
        quote = quote if widths[worst] >= NARROWEST else ""
        quote = f"{quote} {_advice(evidence, worst)}".strip()
    if evidence.explained is not None:
        numbers |= evidence.explained.to_dict()
        parts.append(f"{percent(evidence.explained.unexplained)} of the motion is unexplained")
        if (left := evidence.explained.predicted_unexplained) is not None:
            parts.append(f"{percent(left)} in the frames that were held back")
    if evidence.unexplained_pictures is not None:
        numbers["unexplained"] = evidence.unexplained_pictures
        parts.append(
            f"{percent(evidence.unexplained_pictures)} of the pictures' variance is unexplained"
        )
        parts += [
            f"{percent(left)} of `{name}`, which was kept from the search"
            for name, left in evidence.predictions.items()
        ]
    if evidence.trial is not None:
        numbers["widening"] = evidence.trial.to_dict()["widening"]
    if evidence.is_without_gradients:
        numbers["without_gradients"] = True
        parts.append("found without gradients, which are not the slope of the loss here")
    text = "; ".join(parts) or f"the loss is {evidence.loss:.2e}"
    if not evidence.has_intervals and evidence.unexplained_pictures is not None:
        quote = "There are no intervals: the pictures are all that is judged."
        if not evidence.predictions:
            quote += " Keep one from the search to see whether it is predicted (`validate = true`)."
    return Verdict(Kind.FOUND, f"{text[0].upper()}{text[1:]}. {quote}".rstrip(), numbers)


def _advice(evidence: Evidence, i: int) -> str:
    """Return how the interval of number i would narrow, if most of it was declared."""
    budget, label = evidence.budget, evidence.parameters.labels[i]
    if budget is None or label not in budget.labels:
        return ""
    return budget.advice(budget.labels.index(label), MOSTLY)


def _words(evidence: Evidence) -> Words:
    return words_for(
        moves=evidence.unexplained_pictures is None, is_of_forces=evidence.is_of_forces
    )


def _width(evidence: Evidence, i: int, relative: float) -> str:
    scale = float(value_scale(evidence.parameters, evidence.theta)[i])
    half = float(relative_half_widths(evidence)[i]) * scale
    if half < abs(float(evidence.parameters.natural(evidence.theta)[i])):
        return percent(relative)
    unit = str(evidence.parameters.each([free.unit for free in evidence.parameters.free])[i])
    return f"{relative * scale:.2g} {unit.strip('-')}".rstrip()


def combination(weights: dict[str, float]) -> str:
    """Return a direction in words: "0.71 log a - 0.71 log b"."""
    text = " ".join(f"{'-' if w < 0.0 else '+'} {abs(w):.2f} {name}" for name, w in weights.items())
    return text.removeprefix("+ ")
