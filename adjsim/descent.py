"""Newton's steps where the matrix may not be positive definite: a multiple of the masses is added.

Such a step leads down, whatever the matrix is, and is one of implicit Euler from rest. The multiple
is taken away again as the steps succeed.

Tests: `tests/test_descent.py`.
"""

from typing import TYPE_CHECKING

import numpy as np
import scipy  # its parts are loaded where they are used: `import adjsim` needs none


if TYPE_CHECKING:
    import scipy.sparse
    from scipy.sparse.linalg import SuperLU


FIRST_SHIFT = 1e-3  # of the matrix over the mass, on the average
LEAST_SHIFT = 1e-6  # of the first
MOST_SHIFTS = 15
OVERSHOOT = 0.9  # of the force at a step's start, backwards at its end
MOST_HALVES = 40
SINGULAR = 1e-13  # a pivot, of the largest


def positive_factors(matrix: "scipy.sparse.csc_array") -> "SuperLU | None":
    """Return the factors of a matrix, or None if it is not positive definite."""
    from scipy.sparse.linalg import splu

    try:
        factor = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )  # fmt: skip
    except (RuntimeError, ValueError):  # exactly singular, or not finite
        return None
    # By Sylvester's law of inertia there are as many negative pivots as negative eigenvalues.
    pivots = factor.U.diagonal()
    is_diagonal = np.array_equal(factor.perm_r, factor.perm_c)
    is_positive = pivots.min() > SINGULAR * np.abs(pivots).max()  # False where one is NaN
    return factor if is_diagonal and is_positive else None


class Descent:
    """The multiple of the masses, (n,) of each unknown, that is added at present."""

    def __init__(self, mass: np.ndarray) -> None:
        self.mass = mass
        self.shift = 0.0
        self.first = 1.0  # a shift that is small beside the matrix

    def factors(self, matrix: "scipy.sparse.csc_array") -> "SuperLU | None":
        """Return the factors of a matrix with enough added; None: no amount was enough."""
        mean = float(np.abs(matrix.diagonal()).mean()) or 1.0
        self.first = FIRST_SHIFT * mean / float(self.mass.mean())
        factor = positive_factors(self._shifted(matrix))
        for _ in range(MOST_SHIFTS):
            if factor is not None:
                break
            self.add()
            factor = positive_factors(self._shifted(matrix))
        return factor

    def _shifted(self, matrix: "scipy.sparse.csc_array") -> "scipy.sparse.csc_array":
        if not self.shift:
            return matrix
        added = scipy.sparse.diags_array(self.shift * self.mass, format="csc")
        return (matrix + added).tocsc()

    def add(self) -> None:
        """Add more."""
        self.shift = max(10.0 * self.shift, self.first)

    def took(self, fraction: float) -> None:
        """Add more after a step that led nowhere, take some away after a whole one."""
        if fraction == 0.0:
            self.add()
        elif fraction == 1.0:
            self.shift = 0.1 * self.shift if self.shift > LEAST_SHIFT * self.first else 0.0
