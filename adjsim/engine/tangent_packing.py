"""Tangents of what rollouts read: by worlds and rows, and packed as loops read them.

The numbers that they are tangents of are packed in `adjsim/engine/packing.py`. Cotangents have the
same form.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adjsim.engine.packing import PackedModels, flat_tiles, join_columns
from adjsim.engine.stepper import ModelStepper
from adjsim.forces.element import Force
from adjsim.jit.backend import loop_kernel
from adjsim.model import Model, State
from adjsim.rigid.bodies import arms_jvp, pack_bodies, pack_params_jvp
from adjsim.rigid.points import place_all_tangents
from adjsim.rigid.pose import pack_state_jvp
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE
from adjsim.system import Fields
from adjsim.tiles.assembly import CONSTS, PARAMS, SERIES
from adjsim.tiles.element_kind import check_tangents
from adjsim.tiles.loop_arrays import States
from adjsim.values import values_under


@dataclass(frozen=True)
class Rows:
    """A tangent or a cotangent of everything that the rollout of one model reads.

    `x`, `v` (n_nodes, 3) of state 0; `gravity` (3,), a cotangent (n_nodes + n_bodies, 3), still
    per node and body; `w` (n_nodes,), of the inverse masses; by force `params`, `series` and
    `consts`, (..., n_elements, n), `consts` empty if the rest shape does not matter; `p`
    (n_bodies, 13), of the bodies' states at 0, `bodies` alike, of their parameters; `arms` of their
    points, (n_points, 3), or (0, 3) if they do not matter.
    """

    x: np.ndarray
    v: np.ndarray
    gravity: np.ndarray
    w: np.ndarray
    params: list[np.ndarray]
    series: list[np.ndarray]
    consts: list[np.ndarray]
    p: np.ndarray
    bodies: np.ndarray
    arms: np.ndarray


class PackedVector(NamedTuple):
    """The same of all worlds, as `PackedModels` has what they are tangents or cotangents of."""

    x: Any
    v: Any
    gravity: Any
    w: Any
    params: Any
    series: Any
    consts: Any
    p: Any
    bodies: Any
    arms: Any


def join_rows(worlds: Sequence[Rows], packed: PackedModels, dtype: np.dtype) -> PackedVector:
    """Pack the tangents of worlds."""

    def tiles(name: str, column: int) -> np.ndarray:
        of_worlds = [getattr(rows, name) for rows in worlds]
        return flat_tiles(join_columns(of_worlds, packed, column) if any(of_worlds) else [], dtype)

    def one_by_one(name: str) -> np.ndarray:
        return np.concatenate([getattr(rows, name) for rows in worlds]).astype(dtype)

    return PackedVector(
        x=one_by_one("x"),
        v=one_by_one("v"),
        gravity=np.stack([rows.gravity for rows in worlds]).astype(dtype),
        w=one_by_one("w"),
        params=tiles("params", PARAMS),
        series=tiles("series", SERIES),
        consts=tiles("consts", CONSTS),
        p=one_by_one("p"),
        bodies=one_by_one("bodies"),
        arms=one_by_one("arms"),
    )


REST = "rest_positions"
ARMS = (".vertices", ".point_positions")  # the ends of paths that act by the points of bodies


def has_density(force: Force) -> bool:
    """Whether masses are computed from a force."""
    return "density" in force.parameters()


def needs_rest(wanted: Iterable[str]) -> bool:
    """Whether the rest shapes' rows must be differentiated."""
    return any(path.endswith(f".{REST}") for path in wanted)


def needs_arms(wanted: Iterable[str]) -> bool:
    """Whether the arms of the points of bodies must be differentiated."""
    return any(path.endswith(ARMS) for path in wanted)


def mass_tangent(model: Model, tangents: Mapping[str, np.ndarray]) -> np.ndarray:
    """Push tangents of a model's parameters, by path, to the masses of its nodes, (n_nodes,)."""
    tan_mass = tangents.get("mass", np.zeros(model.n_nodes))
    for name, force in model.forces.items():
        if has_density(force):
            tan_mass = tan_mass + force.mass_jvp(values_under(name, tangents))
    return tan_mass


def tangent_rows(
    model: Model,
    state: State,
    n_steps: int,
    tangents: Mapping[str, np.ndarray],
    needs: tuple[bool, bool],
) -> Rows:
    """Push tangents of a model's parameters to its rows.

    `needs` says whether rest shapes and arms are differentiated: `consts` and `arms` are empty if
    not.
    """
    with_rest, with_arms = needs

    w = model.inverse_mass
    zero = np.zeros((model.n_nodes, 3))
    params, series, consts = [], [], []
    tan_mass = mass_tangent(model, tangents)
    for name, force in model.forces.items():
        force_tangents = values_under(name, tangents)
        tan_params, tan_series = force.pack_jvp(force_tangents, n_steps)
        tan_params = tan_params + force.with_mass_jvp(tan_mass)
        tan_consts = np.zeros((len(force.nodes), force.kind.n_consts))
        if REST in force_tangents:
            tan_consts, more = force.rest_jvp(force_tangents[REST])
            if tan_consts.any() and force.kind.jvp_consts is None:
                raise TypeError(
                    f"`{force.kind.name}` is a kind of force without a tangent of its rest shape, "
                    "whose constants are computed from rest positions. Give its `ElementKind` a "
                    "`jvp_consts`."
                )
            tan_params = tan_params + more
        consts += [tan_consts] if with_rest else []
        params.append(tan_params)
        series.append(tan_series)
    tan_p, tan_bodies = [np.zeros((0, STATE_SIZE))], [np.zeros((0, PARAMS_SIZE))]
    tan_arms = [np.zeros((0, 3))]
    for name, bodies in model.bodies.items():
        tan_p.append(pack_state_jvp(state.bodies[name], values_under(name, tangents)))
        tan_bodies.append(pack_params_jvp(bodies, values_under(name, tangents)))
        tan_arms += [arms_jvp(bodies, values_under(name, tangents))] if with_arms else []
    return Rows(
        tangents.get("state.x", zero),
        tangents.get("state.v", zero),
        tangents.get("gravity", np.zeros(3)),
        -w * w * tan_mass,
        params,
        series,
        consts,
        np.concatenate(tan_p),
        np.concatenate(tan_bodies),
        np.concatenate(tan_arms),
    )


def packed_tangents(stepper: ModelStepper, state: Any, tangents: Any) -> PackedVector:
    """Return tangents of the parameters of a model by path, packed; of a batch a list of them.

    Raise a TypeError if a kind of force has no tangent.
    """
    check_tangents(stepper.packed.kinds)
    worlds = tangents if stepper.is_batch else [tangents]
    needs = any(map(needs_rest, worlds)), any(map(needs_arms, worlds))
    rows = [
        tangent_rows(model, start, stepper.n_steps, by_path, needs)
        for model, start, by_path in zip(stepper.models, stepper.states(state), worlds, strict=True)
    ]
    return join_rows(rows, stepper.packed, stepper.dtype)


def tangent_fields(stepper: ModelStepper, state: Any, tangents: PackedVector) -> Fields:
    """Return the tangents of X, V and P at the start, including the points of bodies."""
    s = stepper
    tan_x, tan_v = (np.zeros((s.packed.n_rows, 3), s.dtype) for _ in range(2))
    p = s.initial(state)[2]
    for world, model in enumerate(s.models):
        nodes, points, bodies = s.packed.slices(world)
        own_nodes, own_points = s.packed.numbers(world)
        tan_x[nodes], tan_v[nodes] = tangents.x[own_nodes], tangents.v[own_nodes]
        if model.n_bodies:
            loop_kernel(place_all_tangents)(
                pack_bodies(model.bodies, 0, s.dtype), tangents.arms[own_points], p[bodies],
                States(tan_x[points], tan_v[points], tangents.p[bodies]),
            )  # fmt: skip
    return tan_x, tan_v, tangents.p
