"""Schedules are executed on sets: a fake model knows which states exist, no more."""

import math
from functools import singledispatchmethod

import checkpoint_schedules
import pytest
from hypothesis import assume, given, settings, strategies as st

from adjoint.checkpoint_actions import Discard, EndForward, Forward, Restore, Reverse, Store
from adjoint.engine.checkpoint_states import SEGMENT_SECONDS, choose_schedule
from adjoint.schedules import (
    Binomial,
    EveryK,
    MemoryBudget,
    Schedule,
    ScheduleCost,
    Segments,
    StoreAll,
    as_schedule,
    size_in_bytes,
)
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.grid import box_tets
from adjsim.model import Model
from adjsim.system import RunSettings, make_stepper


SIZES = (0, 1, 2, 3, 5, 7, 10, 16, 37, 100, 251)
BYTES = 48


class FakeExecutor:
    """Carries out actions on step numbers; every action asserts its preconditions."""

    def __init__(self, n_steps, price=0.0):
        self.n_steps = n_steps
        self.price = price
        self.segments = 0
        self.current = 0
        self.stored = set()
        self.buffer = range(0)
        self.end_reached = False
        self.reversed_down_to = n_steps
        self.forward_steps = 0
        self.most_stored = 0
        self.longest_buffer = 0

    def run(self, schedule):
        for action in schedule.choose(self.n_steps, BYTES, self.price).actions(self.n_steps):
            self.act(action)
        assert self.end_reached, "the forward sweep never ended"
        assert self.reversed_down_to == 0, "not every step was reversed"
        assert not self.stored, "a state was never freed"
        return ScheduleCost(
            self.forward_steps - self.n_steps,
            self.forward_steps,
            self.most_stored,
            self.longest_buffer,
            (self.most_stored + self.longest_buffer) * BYTES,
        )

    @singledispatchmethod
    def act(self, action):
        raise TypeError(f"Unexpected action {action}.")

    @act.register
    def _(self, action: Forward):
        assert self.current == action.start < action.stop <= self.reversed_down_to
        self.current = action.stop
        self.forward_steps += action.stop - action.start
        if action.keep:
            self._fill(action.start, action.stop)

    @act.register
    def _(self, action: Store):
        assert self.current == action.step
        assert action.step not in self.stored
        self.stored.add(action.step)
        self.most_stored = max(self.most_stored, len(self.stored))

    @act.register
    def _(self, action: Restore):
        assert self.end_reached
        assert action.step in self.stored
        assert action.step < self.reversed_down_to
        self.current = action.step

    @act.register
    def _(self, action: Discard):
        self.stored.remove(action.step)

    @act.register
    def _(self, action: EndForward):
        assert not self.end_reached
        assert self.current == self.n_steps == self.forward_steps
        self.end_reached = True

    @act.register
    def _(self, action: Reverse):
        assert self.end_reached
        assert action.start < action.stop == self.reversed_down_to
        self.segments += 1
        if not action.kept:
            assert self.current == action.start
            self._fill(action.start, action.stop)
            self.forward_steps += action.stop - action.start - 1
        assert self.buffer == range(action.start, action.stop)
        self.reversed_down_to = action.start
        self.buffer = range(0)
        self.current = None

    def _fill(self, start, stop):
        assert len(self.buffer) == 0
        self.buffer = range(start, stop)
        self.longest_buffer = max(self.longest_buffer, len(self.buffer))


FIXED = [
    StoreAll(),
    *(EveryK(k) for k in (1, 2, 3, 10, 1000)),
    *(Binomial(s) for s in (1, 2, 3, 5, 40)),
    *(Binomial(s, segment) for s, segment in ((1, 4), (3, 7), (2, 300))),
]


@pytest.mark.parametrize("n_steps", SIZES)
@pytest.mark.parametrize("schedule", FIXED, ids=repr)
def test_every_step_is_reversed_once_and_the_cost_is_as_predicted(schedule, n_steps):
    assert FakeExecutor(n_steps).run(schedule) == schedule.cost(n_steps, BYTES)


@pytest.mark.parametrize("n_steps", [n for n in SIZES if n])
@pytest.mark.parametrize("n_states", [2, 3, 4, 6, 9, 20, 100, 300])
@pytest.mark.parametrize("price", [0.0, 0.7, 30.0, 1000.0])
def test_a_budget_is_kept_and_its_cost_is_as_predicted(n_states, n_steps, price):
    schedule = MemoryBudget(n_states * BYTES + BYTES - 1)
    counted = FakeExecutor(n_steps, price).run(schedule)
    assert counted == schedule.cost(n_steps, BYTES, price)
    assert counted.bytes <= n_states * BYTES


@settings(max_examples=300, deadline=None, derandomize=True)
@given(n_steps=st.integers(1, 400), snapshots=st.integers(1, 30), segment=st.integers(1, 30))
def test_binomial_schedules_are_valid_for_any_sizes(n_steps, snapshots, segment):
    schedule = Binomial(snapshots, segment)
    assert FakeExecutor(n_steps).run(schedule) == schedule.cost(n_steps, BYTES)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(n_steps=st.integers(1, 400), stored=st.integers(0, 30), buffered=st.integers(1, 60))
def test_segments_cost_the_steps_that_do_not_fit(n_steps, stored, buffered):
    assume(n_steps <= (stored + 1) * buffered)
    schedule = Segments(stored, buffered)
    counted = FakeExecutor(n_steps).run(schedule)
    assert counted == schedule.cost(n_steps, BYTES)
    assert counted.extra_forward_steps == max(
        0, n_steps - counted.stored_states - counted.buffered_states
    )


def steps_of_the_oracle(n_steps, snapshots):
    """Return the plain forward steps that `checkpoint_schedules.Revolve` takes.

    It counts, for every step it reverses, one more step that records what the adjoint of
    that step needs. Ours needs the state at the start of the step only.
    """
    if snapshots >= n_steps:  # it insists on fewer snapshots than steps
        snapshots = max(1, n_steps - 1)
    advances = 0
    schedule = checkpoint_schedules.Revolve(n_steps, snapshots)
    for action in schedule:
        if isinstance(action, checkpoint_schedules.Forward) and not action.write_adj_deps:
            advances += action.n1 - action.n0
        if isinstance(action, checkpoint_schedules.EndReverse):
            return advances
    raise AssertionError("the oracle never ended")


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("n_steps", [2, 3, 4, 9, 20, 57, 100])
def test_binomial_takes_as_many_steps_as_revolve(n_steps, snapshots):
    counted = FakeExecutor(n_steps).run(Binomial(snapshots))
    # One more than the oracle: our forward sweep runs the last step, for its frame.
    assert counted.total_forward_steps == steps_of_the_oracle(n_steps, snapshots) + 1


def test_binomial_agrees_with_the_closed_form_at_its_corners():
    # beta(s, r) = (s + r)! / (s! r!) steps need r beta(s, r) - beta(s + 1, r - 1).
    for snapshots in range(1, 6):
        for repetitions in range(1, 5):
            n_steps = math.comb(snapshots + repetitions, repetitions)
            advances = repetitions * n_steps - math.comb(snapshots + repetitions, repetitions - 1)
            counted = FakeExecutor(n_steps).run(Binomial(snapshots))
            assert counted.total_forward_steps == advances + 1


def test_no_schedule_beats_binomial_by_dynamic_programming():
    # t(l, s) = min over m of m + t(l - m, s - 1) + t(m, s); t(1, s) = 0; t(l, 0) = inf.
    longest = 30
    best = {(1, s): 0 for s in range(6)} | {(l, 0): math.inf for l in range(2, longest)}
    for s in range(1, 6):
        for l in range(2, longest):
            best[l, s] = min(m + best[l - m, s - 1] + best[m, s] for m in range(1, l))
            assert Binomial(s).cost(l, 1).total_forward_steps == best[l, s] + 1


def test_a_budget_takes_the_cheapest_kind_of_schedule_that_fits():
    assert MemoryBudget(100 * BYTES).choose(100, BYTES) == StoreAll()
    two_level = MemoryBudget(20 * BYTES).choose(100, BYTES)
    assert isinstance(two_level, Segments)
    assert two_level.cost(100, BYTES).extra_forward_steps == 100 - 20
    # 20 states, two levels: at most (m + 1) (20 - m) = 110 steps.
    assert isinstance(MemoryBudget(20 * BYTES).choose(110, BYTES), Segments)
    assert isinstance(MemoryBudget(20 * BYTES).choose(111, BYTES), Binomial)


def test_a_budget_takes_the_fewest_steps_where_segments_cost_nothing():
    for n_states in (3, 5, 10, 30):
        for n_steps in (200, 1000, 5000):
            budget = MemoryBudget(n_states * BYTES).cost(n_steps, BYTES)
            # A buffer of one state is counted too, hence one snapshot fewer.
            best = Binomial(n_states - 1).cost(n_steps, BYTES)
            assert budget.total_forward_steps <= 1.02 * best.total_forward_steps


def tetrahedra(cells):
    """Return the stepper of a box of tetrahedra, which has not run."""
    mesh = box_tets(cells=cells)
    model = Model(forces={"box": NeoHookeanTets(mesh.tets, mesh.points, 1e4, 1e4, density=1e3)})
    return make_stepper(model, RunSettings(1e-4, N_STEPS, threads=1))


N_STEPS = 5000


@pytest.mark.parametrize("budget", ["20kB", "200kB"])
@pytest.mark.parametrize("cells", [(1, 1, 1), (1, 1, 2), (2, 2, 3), (3, 3, 4), (4, 4, 4)])
def test_a_budget_is_predicted_to_take_little_longer_than_any_plan_by_hand(cells, budget):
    stepper = tetrahedra(cells)
    size, price = stepper.bytes_per_state(), SEGMENT_SECONDS / stepper.step_seconds

    def work(schedule):
        """Return forward steps, reverse steps that take twice as long, and segments, in steps."""
        run = FakeExecutor(N_STEPS)
        return run.run(schedule).total_forward_steps + 2 * N_STEPS + price * run.segments

    n_states = size_in_bytes(budget) // size
    chosen, cost = choose_schedule(budget, stepper)
    assert cost.bytes <= n_states * size
    by_hand = [Binomial(n_states - k, k) for k in range(1, n_states, 1 + n_states // 20)]
    assert work(chosen) <= 1.02 * min(map(work, by_hand))


def test_segments_are_long_where_a_step_takes_microseconds():
    # The price in steps: hundreds where there are ten tetrahedra, a few where there are a thousand.
    small, large = (SEGMENT_SECONDS / tetrahedra(c).step_seconds for c in ((1, 1, 2), (6, 6, 6)))
    assert 100 < small < 500
    assert 2 < large < 10
    budget = MemoryBudget(30 * BYTES)
    assert budget.choose(N_STEPS, BYTES, small).segment >= 10
    assert budget.choose(N_STEPS, BYTES, 0.01).segment == 1


def test_long_horizons_are_planned_at_once():
    cost = MemoryBudget("100MB").cost(10_000_000, 10_000)
    assert cost.bytes <= 100_000_000
    assert cost.extra_forward_steps < 10_000_000


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("100MB", 10**8),
        ("100 MB", 10**8),
        ("1.5GiB", 3 * 2**29),
        ("0.5kB", 500),
        ("12B", 12),
        ("2TiB", 2**41),
        (4096, 4096),
    ],
)
def test_sizes_are_read_in_powers_of_ten_or_two(text, n_bytes):
    assert size_in_bytes(text) == n_bytes


@pytest.mark.parametrize(
    "text", ["100", "MB", "All", "100 mb", "-1MB", "100iB", "", 1.5, True, b"1MB"]
)
def test_a_size_that_cannot_be_read_is_refused_with_the_units(text):
    with pytest.raises(ValueError, match=r"`checkpoint` must be None or \"all\".*\"100MB\".*kiB"):
        as_schedule(text)


@pytest.mark.parametrize("size", [0, -5, "0MB"])
def test_a_size_that_is_not_positive_is_refused(size):
    with pytest.raises(ValueError, match="`checkpoint` must be positive"):
        as_schedule(size)


def test_a_budget_below_two_states_says_the_least_that_works():
    with pytest.raises(ValueError, match=r"at least two states, 2 x 600 = 1200 bytes.*'1kB'"):
        MemoryBudget("1kB").cost(10, 600)
    assert MemoryBudget(1200).cost(10, 600).bytes == 1200


def test_the_actions_of_a_budget_are_those_of_what_it_chooses():
    with pytest.raises(ValueError, match=r"got a `MemoryBudget`. Call `budget.choose\(10, "):
        MemoryBudget("1MB").actions(10)


def test_segments_that_cannot_cover_the_steps_are_refused():
    with pytest.raises(ValueError, match=r"reverses at most 12 steps, got n_steps = 13"):
        Segments(2, 4).cost(13, 1)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: EveryK(0), "k"),
        (lambda: EveryK(2.0), "k"),
        (lambda: Binomial(0), "snapshots"),
        (lambda: Binomial(1, 0), "segment"),
        (lambda: Segments(-1, 1), "stored"),
        (lambda: Segments(1, 0), "buffered"),
        (lambda: StoreAll().actions(-1), "n_steps"),
        (lambda: StoreAll().cost(True, 1), "n_steps"),
        (lambda: StoreAll().cost(3, 0), "bytes_per_state"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_by_name(make, name):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least"):
        make()


def test_a_checkpoint_argument_becomes_a_schedule():
    assert as_schedule(None) == as_schedule("all") == StoreAll()
    assert as_schedule("1MB") == MemoryBudget("1MB")
    assert as_schedule(5000) == MemoryBudget(5000)
    assert as_schedule(EveryK(3)) == EveryK(3)
    assert isinstance(as_schedule(None), Schedule)


def test_an_executor_refuses_an_action_it_does_not_know():
    with pytest.raises(TypeError, match="Unexpected action"):
        FakeExecutor(1).act("forward")
