"""What every obstacle shares: contact scalars, sizes, tracks, and which nodes may touch it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.engine.margins import ContactMargins, obstacle_margins
from adjsim.forces.acted_rows import NODES, ActedRows
from adjsim.forces.element import Force
from adjsim.forces.gap import Geometry
from adjsim.forces.tracks import AXES, ROW_TANGENTS, Track, stack_rows
from adjsim.rotations import unit_quaternions
from adjsim.series import freeze_series, series_rows, series_rows_jvp, steps_of
from adjsim.values import Parameter, broadcast


LAW = ("stiffness", "damping", "dissipation", "friction_stiffness", "friction")
SCALARS = (*LAW, "radius")  # the first rows of `params`, in this order
POSE_PARAMETERS = (
    Parameter("center", "x_c", "m", "(3,) or (n_steps, 3)"),
    Parameter("rotation", "ϑ", "rad", "(3,) or (n_steps, 3)"),
)
MOTION_PARAMETERS = (
    Parameter("velocity", "V", "m/s", "(3,) or (n_steps, 3)"),
    Parameter("angular_velocity", "Ω", "rad/s", "(3,) or (n_steps, 3)"),
)
CONTACT_PARAMETERS = (
    Parameter("radius", "r", "m", "() or (n_contacts,)"),
    Parameter("stiffness", "k_e", "N/m", "() or (n_contacts,)", positive=True),
    Parameter("damping", "k_d", "N s/m", "() or (n_contacts,)", positive=True),
    Parameter("dissipation", "d", "s/m", "() or (n_contacts,)", positive=True),
    Parameter("friction_stiffness", "k_f", "N s/m", "() or (n_contacts,)", positive=True),
    Parameter("friction", "μ", "-", "() or (n_contacts,)", positive=True),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contact(Force):
    """Penalty contact of nodes with an obstacle; subclasses say of which shape.

    Pose and velocity of an obstacle may vary in time: each is constant, has one row per step
    (row k acts in step k), or is a `Signal`. They are parameters of their own: a velocity is
    what the node's is compared with, and moves nothing (`adjsim.forces.tracks.path_velocity`
    gives that of a path). What varies is packed for every contact and step, in the reverse
    sweep twice: n_steps * n_contacts * 8 bytes * 7 (plane), 9 (sphere), 12 (capsule) or
    18 (box). Restrict `contact_nodes` to those that can touch; a constant takes no memory.

    Parameters
    ----------
    stiffness, friction_stiffness : float or array
        k_e [N/m] and k_f [N s/m], () or (n_contacts,), not negative.
    dissipation : float or array, optional
        d [s/m], () or (n_contacts,), not negative. Nothing jumps at touch.
    damping : float or array, optional
        k_d [N s/m], () or (n_contacts,), not negative, in place of a dissipation. The force
        jumps at touch. With neither of the two it is 0. What is None is no parameter.
    deepest : float or array
        How deep contacts are expected to be, () or (n_contacts,), not negative [m]: a dissipation
        damps as k_e d times the depth, which the stable step must allow for. No parameter.
    friction : float or array
        Coefficient mu, () or (n_contacts,), not negative [-]. It is the cone, k_f the slope
        up to it: a positive mu needs a positive k_f.
    radius : float or array
        Radius of the nodes, () or (n_contacts,), not negative [m].
    contact_nodes : array, optional
        The nodes that may touch, (n_contacts,) integer; of rigid bodies the vertices of their
        meshes. None: every one of them.
    acts_on : str or sequence of str
        What may touch: "nodes", the name of a set of rigid bodies, or several of these.
    """

    stiffness: Any = 1e4
    damping: Any = None
    dissipation: Any = None
    friction_stiffness: Any = 0.0
    friction: Any = 0.0
    radius: Any = 0.0
    deepest: Any = 0.0
    contact_nodes: Any = None
    acts_on: str | Sequence[str] = NODES

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = CONTACT_PARAMETERS
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = ()  # name and shape, constant
    TRACKS: ClassVar[tuple[Track, ...]]
    GEOMETRY: ClassVar[Geometry]
    ELEMENTS = "contact_nodes"

    touches: ClassVar[bool] = True
    orientation: ClassVar[Any] = None  # of shapes that can be turned, a field of their own

    def __post_init__(self) -> None:
        if self.orientation is not None:
            nominal = checks.array("orientation", self.orientation, (4,))
            checks.freeze(self, "orientation", unit_quaternions("orientation", nominal[None])[0])
        choose_law(self)
        for name in (*self.scalars, "deepest"):
            value = checks.array(name, getattr(self, name))
            checks.freeze(self, name, checks.non_negative(name, value))
        check_friction(self)
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
        for name, shape in self.SIZES:
            size = checks.array(name, getattr(self, name), shape)
            checks.freeze(self, name, checks.positive(name, size))
        for track in self.TRACKS:
            freeze_series(self, track.name, [track.shape])
        steps = self.series_steps()
        if len(set(steps.values())) > 1:
            found = ", ".join(f"`{name}` has {n}" for name, n in steps.items())
            raise ValueError(
                f"An obstacle's series must have one row per step, all as many: {found}."
            )

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of the scalars that this contact has: all but damping or dissipation."""
        absent = "damping" if self.dissipation is not None else "dissipation"
        return tuple(name for name in SCALARS if name != absent)

    @property
    def axes(self) -> np.ndarray:
        """The obstacle's own axes in its nominal orientation, as columns, (3, 3)."""
        if self.orientation is None:
            return AXES
        return Rotation.from_quat(self.orientation).as_matrix()

    def series_steps(self) -> dict[str, int]:
        """Return the number of rows of every track that is a series."""
        return steps_of(self, {track.name: track.shape for track in self.TRACKS})

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the contact with its nodes filled in and its arrays checked against them."""
        n = len(rows.indices)
        fitted = self.rows is not None and self.contact_nodes.max(initial=-1) < n
        if fitted and np.array_equal(np.asarray(self.rows), rows.indices[self.contact_nodes]):
            return self  # as in a model with other values, which has it unchanged
        chosen = rows.surface if self.contact_nodes is None else self.contact_nodes
        nodes = checks.indices(f"{name}.contact_nodes", chosen, ("n_contacts",), n)
        for key in (*self.scalars, "deepest"):
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(nodes), "n_contacts")
        bound = copy.copy(self)  # the rest is checked
        checks.freeze(bound, "contact_nodes", nodes)
        checks.freeze(bound, "rows", rows.indices[nodes])
        return bound

    def pack_params(self) -> np.ndarray:
        """k_e, k_d, d, k_f, mu, r, and the sizes, (n_contacts, kind.n_params)."""
        present = self.parameters()
        values = [present.get(name, np.zeros(())) for name in SCALARS]
        for name, _ in self.SIZES:
            values += list(getattr(self, name).ravel())
        return np.stack([broadcast(value, len(self.nodes)) for value in values], axis=-1)

    def pack_series(self, n_steps: int) -> np.ndarray:
        """The rows of the tracks side by side, (1 or n_steps, n_contacts, kind.n_series)."""
        blocks = [
            track.rows(series_rows(getattr(self, track.name), track.shape, n_steps), self.axes)
            for track in self.TRACKS
        ]
        return stack_rows(blocks, len(self.nodes))

    def margins(self, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
        """Return how far each contact is from touching, slipping and the shape's edges."""
        return obstacle_margins(self, steps, x, v)

    def stiffness_bound(self) -> np.ndarray:
        """k_e of each contact."""
        return np.array(broadcast(self.stiffness, len(self.nodes)))

    def damping_bound(self) -> np.ndarray:
        """The larger of k_d, or k_e d at the deepest, and, where there is friction, k_f of each."""
        friction_stiffness = np.where(self.friction > 0.0, self.friction_stiffness, 0.0)
        damping = self.damping
        if self.dissipation is not None:
            damping = self.stiffness * self.dissipation * self.deepest
        return np.array(broadcast(np.maximum(damping, friction_stiffness), len(self.nodes)))

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        count = len(self.nodes)
        params = [tangents.get(name, np.zeros(())) for name in SCALARS]
        for name, shape in self.SIZES:
            params += list(tangents.get(name, np.zeros(shape)).ravel())
        blocks = []
        for track in self.TRACKS:
            value = getattr(self, track.name)
            values = series_rows(value, track.shape, n_steps)
            tan = series_rows_jvp(value, track.shape, tangents.get(track.name), n_steps)
            blocks.append(ROW_TANGENTS[track.rows](values, tan, self.axes))
        rows = np.stack([broadcast(value, count) for value in params], axis=-1)
        return rows, stack_rows(blocks, count)


def choose_law(contact: Any) -> None:
    """Raise if both laws of losing energy are given; without any, the damping is 0."""
    if contact.dissipation is None:
        object.__setattr__(contact, "damping", 0.0 if contact.damping is None else contact.damping)
    elif contact.damping is not None:
        raise ValueError(
            "`damping` and `dissipation` must not both be given: a contact loses energy by one "
            f"of them. Got damping = {contact.damping} and dissipation = {contact.dissipation}. "
            "Leave out `damping`, whose force jumps at touch."
        )


def check_friction(contact: Any) -> None:
    """Raise if there is friction without a stiffness of it."""
    if np.any(contact.friction > 0.0) and not np.any(contact.friction_stiffness > 0.0):
        raise ValueError(
            f"`friction_stiffness` must be positive where there is friction, got 0 with "
            f"friction = {np.max(contact.friction):g}: nothing would hold the nodes. Give it a "
            "value, or set `friction` to 0."
        )
