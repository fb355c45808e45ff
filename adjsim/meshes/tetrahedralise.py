"""A closed surface filled with tetrahedra, through the `[mesh]` extra (pytetwild, MPL-2.0).

The mesher is fTetWild (Hu et al., ACM Trans. Graph. 39(4), 2020). The surface of the result
lies within an envelope around the given one and has other vertices: draw the given
surface by embedding it, `adjsim/meshes/embedding.py`. fTetWild inserts triangles in an
order it draws from the operating system, so two calls give two meshes, equally good, whose
simulations differ by their discretisation: write the mesh to a file and use that when
numbers have to be repeated. A few of its tetrahedra are so thin that they alone would shorten the
time step, to a third for a torus of 10 000: these are made thicker, `adjsim/meshes/smoothing.py`.

Tests: `tests/meshes/test_tetrahedralise.py`.
"""

import contextlib
import tempfile

import numpy as np

from adjsim import checks
from adjsim.extras import how_to_install
from adjsim.meshes.cells import used_points
from adjsim.meshes.smoothing import smoothed
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh


MOST_TETS = 3e6
ENVELOPE = 2e-3  # of the diagonal of a surface
PLAY = 2.0  # envelopes that a node of a thin tetrahedron may move away from the surface
SHORTEST = 1e-8  # edge of a surface over its diagonal: below it the mesher's arithmetic fails


def tetrahedralise(
    surface: TriangleMesh, *, edge_length: float = 0.1, envelope: float = ENVELOPE
) -> TetMesh:
    """Fill a closed surface with tetrahedra.

    Parameters
    ----------
    surface : TriangleMesh
        Closed, manifold, facing outwards.
    edge_length : float
        Wanted edge length over the diagonal of the bounding box, in (0, 1) [-].
    envelope : float
        How far the new surface may lie from the given one, over the same diagonal, in
        (0, 0.1] [-]; three times as far at thin tetrahedra. Details below this size are lost.

    Returns
    -------
    TetMesh
        It has the volume of the surface, up to the envelope.

    Raises
    ------
    ValueError
        If the surface is open, not manifold or facing inwards, a length is out of range or gives
        too many tetrahedra, or nothing was left inside.
    ImportError
        If pytetwild is not installed.
    """
    checks.instance("surface", surface, TriangleMesh).require_closed()
    if not 0.0 < checks.number("edge_length", edge_length) < 1.0:
        raise ValueError(f"`edge_length` must be in (0, 1), got {edge_length}.")
    if not 0.0 < checks.number("envelope", envelope) <= 0.1:
        raise ValueError(f"`envelope` must be in (0, 0.1], got {envelope}.")
    check_sizes(surface, edge_length)
    try:
        from pytetwild.pytetwild import tetrahedralize
    except ImportError as error:
        raise ImportError(
            f"Filling a surface with tetrahedra needs pytetwild: {how_to_install('mesh')}. Or give "
            "a volume mesh."
        ) from error

    # fTetWild leaves a file of the surface in the current folder.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        points, tets = tetrahedralize(
            surface.points.copy(),  # pytetwild takes no read-only array
            surface.faces.astype(np.int32),
            edge_length_fac=edge_length,
            epsilon=envelope,
            coarsen=True,
            num_threads=1,
        )
    if len(tets) == 0:
        raise ValueError(
            "`surface` has no inside that is thicker than the envelope. "
            "Pass a smaller `envelope`, or repair the surface."
        )
    # fTetWild orders the nodes of a tetrahedron the other way round.
    mesh = TetMesh(*used_points(points, tets.astype(np.int64)[:, [0, 1, 3, 2]]))
    diagonal = float(np.linalg.norm(np.ptp(surface.points, axis=0)))
    return smoothed(mesh, PLAY * envelope * diagonal)


def check_sizes(surface: TriangleMesh, edge_length: float) -> None:
    """Raise ValueError if a surface has too short edges, or would have too many tetrahedra."""
    points, faces = surface.points, surface.faces
    diagonal = float(np.linalg.norm(np.ptp(points, axis=0)))
    corners = points[faces]
    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
    face, _ = np.unravel_index(edges.argmin(), edges.shape)
    if not edges.min() > SHORTEST * diagonal:
        raise ValueError(
            f"the surface has an edge of {edges.min():.1e} m at triangle {face}, but is "
            f"{diagonal:.1e} m long; the mesher needs edges above {SHORTEST:.0e} of that. Merge "
            "points that lie together, for example with `mesh.clean(tolerance=1e-6)` in PyVista."
        )
    count = 6.0 * np.sqrt(2.0) * abs(surface.volume) / (edge_length * diagonal) ** 3  # if regular
    if count > MOST_TETS:
        least = (count / MOST_TETS) ** (1.0 / 3.0) * edge_length
        raise ValueError(
            f"`edge_length` = {edge_length:g} gives about {count:.1e} tetrahedra, more than "
            f"{MOST_TETS:.0e}. Use {least:.2g} or more."
        )
