"""The verdict on a control: whether the goal is reached.

Two numbers are held against a bar each: the cover of the last picture and the target's, and the
distance of the centre of mass from that of the goal. Whoever is told where the centre shall be is
judged by the distance alone, since nothing says how the body shall be turned. Of a picture that is
no simulation the centre is not known.

The bars are those of `studies.scene.declared.Goal`. By default nine tenths of what the two pictures
show together must be covered: a walker that covers less stands with a leg beside the picture's. The
centre must be nearer than a twentieth of the size of the bodies, half of what they may be off in
the picture then.

Tests: `tests/studies/answer/test_reached.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from studies.answer.verdict import Kind, Verdict
from studies.scene.declared import Goal
from studies.search.optimizers.problem import Result, Status


NEAR = 0.05  # of the size of the bodies


@dataclass(frozen=True)
class _Held:
    """A measure and its bar: its name, how near it is in words, and whether it is held."""

    name: str
    text: str
    is_held: bool


def judge_control(
    goal: Goal, size: float, measured: Mapping[str, float], result: Result, *, falls: bool
) -> Verdict:
    """Return the verdict on the end of a search for a control.

    Parameters
    ----------
    goal : Goal
    size : float
        Of the bodies [m].
    measured : mapping of str to float
        Some of cover [-], distance and gain [m].
    result : Result
        How the search ended.
    falls : bool
        Whether the loss still fell at the end.
    """
    if not np.isfinite(result.loss):
        return Verdict(
            Kind.NOT_FINISHED,
            "The loss is not finite: the simulation blew up. Lower `world.dt`, or start from "
            "weaker muscles.",
            {"status": result.status.name},
        )
    bars = _held(goal, size, measured)
    numbers = {**measured, "thresholds": bars_of(goal, size)}
    text = "; ".join(one.text for one in bars)
    text = f"{text[:1].upper()}{text[1:]}."
    if bars and all(one.is_held for one in bars):
        return Verdict(Kind.REACHED, text, numbers)
    if not bars:
        text = "Nothing says how near the goal is: there is no picture of it."
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


def bars_of(goal: Goal, size: float) -> dict[str, float]:
    """Return what counts, by name: of a search that is told states, the distance alone."""
    near = NEAR * size if goal.distance is None else goal.distance
    return {"distance": near} | ({} if goal.supervision == "states" else {"cover": goal.cover})


def _held(goal: Goal, size: float, measured: Mapping[str, float]) -> list[_Held]:
    """Return which bars are held, of those that were measured."""
    found, bars = [], bars_of(goal, size)
    if "cover" in measured and "cover" in bars:
        cover = measured["cover"]
        text = (
            f"the last picture covers {cover:.2f} of what it and the target show together (at "
            f"least {goal.cover:g} is asked)"
        )
        found.append(_Held("cover", text, cover >= goal.cover))
    if "distance" in measured:
        near, distance = bars["distance"], measured["distance"]
        text = (
            f"the centre of mass ends {distance:.2g} m from that of the goal (at most {near:.2g} m)"
        )
        found.append(_Held("distance", text, distance <= near))
    return found
