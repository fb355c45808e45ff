import io
from dataclasses import replace

import numpy as np
from rich.console import Console

from studies.optimizers.evaluations import Evaluation
from studies.progress import EvaluationProgress


FIRST = Evaluation("gradient", np.zeros(1), 1.0, np.ones(1), None, {}, 1, 1, 60.0)


def test_the_time_left_does_not_count_the_compilation_of_the_first_evaluation():
    out = io.StringIO()
    progress = EvaluationProgress(11, Console(file=out, width=200))
    for evaluation in (FIRST, replace(FIRST, spent=2, seconds=61.0)):
        progress(evaluation)
    first, second = out.getvalue().splitlines()
    assert first.endswith("60.0 s")
    assert second.endswith("61.0 s, search ends in at most 9 s")
    progress(replace(FIRST, spent=11, seconds=70.0))
    assert out.getvalue().splitlines()[-1].endswith("70.0 s")  # nothing is left
    # The next start counts anew.
    progress.begin("start 2/2")
    progress(replace(FIRST, seconds=70.0))
    assert out.getvalue().splitlines()[-1].endswith("70.0 s")
