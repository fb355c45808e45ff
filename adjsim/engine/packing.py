r"""Models as flat arrays: a batch of worlds that do not touch, or one model, a batch of one.

Where what lies is the business of `adjsim/engine/layouts.py`; here the numbers are put there. Tiles
always run whole and every node adds up its own slots in the order force, element, local node, so
what a world gets does not depend, to the bit, on the worlds beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import finalize

import numpy as np

from adjsim.engine.layouts import Layout, lay_out, own_rows, permuted, spread
from adjsim.engine.patches import NODE_LO, READS_REST, ROW, Patches
from adjsim.forces.element import Force
from adjsim.jit.device_arrays import kept_on_device, on_device
from adjsim.model import Model
from adjsim.rigid.bodies import pack_bodies
from adjsim.tiles.assembly import CONSTS, PARAMS, SERIES, SERIES_STRIDE, TILE
from adjsim.tiles.by_tiles import join, to_tiles
from adjsim.tiles.loop_arrays import Bodies, Elements, ModelArrays, Nodes


T = TypeVar("T")
# Elements of a force whose rows are kept, and numbers of a series: packing more takes no time
# beside steps.
KEPT = 10_000
# What loops read: numbers, and where they lie.
NUMBERS = ("consts", "params", "series", "w", "gravity", "bodies")
READ = (
    "table", "nodes", "node_ptr", "node_slots", "velocity_ptr", "velocity_slots", "world_of",
    "starts", "led",
)  # fmt: skip
_kept_rows: dict[int, dict[int, np.ndarray]] = {}  # by the id of a force, as long as it lives
_kept_series: dict[int, tuple[int, np.ndarray]] = {}  # the same; for how many steps, and the rows


@dataclass(frozen=True)
class PackedModels(Layout):
    """Worlds as flat arrays of one dtype, shared by forward and reverse: numbers in a layout.

    `consts`, `params`, `series` flat by tiles; `w` (n_nodes,) 1/kg; `gravity` (n_worlds, 3);
    `bodies` as `adjsim/rigid/rows.py` has them; `led` as `Nodes` has it.
    """

    consts: np.ndarray
    params: np.ndarray
    series: np.ndarray
    w: np.ndarray
    gravity: np.ndarray
    bodies: Bodies
    led: np.ndarray

    @property
    def arrays(self) -> ModelArrays:
        """What loops read."""
        return ModelArrays(
            Elements(self.table, self.nodes, self.consts, self.params, self.series),
            Nodes(
                self.w, self.gravity, self.node_ptr, self.node_slots, self.velocity_ptr,
                self.velocity_slots, self.world_of, self.led,
            ),
            self.bodies,
        )  # fmt: skip

    @property
    def n_groups(self) -> int:
        """Number of groups of worlds."""
        return len(self.group_ends) - 1

    @property
    def n_worlds(self) -> int:
        """Number of worlds."""
        return len(self.node_ends) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all worlds."""
        return int(self.node_ends[-1])

    @property
    def n_rows(self) -> int:
        """Number of nodes and body points of all worlds: the rows of X."""
        return self.n_nodes + int(self.point_ends[-1])

    @property
    def n_bodies(self) -> int:
        """Number of bodies of all worlds: the rows of P."""
        return int(self.body_ends[-1])

    @property
    def scratch_size(self) -> int:
        """Numbers of scratch that one thread needs in any tile loop."""
        return TILE * 3 * 5 * max(((k.pairs or k).n_nodes for k in self.kinds), default=1)

    def slices(self, world: int) -> tuple[slice, slice, slice]:
        """Return a world's rows: its nodes and its body points in X and V, its bodies in P."""
        rows = own_rows(world, self.node_ends, self.point_ends, apart=self.stands_apart)
        return *rows, slice(*self.body_ends[world : world + 2].tolist())

    def numbers(self, world: int) -> tuple[slice, slice]:
        """Return a world's nodes among all nodes, and its body points among all body points."""
        both = (ends[world : world + 2].tolist() for ends in (self.node_ends, self.point_ends))
        nodes, points = (slice(*span) for span in both)
        return nodes, points

    def on_gpu(self) -> "PackedModels":
        """Return a copy whose arrays that loops read are on the GPU, where the layout is kept."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        layout = {name: getattr(self, name) for name in READ}
        layout |= {"patches": self.patches} if self.patches else {}
        moved = zip(numbers, on_device(tuple(numbers.values())), strict=True)
        kept = zip(layout, kept_on_device(tuple(layout.values())), strict=True)
        return replace(self, **dict(moved), **dict(kept))


def pack(
    models: Sequence[Model], n_steps: int, dtype: np.dtype, n_parts: int = 1, *, apart: bool = False
) -> PackedModels:
    """Pack models, each a world, into flat arrays by tiles.

    In `n_parts` groups or more, if there are so many worlds; 0 is one group; `apart`: each alone.

    Raise a ValueError if a series has neither one row nor `n_steps` rows.
    """
    packed = _each_once(models, lambda name, force: _pack_force(name, force, n_steps, dtype))
    n_rows = [[len(columns[SERIES]) for columns in world] for world in packed]
    layout = lay_out(models, n_rows, n_parts, apart=apart)

    def flat(column: int) -> np.ndarray:
        worlds = [[columns[column] for columns in world] for world in packed]
        return flat_tiles(join_columns(worlds, layout, column), dtype)

    return PackedModels(
        **vars(replace(layout, patches=_pack_patches(models, layout, dtype))),
        consts=flat(CONSTS),
        params=flat(PARAMS),
        series=flat(SERIES),
        w=np.concatenate([model.inverse_mass for model in models]).astype(dtype),
        gravity=np.stack([model.gravity for model in models]).astype(dtype),
        bodies=_pack_bodies(models, layout, dtype),
        led=_pack_led(models, layout),
    )


def _pack_led(models: Sequence[Model], layout: Layout) -> np.ndarray:
    """Return where the place of each node lies in the series, (n_nodes, 2), as `Nodes` has it."""
    led = np.full((int(layout.node_ends[-1]), 2), (-1, 0))
    groups = np.repeat(np.arange(len(layout.group_ends) - 1), np.diff(layout.group_ends))
    for w, model in enumerate(models):
        forces = zip(layout.columns[w], layout.orders[w], model.forces.values(), strict=True)
        for column, order, force in forces:
            if force.leads:
                row = layout.table[groups[w] * len(layout.kinds) + column]
                lanes = layout.element_starts[w, column] + np.arange(len(force.nodes))
                first = row[SERIES] + lanes // TILE * TILE * 3 + lanes % TILE
                nodes = layout.node_ends[w] + permuted(force.nodes, order)[:, 0]
                led[nodes, 0], led[nodes, 1] = first, row[SERIES_STRIDE]
    return led


def _pack_patches(models: Sequence[Model], layout: Layout, dtype: np.dtype) -> Patches | None:
    """Return the patches with rest positions."""
    if layout.patches is None:
        return None
    patches, n_columns = layout.patches, len(layout.kinds)
    rest, at_rest = np.zeros((len(patches.nodes), 3)), np.zeros((int(layout.node_ends[-1]), 3))
    lows = patches.table[:, NODE_LO]
    force: Any  # of a kind with rest positions
    for row in np.unique(patches.table[patches.table[:, READS_REST] > 0, ROW]).tolist():
        group, column = divmod(row, n_columns)
        for w in range(*layout.group_ends[group : group + 2].tolist()):
            for c, force in zip(layout.columns[w], models[w].forces.values(), strict=True):
                if c == column:
                    at_rest[slice(*layout.node_ends[w : w + 2])] = force.rest_positions
        lo, hi = lows[np.searchsorted(patches.table[:, ROW], [row, row + 1])]
        rest[lo:hi] = at_rest[patches.nodes[lo:hi]]
    return patches._replace(rest=rest.astype(dtype).ravel())


def _pack_bodies(models: Sequence[Model], layout: Layout, dtype: np.dtype) -> Bodies:
    """Return the bodies of all worlds."""
    apart = layout.stands_apart
    firsts = [model.n_nodes for model in models]
    if not apart:
        firsts = (layout.node_ends[-1] + layout.point_ends[:-1]).tolist()
    parts = [
        pack_bodies(model.bodies, first, dtype) for model, first in zip(models, firsts, strict=True)
    ]
    last = len(parts) - 1
    ptr = np.concatenate(
        [bodies.point_ptr[: None if apart or k == last else -1] for k, bodies in enumerate(parts)]
    )
    arms = np.concatenate([bodies.arms for bodies in parts])
    return Bodies(ptr, arms, np.concatenate([bodies.params for bodies in parts]))


def _pack_force(name: str, force: Force, n_steps: int, dtype: np.dtype) -> dict[int, np.ndarray]:
    """Return the rows of a force by column; a force never changes, so a small one's are kept."""
    force.check_steps(n_steps, name)
    rows = _kept_rows.get(id(force))
    if rows is None:
        rows = {CONSTS: force.pack_consts(), PARAMS: force.pack_params()}
        if len(force.nodes) <= KEPT:
            _kept_rows[id(force)] = rows
            finalize(force, _kept_rows.pop, id(force), None)  # two threads may both keep them
    force.check_precision(rows[CONSTS], dtype, name)
    return {**rows, SERIES: _pack_series(force, n_steps)}


def _pack_series(force: Force, n_steps: int) -> np.ndarray:
    """Return the rows of a force's series; the last ones are kept unless they are many."""
    kept = _kept_series.get(id(force))
    if kept is not None:
        steps, series = kept
        is_constant = steps > 1 and len(series) == 1  # of one step a series has one row too
        if is_constant or steps == n_steps:
            return series
    series = force.pack_series(n_steps)
    if series.size <= KEPT:
        _kept_series[id(force)] = n_steps, series
        if kept is None:
            finalize(force, _kept_series.pop, id(force), None)
    return series


def _each_once(models: Sequence[Model], make: Callable[[str, Force], T]) -> list[list[T]]:
    """Return `make(name, force)` of every force of every model; worlds that share one, share it."""
    made: dict[int, T] = {}
    for model in models:
        for name, force in model.forces.items():
            if id(force) not in made:
                made[id(force)] = make(name, force)
    return [[made[id(force)] for force in model.forces.values()] for model in models]


def join_columns(
    worlds: Sequence[Sequence[np.ndarray]], layout: Layout, column: int
) -> list[np.ndarray]:
    """Join rows of one column of the table, by world and force: one array per row of the table."""
    shapes = {
        CONSTS: [(0, kind.n_consts) for kind in layout.kinds],
        PARAMS: [(0, kind.n_params) for kind in layout.kinds],
        SERIES: [(1, 0, kind.n_series) for kind in layout.kinds],
    }
    none = [np.zeros(shape) for shape in shapes[column]]
    sorted_worlds = [map(permuted, *both) for both in zip(worlds, layout.orders, strict=True)]
    both = zip(sorted_worlds, layout.columns, strict=True)
    return join([spread([*rows], at, none) for rows, at in both], layout.group_ends)


def flat_tiles(joined: Sequence[np.ndarray], dtype: np.dtype) -> np.ndarray:
    """Return joined rows by tiles in one flat array, the rows of a series one after the other."""
    return np.concatenate([*(to_tiles(rows, dtype) for rows in joined), np.zeros(0, dtype)])
