"""`gradcheck`: a gradient against central differences in many random directions.

In scaled coordinates y = x / s the gradient is G = s * dphi/dx. In a random direction u of
length 1 the derivative is <G, u>, about |G| / sqrt(n): it may be small by chance, so errors
are measured against |G|. One wrong entry of n shows as about 1/n of |G|, far above 1e-7.

Where there are no more entries than directions asked for, the directions are a random
orthonormal basis instead. Its errors e_i are all components of the error of G, and by
|<e, u>| <= |e| no other direction u could show more than |e|, which is what is judged then.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.vectors import Layout, Point, Vector, unit, zero_block
from adjoint.verify.differences import choose_step, noise_of, richardson
from adjsim import checks


@dataclass(frozen=True)
class GradCheck:
    """Outcome of `gradcheck`.

    Attributes
    ----------
    errors : array
        |<G, u> - difference quotient| / |G| by direction, (n_directions,) [-].
    tolerance : float
        What `max_error` must stay below.
    gradient_norm : float
        |G|, in the scaled coordinates.
    step : float
        Step of the central differences, in the scaled coordinates.
    rounding : float
        Estimate of what `max_error` is by the rounding of f alone.
    reason : str
        Why the check failed; empty if it passed.
    kink : float
        Distance to the nearest kink that the check was told; inf: none.
    is_complete : bool
        Whether the directions are an orthonormal basis of all there are.
    """

    errors: np.ndarray
    tolerance: float
    gradient_norm: float
    step: float
    rounding: float
    reason: str
    kink: float = np.inf
    is_complete: bool = False

    @property
    def passed(self) -> bool:
        """Whether every error is below the tolerance, and something was compared."""
        return not self.reason

    @property
    def max_error(self) -> float:
        """Largest error of the directions, of all there are if complete; NaN without any."""
        return _largest(self.errors, self.is_complete)

    def table(self) -> str:
        """Return the outcome as a few lines of text."""
        verdict = "passed" if self.passed else f"FAILED: {self.reason}"
        return (
            f"gradcheck {verdict}\n"
            f"  directions        {len(self.errors)}{', a basis' if self.is_complete else ''}\n"
            f"  largest error     {self.max_error:.2e} (tolerance {self.tolerance:.0e})\n"
            f"  rounding estimate {self.rounding:.2e}\n"
            f"  gradient norm     {self.gradient_norm:.6e}\n"
            f"  step              {self.step:.1e}\n"
            f"  nearest kink      {self.kink:.1e}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain numbers, ready for JSON."""
        return {
            "passed": self.passed,
            "reason": self.reason,
            "n_directions": len(self.errors),
            "is_complete": self.is_complete,
            "max_error": _plain(self.max_error),
            "tolerance": self.tolerance,
            "rounding": _plain(self.rounding),
            "gradient_norm": _plain(self.gradient_norm),
            "step": _plain(self.step),
            "kink": _plain(self.kink),
        }


def gradcheck(
    f: Callable[..., Any],
    vjp: Callable[..., Vector] | Vector,
    x: Vector,
    *,
    n_directions: int = 100,
    step: float | None = None,
    scale: Vector | None = None,
    tolerance: float = 1e-7,
    kink: float = np.inf,
    noise: float | None = None,
    seed: int = 0,
) -> GradCheck:
    """Compare a gradient with extrapolated central differences in random directions.

    Parameters
    ----------
    f : callable
        Takes x, returns a number or an array; a random cotangent is drawn for an array.
    vjp : callable, or like x
        Takes a cotangent of f(x), returns the gradient; or the gradient of a number.
    x : array, or mapping of names to arrays
        The point.
    n_directions : int
        How many, drawn at random; if x has no more entries, a basis, judged by its largest error.
    step : float, optional
        Step in units of `scale`; by default the one with the least estimated error.
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block.
    tolerance : float
        Bound on |<G, u> - difference quotient| / |G|.
    kink : float
        Distance to the nearest kink in units of `scale`, from `kink_distance`: 8 steps or more.
    noise : float, optional
        Rounding noise of f where it is known, as from `taylor_test`; None: it is measured.
    seed : int

    Returns
    -------
    GradCheck
        It fails on a zero or non-finite gradient and where rounding hides the answer.

    Raises
    ------
    ValueError
        If x is not finite, the gradient is not laid out like x, or `kink` or `noise` is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import gradcheck
    >>> x = np.array([1.0, 2.0])
    >>> gradcheck(lambda x: (x**3).sum(), 3.0 * x**2, x).passed
    True
    >>> gradcheck(lambda x: (x**3).sum(), 2.0 * x**2, x).passed
    False
    """
    n_directions = checks.whole("n_directions", n_directions, 1)
    rng, point = np.random.default_rng(seed), Point.of(x, scale)
    y = np.asarray(f(point.layout.restore(point.flat)), dtype=np.float64)
    adj_y = np.ones(()) if y.ndim == 0 else rng.standard_normal(y.shape)
    G = point.scale * point.layout.flat("gradient", vjp(adj_y) if callable(vjp) else vjp)

    def along(u: np.ndarray) -> Callable[[float], float]:
        return lambda h: float(np.vdot(adj_y, f(point.at(point.scale * u, h))))

    if reason := _refusal(point.layout, G, y) or on_a_kink(kink):
        norm = float(np.linalg.norm(G))
        return GradCheck(np.empty(0), tolerance, norm, np.nan, np.nan, reason, kink)
    return _compare(along, _directions(rng, G.size, n_directions), G, step, noise, kink, tolerance)


def _directions(rng: np.random.Generator, size: int, number: int) -> np.ndarray:
    """Return random directions of length 1, one a row: a basis if that takes no more of them."""
    if size > number:
        return np.stack([unit(rng, size) for _ in range(number)])
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def _compare(
    along: Callable[[np.ndarray], Callable[[float], float]],
    directions: np.ndarray,
    G: np.ndarray,
    step: float | None,
    noise: float | None,
    kink: float,
    tolerance: float,
) -> GradCheck:
    """Return the outcome in the given directions."""
    norm = float(np.linalg.norm(G))
    if noise is None:
        noise = noise_of(along(directions[0]))
    else:
        checks.non_negative("noise", noise)
    h = step or min(choose_step(along(u), noise) for u in directions[:2])
    h = min(h, kink / 8.0)
    slopes = [richardson(along(u), h) for u in directions]
    errors = np.abs(directions @ G - slopes) / norm
    is_complete = len(errors) == G.size
    n_summed = G.size if is_complete else 1  # independent errors, whose norm is judged
    rounding = 3.0 * math.sqrt(n_summed) * noise / h / norm
    verdict = _verdict(errors, rounding, tolerance, is_complete)
    return GradCheck(errors, tolerance, norm, h, rounding, verdict, kink, is_complete)


def _largest(errors: np.ndarray, is_complete: bool) -> float:
    """Return the largest error of the directions, or, of a basis, of any there is; else NaN."""
    if not errors.size:
        return float("nan")
    return float(np.linalg.norm(errors) if is_complete else np.max(errors))


def _verdict(errors: np.ndarray, rounding: float, tolerance: float, is_complete: bool) -> str:
    """Return why the comparison failed, or an empty text."""
    if rounding > tolerance:
        return f"rounding ({rounding:.1e}) hides errors of {tolerance:.0e}"
    if n_wrong := int(np.sum(~(errors <= tolerance))):
        return f"{n_wrong} of {errors.size} directions disagree"
    if (largest := _largest(errors, is_complete)) > tolerance:
        return f"the errors of all directions add up to {largest:.1e}"
    return ""


def _refusal(layout: Layout, G: np.ndarray, y: np.ndarray) -> str:
    """Return why there is nothing to compare, or an empty text."""
    if not np.isfinite(y).all():
        return "`f` is not finite at x"
    if not np.isfinite(G).all():
        return "the gradient is not finite"
    return zero_block(layout, G) or ""


def on_a_kink(kink: float) -> str:
    """Say that a point lies on a kink, if it does.

    Raise a ValueError if the distance is negative.
    """
    checks.non_negative("kink", kink)
    return "" if kink > 0.0 else "x lies on a kink, where no difference tells a derivative"


def _plain(value: float) -> float | None:
    """Return a number that JSON has, None for NaN and infinity."""
    return value if np.isfinite(value) else None
