"""The logs of a search, one for each local search of it."""

from collections.abc import Sequence
from dataclasses import replace

from studies.runs.folder import ITERATIONS, RunFolder
from studies.search.optimizers.evaluations import Evaluation, read_log


def log_names(start: int, stages: int, place: str = "") -> tuple[str, ...]:
    """Return the names of a start's logs: iterations.jsonl, iterations-2.jsonl, ...

    Stages before the last have their number too: iterations-1-stage-1.jsonl.
    """
    base = ITERATIONS
    names = [base.replace(".", f"-{start + 1}-stage-{k + 1}.") for k in range(stages - 1)]
    names.append(base if start == 0 else base.replace(".", f"-{start + 1}."))
    return tuple(f"{place}/{name}" if place else name for name in names)


def read_search(folder: RunFolder, names: Sequence[str]) -> list[Evaluation]:
    """Return the evaluations of a start, its stages one after the other."""
    whole: list[Evaluation] = []
    for name in names:
        spent, seconds = (whole[-1].spent, whole[-1].seconds) if whole else (0, 0.0)
        whole += [
            replace(one, spent=one.spent + spent, seconds=one.seconds + seconds)
            for one in read_log(folder.file(name))
        ]
    return whole
