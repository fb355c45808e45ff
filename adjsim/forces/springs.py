r"""Springs with damping along their axis.

    U = k/2 (l - l0)^2,  r = x_j - x_i,  l = |r|,  d = r/l
    f_j = -[k (l - l0) + c d.(v_j - v_i)] d,  f_i = -f_j

The damper takes the power c (d.(v_j - v_i))^2 >= 0 and is blind to rotation. At l = 0 there is
no direction, and a rollout that gets there leaves the finite numbers.

The kind is relative: an element sees r and its rate, and returns f_j. In its tangent the length and
direction of r belong together: tan_l = d.tan_r, tan_d = (tan_r - tan_l d)/l.

Adjoint: `adjoint/forces/springs.py`. Tests: `tests/forces/test_springs.py`.
Source: Baraff & Witkin, Large Steps in Cloth Simulation, SIGGRAPH 1998, sec. 4, with the
condition C = l - l0: U = k/2 C^2, and damping along its gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.algebra.vec3 import axpy, dot, norm, scale
from adjsim.forces.acted_rows import NODES, ActedRows, has_names
from adjsim.forces.element import Force
from adjsim.jit.backend import device_fn, lit
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


K, C, L0 = range(3)  # of a row's parameters


@device_fn
def spring_force(x, v, consts, params, series):
    """Return the force f_j [N] on node j; `x` holds r and `v` its rate."""
    k, c, l0 = params[K], params[C], params[L0]
    r = x[0]
    l = norm(r)  # (1)
    d = scale(lit(1, l) / l, r)  # (2)
    l_rate = dot(d, v[0])  # (3) [m/s]
    tension = k * (l - l0) + c * l_rate  # (4) [N]
    return (scale(-tension, d),)  # (5)


@device_fn
def spring_jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series):
    """Push tangents through `spring_force`."""
    k, c, l0 = params[K], params[C], params[L0]
    tan_k, tan_c, tan_l0 = tan_params[K], tan_params[C], tan_params[L0]
    r, tan_r = x[0], tan_x[0]
    l = norm(r)  # (1)
    inv_l = lit(1, l) / l
    d = scale(inv_l, r)  # (2)
    tan_l = dot(d, tan_r)  # (1)
    tan_d = scale(inv_l, axpy(-tan_l, d, tan_r))  # (2)
    l_rate = dot(d, v[0])  # (3)
    tan_l_rate = dot(tan_d, v[0]) + dot(d, tan_v[0])
    tension = k * (l - l0) + c * l_rate  # (4)
    tan_elastic = tan_k * (l - l0) + k * (tan_l - tan_l0)
    tan_tension = tan_elastic + tan_c * l_rate + c * tan_l_rate
    return (axpy(-tan_tension, d, scale(-tension, tan_d)),)  # (5)


@device_fn
def spring_energy(x, consts, params, series):
    """Return the elastic energy U [J] of one spring."""
    stretch = norm(x[0]) - params[L0]
    return lit(0.5, stretch) * params[K] * stretch * stretch


SPRING = ElementKind(
    "spring", spring_force, 2, 0, 3, 0, uses_velocity=True, relative=True, jvp=spring_jvp
)


@dataclass(frozen=True, eq=False)
class Springs(Force):
    """Springs between pairs of nodes, or of points of rigid bodies.

    Parameters
    ----------
    edges : array
        The two nodes of each spring, (n_springs, 2) integer; with bodies in `acts_on` vertices of
        their meshes too, or names of their points, as in [("left.tip", "right.tip")].
    stiffness : float or array
        k >= 0, () or (n_springs,) [N/m].
    rest_length : float or array, optional
        l0 >= 0, () or (n_springs,) [m]. None: the lengths in `rest_positions`; from then on
        it is a parameter of its own.
    damping : float or array, optional
        c >= 0, () or (n_springs,) [N s/m]. None: no damper, and no parameter.
    rest_positions : array, optional
        Positions of all nodes, (n_nodes, 3) [m], in which the springs are at rest. Read only
        where `rest_length` is None.
    acts_on : str or sequence of str
        "nodes", the name of a set of rigid bodies, or several of these: what the springs join.

    Raises
    ------
    ValueError
        If an array has the wrong shape or sign, if a spring joins a node to itself, or if its
        ends coincide at rest.
    """

    edges: Any
    stiffness: Any
    rest_length: Any = None
    damping: Any = None
    rest_positions: Any = None
    acts_on: str | Sequence[str] = NODES

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("stiffness", "k", "N/m", "() or (n_springs,)", positive=True),
        Parameter("damping", "c", "N s/m", "() or (n_springs,)", positive=True),
        Parameter("rest_length", "l₀", "m", "() or (n_springs,)", positive=True),
    )
    KIND = SPRING
    PACKED: ClassVar = {"stiffness": (), "damping": (), "rest_length": ()}
    ELEMENTS = "edges"

    def __post_init__(self) -> None:
        if has_names(self.edges):
            edges = np.asarray(self.edges, object)
            if edges.shape[1:] != (2,):
                raise ValueError(f"`edges` must be pairs, (n_springs, 2), got {edges.shape}.")
        else:
            edges = checks.integers("edges", self.edges, ("n_springs", 2))
            self._check_ends("edges", edges, edges)
        if self.rest_positions is not None:
            rest = checks.array("rest_positions", self.rest_positions, ("n_nodes", 3))
            checks.indices("edges", edges, ("n_springs", 2), len(rest))
            checks.freeze(self, "rest_positions", rest)
            if self.rest_length is None:
                checks.freeze(self, "rest_length", lengths(rest, edges))
        elif self.rest_length is None:
            raise ValueError(
                "`rest_length` is needed, or `rest_positions` in which the springs are at rest."
            )
        checks.freeze(self, "edges", edges)
        self.freeze_each(len(edges), "n_springs")

    def bind(self, rows: ActedRows, name: str) -> "Springs":
        """Return the springs between rows of a model."""
        bound = super().bind(rows, name)
        self._check_ends(f"{name}.edges", bound.nodes, self.edges)
        return bound

    @staticmethod
    def _check_ends(where: str, ends: np.ndarray, edges: np.ndarray) -> None:
        """Raise if a spring joins a node or point to itself; `edges` are as they were given."""
        loops = ends[:, 0] == ends[:, 1]
        if loops.any():
            row = int(np.argmax(loops))
            pair = np.asarray(edges)[row].tolist()
            raise ValueError(f"`{where}` must join two different nodes, got {pair} at row {row}.")

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Name the first spring of length 0, also where that is the rounding of its square."""
        squares = np.square(x[self.nodes[:, 1]] - x[self.nodes[:, 0]]).sum(axis=1)
        if squares.all():
            return None
        row = int(np.argmax(squares == 0.0))
        i, j = self.edges[row].tolist()
        return (
            f"spring {row} of `{name}`, between nodes {i} and {j}, has length 0: it has no "
            "direction"
        )

    def stiffness_bound(self) -> np.ndarray:
        """2 k: the largest eigenvalue of k [[1, -1], [-1, 1]]."""
        return np.array(broadcast(2.0 * self.stiffness, len(self.edges)))

    def damping_bound(self) -> np.ndarray:
        """2 c, for the same reason."""
        damping = np.zeros(()) if self.damping is None else self.damping
        return np.array(broadcast(2.0 * damping, len(self.edges)))


def lengths(positions: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the lengths of edges, (n_edges,) [m].

    Raise a ValueError if the ends of one coincide.
    """
    l = np.linalg.norm(positions[edges[:, 1]] - positions[edges[:, 0]], axis=1)
    if not (l > 0.0).all():
        row = int(np.argmin(l))
        i, j = edges[row].tolist()
        raise ValueError(
            f"`edges` must join nodes that lie apart at rest, but spring {row}, between nodes "
            f"{i} and {j}, has length 0: it would have no direction. Remove it, or merge the nodes."
        )
    return l
