"""What every system with a state of its own must prove, once.

    class TestFoo(SystemContract):
        def make(self, rng): return Foo(...), FooState(...)
        def reference(self, values, n_steps): return fields of all states, in plain NumPy

`make` must be generic: away from kinks by more than the steps of differences.
"""

from abc import ABC, abstractmethod

import numpy as np
import pytest

from adjoint import Binomial, EveryK, dot_test, gradcheck, record, rollout_jvp
from adjsim.rollout import rollout


EPS = np.finfo(np.float64).eps
EPS32 = np.finfo(np.float32).eps


def values_of(system, state):
    """Every differentiable parameter by its path."""
    return {**system.parameters(), **system.state_parameters(state)}


class SystemContract(ABC):
    """Forward against a reference; tangent and adjoint against differences and each other."""

    DT, N_STEPS, FRAMES = 0.02, 12, (0, 5, 12)
    FIELDS: tuple[str, str]
    FIRST_STEP = None  # of differences; None: as `gradcheck` chooses
    FLOAT32 = 1e4  # rounding of float32 grows by this much over the rollout

    @abstractmethod
    def make(self, rng):
        """Return a system and its initial state."""

    @abstractmethod
    def reference(self, values, n_steps):
        """Return the fields of states 0 to n_steps at other values, which may be complex."""

    def fields(self, trajectory):
        return [getattr(trajectory, name) for name in self.FIELDS]

    def run(self, system, state, **options):
        options = {"frames": self.FRAMES, **options}
        return rollout(system, state, self.DT, self.N_STEPS, **options)

    def record(self, system, state, **options):
        options = {"frames": self.FRAMES, **options}
        return record(system, state, self.DT, self.N_STEPS, **options)

    def cotangents(self, system, state):
        rng = np.random.default_rng(3)
        return [rng.standard_normal(f.shape) for f in self.fields(self.run(system, state))]

    @pytest.fixture
    def made(self, rng):
        return self.make(rng)

    def test_states_are_those_of_the_reference(self, made):
        expected = self.reference(values_of(*made), self.N_STEPS)
        for got, want in zip(self.fields(self.run(*made)), expected, strict=True):
            scale = np.abs(want).max()
            # a few dozen operations per step on numbers of this size, some amplified
            np.testing.assert_allclose(got, want[list(self.FRAMES)], rtol=0, atol=1e3 * EPS * scale)

    def test_the_gradient_is_that_of_the_reference(self, made):
        adj = self.cotangents(*made)
        gradient = self.record(*made).vjp(*adj)
        values, rng = values_of(*made), np.random.default_rng(4)
        for path, value in values.items():
            direction = rng.standard_normal(value.shape)
            moved = self.reference({**values, path: value + 1e-30j * direction}, self.N_STEPS)
            frames = [field[list(self.FRAMES)] for field in moved]
            exact = sum(np.sum(a * f.imag) for a, f in zip(adj, frames, strict=True)) / 1e-30
            slope = np.sum(gradient[path] * direction)
            assert slope != 0.0
            np.testing.assert_allclose(slope, exact, rtol=1e-9, err_msg=path)

    def test_the_gradient_agrees_with_differences(self, made):
        system, state = made
        adj = self.cotangents(*made)

        def loss(values):
            fields = self.fields(self.run(*system.with_values(state, values)))
            return float(sum(np.sum(a * f) for a, f in zip(adj, fields, strict=True)))

        gradient = self.record(*made).vjp(*adj)
        step = {} if self.FIRST_STEP is None else {"step": self.FIRST_STEP}
        check = gradcheck(loss, gradient, values_of(*made), **step)
        assert check.passed, check.table()

    def test_tangent_and_adjoint_are_transposes(self, made):
        values, record_ = values_of(*made), self.record(*made)

        def jvp(tangents):
            options = {"frames": self.FRAMES}
            _, tangent = rollout_jvp(*made, self.DT, self.N_STEPS, tangents, **options)
            return dict(zip(self.FIELDS, self.fields(tangent), strict=True))

        test = dot_test(jvp, lambda adj: record_.vjp(*adj.values()), values, tolerance=1e-12)
        assert test.passed, test.table()

    def test_the_tangent_brings_the_same_states(self, made):
        tangents = {path: np.ones(v.shape) for path, v in values_of(*made).items()}
        states, _ = rollout_jvp(*made, self.DT, self.N_STEPS, tangents, frames=self.FRAMES)
        run, recorded = self.run(*made), self.record(*made).trajectory
        np.testing.assert_array_equal(run.steps, self.FRAMES)
        np.testing.assert_allclose(run.times, np.array(self.FRAMES) * self.DT, rtol=EPS)
        for a, b, c in zip(*map(self.fields, (run, recorded, states)), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(c, a, rtol=0, atol=1e3 * EPS * np.abs(a).max())

    @pytest.mark.parametrize("schedule", [EveryK(5), Binomial(2), "20kB"])
    def test_every_schedule_gives_the_same_bits(self, made, schedule):
        adj = self.cotangents(*made)
        stored = self.record(*made).vjp(*adj)
        recorded = self.record(*made, checkpoint=schedule)
        for _ in range(2):
            for path, value in recorded.vjp(*adj).items():
                np.testing.assert_array_equal(value, stored[path], err_msg=path)

    def test_threads_do_not_change_a_bit(self, made):
        adj = self.cotangents(*made)
        alone = self.record(*made, threads=1)
        gradient = alone.vjp(*adj)
        for threads in (2, 3):
            together = self.record(*made, threads=threads)
            for a, b in zip(
                *map(self.fields, (alone.trajectory, together.trajectory)), strict=True
            ):
                np.testing.assert_array_equal(a, b)
            for path, value in together.vjp(*adj).items():
                np.testing.assert_array_equal(value, gradient[path], err_msg=path)

    def test_float32_is_float64_but_for_rounding(self, made):
        adj = self.cotangents(*made)
        both = [self.record(*made, dtype=dtype) for dtype in ("float64", "float32")]
        for a, b in zip(*(self.fields(r.trajectory) for r in both), strict=True):
            assert b.dtype == np.float32
            np.testing.assert_allclose(b, a, rtol=0, atol=self.FLOAT32 * EPS32 * np.abs(a).max())
        exact, rounded = (r.vjp(*adj) for r in both)
        for path, value in exact.items():
            scale = self.FLOAT32 * EPS32 * np.abs(value).max()
            np.testing.assert_allclose(rounded[path], value, rtol=0, atol=scale, err_msg=path)

    def test_only_the_wanted_gradient_is_returned(self, made):
        adj = self.cotangents(*made)
        recorded = self.record(*made)
        wanted = list(values_of(*made))[-2:]
        some, everything = recorded.vjp(*adj, wrt=wanted), recorded.vjp(*adj)
        assert list(some) == wanted
        for path in wanted:
            np.testing.assert_array_equal(some[path], everything[path])
            assert some[path].shape == values_of(*made)[path].shape

    def test_a_missing_cotangent_is_zero(self, made):
        adj = self.cotangents(*made)
        recorded = self.record(*made)
        left = recorded.vjp(adj[0])
        explicit = recorded.vjp(adj[0], np.zeros_like(adj[1]))
        for path, value in left.items():
            np.testing.assert_array_equal(value, explicit[path])

    def test_what_does_not_fit_is_named(self, made):
        system, state = made
        with pytest.raises(ValueError, match=r"Unknown parameter `stat\.x`"):
            self.record(*made).vjp(*self.cotangents(*made), wrt=["stat.x"])
        with pytest.raises(ValueError, match="Unknown parameter `lenght`"):
            system.with_values(state, {"lenght": 1.0})
        with pytest.raises(ValueError, match=f"`adj_{self.FIELDS[0]}` must have shape"):
            self.record(*made).vjp(np.ones(4))
        with pytest.raises(TypeError, match="`state` must be a"):
            self.run(system, object())
