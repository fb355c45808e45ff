"""The verdict on a control: whether the goal is reached.

Two numbers are held against a bar of `studies.scene.declared.Goal` each: the cover of the last
picture and the target's, and the distance of the centre of mass from that of the goal. A search
that is told states is judged by the distance alone, since nothing says how the body shall be
turned. Of a picture that is no simulation the centre is not known. A goal that is meant to be out
of reach has `gain`: how much nearer the centre of mass must end, which alone is the bar.
"""

from collections.abc import Mapping

import numpy as np

from studies.answer.verdict import Kind, Verdict
from studies.optimizers.problem import Result, Status
from studies.scene.declared import Goal


NEAR = 0.05  # of the size of the bodies


def judge_control(
    goal: Goal, size: float, measured: Mapping[str, float], result: Result, *, falls: bool
) -> Verdict:
    """Return the verdict on the end of a search for a control.

    `size` is that of the bodies [m], `measured` has some of cover [-], distance and gain [m], and
    `falls` says whether the loss still fell at the end.
    """
    if not np.isfinite(result.loss):
        return Verdict(
            Kind.NOT_FINISHED,
            "The loss is not finite: the simulation blew up. Lower `world.dt`, or start from "
            "weaker muscles.",
            {"status": result.status.name},
        )
    bars = _held(goal, size, measured)
    numbers = {**measured, "thresholds": _bars_of(goal, size)}
    text = "; ".join(words for words, _ in bars)
    text = f"{text[:1].upper()}{text[1:]}."
    if bars and all(is_held for _, is_held in bars):
        return Verdict(Kind.REACHED, text, numbers)
    if not bars:
        text = "Nothing says how near the goal is: "
        text += "there is no picture of it." if goal.gain is None else "its centre is not known."
    if result.status is Status.MAX_EVALUATIONS and falls:
        return Verdict(
            Kind.NOT_FINISHED,
            f"{text} The evaluations are spent while the loss still falls. Allow more of them "
            "(`search.max_evaluations`).",
            {**numbers, "status": result.status.name},
        )
    return Verdict(
        Kind.NOT_REACHED,
        f"{text} The search goes no further from here. Begin elsewhere (`--seed`), let coarse "
        "levels lead (`search.growth` above 1), or give more time or stronger muscles.",
        numbers,
    )


def _bars_of(goal: Goal, size: float) -> dict[str, float]:
    """Return what counts, by name: the gain, or distance and, unless told states, cover."""
    if goal.gain is not None:
        return {"gain": goal.gain}
    near = NEAR * size if goal.distance is None else goal.distance
    return {"distance": near} | ({} if goal.supervision == "states" else {"cover": goal.cover})


def _held(goal: Goal, size: float, measured: Mapping[str, float]) -> list[tuple[str, bool]]:
    """Return each measure that has a bar in words, and whether the bar is held."""
    bars = _bars_of(goal, size)
    cover, distance, gain = (measured.get(name) for name in ("cover", "distance", "gain"))
    measures = []
    if gain is not None and "gain" in bars:
        text = f"the centre of mass ends {gain:.2g} m nearer to the goal than it begins"
        asked = f"at least {bars['gain']:.2g} m is asked of a goal that is meant to be out of reach"
        measures.append((f"{text} ({asked})", gain >= bars["gain"]))
    if cover is not None and "cover" in bars:
        text = f"the last picture covers {cover:.2f} of what it and the target show together"
        measures.append((f"{text} (at least {goal.cover:g} is asked)", cover >= goal.cover))
    if distance is not None and "distance" in bars:
        near = bars["distance"]
        text = f"the centre of mass ends {distance:.2g} m from that of the goal"
        measures.append((f"{text} (at most {near:.2g} m)", distance <= near))
    return measures
