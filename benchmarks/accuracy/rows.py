"""A row of the tables: a number and its derivative, beside what they should be."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from adjoint.verify.differences import richardson


PART = 1e-3  # step of differences, of the parameter
# Of a measured number and its derivative: what they should be, and how far they may be off.
MOST_OFF, MOST_OFF_DIFFERENCES = 0.02, 1e-8
Value = Callable[[float], float]


@dataclass(frozen=True)
class Row:
    """A number, its derivative by one parameter, and the same in closed form or by FEM.

    `slope_error` is the derivative off central differences, relative; `by` names the parameter.
    """

    quantity: str
    unit: str
    reference: str
    value: float
    exact: float
    by: str
    slope: float
    slope_error: float
    exact_slope: float
    seconds: float

    @property
    def ratio(self) -> float:
        """The number over what it should be."""
        return self.value / self.exact

    @property
    def slope_ratio(self) -> float:
        """The derivative over what it should be."""
        return self.slope / self.exact_slope

    @property
    def passes(self) -> bool:
        """Whether the number and its derivative are as near as they should be."""
        off = max(abs(self.ratio - 1.0), abs(self.slope_ratio - 1.0))
        return off <= MOST_OFF and self.slope_error <= MOST_OFF_DIFFERENCES


def measure(
    quantity: str, unit: str, parameter: tuple[str, float],
    value_and_slope: Callable[[], tuple[float, float]], *, value: Value, exact: Value,
    reference: str = "closed form", step: float = PART,
) -> Row:  # fmt: skip
    """Return the row of a number.

    Parameters
    ----------
    quantity, unit : str
        What the number is.
    parameter : tuple
        Name and value of what it is differentiated by.
    value_and_slope : callable
        Returns the number and its derivative by the adjoint; it is timed.
    value, exact : callable
        Number by parameter: simulated, and in closed form or by finite elements.
    reference : str
        What `exact` is.
    step : float
        Step of the differences, relative to the parameter.
    """
    by, at = parameter
    start = time.process_time()
    number, slope = value_and_slope()
    seconds = time.process_time() - start
    differences = richardson(lambda d: value(at + d), step * at)
    return Row(
        quantity, unit, reference, number, exact(at), by, slope, abs(slope / differences - 1.0),
        richardson(lambda d: exact(at + d), PART * at), seconds,
    )  # fmt: skip
