r"""Problems of two and more bodies that touch, with closed forms: `SurfaceContact` of rigid bodies.

A touch makes a gradient ripple by rate^2 dt, but for one case: where a linear contact takes n
whole steps, the map over these steps is the mirror image, and the ripple is 0. The discrete swing
turns by 2 asin(rate dt/2) in a step, so that is where

    rate dt = 2 sin(pi/(2 n))

Balls in a line are measured there, with dt ~ 1/rate: what is left is the time n dt of a touch.
Where the normal turns the contact is not linear, n is off by O(1/rate), and so the ripple is O(1):
there dt ~ 1/rate^3, as for all impacts.
"""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.pairs.surface_contact import SurfaceContact
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from benchmarks.contact_gradients.problems import (
    GRAVITY,
    IMPACT,
    STOP,
    Orders,
    Problem,
    TwoBalls,
    Values,
    along,
)


STEPS_OF_A_TOUCH = 4
WHOLE = Orders(value=2, gradient=1, path=1, limit=1)
DISTANCE = TwoBalls.DISTANCE  # 2 r
TRIANGLE = np.array([[0, 1, 2]])


def rate_at(problem: Problem, dt: float) -> float:
    """Return the contact rate [1/s] that goes with a step."""
    return problem.rate * (problem.dt / dt) ** (1 / problem.orders.path)


class Balls(Problem):
    """Equal smooth balls in a plane, of 1 kg, of which neighbours touch.

    A ball is a corner of a triangle: two corners closer than the sum of the radii push each other
    as spheres do. Each corner counts as a vertex before the other, so both together have k = 2 k_e.
    """

    axis: ClassVar[int] = 0  # of the last ball's place, which is the value
    radius: ClassVar[float]

    @abstractmethod
    def places(self, p: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return places and velocities in the plane, (n, 2)."""

    @abstractmethod
    def by_parameters(self, adj_x: np.ndarray, adj_v: np.ndarray) -> Values:
        """Return derivatives by the parameters from those by places and velocities."""

    @abstractmethod
    def corners(self, n: int) -> np.ndarray:
        """Return the triangles, (n, 3, 3), about the centres of mass."""

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return one body for each ball, and a contact for each two neighbours."""
        x, v = (np.pad(each, ((0, 0), (0, 1))) for each in self.places(p))
        n = len(x)
        balls = RigidBodies([*self.corners(n)], mass=1.0, inertia=[0.01, 0.01, 0.01, 0, 0, 0])
        touches = {
            f"touch{i}": SurfaceContact(
                triangles=TRIANGLE + 3 * i, other_triangles=TRIANGLE + 3 * i + 3,
                radius=self.radius, other_radius=self.radius,
                stiffness=rate**2 / 4, acts_on="balls",
            )
            for i in range(n - 1)
        }  # fmt: skip
        model = Model(forces=touches, bodies={"balls": balls}, gravity=(0, 0, 0))
        return model, State(bodies={"balls": BodyState(x, velocity=v)})

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the last ball's place along the axis."""
        x = end.bodies["balls"].position[-1:]
        adj_x = np.zeros_like(x)
        adj_x[0, -1, self.axis] = 1.0
        return float(x[0, -1, self.axis]), {"bodies": {"balls": {"position": adj_x}}}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return self.by_parameters(g["balls.position"][:, :2], g["balls.velocity"][:, :2])


class BallsInLine(Balls):
    """Equal balls meet head-on, one after the other: Newton's cradle; two of them are `TwoBalls`.

    Two equal balls exchange velocities. So with y_i = x_i - (i - 1) 2 r the flights y_i + v_i t go
    on as if nothing touched, and only who flies them changes: in order, the balls have the flights
    in order. All but the first rest, and it has passed them all by the end, so the last ball has
    the first one's flight,

        x_n(T) = x_1 + v_1 T + (n - 1) 2 r

    with derivatives 1 by x_1, T by v_1 and 0 by all others.
    """

    title = "balls in a line"
    orders = WHOLE
    radius = 0.04
    # Front, back, and far from all others; front and back are two radii closer than the balls.
    SHAPE: ClassVar[np.ndarray] = np.array([(-0.06, 0, 0), (0.06, 0, 0), (0, 0.3, 0)])

    def _numbers(self) -> list[int]:
        return [*range(1, len(self.start) // 2 + 1)]

    def limit(self, p: Any) -> Any:
        """Return where the last ball is."""
        return p["x1"] + p["v1"] * self.end + (self._numbers()[-1] - 1) * DISTANCE

    def slopes(self, p: Values) -> Values:
        """Return 1 and T by the first ball, 0 by the others."""
        return dict.fromkeys(p, 0.0) | {"x1": 1.0, "v1": self.end}

    def places(self, p: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return places and velocities along x."""
        x, v = (np.array([[p[f"{c}{i}"], 0.0] for i in self._numbers()]) for c in "xv")
        return x, v

    def by_parameters(self, adj_x: np.ndarray, adj_v: np.ndarray) -> Values:
        """Return what is along x."""
        return dict(zip(self.start, (*adj_x[:, 0], *adj_v[:, 0]), strict=True))

    def corners(self, n: int) -> np.ndarray:
        """Return the same shape for all."""
        return np.tile(self.SHAPE, (n, 1, 1))

    def one_step(self, p: Values, rate: float) -> Values:
        """Move the first ball away."""
        return {"x1": p["v2"] - p["v1"]}


class GlancingBalls(Balls):
    """A ball hits another one off its centre, by b. The normal depends on where they touch.

    With D = 2 r, s = b/D and c = sqrt(1 - s^2), they touch where the first is D c before the
    second, after t = (x_2 - x_1 - D c)/u with u = v_1 - v_2. The second ball gets what u has along
    the normal (c, s): u c (c, s). Its height at the end is

        y = b + u c s (T - t) = b + c s w,   w = u T - (x_2 - x_1) + D c

    With dc/db = -s/(D c) and d(c s)/db = (c^2 - s^2)/(D c):

        by b: 1 + (c^2 - s^2) w/(D c) - s^2        by x_1, v_1: c s, c s T       by x_2, v_2: minus
    """

    title = "a ball hits another off its centre"
    orders = IMPACT
    axis = 1
    radius = DISTANCE / 2
    SHAPE: ClassVar[np.ndarray] = np.array([(0, 0, 0), (-0.4, 0.2, 0), (-0.4, -0.2, 0)])

    def limit(self, p: Any) -> Any:
        """Return the height of the second ball."""
        s = p["b"] / DISTANCE
        c = np.sqrt(1 - s * s)
        w = (p["v1"] - p["v2"]) * self.end - (p["x2"] - p["x1"]) + DISTANCE * c
        return p["b"] + c * s * w

    def slopes(self, p: Values) -> Values:
        """Return the derivatives."""
        s = p["b"] / DISTANCE
        c = np.sqrt(1 - s * s)
        w = (p["v1"] - p["v2"]) * self.end - (p["x2"] - p["x1"]) + DISTANCE * c
        by_b = 1 + (c * c - s * s) * w / (DISTANCE * c) - s * s
        return {
            "x1": c * s, "x2": -c * s, "b": by_b, "v1": c * s * self.end, "v2": -c * s * self.end
        }  # fmt: skip

    def places(self, p: Values) -> tuple[np.ndarray, np.ndarray]:
        """Return places and velocities."""
        return np.array([[p["x1"], 0.0], [p["x2"], p["b"]]]), np.array([[p["v1"], 0], [p["v2"], 0]])

    def by_parameters(self, adj_x: np.ndarray, adj_v: np.ndarray) -> Values:
        """Return the derivatives by the parameters."""
        return dict(zip(self.start, (*adj_x[:, 0], adj_x[1, 1], *adj_v[:, 0]), strict=True))

    def corners(self, n: int) -> np.ndarray:
        """Return triangles that point to each other, their corners in the centres of mass."""
        return np.stack([self.SHAPE, self.SHAPE * [-1, 1, 1]])

    def one_step(self, p: Values, rate: float) -> Values:
        """Move the first ball away."""
        return {"x1": p["v2"] - p["v1"]}


class BlockOnBlock(Problem):
    """A block of 1 kg slides on another one of mass M, which is free to slide on a smooth floor.

    Friction brakes the one by mu g and moves the other by mu g/M. Both have the speed v/(1 + M)
    after t = v/(mu g (1 + 1/M)), as momentum is kept, and then stay together. The lower one comes

        x = v/(1 + M) (T - t/2) = v T/(1 + M) - v^2 M/(2 mu g (1 + M)^2)

    The upper one is flat, so that friction does not tip it, and touches a single large face of the
    lower one. Both start at the depth that carries them.
    """

    title = "block slides on a block"
    orders = STOP
    RADIUS: ClassVar[float] = 0.02
    UPPER: ClassVar[np.ndarray] = np.array([(x, 0.0, z) for x in (-0.1, 0.1) for z in (-0.1, 0.1)])
    LOWER: ClassVar[np.ndarray] = np.array([(-1, 0, -2), (-1, 0, 2), (2, 0, 0)]) * 1.0

    def limit(self, p: Any) -> Any:
        """Return where the lower block is."""
        v, M = p["speed"], p["mass"]
        braking = 2 * p["friction"] * p["gravity"] * (1 + M) ** 2
        return v * self.end / (1 + M) - v**2 * M / braking

    def slopes(self, p: Values) -> Values:
        """Return the derivatives of a - b, a = v T/(1 + M), b = v^2 M/(2 mu g (1 + M)^2)."""
        v, M = p["speed"], p["mass"]
        a = v * self.end / (1 + M)
        b = a - self.limit(p)
        return {
            "speed": (a - 2 * b) / v, "friction": b / p["friction"], "gravity": b / p["gravity"],
            "mass": -a / (1 + M) - b / M + 2 * b / (1 + M),
        }  # fmt: skip

    def depths(self, p: Values, rate: float) -> tuple[float, float]:
        """Return how deep the upper block is in the lower one, and that one in the floor."""
        return p["gravity"] / rate**2, (1 + p["mass"]) * p["gravity"] / (3 * rate**2)

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return two bodies on y = 0."""
        above, below = self.depths(p, rate)
        forces = {
            "floor": HalfSpaceContact(stiffness=rate**2, acts_on="lower"),
            "touch": SurfaceContact(
                triangles=[[0, 1, 3], [0, 3, 2]], other_triangles=TRIANGLE + 4,
                radius=self.RADIUS, other_radius=self.RADIUS, stiffness=rate**2 / 4,
                friction_stiffness=rate / 4, friction=p["friction"], acts_on=("upper", "lower"),
            ),
        }  # fmt: skip
        bodies = {
            "upper": RigidBodies(self.UPPER, mass=1.0, inertia=[0.01, 0.01, 0.01, 0, 0, 0]),
            "lower": RigidBodies(self.LOWER, mass=p["mass"], inertia=[2, 4, 2, 0, 0, 0]),
        }
        state = State(
            bodies={
                "upper": BodyState(
                    [[0, 2 * self.RADIUS - above - below, 0]], velocity=[[p["speed"], 0, 0]]
                ),
                "lower": BodyState([[0, -below, 0]]),
            }
        )
        return Model(forces=forces, bodies=bodies, gravity=(0, -p["gravity"], 0)), state

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the place of the lower block."""
        x = end.bodies["lower"].position[-1, 0, 0]
        return float(x), {"bodies": {"lower": {"position": along(0)}}}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters; the depths depend on gravity and mass."""
        above, below = self.depths(p, rate)
        by_above = -g["upper.position"][0, 1]
        by_below = by_above - g["lower.position"][0, 1]
        return {
            "speed": g["upper.velocity"][0, 0],
            "friction": float(g["touch.friction"]),
            "gravity": -g["gravity"][1] + (by_above * above + by_below * below) / p["gravity"],
            "mass": float(g["lower.mass"]) + by_below * below / (1 + p["mass"]),
        }

    def one_step(self, p: Values, rate: float) -> Values:
        """Push harder."""
        return {"speed": p["friction"] * p["gravity"] * (1 + 1 / p["mass"])}


class RodOnEdge(Problem):
    """A level rod of half-length a falls across the edge of a body of mass M, b from its middle.

    The rod has 1 kg and I = a^2/3. It touches after t = h/s. The impulse J = 2 s m turns the speed
    of the rod's point round against that of the edge, which passes over the other body's centre of
    mass:

        1/m = 1 + b^2/I + 1/M,   y = (J - s)(T - t) = (2 m - 1)(s T - h)
        dm = m^2 (dM/M^2 - 6 b/a^2 db)

    Only the two edges touch, in the middle of their window, where the stiffness is k_e. In the
    limit a touch is so short that the rod does not turn in it.
    """

    title = "rod falls on an edge"
    orders = IMPACT
    A: ClassVar[float] = 0.5
    RADIUS: ClassVar[float] = 0.02
    ROD: ClassVar[np.ndarray] = np.array([(-A, 0, 0), (A, 0, 0), (0, 0.4, 0)])
    EDGE: ClassVar[np.ndarray] = np.array([(0, 0, -0.5), (0, 0, 0.5), (0, -0.4, 0)])

    def effective_mass(self, p: Any) -> Any:
        """Return m."""
        return 1 / (1 + 3 * (p["place"] / self.A) ** 2 + 1 / p["mass"])

    def limit(self, p: Any) -> Any:
        """Return the height of the rod's middle."""
        return (2 * self.effective_mass(p) - 1) * (p["speed"] * self.end - p["height"])

    def slopes(self, p: Values) -> Values:
        """Return the derivatives."""
        m = self.effective_mass(p)
        by_m = 2 * (p["speed"] * self.end - p["height"])
        return {
            "height": 1 - 2 * m, "speed": (2 * m - 1) * self.end,
            "place": -by_m * m * m * 6 * p["place"] / self.A**2,
            "mass": by_m * m * m / p["mass"] ** 2,
        }  # fmt: skip

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a rod with an edge below, and a body with an edge above, which cross."""
        touch = SurfaceContact(
            triangles=TRIANGLE, other_triangles=TRIANGLE + 3, radius=self.RADIUS,
            other_radius=self.RADIUS, stiffness=rate**2 * self.effective_mass(self.start),
            acts_on=("rod", "edge"),
        )  # fmt: skip
        I = self.A**2 / 3
        bodies = {
            "rod": RigidBodies(self.ROD, mass=1.0, inertia=[0.1 * I, I, I, 0, 0, 0]),
            "edge": RigidBodies(self.EDGE, mass=p["mass"], inertia=[1, 1, 1, 0, 0, 0]),
        }
        state = State(
            bodies={
                "rod": BodyState([[0, p["height"], 0]], velocity=[[0, -p["speed"], 0]]),
                "edge": BodyState([[p["place"], -2 * self.RADIUS, 0]]),
            }
        )
        return Model(forces={"touch": touch}, bodies=bodies, gravity=(0, 0, 0)), state

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the height of the rod's middle."""
        y = end.bodies["rod"].position[-1, 0, 1]
        return float(y), {"bodies": {"rod": {"position": along(1)}}}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return {
            "height": g["rod.position"][0, 1], "speed": -g["rod.velocity"][0, 1],
            "place": g["edge.position"][0, 0], "mass": float(g["edge.mass"]),
        }  # fmt: skip

    def one_step(self, p: Values, rate: float) -> Values:
        """Lift the rod."""
        return {"height": p["speed"]}


def in_line(places: list[float], end: float) -> BallsInLine:
    """Return balls at places, of which the first one flies with 1 m/s."""
    n = len(places)
    x = {f"x{i + 1}": place for i, place in enumerate(places)}
    v = {f"v{i + 1}": float(i == 0) for i in range(n)}
    return BallsInLine(x | v, end=end, rate=WHOLE_RATE, dt=STEP)


STEP = 1e-3  # the longest that is measured
WHOLE_RATE = 2 * np.sin(np.pi / (2 * STEPS_OF_A_TOUCH)) / STEP
TWO_BODIES: dict[str, Problem] = {
    "pair": in_line([0.0, 0.5213], end=1.0),
    "cradle": in_line([0.0, 0.2513, 0.5031, 0.7527, 1.0034], end=0.5),
    "glancing": GlancingBalls(
        {"x1": 0.0, "x2": 0.5213, "b": 0.08, "v1": 1.0, "v2": 0.0}, end=1.0, rate=25.0, dt=STEP
    ),
    "blocks": BlockOnBlock(
        {"speed": 1.0, "friction": 0.3, "gravity": GRAVITY, "mass": 2.0},
        end=0.5, rate=100.0, dt=STEP,
    ),
    "edge": RodOnEdge(
        {"height": 0.1013, "speed": 1.0, "place": 0.2, "mass": 3.0}, end=0.4, rate=50.0, dt=STEP
    ),
}  # fmt: skip
