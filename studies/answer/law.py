r"""How far the stiffness of a cloth depends on its law, at the strains of a motion.

All laws agree at small strains. At larger ones their energies are E/2 e^2 (1 + a e + ...), and a is
-0.7 for a neo-Hookean sheet that is pulled along one axis and 1 for St. Venant and Kirchhoff's law.
The motion looks the same with the one and another E: what differs of E is about the mean strain,
weighed by the energy,

    m = (sum of A e^3)/(sum of A e^2)   over principal strains e, triangles of area A, and instants,

times a number. Where the bending goes with E too, its energy counts below the line. For a towel
that hangs from two corners, simulated with the one law and fitted with the other, the number is 2.9
at m = 7.1 % and 2.5 at 0.8 %. In bending m is near 0, as the signs of e differ.

Solids have two laws, and are compared by the motion itself (`studies/answer/discretisation.py`).
"""

import numpy as np

from adjsim.forces.hinges import Hinges, dihedral_angle, rest_shape
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from studies.answer.scales import theta_scale
from studies.problem.problem import SceneProblem
from studies.scene.motion import model_of


LAW = 3.0  # part of E that laws differ by, over m
NOTED = 0.05  # part of E above which a note says so
STIFFNESS = ("E", "density")  # what the law goes with: the first that is free


def errors_by_law(problem: SceneProblem, theta: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return how far theta may be off by the law of cloth, (p,), and notes."""
    labels, values = list(problem.parameters.labels), problem.built.values
    out, notes = np.zeros_like(theta), []
    motion, x = problem.with_steps_for(theta).motion_at(theta), None
    model = model_of(motion.system)
    forces = model.forces if model else {}
    for name, sheet in forces.items():
        path = next((f"{name}.{key}" for key in STIFFNESS if f"{name}.{key}" in labels), None)
        if not isinstance(sheet, NeoHookeanTriangles) or path is None:
            continue
        x = np.asarray(motion.run().x) if x is None else x
        # bending with a number of its own does not depend on this one
        hinges = None if f"{name}.bending" in values else forces.get(f"{name}_bending")
        share = LAW * abs(mean_strain(sheet, x, hinges if isinstance(hinges, Hinges) else None))
        i = labels.index(path)
        out[i] = share * theta_scale(problem.parameters, theta)[i]
        if share > NOTED:
            notes.append(
                f"`{name}` stretches so far that laws of cloth differ: with another one {path} "
                f"could be {100 * share:.0f} % off. Its interval counts that."
            )
    return out, notes


def mean_strain(sheet: NeoHookeanTriangles, x: np.ndarray, hinges: Hinges | None = None) -> float:
    """Return m of a sheet with positions (n_times, n, 3), which these hinges bend."""
    rest, triangles = np.asarray(sheet.rest_positions), np.asarray(sheet.triangles)
    edges, moved = (
        np.stack([p[..., triangles[:, k], :] - p[..., triangles[:, 0], :] for k in (1, 2)], -1)
        for p in (rest, x)
    )
    corners = np.linalg.qr(edges)[1]
    strains = np.linalg.svd(moved @ np.linalg.inv(corners), compute_uv=False) - 1.0
    areas = np.abs(np.linalg.det(corners))[:, None]
    square = float((areas * strains**2).sum()) + _bending(sheet, x, hinges)
    return float((areas * strains**3).sum()) / square if square > 0.0 else 0.0


def _bending(sheet: NeoHookeanTriangles, x: np.ndarray, hinges: Hinges | None) -> float:
    """Return the energy of bending over the modulus that multiplies A e^2 [m2]."""
    if hinges is None:
        return 0.0
    shape = hinges.stiffness * rest_shape(hinges.rest_positions, hinges.hinges)
    energy = 0.0
    for positions in x:
        turn = dihedral_angle(positions, hinges.hinges) - hinges.rest_angle
        energy += float((2.0 * shape * (1.0 - np.cos(0.5 * turn))).sum())
    return energy / float(np.mean(sheet.mu + 0.5 * sheet.lam))
