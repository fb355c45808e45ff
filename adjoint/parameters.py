"""Between parameters by path, e.g. "beam.mu", and the packed arrays of the sweep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adjoint.registry import twin_of
from adjsim.assembly import from_tiles, to_tiles
from adjsim.element import Force
from adjsim.model import Model


@dataclass(frozen=True)
class PackedVector:
    """A tangent or a cotangent of everything that a rollout reads, packed.

    `params`, `series` and `consts` flat by tiles, `consts` empty if the rest shape does not
    matter; `x`, `v` (n_nodes, 3) of state 0; `gravity` (3,), a cotangent (n_nodes, 3), still
    per node; `w` (n_nodes,), of the inverse masses.
    """

    x: np.ndarray
    v: np.ndarray
    gravity: np.ndarray
    w: np.ndarray
    params: np.ndarray
    series: np.ndarray
    consts: np.ndarray


REST = "rest_positions"


def has_density(force: Force) -> bool:
    """Whether masses are computed from a force."""
    return force.node_mass() is not None


def needs_rest(wanted: Iterable[str]) -> bool:
    """Whether the rest shapes' rows must be differentiated."""
    return any(path.endswith(f".{REST}") for path in wanted)


def needs_mass(model: Model, wanted: Iterable[str]) -> bool:
    """Whether the node masses must be differentiated: for their own sake or a density's."""
    paths = {"mass"}
    for name, force in model.forces.items():
        if has_density(force):
            paths |= {f"{name}.{REST}", f"{name}.density"}
    return not paths.isdisjoint(wanted)


def collect_gradient(
    model: Model, n_steps: int, result: PackedVector, wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """Pull the packed cotangents back to the parameters, in their own shapes, float64."""
    w = model.inverse_mass
    gradient = {
        # w = 1/m: adj_m = -w^2 adj_w, 0 where pinned
        "mass": -w * w * result.w,
        "gravity": result.gravity.sum(axis=0, dtype=np.float64),
        "state.x": result.x.astype(np.float64),
        "state.v": result.v.astype(np.float64),
    }
    o_params = o_series = o_consts = 0
    for name, force in model.forces.items():
        n, kind = len(force.nodes), force.kind
        n_rows = len(force.pack_series(n_steps))
        n_lanes = to_tiles(np.zeros((n, 1)), np.dtype(np.float64)).size
        p_size, s_size = n_lanes * kind.n_params, n_lanes * kind.n_series * n_rows
        adj_params = from_tiles(result.params[o_params : o_params + p_size], n, kind.n_params)
        series = result.series[o_series : o_series + s_size].reshape(n_rows, -1)
        adj_series = np.stack([from_tiles(row, n, kind.n_series) for row in series])
        o_params, o_series = o_params + p_size, o_series + s_size
        if any(path.startswith(f"{name}.") for path in wanted):
            adj = twin_of(force).pack_vjp(
                force, adj_params.astype(np.float64), adj_series.astype(np.float64)
            )
            gradient |= {f"{name}.{key}": value for key, value in adj.items()}
        c_size = n_lanes * kind.n_consts
        if f"{name}.{REST}" in wanted:
            adj_consts = from_tiles(result.consts[o_consts : o_consts + c_size], n, kind.n_consts)
            gradient[f"{name}.{REST}"] = twin_of(force).rest_vjp(
                force, adj_consts.astype(np.float64), adj_params.astype(np.float64)
            )
        o_consts += c_size
        if has_density(force):
            for key, value in twin_of(force).mass_vjp(force, gradient["mass"]).items():
                path = f"{name}.{key}"
                if path in wanted:
                    gradient[path] = gradient[path] + value if path in gradient else value
    return {path: gradient[path] for path in wanted}


def pack_tangents(
    model: Model, n_steps: int, tangents: Mapping[str, np.ndarray], dtype: np.dtype
) -> PackedVector:
    """Push tangents of the parameters to the packed arrays."""
    w = model.inverse_mass
    zero = np.zeros((model.n_nodes, 3))
    params, series, consts = ([np.zeros(0, dtype)] for _ in range(3))
    with_rest = needs_rest(tangents)
    tan_mass = tangents.get("mass", np.zeros(model.n_nodes))
    for name, force in model.forces.items():
        own = {
            path.removeprefix(f"{name}."): value
            for path, value in tangents.items()
            if path.startswith(f"{name}.")
        }
        tan_params, tan_series = twin_of(force).pack_jvp(force, own, n_steps)
        tan_consts = np.zeros((len(force.nodes), force.kind.n_consts))
        if REST in own:
            tan_consts, more = twin_of(force).rest_jvp(force, own[REST])
            tan_params = tan_params + more
        if has_density(force):
            tan_mass = tan_mass + twin_of(force).mass_jvp(force, own)
        consts += [to_tiles(tan_consts, dtype)] if with_rest else []
        params.append(to_tiles(tan_params, dtype))
        series += [to_tiles(rows, dtype) for rows in tan_series]
    return PackedVector(
        tangents.get("state.x", zero).astype(dtype),
        tangents.get("state.v", zero).astype(dtype),
        tangents.get("gravity", np.zeros(3)).astype(dtype),
        (-w * w * tan_mass).astype(dtype),
        *(np.concatenate(part) for part in (params, series, consts)),
    )
