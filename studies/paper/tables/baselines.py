r"""What is known without looking: the mean of the prior, and a draw from it.

Of a hidden value p, even in [a, b], with 0 < a < b, the relative error expected is

    average    m = (a + b)/2     E |m - p|/p = m ln(m^2/(a b)) / (b - a)
    random     q like p          E |q - p|/p = ((a^2 + b^2) ln(b/a) - (b^2 - a^2)) / (2 (b - a)^2)

and, where an error is relative to a known scale s instead of p itself,

    average    (b - a)/(4 s)     random     (b - a)/(3 s)

The first: the integrals of (m - p)/p over [a, m] and of (p - m)/p over [m, b] are
m ln(m/a) - (m - a) and (b - m) - m ln(b/m). The second: E_q |q - p| =
((p - a)^2 + (b - p)^2)/(2 (b - a)), over p. Of a value with many components
it is the mean over them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from studies.paper.tables.table import Case, Estimate, Settings


STREAM = 101  # of the draws of `RANDOM`; the scene's are of (seed, k) alone
Between = Callable[[np.ndarray, np.ndarray], np.ndarray]


def expected_of_average(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return E |m - p|/p, m in the middle; 0 where the ends are one."""
    middle, width = 0.5 * (low + high), high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        found = middle * np.log(middle**2 / (low * high)) / width
    return np.where(width > 0.0, found, 0.0)


def expected_of_random(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return E |q - p|/p, q drawn like p; 0 where the ends are one."""
    width = high - low
    squares = low**2 + high**2
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (squares * np.log(high / low) - width * (low + high)) / (2.0 * width**2)
    return np.where(width > 0.0, found, 0.0)


@dataclass(frozen=True)
class Baseline:
    """An estimator that looks at nothing but the prior.

    Attributes
    ----------
    name, label : str
    told : str
        What it does, in a sentence.
    relative : callable
        relative(low, high) is the expectation of its error relative to the value itself.
    part : float
        The expectation of its error itself, in parts of the width of the prior.
    draws : bool
        Whether it draws, or takes the middle.
    """

    name: str
    label: str
    told: str
    relative: Between
    part: float
    draws: bool

    def about(self, settings: Settings) -> str:
        """Return what it does."""
        del settings
        return self.told

    def check(self, settings: Settings) -> None:
        """Accept all settings: it has none."""
        del settings

    def estimate(self, case: Case) -> Estimate:
        """Return the middle of the prior, or a draw from it."""
        low = case.flat({path: ends[0] for path, ends in case.prior.items()})
        high = case.flat({path: ends[1] for path, ends in case.prior.items()})
        part = case.rng(STREAM).uniform(size=low.size) if self.draws else 0.5
        theta = case.problem.parameters.theta(low + part * (high - low))
        return Estimate(theta, "DRAWN", expected=self._expected(case))

    def _expected(self, case: Case) -> dict[str, float]:
        assert case.fit.truth is not None
        found = {}
        for path, ends in case.prior.items():
            low, high = (np.asarray(end, float) for end in ends)
            scale = case.fit.truth.scales.get(path)
            own = self.relative(low, high) if scale is None else self.part * (high - low) / scale
            found[path] = float(np.mean(own))
        return found


AVERAGE = Baseline(
    "average",
    "average",
    "The middle of the range from which hidden values are drawn.",
    expected_of_average,
    1.0 / 4.0,
    draws=False,
)
RANDOM = Baseline(
    "random",
    "random",
    "A value drawn like the hidden one, by the seed and the number of the instance.",
    expected_of_random,
    1.0 / 3.0,
    draws=True,
)
