r"""Central differences, extrapolated, with an estimate of how far they can be trusted.

    D(h) = (phi(h) - phi(-h)) / (2 h),   R(h) = (4 D(h/2) - D(h)) / 3 = phi' + O(h^4)

The noise of phi is estimated from a difference table of nine values so close together
that a smooth function would have no fourth differences: gamma_k mean(T_k^2) with
gamma_k = (k!)^2 / (2k)! is its variance. R(h) is then wrong by about 3 noise / h.

Source: Richardson, Phil. Trans. A 226 (1927); More & Wild, SIAM J. Sci. Comput. 33 (2011),
"Estimating computational noise", sec. 2.
"""

import math
from collections.abc import Callable

import numpy as np

from adjoint.vectors import Point, Vector


EPS = float(np.finfo(np.float64).eps)
DEFAULT_STEP = EPS**0.2  # balances the error h^4 against the rounding eps/h
NOISE_SPACING = 1e-8
NOISE_ORDER = 4
LARGEST_STEP = 0.1
HALVINGS = 17


def noise_of(phi: Callable[[float], float]) -> float:
    """Return the standard deviation of the noise in phi near 0, at least one rounding."""
    values = np.array([phi(NOISE_SPACING * (i - 4)) for i in range(9)])
    table = np.diff(values, NOISE_ORDER)
    gamma = math.factorial(NOISE_ORDER) ** 2 / math.factorial(2 * NOISE_ORDER)
    sigma = math.sqrt(gamma * float(np.mean(np.square(table))))
    return max(sigma, EPS * float(np.max(np.abs(values))))


def richardson(phi: Callable[[float], float], step: float) -> float:
    """Return R(step), the derivative of phi at 0."""
    coarse = (phi(step) - phi(-step)) / (2.0 * step)
    fine = (phi(0.5 * step) - phi(-0.5 * step)) / step
    return (4.0 * fine - coarse) / 3.0


def choose_step(phi: Callable[[float], float], noise: float) -> float:
    """Return the step with the least estimated error, |R(h) - R(h/2)| + 3 noise/h."""
    steps = LARGEST_STEP * 0.5 ** np.arange(HALVINGS)
    D = np.array([(phi(h) - phi(-h)) / (2.0 * h) for h in steps])
    R = (4.0 * D[1:] - D[:-1]) / 3.0
    error = np.abs(np.diff(R)) + 3.0 * noise / steps[:-2]
    return float(steps[np.nanargmin(np.where(np.isfinite(error), error, np.inf))])


def jacobian_fd(
    f: Callable[..., np.ndarray | float],
    x: Vector,
    *,
    step: float = DEFAULT_STEP,
    scale: Vector | None = None,
) -> np.ndarray | dict[str, np.ndarray]:
    """Return the Jacobian of f at x by extrapolated central differences.

    Parameters
    ----------
    f : callable
        Takes x, returns an array or a number.
    x : array, or mapping of names to arrays
        The point.
    step : float
        Step h in units of `scale` [-].
    scale : like x, optional
        Typical size of each entry; by default the root mean square of its block.

    Returns
    -------
    array or dict
        df/dx, shape f(x).shape + x.shape; a dict of them, by name, if x is a mapping.
        Its error is O(h^4) + O(eps |f| / h), about 1e-12 of the scale of a smooth f.

    Raises
    ------
    ValueError
        If x is empty or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from adjoint import jacobian_fd
    >>> print(jacobian_fd(lambda x: x**2, np.array([1.0, 2.0])).round(6))
    [[2. 0.]
     [0. 4.]]
    """
    point = Point.of(x, scale)
    columns = []
    for i, size in enumerate(point.scale):
        tangent = np.zeros(point.layout.size)
        tangent[i] = size

        def along(h: float, tangent: np.ndarray = tangent) -> np.ndarray:
            return np.asarray(f(point.at(tangent, h)), dtype=np.float64)

        coarse = (along(step) - along(-step)) / (2.0 * step)
        fine = (along(0.5 * step) - along(-0.5 * step)) / step
        columns.append((4.0 * fine - coarse) / (3.0 * size))
    jacobian = np.stack(columns, axis=-1)
    rows = jacobian.reshape(-1, point.layout.size)
    shape = jacobian.shape[:-1]
    split = [point.layout.split(row) for row in rows]
    blocks = {
        key: np.stack([row[key] for row in split]).reshape(shape + block)
        for key, block in point.layout.shapes.items()
    }
    return blocks if point.layout.is_mapping else blocks[""]
