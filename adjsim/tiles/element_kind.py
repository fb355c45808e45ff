"""What the assembly needs to know of a force: its element function and its row counts.

Every force is the same thing to the machinery. An element has `n_nodes` nodes; what it
knows is packed in rows, one number per element and row:

    consts   the rest shape: differentiated only where a gradient of it is asked for
    params   packed parameters, constant in time
    series   packed parameters that may change from step to step

An element function is pure, numbers and tuples in, tuples out:

    force(x, v, consts, params, series) -> one force [N] per node

with `x` a tuple of `n_nodes` vectors, `v` the same or `()` for a kind that has no use
for velocities, and flat tuples of rows.

An internal force does not change when its element is moved or boosted, and its forces sum
to zero. Such a kind is `relative`: it sees node k as x_k - x_0 (and v_k - v_0), k > 0, and
returns the forces on the nodes but the first, which feels minus their sum. Momentum is
then conserved by construction, and a quarter of a tetrahedron's loads is saved.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class ElementKind:
    """One kind of force: an element function, how many rows it reads, and its tangents.

    Where elements are rows that sum up the forces of `pairs`, the functions take a pair.
    """

    name: str
    force: Callable
    n_nodes: int
    n_consts: int
    n_params: int
    n_series: int
    uses_velocity: bool
    relative: bool = False
    rest: Callable | None = None
    jvp: Callable | None = None
    jvp_consts: Callable | None = None
    pairs: "ElementKind | None" = None

    @property
    def n_vectors(self) -> int:
        """How many vectors stand for the element's nodes: one less if relative."""
        return self.n_nodes - 1 if self.relative else self.n_nodes

    @property
    def n_velocities(self) -> int:
        """How many of the same for velocities: none if they are not used."""
        return self.n_vectors if self.uses_velocity else 0


def check_tangents(kinds: Iterable[ElementKind]) -> None:
    """Raise a TypeError for the first kind without a tangent."""
    for kind in kinds:
        if kind.jvp is None:
            raise TypeError(
                f"`{kind.name}` is a kind of force without a tangent. Give its `ElementKind` "
                "a `jvp`, the tangent of its `force`."
            )
