"""Several starts: each with its log, the best one counts, a good end spares the others."""

import io

import numpy as np
import pytest
from rich.console import Console

from studies.errors import StudyError
from studies.optimizers.evaluations import read_log
from studies.progress import EvaluationProgress
from studies.runs.folder import RunFolder
from studies.search.local import log_names, make_search, read_search, search
from tests.studies.toy import Decay


TABLE = {"method": "gauss-newton", "max_evaluations": 60, "tolerance": 1e-9}


class Free:
    """Parameters of the toy: theta itself, in a box."""

    start = np.array([1.9, 1.9, -1.9])
    lower, upper = np.full(3, -2.0), np.full(3, 2.0)


class Toy(Decay):
    parameters = Free()


def noisy():
    return Toy(noise=0.01)  # a perfect fit would end the search at the first start


def quiet():
    return EvaluationProgress(60, Console(file=io.StringIO()))


def run(tmp_path, name, problem=None, progress=None, **table):
    folder = RunFolder.create(tmp_path / name)
    how = make_search({**TABLE, **table})
    return folder, search(problem or noisy(), how, folder, progress or quiet(), seed=(3, 0))


def test_every_start_has_its_log_and_the_best_one_counts(tmp_path):
    folder, found = run(tmp_path, "all", starts=3)
    assert len(found.all) == 3
    assert found.best.loss == min(result.loss for result in found.all)
    assert found.evaluations == sum(result.evaluations for result in found.all)
    for k, result in enumerate(found.all):
        assert read_log(folder.file(log_names(k, 1)[0]))[-1].spent == result.evaluations


class Staged(Toy):
    """Notes the stages that it is asked for."""

    def __init__(self):
        super().__init__(noise=0.01)
        self.asked = []

    def at_stage(self, stage):
        self.asked.append(stage)
        return self

    def name_of_stage(self, stage):
        return f"{stage:.0%}"


def test_the_second_start_is_the_first_with_finer_stages(tmp_path):
    problem = Staged()
    finer, coarse = [0.2, 0.4, 0.6, 0.8, 1.0], [0.5, 1.0]
    folder, found = run(tmp_path, "finer", problem, starts=3, stages=coarse, finer=finer)
    assert problem.asked == [0.5, 0.2, 0.4, 0.6, 0.8, 0.5]
    assert [len(names) for names in found.logs] == [2, 5, 2]
    firsts = [read_log(folder.file(names[0]))[0].theta for names in found.logs]
    assert np.array_equal(firsts[0], Free.start)
    assert np.array_equal(firsts[1], Free.start)
    assert not np.array_equal(firsts[2], Free.start)
    with pytest.raises(StudyError, match=r"`optimizer.finer` must be parts of the video that grow"):
        make_search({**TABLE, "finer": [0.5, 0.2]})


def test_every_evaluation_is_logged_under_its_stage_and_shown_with_it(tmp_path):
    out = io.StringIO()
    progress = EvaluationProgress(60, Console(file=out))
    folder, found = run(tmp_path, "named", Staged(), progress, stages=[0.5, 1.0])
    log = read_search(folder, found.logs[0])
    first, last = (read_log(folder.file(name)) for name in found.logs[0])
    assert [one.stage for one in log] == ["1/2: 50%"] * len(first) + ["2/2: 100%"] * len(last)
    assert np.array_equal(last[0].theta, min(first, key=lambda one: one.loss).theta)
    ends = {one.stage: one.spent for one in log}
    assert list(ends.items()) == [
        ("1/2: 50%", first[-1].spent),
        ("2/2: 100%", found.evaluations),
    ]
    assert out.getvalue().startswith("stage 1/2: 50%, evaluation 1/60")


def test_a_log_of_one_stage_does_not_name_it(tmp_path):
    folder, found = run(tmp_path, "lone")
    assert '"stage"' not in folder.file(found.logs[0][0]).read_text()


def test_a_search_killed_in_its_first_stage_is_resumed_to_the_same_bits(tmp_path):
    folder, found = run(tmp_path, "whole", Staged(), stages=[0.5, 1.0])
    first, last = (folder.file(name) for name in found.logs[0])
    numbers = [(one.theta.tolist(), one.loss, one.stage) for one in read_log(last)]
    first.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:2]) + b'{"stage"')
    last.unlink()
    how = make_search({**TABLE, "stages": [0.5, 1.0]})
    again = search(Staged(), how, folder, quiet(), seed=(3, 0))
    assert np.array_equal(again.best.theta, found.best.theta)
    assert [(one.theta.tolist(), one.loss, one.stage) for one in read_log(last)] == numbers


def test_a_loss_that_is_low_enough_spares_the_other_starts_and_says_so(tmp_path):
    out = io.StringIO()
    progress = EvaluationProgress(60, Console(file=out))
    _, found = run(tmp_path, "spared", Toy(), progress, starts=5, enough=1e-12)
    assert len(found.all) < 5
    last = out.getvalue().splitlines()[-1]
    assert last.startswith(f"start {len(found.all)}/5 ended at the loss ")
    left = 5 - len(found.all)
    assert "below `optimizer.enough` = 1e-12 times that at the given start" in last
    assert last.endswith(f"the other {left} starts are not needed")
    assert found.best.loss <= 1e-12 * Toy().loss_and_gradient(Free.start)[0]


def test_a_resumed_search_answers_from_its_logs(tmp_path):
    folder, first = run(tmp_path, "resumed", starts=3)
    cut = folder.file(log_names(1, 1)[0])
    lines = cut.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:2]))
    folder.file(log_names(2, 1)[0]).unlink()
    again = search(noisy(), make_search({**TABLE, "starts": 3}), folder, quiet(), seed=(3, 0))
    for a, b in zip(first.all, again.all, strict=True):
        assert a.loss == b.loss
        assert np.array_equal(a.theta, b.theta)


def test_starts_need_bounds_to_be_drawn_in(tmp_path):
    class Unbounded(Free):
        upper = np.full(3, np.inf)

    problem = Toy()
    problem.parameters = Unbounded()
    with pytest.raises(StudyError, match=r"`optimizer.starts` above 1 needs finite bounds"):
        run(tmp_path, "unbounded", problem, starts=2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"starts": 0}, "`optimizer.starts` must be positive"),
        ({"enough": -1.0}, "`optimizer.enough` must not be negative"),
    ],
)
def test_a_bad_setting_is_named(table, message):
    with pytest.raises(ValueError, match=message):
        make_search({**TABLE, **table})
