"""What the tests of neo-Hookean solids and shells share."""

import dataclasses

import numpy as np
import pytest

from adjoint.verify.contract import (
    EPS,
    N_OPS,
    InternalForceContract,
    element_input,
    on_nodes,
    relative,
    vectors,
)
from adjsim.model import State


class SolidContract(InternalForceContract):
    """Elements near their rest: subclasses have `random`, `energy_of` and `SPREAD` [m]."""

    SPREAD = 0.01

    def make(self, rng):
        return self.random(rng)

    def state(self, rng, force):
        rest = force.rest_positions
        spread = self.SPREAD * rng.standard_normal(rest.shape)
        return State(rest + spread, rng.standard_normal(rest.shape))

    def energy(self, force, x):
        inputs = (element_input(force, e, x, x) for e in range(len(force.nodes)))
        return sum(self.energy_of(x, c, p, s) for x, _, c, p, s in inputs)

    def at_rest(self, force):
        return dataclasses.replace(force, actuation=0.0)


class LawFacts:
    """What holds of every law; subclasses have `random`, the class `LAW` and `BAD_RATIOS`."""

    VISCOSITY, LEAST = 30.0, 0.3  # [Pa s] and what part of a bound is reached

    def matrix(self, force, e, *, by_velocity):
        """Minus the derivative of the forces of an element at rest, from tangents."""
        kind, x = force.kind, force.rest_positions
        point = element_input(force, e, x, np.zeros_like(x))
        nodes = kind.n_nodes
        none = ((0.0,) * 3,) * (nodes - 1)
        columns = []
        for unit in np.eye(3 * nodes):
            tan = vectors(relative(unit.reshape(nodes, 3)))
            of_both = (none, tan) if by_velocity else (tan, none if kind.uses_velocity else ())
            tan_f = kind.jvp(*point, *of_both, (0.0,) * kind.n_params, (0.0,))
            columns.append(np.ravel(on_nodes(tan_f)))
        return -np.array(columns)

    @pytest.mark.parametrize("by_velocity", [False, True])
    def test_bounds_are_above_the_largest_eigenvalues(self, rng, by_velocity):
        viscosity = self.VISCOSITY if by_velocity else None
        force = self.random(rng, viscosity=viscosity, actuation=0.0)
        bound = force.damping_bound() if by_velocity else force.stiffness_bound()
        for e in range(5):
            K = self.matrix(force, e, by_velocity=by_velocity)
            assert np.abs(K - K.T).max() <= N_OPS * EPS * np.abs(K).max()
            assert self.LEAST * bound[e] <= np.linalg.eigvalsh(K).max() <= bound[e]

    def test_without_a_viscosity_velocities_are_not_read(self, rng):
        force = self.random(rng, viscosity=None)
        assert force.kind is self.LAW.ELASTIC
        assert "viscosity" not in force.parameters()
        assert not force.damping_bound().any()
        assert dataclasses.replace(force, viscosity=0.0).kind is self.LAW.VISCOUS

    def test_constants_must_be_in_their_ranges(self):
        least, most = self.LAW.POISSON
        for nu in self.BAD_RATIOS:
            with pytest.raises(ValueError, match=rf"`poisson_ratio` .* \({least:g}, {most:g}\), g"):
                self.LAW.moduli(1e5, nu)
        for E in (0.0, -1.0):
            with pytest.raises(ValueError, match="`youngs_modulus` must be positive, got"):
                self.LAW.moduli(E, 0.3)
        with pytest.raises(ValueError, match="`youngs_modulus` must be finite, got nan"):
            self.LAW.moduli(np.nan, 0.3)
        with pytest.raises(ValueError, match="`poisson_ratio` must be finite, got nan"):
            self.LAW.moduli(1e5, np.nan)
