r"""Joints with one free coordinate, on which motor, friction, spring and limits act.

Adjoint: `adjoint/joints/joint.py`. Tests: `tests/joints/test_driven.py`.
"""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.forces.margins import ContactMargins
from adjsim.joints import laws
from adjsim.joints.elements import LAW
from adjsim.joints.joint import FRAME, FRAME_PARAMETERS, N_POINTS, FramedJoint
from adjsim.series import freeze_series
from adjsim.values import Parameter


DRIVE: dict[str, tuple[int, ...]] = dict.fromkeys(
    (
        "viscous_friction", "dry_friction", "friction_width", "spring_stiffness", "spring_rest",
        "limit_stiffness", "lower", "upper",
    ),
    (),
)  # fmt: skip
# Of the parameters of an element
WIDTH = LAW.start + laws.DRIVEN.start + [*DRIVE].index("friction_width")


def drive_parameters(
    coordinate: str, force: str, stiffness: str, friction: str
) -> tuple[Parameter, ...]:
    """Return what drives a joint, in the units of its coordinate and of what acts along it."""
    shape, rate = "() or (n_joints,)", f"{coordinate}/s"
    return (
        Parameter("motor", "m", force, "(), (n_joints,) or (n_steps, n_joints)"),
        Parameter("viscous_friction", "b", friction, shape, positive=True),
        Parameter("dry_friction", "T_c", force, shape, positive=True),
        Parameter("friction_width", "ε", rate, shape, positive=True),
        Parameter("spring_stiffness", "k_s", stiffness, shape, positive=True),
        Parameter("spring_rest", "q_0", coordinate, shape),
        Parameter("limit_stiffness", "k_l", stiffness, shape, positive=True),
        Parameter("lower", "q_min", coordinate, shape),
        Parameter("upper", "q_max", coordinate, shape),
    )


@dataclass(frozen=True, eq=False)
class DrivenJoint(FramedJoint, ABC):
    """A joint with one free coordinate q: friction, spring, limits and a motor act on it.

    Parameters
    ----------
    motor : float, array, Signal or Policy, optional
        m, () or (n_joints,), or (n_steps, n_joints) with row k acting in step k; or a `Signal`,
        a `Policy` over time.
    viscous_friction : float or array, optional
        b, () or (n_joints,), not negative.
    dry_friction : float or array, optional
        T_c, () or (n_joints,), not negative.
    friction_width : float or array, optional
        eps, the rate at which dry friction is 0.7 of T_c, () or (n_joints,), positive; by
        default 0.01, in rad/s or m/s.
    spring_stiffness, spring_rest : float or array, optional
        k_s and q_0, () or (n_joints,); by default q_0 = 0.
    limit_stiffness, lower, upper : float or array, optional
        k_l, q_min and q_max, () or (n_joints,): all three or none.
    """

    _: KW_ONLY
    motor: Any = None
    viscous_friction: Any = None
    dry_friction: Any = None
    friction_width: Any = None
    spring_stiffness: Any = None
    spring_rest: Any = None
    limit_stiffness: Any = None
    lower: Any = None
    upper: Any = None

    PACKED: ClassVar = {**FRAME, **DRIVE}
    SERIES: ClassVar = ("motor", ())
    N_OWN, N_SERIES = 30, 1

    def __post_init__(self) -> None:
        self._default("friction_width", 0.01, "dry_friction")
        self._default("spring_rest", 0.0, "spring_stiffness")
        limits = {name: getattr(self, name) for name in ("limit_stiffness", "lower", "upper")}
        missing = [name for name, value in limits.items() if value is None]
        if 0 < len(missing) < len(limits):
            raise ValueError(
                f"`limit_stiffness`, `lower` and `upper` must be given together, but {missing[0]} "
                "is missing."
            )
        super().__post_init__()
        if self.friction_width is not None:
            checks.positive("friction_width", self.friction_width)
        if not missing and not (self.lower < self.upper).all():
            raise ValueError(
                f"`lower` must be below `upper`, got {np.max(self.lower):g} and "
                f"{np.min(self.upper):g}."
            )
        if self.motor is not None:
            freeze_series(self, "motor", ((), (self.n_joints,)))

    def _default(self, name: str, value: float, needs: str) -> None:
        """Give a parameter its default value where another is given, and refuse it elsewhere."""
        if getattr(self, needs) is not None:
            given = getattr(self, name)
            object.__setattr__(self, name, value if given is None else given)
        elif getattr(self, name) is not None:
            raise ValueError(f"`{name}` must come with `{needs}`, which is not given.")

    def pack_params(self) -> np.ndarray:
        """Return the parameters; without dry friction its width is 1, by which 0 is divided."""
        packed = super().pack_params()
        if self.friction_width is None:
            packed[:, WIDTH] = 1.0
        return packed

    @property
    def touches(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the joint has limits, dry friction, or an angle at which its force jumps."""
        return self.limit_stiffness is not None or self.dry_friction is not None or self._jumps

    @property
    def _jumps(self) -> bool:
        """Whether a spring or limit jumps where an angle passes pi."""
        return False

    def margins(self, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> ContactMargins:
        """Return how far each joint is beyond its nearer limit, negative between them.

        Then the same joints again, with what has no touch: the rate is `leaving`, and is 0 where
        dry friction turns round; `slip` is by how much it is beyond the width. `shape` is the sine
        of an angle near pi.
        """
        q, rate = self.coordinates(x, v)
        none = np.full_like(q, np.nan)
        out, leaving, slip, turn = none, none, none, none
        if self.limit_stiffness is not None:
            out, above = np.maximum(q - self.upper, self.lower - q), q - self.upper > self.lower - q
            leaving = np.where(above, -rate, rate)
        if self.dry_friction is not None:
            slip = np.abs(rate) - self.friction_width
        if self._jumps:
            turn = np.where(np.cos(q) < 0.0, np.sin(q), np.nan)
        touch, leaving, damping, slip, turn = (
            np.concatenate(pair, axis=1)
            for pair in ((out, none), (leaving, rate), (none, none), (none, slip), (none, turn))
        )
        joints = np.tile(np.arange(self.n_joints), 2)
        return ContactMargins(steps, joints, touch, leaving, damping, slip, turn[..., None])

    def coordinates(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return q and its rate in states of a rollout, (n_frames, n_joints) each.

        `x` and `v` have all rows of X, (n_frames, n_rows, 3).
        """
        a, b = (self._motion(side, x, v) for side in "ab")
        return self._coordinates(a, b)

    def _motion(self, side: str, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return p, p', omega and Q of a side, (n_frames, n_joints, 3), and (..., 3, 3)."""
        arm = np.broadcast_to(getattr(self, f"anchor_{side}"), (self.n_joints, 3))
        if side == "a" and self.to_world:
            none = np.zeros((len(x), self.n_joints, 3))
            return none + arm, none, none, none[..., None] + self.axes(side)
        rows = self.nodes[:, :N_POINTS] if side == "a" else self.nodes[:, -N_POINTS:]
        (c, E), (c_rate, D) = (
            (y[:, rows[:, 0]], np.swapaxes(y[:, rows[:, 1:]] - y[:, rows[:, :1]], -1, -2))
            for y in (x, v)
        )
        p, p_rate = c + (E @ arm[..., None])[..., 0], c_rate + (D @ arm[..., None])[..., 0]
        omega = 0.5 * np.cross(E, D, axis=-2).sum(axis=-1)
        return p, p_rate, omega, E @ self.axes(side)

    @abstractmethod
    def _coordinates(
        self, a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return q and its rate of the motions of both sides."""

    def _about(self, side: str) -> np.ndarray:
        """Return z z^T of the axes of a side, (n_joints, 3, 3)."""
        z = self.axes(side)[:, :, 2]
        return z[:, :, None] * z[:, None, :]

    def _driven(self, name: str) -> np.ndarray:
        """Return the stiffness or damping of q, (n_joints, 1, 1): dry friction damps at rest."""
        if name == "stiffness":
            return self._each("spring_stiffness") + self._each("limit_stiffness")
        damping = self._each("viscous_friction")
        if self.dry_friction is not None:
            damping = damping + self._each("dry_friction") / self._each("friction_width")
        return damping


@dataclass(frozen=True, eq=False)
class HingeJoint(DrivenJoint):
    """Hinges: two points are held together, and the third axes; q is the angle about them [rad].

    The angle of B against A about the axis of A is in (-pi, pi]: where it passes pi, a spring or
    a limit jumps.

    Parameters and errors as of `Joint`, `FramedJoint` and `DrivenJoint`; a motor is a torque [N m].
    """

    PARAMETERS = (*FRAME_PARAMETERS, *drive_parameters("rad", "N m", "N m", "N m s"))
    LAWS = (laws.hinge, laws.hinge_jvp)
    NAME = "hinge_joint"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower is not None and max(-np.min(self.lower), np.max(self.upper)) > np.pi:
            raise ValueError(
                "`lower` and `upper` of a hinge must be between -pi and pi, got "
                f"{np.min(self.lower):g} to {np.max(self.upper):g}. They are in rad."
            )

    @property
    def _jumps(self) -> bool:
        return self.spring_stiffness is not None or self.limit_stiffness is not None

    def _holds(self, name: str, side: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the stiffness or damping of the point and of turns; that about the axis is q's."""
        point, turn = super()._holds(name, side)
        about = self._about(side)
        return point, turn @ (np.eye(3) - about) + self._driven(name) * about

    def _coordinates(
        self, a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        x_b = b[3][..., 0]
        along, across, _ = np.einsum("fjik,fji->kfj", a[3], x_b)
        return np.arctan2(across, along), np.sum((b[2] - a[2]) * a[3][..., 2], axis=-1)


@dataclass(frozen=True, eq=False)
class SliderJoint(DrivenJoint):
    """Sliders: B slides along the third axis of A and does not turn; q is the length [m].

    Parameters and errors as of `Joint`, `FramedJoint` and `DrivenJoint`; a motor is a force [N].
    """

    PARAMETERS = (*FRAME_PARAMETERS, *drive_parameters("m", "N", "N/m", "N s/m"))
    LAWS = (laws.slider, laws.slider_jvp)
    NAME = "slider"

    def _arms(self, side: str) -> np.ndarray:
        """Return where the force acts: on A as far out as the limits let B slide."""
        arms = super()._arms(side)
        if side == "a" and self.limit_stiffness is not None:
            far = np.where(self.upper > -self.lower, self.upper, self.lower)
            arms = arms + np.broadcast_to(far, (len(arms),))[:, None] * self.axes(side)[:, :, 2]
        return arms

    def _holds(self, name: str, side: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the stiffness or damping of the point and of turns; that along the axis is q's."""
        point, turn = super()._holds(name, side)
        about = self._about(side)
        return point @ (np.eye(3) - about) + self._driven(name) * about, turn

    def _coordinates(
        self, a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        r, z = b[0] - a[0], a[3][..., 2]
        u = b[1] - a[1] - np.cross(a[2], r)
        return np.sum(r * z, axis=-1), np.sum(u * z, axis=-1)
