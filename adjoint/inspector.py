r"""The adjoint on its way back: how it grows, what makes it grow, what makes the gradient.

The adjoint of a state is the derivative of the loss in that state. Undoing step k makes that of
state k, a, from that of state k + 1, b: what motion alone gives, and what every force adds,

    a = M^T b + sum over forces f of (df/dstate)^T adj_f

and then the cotangent of frame k is added. The sweep pauses at some steps, of a short rollout at
all, and undoes each of these steps alone. From |a|^2 - |b|^2 = <a + b, a - b>, where a - b is a
sum of parts c, follows without a remainder

    d ln|adjoint|/dt = sum over parts of <a + b, c>/((|a| + |b|) m dt)
    m = (|a| - |b|)/ln(|a|/|b|)

What the steps between two pauses give to the gradient of a parameter is the difference of what the
sweep has added up at these pauses. The share of a frame is the product of its cotangent and the
tangent of the frame along the gradient of one parameter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adjoint.system import Sweep, SystemTwin, fields_of
from adjsim import checks
from adjsim.contact_margins import contact_margins
from adjsim.extras import optional
from adjsim.forces.margins import ContactMargins
from adjsim.model import Model
from adjsim.system import Fields, Stepper
from adjsim.worlds import Batch


if TYPE_CHECKING:
    from xarray import Dataset

PAUSES = 64  # at most, unless a user wants others
SLOW = (".rest_positions", ".density")  # paths whose gradients take long to collect
LEAST_MEMORY = 1 << 24  # bytes that pauses may take, however little the schedule takes
CHANGES = "touch", "leave", "slip", "stick"
MOST_STOPS = 1000  # frames at which growth is measured
WINDOW = 128  # states whose contacts are looked at together
MOTION, BETWEEN, FRAMES = "motion", "steps between", "frames"
GROWTH_WARNING = 1e3  # growth of an adjoint from which on a fit needs stages
Parts = dict[str, np.ndarray]  # of a state, by name


@dataclass(frozen=True, eq=False)
class Inspection:
    """What `Record.inspect` found. Axis 0 of arrays by pause is that of `steps`.

    Parts of a state are "x" and "v" of nodes, "block.position" and the like of bodies, or what the
    system has instead. Sums over parts have them divided by `scales`, which makes them alike.

    Attributes
    ----------
    steps : array
        Where the sweep paused: states before the last frame, increasing from 0, (n_pauses,).
    dt : float
        The step [s].
    frames : array
        Steps of the frames, (n_frames,).
    trajectory : Trajectory, or what the system has for one
        The states at the pauses.
    adjoint : dict of str to array
        The adjoint of these states by part, (n_pauses, ...) [1/unit of the part].
    cotangents : dict of str to array
        Those of the frames by part, (n_frames, ...), as they were given.
    gradient : dict of str to array
        As `Record.vjp` returns it, the same to the bit.
    contributions : dict of str to array
        By path of a parameter of the system, (n_pauses, ...): what the steps from each pause to
        the next give to its gradient. They sum to it. Rest positions and densities are among them
        only if `wrt` names them: they take long. For those of the initial state see
        `origins`.
    added : dict of str to dict
        By force and part, (n_pauses,): the norm of what the force adds to the adjoint in the
        step that begins at the pause. "motion" is what is there without forces.
    rates : dict of str to array
        By force, (n_pauses,) [1/s]: its part of d ln|adjoint|/dt, backwards in time. They sum to
        the whole rate.
    origins : dict of str to dict
        By force and part: what it gave to the adjoint of state 0. "motion", "frames", the
        cotangents themselves, and "steps between", which lie between pauses, complete the sum.
    scales : dict of str to float
        By part: the geometric mean of the norm of its adjoint.
    growth : array
        ln of how many times larger the adjoint is at a pause than at the last frame, but for what
        frames add, (n_pauses,). With more than 1000 frames what they add counts as well.
    horizon : int or None
        Last pause from which rounding errors, relative to `scales`, grow as large as the motion
        before the last frame: of anything earlier a gradient says next to nothing. An estimate.
        None: there is no such pause.
    touching, slipping : dict of str to array
        By contact, (frames[-1],): how many points touch in every state, and how many of them slip;
        of joints how many are beyond a limit, and beyond the width of dry friction.
    events : dict of str to array
        "floor: touch", "floor: leave", "floor: slip" and "floor: stick" of every contact,
        (frames[-1],): how many points do so from each state to the next.
    shares : dict of str to array
        By path, (n_frames,): what each frame gives to |gradient|; they sum to it. Empty unless
        `thorough`.
    """

    steps: np.ndarray
    dt: float
    frames: np.ndarray
    trajectory: Any
    adjoint: Parts
    cotangents: Parts
    gradient: dict[str, np.ndarray]
    contributions: dict[str, np.ndarray]
    added: dict[str, dict[str, np.ndarray]]
    rates: dict[str, np.ndarray]
    origins: dict[str, Parts]
    scales: dict[str, float]
    growth: np.ndarray
    horizon: int | None
    touching: dict[str, np.ndarray]
    slipping: dict[str, np.ndarray]
    events: dict[str, np.ndarray]
    shares: dict[str, np.ndarray]

    @property
    def times(self) -> np.ndarray:
        """Time of each pause, (n_pauses,) [s]."""
        return self.steps * self.dt

    @property
    def exponent(self) -> float:
        """Mean rate at which the adjoint grows, from the last frame to the start [1/s]."""
        return float(self.growth[0] / (self.frames[-1] * self.dt))

    @property
    def mean_rates(self) -> np.ndarray:
        """Mean growth rate of the adjoint from each pause to the next, (n_pauses,) [1/s]."""
        lengths = np.diff([*self.steps, self.frames[-1]])
        return -np.diff([*self.growth, 0.0]) / (lengths * self.dt)

    def norms(self) -> dict[str, np.ndarray]:
        """Return the norm of the adjoint by part, (n_pauses,)."""
        return {name: sizes(value) for name, value in self.adjoint.items()}

    def summary(self) -> list[str]:
        """Return what there is to know of the gradient, in sentences."""
        rate, factor, sentences = self.exponent, np.exp(np.clip(self.growth[0], -700.0, 700.0)), []
        text = (
            "From the last frame back to the start the adjoint, the derivative of the loss in the "
            f"state, becomes {factor:.3g} times as large"
        )
        if factor > GROWTH_WARNING:
            text += (
                f", 10 times every {np.log(10.0) / rate:.3g} s ({rate:.3g}/s). Use stages: fit the "
                "first frames first (`search.stages`)"
            )
        else:
            text += f"; up to {GROWTH_WARNING:.0f} is no trouble for a search"
            if self.horizon is None:
                text += ". Nothing found here stands in its way"
        sentences.append(f"{text}.")
        sentences += self._fastest()
        if self.horizon is not None:
            sentences.append(
                f"Beyond the horizon, step {self.horizon} ({self.horizon * self.dt:.4g} s), "
                "rounding errors decide what happens until the last frame: of what is earlier the "
                "gradient carries no information. The horizon is an estimate."
            )
        return sentences

    def _fastest(self) -> list[str]:
        """Return where the adjoint grows most, in a tenth of the time, and by which force."""
        ends, growth = np.append(self.steps, self.frames[-1]), np.append(self.growth, 0.0)
        later = np.minimum(self.steps + max(self.frames[-1] // 10, 1), self.frames[-1])
        grown = self.growth - np.interp(later, ends, growth)
        k = int(grown.argmax())
        start, stop = int(self.steps[k]), int(later[k])
        rate = grown[k] / ((stop - start) * self.dt)
        if rate <= 0.0:
            return []
        inside = (self.steps >= start) & (self.steps < stop)
        means = {name: float(rates[inside].mean()) for name, rates in self.rates.items()}
        name = max(means, key=lambda name: means[name])
        changes = [name for name, counts in self.events.items() if counts[start:stop].any()]
        text = (
            f"It grows most from step {stop} back to step {start} ({start * self.dt:.4g} s), by "
            f"{rate:.3g}/s"
        )
        if len(means) > 1 and 2.0 * sum(means.values()) > rate:  # pauses show what happens between
            text += ", most by motion alone" if name == MOTION else f", most by `{name}`"
        return [f"{text}." + (f" What changes there: {', '.join(changes)}." if changes else "")]

    def dataset(self) -> "Dataset":
        """Return the numbers as an `xarray.Dataset` with named coordinates."""
        Dataset = optional("xarray").Dataset
        data: dict[str, Any] = {"growth": ("step", self.growth)}

        def add(head: str, dim: str, values: Mapping[str, np.ndarray], unit: str = "") -> None:
            for name, value in values.items():
                key = f"{head}.{name}"
                more = [f"{key}.{k}" for k in range(1, np.ndim(value))]
                data[key] = ([dim, *more], value, {"units": unit} if unit else {})

        add("adjoint", "step", self.adjoint)
        add("cotangent", "frame", self.cotangents)
        add("contribution", "step", self.contributions)
        add("rate", "step", self.rates, "1/s")
        for name, parts in self.added.items():
            add(f"added.{name}", "step", parts)
        add("touching", "state", self.touching)
        add("slipping", "state", self.slipping)
        add("event", "state", self.events)
        add("share", "frame", self.shares)
        coords = {
            "step": self.steps,
            "time": ("step", self.times, {"units": "s"}),
            "frame": self.frames,
        }
        attributes = {"dt": self.dt, "exponent": self.exponent, "horizon": self.horizon}
        return Dataset(data, coords, {k: v for k, v in attributes.items() if v is not None})


class PauseRecord(NamedTuple):
    """What the step at a pause did."""

    adjoint: Parts  # of the state at the pause, its frame included
    ends: Parts  # by part, the norms of a and of b
    # of each stretch between stops, until the next pause, by part: the norm of the adjoint at its
    # start without its frame, and at its end with its frame
    stretches: list[Parts]
    added: dict[str, Parts]  # by source and part, the norm of c, and <a + b, c>
    gradient: dict[str, np.ndarray]  # of the parameters of the system, from this pause on


class Contacts:
    """Which points touch and slip, counted in every state, the last one first."""

    def __init__(self, system: Any, last: int) -> None:
        forces = system.forces if isinstance(system, Model) else {}
        names = [name for name, force in forces.items() if force.touches]
        self.system, self.last = system, last
        self.touching, self.slipping = ({name: np.zeros(last, int) for name in names} for _ in "ab")
        self.events = {f"{name}: {c}": np.zeros(last, int) for name in names for c in CHANGES}
        self.later: dict[str, tuple[np.ndarray, ...]] = {}  # what `count` saw of a later state

    def watch(
        self, stepper: Stepper[Any, Any], start: int, rows: np.ndarray, fields: Fields
    ) -> None:
        """Count those in the states from `start` on, which lie in rows, a few at a time."""
        stop = min(start + len(rows), self.last) if self.touching else start
        for end in range(stop, start, -WINDOW):
            first = max(start, end - WINDOW)
            window = rows[first - start : end - start]
            states = tuple(field[window] for field in fields)
            run = stepper.trajectory(np.arange(first, end), states)
            for name, margins in contact_margins(self.system, run).items():
                self.count(name, slice(first, end), margins)

    def count(self, name: str, states: slice, margins: ContactMargins) -> None:
        """Count those of a contact in some states, and what changes up to the state after them."""
        here = margins.touch > 0.0, margins.acts, margins.acts & (margins.slip > 0.0)
        later = self.later.get(name, tuple(flags[-1:] for flags in here))
        self.later[name] = tuple(flags[:1] for flags in here)
        touches, acts, slips = here
        after, acts_after, slips_after = (
            np.append(flags[1:], last, 0) for flags, last in zip(here, later, strict=True)
        )
        self.touching[name][states] = touches.sum(axis=1)
        self.slipping[name][states] = slips.sum(axis=1)
        both = acts & acts_after
        changes = (
            after & ~touches,
            touches & ~after,
            both & slips_after & ~slips,
            both & slips & ~slips_after,
        )
        for change, changed in zip(CHANGES, changes, strict=True):
            self.events[f"{name}: {change}"][states] = changed.sum(axis=1)


class PausingSweep(Sweep):
    """A sweep that undoes some steps alone, and looks at them before it goes on."""

    def __init__(
        self,
        inner: Sweep,
        twin: SystemTwin[Any, Any],
        system: Any,
        frames: tuple[np.ndarray, Parts],
        pauses: np.ndarray,
        stepper: Stepper[Any, Any],
        kept: Sequence[str],
    ) -> None:
        self.inner, self.twin, self.system, self.pauses = inner, twin, system, pauses
        self.steps, self.cotangents = frames
        self.stepper, self.states = stepper, stepper.allocate(len(pauses))
        self.kept = kept  # paths of the parameters whose contributions are noted
        self.at = int(self.steps[-1])  # the state whose adjoint is `after`
        self.after = self.base = self.frame(self.at)
        self.stops = self.steps if len(self.steps) <= MOST_STOPS else self.steps[:0]
        self.stretches: list[Parts] = []  # since the last pause
        self.origins: dict[str, Parts] = {FRAMES: self.after}
        self.records: list[PauseRecord] = []  # the last pause first
        self.contacts = Contacts(system, self.at)

    def frame(self, step: int) -> Parts:
        """Return the cotangent of the frame that shows a state; 0 where none does."""
        return self.given(step - 1, step + 1)

    def given(self, start: int, stop: int) -> Parts:
        """Return the sum of the cotangents of the frames between two states."""
        inside = slice(*np.searchsorted(self.steps, [start + 1, stop]))
        return {field: adj[inside].sum(axis=0) for field, adj in self.cotangents.items()}

    def now(self) -> Parts:
        """Return a copy of the adjoint of the state that is reached, without its frame."""
        parts = self.twin.parts(self.system, self.inner.adjoint())
        return {field: adj.astype(np.float64) for field, adj in parts.items()}

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo the steps, those at the pauses alone."""
        self.contacts.watch(self.stepper, start, rows, fields)
        first, last = np.searchsorted(self.pauses, [start, start + len(rows)])
        for index in range(last - 1, first - 1, -1):
            k = int(self.pauses[index]) - start
            self.undo_to_frames(start + k + 1, rows[k + 1 :], fields)
            b = _sum(self.now(), self.frame(start + k + 1))
            self.inner.undo(start + k, rows[k : k + 1], fields)
            self.look(index, b, int(rows[k]), fields)
            rows = rows[:k]
        self.undo_to_frames(start, rows, fields)

    def undo_to_frames(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo the steps, and note at every frame how the adjoint has grown."""
        first, last = np.searchsorted(self.stops, [start, start + len(rows)])
        for step in self.stops[first:last][::-1].tolist():
            self.inner.undo(step, rows[step - start :], fields)
            self.stop(step, self.now())
            rows = rows[: step - start]
        if len(rows):
            self.inner.undo(start, rows, fields)

    def stop(self, step: int, a: Parts) -> None:
        """Note how the adjoint, without the frame of this step, has grown since the last stop."""
        self.stretches.append({p: np.array([_size(a[p]), _size(self.base[p])]) for p in a})
        self.base = _sum(a, self.frame(step))

    def look(self, index: int, b: Parts, row: int, fields: Fields) -> None:
        """Note what the step at a pause did; b is the adjoint of the state after it."""
        k, a = int(self.pauses[index]), self.now()
        for kept, values in zip(self.states, fields, strict=True):
            kept[index] = values[row]
        by_force = self.inner.by_force(row, fields)
        sources = {name: self.twin.parts(self.system, parts) for name, parts in by_force.items()}
        forces = _sum(*sources.values()) if sources else _difference(a, a)
        sources[MOTION] = _difference(_difference(a, b), forces)
        frames = self.given(k, self.at)
        between = _difference(_difference(b, self.after), frames)
        frame = self.frame(k)
        more = {BETWEEN: between} if k + 1 < self.at else {}
        frames = _sum(frames, frame) if more else frame
        for name, parts in {**sources, **more, FRAMES: frames}.items():
            self.origins[name] = _sum(self.origins[name], parts) if name in self.origins else parts
        both, total = _sum(a, b), _sum(a, frame)
        self.stop(k, a)
        ends = {field: np.array([_size(end[field]) for end in (a, b)]) for field in a}
        added = {
            name: {
                field: np.array([_size(c), np.vdot(both[field], c)]) for field, c in parts.items()
            }
            for name, parts in sources.items()
        }
        gradient = self.inner.gradient(self.kept)
        self.records.append(PauseRecord(total, ends, self.stretches, added, gradient))
        self.stretches = []
        self.after, self.at = total, k

    def adjoint(self) -> Fields:
        """Return that of the sweep."""
        return self.inner.adjoint()

    def gradient(self, wanted: Sequence[str]) -> Any:
        """Return that of the sweep."""
        return self.inner.gradient(wanted)

    def finish(self) -> Any:
        """Return that of the sweep."""
        return self.inner.finish()


def check_inspected(system: Any, frames: np.ndarray, most: int) -> None:
    """Raise if there is nothing to inspect."""
    if isinstance(system, Batch):
        raise TypeError(
            "`inspect` takes the record of one system, got that of a Batch. Record the world that "
            "you want to look at alone: `record(batch.models[k], states[k], ...)`."
        )
    checks.whole("most_pauses", most, 2)
    if frames[-1] == 0:
        raise ValueError(
            "`inspect` needs a frame after the first step, got frames = [0]: no step leads to it. "
            "Record with `frames=[n_steps]`."
        )


def choose_pauses(frames: np.ndarray, most: int) -> np.ndarray:
    """Return the steps to pause at: all, or some at equal distances and at the frames if few."""
    last = int(frames[-1])
    shown = frames[:-1] if 2 * len(frames) <= most else frames[:0]
    even = np.linspace(0, last - 1, min(most - len(shown), last)).round().astype(np.int64)
    return np.union1d(even, shown)


def make_inspection(
    sweep: PausingSweep,
    gradient: dict[str, np.ndarray],
    stepper: Stepper[Any, Any],
    wanted: Sequence[str],
    jvp: Callable[[Mapping[str, Any]], Any] | None,
) -> Inspection:
    """Return what a sweep found on its way; with the tangent `jvp`, the shares of frames too."""
    records, steps = sweep.records[::-1], sweep.pauses
    by_pause = {
        field: np.stack([record.adjoint[field] for record in records])
        for field in records[0].adjoint
    }
    scales = {field: _mean_size(value) for field, value in by_pause.items()}
    trajectory = stepper.trajectory(steps, sweep.states)
    ends = np.stack([_combined_norm(record.ends, scales) for record in records])
    logs = [
        sum(_log_ratio(*_combined_norm(stretch, scales)) for stretch in record.stretches)
        for record in records
    ]
    growth = np.cumsum(logs[::-1])[::-1]
    limit = -np.log(np.finfo(stepper.dtype).eps)
    beyond = np.flatnonzero(growth > limit)
    return Inspection(
        steps=steps,
        dt=stepper.dt,
        frames=sweep.steps,
        trajectory=trajectory,
        adjoint=by_pause,
        cotangents=sweep.cotangents,
        gradient={path: gradient[path] for path in wanted},
        contributions=_contributions(records),
        added={
            name: {
                field: np.array([record.added[name][field][0] for record in records])
                for field in by_pause
            }
            for name in records[0].added
        },
        rates=_rates(records, ends, scales, stepper.dt),
        origins=sweep.origins,
        scales=scales,
        growth=growth,
        horizon=int(steps[beyond[-1]]) if beyond.size else None,
        touching=sweep.contacts.touching,
        slipping=sweep.contacts.slipping,
        events=sweep.contacts.events,
        shares={} if jvp is None else _shares(sweep, gradient, wanted, jvp),
    )


def _sum(*all_parts: Parts) -> Parts:
    return {field: reduce(np.add, [parts[field] for parts in all_parts]) for field in all_parts[0]}


def _difference(parts: Parts, other: Parts) -> Parts:
    return {field: value - other[field] for field, value in parts.items()}


def _size(value: np.ndarray) -> float:
    return float(np.sqrt(np.vdot(value, value)))


def sizes(values: np.ndarray) -> np.ndarray:
    """Return the norm of each row, (n_rows,)."""
    return np.sqrt((values.reshape(len(values), -1) ** 2).sum(axis=1))


def _mean_size(by_pause: np.ndarray) -> float:
    """Return the geometric mean of the norms that are not 0."""
    norms = sizes(by_pause)
    norms = norms[norms > 0.0]
    return float(np.exp(np.log(norms).mean())) if norms.size else 1.0


def _log_ratio(above: Any, below: Any) -> Any:
    """Return ln(above/below), 0 where one of them is 0."""
    there = (above > 0.0) & (below > 0.0)
    return np.log(np.where(there, above, 1.0) / np.where(there, below, 1.0))


def _combined_norm(parts: Parts, scales: Mapping[str, float]) -> np.ndarray:
    """Return the norm of all parts from the norms of each."""
    return np.sqrt(sum((norm / scales[field]) ** 2 for field, norm in parts.items()))


def _rates(
    records: Sequence[PauseRecord], ends: np.ndarray, scales: Mapping[str, float], dt: float
) -> dict[str, np.ndarray]:
    """Return by source its part of d ln|adjoint|/dt, backwards in time; 0 where that is 0."""
    a, b = ends.T
    log = _log_ratio(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(np.abs(a - b) > 1e-9 * a, (a - b) / log, 0.5 * (a + b))
    whole = (a + b) * mean * dt
    there = (a > 0.0) & (b > 0.0)
    rates = {}
    for name in records[0].added:
        products = np.array(
            [
                sum(c[1] / scales[field] ** 2 for field, c in record.added[name].items())
                for record in records
            ]
        )
        rates[name] = np.where(there, products, 0.0) / np.where(there, whole, 1.0)
    return rates


def _contributions(records: Sequence[PauseRecord]) -> dict[str, np.ndarray]:
    """Return what the steps from each pause to the next give to the gradient, by path."""
    contributions = {}
    for path in records[0].gradient:
        so_far = np.stack([record.gradient[path] for record in records])
        contributions[path] = so_far - np.append(so_far[1:], np.zeros_like(so_far[:1]), axis=0)
    return contributions


def _shares(
    sweep: PausingSweep,
    gradient: Mapping[str, np.ndarray],
    wanted: Sequence[str],
    jvp: Callable[[Mapping[str, Any]], Any],
) -> dict[str, np.ndarray]:
    """Return what each frame gives to |gradient|, by path."""
    shares = {}
    for path in wanted:
        size = _size(gradient[path])
        if size > 0.0:
            tangent = fields_of(jvp({path: gradient[path] / size}))
            shares[path] = np.sum(
                [
                    (adj * tangent[field]).reshape(len(adj), -1).sum(axis=1)
                    for field, adj in sweep.cotangents.items()
                ],
                axis=0,
            )
    return shares
