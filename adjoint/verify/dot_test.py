"""`dot_test`: a tangent and an adjoint are transposes of each other.

    <J t, c> = <t, J^T c>   for random t and c

The difference is measured against |J t| |c|, not against the product itself: in high
dimensions the product of random vectors is small by chance, about |J t| |c| / sqrt(m), and
may be anything down to zero, while the rounding of its terms goes with the norms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.vectors import Layout, Point, Vector, unit


@dataclass(frozen=True)
class DotTest:
    """Outcome of `dot_test`.

    Attributes
    ----------
    residuals : array
        |<J t, c> - <t, J^T c>| / (|J t| |c|) by pair, (n_pairs,) [-].
    tolerance : float
        What every residual must stay below.
    reason : str
        Why the test failed; empty if it passed.
    """

    residuals: np.ndarray
    tolerance: float
    reason: str

    @property
    def passed(self) -> bool:
        """Whether every residual is below the tolerance, and something was compared."""
        return not self.reason

    @property
    def residual(self) -> float:
        """Largest residual, NaN if none was computed."""
        return float(np.max(self.residuals)) if self.residuals.size else float("nan")

    def table(self) -> str:
        """Return the outcome as a few lines of text."""
        verdict = "passed" if self.passed else f"FAILED: {self.reason}"
        return (
            f"dot test {verdict}\n"
            f"  pairs             {len(self.residuals)}\n"
            f"  largest residual  {self.residual:.2e} (tolerance {self.tolerance:.0e})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain numbers, ready for JSON."""
        return {
            "passed": self.passed,
            "reason": self.reason,
            "n_pairs": len(self.residuals),
            "residual": self.residual if np.isfinite(self.residual) else None,
            "tolerance": self.tolerance,
        }


def dot_test(
    jvp: Callable[..., Vector],
    vjp: Callable[..., Vector],
    x: Vector,
    *,
    n_pairs: int = 4,
    scale: Vector | None = None,
    tolerance: float = 1e-10,
    seed: int = 0,
) -> DotTest:
    """Test that `jvp` and `vjp`, both taken at x, are transposes.

    Parameters
    ----------
    jvp : callable
        Takes a tangent laid out like x, returns J t: an array, a number, or a mapping.
    vjp : callable
        Takes a cotangent laid out like J t, returns J^T c, laid out like x.
    x : array, or mapping of names to arrays
        The point: it gives layout and scale.
    n_pairs : int
        Number of random pairs.
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block.
    tolerance : float
        Bound on the relative residual.
    seed : int
        Seed of the pairs.

    Returns
    -------
    DotTest
        It fails where J t or J^T c is zero, and where one is not finite.

    Raises
    ------
    ValueError
        If x is not finite, or J^T c is not laid out like x.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import dot_test
    >>> A = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> dot_test(lambda t: A @ t, lambda c: A.T @ c, np.ones(2)).passed
    True
    >>> dot_test(lambda t: A @ t, lambda c: A @ c, np.ones(2)).passed
    False
    """
    rng = np.random.default_rng(seed)
    point = Point.of(x, scale)
    residuals = np.empty(n_pairs)
    for i in range(n_pairs):
        t = point.scale * unit(rng, point.layout.size)
        out = jvp(point.layout.restore(t))
        images = Layout.of("jvp(t)", out)
        Jt = images.flat("jvp(t)", out)
        c = rng.standard_normal(Jt.size) / images.block_scale(Jt)
        JTc = point.layout.flat("vjp(c)", vjp(images.restore(c)))
        reason = _refusal(Jt, JTc)
        if reason:
            return DotTest(residuals[:i], tolerance, reason)
        size = np.linalg.norm(Jt) * np.linalg.norm(c)
        residuals[i] = abs(float(Jt @ c) - float(t @ JTc)) / size
    worst = float(np.max(residuals))
    reason = "" if worst <= tolerance else f"residual {worst:.1e} above {tolerance:.0e}"
    return DotTest(residuals, tolerance, reason)


def symmetry_test(
    hvp: Callable[..., Vector],
    x: Vector,
    *,
    n_pairs: int = 4,
    scale: Vector | None = None,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> DotTest:
    """Test that a product with a Hessian is symmetric: <H s, t> = <s, H t>.

    Parameters
    ----------
    hvp : callable
        Takes a direction laid out like x, returns the product with it, laid out like x.
    x, n_pairs, scale, tolerance, seed
        As of `dot_test`. Every entry counts in units of its scale.

    Returns
    -------
    DotTest

    Raises
    ------
    ValueError
        As `dot_test`.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import symmetry_test
    >>> symmetry_test(lambda d: np.array([[1.0, 2.0], [2.0, 5.0]]) @ d, np.ones(2)).passed
    True
    """
    point = Point.of(x, scale)

    def product(t: np.ndarray) -> np.ndarray:
        pushed = hvp(point.layout.restore(point.scale * t))
        return point.scale * point.layout.flat("hvp(direction)", pushed)

    units = np.ones(point.layout.size)
    return dot_test(product, product, units, n_pairs=n_pairs, tolerance=tolerance, seed=seed)


def _refusal(Jt: np.ndarray, JTc: np.ndarray) -> str:
    """Return why there is nothing to compare, or an empty text."""
    for name, value in (("jvp", Jt), ("vjp", JTc)):
        if not np.isfinite(value).all():
            return f"`{name}` is not finite"
        if not np.any(value):
            return f"`{name}` returned zero: a comparison would pass on nothing"
    return ""
