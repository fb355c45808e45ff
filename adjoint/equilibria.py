"""Adjoint and tangent of `adjsim/equilibria.py`: those of every equilibrium, and of the places.

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


def equilibria_jvp(found: Equilibria, tangents: Mapping[str, Any]) -> np.ndarray:
    """Push tangents of parameters forward to the resting positions, (n_states, n_nodes, 3) [m]."""
    model, grips = found.model, found.grips
    start = np.asarray(tangents.get("state.x", np.zeros((model.n_nodes, 3))))
    tan_places = {
        name: force.pack_jvp(values_under(name, tangents), found.n_steps)[1]
        for name, force in grips.items()
    }
    others = {path: tan for path, tan in tangents.items() if path.split(".")[0] not in grips}
    out, last = [], None
    for one, row in zip(found.found, found.rows, strict=True):
        if one is not last:
            others["state.x"] = led_to(start, model, tan_places, row)
            out.append(equilibrium_jvp(one, others))
        else:
            out.append(out[-1])
        last = one
    return np.stack(out)


def equilibria_vjp(
    found: Equilibria, adj_x: Any, wrt: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """Pull the adjoint of the resting positions, (n_states, n_nodes, 3), back to parameters.

    `wrt` are paths of the gradients wanted, by default all.
    """
    model, grips, last = found.model, found.grips, found.found[-1]
    adj_x = checks.array("adj_x", adj_x, found.x.shape)
    known = {**model.parameters(), **model.state_parameters(last.state)}
    wanted = list(known if wrt is None else wrt)
    others = [path for path in wanted if path.split(".")[0] not in grips]
    adj_places = {
        name: np.zeros_like(force.pack_series(found.n_steps)) for name, force in grips.items()
    }
    gradient = {path: np.zeros_like(known[path], float) for path in others}
    for one, row, adj in _together(found, adj_x):
        own = equilibrium_vjp(one, adj, dict.fromkeys([*others, "state.x"]))
        for name, force in grips.items() if row >= 0 else ():
            nodes, rows = force.nodes[:, 0], adj_places[name]
            rows[min(row, len(rows) - 1)] += own["state.x"][nodes]
            own["state.x"][nodes] = 0.0
        for path in others:
            gradient[path] = gradient[path] + own[path]
    for name, force in grips.items():
        by_key = twin_of(force).pack_vjp(force, np.zeros((len(force.nodes), 0)), adj_places[name])
        gradient |= {f"{name}.{key}": value for key, value in by_key.items()}
    return {path: gradient[path] for path in wanted}


def _together(found: Equilibria, adj_x: np.ndarray) -> list[tuple[Any, int, np.ndarray]]:
    """Return every different equilibrium with its row and the sum of its cotangents."""
    out: list[tuple[Any, int, np.ndarray]] = []
    for one, row, adj in zip(found.found, found.rows, adj_x, strict=True):
        if out and out[-1][0] is one:
            out[-1] = (one, row, out[-1][2] + adj)
        else:
            out.append((one, row, adj))
    return out
