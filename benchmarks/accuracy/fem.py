"""The hanging bar by scikit-fem: quadratic hexahedra of the logarithmic neo-Hookean law.

Nothing is shared with adjsim: other elements, another assembly, another solver. A quarter of the
bar between two planes of symmetry is enough.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjsim.extras import how_to_install


MOST_STEPS, TOLERANCE = 20, 1e-11
GRADING = 1.5  # cells get smaller towards the edges of the clamp, where the stress is singular


def hanging_bar(
    size: Sequence[float], cells: Sequence[int], moduli: tuple[float, float], weight: float
) -> tuple[float, float]:
    """Return how far the middle of the lower face sinks [m], and its slope by ln E.

    The stress is proportional to E at the same Poisson's ratio: K du = -load d(ln E).

    Parameters
    ----------
    size : sequence of float
        Of the bar, which its upper face z = height holds [m].
    cells : sequence of int
        Of a quarter of it.
    moduli : tuple of float
        mu and lam, Lame's constants [Pa].
    weight : float
        Density times gravity [N/m3].
    """
    mu, lam = moduli
    try:
        fem, helpers = (importlib.import_module(name) for name in ("skfem", "skfem.helpers"))
    except ModuleNotFoundError as error:
        raise RuntimeError(f"The bar needs scikit-fem: {how_to_install('peers')}.") from error
    lengths = (0.5 * size[0], 0.5 * size[1], size[2])
    axes = [
        length * (1.0 - (1.0 - np.linspace(0.0, 1.0, n + 1)) ** GRADING)
        for length, n in zip(lengths, cells, strict=True)
    ]
    basis = fem.Basis(
        fem.MeshHex.init_tensor(*axes), fem.ElementVector(fem.ElementHex2()), intorder=4
    )

    def deformation(w: Any) -> tuple[Any, Any, Any]:
        F = w["u"].grad + helpers.eye(1.0 + 0.0 * w.x[0], 3)
        return F, helpers.transpose(helpers.inv(F)), np.log(helpers.det(F))

    @fem.LinearForm
    def load(v: Any, _: Any) -> Any:
        return -weight * v.value[2]

    @fem.LinearForm
    def inner(v: Any, w: Any) -> Any:
        F, G, log_J = deformation(w)
        return helpers.ddot(mu * F + (lam * log_J - mu) * G, v.grad)

    @fem.BilinearForm
    def tangent(t: Any, v: Any, w: Any) -> Any:
        _, G, log_J = deformation(w)
        turned = helpers.mul(G, helpers.mul(helpers.transpose(t.grad), G))
        by_volume = lam * helpers.ddot(G, t.grad) * G
        return helpers.ddot(mu * t.grad + by_volume - (lam * log_J - mu) * turned, v.grad)

    held = [
        basis.get_dofs(lambda x: np.isclose(x[2], size[2])).all(),
        basis.get_dofs(lambda x: np.isclose(x[0], 0.0)).all("u^1"),
        basis.get_dofs(lambda x: np.isclose(x[1], 0.0)).all("u^2"),
    ]
    free = basis.complement_dofs(np.unique(np.concatenate(held)))
    outer, u = load.assemble(basis), basis.zeros()
    for _ in range(MOST_STEPS):
        at = basis.interpolate(u)
        left, K = outer - inner.assemble(basis, u=at), tangent.assemble(basis, u=at)
        if np.abs(left[free]).max() <= TOLERANCE * np.abs(outer).max():
            corner = int(np.argmin(np.square(basis.mesh.p).sum(axis=0)))
            slope = fem.solve(*fem.condense(K, -outer, I=free))
            sunk = basis.nodal_dofs[2, corner]
            return -float(u[sunk]), -float(slope[sunk])
        u += fem.solve(*fem.condense(K, left, I=free))
    raise RuntimeError(f"no equilibrium of the bar by finite elements in {MOST_STEPS} steps")
