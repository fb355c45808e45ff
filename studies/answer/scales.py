"""Relative differences: what a value or a component of theta is compared with, and percent."""

import numpy as np

from studies.problem.parameters import Parameters
from studies.search.coarse import is_log


LEAST_SCALE = 0.02  # part of its bounds that a value near zero is held against
LEAST_SHOWN = 1e-5  # a smaller part is not shown in percent
NARROWEST = 1e-13  # of a value: an interval that is narrower is of rounding errors


def value_scale(parameters: Parameters, theta: np.ndarray) -> np.ndarray:
    """Return what a natural value is compared with, `(p,)`."""
    lengths = [np.linalg.norm(np.ravel(value)) for value in parameters.values(theta).values()]
    positive = is_log(parameters)
    scale = np.where(positive, np.abs(parameters.natural(theta)), parameters.each(lengths))
    width = parameters.each([np.ptp(free.bounds) for free in parameters.free])
    return np.maximum(scale, np.where(np.isfinite(width) & ~positive, LEAST_SCALE * width, 0.0))


def theta_scale(parameters: Parameters, theta: np.ndarray) -> np.ndarray:
    """Return the scale of theta, `(p,)`: 1 for a logarithm, otherwise that of the value."""
    rate = np.abs(parameters.natural_rates(theta))
    in_theta = value_scale(parameters, theta) / np.maximum(rate, 1e-300)
    return np.where(is_log(parameters), 1.0, in_theta)


def percent(share: float) -> str:
    """Return a part in percent, with two digits."""
    if 0.0 < share < LEAST_SHOWN:
        return f"less than {100.0 * LEAST_SHOWN:g} %"
    return f"{100.0 * share:.0f} %" if share >= 0.1 else f"{100.0 * share:.2g} %"


def uncertainty(error: float, unit: str) -> str:
    """Return a standard uncertainty in its unit, or in percent."""
    return f"{error:.2g} {unit}".rstrip(" -") if unit else f"{100.0 * error:.2g} %"
