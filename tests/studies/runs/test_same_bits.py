"""The bits of a search do not depend on threads or cores, and `fit` resumes as the command does."""

import json
import os
import subprocess
import sys

import pytest

from studies.api import fit
from studies.problem.forward import simulate
from studies.runs.errors import StudyError
from tests.studies.fitting.test_running import write_scene
from tests.studies.problem.test_own import SCENE, TIMES, heights, problem


VARYING = ("seconds", "crc32")
SHORT = ("search.max_evaluations=12", "search.coarse=3", "search.basins=1")


def records(folder):
    """Return the logs of a run without the time that they took."""
    return {
        log.name: [
            {key: value for key, value in json.loads(line).items() if key not in VARYING}
            for line in log.read_text().splitlines()
        ]
        for log in sorted(folder.glob("*.jsonl"))
    }


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen")
def test_logs_are_equal_on_any_number_of_cores_and_threads(tmp_path):
    """Without the limit on threads of linear algebra most of these logs differ on two cores."""
    scene = write_scene(tmp_path)
    results = []
    for threads, kernels, cores in (("1", "1", 1), ("2", "1", 1), ("2", "2", 2)):
        out = tmp_path / f"{threads}-{kernels}-{cores}"
        command = [sys.executable, "-m", "tests.studies.run_adjsim", "run", str(scene), *SHORT]
        thread_counts = {"OPENBLAS_NUM_THREADS": threads, "NUMBA_NUM_THREADS": kernels}
        some = set(sorted(os.sched_getaffinity(0))[:cores])
        subprocess.run(
            [*command, "--no-certificate", "--out", str(out)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **thread_counts},
            preexec_fn=lambda some=some: os.sched_setaffinity(0, some),
            check=True,
            capture_output=True,
        )
        results.append((records(out), (out / "result.json").read_bytes()))
    assert len(results[0][0]) > 3
    assert results[0] == results[1] == results[2]


def test_a_fit_goes_on_in_its_folder_and_only_with_the_same_problem(tmp_path):
    target = heights(simulate(SCENE, TIMES, {"cube.E": 9e3}).surfaces)
    first = fit(problem(target), tmp_path / "run")
    logs = {log.name: log.read_bytes() for log in (tmp_path / "run").glob("*.jsonl")}
    assert logs
    (tmp_path / "run" / sorted(logs)[-1]).unlink()
    assert fit(problem(target), tmp_path / "run").values["cube.E"] == first.values["cube.E"]
    assert records(tmp_path / "run").keys() == logs.keys()
    for other, what in (
        (problem(target, weight=2.0), "`own.height.weight` was 1.0, is 2.0"),
        (problem(1.01 * target), "`own.height.functions` was"),
    ):
        with pytest.raises(StudyError, match=what):
            fit(other, tmp_path / "run")
    with pytest.raises(StudyError, match="`--seed` was 0, is 1"):
        fit(problem(target), tmp_path / "run", seed=1)
