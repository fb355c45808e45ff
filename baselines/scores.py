"""How far guesses are off, beside guessing without looking."""

from typing import Any

import numpy as np

from baselines.videos import Videos


def relative_errors(guessed: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return |guess - truth|/truth, (n, n_targets)."""
    return np.abs(guessed - values) / values


def blind_guesses(train: Videos, test: Videos, seed: int) -> dict[str, np.ndarray]:
    """Return guesses that look at no video: the mean of the training set, and one drawn from it."""
    shape = test.values.shape
    rng = np.random.default_rng([seed, 1])
    drawn = np.stack([rng.choice(column, shape[0]) for column in train.values.T], axis=1)
    return {"average": np.broadcast_to(train.values.mean(axis=0), shape), "random": drawn}


def scored(guesses: dict[str, np.ndarray], test: Videos) -> list[dict[str, Any]]:
    """Return mean, median and worst relative error of every method and parameter."""
    rows = []
    for method, guessed in guesses.items():
        errors = relative_errors(guessed, test.values)
        for k, name in enumerate(test.names):
            column = errors[:, k]
            numbers = {"mean": column.mean(), "median": np.median(column), "worst": column.max()}
            rows.append(
                {"method": method, "parameter": name}
                | {key: float(value) for key, value in numbers.items()}
            )
    return rows
