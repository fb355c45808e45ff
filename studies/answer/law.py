r"""How far the stiffness of a cloth depends on its law, at the strains of a motion.

All laws agree at small strains. At larger ones their energies are E/2 e^2 (1 + a e + ...), and a is
-0.7 for a neo-Hookean sheet that is pulled along one axis and 1 for St. Venant and Kirchhoff's law.
The motion looks the same with the one and another E: what differs of E is about the mean strain,
weighed by the energy,

    m = (sum of A e^3)/(sum of A e^2)   over principal strains e, triangles of area A, and instants,

times a number: for a towel that hangs from two corners, simulated with the one law and fitted with
the other, 2.9 at m = 7.1 % and 2.5 at 0.8 %. In bending m is near 0, as the signs of e differ.

Solids that strain so much are rubber, gel or foam, whose laws differ less; woven cloth is neither.
"""

import numpy as np

from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.model import Model
from studies.answer.evidence import theta_scale
from studies.problem.problem import SceneProblem


LAW = 3.0  # part of E that laws differ by, over m
TOLD = 0.05  # a larger part of E is told
STIFFNESS = ("E", "density")  # what the law goes with: the first that is free


def errors_by_law(problem: SceneProblem, theta: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return how far theta may be off by the law of cloth, (p,), and notes."""
    system, labels = problem.built.system, list(problem.parameters.labels)
    out, notes = np.zeros_like(theta), []
    sheets = system.forces.values() if isinstance(system, Model) else ()
    for force in (one for one in sheets if isinstance(one, NeoHookeanTriangles)):
        for name, nodes in problem.built.nodes.items():
            mine = (force.triangles >= nodes.start).all(1) & (force.triangles < nodes.stop).all(1)
            path = next((f"{name}.{key}" for key in STIFFNESS if f"{name}.{key}" in labels), None)
            if path is None or not mine.any():
                continue
            x = np.asarray(problem.with_steps_for(theta).motion_at(theta).run().x)
            part = LAW * abs(
                mean_strain(np.asarray(force.rest_positions), force.triangles[mine], x)
            )
            i = labels.index(path)
            out[i] = part * theta_scale(problem.parameters, theta)[i]
            if part > TOLD:
                notes.append(
                    f"`{name}` stretches so far that laws of cloth differ: with another one "
                    f"{path} could be {100 * part:.0f} % off. Its interval counts that."
                )
    return out, notes


def mean_strain(rest: np.ndarray, triangles: np.ndarray, x: np.ndarray) -> float:
    """Return m of a sheet with positions (n, 3) at rest and (n_times, n, 3) in motion."""
    edges, moved = (
        np.stack([p[..., triangles[:, k], :] - p[..., triangles[:, 0], :] for k in (1, 2)], -1)
        for p in (rest, x)
    )
    corners = np.linalg.qr(edges)[1]
    strains = np.linalg.svd(moved @ np.linalg.inv(corners), compute_uv=False) - 1.0
    areas = np.abs(np.linalg.det(corners))[:, None]
    square = float((areas * strains**2).sum())
    return float((areas * strains**3).sum()) / square if square > 0.0 else 0.0
