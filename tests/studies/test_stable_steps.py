"""A step far above the stable one is warned of before anything runs, a sound one is not."""

import dataclasses
import re

import numpy as np
import pytest

from adjsim.model import Model
from studies import config, identify, running
from studies.motion import Motion
from studies.registry import STUDIES, RunOptions
from studies.stable_steps import FAR, advice_on_motion, advice_on_steps, stable_dt, steps_at
from tests.studies.toy_beam import toy_fit


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


SMALL = ["image.downsample=8", "time.frames=2", "appearance.fit=false"]


def test_a_step_that_hardly_carries_the_start_is_warned_of_where_bounds_allow_more():
    def told(*overrides):
        settings = config.resolve("identify", [*SMALL, *overrides]).values
        job = identify.prepare(settings, RunOptions())
        return advice_on_steps(job), job.problem

    quiet, problem = told()
    assert quiet is None
    stable = stable_dt(problem, problem.parameters.start)
    tight = f"time.dt={0.9 * stable}"
    line, problem = told(tight)
    assert "leaves the search little room" in line
    (carried,) = re.findall(r"carries body.mu only to (\S+), and the bounds allow 1e\+07", line)
    steps = steps_at(problem, np.log([float(carried)]))
    assert steps["stable_dt"] == pytest.approx(steps["dt"], rel=1e-2)  # of three digits
    assert steps["dt"] == problem.motion.dt
    assert told(tight, "bounds.mu=[1e4, 3.1e5]")[0] is None
    assert told(tight, 'free.parameters=["velocity"]')[0] is None
    assert told(f"time.dt={0.5 * stable}")[0] is None
    assert told(f"time.dt={1.3 * stable}", 'free.parameters=["velocity"]')[0] is None
    assert "carries body.mu only to 3e+05, and" in told(f"time.dt={1.3 * stable}")[0]
    (label,) = re.findall(r"carries (\S+) only to", told(tight, 'free.parameters=["density"]')[0])
    assert label == "density"


def test_it_is_said_before_the_run_folder_is_made(tmp_path, capsys):
    small = [*SMALL, "time.dt=2e-3"]
    (tmp_path / "taken").touch()
    with pytest.raises(ValueError, match="is a file"):
        running.start("identify", small, tmp_path / "taken", {})
    assert "warning" not in capsys.readouterr().err
    running.start("identify", small, tmp_path / "run", {})
    assert "warning: `time.dt` is too large: a step is 0.00198 s" in capsys.readouterr().err
