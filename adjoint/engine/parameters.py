"""Between parameters by path, e.g. "beam.mu", and the rows of arrays that loops read."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from adjoint.forces.registry import twin_of
from adjoint.rigid.bodies import pack_params_vjp
from adjoint.rigid.pose import pack_state_vjp
from adjsim.engine.tangent_packing import REST, Rows, has_density
from adjsim.model import Model, State


def needs_forces(model: Model, wanted: Iterable[str]) -> bool:
    """Whether undoing a step needs its forces: for node masses, a density, or a body."""
    paths = {"mass"}
    for name, force in model.forces.items():
        if has_density(force):
            paths |= {f"{name}.{REST}", f"{name}.density"}
    return model.n_bodies > 0 or not paths.isdisjoint(wanted)


def require_rest_adjoints(model: Model, wanted: Iterable[str]) -> None:
    """Raise if a gradient of a rest shape is wanted whose kind has no adjoint of it."""
    paths = set(wanted)
    for name, force in model.forces.items():
        kind = force.kind
        if f"{name}.{REST}" not in paths or not kind.n_consts:
            continue
        if twin_of(force).twin_kind(force).vjp_consts is None:
            raise TypeError(
                f"`{kind.name}` is a kind of force without an adjoint of its rest shape, whose "
                f"constants are computed from rest positions. Give its `TwinKind` a `vjp_consts`, "
                f"or leave `{name}.{REST}` out of `wrt`."
            )


def collect_gradient(
    model: Model, state: State, rows: Rows, wanted: Sequence[str], adj_mass: Any = 0.0
) -> dict[str, np.ndarray]:
    """Pull the cotangents of a model's rows back to its parameters, in their shapes, float64.

    Those of `wanted` that the model has: of a batch each world may have others. `adj_mass` is that
    of masses which act beside the steps.
    """
    parameters = {*model.parameters(), *model.state_parameters(state)}
    wanted = [path for path in wanted if path in parameters]
    w = model.inverse_mass
    gradient = {
        # w = 1/m: adj_m = -w^2 adj_w, 0 where pinned
        "mass": -w * w * rows.w + adj_mass,
        "gravity": rows.gravity.sum(axis=0, dtype=np.float64),
        "state.x": rows.x.astype(np.float64),
        "state.v": rows.v.astype(np.float64),
    }
    adj_rows = [adj.astype(np.float64) for adj in rows.params]
    for force, adj_params in zip(model.forces.values(), adj_rows, strict=True):
        by_force = twin_of(force).with_mass_vjp(force, adj_params, model.n_nodes)
        gradient["mass"] = gradient["mass"] + by_force
    for f, (name, force) in enumerate(model.forces.items()):
        twin, adj_params = twin_of(force), adj_rows[f]
        if any(path.startswith(f"{name}.") for path in wanted):
            adj = twin.pack_vjp(force, adj_params, rows.series[f].astype(np.float64))
            gradient |= {f"{name}.{key}": value for key, value in adj.items()}
        if f"{name}.{REST}" in wanted:
            adj_consts = rows.consts[f].astype(np.float64)
            gradient[f"{name}.{REST}"] = twin.rest_vjp(force, adj_consts, adj_params)
        by_mass = {f"{name}.density", f"{name}.{REST}"}
        if not by_mass.isdisjoint(wanted) and has_density(force):
            for key, value in twin.mass_vjp(force, gradient["mass"]).items():
                path = f"{name}.{key}"
                if path in wanted:
                    gradient[path] = gradient[path] + value if path in gradient else value
    first = 0
    for name, body_slice in model.body_slices().items():
        adj_state, adj_params = (a[body_slice].astype(np.float64) for a in (rows.p, rows.bodies))
        adj = pack_state_vjp(state.bodies[name], adj_state)
        own_points = slice(first, first + model.bodies[name].n_points)
        first = own_points.stop
        adj_arms = rows.arms[own_points].astype(np.float64) if len(rows.arms) else None
        adj |= pack_params_vjp(model.bodies[name], adj_params, adj_arms)
        gradient |= {f"{name}.{key}": value for key, value in adj.items()}
    return {path: gradient[path] for path in wanted}
