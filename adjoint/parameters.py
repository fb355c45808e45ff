"""Between parameters by path, e.g. "beam.mu", and the packed arrays of the sweep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from adjoint.registry import twin_of
from adjoint.rigid.bodies import pack_params_jvp, pack_params_vjp
from adjoint.rigid.pose import pack_state_jvp, pack_state_vjp
from adjsim.assembly import from_tiles, to_tiles
from adjsim.backend import to_host
from adjsim.element import Force
from adjsim.model import Model, State
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE


@dataclass(frozen=True)
class PackedVector:
    """A tangent or a cotangent of everything that a rollout reads, packed.

    `params`, `series` and `consts` flat by tiles, `consts` empty if the rest shape does not
    matter; `x`, `v` (n_nodes, 3) of state 0; `gravity` (3,), a cotangent
    (n_nodes + n_bodies, 3), still per node and body; `w` (n_nodes,), of the inverse masses;
    `p` (n_bodies, 13), of the bodies' states at 0, `bodies` alike, of their parameters.
    """

    x: np.ndarray
    v: np.ndarray
    gravity: np.ndarray
    w: np.ndarray
    params: np.ndarray
    series: np.ndarray
    consts: np.ndarray
    p: np.ndarray
    bodies: np.ndarray

    def on_host(self) -> "PackedVector":
        """Return a copy whose arrays are NumPy's."""
        return PackedVector(*(to_host(getattr(self, part.name)) for part in fields(self)))


REST = "rest_positions"


def has_density(force: Force) -> bool:
    """Whether masses are computed from a force."""
    return force.node_mass() is not None


def needs_rest(wanted: Iterable[str]) -> bool:
    """Whether the rest shapes' rows must be differentiated."""
    return any(path.endswith(f".{REST}") for path in wanted)


def needs_forces(model: Model, wanted: Iterable[str]) -> bool:
    """Whether undoing a step needs its forces: for node masses, a density, or a body."""
    paths = {"mass"}
    for name, force in model.forces.items():
        if has_density(force):
            paths |= {f"{name}.{REST}", f"{name}.density"}
    return model.n_bodies > 0 or not paths.isdisjoint(wanted)


def collect_gradient(
    model: Model, state: State, n_steps: int, result: PackedVector, wanted: Sequence[str]
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
    for name, part in model.body_slices().items():
        adj_state, adj_params = (a[part].astype(np.float64) for a in (result.p, result.bodies))
        adj = pack_state_vjp(state.bodies[name], adj_state)
        adj |= pack_params_vjp(model.bodies[name], adj_params)
        gradient |= {f"{name}.{key}": value for key, value in adj.items()}
    return {path: gradient[path] for path in wanted}


def pack_tangents(
    model: Model, state: State, n_steps: int, tangents: Mapping[str, np.ndarray], dtype: np.dtype
) -> PackedVector:
    """Push tangents of the parameters to the packed arrays."""

    def of(owner: str) -> dict[str, np.ndarray]:
        """Return the tangents of one owner, by the rest of their paths."""
        head = f"{owner}."
        return {p.removeprefix(head): value for p, value in tangents.items() if p.startswith(head)}

    w = model.inverse_mass
    zero = np.zeros((model.n_nodes, 3))
    params, series, consts = ([np.zeros(0, dtype)] for _ in range(3))
    with_rest = needs_rest(tangents)
    tan_mass = tangents.get("mass", np.zeros(model.n_nodes))
    for name, force in model.forces.items():
        own = of(name)
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
    tan_p, tan_bodies = [np.zeros((0, STATE_SIZE))], [np.zeros((0, PARAMS_SIZE))]
    for name, part in model.bodies.items():
        tan_p.append(pack_state_jvp(state.bodies[name], of(name)))
        tan_bodies.append(pack_params_jvp(part, of(name)))
    return PackedVector(
        tangents.get("state.x", zero).astype(dtype),
        tangents.get("state.v", zero).astype(dtype),
        tangents.get("gravity", np.zeros(3)).astype(dtype),
        (-w * w * tan_mass).astype(dtype),
        *(np.concatenate(part) for part in (params, series, consts)),
        *(np.concatenate(part).astype(dtype) for part in (tan_p, tan_bodies)),
    )
