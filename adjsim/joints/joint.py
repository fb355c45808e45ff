r"""Joints between two rigid bodies, or a body and the world, as stiff forces.

`BallJoint`, `WeldJoint` and, in `adjsim/joints/driven.py`, `HingeJoint` and `SliderJoint` hold an
anchor on body A and one on body B together, and some of the axes. What they do is in
`adjsim/joints/laws.py`. A joint gives way as a spring does: the stiffer it is, the less, and the
shorter is the stable step.

A frame is an anchor about the body's centre of mass and axes F = exp([theta]x) N in the body's
axes, N nominal; of the world they are in world coordinates. The third axis, F e_z, is that of a
hinge or slider. `frames_at` finds frames that hold bodies as they are.

Adjoint: `adjoint/joints/joint.py`. Tests: `tests/joints/test_joint.py`.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.forces.acted_rows import ActedRows, Body
from adjsim.forces.element import Force
from adjsim.joints import laws
from adjsim.joints.elements import pair_kind, world_kind
from adjsim.rigid.pose import BodyState
from adjsim.rotations import (
    IDENTITY,
    cross_matrix,
    rotation_matrix,
    rotation_matrix_jvp,
    unit_quaternions,
)
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, broadcast


N_POINTS = 4  # frame points of a body
ANCHORS: dict[str, tuple[int, ...]] = {"anchor_a": (3,), "anchor_b": (3,)}
POINT: dict[str, tuple[int, ...]] = {**ANCHORS, "stiffness": (), "damping": ()}
ANGULAR: dict[str, tuple[int, ...]] = {"angular_stiffness": (), "angular_damping": ()}
ROTATIONS: dict[str, tuple[int, ...]] = {"rotation_a": (3,), "rotation_b": (3,)}
FRAME: dict[str, tuple[int, ...]] = {**POINT, **ANGULAR, **ROTATIONS}
TURNS = slice(10, 16)  # of packed values: both rotations, which become matrices of 18 numbers

POINT_PARAMETERS = (
    Parameter("anchor_a", "a_A", "m", "(3,) or (n_joints, 3)"),
    Parameter("anchor_b", "a_B", "m", "(3,) or (n_joints, 3)"),
    Parameter("stiffness", "k", "N/m", "() or (n_joints,)", positive=True),
    Parameter("damping", "c", "N s/m", "() or (n_joints,)", positive=True),
)
FRAME_PARAMETERS = (
    *POINT_PARAMETERS,
    Parameter("angular_stiffness", "k_t", "N m", "() or (n_joints,)", positive=True),
    Parameter("angular_damping", "c_t", "N m s", "() or (n_joints,)", positive=True),
    Parameter("rotation_a", "θ_A", "rad", "(3,) or (n_joints, 3)"),
    Parameter("rotation_b", "θ_B", "rad", "(3,) or (n_joints, 3)"),
)


@dataclass(frozen=True, eq=False)
class Joint(Force):
    """What all joints share: which bodies they join, and the anchors that they hold together.

    Parameters
    ----------
    bodies : sequence of pairs of str
        Bodies A and B of each joint, (n_joints, 2); one pair may come alone. "arm" is the first
        body of a set, "links.3" its body 3. None for A: the world, in all joints or in none.
    stiffness : float or array
        k, () or (n_joints,), not negative [N/m].
    damping : float or array, optional
        c, () or (n_joints,), not negative [N s/m]. What is None is no parameter.
    anchor_a, anchor_b : array
        Where the joint is, (3,) or (n_joints, 3) [m]: about the body's centre of mass in its own
        axes, or in the world.
    """

    bodies: Any
    _: KW_ONLY
    stiffness: Any
    damping: Any = None
    anchor_a: Any = (0.0, 0.0, 0.0)
    anchor_b: Any = (0.0, 0.0, 0.0)

    LAWS: ClassVar[tuple[Any, Any]]
    NAME: ClassVar[str]
    N_OWN: ClassVar[int]
    N_SERIES: ClassVar[int] = 0
    acts_on: ClassVar[Any]  # the sets of the bodies
    ends: ClassVar[Any]  # bodies A and B of each joint

    def __post_init__(self) -> None:
        pairs = _pairs(self.bodies)
        object.__setattr__(self, "ends", pairs)
        owners = dict.fromkeys(body.owner for pair in pairs for body in pair if body)
        object.__setattr__(self, "acts_on", tuple(owners))
        object.__setattr__(self, "framed", tuple(body for pair in pairs for body in pair if body))
        self.freeze_each(len(pairs), "n_joints")

    @property
    def kind(self) -> ElementKind:
        """The kind of element these are: between two bodies, or the world and one."""
        if self.to_world:
            return world_kind(f"{self.NAME}_to_world", self.LAWS, self.N_OWN, self.N_SERIES)
        return pair_kind(self.NAME, self.LAWS, self.N_OWN, self.N_SERIES)

    @property
    def to_world(self) -> bool:
        """Whether A is the world."""
        return self.ends[0][0] is None

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.ends)

    @property
    def nodes(self) -> np.ndarray:
        """Rows of X of the frame points that each joint joins, (n_joints, kind.n_nodes)."""
        return self.rows

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the joints between rows of a model."""
        del name
        centers = [[rows.frames[body].center for body in pair if body] for pair in self.ends]
        points = np.array(centers)[..., None] + np.arange(N_POINTS)
        bound = copy.copy(self)
        checks.freeze(bound, "rows", points.reshape(len(points), -1))
        return bound

    def frame_bounds(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield bounds of what each joint does to bodies A and B.

        |J_B q_B - J_A q_A|^2 <= 2 |J_B q_B|^2 + 2 |J_A q_A|^2 bounds the two bodies apart.
        """
        twice = 1.0 if self.to_world else 2.0
        centers = self.nodes[:, ::N_POINTS]
        sides = ("b",) if self.to_world else ("a", "b")
        for side, rows in zip(sides, centers.T, strict=True):
            stiffness, damping = self._bounds(side)
            yield rows, twice * stiffness, twice * damping

    def _bounds(self, side: str) -> Iterator[np.ndarray]:
        """Yield what velocity and spin of a body feel alone: stiffness, damping (n, 6, 6)."""
        arms = self._arms(side)
        J = np.concatenate([np.broadcast_to(np.eye(3), (len(arms), 3, 3)), -cross_matrix(arms)], 2)
        for name in ("stiffness", "damping"):
            point, turn = self._holds(name, side)
            bound = np.swapaxes(J, 1, 2) @ point @ J
            bound[:, 3:, 3:] += turn
            yield bound

    def _arms(self, side: str) -> np.ndarray:
        """Return where the force acts on a body, about its centre of mass, (n_joints, 3) [m]."""
        return np.broadcast_to(getattr(self, f"anchor_{side}"), (self.n_joints, 3))

    def _holds(self, name: str, side: str) -> tuple[np.ndarray, Any]:
        """Return the stiffness or damping of the point and of turns, (n_joints, 3, 3) each."""
        del side
        return self._each(name) * np.eye(3), 0.0

    def _each(self, name: str) -> np.ndarray:
        """Return a number of every joint, 0 where there is none, (n_joints, 1, 1)."""
        value = self.parameters().get(name, np.zeros(()))
        return broadcast(value, self.n_joints)[:, None, None]


@dataclass(frozen=True, eq=False)
class BallJoint(Joint):
    """Ball joints: two points are held together, and every turn is free.

    Parameters and errors as of `Joint`.
    """

    PARAMETERS = POINT_PARAMETERS
    PACKED: ClassVar = POINT
    LAWS = (laws.ball, laws.ball_jvp)
    NAME, N_OWN = "ball_joint", 2


@dataclass(frozen=True, eq=False)
class FramedJoint(Joint):
    """A joint that holds axes too.

    Parameters
    ----------
    angular_stiffness, angular_damping : float or array
        k_t [N m] and c_t [N m s] against turns that are not free, () or (n_joints,), not negative.
        The damping may be None: none.
    rotation_a, rotation_b : array
        theta, (3,) or (n_joints, 3) [rad]: turns the nominal axes of the joint in the body, or in
        the world.
    orientation_a, orientation_b : array
        The nominal axes N, (4,) or (n_joints, 4), unit quaternions (x, y, z, w); no parameters.
    """

    _: KW_ONLY
    angular_stiffness: Any
    angular_damping: Any = None
    rotation_a: Any = (0.0, 0.0, 0.0)
    rotation_b: Any = (0.0, 0.0, 0.0)
    orientation_a: Any = IDENTITY
    orientation_b: Any = IDENTITY

    PARAMETERS = FRAME_PARAMETERS
    PACKED: ClassVar = FRAME

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("orientation_a", "orientation_b"):
            given = checks.scalar_or_array(
                name, getattr(self, name), self.n_joints, "n_joints", (4,)
            )
            unit = unit_quaternions(name, given.reshape(-1, 4)).reshape(given.shape)
            checks.freeze(self, name, unit)

    def nominal(self, side: str) -> np.ndarray:
        """Return N of side "a" or "b", (n_joints, 3, 3)."""
        given = np.broadcast_to(getattr(self, f"orientation_{side}"), (self.n_joints, 4))
        return Rotation.from_quat(given).as_matrix()

    def axes(self, side: str) -> np.ndarray:
        """Return F of side "a" or "b", (n_joints, 3, 3)."""
        theta = np.broadcast_to(getattr(self, f"rotation_{side}"), (self.n_joints, 3))
        return rotation_matrix(theta) @ self.nominal(side)

    def pack_params(self) -> np.ndarray:
        """Return the parameters, the axes F as columns in place of rotations."""
        packed = super().pack_params()
        axes = [columns_of(self.axes(side)) for side in "ab"]
        return np.concatenate([packed[:, : TURNS.start], *axes, packed[:, TURNS.stop :]], axis=1)

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of the parameters to rows."""
        packed, axes = self.packed(tangents), []
        for side in "ab":
            shape = (self.n_joints, 3)
            theta = np.broadcast_to(getattr(self, f"rotation_{side}"), shape)
            tan = np.broadcast_to(tangents.get(f"rotation_{side}", 0.0), shape)
            axes.append(columns_of(rotation_matrix_jvp(theta, tan) @ self.nominal(side)))
        rows = [packed[:, : TURNS.start], *axes, packed[:, TURNS.stop :]]
        return np.concatenate(rows, axis=1), self.series_jvp(tangents, n_steps)

    def _holds(self, name: str, side: str) -> tuple[np.ndarray, Any]:
        """Return the stiffness or damping of the point and of turns."""
        point, _ = super()._holds(name, side)
        return point, self._each(f"angular_{name}") * np.eye(3)


@dataclass(frozen=True, eq=False)
class WeldJoint(FramedJoint):
    """Welds: two points and all axes are held together.

    Parameters and errors as of `Joint` and `FramedJoint`.
    """

    LAWS = (laws.weld, laws.weld_jvp)
    NAME, N_OWN = "weld", 22


def _pairs(bodies: Any) -> tuple[tuple[Body | None, Body], ...]:
    """Return bodies A and B of joints, given by name; one pair may come alone.

    Raise a ValueError if they are no pairs of bodies, if one joins a body to itself, or some but
    not all joints are to the world.
    """
    is_one = isinstance(bodies, Sequence) and len(bodies) == 2 and not _is_pair(bodies[0])
    pairs = [bodies] if is_one else bodies
    if not isinstance(pairs, Sequence) or not pairs or not all(map(_is_pair, pairs)):
        raise ValueError(
            '`bodies` must be pairs of bodies, as [("upper", "lower")], or (None, "upper") for '
            f"the world and a body, got {bodies!r}."
        )
    body_pairs = tuple(
        (None if a is None else Body.of("bodies", a), Body.of("bodies", b)) for a, b in pairs
    )
    for a, b in body_pairs:
        if a == b:
            raise ValueError(f"`bodies` must join two different bodies, got {b} twice.")
    if len({a is None for a, _ in body_pairs}) > 1:
        raise ValueError(
            "`bodies` must have the world in all pairs or in none: give the joints to the world a "
            "force of their own."
        )
    return body_pairs


def _is_pair(given: Any) -> bool:
    """Whether these are names of two bodies, or None and one."""
    return isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2


def columns_of(axes: np.ndarray) -> np.ndarray:
    """Return matrices (n, 3, 3) column by column, (n, 9)."""
    return np.swapaxes(axes, 1, 2).reshape(-1, 9)


def frames_at(
    bodies: Any, states: Mapping[str, BodyState], anchor: Any, axis: Any = None
) -> dict[str, Any]:
    """Return the frames of joints that hold bodies as they are: arguments of a joint.

    Parameters
    ----------
    bodies : sequence of pairs of str
        As a joint is given them.
    states : mapping of str to BodyState
        The states of the sets of bodies, as those of a `State`.
    anchor : array
        Where each joint is in the world, (3,) or (n_joints, 3) [m].
    axis : array, optional
        The axis of each in the world, (3,) or (n_joints, 3), of any length. None: anchors only,
        as for a `BallJoint`. q is 0 there.

    Returns
    -------
    dict
        `anchor_a` and `anchor_b`, and with an axis `orientation_a` and `orientation_b`.
    """
    pairs = _pairs(bodies)
    anchor = checks.scalar_or_array("anchor", anchor, len(pairs), "n_joints", (3,))
    anchor = np.broadcast_to(anchor, (len(pairs), 3))
    poses = [[_pose(body, states) for body in pair] for pair in pairs]
    sides = dict(zip("ab", zip(*poses, strict=True), strict=True))
    frames = {
        f"anchor_{side}": np.array(
            [turn.inv().apply(at - x) for (x, turn), at in zip(side_poses, anchor, strict=True)]
        )
        for side, side_poses in sides.items()
    }
    if axis is None:
        return frames
    axis = checks.scalar_or_array("axis", axis, len(pairs), "n_joints", (3,))
    rows = np.broadcast_to(checks.length("axis", axis), (len(pairs), 3))
    turns = [Rotation.align_vectors(z[None], [[0.0, 0.0, 1.0]])[0] for z in rows]
    return frames | {
        f"orientation_{side}": np.array(
            [(turn.inv() * N).as_quat() for (_, turn), N in zip(side_poses, turns, strict=True)]
        )
        for side, side_poses in sides.items()
    }


def _pose(body: Body | None, states: Mapping[str, BodyState]) -> tuple[np.ndarray, Rotation]:
    """Return where a body is and how it is turned; the world is at 0 and not turned."""
    if body is None:
        return np.zeros(3), Rotation.identity()
    state = states[checks.known_key("set of bodies", body.owner, states)]
    if body.number >= (n := len(state.position)):
        raise ValueError(f"`bodies` must name one of `{body.owner}.0` to `.{n - 1}`, got {body}.")
    return state.position[body.number], Rotation.from_quat(state.pack()[body.number, 3:7])
