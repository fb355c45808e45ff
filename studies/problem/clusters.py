"""Which rows of the residuals are one piece of evidence."""

import numpy as np

from studies.problem.problem import SceneProblem


STRIPS = 16  # clusters of a single picture
FEW_FRAMES = 4  # below that, frames are cut in strips


def clusters_of_rows(problem: SceneProblem) -> np.ndarray:
    """Return which rows of the residuals are one piece of evidence; -1 for priors.

    They are instants. Of things at rest they are pictures, which if they are few are cut in
    strips of consecutive rows.
    """
    counts = np.array(problem.residual_counts())
    n, number = len(counts), np.int32  # half the memory: there are as many as residuals
    if not problem.is_still:
        pairs = zip(problem.observers, counts, strict=True)
        clusters = [
            np.repeat(observer.index.astype(number), k // len(observer.times))
            for observer, k in pairs
        ]
    elif n >= FEW_FRAMES or len(set(counts)) > 1:
        clusters = [np.repeat(np.arange(n, dtype=number), counts)]
    else:
        clusters = [(np.arange(counts.sum()) * STRIPS * n // counts.sum()).astype(number)]
    return np.concatenate([*clusters, np.full(problem.parameters.size, -1, number)])
