"""A gear of tetrahedra: a grid (radius, angle, height) bent to a ring with teeth.

The outer radius is a closed polygon in the angle: with four sectors to a tooth it runs root,
root, tip, tip, so flanks take one sector each. Rings in between are spaced evenly from
the hole to it.

Tests: `tests/meshes/test_gears.py`.
"""

import numpy as np

from adjsim import checks
from adjsim.meshes.grid import grid_tets
from adjsim.meshes.tet_mesh import TetMesh


def gear_tets(
    teeth: int = 12,
    *,
    rings: int = 4,
    layers: int = 1,
    hole: float = 1.2,
    root: float = 2.1,
    tip: float = 2.5,
    thickness: float = 0.8024,
) -> TetMesh:
    """Return a gear with a hole, its axis along z, centred at the origin.

    The defaults give the gear of the control study: the numbers of points, faces and
    tetrahedra, and the volume, of the one in the gradSim paper.

    Parameters
    ----------
    teeth : int
        Number of teeth, at least 3; four sectors of the ring to each.
    rings, layers : int
        Number of cells along the radius and along the axis, at least 1.
    hole, root, tip : float
        Radius of the hole, of the gaps between teeth, and of the teeth [m];
        0 < hole < root < tip.
    thickness : float
        Along z [m], positive.

    Returns
    -------
    TetMesh
        4 teeth (rings + 1)(layers + 1) points and 24 teeth rings layers tetrahedra: 480 and
        1152 by default.

    Raises
    ------
    ValueError
        If a count is too small or not whole, or the lengths are not in that order.

    Examples
    --------
    >>> from adjsim.meshes import gear_tets
    >>> print(gear_tets().tets.shape)
    (1152, 4)
    """
    for name, count, least in (("teeth", teeth, 3), ("rings", rings, 1), ("layers", layers, 1)):
        checks.whole(name, count, least)
    lengths = checks.array("hole, root, tip", (hole, root, tip), (3,))
    if not 0.0 < lengths[0] < lengths[1] < lengths[2]:
        raise ValueError(
            f"`hole`, `root` and `tip` must increase from above 0, got {hole:g}, {root:g}, {tip:g}."
        )
    checks.positive("thickness", checks.array("thickness", thickness, ()))

    n = 4 * int(teeth)
    angle = 2.0 * np.pi / n * np.arange(n)
    outer = np.tile([root, root, tip, tip], teeth)
    radius = hole + np.linspace(0.0, 1.0, rings + 1)[:, None] * (outer - hole)
    z = thickness * (np.arange(layers + 1) / layers - 0.5)
    flat = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    points = np.empty((rings + 1, n, layers + 1, 3))
    points[..., :2] = flat[:, :, None]
    points[..., 2] = z
    index = np.arange(points.size // 3).reshape(points.shape[:3])
    ring = np.concatenate([index, index[:, :1]], axis=1)
    return TetMesh(points.reshape(-1, 3), grid_tets(ring, tets_per_cell=6))
