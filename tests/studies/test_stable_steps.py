"""A step far above the stable one is warned of before anything runs, a sound one is not."""

import dataclasses
import re

import pytest

from adjsim.model import Model
from studies import config, running
from studies.motion import Motion
from studies.registry import STUDIES, RunOptions
from studies.stable_steps import FAR, advice_on_motion, advice_on_steps, stable_dt, steps_at
from tests.studies.toy_beam import OVERRIDES, toy_fit


class Begun(Exception):  # noqa: N818 -- a way out, no error
    """The first motion of a study, in place of its rollout."""


@pytest.mark.parametrize(
    "study", [one for one in STUDIES.values() if one.moves], ids=lambda one: one.name
)
def test_no_study_is_warned_of(study, monkeypatch):
    def begin(motion):
        raise Begun(motion)

    monkeypatch.setattr(Motion, "run", begin)
    told = "nothing"
    try:
        told = advice_on_steps(study.prepare(config.resolve(study.name).values, RunOptions()))
    except Begun as begun:
        told = advice_on_motion(begun.args[0])
    assert told is None


def test_far_above_the_stable_step_it_is_said_what_to_set():
    fit = toy_fit()
    motion = fit.problem.motion_at(fit.problem.parameters.start)
    assert isinstance(motion.system, Model)
    stable = motion.system.stable_dt()
    assert advice_on_motion(dataclasses.replace(motion, dt=0.99 * FAR * stable)) is None
    told = advice_on_motion(dataclasses.replace(motion, dt=2.0 * stable))
    assert told.startswith(f"`time.dt` is too large: a step is {2.0 * stable:.3g} s, but ")
    assert f"Set it below {stable:.3g}, or" in told
    assert advice_on_steps(fit) is None
    assert advice_on_steps(object()) is None


def test_a_step_that_hardly_carries_the_start_is_warned_of_where_bounds_allow_more():
    def warned(part, *overrides):
        """Warn of steps that are this part of the stable one at the start."""
        start = toy_fit(*overrides).problem
        stable = stable_dt(start, start.parameters.start)
        fit = toy_fit(*overrides, f"time.dt={part * stable}", "time.frames=2")
        return advice_on_steps(fit), fit.problem

    line, problem = warned(0.9)
    assert "leaves the search little room" in line
    (carried,) = re.findall(r"carries beam.mu only to (\S+), and the bounds allow 1e\+06", line)
    at = problem.parameters.natural(problem.parameters.start)
    at[0] = float(carried)
    steps = steps_at(problem, problem.parameters.theta(at))
    assert steps["stable_dt"] == pytest.approx(steps["dt"], rel=1e-2)  # of three digits
    assert steps["dt"] == problem.motion.dt
    assert warned(0.8, "bounds.mu=[4e4, 6.1e5]", "bounds.lam=[6e4, 3.1e5]")[0] is None
    assert warned(0.45)[0] is None
    assert "carries beam.mu only to 6e+05, and" in warned(1.1)[0]


def test_it_is_said_before_the_run_folder_is_made(tmp_path, capsys):
    small = [*OVERRIDES, "time.dt=8e-3", "time.frames=2"]
    (tmp_path / "taken").touch()
    with pytest.raises(ValueError, match="is a file"):
        running.start("beam", small, tmp_path / "taken", {})
    assert "warning" not in capsys.readouterr().err
    running.start("beam", small, tmp_path / "run", {})
    assert "warning: `time.dt` is too large: a step is 0.008 s" in capsys.readouterr().err
