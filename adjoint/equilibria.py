"""Adjoint and tangent of `adjsim/equilibria.py`, made of the adjoints of each equilibrium.

A led node is pinned at its place: the cotangent of where it is goes to that place.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from adjoint.equilibrium import equilibrium_jvp, equilibrium_vjp
from adjoint.forces.registry import twin_of
from adjsim import checks
from adjsim.equilibria import Equilibria, led_to
from adjsim.values import values_under


def equilibria_jvp(path: Equilibria, tangents: Mapping[str, Any]) -> np.ndarray:
    """Push tangents of parameters forward to the resting positions, (n_states, n_nodes, 3) [m]."""
    model, grips = path.model, path.grips
    start = np.asarray(tangents.get("state.x", np.zeros((model.n_nodes, 3))))
    tan_places = {
        name: force.pack_jvp(values_under(name, tangents), path.n_steps)[1]
        for name, force in grips.items()
    }
    others = {key: tan for key, tan in tangents.items() if key.split(".")[0] not in grips}
    out, last = [], None
    for rest, row in zip(path.by_state, path.rows, strict=True):
        if rest is not last:
            others["state.x"] = led_to(start, model, tan_places, row)
            out.append(equilibrium_jvp(rest, others))
        else:
            out.append(out[-1])
        last = rest
    return np.stack(out)


def equilibria_vjp(
    path: Equilibria, adj_x: Any, wrt: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """Pull the adjoint of the resting positions, (n_states, n_nodes, 3), back to parameters.

    `wrt` are paths of the gradients wanted, by default all.
    """
    model, grips, last = path.model, path.grips, path.by_state[-1]
    adj_x = checks.array("adj_x", adj_x, path.x.shape)
    values = {**model.parameters(), **model.state_parameters(last.state)}
    wanted = list(values if wrt is None else wrt)
    others = [key for key in wanted if key.split(".")[0] not in grips]
    adj_places = {
        name: np.zeros_like(force.pack_series(path.n_steps)) for name, force in grips.items()
    }
    gradient = {key: np.zeros_like(values[key], float) for key in others}
    for rest, row, adj in _together(path, adj_x):
        pulled = equilibrium_vjp(rest, adj, dict.fromkeys([*others, "state.x"]))
        for name, force in grips.items() if row >= 0 else ():
            nodes, rows = force.nodes[:, 0], adj_places[name]
            rows[min(row, len(rows) - 1)] += pulled["state.x"][nodes]
            pulled["state.x"][nodes] = 0.0
        for key in others:
            gradient[key] = gradient[key] + pulled[key]
    for name, force in grips.items():
        by_key = twin_of(force).pack_vjp(force, np.zeros((len(force.nodes), 0)), adj_places[name])
        gradient |= {f"{name}.{key}": value for key, value in by_key.items()}
    return {key: gradient[key] for key in wanted}


def _together(path: Equilibria, adj_x: np.ndarray) -> list[tuple[Any, int, np.ndarray]]:
    """Return every different equilibrium with its row and the sum of its cotangents."""
    out: list[tuple[Any, int, np.ndarray]] = []
    for rest, row, adj in zip(path.by_state, path.rows, adj_x, strict=True):
        if out and out[-1][0] is rest:
            out[-1] = (rest, row, out[-1][2] + adj)
        else:
            out.append((rest, row, adj))
    return out
