r"""`hvp`: products of a Hessian with a direction, by extrapolated differences of exact gradients.

    g(h) = gradient at x + h d,   H d = g'(0)
    D_0(h) = (g(h) - g(-h)) / (2 h)                                  = H d + O(h^2)
    D_k(h) = D_{k-1}(h) + (D_{k-1}(h) - D_{k-1}(2 h)) / (4^k - 1)    = H d + O(h^(2 k + 2))

Gradients by adjoints are exact and have the same bits every time, so that the differences have no
noise but rounding. h is halved until D_k and both D_{k-1} that it is made of agree: their largest
difference is the estimate of the error. A level costs two gradients; four to seven levels give ten
digits or more where the gradient is smooth. Where a kink is near, such as a touch in another step,
h is halved until the kink is farther away, at most `MOST_LEVELS` times.

Sources: Ridders, Adv. Eng. Software 4 (1982), the table and its estimate of the error; Pearlmutter,
Neural Computation 6 (1994), sec. 2, products with a Hessian as derivatives of gradients.
"""

import warnings
from collections.abc import Callable

import numpy as np

from adjoint.vectors import Layout, Point, Vector
from adjsim import checks


STEP = 0.01  # the largest change of an entry at first, in units of its scale
MOST_LEVELS = 14
ACCURATE = 1e-10  # relative error at which no further level is needed
ROUNDINGS = 10.0  # of the gradient, that a difference is off by
GOOD, POOR = 1e-7, 1e-6  # relative errors: further levels may not help, a warning
WARNING = (
    "A product with the Hessian is known to {:.0e} of its size only: the gradient is not smooth "
    "near this point, as where something touches. Move the point, shorten the rollout, or take a "
    "smoother loss."
)


def hvp(
    gradient: Callable[..., Vector],
    x: Vector,
    direction: Vector,
    *,
    scale: Vector | None = None,
) -> Vector:
    """Return the product of the Hessian of a scalar with a direction, from its gradient.

    For a loss of the frames of one rollout `Record.hvp` is shorter. This is for all others: of
    cameras and colours, or of several rollouts.

    Parameters
    ----------
    gradient : callable
        Takes x, returns the gradient there, laid out like x.
    x : array, or mapping of names to arrays
        The point.
    direction : like x
        Of a mapping, names left out are zero.
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block, or 1 if that is 0.
        The first step changes no entry by more than 1 % of it.

    Returns
    -------
    like x
        H d. It takes two gradients a level, mostly four to seven levels, at most 14. A warning
        says where the error is above 1e-6.

    Raises
    ------
    ValueError
        If x or the direction is not finite, or they or a gradient are laid out otherwise.
    ArithmeticError
        If the gradient cannot be computed or is not finite beside x, however small the step.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import hvp
    >>> print(hvp(lambda x: 4.0 * x**3, np.array([1.0, 2.0]), np.array([1.0, 0.0])).round(6))
    [12.  0.]
    """
    point = Point.of(x, scale)
    d = checks.array("direction", _completed(point.layout, direction))

    def along(h: float) -> np.ndarray:
        return point.layout.flat("gradient", gradient(point.at(d, h)))

    return point.layout.restore(differentiate(along, first_step(d, point.scale), point.scale))


def _completed(layout: Layout, direction: Vector) -> np.ndarray:
    """Return a direction as a flat vector; names that it leaves out are zero."""
    if layout.is_mapping:
        given = checks.mapping("direction", direction, f"{{{next(iter(layout.shapes))!r}: ...}}")
        for name in given:
            checks.known_key("entry of `direction`", name, layout.shapes)
        direction = {key: np.zeros(shape) for key, shape in layout.shapes.items()} | given
    return layout.flat("direction", direction)


def first_step(direction: np.ndarray, scale: np.ndarray) -> float:
    """Return the step at which the entry that changes most changes by `STEP` of its scale."""
    most = float(np.max(np.abs(direction) / scale, initial=0.0))
    return STEP / most if most > 0.0 else 1.0


def differentiate(
    phi: Callable[[float], np.ndarray],
    first: float,
    scale: np.ndarray,
    eps: float | None = None,
) -> np.ndarray:
    """Return the derivative of a gradient phi, (n,), at 0, from steps that begin at `first`.

    Entries count in units of 1 / `scale`, (n,). `eps` is the rounding that phi was computed with.
    A step at which phi raises an ArithmeticError is halved too.
    """
    eps = float(np.finfo(np.float64).eps) if eps is None else eps
    best, least = None, np.inf
    row: list[np.ndarray] = []
    enough = good = poor = 0.0
    for level in range(MOST_LEVELS):
        h = first * 0.5**level
        try:
            ahead, behind = phi(h), phi(-h)
            if not np.isfinite(ahead + behind).all():
                raise FloatingPointError("The gradient is not finite beside x.")
        except ArithmeticError:
            if level == MOST_LEVELS - 1 and best is None:
                raise
            row = []
            continue
        above, row = row, [(ahead - behind) / (2.0 * h)]
        is_better = False
        for k, coarser in enumerate(above):
            row.append(row[k] + (row[k] - coarser) / (4.0 ** (k + 1) - 1.0))
            error = max(_norm(scale * (row[-1] - estimate)) for estimate in (row[k], coarser))
            if best is None or error < least:
                best, least, is_better = row[-1], error, True
                rounding = ROUNDINGS * eps * _norm(scale * ahead) / h
                size = _norm(scale * best)
                enough, good, poor = (max(t * size, rounding) for t in (ACCURATE, GOOD, POOR))
        if best is not None and (least <= enough or (least <= good and not is_better)):
            break
    if best is None:  # one level alone
        best = row[0]
    if least > poor:
        warnings.warn(WARNING.format(least / max(_norm(scale * best), 1e-300)), stacklevel=3)
    return best


def _norm(vector: np.ndarray) -> float:
    return float(np.linalg.norm(vector))
