"""What every force must prove, once; a force's own test file adds its closed forms. Needs pytest.

    class TestFoos(ForceContract):
        def make(self, rng): return Foos(...)
        def state(self, rng, force): return State(...)

`state` must be generic: away from kinks by more than the steps of differences, with every
branch of the force in it. Forces between nodes only inherit `InternalForceContract`, which
adds the invariances and, through `energy`, force = -grad energy.
"""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pytest

from adjoint.forces.registry import twin_of
from adjoint.rollout import record, rollout_jvp
from adjoint.verify.dot_test import dot_test
from adjoint.verify.gradcheck import gradcheck
from adjsim.forces.acted_rows import ActedRows
from adjsim.model import Model, State
from adjsim.rollout import rollout


EPS = np.finfo(np.float64).eps
EPS32 = np.finfo(np.float32).eps
N_OPS = 500  # operations between an element's inputs and its forces, no force has more


def values_of(model, state):
    """Return every differentiable parameter by its path."""
    return {**model.parameters(), **model.state_parameters(state)}


def vectors(rows):
    """Rows of an (n, 3) array as the tuple of tuples that element functions take."""
    return tuple(tuple(float(c) for c in row) for row in rows)


def relative(corners):
    """Corners as a relative kind sees them: from the first to each of the others."""
    return corners[1:] - corners[0]


def on_nodes(f):
    """Forces on all nodes from those on all but the first, as a relative kind returns them."""
    return np.vstack([-np.sum(f, axis=0), f])


def numbers(row):
    """A row of numbers as a flat tuple."""
    return tuple(float(value) for value in row)


def element_input(force, e, x, v):
    """What the element function gets of element e, in its order."""
    nodes = force.nodes[e]
    seen = relative if force.kind.relative else np.asarray
    return (
        vectors(seen(x[nodes])),
        vectors(seen(v[nodes])) if force.kind.uses_velocity else (),
        numbers(force.pack_consts()[e]),
        numbers(force.pack_params()[e]),
        numbers(force.pack_series(1)[0, e]),
    )


def flat(parts):
    """Nested tuples of numbers as one vector."""
    return np.array([value for block in parts for value in np.ravel(block)], dtype=np.float64)


def shaped(vector, like):
    """One vector as nested tuples shaped like some others: the inverse of `flat`."""
    out, start = [], 0
    for array in like:
        size = np.size(array)
        block = np.reshape(vector[start : start + size], np.shape(array))
        out.append(vectors(block) if block.ndim == 2 else numbers(block))
        start += size
    return tuple(out)


def nodal_forces(force, x, v):
    """Forces (n, 3) [N] by calling the element function, one element after the other."""
    out = np.zeros_like(x)
    for e, nodes in enumerate(force.nodes):
        f = np.array(force.kind.force(*element_input(force, e, x, v)))
        out[nodes] += on_nodes(f) if force.kind.relative else f
    return out


def packed_forces(force, x, v, **options):
    """Forces [N] by way of tiles, slots and node sums: v' - v in a step of unit mass and dt."""
    model = Model(np.ones(len(x)), {"it": force}, gravity=(0.0, 0.0, 0.0))
    end = rollout(model, State(x, v), 1.0, 1, **options)
    return end.v[0] - v


class ForceContract(ABC):
    """Rungs of the ladder that hold for any force."""

    def __init_subclass__(cls) -> None:
        """Raise on a test class that lacks a method: pytest would leave it out without a word."""
        every = {name: getattr(cls, name, None) for name in dir(cls)}
        lacking = [name for name, it in every.items() if getattr(it, "__isabstractmethod__", False)]
        if lacking and cls.__name__.startswith("Test"):
            raise TypeError(f"{cls.__name__} must define {', '.join(lacking)}.")

    @abstractmethod
    def make(self, rng: np.random.Generator) -> Any:
        """A force with one tile more than it fills, parameters all different from zero."""

    @abstractmethod
    def state(self, rng: np.random.Generator, force: Any) -> Any:
        """A generic state of the nodes."""

    @pytest.fixture
    def rng(self):
        """Return a generator with the same seed in every test."""
        return np.random.default_rng(20210503)

    @pytest.fixture
    def case(self, rng):
        """The force bound to its nodes, positions and velocities."""
        force = self.make(rng)
        state = self.state(rng, force)
        rows = ActedRows.of_nodes(len(state.x))
        bound = force.bind(rows, "it").with_mass(np.ones(len(state.x)))
        return bound, state.x, state.v

    @pytest.fixture
    def moving(self, rng, case):
        """One model with this force only, its state, and a step that is felt."""
        force, x, v = case
        model = Model(rng.uniform(0.5, 2.0, len(x)), {"it": force}, gravity=(0.3, -9.8, 0.2))
        return model, State(x, v), 0.1

    def test_packed_forces_are_the_sums_of_the_elements(self, case):
        force, x, v = case
        expected = nodal_forces(force, x, v)
        assert np.abs(expected).max() > 0.0
        # v + f - v loses eps max(|v|, |f|); a node sums a few dozen slots.
        size = np.abs(expected).max() + np.abs(v).max()
        np.testing.assert_allclose(
            packed_forces(force, x, v), expected, rtol=0, atol=100 * EPS * size
        )

    def test_full_jacobian_of_an_element_matches_central_differences(self, case):
        force, x, v = case
        twin, tangent = twin_of(force).twin_kind(force), force.kind.jvp
        assert tangent is not None, "the kind needs a `jvp`"
        checked = 0
        for e in range(min(4, len(force.nodes))):
            point = element_input(force, e, x, v)
            primals = (point[0], point[1], point[3], point[4])
            base = flat(primals)

            def f(vector, point=point, primals=primals):
                x_e, v_e, params, series = shaped(vector, primals)
                return flat(force.kind.force(x_e, v_e, point[2], params, series))

            jacobian = np.empty((3 * force.kind.n_vectors, len(base)))
            differences = np.empty_like(jacobian)
            for k, unit in enumerate(np.eye(len(base))):
                jacobian[:, k] = flat(tangent(*point, *shaped(unit, primals)))
                h = 5e-6 * max(abs(base[k]), 1e-2)
                differences[:, k] = (f(base + h * unit) - f(base - h * unit)) / (2 * h)
            # Relative error of a difference: h^2 + eps/h at h = 5e-6, times cancellation.
            scale = np.maximum(np.abs(base), 1e-2)
            np.testing.assert_allclose(
                differences * scale, jacobian * scale, rtol=0,
                atol=1e-8 * np.abs(jacobian * scale).max(initial=1e-300),
            )  # fmt: skip
            rows = [flat(twin.vjp(*point, shaped(c, f_like(force))[0])) for c in units(force)]
            np.testing.assert_allclose(
                np.array(rows) * scale, jacobian * scale, rtol=0,
                atol=N_OPS * EPS * np.abs(jacobian * scale).max(initial=1e-300),
            )  # fmt: skip
            checked += int(np.abs(jacobian).max() > 0.0)
        assert checked > 0

    def test_rest_shape_of_an_element_matches_central_differences(self, case):
        force, x, v = case
        twin: Any = twin_of(force).twin_kind(force)
        tangent: Any = force.kind.jvp_consts
        if twin.vjp_consts is None:
            assert force.kind.n_consts == 0 or "rest_positions" not in force.parameters()
            return
        for e in range(min(4, len(force.nodes))):
            x_e, v_e, consts, params, series = element_input(force, e, x, v)

            def f(c, at=(x_e, v_e), rows=(params, series)):
                return flat(force.kind.force(*at, numbers(c), *rows))

            base = np.array(consts)
            h = 1e-5 * np.abs(base).max()
            units_c = np.eye(len(base))
            differences = np.stack([f(base + h * u) - f(base - h * u) for u in units_c], 1) / 2 / h
            point = (x_e, v_e, consts, params, series)
            jacobian = np.stack([flat(tangent(*point, numbers(u))) for u in units_c], 1)
            rows = [twin.vjp_consts(*point, shaped(c, f_like(force))[0]) for c in units(force)]
            size = np.abs(jacobian).max()
            assert size > 0.0
            # As above: h^2 + eps/h, times cancellation.
            np.testing.assert_allclose(differences, jacobian, rtol=0, atol=1e-8 * size)
            np.testing.assert_allclose(rows, jacobian, rtol=0, atol=N_OPS * EPS * size)

    def test_gradient_of_every_parameter_matches_central_differences(self, moving):
        model, state, dt = moving
        run = record(model, state, dt, 1)

        def ends(values):
            moved, start = model.with_values(state, values)
            end = rollout(moved, start, dt, 1)
            return np.stack([end.x, end.v])

        def gradient(path):
            return lambda adj: {path: run.vjp(adj[0], adj[1], wrt=[path])[path]}

        for path, value in values_of(model, state).items():
            check = gradcheck(
                lambda block, path=path: ends({path: block[path]}),
                gradient(path),
                {path: value},
                n_directions=4,
                step=1e-4,  # small, so as not to cross a kink
            )
            assert check.passed, f"{path}: {check.table()}"

    def test_tangent_and_adjoint_of_one_step_are_transposes(self, moving):
        model, state, dt = moving
        run = record(model, state, dt, 1)

        def tangent(tangents):
            _, tan = rollout_jvp(model, state, dt, 1, tangents)
            return np.stack([tan.x, tan.v])

        for path, value in values_of(model, state).items():
            check = dot_test(
                tangent,
                lambda adj, path=path: {path: run.vjp(adj[0], adj[1], wrt=[path])[path]},
                {path: value},
                tolerance=1e-12,
            )
            assert check.passed, f"{path}: {check.table()}"

    def test_one_and_two_threads_give_the_same_bits(self, moving):
        model, state, dt = moving
        adj = np.random.default_rng(1).standard_normal((1, model.n_nodes, 3))
        runs = [record(model, state, dt, 1, threads=threads) for threads in (1, 2)]
        tangents = {path: np.ones_like(value) for path, value in values_of(model, state).items()}
        tans = [rollout_jvp(model, state, dt, 1, tangents, threads=threads) for threads in (1, 2)]
        np.testing.assert_array_equal(runs[0].trajectory.v, runs[1].trajectory.v)
        np.testing.assert_array_equal(tans[0][1].v, tans[1][1].v)
        serial, parallel = (run.vjp(adj, adj) for run in runs)
        for path in serial:
            np.testing.assert_array_equal(serial[path], parallel[path], err_msg=path)

    def test_float32_follows_float64(self, case):
        force, x, v = case
        exact = packed_forces(force, x, v)
        got = packed_forces(force, x, v, dtype="float32")
        assert got.dtype == np.float64  # of float32 minus float64
        # Every operation rounds by eps; differences of positions lose about a factor of 10.
        assert np.linalg.norm(got - exact) <= 10 * N_OPS * EPS32 * np.linalg.norm(exact)

    def test_a_parameter_that_is_not_finite_is_refused_by_name(self, case):
        force, _, _ = case
        for name, value in force.parameters().items():
            poisoned = np.array(value)
            poisoned.flat[-1] = np.nan
            with pytest.raises(ValueError, match=rf"`{name}` must be finite, got nan"):
                dataclasses.replace(force, **{name: poisoned})


class InternalForceContract(ForceContract):
    """Rungs for forces between nodes: they have an energy, and no place or direction."""

    @abstractmethod
    def energy(self, force: Any, x: np.ndarray) -> float:
        """The energy [J] of all elements."""

    @abstractmethod
    def at_rest(self, force: Any) -> Any:
        """The same force where its rest state is `rest_positions`: not actuated."""

    def test_force_is_minus_the_gradient_of_the_energy(self, case):
        force, x, _ = case
        f = nodal_forces(force, x, np.zeros_like(x))  # no velocity: no damping
        rng = np.random.default_rng(2)
        h = 1e-4 * np.abs(np.diff(x, axis=0)).max()
        for _ in range(10):
            d = rng.standard_normal(x.shape)
            d /= np.linalg.norm(d)
            at = [self.energy(force, x + k * h * d) for k in (-2, -1, 1, 2)]
            slope = (8.0 * (at[2] - at[1]) - (at[3] - at[0])) / (12.0 * h)
            # h^4 = 1e-16 of truncation, eps psi/h of rounding, which is 1e-10 of |f|.
            assert abs(slope + np.vdot(f, d)) <= 1e-8 * np.linalg.norm(f)

    def test_force_does_not_change_under_translation_and_boost(self, case):
        force, x, v = case
        f = nodal_forces(force, x, v)
        shifted = nodal_forces(force, x + np.array([0.5, -0.2, 0.3]), v + np.array([1.0, 2.0, -3]))
        # Positions of size 1 instead of 0.1 round ten times more coarsely.
        np.testing.assert_allclose(shifted, f, rtol=0, atol=100 * N_OPS * EPS * np.abs(f).max())

    def test_force_turns_with_the_body(self, case):
        force, x, v = case
        Q = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
        Q *= np.sign(np.linalg.det(Q))
        spin = np.cross([3.0, -2.0, 5.0], x @ Q.T)  # a rigid rotation is no deformation
        f = nodal_forces(force, x, v)
        turned = nodal_forces(force, x @ Q.T, v @ Q.T + spin)
        np.testing.assert_allclose(
            turned, f @ Q.T, rtol=0, atol=100 * N_OPS * EPS * np.abs(f).max()
        )

    def test_forces_and_torques_sum_to_zero(self, case):
        force, x, v = case
        f = nodal_forces(force, x, v)
        size = np.abs(f).sum()
        assert np.abs(f.sum(axis=0)).max() <= N_OPS * EPS * size
        assert np.abs(np.cross(x, f).sum(axis=0)).max() <= N_OPS * EPS * size * np.abs(x).max()

    def test_nothing_pulls_at_rest(self, case):
        force, x, v = case
        size = np.abs(nodal_forces(force, x, v)).max()
        rest = self.at_rest(force)
        f = nodal_forces(rest, rest.rest_positions, np.full_like(x, 7.0))
        assert np.abs(f).max() <= N_OPS * EPS * size


def f_like(force):
    """Something shaped like an element's forces."""
    return (np.zeros((force.kind.n_vectors, 3)),)


def units(force):
    """Unit cotangents of an element's forces."""
    return np.eye(3 * force.kind.n_vectors)
