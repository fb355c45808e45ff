r"""The energy of a soft body at the frames of a rollout, in NumPy.

    E = m |v|^2/2 - m g.x + k_e/2 c^2 over the nodes, c deep in the floor
        + V psi over tetrahedra, A0 psi over triangles, U over hinges, each less that of rest

psi and U are those of `adjsim/forces/neo_hookean.py`, `neo_hookean_triangles.py` and `hinges.py`,
whose device functions give one element; here are all elements at all frames.

Tests: `tests/studies/datasets/test_soft_scenes.py`, against those device functions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjsim.element import Force
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from studies.datasets.thrown import model_of
from studies.motion import Motion


def energy(motion: Motion, run: Any) -> np.ndarray:
    """Return the energy at the frames, (n_frames,) [J]; of contact only that of the plane y = 0."""
    model = model_of(motion)
    mass, x, v = np.asarray(model.mass), run.x.astype(float), run.v.astype(float)
    moving = 0.5 * np.square(v).sum(axis=2) @ mass
    return moving - x @ np.asarray(model.gravity) @ mass + stored(model.forces, x)


def stored(forces: Mapping[str, Force], x: np.ndarray) -> np.ndarray:
    """Return what the forces store at positions, (n_frames, n_nodes, 3) to (n_frames,) [J]."""
    found = np.zeros(len(x))
    for force in forces.values():
        if isinstance(force, HalfSpaceContact):
            depth = np.maximum(0.0, -x[..., 1])
            found += 0.5 * float(force.stiffness) * np.square(depth).sum(axis=1)
        elif own := ELASTIC.get(type(force)):
            rest: np.ndarray = np.asarray(force.rest_positions)  # pyright: ignore[reportAttributeAccessIssue]
            found += own(force, x) - own(force, rest[None])
    return found


def tet_energy(solid: NeoHookeanTets, x: np.ndarray) -> np.ndarray:
    """Return the sum of V psi, (n_frames,) [J]."""
    consts, (mu_v, sixth_lam, alpha, *_) = solid.pack_consts(), solid.pack_params().T
    E = _edges(x, solid.tets)  # rows are edges
    M = consts[:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
    I_C = np.einsum("feai,eab,febi->fe", E, M, E)
    stretch = consts[:, 6] * np.linalg.det(E) - alpha
    shear = 0.5 * mu_v * (I_C - 3.0 - np.log(I_C + 1.0))
    return (shear + 0.5 * sixth_lam / consts[:, 6] * np.square(stretch)).sum(axis=1)


def triangle_energy(skin: NeoHookeanTriangles, x: np.ndarray) -> np.ndarray:
    """Return the sum of A0 psi, (n_frames,) [J]."""
    consts, (mu_a, half_lam, alpha, *_) = skin.pack_consts(), skin.pack_params().T
    E = _edges(x, skin.triangles)
    I_C = np.einsum("feai,eab,febi->fe", E, consts[:, [[0, 1], [1, 2]]], E)
    twice_area = np.linalg.norm(np.cross(E[:, :, 0], E[:, :, 1]), axis=2)
    stretch = consts[:, 3] * twice_area - alpha
    shear = 0.5 * mu_a * (I_C - 2.0 - np.log(I_C + 1.0))
    return (shear + 0.5 * half_lam / consts[:, 3] * np.square(stretch)).sum(axis=1)


def hinge_energy(hinges: Hinges, x: np.ndarray) -> np.ndarray:
    """Return the sum of U, (n_frames,) [J]; without actuation."""
    x1, x2, x3, x4 = (x[:, nodes] for nodes in hinges.hinges.T)
    e = x4 - x3
    n1, n2 = np.cross(e, x1 - x3), np.cross(x2 - x3, e)
    length = np.linalg.norm(e, axis=2)
    sin = -length * np.einsum("fhi,fhi->fh", n1, x2 - x3)
    phi = np.arctan2(sin, np.einsum("fhi,fhi->fh", n1, n2))
    cos_beta, sin_beta = hinges.pack_series(1)[0].T
    cos_psi = np.cos(0.5 * phi) * cos_beta + np.sin(0.5 * phi) * sin_beta
    return (2.0 * hinges.pack_params()[:, 0] * (1.0 - cos_psi)).sum(axis=1)


def _edges(x: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return x1 - x0, ... of each element, (n_frames, n_elements, n_edges, 3) [m]."""
    return x[:, nodes[:, 1:]] - x[:, nodes[:, :1]]


ELASTIC: dict[type, Callable[[Any, np.ndarray], np.ndarray]] = {
    NeoHookeanTets: tet_energy,
    NeoHookeanTriangles: triangle_energy,
    Hinges: hinge_energy,
}
