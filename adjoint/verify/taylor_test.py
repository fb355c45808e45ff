r"""`taylor_test`: remainders of the Taylor series, and how fast they fall.

    R0(eps) = |phi(x + eps d) - phi(x)|                       ~ eps
    R1(eps) = |phi(x + eps d) - phi(x) - eps <grad, d>|       ~ eps^2
    R2(eps) = |phi(x + eps d) - phi(x) - eps <grad, d> - eps^2/2 <d, H d>|    ~ eps^3

The slopes log2(R(eps) / R(eps/2)) are 1 and 2 if, and only if, the gradient is right, and that of
R2 is 3 if the product with the Hessian is right too. They are read at the smallest steps whose
remainders still stand above the rounding noise of phi: there a wrong gradient cannot hide behind
the curvature.

Source: Farrell, Ham, Funke & Rognes, SIAM J. Sci. Comput. 35 (2013), sec. 4.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adjoint.vectors import Layout, Point, Vector, unit, zero_block
from adjoint.verify.differences import noise_of
from adjoint.verify.gradcheck import on_a_kink


MARGIN = 400.0  # remainders this many times the noise: slopes are known to about 0.01
LEAST_HALVINGS = 4


@dataclass(frozen=True)
class TaylorTest:
    """Outcome of `taylor_test`.

    Attributes
    ----------
    eps, r0, r1 : array
        Steps in units of the direction and remainders, (n_halvings + 1,).
    noise : float
        Estimated rounding noise of f.
    slope0, slope1 : float
        Least slope of r0, r1 over the halvings used; inf for r1 where f is linear.
    halvings : int
        Number of halvings used.
    is_linear : bool
        Whether r1 never rises above the noise: f is linear along the direction.
    minimum_slope : float
        What slope1 must reach.
    reason : str
        Why the test failed; empty if it passed.
    kink : float
        Distance to the nearest kink that the test was told; inf: none.
    r2, slope2 : array, float
        The same with a product with the Hessian, where one was given; otherwise empty and NaN.
    """

    eps: np.ndarray
    r0: np.ndarray
    r1: np.ndarray
    noise: float
    slope0: float
    slope1: float
    halvings: int
    is_linear: bool
    minimum_slope: float
    reason: str
    kink: float = math.inf
    r2: np.ndarray = field(default_factory=lambda: np.empty(0))
    slope2: float = math.nan

    @property
    def passed(self) -> bool:
        """Whether the remainders fall fast enough."""
        return not self.reason

    def table(self) -> str:
        """Return steps, remainders and slopes as text, one line per step."""
        verdict = "passed" if self.passed else f"FAILED: {self.reason}"
        remainders = {"R0": self.r0, "R1": self.r1} | ({"R2": self.r2} if self.r2.size else {})
        second = f", R2 {self.slope2:.3f} (at least {self.minimum_slope + 1.0})"
        lines = [
            f"Taylor test {verdict}",
            f"  slopes over {self.halvings} halvings: R0 {self.slope0:.3f}, R1 {self.slope1:.3f}"
            f" (at least {self.minimum_slope}){second if self.r2.size else ''}"
            f"; nearest kink {self.kink:.1e}",
            "         eps" + "".join(f"  {name:>10} {'slope':>6}" for name in remainders),
        ]
        columns = [(r, [math.nan, *_slopes(r)]) for r in remainders.values()]
        lines += [
            f"  {eps:10.3e}" + "".join(f"  {r[i]:10.3e} {slope[i]:6.2f}" for r, slope in columns)
            for i, eps in enumerate(self.eps)
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain numbers, ready for JSON."""
        return {
            "passed": self.passed,
            "reason": self.reason,
            "slope0": self.slope0 if np.isfinite(self.slope0) else None,
            "slope1": self.slope1 if np.isfinite(self.slope1) else None,
            "minimum_slope": self.minimum_slope,
            "halvings": self.halvings,
            "is_linear": self.is_linear,
            "kink": self.kink if np.isfinite(self.kink) else None,
            "noise": self.noise if np.isfinite(self.noise) else None,
            "eps": self.eps.tolist(),
            "r0": [r if np.isfinite(r) else None for r in self.r0.tolist()],
            "r1": [r if np.isfinite(r) else None for r in self.r1.tolist()],
            "slope2": self.slope2 if np.isfinite(self.slope2) else None,
            "r2": [r if np.isfinite(r) else None for r in self.r2.tolist()],
        }


def taylor_test(
    f: Callable[..., float],
    gradient: Vector | Callable[..., Vector],
    x: Vector,
    direction: Vector | None = None,
    *,
    hvp: Callable[..., Vector] | None = None,
    eps0: float = 1e-2,
    n_halvings: int = 16,
    minimum_slope: float = 1.9,
    scale: Vector | None = None,
    kink: float = math.inf,
    seed: int = 0,
) -> TaylorTest:
    """Test a gradient, and a product with the Hessian, by how fast Taylor remainders fall.

    Parameters
    ----------
    f : callable
        Takes x, returns a number.
    gradient : like x, or callable
        The gradient of f at x, or a function of x that returns it.
    x : array, or mapping of names to arrays
        The point.
    direction : like x, optional
        By default half random, half along the gradient, of length 1 in units of `scale`.
    hvp : callable, optional
        Takes a direction, returns the product of the Hessian at x with it, laid out like x: R2 is
        tested too. `symmetry_test` looks at what it does across the direction.
    eps0 : float
        Largest step; each of the `n_halvings` next ones is half the one before.
    minimum_slope : float
        The least slope of R1 that passes, over at least four halvings; R2 needs 1 more.
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block.
    kink : float
        Distance to the nearest kink, as of `kink_distance`; steps stay below a quarter of it.
    seed : int

    Returns
    -------
    TaylorTest
        It fails on a zero or non-finite gradient, and with fewer than four halvings above
        noise. An f linear along d passes if R1 is noise at every step, and a quadratic one if R2
        is.

    Raises
    ------
    ValueError
        If x or the direction is not finite or zero, or laid out otherwise, or `kink` negative.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import taylor_test
    >>> x = np.array([1.0, 2.0])
    >>> taylor_test(lambda x: (x**3).sum(), 3.0 * x**2, x).passed
    True
    """
    point = Point.of(x, scale)
    grad = _gradient_at(point, gradient)
    eps = min(eps0, kink / 4.0) * 0.5 ** np.arange(n_halvings + 1)
    if reason := _refusal(point.layout, grad, kink):
        none, nan = np.full(eps.shape, np.nan), math.nan
        return TaylorTest(eps, none, none, nan, nan, nan, 0, False, minimum_slope, reason, kink)
    d = _direction(point, grad, direction, seed)

    def phi(h: float) -> float:
        return float(f(point.at(d, h)))

    noise = noise_of(lambda h: phi(h * eps0))
    change = np.array([phi(h) for h in eps]) - phi(0.0)
    test = replace(_judge(eps, change, float(grad @ d), noise, minimum_slope), kink=kink)
    if hvp is None:
        return test
    curvature = float(d @ point.layout.flat("hvp(direction)", hvp(point.layout.restore(d))))
    r2 = np.abs(change - eps * float(grad @ d) - 0.5 * np.square(eps) * curvature)
    return _judge_second(replace(test, r2=r2))


def _gradient_at(point: Point, gradient: Vector | Callable[..., Vector]) -> np.ndarray:
    """Return the gradient as a flat vector."""
    given = gradient(point.layout.restore(point.flat)) if callable(gradient) else gradient
    return point.layout.flat("gradient", given)


def _refusal(layout: Layout, grad: np.ndarray, kink: float) -> str:
    """Return why there is nothing to test, or an empty text."""
    if not np.isfinite(grad).all():
        return "the gradient is not finite"
    return zero_block(layout, grad) or on_a_kink(kink)


def _direction(point: Point, grad: np.ndarray, direction: Vector | None, seed: int) -> np.ndarray:
    """Return the direction as a flat vector: the caller's, or the default one."""
    if direction is not None:
        d = point.layout.flat("direction", direction)
        if not np.isfinite(d).all() or not np.any(d):
            raise ValueError("`direction` must be finite and not zero.")
        return d
    G = point.scale * grad
    u = unit(np.random.default_rng(seed), G.size) + G / np.linalg.norm(G)
    if np.linalg.norm(u) < 0.5:  # the random half happens to point straight back
        u = G
    return point.scale * u / np.linalg.norm(u)


def _judge(
    eps: np.ndarray, change: np.ndarray, slope: float, noise: float, minimum_slope: float
) -> TaylorTest:
    """Return the outcome for the changes of f at the steps eps."""
    r0, r1 = np.abs(change), np.abs(change - eps * slope)
    floor = MARGIN * noise
    first, last = _above(r1, floor)
    halvings = last - first
    is_linear = _is_noise(r1, floor, r0[0])
    slope0 = slope1 = math.inf if is_linear else math.nan
    reason = ""
    if is_linear:
        slope0, halvings = float(np.min(_slopes(r0[: LEAST_HALVINGS + 1]))), LEAST_HALVINGS
    elif not np.isfinite(change).all():
        reason = "`f` is not finite along the direction"
    elif halvings < LEAST_HALVINGS:
        reason = f"only {halvings} halvings above the noise {noise:.1e}: raise `eps0`"
    else:
        slope0, slope1 = (float(np.min(_slopes(r[first : last + 1]))) for r in (r0, r1))
        if not slope1 >= minimum_slope:
            reason = f"slope {slope1:.3f} below {minimum_slope}"
    return TaylorTest(
        eps, r0, r1, noise, slope0, slope1, halvings, is_linear, minimum_slope, reason
    )


def _judge_second(test: TaylorTest) -> TaylorTest:
    """Return the outcome with the slope of R2, which may fail too."""
    floor = MARGIN * test.noise
    first, last = _above(test.r2, floor)
    if _is_noise(test.r2, floor, max(test.r0[0], test.r1[0])):  # linear or quadratic
        return replace(test, slope2=math.inf)
    reason, least = test.reason, test.minimum_slope + 1.0
    slope = math.nan
    if last - first < LEAST_HALVINGS:
        reason = reason or (
            f"only {last - first} halvings of R2 above the noise {test.noise:.1e}: raise `eps0`"
        )
    else:
        slope = float(np.min(_slopes(test.r2[first : last + 1])))
        if not slope >= least:
            reason = reason or f"slope {slope:.3f} of R2 below {least}"
    return replace(test, slope2=slope, reason=reason)


def _above(r: np.ndarray, floor: float) -> tuple[int, int]:
    """Return the ends of the last unbroken run of remainders above the noise, at most 5 of them."""
    above = (r > floor) & np.isfinite(r)
    first = last = max(int(np.max(np.nonzero(above)[0], initial=-1)), 0)
    while first > max(0, last - LEAST_HALVINGS) and above[first - 1]:
        first -= 1
    return first, last


def _is_noise(r: np.ndarray, floor: float, lower_order: float) -> bool:
    """Whether all remainders are noise, beside one of lower order that is far above it."""
    return bool(np.isfinite(r).all() and (r <= floor).all() and lower_order > 1e7 * floor)


def _slopes(r: np.ndarray) -> np.ndarray:
    """Return log2(r[i] / r[i + 1]), NaN where one is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log2(r[:-1] / r[1:])
    return np.where(np.isfinite(slopes), slopes, np.nan)
