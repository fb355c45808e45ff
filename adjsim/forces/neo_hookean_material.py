"""What tetrahedra and triangles of a neo-Hookean material share: moduli, and their packing.

An element of measure V (volume or area) at rest packs

    mu V,  lam/LAM_PARTS,  a third row of mu and lam,  and eta V where there is viscosity

The third row of a stable material is alpha = 1 + ALPHA mu/lam. Its element functions,
`neo_hookean.py` and `neo_hookean_triangles.py`, say why.

Adjoint: `adjoint/forces/neo_hookean_material.py`. Tests: `tests/forces/test_neo_hookean.py`.
"""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from adjsim import checks
from adjsim.forces.lumping import LumpedForce
from adjsim.series import freeze_series
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import broadcast


MU, LAM, THIRD, ETA = range(4)  # of a row's parameters


class NeoHookean(LumpedForce):
    """Elements of a neo-Hookean material, stable unless the third row is another."""

    mu: Any
    lam: Any
    viscosity: Any

    ELASTIC: ClassVar[ElementKind]
    VISCOUS: ClassVar[ElementKind]
    ALPHA: ClassVar[float]
    LAM_PARTS: ClassVar[float]
    # Moduli from Lame's constants: mu = MU_SHARE mu_L, lam = lam_L + LAM_SHARE mu_L
    MU_SHARE: ClassVar[float]
    LAM_SHARE: ClassVar[float]
    POISSON: ClassVar[tuple[float, float]]  # between which Poisson's ratio must be
    POISSON_HINT: ClassVar[str]  # why

    @classmethod
    def from_young(
        cls, elements: Any, rest_positions: Any, youngs_modulus: float, poisson_ratio: float,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Return elements that answer small strains as a material of this E and nu does.

        Parameters
        ----------
        elements, rest_positions, **options
            As the class takes them, without `mu` and `lam`.
        youngs_modulus : float
            E, positive: of tetrahedra [Pa], of triangles times the thickness of the sheet [N/m].
        poisson_ratio : float
            nu [-], of tetrahedra in (-1, 0.5), of triangles in (-0.5, 1).

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        mu, lam = cls.moduli(youngs_modulus, poisson_ratio)
        make: Any = cls
        return make(elements, rest_positions, mu, lam, **options)

    @classmethod
    def from_lame(
        cls, elements: Any, rest_positions: Any, mu: Any, lam: Any, **options: Any
    ) -> Self:
        """Return elements with these Lame constants at small strains.

        The class itself takes moduli of its own law, which may be others. `mu` and `lam` are () or
        (n_elements,), of tetrahedra [Pa], of triangles in plane stress and times the thickness
        [N/m]; the rest is as in `from_young`.
        """
        mu, lam = np.asarray(mu, float), np.asarray(lam, float)
        make: Any = cls
        mu, lam = cls.MU_SHARE * mu, lam + cls.LAM_SHARE * mu
        return make(elements, rest_positions, mu, lam, **options)

    @classmethod
    def moduli(cls, youngs_modulus: float, poisson_ratio: float) -> tuple[float, float]:
        """Return `mu` and `lam` of this law with the small strains of E and nu: `from_young`."""
        mu, lam = cls.small_strain_lame(youngs_modulus, poisson_ratio)
        return cls.MU_SHARE * mu, lam + cls.LAM_SHARE * mu

    @classmethod
    def small_strain_lame(cls, youngs_modulus: float, poisson_ratio: float) -> tuple[float, float]:
        """Return Lame's constants: mu = E/(2 (1 + nu)), lam = 2 mu nu/(1 - nu/nu_most).

        nu_most is 1/2 in a solid and 1 in plane stress. Raise a ValueError if an argument is out of
        range.
        """
        E = checks.number("youngs_modulus", youngs_modulus)
        nu = checks.number("poisson_ratio", poisson_ratio)
        checks.positive("youngs_modulus", E)
        least, most = cls.POISSON
        if not least < nu < most:
            raise ValueError(
                f"`poisson_ratio` must be in ({least:g}, {most:g}), got {nu:g}: {cls.POISSON_HINT}"
            )
        mu = E / (2.0 * (1.0 + nu))
        return mu, 2.0 * mu * nu / (1.0 - nu / most)

    def freeze_material(self, mu: np.ndarray, lam: np.ndarray, size: str) -> None:
        """Freeze moduli that were checked; check and freeze the other parameters of elements."""
        n = len(self.nodes)
        checks.freeze(self, "mu", mu)
        checks.freeze(self, "lam", lam)
        if self.viscosity is not None:
            eta = checks.scalar_or_array("viscosity", self.viscosity, n, size)
            checks.freeze(self, "viscosity", checks.non_negative("viscosity", eta))
        if self.density is not None:
            checks.freeze(self, "density", self.check_density(self.density))
        freeze_series(self, "actuation", ((), (n,)))

    @property
    def kind(self) -> ElementKind:
        """Elastic, or viscous where a viscosity was given."""
        return self.ELASTIC if self.viscosity is None else self.VISCOUS

    def third_row(self) -> np.ndarray:
        """Alpha at a = 0."""
        return 1.0 + self.ALPHA * self.mu / self.lam

    def third_row_jvp(self, tan_mu: np.ndarray, tan_lam: np.ndarray) -> np.ndarray:
        """Push tangents of mu and lam to the third row."""
        return self.ALPHA * (tan_mu - self.mu / self.lam * tan_lam) / self.lam

    def pack_params(self) -> np.ndarray:
        """Pack mu V, lam/LAM_PARTS, the third row, and eta V where there is viscosity."""
        measure = self.rest_measure()
        parts = (self.lam / self.LAM_PARTS, self.third_row())
        rows = [self.mu * measure, *(broadcast(row, len(measure)) for row in parts)]
        if self.viscosity is not None:
            rows.append(self.viscosity * measure)
        return np.stack(rows, axis=-1)

    @abstractmethod
    def squared_gradients(self) -> np.ndarray:
        """V times the summed squares of the shape functions' gradients, (n_elements,)."""

    def stiffness_bound(self) -> np.ndarray:
        """Return (lam + 2 mu) times `squared_gradients`."""
        return (self.lam + 2.0 * self.mu) * self.squared_gradients()

    def damping_bound(self) -> np.ndarray:
        """Return 2 eta times the same: at rest the viscous stress is 2 eta times symmetric dF."""
        eta = 0.0 if self.viscosity is None else self.viscosity
        return 2.0 * eta * self.squared_gradients()

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of mu, lam, viscosity and actuation to rows."""
        measure, none = self.rest_measure(), np.zeros(())
        tan_mu, tan_lam = tangents.get("mu", none), tangents.get("lam", none)
        parts = (tan_lam / self.LAM_PARTS, self.third_row_jvp(tan_mu, tan_lam))
        rows = [tan_mu * measure, *(broadcast(row, len(measure)) for row in parts)]
        if self.viscosity is not None:
            rows.append(tangents.get("viscosity", none) * measure)
        return np.stack(rows, axis=-1), self.series_jvp(tangents, n_steps)

    def tan_params(self, tan_measure: np.ndarray) -> np.ndarray:
        """Push a tangent of the measures to mu V and eta V, and 0 to the others."""
        zero = np.zeros_like(tan_measure)
        rows = [self.mu * tan_measure, zero, zero]
        if self.viscosity is not None:
            rows.append(self.viscosity * tan_measure)
        return np.stack(rows, axis=-1)
