"""What the contact proofs share: a derivative's error and the model's bias, told apart.

The derivative is that of the code: its error is adjoint against differences of the code.
What the code computes differs from the closed form of continuous mechanics: that is the
model's bias, in the value and in the derivative, and a correct adjoint has it too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from adjoint.verify.differences import richardson


@dataclass(frozen=True)
class Slope:
    """A derivative three ways: by adjoint, by differences of the code, in closed form."""

    adjoint: float
    differences: float
    closed: float

    @property
    def error(self) -> float:
        """Error of the derivative, relative."""
        return abs(self.adjoint - self.differences) / abs(self.differences)

    @property
    def bias(self) -> float:
        """Bias of the model's derivative, relative to the closed form (absolute where it is 0)."""
        return (self.differences - self.closed) / (self.closed or 1.0)


def slope_of(
    value: Callable[[float], float], at: float, adjoint: float, closed: float, step: float = 1e-5
) -> Slope:
    """Return the slope of `value` at a point; differences step by `step` of it."""
    h = step * abs(at)
    return Slope(float(adjoint), richardson(lambda d: value(at + d), h), float(closed))


def listed(what: str, slopes: dict[str, Slope]) -> str:
    """Return a line per slope: the derivative's error, the model's bias."""
    lines = [
        f"  d/d {name:10} {s.adjoint:+.6e}  derivative's error {s.error:.1e}  bias {s.bias:+.2e}"
        for name, s in slopes.items()
    ]
    return "\n".join([what, *lines])
