"""How numbers of an outcome are told."""

from types import SimpleNamespace

import numpy as np

from studies.fitting.fit import parameter_rows, summary
from studies.fitting.solve import _rivals
from studies.problem.parameters import Identity, Parameters
from studies.scene.declared import Search
from tests.studies.problem.free import block


def test_the_terminal_says_the_verdict_first_and_both_intervals():
    row = {
        "name": "bar.k", "unit": "N/m", "count": 1, "estimate": 6.0,
        "interval": [5.5, 6.5], "pixel_interval": [5.9, 6.1],
    }  # fmt: skip
    result = {
        "verdict": {"kind": "at a bound", "reason": "The lower bound of bar.k stops the search."},
        "offset": {"share": 0.0}, "parameters": [row], "loss": 1e-3, "evaluations": 7,
        "status": "MAX_EVALUATIONS", "message": "The evaluations are spent.", "basins": [],
        "findings": [], "coverage": None,
    }  # fmt: skip
    lines = summary(result, {"verdict": "not made (--no-certificate)", "points": {}})
    assert lines[0] == "verdict: at a bound. The lower bound of bar.k stops the search."
    both = "5.50 to 6.50, ± 8.3 % (noise only: 5.900 to 6.100, ± 1.7 %)"
    assert f"with model error {both}" in lines[1]
    assert "(max evaluations: The evaluations are spent.)" in lines[2]
    assert lines[3:] == ["gradient certificate: not made (--no-certificate)"]


def test_many_values_whose_mean_stays_are_told_by_their_root_mean_square():
    parameters = Parameters([block("weights", Identity(), np.tile([1.0, -1.0], 50))])
    solved = SimpleNamespace(
        problem=SimpleNamespace(parameters=parameters),
        result=SimpleNamespace(theta=3.0 * parameters.start),
        spread=None,
    )
    (row,) = parameter_rows(solved, parameters.start, None)
    assert (row["count"], row["start"], row["estimate"]) == (100, 0.0, 0.0)
    assert (row["start_rms"], row["estimate_rms"]) == (1.0, 3.0)


def test_a_basin_that_overflows_over_all_frames_is_dropped_with_a_word(monkeypatch):
    def squares(problem, theta):
        return np.array([0.1, np.inf if theta[0] > 1.5 else 0.2])

    monkeypatch.setattr("studies.fitting.judging.residual_squares", squares)
    whole = SimpleNamespace(parameters=SimpleNamespace(size=1), staged=(0,))
    whole.with_steps_for = lambda theta: whole
    basins = [
        SimpleNamespace(number=k, theta=np.array([float(k)]), loss=loss, is_searched=False)
        for k, loss in enumerate((1.0, 2.0, 3.0, np.inf))
    ]
    search, said = SimpleNamespace(basins=basins, best=basins[0]), []
    local = SimpleNamespace(how=Search(), progress=SimpleNamespace(say=said.append))
    answer = SimpleNamespace(theta=np.zeros(1))
    assert [rival.loss for rival in _rivals(whole, search, answer, local, staged=(0,))] == [2.0]
    dropped = "is dropped: its loss over all frames is not finite"
    assert said == [f"basin 3 {dropped}", f"basin 4 {dropped}"]
