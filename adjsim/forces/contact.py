"""What every obstacle shares: contact scalars, sizes, tracks, and which nodes may touch it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.engine.margins import ContactMargins, obstacle_margins
from adjsim.forces.acted_rows import NODES, ActedRows, Body, BodyFrame
from adjsim.forces.carried import N_FRAME, carried_kind
from adjsim.forces.element import CarriedBound, ElementKind, Force
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
    fixed_to : str, optional
        A rigid body that carries the obstacle and feels the reaction: "arm" is the first body of a
        set, "links.3" its body 3. Pose and velocity are then about its centre of mass, in its own
        axes, and its own points do not touch. None: the obstacle is fixed in the world.
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
    fixed_to: str | None = None

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = CONTACT_PARAMETERS
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = ()  # name and shape, constant
    TRACKS: ClassVar[tuple[Track, ...]]
    GEOMETRY: ClassVar[Geometry]
    ELEMENTS = "contact_nodes"

    touches: ClassVar[bool] = True
    frame: ClassVar[BodyFrame | None] = None  # of the body that carries it, in a model
    orientation: ClassVar[Any] = None  # of shapes that can be turned, a field of their own

    def __post_init__(self) -> None:
        if self.orientation is not None:
            nominal = checks.array("orientation", self.orientation, (4,))
            checks.freeze(self, "orientation", unit_quaternions("orientation", nominal[None])[0])
        if self.fixed_to is not None:
            object.__setattr__(self, "framed", (Body.of("fixed_to", self.fixed_to),))
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
    def kind(self) -> ElementKind:
        """The kind of element these are: of a node, or of a node and the body's frame points."""
        return self.KIND if self.fixed_to is None else carried_kind(self.KIND)

    @property
    def bounded_rows(self) -> np.ndarray:
        """The nodes alone: what the body feels is in `carried_bound`."""
        return self.nodes[:, :1]

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
        n, frame = len(rows.indices), rows.frames[self.framed[0]] if self.framed else None
        fitted = self.rows is not None and self.contact_nodes.max(initial=-1) < n
        fitted = fitted and frame == self.frame
        if fitted and np.array_equal(
            np.asarray(self.rows), _joined(rows.indices[self.contact_nodes], frame)
        ):
            return self  # as in a model with other values, which has it unchanged
        chosen = self.contact_nodes
        if chosen is None:
            chosen = rows.surface[~_is_of(rows.indices[rows.surface], frame)]
        nodes = checks.indices(f"{name}.contact_nodes", chosen, ("n_contacts",), n)
        own = nodes[_is_of(rows.indices[nodes], frame)]
        if own.size:
            raise ValueError(
                f"`{name}.contact_nodes` must not be points of `{self.fixed_to}`, which carries "
                f"the obstacle, got {own[0]}. Leave them out."
            )
        for key in (*self.scalars, "deepest"):
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(nodes), "n_contacts")
        bound = copy.copy(self)  # the rest is checked
        checks.freeze(bound, "contact_nodes", nodes)
        checks.freeze(bound, "rows", _joined(rows.indices[nodes], frame))
        object.__setattr__(bound, "frame", frame)
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

    def extremes(self, pose: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return points and a radius [m]: the shape is all that is near their convex hull.

        `pose` are packed series, (k, kind.n_series), the points (k, n, 3). None: it has no end.
        """
        del pose
        return None

    def carried_bound(self) -> CarriedBound | None:
        """Return what the body feels that carries the obstacle, None without one.

        A pressure points at what is `extremes`, friction acts at the surface. Of a series poses of
        all steps count, of a `Signal` that of the first step.
        """
        if self.frame is None:
            return None
        k, c = (float(bound.sum()) for bound in (self.stiffness_bound(), self.damping_bound()))
        n_steps = min(self.series_steps().values(), default=1)
        found = self.extremes(self.pack_series(n_steps)[:, 0])
        if found is None:
            return CarriedBound(self.frame.center, k, c)
        arms = found[0].reshape(-1, 3)
        around = found[1] * np.concatenate([np.eye(3), -np.eye(3)])
        rubbed = (arms[:, None] + around).reshape(-1, 3)
        return CarriedBound(self.frame.center, k, c, arms, rubbed)

    def stiffness_bound(self) -> np.ndarray:
        """k_e of each contact; twice, if a body carries the obstacle.

        |J_B q_B - v|^2 <= 2 |J_B q_B|^2 + 2 |v|^2 bounds body and node apart.
        """
        return self._bound(self.stiffness)

    def damping_bound(self) -> np.ndarray:
        """The larger of k_d, or k_e d at the deepest, and, where there is friction, k_f of each."""
        friction_stiffness = np.where(self.friction > 0.0, self.friction_stiffness, 0.0)
        damping = self.damping
        if self.dissipation is not None:
            damping = self.stiffness * self.dissipation * self.deepest
        return self._bound(np.maximum(damping, friction_stiffness))

    def _bound(self, value: Any) -> np.ndarray:
        """Return the bound of each contact, twice between a node and a body that can yield."""
        twice = 1.0 if self.fixed_to is None else 2.0
        return np.array(broadcast(twice * value, len(self.nodes)))

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


def _joined(nodes: np.ndarray, frame: BodyFrame | None) -> np.ndarray:
    """Return the rows of each contact: of the node, and of the frame points behind it."""
    if frame is None:
        return nodes
    points = np.broadcast_to(frame.center + np.arange(N_FRAME), (len(nodes), N_FRAME))
    return np.column_stack([nodes, points])


def _is_of(rows: np.ndarray, frame: BodyFrame | None) -> np.ndarray:
    """Return which rows of X are points of the body of a frame."""
    if frame is None:
        return np.zeros(len(rows), bool)
    return (rows >= frame.first) & (rows < frame.center)


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
