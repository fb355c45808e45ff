import numpy as np
import pytest

from studies.answer.reached import judge_control
from studies.optimizers.problem import Result, Status
from studies.scene.declared import Goal


def judged(goal=None, status=Status.CONVERGED, *, falls=False, loss=1.0, **measured):
    result = Result(np.zeros(1), loss, status, 5)
    return judge_control(goal or Goal(), 2.0, measured, result, falls=falls)


def test_a_goal_is_reached_where_all_bars_are_held():
    verdict = judged(cover=0.93, distance=0.09, gain=1.0)
    assert verdict.kind == "reached"
    assert verdict.is_found
    assert "0.93" in verdict.reason
    assert "0.09 m" in verdict.reason
    assert verdict.numbers["thresholds"] == {"distance": 0.1, "cover": 0.9}
    assert judged(cover=0.93).kind == "reached"  # a picture of one's own has no centre


@pytest.mark.parametrize(
    "measured", [{"cover": 0.89, "distance": 0.0}, {"cover": 1.0, "distance": 0.11}]
)
def test_a_goal_that_is_not_reached_is_not_green(measured):
    verdict = judged(**measured)
    assert verdict.kind == "not reached"
    assert not verdict.is_found
    assert judged(status=Status.MAX_EVALUATIONS, falls=True, **measured).kind == (
        "search not finished"
    )
    assert judged(status=Status.MAX_EVALUATIONS, **measured).kind == "not reached"


def test_bars_are_those_of_the_goal():
    strict = Goal(cover=0.95, distance=0.01)
    assert judged(strict, cover=0.96, distance=0.009).kind == "reached"
    assert judged(strict, cover=0.94, distance=0.009).kind == "not reached"
    assert judged(strict, cover=0.96, distance=0.02).kind == "not reached"


def test_who_is_told_states_is_judged_by_the_distance_alone():
    assert judged(Goal(supervision="states"), cover=0.1, distance=0.05).kind == "reached"


def test_a_goal_that_is_meant_to_be_out_of_reach_is_judged_by_the_gain_alone():
    far = Goal(gain=0.6)
    verdict = judged(far, cover=0.1, distance=1.3, gain=0.7)
    assert verdict.kind == "reached"
    assert "0.7 m nearer" in verdict.reason
    assert "out of reach" in verdict.reason
    assert verdict.numbers["thresholds"] == {"gain": 0.6}
    assert judged(far, cover=0.1, distance=1.5, gain=0.5).kind == "not reached"
    assert judged(far, cover=0.95).kind == "not reached"  # of a picture no gain is known
    assert "centre is not known" in judged(far, cover=0.95).reason


def test_what_blew_up_or_shows_nothing_is_not_reached():
    assert judged(loss=np.inf, cover=1.0).kind == "search not finished"
    assert "there is no picture" in judged().reason
    assert judged().kind == "not reached"
