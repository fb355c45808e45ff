"""A robust search finds the truth from far away, and goes on where it was killed."""

import io
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from studies.optimizers.evaluations import Evaluator
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import SearchEnd, Stall, Status
from studies.problem.parameters import Parameters
from studies.runs.errors import NotFiniteError, StudyError
from studies.runs.folder import RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.declared import Search
from studies.search.coarse import read_search
from studies.search.robust import ROUGH, StepWatch, robust_search
from tests.studies.problem.free import positive_block
from tests.studies.search.toys import (
    AMPLITUDE,
    FREQUENCY,
    TIMES,
    Stepped,
    Swing,
    four_free,
    one_free,
    three_free,
    two_free,
    with_offset,
)


def run(path, problem, out=None, **how):
    folder = RunFolder.create(path)
    return folder, again(folder, problem, out, **how)


def again(folder, problem, out=None, **how):
    progress = EvaluationProgress(200, Console(file=out or io.StringIO(), width=200))
    return robust_search(problem, Search(**how), folder, progress, seed=(3,))


def frequency(theta):
    return float(np.exp(theta[0]))


@pytest.mark.parametrize("start", [2.1, 10.0, 42.0, 190.0])
def test_a_start_up_to_ten_times_off_finds_the_truth(tmp_path, start):
    problem = Swing(one_free(start), noise=0.1)
    plain = minimize(problem, problem.parameters.start, Search(method="gauss-newton"))
    _, result = run(tmp_path / "run", problem)
    assert abs(frequency(plain.theta) / FREQUENCY - 1.0) > 0.5  # it is hard
    assert abs(frequency(result.best.theta) / FREQUENCY - 1.0) < 1e-3
    assert result.best.status.is_finished
    assert result.best.loss < 0.011


@pytest.mark.parametrize("truth", np.geomspace(4.0, 50.0, 6))
@pytest.mark.parametrize("free", [one_free, two_free, three_free, four_free, with_offset])
def test_any_truth_is_found(tmp_path, free, truth):
    problem = Swing(free(12.0), noise=0.05, truth=truth)
    problem = replace(problem, answers=tuple(range(problem.parameters.size)))
    _, result = run(tmp_path / "run", problem)
    assert abs(frequency(result.best.theta) / truth - 1.0) < 1e-2
    if "a" in problem.parameters.paths:
        assert abs(np.exp(result.best.theta[1]) / AMPLITUDE - 1.0) < 0.05


def test_the_search_of_a_good_start_is_short_without_a_coarse_set(tmp_path):
    _, result = run(tmp_path / "run", Swing(one_free(20.5)), coarse=0)
    assert abs(frequency(result.best.theta) / FREQUENCY - 1.0) < 1e-6
    assert len(result.basins) == 1
    assert result.coarse.by_frame.shape == (1, len(TIMES))


@pytest.mark.parametrize(("axes", "stages"), [(None, 2), ((0,), 1), ((), 1)])
def test_a_start_from_tracks_without_a_coarse_set_is_searched_in_all_frames(tmp_path, axes, stages):
    problem, how = Swing(one_free(20.5)), Search(coarse=0, stages=(0.5, 1.0))
    folder, progress = RunFolder.create(tmp_path / "run"), EvaluationProgress(200, Console())
    search = robust_search(problem, how, folder, progress, axes=axes)
    assert abs(frequency(search.best.theta) / FREQUENCY - 1.0) < 1e-6
    assert len(search.coarse.frames) == stages


def test_basins_have_their_losses_and_the_best_one_is_first(tmp_path):
    problem = Swing(one_free(60.0), noise=0.1)
    _, result = run(tmp_path / "run", problem, basins=4)
    assert len(result.basins) > 1
    for basin in result.basins:
        loss = float(np.sum(problem.residuals(basin.theta) ** 2))
        np.testing.assert_allclose(basin.loss, loss, rtol=1e-12)
    assert result.basins[0].is_searched
    assert result.best.loss == min(basin.loss for basin in result.basins)
    starts = np.concatenate([basin.starts for basin in result.basins])
    assert all((result.coarse.points.points == start).all(axis=1).any() for start in starts)


def test_the_logs_hold_every_evaluation(tmp_path):
    folder, result = run(tmp_path / "run", Swing(one_free(60.0), noise=0.1))
    log = read_search(folder, result.basins[0].logs)
    n_stages = len(result.coarse.frames)
    assert log[-1].stage == f"{n_stages}/{n_stages}: 60 of 60 frames"
    assert result.best.theta.tolist() in [evaluation.theta.tolist() for evaluation in log]
    lines = [len(path.read_bytes().splitlines()) for path in folder.path.glob("iterations*.jsonl")]
    assert result.evaluations == sum(lines) + len(result.coarse.points.points)


@pytest.mark.parametrize("kept", [0, 1, 7])
def test_a_killed_search_goes_on_to_the_same_bits(tmp_path, kept):
    problem = Swing(two_free(60.0), noise=0.1, answers=(0, 1))
    folder, first = run(tmp_path / "run", problem)
    logs = sorted(folder.path.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    whole = {path.name: path.read_bytes().count(b"\n") for path in logs}
    for path in logs[kept + 1 :]:
        path.unlink()
    half = logs[kept].read_bytes()
    logs[kept].write_bytes(half[: len(half) // 2])  # a line is cut short
    problem.calls.clear()
    second = again(folder, problem)
    assert {path.name: path.read_bytes().count(b"\n") for path in logs} == whole
    assert not any(isinstance(call, list) for call in problem.calls)  # no coarse set again
    assert len(first.basins) == len(second.basins)
    for a, b in zip(first.basins, second.basins, strict=True):
        assert np.array_equal(a.theta, b.theta)
        assert (a.loss, a.status, a.evaluations, a.logs) == (
            b.loss,
            b.status,
            b.evaluations,
            b.logs,
        )
    assert first.evaluations == second.evaluations
    problem.calls.clear()
    again(folder, problem)
    assert not problem.calls


class Killed(Swing):
    """Its run is killed when the second group of points begins."""

    def losses_by_frame(self, thetas):
        if self.calls:
            raise KeyboardInterrupt
        return super().losses_by_frame(thetas)


def test_a_killed_coarse_set_keeps_the_points_that_are_done(tmp_path):
    _, whole = run(tmp_path / "whole", Swing(one_free(60.0)), coarse=40)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", Killed(one_free(60.0)), coarse=40)
    problem, out = Swing(one_free(60.0)), io.StringIO()
    rest = again(RunFolder(tmp_path / "run"), problem, out, coarse=40)
    assert np.array_equal(rest.coarse.by_frame, whole.coarse.by_frame)
    assert sum(len(call) for call in problem.calls if isinstance(call, list)) == 41 - 16
    assert "coarse set: evaluating points 17 to 32 of 41\n" in out.getvalue()


def test_files_of_another_search_are_refused(tmp_path):
    folder, _ = run(tmp_path / "run", Swing(one_free(60.0)))
    with pytest.raises(StudyError, match=r"`coarse.npz` in .* has other points than this search"):
        again(folder, Swing(one_free(50.0)))


def test_the_losses_of_stages_are_means_over_first_frames(tmp_path):
    problem = Swing(one_free(60.0))
    folder, result = run(tmp_path / "run", problem)
    stored = folder.read_npz("coarse.npz")
    assert np.array_equal(stored["losses_by_frame"], result.coarse.by_frame)
    assert stored["labels"].tolist() == ["w"]
    assert result.coarse.frames[-3:] == (18, 36, 60)
    theta = result.coarse.points.points[5]
    loss = float(np.sum(problem.at_stage(0.6).residuals(theta) ** 2))
    np.testing.assert_allclose(result.coarse.by_stage[-2, 5], loss)


class Blind(Swing):
    """Its first frames show nothing."""

    def differences(self, theta):
        return np.where(TIMES[: self.n_frames] < 0.8, 0.3, super().differences(theta))


def test_first_frames_that_show_nothing_do_no_harm(tmp_path):
    _, result = run(tmp_path / "run", Blind(one_free(24.0), truth=12.0), coarse=30)
    assert abs(frequency(result.best.theta) / 12.0 - 1.0) < 0.01
    assert result.coarse.frames == (18, 36, 60)  # no shorter stages are added
    assert result.basins[0].first_stage == 2


class Walled(Swing):
    """Its rollouts blow up where the frequency is high."""

    def differences(self, theta):
        if frequency(theta) > 50.0:
            raise NotFiniteError("blew up")
        return super().differences(theta)


def test_points_that_blow_up_are_left_alone(tmp_path):
    _, result = run(tmp_path / "run", Walled(one_free(40.0)))
    assert np.isinf(result.coarse.by_frame).any()
    assert abs(frequency(result.best.theta) / FREQUENCY - 1.0) < 1e-6
    assert all(frequency(basin.starts[0]) < 50.0 for basin in result.basins)


class LateWalled(Swing):
    """Its rollouts blow up where the frequency is high, after the first frames."""

    def differences(self, theta):
        if frequency(theta) > 30.0 and self.n_frames == len(TIMES):
            raise NotFiniteError("blew up")
        return super().differences(theta)

    def losses_by_frame(self, thetas):
        return np.stack([Swing.differences(self, theta) ** 2 for theta in thetas])


def test_a_basin_whose_loss_is_not_finite_is_dropped_with_a_word(tmp_path):
    out = io.StringIO()
    problem = LateWalled(one_free(60.0), noise=0.1)
    _, result = run(tmp_path / "run", problem, out, basins=6, coarse=60)
    assert abs(frequency(result.best.theta) / FREQUENCY - 1.0) < 1e-2
    assert all(np.isfinite(basin.loss) for basin in result.basins)
    assert "is dropped: its loss is not finite, since the simulation blows up" in out.getvalue()


def test_a_problem_that_blows_up_everywhere_says_so(tmp_path):
    problem = Walled(one_free(100.0, (60.0, 200.0)))
    _, result = run(tmp_path / "run", problem)
    assert result.best.status is Status.NOT_FINITE
    assert np.array_equal(result.best.theta, problem.parameters.start)


def test_a_search_that_leaves_its_stable_steps_goes_on_with_new_ones(tmp_path):
    problem = Stepped(one_free(3.0, (2.0, 40.0)), truth=15.0, longest_step=1.0, times=TIMES[:6])
    problem = replace(problem, dt=0.5 / 3.0)
    out = io.StringIO()
    _, result = run(tmp_path / "run", problem, out, coarse=0)
    assert abs(frequency(result.best.theta) / 15.0 - 1.0) < 1e-6
    assert "new time step" in out.getvalue()
    best = result.basins[0]
    assert any("-steps-2" in name for name in best.logs)
    stepped = problem.with_steps_for(best.step_theta)
    np.testing.assert_allclose(best.loss, np.sum(stepped.residuals(best.theta) ** 2), atol=1e-20)
    assert not stepped.steps_are_long(best.theta)


def test_a_search_goes_on_with_longer_steps_where_they_do(tmp_path):
    """The start needs ten times as many steps as the answer."""
    problem = Stepped(one_free(30.0, (2.0, 40.0)), truth=3.0, longest_step=1.0, times=TIMES[:6])
    problem = replace(problem, dt=0.5 / 30.0)
    there = problem.parameters.theta(np.array([10.0]))
    for theta, ends in ((problem.parameters.start, True), (there, True), (there, False)):
        watch = StepWatch(problem, EvaluationProgress(9), ends=ends)
        is_ended = theta is there and ends
        with pytest.raises(SearchEnd) if is_ended else nullcontext():
            Evaluator(problem, 9, callback=watch).residual(theta)
        assert watch.are_short is is_ended
    out = io.StringIO()
    folder, result = run(tmp_path / "run", problem, out, coarse=0)
    assert "new time step" in out.getvalue()
    best = result.basins[0]
    assert abs(frequency(result.best.theta) / 3.0 - 1.0) < 1e-6
    stepped = problem.with_steps_for(best.step_theta)
    assert stepped.dt > 5.0 * problem.dt
    assert not stepped.steps_are_short(best.theta)
    assert np.array_equal(again(folder, problem, coarse=0).best.theta, result.best.theta)


def test_an_answer_beyond_a_bound_ends_at_it(tmp_path):
    _, result = run(tmp_path / "run", Swing(one_free(40.0, (22.0, 200.0)), times=TIMES[:20]))
    np.testing.assert_allclose(frequency(result.best.theta), 22.0, rtol=1e-3)


def test_many_parameters_are_searched_with_gradients(tmp_path):
    parameters = Parameters([*one_free(24.0).free, positive_block("others", np.ones(50))])

    class Large(Swing):
        def residuals_and_jacobian(self, theta):
            raise AssertionError("a Jacobian of 51 columns")

        def loss_and_gradient(self, theta):
            loss, slope = Swing(one_free(24.0), self.times).loss_and_gradient(theta[:1])
            return loss + float(theta[1:] @ theta[1:]), np.append(slope, 2.0 * theta[1:])

    _, result = run(tmp_path / "run", Large(parameters, answers=(0,)))
    assert abs(frequency(result.best.theta) / FREQUENCY - 1.0) < 1e-3
    problem = Large(parameters, answers=tuple(range(51)))
    out = io.StringIO()
    run(tmp_path / "all", problem, out)
    assert "no coarse set: 51 components are free" in out.getvalue()


def test_what_happens_is_said(tmp_path):
    out = io.StringIO()
    run(tmp_path / "run", Swing(one_free(60.0)), out)
    assert "coarse set: evaluating points 1 to 14 of 14\n" in out.getvalue()
    assert "coarse set: 14 points, 3 basins\n" in out.getvalue()
    assert "basin 1/3, stage 3/5: 18 of 60 frames, evaluation 1/200" in out.getvalue()
    assert "is given up: its loss" in out.getvalue()


def test_stages_must_grow_to_the_whole_film(tmp_path):
    for stages in ((0.5,), (0.6, 0.3, 1.0)):
        with pytest.raises(StudyError, match=r"`search.stages` must be growing parts of the film"):
            run(tmp_path / str(len(stages)), Swing(one_free(20.0)), stages=stages)


@pytest.mark.parametrize("is_rough", [False, True])
def test_what_another_search_goes_on_from_ends_early(tmp_path, monkeypatch, is_rough):
    falls = {}

    def recorded(*args, stage, stall, **kwargs):
        falls.setdefault(stage[0] == stage[2], set()).add(stall.least_fall)
        return minimize(*args, stage=stage, stall=stall, **kwargs)

    monkeypatch.setattr("studies.search.robust.minimize", recorded)
    folder, progress = RunFolder.create(tmp_path / "run"), EvaluationProgress(200, Console())
    problem = Swing(two_free(60.0), noise=0.1)
    robust_search(problem, Search(), folder, progress, seed=(3,), is_rough=is_rough)
    assert falls == {False: {ROUGH.least_fall}, True: {(ROUGH if is_rough else Stall()).least_fall}}
