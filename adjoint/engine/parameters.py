"""Between parameters by path, e.g. "beam.mu", and the rows of arrays that loops read."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from adjoint.engine.packing import Rows
from adjoint.forces.registry import twin_of
from adjoint.rigid.bodies import pack_params_vjp
from adjoint.rigid.pose import pack_state_vjp
from adjsim.forces.element import Force
from adjsim.model import Model, State
from adjsim.rigid.bodies import arms_jvp, pack_params_jvp
from adjsim.rigid.pose import pack_state_jvp
from adjsim.rigid.rows import PARAMS_SIZE, STATE_SIZE


REST = "rest_positions"
ARMS = (".vertices", ".point_positions")  # the ends of paths that act by the points of bodies


def has_density(force: Force) -> bool:
    """Whether masses are computed from a force."""
    return force.node_mass() is not None


def needs_rest(wanted: Iterable[str]) -> bool:
    """Whether the rest shapes' rows must be differentiated."""
    return any(path.endswith(f".{REST}") for path in wanted)


def needs_arms(wanted: Iterable[str]) -> bool:
    """Whether the arms of the points of bodies must be differentiated."""
    return any(path.endswith(ARMS) for path in wanted)


def needs_forces(model: Model, wanted: Iterable[str]) -> bool:
    """Whether undoing a step needs its forces: for node masses, a density, or a body."""
    paths = {"mass"}
    for name, force in model.forces.items():
        if has_density(force):
            paths |= {f"{name}.{REST}", f"{name}.density"}
    return model.n_bodies > 0 or not paths.isdisjoint(wanted)


def collect_gradient(
    model: Model, state: State, rows: Rows, wanted: Sequence[str]
) -> dict[str, np.ndarray]:
    """Pull the cotangents of a model's rows back to its parameters, in their shapes, float64.

    Those of `wanted` that the model has: of a batch each world may have others.
    """
    own = {*model.parameters(), *model.state_parameters(state)}
    wanted = [path for path in wanted if path in own]
    w = model.inverse_mass
    gradient = {
        # w = 1/m: adj_m = -w^2 adj_w, 0 where pinned
        "mass": -w * w * rows.w,
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
    for name, part in model.body_slices().items():
        adj_state, adj_params = (a[part].astype(np.float64) for a in (rows.p, rows.bodies))
        adj = pack_state_vjp(state.bodies[name], adj_state)
        own_points = slice(first, first + model.bodies[name].n_points)
        first = own_points.stop
        adj_arms = rows.arms[own_points].astype(np.float64) if len(rows.arms) else None
        adj |= pack_params_vjp(model.bodies[name], adj_params, adj_arms)
        gradient |= {f"{name}.{key}": value for key, value in adj.items()}
    return {path: gradient[path] for path in wanted}


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

    def of(owner: str) -> dict[str, np.ndarray]:
        """Return the tangents of one owner, by the rest of their paths."""
        head = f"{owner}."
        return {p.removeprefix(head): value for p, value in tangents.items() if p.startswith(head)}

    w = model.inverse_mass
    zero = np.zeros((model.n_nodes, 3))
    params, series, consts = [], [], []
    tan_mass = tangents.get("mass", np.zeros(model.n_nodes))
    for name, force in model.forces.items():
        if has_density(force):
            tan_mass = tan_mass + force.mass_jvp(of(name))
    for name, force in model.forces.items():
        own = of(name)
        tan_params, tan_series = force.pack_jvp(own, n_steps)
        tan_params = tan_params + force.with_mass_jvp(tan_mass)
        tan_consts = np.zeros((len(force.nodes), force.kind.n_consts))
        if REST in own:
            tan_consts, more = force.rest_jvp(own[REST])
            tan_params = tan_params + more
        consts += [tan_consts] if with_rest else []
        params.append(tan_params)
        series.append(tan_series)
    tan_p, tan_bodies = [np.zeros((0, STATE_SIZE))], [np.zeros((0, PARAMS_SIZE))]
    tan_arms = [np.zeros((0, 3))]
    for name, part in model.bodies.items():
        tan_p.append(pack_state_jvp(state.bodies[name], of(name)))
        tan_bodies.append(pack_params_jvp(part, of(name)))
        tan_arms += [arms_jvp(part, of(name))] if with_arms else []
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
