r"""Adjoint and tangent of `adjsim/steps/field_step.py`: a base for twins of steps in Python.

    a = w f(x, v, theta) + [w > 0] g

    adj_f = w adj_a,   adj_w = f . adj_a,   adj_g = [w > 0] adj_a,   f is pulled through the forces
    tangent:  tan_a = w tan_f + tan_w f + [w > 0] tan_g

A subclass of `FieldSweep` undoes a step, one of `FieldTangent` pushes a tangent through it.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjoint.engine.sweep import ModelTwin, ReverseSweep
from adjoint.field import pull_at
from adjoint.system import Tangent, frames_of
from adjsim.engine.tangent_packing import tangent_fields
from adjsim.steps.field_step import FieldStepper, nodes_at, state_in
from adjsim.system import Fields
from adjsim.tiles.loop_arrays import States


class FieldSweep(ReverseSweep):
    """Cotangents on their way from the last frame to the initial state: `adj.x`, `adj.v`, `adj.p`.

    What took the steps is `taker`.
    """

    def __init__(
        self,
        stepper: Any,
        state: Any,
        steps: np.ndarray,
        adj_frames: Fields,
        wanted: Sequence[str],
    ) -> None:
        super().__init__(stepper.field.stepper, state, steps, adj_frames, wanted)
        self.taker: Any = stepper

    @abstractmethod
    def undo_step(self, k: int, before: States, end: States) -> None:
        """Turn `adj.x`, `adj.v` and `adj.p` at the end of step k into those before it.

        What the step read of parameters is added to the other cotangents of `adj`.
        """

    def undo(self, start: int, rows: np.ndarray, fields: Fields) -> None:
        """Undo len(rows) steps, the last one first."""
        s, adj, states = self.taker, self.adj, States(*fields)
        self.stepper.diverged = s.diverged
        if s.has_diverged:
            return
        frame_of = frames_of(self.steps, start, start + len(rows))
        last = start + len(rows) - 1
        end = s.end(last, state_in(states, rows[-1]))
        for k, row in zip(range(last, start - 1, -1), rows[::-1].tolist(), strict=True):
            frame = int(frame_of[k - start])
            if frame >= 0:
                for field, of_frames in zip((adj.x, adj.v, adj.p), self.frames, strict=True):
                    field[:] += of_frames[frame]
            before = States(*(np.array(field[row]) for field in states))
            self.undo_step(k, before, end)
            end = before

    def undo_acceleration(
        self, k: int, x: np.ndarray, v: np.ndarray, adj_a: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pull a cotangent of `acceleration` back: adj_x and adj_v; parameters are added up."""
        s, adj = self.taker, self.adj
        field, w, row = s.field, s.model.inverse_mass[:, None], nodes_at(x, v)
        at_end = adj.x.copy(), adj.v.copy()
        adj.x[:] = adj.v[:] = 0.0
        adj.w[:] += np.sum(field.forces_at(row, k) * adj_a, axis=1)
        adj.gravity[: len(w)] += s.is_free[:, None] * adj_a
        pull_at(field, self, row, w * adj_a, k)
        adj_x, adj_v = adj.x.copy(), adj.v.copy()
        adj.x[:], adj.v[:] = at_end
        return adj_x, adj_v

    def by_force(self, row: int, fields: Fields) -> dict[str, Fields]:
        """Return nothing: a step may mix what the forces add."""
        del row, fields
        return {}


class FieldTangent(Tangent):
    """Tangents of the states, run beside the states themselves."""

    def __init__(self, stepper: FieldStepper, state: Any, tangents: Any) -> None:
        self.stepper: Any = stepper
        self.tangent = stepper.field.tangent(state, tangents)
        self.initial = tangent_fields(stepper, state, self.tangent.tan)

    @abstractmethod
    def pushed(self, k: int, before: States, end: States, tan: States) -> States:
        """Return the tangent of the state at the end of step k, given that before it."""

    def advance(self, k0: int, rows: np.ndarray, fields: Fields, tan_fields: Fields) -> None:
        """Run from state k0."""
        s, states, tangents = self.stepper, States(*fields), States(*tan_fields)

        def then(k: int, before: int, after: int) -> None:
            ends = state_in(states, before), state_in(states, after)
            tan_end = self.pushed(k, *ends, state_in(tangents, before))
            for field, value in zip(tangents, tan_end, strict=True):
                field[after] = value

        s.check_finite(s.run_each(k0, rows, states, then), k0, rows, fields)

    def push_acceleration(
        self, k: int, at: tuple[np.ndarray, np.ndarray], tan: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """Return the tangent of `acceleration` at x and v, given theirs; (n_nodes, 3) each."""
        s, row, of_all = self.stepper, nodes_at(*at), self.tangent.tan
        tan_x, tan_v = map(np.ascontiguousarray, tan)
        tan_f = s.field.pushed(self.tangent, row, (tan_x, tan_v), k)
        tan_a = s.model.inverse_mass[:, None] * tan_f
        tan_a += of_all.w[:, None] * s.field.forces_at(row, k)
        return tan_a + s.is_free[:, None] * of_all.gravity[0]


class FieldTwin(ModelTwin):
    """The twin of a `FieldStep`, made of how it is undone and of how tangents are pushed."""

    def __init__(self, sweep: type[FieldSweep], tangent: type[FieldTangent] | None = None) -> None:
        self.sweep, self.tangent = sweep, tangent or _no_tangent


def _no_tangent(stepper: Any, state: Any, tangents: Any) -> FieldTangent:
    """Refuse to begin a tangent of a step that has none."""
    del state, tangents
    raise TypeError(
        f"`step` {type(stepper.step).__name__} has no tangent. Write a subclass of "
        "`FieldTangent`, and give it to its `FieldTwin`."
    )
