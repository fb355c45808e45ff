"""Between parameters by path, e.g. "beam.mu", and the packed arrays of the sweep."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adjoint.registry import twin_of
from adjsim.assembly import from_tiles, to_tiles
from adjsim.model import Model


@dataclass(frozen=True)
class PackedVector:
    """A tangent or a cotangent of everything that a rollout reads, packed.

    `params` and `series` flat by tiles; `x`, `v` (n_nodes, 3) of state 0; `gravity` (3,), a
    cotangent (n_nodes, 3), still per node; `w` (n_nodes,), of the inverse masses.
    """

    x: np.ndarray
    v: np.ndarray
    gravity: np.ndarray
    w: np.ndarray
    params: np.ndarray
    series: np.ndarray


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
    o_params = o_series = 0
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
    return {path: gradient[path] for path in wanted}


def pack_tangents(
    model: Model, n_steps: int, tangents: Mapping[str, np.ndarray], dtype: np.dtype
) -> PackedVector:
    """Push tangents of the parameters to the packed arrays."""
    w = model.inverse_mass
    zero = np.zeros((model.n_nodes, 3))
    params, series = [np.zeros(0, dtype)], [np.zeros(0, dtype)]
    for name, force in model.forces.items():
        own = {
            path.removeprefix(f"{name}."): value
            for path, value in tangents.items()
            if path.startswith(f"{name}.")
        }
        tan_params, tan_series = twin_of(force).pack_jvp(force, own, n_steps)
        params.append(to_tiles(tan_params, dtype))
        series += [to_tiles(rows, dtype) for rows in tan_series]
    return PackedVector(
        tangents.get("state.x", zero).astype(dtype),
        tangents.get("state.v", zero).astype(dtype),
        tangents.get("gravity", np.zeros(3)).astype(dtype),
        (-w * w * tangents.get("mass", np.zeros(model.n_nodes))).astype(dtype),
        np.concatenate(params),
        np.concatenate(series),
    )
