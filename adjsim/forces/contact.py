"""What every obstacle shares: the contact scalars, and which nodes may touch it."""

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from adjsim import checks
from adjsim.element import Force, Parameter, broadcast


LAW = ("stiffness", "damping", "friction_stiffness", "friction")
SCALARS = (*LAW, "radius")  # the first rows of `params`, in this order
CONTACT_PARAMETERS = (
    Parameter("radius", "r", "m", "() or (n_contacts,)"),
    Parameter("stiffness", "k_e", "N/m", "() or (n_contacts,)", positive=True),
    Parameter("damping", "k_d", "N s/m", "() or (n_contacts,)", positive=True),
    Parameter("friction_stiffness", "k_f", "N s/m", "() or (n_contacts,)", positive=True),
    Parameter("friction", "μ", "-", "() or (n_contacts,)", positive=True),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contact(Force):
    """Penalty contact of nodes with an obstacle; subclasses say of which shape.

    Parameters
    ----------
    stiffness, damping, friction_stiffness : float or array
        k_e [N/m], k_d [N s/m] and k_f [N s/m], () or (n_contacts,), not negative.
    friction : float or array
        Coefficient mu, () or (n_contacts,), not negative [-]. It is the cone, k_f the slope
        up to it: a positive mu needs a positive k_f.
    radius : float or array
        Radius of the nodes, () or (n_contacts,), not negative [m].
    contact_nodes : array, optional
        The nodes that may touch, (n_contacts,) integer. None: every node of the model.
    """

    stiffness: Any = 1e4
    damping: Any = 0.0
    friction_stiffness: Any = 0.0
    friction: Any = 0.0
    radius: Any = 0.0
    contact_nodes: Any = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = CONTACT_PARAMETERS

    def __post_init__(self) -> None:
        for name in SCALARS:
            value = checks.array(name, getattr(self, name))
            checks.freeze(self, name, checks.non_negative(name, value))
        if np.any(self.friction > 0.0) and not np.any(self.friction_stiffness > 0.0):
            raise ValueError(
                f"`friction_stiffness` must be positive where there is friction, got 0 with "
                f"friction = {np.max(self.friction):g}: nothing would hold the nodes. Give it a "
                "value, or set `friction` to 0."
            )
        if self.contact_nodes is not None:
            nodes = checks.integers("contact_nodes", self.contact_nodes, ("n_contacts",))
            found, counts = np.unique(nodes, return_counts=True)
            if (counts > 1).any():
                node, times = found[np.argmax(counts)], counts.max()
                raise ValueError(
                    f"`contact_nodes` must name each node once, got node {node} {times} times: "
                    "it would be pushed as often."
                )
            checks.freeze(self, "contact_nodes", nodes)

    @property
    def nodes(self) -> np.ndarray:
        """The nodes that may touch, (n_contacts, 1)."""
        return np.asarray(self.contact_nodes)[:, None]

    def bind(self, n_nodes: int, name: str) -> Self:
        """Return the contact with its nodes filled in and its arrays checked against them."""
        chosen = np.arange(n_nodes) if self.contact_nodes is None else self.contact_nodes
        nodes = checks.indices(f"{name}.contact_nodes", chosen, ("n_contacts",), n_nodes)
        for key in SCALARS:
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(nodes), "n_contacts")
        return dataclasses.replace(self, contact_nodes=nodes)

    @abstractmethod
    def shape_rows(self) -> tuple[Any, ...]:
        """The rows of `params` after the scalars, each a number."""

    def pack_consts(self) -> np.ndarray:
        """Nothing: (n_contacts, 0)."""
        return np.zeros((len(self.nodes), 0))

    def pack_params(self) -> np.ndarray:
        """k_e, k_d, k_f, mu, r, and the rows of the shape, (n_contacts, kind.n_params)."""
        scalars = [getattr(self, name) for name in SCALARS]
        rows = [broadcast(value, len(self.nodes)) for value in (*scalars, *self.shape_rows())]
        return np.stack(rows, axis=-1)

    def pack_series(self, n_steps: int) -> np.ndarray:
        """Nothing: (1, n_contacts, 0)."""
        return np.zeros((1, len(self.nodes), 0))

    def stiffness_bound(self) -> np.ndarray:
        """k_e of each contact."""
        return np.array(broadcast(self.stiffness, len(self.nodes)))

    def damping_bound(self) -> np.ndarray:
        """The larger of k_d and, where there is friction, k_f of each contact."""
        friction_stiffness = np.where(self.friction > 0.0, self.friction_stiffness, 0.0)
        return np.array(broadcast(np.maximum(self.damping, friction_stiffness), len(self.nodes)))
