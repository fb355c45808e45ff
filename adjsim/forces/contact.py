"""What every obstacle shares: contact scalars, sizes, tracks, and which nodes may touch it."""

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.forces.acted_rows import NODES, ActedRows, Body, BodyFrame
from adjsim.forces.ball import N_FRAME as N_BALL, ball_kind
from adjsim.forces.carried import N_FRAME, carried_kind
from adjsim.forces.contact_law import LAW, make_contact_force, make_contact_jvp
from adjsim.forces.element import CarriedBound, Force
from adjsim.forces.gap import Geometry
from adjsim.forces.margins import ContactMargins, obstacle_margins
from adjsim.forces.pressure_laws import CUBIC, PressureLaw, choose_law
from adjsim.forces.tracks import AXES, ROW_TANGENTS, Track, stack_rows
from adjsim.rotations import unit_quaternions
from adjsim.series import freeze_series, series_rows, series_rows_jvp, steps_of
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


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
    Parameter("cubic_stiffness", "k", "N/m3", "() or (n_contacts,)", positive=True),
    Parameter("cubic_dissipation", "γ", "m s", "() or (n_contacts,)", positive=True),
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
    stiffness : float or array, optional
        k_e [N/m], () or (n_contacts,), not negative. None: 1e4, or none by the cubic law.
    dissipation : float or array, optional
        d [s/m], () or (n_contacts,), not negative. Nothing jumps at touch.
    damping : float or array, optional
        k_d [N s/m], () or (n_contacts,), not negative, in place of a dissipation. The force
        jumps at touch. With neither of the two it is 0. What is None is no parameter.
    cubic_stiffness, cubic_dissipation : float or array, optional
        k [N/m^3] and gamma [m s], () or (n_contacts,), not negative, in place of the three above
        (`adjsim/forces/pressure_laws.py`): a point keeps the same part of its speed at every
        speed. `bouncing` gives them and `deepest`.
    friction_stiffness : float or array
        k_f [N s/m], () or (n_contacts,), not negative.
    deepest : float or array
        How deep contacts are expected to be, () or (n_contacts,), not negative [m], on which how
        stiff they are depends, and so the stable step: a dissipation damps as k_e d times the
        depth, and a cubic stiffness must have it. No parameter.
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
    balls : sequence of str
        Rigid bodies, named as in `fixed_to`, that touch as balls with the `radius` about their
        centre of mass, in place of `contact_nodes` and `acts_on`; n_contacts is their number. Two
        balls touch each other where one of them carries a `SphereContact`.
    """

    stiffness: Any = None
    damping: Any = None
    dissipation: Any = None
    cubic_stiffness: Any = None
    cubic_dissipation: Any = None
    friction_stiffness: Any = 0.0
    friction: Any = 0.0
    radius: Any = 0.0
    deepest: Any = 0.0
    contact_nodes: Any = None
    acts_on: str | Sequence[str] = NODES
    fixed_to: str | None = None
    balls: Sequence[str] = ()

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = CONTACT_PARAMETERS
    SIZES: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = ()  # name and shape, constant
    TRACKS: ClassVar[tuple[Track, ...]]
    GEOMETRY: ClassVar[Geometry]
    BALL: ClassVar[ElementKind]  # the kind of contact of balls
    ELEMENTS = "contact_nodes"

    touches: ClassVar[bool] = True
    frame: ClassVar[BodyFrame | None] = None  # of the body that carries it, in a model
    law: ClassVar[PressureLaw]
    orientation: ClassVar[Any] = None  # of shapes that can be turned, a field of their own

    def __init_subclass__(cls) -> None:
        """Make the kinds of contact with a shape, of nodes and of balls, from its geometry."""
        shape = vars(cls).get("GEOMETRY")
        if shape is None:
            return
        cls.PACKED = dict.fromkeys(SCALARS, ()) | dict(cls.SIZES)
        cls.KIND = ElementKind(
            shape.name,
            make_contact_force(shape.gap),
            1,
            0,
            sum(map(math.prod, cls.PACKED.values())),
            shape.n_series,
            uses_velocity=True,
            jvp=make_contact_jvp(shape.gap, shape.gap_jvp),
        )
        cls.BALL = ball_kind(cls.KIND, shape.gap, shape.gap_jvp)

    def __post_init__(self) -> None:
        if self.orientation is not None:
            nominal = checks.array("orientation", self.orientation, (4,))
            checks.freeze(self, "orientation", unit_quaternions("orientation", nominal[None])[0])
        object.__setattr__(self, "framed", self._frames())
        if self.balls and self.framed:
            object.__setattr__(self, "acts_on", tuple({b.owner: 0 for b in self.framed}))
        choose_law(self)
        for name in (*self.scalars, "deepest"):
            value = checks.array(name, getattr(self, name))
            checks.freeze(self, name, checks.non_negative(name, value))
        if self.law == CUBIC:
            hint = "How stiff a cubic contact is depends on it; `bouncing` gives it."
            checks.positive("deepest", self.deepest, hint=hint)
        check_friction(self)
        if self.contact_nodes is not None:
            nodes = checks.integers("contact_nodes", self.contact_nodes, ("n_contacts",))
            named, counts = np.unique(nodes, return_counts=True)
            if (counts > 1).any():
                node, times = named[np.argmax(counts)], counts.max()
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
            lengths = ", ".join(f"`{name}` has {n}" for name, n in steps.items())
            raise ValueError(
                f"An obstacle's series must have one row per step, all as many: {lengths}."
            )

    def _frames(self) -> tuple[Body, ...]:
        """Return the bodies on whose pose it acts: the one that carries it, and the balls."""
        carrier = () if self.fixed_to is None else (Body.of("fixed_to", self.fixed_to),)
        if not self.balls:
            return carrier
        if self.contact_nodes is not None:
            raise ValueError(
                f"`balls` must not be given with `contact_nodes`, got {self.balls} and "
                f"{self.contact_nodes}. Use a contact of its own for either."
            )
        checks.positive("radius", checks.array("radius", self.radius))
        balls = tuple(Body.of("balls", ball) for ball in self.balls)
        if set(carrier) & set(balls):
            raise ValueError(
                f"`balls` must be other bodies than `fixed_to`, which carries the obstacle, got "
                f"{self.balls} and {self.fixed_to!r}. Leave it out."
            )
        return carrier + balls

    @property
    def kind(self) -> ElementKind:
        """The kind of element these are: of nodes or balls, which a body's frame may follow."""
        kind = self.BALL if self.balls else self.KIND
        return kind if self.fixed_to is None else carried_kind(kind)

    @property
    def bounded_rows(self) -> np.ndarray:
        """The nodes alone: bodies have `carried_bound` or, of balls, `frame_bounds`."""
        return self.nodes[:, : 0 if self.balls else 1]

    @property
    def touching_rows(self) -> np.ndarray:
        """The nodes or vertices, or the frame points of balls, (n,)."""
        return self.nodes[:, : N_BALL if self.balls else 1].ravel()

    @property
    def scalars(self) -> tuple[str, ...]:
        """Names of the scalars that this contact has: those of its law, of friction, the radius."""
        return (*self.law.scalars, "friction_stiffness", "friction", "radius")

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
        if self.balls:
            return self._bound_to_balls(rows, name)
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
        on_carrier = nodes[_is_of(rows.indices[nodes], frame)]
        if on_carrier.size:
            raise ValueError(
                f"`{name}.contact_nodes` must not be points of `{self.fixed_to}`, which carries "
                f"the obstacle, got {on_carrier[0]}. Leave them out."
            )
        for key in (*self.scalars, "deepest"):
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(nodes), "n_contacts")
        bound = copy.copy(self)  # the rest is checked
        checks.freeze(bound, "contact_nodes", nodes)
        checks.freeze(bound, "rows", _joined(rows.indices[nodes], frame))
        object.__setattr__(bound, "frame", frame)
        return bound

    def _bound_to_balls(self, rows: ActedRows, name: str) -> Self:
        """Return the contact with the frame points of its balls filled in."""
        balls = self.framed[-len(self.balls) :]
        centers = np.array([rows.frames[ball].center for ball in balls], np.int64)
        frame = None if self.fixed_to is None else rows.frames[self.framed[0]]
        points = _joined(centers[:, None] + np.arange(N_BALL), frame)
        if self.rows is not None and np.array_equal(np.asarray(self.rows), points):
            return self
        for key in (*self.scalars, "deepest"):
            checks.scalar_or_array(f"{name}.{key}", getattr(self, key), len(points), "n_contacts")
        bound = copy.copy(self)
        checks.freeze(bound, "rows", points)
        object.__setattr__(bound, "frame", frame)
        return bound

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

    def with_depths(self, depths: np.ndarray) -> Self:
        """Return the contact with `deepest` as large as these, (n_contacts,) [m]."""
        if self.frame is not None:  # which adds up what all its contacts might do at once
            return self
        return replace(self, deepest=np.maximum(self.deepest, depths))

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
        extremes = self.extremes(self.pack_series(n_steps)[:, 0])
        if extremes is None:
            return CarriedBound(self.frame.center, k, c)
        arms = extremes[0].reshape(-1, 3)
        around = extremes[1] * np.concatenate([np.eye(3), -np.eye(3)])
        rubbed = (arms[:, None] + around).reshape(-1, 3)
        return CarriedBound(self.frame.center, k, c, arms, rubbed)

    def frame_bounds(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield bounds of what balls feel.

        Pressure acts on the centre. Friction acts on u_t = v_t - r (omega x n), of which
        |u_t|^2 <= (1 + s) |v|^2 + (1 + 1/s) r^2 |omega|^2 with any s; s = 2.5, which is m r^2/I of
        a solid ball, bounds that best.
        """
        if not self.balls:
            return
        k, c, rubbed = self.stiffness_bound(), self._damping(), self._rubbing()
        straight, turning = np.diag([1.0] * 3 + [0.0] * 3), np.diag([0.0] * 3 + [1.0] * 3)
        spun = 1.4 * np.square(broadcast(self.radius, len(k))) * rubbed
        damping = np.maximum(c, 3.5 * rubbed)[:, None, None] * straight
        yield (
            self.nodes[:, 0],
            k[:, None, None] * straight,
            damping + spun[:, None, None] * turning,
        )

    def stiffness_bound(self) -> np.ndarray:
        """The stiffness at the deepest of each contact; twice, if a body carries the obstacle.

        |J_B q_B - v|^2 <= 2 |J_B q_B|^2 + 2 |v|^2 bounds body and node apart.
        """
        return self._bound(self.law.slope(self, self.deepest))

    def damping_bound(self) -> np.ndarray:
        """The larger of damping at the deepest and, where there is friction, k_f of each."""
        return np.maximum(self._damping(), self._rubbing())

    def _damping(self) -> np.ndarray:
        return self._bound(self.law.damping(self, self.deepest))

    def _rubbing(self) -> np.ndarray:
        return self._bound(np.where(self.friction > 0.0, self.friction_stiffness, 0.0))

    def _bound(self, value: Any) -> np.ndarray:
        """Return the bound of each contact, twice between a node and a body that can yield."""
        twice = 1.0 if self.fixed_to is None else 2.0
        return np.array(broadcast(twice * value, len(self.nodes)))

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        blocks = []
        for track in self.TRACKS:
            value = getattr(self, track.name)
            values = series_rows(value, track.shape, n_steps)
            tan = series_rows_jvp(value, track.shape, tangents.get(track.name), n_steps)
            blocks.append(ROW_TANGENTS[track.rows](values, tan, self.axes))
        return self.packed(tangents), stack_rows(blocks, len(self.nodes))


def _joined(nodes: np.ndarray, frame: BodyFrame | None) -> np.ndarray:
    """Return the rows of each contact: of what touches, and of the frame points behind it."""
    if frame is None:
        return nodes
    points = np.broadcast_to(frame.center + np.arange(N_FRAME), (len(nodes), N_FRAME))
    return np.column_stack([nodes, points])


def _is_of(rows: np.ndarray, frame: BodyFrame | None) -> np.ndarray:
    """Return which rows of X are points of the body of a frame."""
    if frame is None:
        return np.zeros(len(rows), bool)
    return (rows >= frame.first) & (rows < frame.center)


def check_friction(contact: Any) -> None:
    """Raise if there is friction without a stiffness of it."""
    if np.any(contact.friction > 0.0) and not np.any(contact.friction_stiffness > 0.0):
        raise ValueError(
            f"`friction_stiffness` must be positive where there is friction, got 0 with "
            f"friction = {np.max(contact.friction):g}: nothing would hold the nodes. Give it a "
            "value, or set `friction` to 0."
        )
