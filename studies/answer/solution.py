"""The answer of a scene with what it is worth, as searches return it and results are written."""

from dataclasses import dataclass, field
from typing import Any

from studies.answer.budget import Budget
from studies.answer.intervals import Intervals
from studies.answer.verdict import Verdict
from studies.optimizers.problem import Result
from studies.problem.problem import SceneProblem
from studies.search.coarse import SearchResult


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of a scene and what it is worth.

    `problem` is of all that was observed, with the time step of the answer; its parameters are
    answers and cameras. `validation` has by name which part of the motion of observations with
    `validate` was left before they were fitted, None where the simulation blew up.
    """

    problem: SceneProblem
    result: Result  # of the last local search
    search: SearchResult  # for the answers alone, on frames that are not held back
    searched: SceneProblem  # the problem of `search`
    intervals: Intervals
    verdict: Verdict
    evaluations: int
    validation: dict[str, Any] = field(default_factory=dict)
    logs: tuple[str, ...] = ()  # of the local searches after `search`, one after the other
    notes: list[str] = field(default_factory=list)  # what else is to be said, in sentences
    verdicts: dict[str, str] = field(default_factory=dict)  # kinds, of every number alone, by label
    budget: Budget | None = None  # what the intervals are made of; None without any
    metrics: list[dict[str, Any]] = field(default_factory=list)  # of `studies.fitting.metrics`
    control: dict[str, float] | None = None  # how near a control ends to its goal
