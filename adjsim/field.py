r"""The force field of a model at any state, with its tangent.

    f(x, v, theta)        the sum of all forces in each row, of nodes with their weight if asked [N]
    push:  J t            of tangents of the state and of parameters

Rows are the nodes, then the points of rigid bodies (`Model.rows`). Nothing is rolled out: a
stiffness, an equilibrium, a vibration or a product with a Hessian needs no time step. The bits of f
are those that a rollout has. Of a series the row of a step is used. Pairs that change are found
again where those found before no longer serve: no bit depends on it.

Adjoint: `adjoint/field.py`. Tests: `tests/test_field.py`.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy  # its parts are loaded where they are used: `import adjsim` needs none

from adjsim import checks
from adjsim.engine.changing import ChangingPairs
from adjsim.engine.field_loops import forces_and_pairs_loop, forces_loop, push_loop, push_pairs_loop
from adjsim.engine.pair_blocks import pair_blocks
from adjsim.engine.stepper import CpuStepper
from adjsim.engine.tangent_packing import PackedVector, packed_tangents, tangent_fields
from adjsim.engine.tangents import TangentCalls, TangentWork, tangent_calls
from adjsim.jit.backend import loop_kernel
from adjsim.jit.row_gathers import TILE
from adjsim.model import Model, State
from adjsim.rigid.pose import BodyState
from adjsim.system import RunSettings, make_stepper
from adjsim.tiles.loop_arrays import States, Work


if TYPE_CHECKING:
    import scipy.sparse


class PackedTangent(NamedTuple):
    """Packed tangents, and what pushing them needs."""

    tan: PackedVector
    calls: TangentCalls
    work: TangentWork


class Field:
    """The forces on the nodes of a model, and on the points of its rigid bodies.

    Parameters
    ----------
    model : Model
    with_weight : bool
        Whether m g of each node is one of the forces; bodies have none. That of a pinned node
        counts as constant in its mass: nothing feels it.
    n_steps : int
        How many steps the series of the model cover, at least 1. A `step` is from 0 to n_steps - 1.

    Raises
    ------
    ValueError
        If `n_steps` or a `step` is no such number, or a series has neither one row nor `n_steps`.
    """

    def __init__(self, model: Model, *, with_weight: bool = False, n_steps: int = 1) -> None:
        checks.instance("model", model, Model)
        checks.whole("n_steps", n_steps, 1)
        stepper = make_stepper(model, RunSettings(1.0, n_steps, threads=1))
        assert isinstance(stepper, CpuStepper)
        self.model, self.stepper, self.with_weight = model, stepper, with_weight
        self._groups: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.beside: dict[Any, Any] = {}  # what an adjoint keeps from one call to the next

    def forces(self, state: State, step: int = 0) -> np.ndarray:
        """Return the forces at a state, in a step of the series, (n_rows, 3) [N]."""
        out = self.forces_at(self.row(state), self.check_step(step))
        if self.with_weight:
            out[: self.model.n_nodes] += self.model.mass[:, None] * self.model.gravity
        return out

    def check_step(self, step: int) -> int:
        """Return a step if the series of the model cover it: loops read where they are told."""
        step, n_steps = checks.whole("step", step, 0), self.stepper.n_steps
        if step >= n_steps:
            raise ValueError(
                f"`step` must be below `n_steps` = {n_steps} of the field, got {step}. Make the "
                "field with more: `Field(model, n_steps=...)`."
            )
        return step

    def forces_at(self, row: States, step: int) -> np.ndarray:
        """Return the forces without weight at a state as the loops read it."""
        s, (elements, nodes, _) = self.stepper, self.stepper.arrays
        out = np.empty((self.model.n_rows, 3))
        loop, changing = forces_loop, self.changing_at(row)
        if changing is not None:
            loop, elements = forces_and_pairs_loop, changing.near
        work = Work(s.slots, s.scratch)
        loop_kernel(loop)(s.calls, elements, nodes, s.parts, work, step, row, out)
        return out

    def changing_at(self, row: States) -> ChangingPairs | None:
        """Return the pairs that change, found for a state; None: there are none."""
        if self.stepper.changing is not None:
            self.stepper.find_pairs(row.x)
        return self.stepper.changing

    def crossing(self, x: np.ndarray, before: np.ndarray | None = None) -> tuple[str, str] | None:
        """Return a contact whose surfaces go through each other, and where; None: there is none.

        At x, or on a straight way to it from `before`.
        """
        changing = self.stepper.changing
        for contact in () if changing is None else changing.sets:
            place = contact.force.crossing(x[contact.rows])
            if not place and before is not None:
                place = contact.force.passed_on_the_way(before[contact.rows], x[contact.rows])
            if place:
                return contact.name, place
        return None

    def check_start(self, x: np.ndarray) -> None:
        """Raise a ValueError if surfaces that touch go through each other, or are too thick."""
        changing = self.stepper.changing
        for contact in () if changing is None else changing.sets:
            contact.force.check_radii(x[contact.rows], contact.name)
            if place := contact.force.crossing_at_start(x[contact.rows]):
                self.stepper.raise_crossing(contact.name, 0, 0, place)

    def magnitude(self, state: State, step: int = 0) -> float:
        """Return the largest sum in a row of the magnitudes of its elements' forces [N].

        Rounding of `forces` is about 1e-16 of it.
        """
        sums = self.magnitudes_at(self.row(state), self.check_step(step))
        return float(sums.max(initial=0.0))

    def magnitudes_at(self, row: States, step: int) -> np.ndarray:
        """Return these sums in all rows, (n_rows,), at a state as the loops read it."""
        self.forces_at(row, step)
        nodes, n = self.stepper.arrays[1], self.model.n_rows
        owners = np.repeat(np.arange(n), np.diff(nodes.ptr.astype(np.int64)))
        sizes = np.abs(self._slots(nodes.slots_of)).sum(axis=1)
        return np.bincount(owners, sizes, n) if len(owners) else np.zeros(n)

    def push(self, state: State, tangents: Mapping[str, Any], step: int = 0) -> np.ndarray:
        """Return the tangent of the forces, (n_rows, 3) [N].

        Parameters
        ----------
        state : State
        tangents : mapping of str to array_like
            Path to tangent, of the shape of the parameter, as of `adjoint.rollout_jvp`.
        step : int
            Of the series.
        """
        step = self.check_step(step)
        values = {**self.model.parameters(), **self.model.state_parameters(state)}
        by_path = {
            checks.known_key("parameter", path, values): checks.array(path, t, values[path].shape)
            for path, t in checks.mapping("tangents", tangents, "{'state.x': ...}").items()
        }
        if by_path.keys() <= {"state.x", "state.v"}:  # parameters stay: what is packed serves again
            moved = {path.removeprefix("state."): tan for path, tan in by_path.items()}
            tangent = self.still._replace(tan=self.still.tan._replace(**moved))
        else:
            tangent = self.tangent(state, by_path)
        tan_state = tangent_fields(self.stepper, state, tangent.tan)[:2]
        pushed = self.pushed(tangent, self.row(state), tan_state, step)
        if self.with_weight:
            pushed[: self.model.n_nodes] += self._weight_jvp(tangent.tan)
        return pushed

    def _weight_jvp(self, tan: PackedVector) -> np.ndarray:
        """Return the tangent of m g; a pinned node, of which 1/m is 0, has none by its mass."""
        model, w = self.model, self.model.inverse_mass
        free = w > 0.0
        tan_mass = np.zeros(len(w))
        tan_mass[free] = -tan.w[free] / np.square(w[free])
        return tan_mass[:, None] * model.gravity + model.mass[:, None] * tan.gravity[0]

    def stiffness(self, state: State, step: int = 0) -> "scipy.sparse.csc_array":
        """Return K = -df/dx, sparse, (3 n_rows, 3 n_rows) [N/m].

        Rows without a common neighbour are pushed together, so that a few products give all
        columns, whatever the forces are.
        """
        return self.matrix_at(self.row(state), -1.0, 0.0, self.check_step(step))

    def matrix_at(
        self, row_state: States, along_x: float, along_v: float, step: int
    ) -> "scipy.sparse.csc_array":
        """Return along_x df/dx + along_v df/dv, sparse, at a state as the loops read it."""
        lasting = self.lasting_matrix_at(row_state, along_x, along_v, step)
        changing, s, still = self.changing_at(row_state), self.stepper, self.still
        if changing is None:
            return lasting
        pairs = changing.with_tangents(still.tan.params)
        nodes, blocks = pair_blocks(
            still.calls, pairs, row_state, (along_x, along_v), step, s.scratch
        )
        place = 3 * nodes[:, :, None] + np.arange(3)
        at, to = np.broadcast_arrays(place[:, :, :, None, None], place[:, None, None])
        flat = (blocks.ravel(), (at.ravel(), to.ravel()))
        return (lasting + scipy.sparse.coo_array(flat, shape=lasting.shape).tocsc()).tocsc()

    def lasting_matrix_at(
        self, row_state: States, along_x: float, along_v: float, step: int
    ) -> "scipy.sparse.csc_array":
        """Return the same without pairs that change."""
        color, row, column = self._groups or self._grouped()
        n, elements = self.model.n_rows, self.stepper.arrays.elements
        tan_x, tan_v = np.zeros((n, 3)), np.zeros((n, 3))
        order = np.argsort(color[column], kind="stable")
        row, column = row[order], column[order]
        ends = np.searchsorted(color[column], np.arange(int(color.max(initial=-1)) + 2))
        blocks = np.empty((len(row), 3, 3))
        for c, (lo, hi) in enumerate(pairwise(ends)):
            for axis in range(3):
                for tan, along in ((tan_x, along_x), (tan_v, along_v)):
                    tan[:] = 0.0
                    tan[color == c, axis] = along
                pushed = self._pushed(
                    push_loop, elements, self.still, row_state, (tan_x, tan_v), step
                )
                blocks[lo:hi, :, axis] = pushed[row[lo:hi]]
        at = (3 * row)[:, None, None] + np.arange(3)[:, None] + 0 * np.arange(3)
        to = (3 * column)[:, None, None] + 0 * np.arange(3)[:, None] + np.arange(3)
        flat = (blocks.ravel(), (at.ravel(), to.ravel()))
        return scipy.sparse.coo_array(flat, shape=(3 * n, 3 * n)).tocsc()

    def row(self, state: State) -> States:
        """Return a state as the loops read it."""
        self.model.check_state(state)
        return States(*self.stepper.initial(state))

    def _slots(self, places: np.ndarray) -> np.ndarray:
        """Return the vectors in slots, (n, 3): the numbers of a vector are a tile apart."""
        flat = self.stepper.slots
        return np.stack([flat[places.astype(np.int64) + c * TILE] for c in range(3)], axis=1)

    @cached_property
    def still(self) -> PackedTangent:
        """Tangents of parameters that do not change."""
        model = self.model
        bodies = {k: BodyState(np.zeros((s.n_bodies, 3))) for k, s in model.bodies.items()}
        return self.tangent(State(np.zeros((model.n_nodes, 3)), bodies=bodies), {})

    def tangent(self, state: State, tangents: Mapping[str, np.ndarray]) -> PackedTangent:
        """Return tangents of parameters as the loops read them."""
        s = self.stepper
        tan = packed_tangents(s, state, tangents)
        work = TangentWork(s.slots, np.zeros(s.packed.slot_shape), s.scratch)
        return PackedTangent(
            tan, tangent_calls(s.packed, s.dtype, with_rest=tan.consts.size > 0), work
        )

    def pushed(
        self,
        tangent: PackedTangent,
        row: States,
        tan_state: tuple[np.ndarray, np.ndarray],
        step: int,
    ) -> np.ndarray:
        """Return the tangent of the forces without weight; `tan_state` is that of x and v."""
        elements, changing = self.stepper.arrays.elements, self.changing_at(row)
        if changing is None:
            return self._pushed(push_loop, elements, tangent, row, tan_state, step)
        pairs = changing.with_tangents(tangent.tan.params)
        return self._pushed(push_pairs_loop, pairs, tangent, row, tan_state, step)

    def _pushed(
        self,
        loop: Callable,
        elements: Any,
        tangent: PackedTangent,
        row: States,
        tan_state: tuple[np.ndarray, np.ndarray],
        step: int,
    ) -> np.ndarray:
        out = np.empty((self.model.n_rows, 3))
        s, nodes = self.stepper, self.stepper.arrays.nodes
        loop_kernel(loop)(
            tangent.calls, elements, nodes, tangent.tan, s.parts, tangent.work, step, row,
            States(*tan_state, row.p), out,
        )  # fmt: skip
        return out

    def _grouped(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a group for each row, and the pairs of rows of which one feels the other.

        Rows of a group share no neighbour: each takes the first group that its neighbours and
        theirs leave free (Curtis, Powell and Reid, 1974).
        """
        n = self.model.n_rows
        pairs = [np.stack([np.arange(n)] * 2)]
        for force in self.model.forces.values():
            nodes = force.nodes
            k = nodes.shape[1]
            first, second = np.repeat(nodes, k, axis=1), np.tile(nodes, (1, k))
            pairs.append(np.stack([first.ravel(), second.ravel()]))
        row, column = np.concatenate(pairs, axis=1)
        near = scipy.sparse.coo_array((np.ones(len(row)), (row, column)), shape=(n, n)).tocsr()
        both: Any = near @ near  # which rows share a neighbour
        color = np.full(n, -1)
        for i in range(n):
            used = color[both.indices[both.indptr[i] : both.indptr[i + 1]]]
            free = np.ones(len(used) + 1, bool)
            free[used[(used >= 0) & (used < len(free))]] = False
            color[i] = int(np.argmax(free))
        entries = near.tocoo()
        self._groups = color, entries.row.astype(np.int64), entries.col.astype(np.int64)
        return self._groups
