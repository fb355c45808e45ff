r"""Nine problems of contact with closed forms of a value and of its derivatives.

The limit is that of stiff contact and short steps: a touch takes no time, and friction sticks at
once. Only the ball of `LossyBall` loses energy as it touches. Our contact has a rate instead [1/s],

    impact:    omega = sqrt(k_e/m)                a touch takes about pi/omega
    friction:  k_f/m                              slip below mu p/k_f dies out at this rate

`DampedBall` and `CubicBall` lose their energy by the other laws: they are compared with the nine,
and are none of them. No gradient of the first has the limit.

A closed form takes complex numbers where its functions do, so that tests can differentiate it by a
complex step. All angles are in rad, lengths in m, and masses of the moving parts are 1 kg.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ellipeinc, ellipj, ellipk, lambertw

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.forces.pressure_laws import bounce, bouncing
from adjsim.forces.sphere import SphereContact
from adjsim.forces.springs import Springs
from adjsim.meshes.sheets import sheet
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState


Values = dict[str, float]
GRAVITY = 9.8


@dataclass(frozen=True)
class Orders:
    """Powers of the step dt and of the rate with which errors fall, as derived in chapter 4.

    At a fixed rate errors fall as dt^value and dt^gradient. On the way to the limit, with
    dt ~ rate^-path, both fall as rate^-limit.
    """

    value: int
    gradient: int
    path: int
    limit: int


IMPACT = Orders(value=2, gradient=1, path=3, limit=1)
IMPACT_UNDER_GRAVITY = Orders(value=1, gradient=1, path=3, limit=1)
STOP = Orders(value=1, gradient=1, path=2, limit=2)
STICK = Orders(value=1, gradient=1, path=1, limit=1)


@dataclass(frozen=True)
class Problem(ABC):
    """A scene, a number at its end, and what both become in the limit.

    Attributes
    ----------
    start : mapping
        The parameters.
    end : float
        When the value is read [s].
    rate, dt : float
        The softest contact [1/s] and the longest step [s] that are measured.
    """

    title: ClassVar[str]
    orders: ClassVar[Orders]
    start: Values
    end: float
    rate: float
    dt: float

    @abstractmethod
    def limit(self, p: Any) -> Any:
        """Return the value in the limit."""

    @abstractmethod
    def slopes(self, p: Values) -> Values:
        """Return the derivatives of `limit`."""

    @abstractmethod
    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return model and initial state."""

    @abstractmethod
    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the value of the last state, and its derivatives by that state."""

    @abstractmethod
    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return derivatives by the parameters from those by paths of model and state."""

    @abstractmethod
    def one_step(self, p: Values, rate: float) -> Values:
        """Return by how much to move a parameter for the event to come a second later."""

    def value(self, end: Any, p: Values) -> float:
        """Return the value, with what it owes to the parameters directly."""
        del p
        return self.observe(end)[0]


def along(axis: int) -> np.ndarray:
    """Return a cotangent of one frame of one node: 1 along an axis."""
    return np.eye(3)[None, None, axis]


class BouncingBall(Problem):
    """A ball falls on a floor: with s^2 = v^2 + 2 g h it touches after t = (s - v)/g.

    It leaves with the speed w, here w = s:   y = w (T - t) - g (T - t)^2/2
    """

    title = "bouncing ball"
    orders = IMPACT_UNDER_GRAVITY

    def rebound(self, p: Any, s: Any) -> Any:
        """Return w."""
        del p
        return s

    def rebound_slopes(self, p: Values, s: float) -> tuple[float, Values]:
        """Return dw/ds, and the derivatives of w by what else it depends on."""
        del p, s
        return 1.0, {}

    def floor(self, p: Values, rate: float) -> HalfSpaceContact:
        """Return what the ball falls on."""
        del p
        return HalfSpaceContact(stiffness=rate**2)

    def limit(self, p: Any) -> Any:
        """Return the height at the end."""
        s = np.sqrt(p["speed"] ** 2 + 2 * p["gravity"] * p["height"])
        rest = self.end - (s - p["speed"]) / p["gravity"]
        return self.rebound(p, s) * rest - p["gravity"] * rest**2 / 2

    def slopes(self, p: Values) -> Values:
        """Return dy = rest dw - (w - g rest) dt - rest^2/2 dg."""
        v, g, h = p["speed"], p["gravity"], p["height"]
        s = np.sqrt(v**2 + 2 * g * h)
        t = (s - v) / g
        w, (by_s, dw), rest = self.rebound(p, s), self.rebound_slopes(p, s), self.end - t
        ds = {"height": g / s, "speed": v / s, "gravity": h / s}
        dt = {"height": 1 / s, "speed": (v / s - 1) / g, "gravity": (h / s - t) / g}
        by = {n: rest * by_s * ds[n] - (w - g * rest) * dt[n] for n in ds}
        return by | {"gravity": by["gravity"] - rest**2 / 2} | {n: rest * dw[n] for n in dw}

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a node above y = 0."""
        model = Model([1.0], {"floor": self.floor(p, rate)}, gravity=(0, -p["gravity"], 0))
        return model, State([[0, p["height"], 0]], [[0, -p["speed"], 0]])

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the height."""
        return end.x[-1, 0, 1], {"adj_x": along(1)}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return {
            "height": g["state.x"][0, 1], "speed": -g["state.v"][0, 1], "gravity": -g["gravity"][1]
        }  # fmt: skip

    def one_step(self, p: Values, rate: float) -> Values:
        """Lift the ball."""
        return {"height": np.sqrt(p["speed"] ** 2 + 2 * p["gravity"] * p["height"])}


class LossyBall(BouncingBall):
    """A ball loses energy by the dissipation d of its contact, which begins at 0 at touch.

    With f(x) = x - log(1 + x) it leaves at the speed w of f(d s) = f(-d w) (derived in
    `studies/scene/contacts.py`). With x = d s, y = d w and Lambert's function W,

    y = 1 + W(-(1 + x) exp(-1 - x)),   dy/dx = x (1 - y)/(y (1 + x))
    """

    title = "ball that loses energy"

    def rebound(self, p: Any, s: Any) -> Any:
        """Return w = y/d."""
        x = p["dissipation"] * s
        y = 1.0 + lambertw(-(1.0 + x) * np.exp(-1.0 - x))
        return (y if np.iscomplexobj(x) else y.real) / p["dissipation"]

    def rebound_slopes(self, p: Values, s: float) -> tuple[float, Values]:
        """Return dy/dx, and dw/dd = (dy/dx s - w)/d."""
        d, w = p["dissipation"], self.rebound(p, s)
        by_s = s * (1 - d * w) / (w * (1 + d * s))
        return by_s, {"dissipation": (by_s * s - w) / d}

    def floor(self, p: Values, rate: float) -> HalfSpaceContact:
        """Return a floor with this dissipation."""
        return HalfSpaceContact(stiffness=rate**2, dissipation=p["dissipation"])

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return super().pull(g, p, rate) | {"dissipation": float(g["floor.dissipation"])}


class DampedBall(BouncingBall):
    """A ball loses energy by the damping of its contact, whose force jumps by k_d s at touch.

    With z = k_d/(2 omega) it leaves at e s, e = exp(-z acos(z)/sqrt(1 - z^2)). The discrete
    gradient is off by e k_d times the time left, by the height, for any dt.
    """

    title = "ball that loses energy by damping"

    def rebound(self, p: Any, s: Any) -> Any:
        """Return e s."""
        z = p["ratio"]
        return s * np.exp(-z * np.arccos(z) / np.sqrt(1 - z * z))

    def rebound_slopes(self, p: Values, s: float) -> tuple[float, Values]:
        """Return e, and s de/dz = s e (z - acos(z)/sqrt(1 - z^2))/(1 - z^2)."""
        z, w = p["ratio"], self.rebound(p, s)
        rest = 1 - z * z
        return w / s, {"ratio": w * (z - np.arccos(z) / np.sqrt(rest)) / rest}

    def floor(self, p: Values, rate: float) -> HalfSpaceContact:
        """Return a floor with this ratio of damping."""
        return HalfSpaceContact(stiffness=rate**2, damping=2 * p["ratio"] * rate)

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return super().pull(g, p, rate) | {"ratio": 2 * rate * float(g["floor.damping"])}


class CubicBall(BouncingBall):
    """A ball leaves with the part e of its speed by the cubic law, which begins as c^3 at touch."""

    title = "ball that loses energy by the cubic law"

    def rebound(self, p: Any, s: Any) -> Any:
        """Return e s."""
        return p["restitution"] * s

    def rebound_slopes(self, p: Values, s: float) -> tuple[float, Values]:
        """Return e, and s."""
        return p["restitution"], {"restitution": s}

    def floor(self, p: Values, rate: float) -> HalfSpaceContact:
        """Return a floor that gives way by 1 m/s over the rate at 1 m/s."""
        return HalfSpaceContact(**bouncing(1.0, p["restitution"], 1.0 / rate, 1.0))

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        (zeta, q), (zeta_by_e, q_by_e) = bounce(p["restitution"])
        numbers = bouncing(1.0, p["restitution"], 1.0 / rate, 1.0)
        by_k = float(g["floor.cubic_stiffness"]) * numbers["cubic_stiffness"]
        by_gamma = float(g["floor.cubic_dissipation"]) * numbers["cubic_dissipation"]
        slope = by_k * q_by_e / q + by_gamma * (zeta_by_e / zeta - 0.5 * q_by_e / q)
        return super().pull(g, p, rate) | {"restitution": slope}


class TwoBalls(Problem):
    """Two equal balls meet head-on and exchange velocities: x_2(T) = x_1 + v_1 T + 2 r.

    The scene has the centre of mass, which flies free, and the relative position, which has the
    mass m/2 and meets a fixed sphere of radius 2 r. That is the problem of two bodies in
    `two_bodies.py`, step by step, in a hundredth of the time: semi-implicit Euler commutes with a
    linear change of coordinates. Values of github.com/keenon/nimblephysics issue 97.
    """

    title = "two colliding balls"
    orders = IMPACT
    DISTANCE: ClassVar[float] = 0.2  # 2 r

    def limit(self, p: Any) -> Any:
        """Return where the second ball is."""
        return p["x1"] + p["v1"] * self.end + self.DISTANCE

    def slopes(self, p: Values) -> Values:
        """Return (1, 0, T, 0)."""
        return {"x1": 1.0, "x2": 0.0, "v1": self.end, "v2": 0.0}

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return the centre of mass, node 0, and the relative position, node 1."""
        ball = SphereContact(
            sphere_radius=self.DISTANCE, stiffness=0.5 * rate**2, contact_nodes=[1]
        )
        x, v = np.zeros((2, 2, 3))
        x[:, 0] = (p["x1"] + p["x2"]) / 2, p["x2"] - p["x1"]
        v[:, 0] = (p["v1"] + p["v2"]) / 2, p["v2"] - p["v1"]
        return Model([2.0, 0.5], {"ball": ball}, gravity=(0, 0, 0)), State(x, v)

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return centre of mass + relative position/2."""
        adj_x = np.zeros((1, 2, 3))
        adj_x[0, :, 0] = 1.0, 0.5
        return float((adj_x * end.x[-1:]).sum()), {"adj_x": adj_x}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the positions and velocities of the two balls."""
        (x, q), (v, u) = g["state.x"][:, 0], g["state.v"][:, 0]
        return {"x1": x / 2 - q, "x2": x / 2 + q, "v1": v / 2 - u, "v2": v / 2 + u}

    def one_step(self, p: Values, rate: float) -> Values:
        """Move the second ball away."""
        return {"x2": p["v1"] - p["v2"]}


class SlidingBlock(Problem):
    """A block slides to rest: x = x_0 + v^2/(2 mu g).

    Its four corners are level with its centre of mass, so that friction does not tip it. It
    starts at the depth that carries it.
    """

    title = "block slides to rest"
    orders = STOP
    CORNERS: ClassVar[np.ndarray] = np.array(
        [(x, 0.0, z) for x in (-0.1, 0.1) for z in (-0.1, 0.1)]
    )

    def limit(self, p: Any) -> Any:
        """Return where it stops."""
        return p["position"] + p["speed"] ** 2 / (2 * p["friction"] * p["gravity"])

    def slopes(self, p: Values) -> Values:
        """Return the derivatives of v^2/(2 mu g)."""
        way = p["speed"] ** 2 / (2 * p["friction"] * p["gravity"])
        return {
            "position": 1.0, "speed": 2 * way / p["speed"],
            "friction": -way / p["friction"], "gravity": -way / p["gravity"],
        }  # fmt: skip

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a flat body on y = 0."""
        floor = HalfSpaceContact(
            stiffness=rate**2 / 4,
            friction_stiffness=rate / 4,
            friction=p["friction"],
            acts_on="block",
        )
        block = RigidBodies(self.CORNERS, mass=1.0, inertia=[0.01, 0.01, 0.01, 0, 0, 0])
        model = Model(
            forces={"floor": floor}, bodies={"block": block}, gravity=(0, -p["gravity"], 0)
        )
        position = [[p["position"], -p["gravity"] / rate**2, 0]]
        return model, State(bodies={"block": BodyState(position, velocity=[[p["speed"], 0, 0]])})

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the position along x."""
        x = end.bodies["block"].position[-1, 0, 0]
        return x, {"bodies": {"block": {"position": along(0)}}}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters; the depth depends on gravity."""
        x, v = g["block.position"][0], g["block.velocity"][0]
        return {
            "position": x[0], "speed": v[0], "friction": float(g["floor.friction"]),
            "gravity": -g["gravity"][1] - x[1] / rate**2,
        }  # fmt: skip

    def one_step(self, p: Values, rate: float) -> Values:
        """Push harder."""
        return {"speed": p["friction"] * p["gravity"]}


class SlidingDown(Problem):
    """A block is let go on a slope just too steep: x = a T^2/2, a = g (sin - mu cos).

    The slope is y = 0 and gravity is turned. The block starts at the depth that carries it.
    """

    title = "slope, just above the stick limit"
    orders = STICK

    def limit(self, p: Any) -> Any:
        """Return the way down the slope."""
        angle = p["angle"]
        return p["gravity"] * (np.sin(angle) - p["friction"] * np.cos(angle)) * self.end**2 / 2

    def slopes(self, p: Values) -> Values:
        """Return the derivatives."""
        sin, cos, half = np.sin(p["angle"]), np.cos(p["angle"]), self.end**2 / 2
        return {
            "angle": p["gravity"] * (cos + p["friction"] * sin) * half,
            "friction": -p["gravity"] * cos * half,
            "gravity": (sin - p["friction"] * cos) * half,
        }

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a node on y = 0."""
        down = p["gravity"] * np.array([np.sin(p["angle"]), -np.cos(p["angle"]), 0])
        floor = HalfSpaceContact(stiffness=rate**2, friction_stiffness=rate, friction=p["friction"])
        return Model([1.0], {"floor": floor}, gravity=down), State([[0, down[1] / rate**2, 0]])

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the way."""
        return end.x[-1, 0, 0], {"adj_x": along(0)}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters; the depth depends on gravity and angle."""
        sin, cos = np.sin(p["angle"]), np.cos(p["angle"])
        by_x, by_y = g["gravity"][0], g["gravity"][1] + g["state.x"][0, 1] / rate**2
        return {
            "angle": p["gravity"] * (cos * by_x + sin * by_y),
            "friction": float(g["floor.friction"]),
            "gravity": sin * by_x - cos * by_y,
        }

    def one_step(self, p: Values, rate: float) -> Values:
        """Raise the friction: the block sticks for log(a_0/a)/rate, a_0 = g sin."""
        a = self.limit(p) / (self.end**2 / 2)
        return {"friction": rate * a / (p["gravity"] * np.cos(p["angle"]))}


class Sticking(SlidingDown):
    """A block is let go on a slope just below the stick limit, and stays: x = 0.

    Here the derivatives from the side of stick are 0; those from the other side are not. The
    friction slope lets it creep at g sin k_f/m.
    """

    title = "slope, at the stick limit"

    def limit(self, p: Any) -> Any:
        """Return 0."""
        return 0.0 * p["angle"]

    def slopes(self, p: Values) -> Values:
        """Return 0."""
        return dict.fromkeys(p, 0.0)

    def one_step(self, p: Values, rate: float) -> Values:
        """Raise the friction: nothing happens."""
        return {"friction": 1.0}


class LandingRod(Problem):
    """A rod of half-length a lands on its end, at an angle q to the floor, without friction.

    The end takes the impulse 2 s/(1/m + (a cos q)^2/I), with I = m a^2/3, and so

    y = a sin q + B (s T - h + a sin q),   B = (1 - 3 cos^2 q)/(1 + 3 cos^2 q)
    """

    title = "rod lands on its end"
    orders = IMPACT
    A: ClassVar[float] = 0.5

    def limit(self, p: Any) -> Any:
        """Return the height of the centre."""
        c, end = 3 * np.cos(p["angle"]) ** 2, self.A * np.sin(p["angle"])
        return end + (1 - c) / (1 + c) * (p["speed"] * self.end - p["height"] + end)

    def slopes(self, p: Values) -> Values:
        """Return the derivatives; dB/dq = 6 sin 2q/(1 + 3 cos^2 q)^2."""
        q, c = p["angle"], 3 * np.cos(p["angle"]) ** 2
        B = (1 - c) / (1 + c)
        way = p["speed"] * self.end - p["height"] + self.A * np.sin(q)
        turned = self.A * np.cos(q) * (1 + B) + 6 * np.sin(2 * q) / (1 + c) ** 2 * way
        return {"height": -B, "speed": B * self.end, "angle": turned}

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a body whose two ends can touch y = 0."""
        ends, I = np.array([(-self.A, 0, 0), (self.A, 0, 0)]), self.A**2 / 3
        floor = HalfSpaceContact(stiffness=rate**2 / 3, acts_on="rod")
        rod = RigidBodies(ends, mass=1.0, inertia=[0.1 * I, I, I, 0, 0, 0])
        start = BodyState(
            [[0, p["height"], 0]], velocity=[[0, -p["speed"], 0]], rotation=[[0, 0, p["angle"]]]
        )
        model = Model(forces={"floor": floor}, bodies={"rod": rod}, gravity=(0, 0, 0))
        return model, State(bodies={"rod": start})

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the height of the centre."""
        return end.bodies["rod"].position[-1, 0, 1], {"bodies": {"rod": {"position": along(1)}}}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return {
            "height": g["rod.position"][0, 1], "speed": -g["rod.velocity"][0, 1],
            "angle": g["rod.rotation"][0, 2],
        }  # fmt: skip

    def one_step(self, p: Values, rate: float) -> Values:
        """Lift the rod."""
        return {"height": p["speed"]}


class Pendulum(Problem):
    """A pendulum is let go at an angle q, hits a wall below its anchor, and swings back.

    The wall mirrors the free swing: with k = sin(q/2) and the elliptic functions of modulus k

    angle = -2 asin(k sn(K - sqrt(g/l) T))

    The rod is a spring as stiff as the wall, which starts at the length that carries the bob.
    """

    title = "pendulum hits a wall"
    orders = IMPACT_UNDER_GRAVITY

    def limit(self, p: Any) -> Any:
        """Return the angle at the end."""
        k = np.sin(p["angle"] / 2)
        u = ellipk(k * k) - np.sqrt(p["gravity"] / p["length"]) * self.end
        return -2 * np.arcsin(k * ellipj(u, k * k)[0])

    def slopes(self, p: Values) -> Values:
        """Return the derivatives; those of K and sn by the modulus are in DLMF 19.4, 22.13."""
        k, rate = np.sin(p["angle"] / 2), np.sqrt(p["gravity"] / p["length"])
        m, rest = k * k, 1 - k * k  # rest: k'^2
        u = ellipk(m) - rate * self.end
        sn, cn, dn, phi = ellipj(u, m)
        by_k = u * cn * dn / k + k * sn * cn**2 / rest - ellipeinc(phi, m) * cn * dn / (k * rest)
        K_by_k = (ellipeinc(np.pi / 2, m) / rest - ellipk(m)) / k
        by_angle = -2 / dn * (sn + k * (by_k + cn * dn * K_by_k)) * np.cos(p["angle"] / 2) / 2
        late = 2 * k * cn * rate * self.end / 2  # by the logarithm of g/l
        return {"angle": by_angle, "length": -late / p["length"], "gravity": late / p["gravity"]}

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return an anchor, node 0, and a bob, node 1, right of the wall x = 0."""
        rod = Springs([[0, 1]], stiffness=rate**2, rest_length=p["length"])
        wall = HalfSpaceContact(normal=(1, 0, 0), stiffness=rate**2, contact_nodes=[1])
        model = Model(
            [1.0, 1.0], {"rod": rod, "wall": wall}, (0, -p["gravity"], 0), np.array([True, False])
        )
        return model, State([[0, 0, 0], self._length(p, rate) * self._along_rod(p)])

    @staticmethod
    def _along_rod(p: Values) -> np.ndarray:
        return np.array([np.sin(p["angle"]), -np.cos(p["angle"]), 0])

    @staticmethod
    def _length(p: Values, rate: float) -> float:
        return p["length"] + p["gravity"] * np.cos(p["angle"]) / rate**2

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the angle from the vertical."""
        x, y, _ = end.x[-1, 1]
        adj_x = np.zeros((1, 2, 3))
        adj_x[0, 1, :2] = np.array([-y, x]) / (x * x + y * y)
        return np.arctan2(x, -y), {"adj_x": adj_x}

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters; the length depends on all of them."""
        by_bob, cos, sin = g["state.x"][1], np.cos(p["angle"]), np.sin(p["angle"])
        by_length = by_bob @ self._along_rod(p)
        across = by_bob @ [cos, sin, 0]
        return {
            "angle": self._length(p, rate) * across - by_length * p["gravity"] * sin / rate**2,
            "length": float(g["rod.rest_length"]) + by_length,
            "gravity": -g["gravity"][1] + by_length * cos / rate**2,
        }

    def one_step(self, p: Values, rate: float) -> Values:
        """Lengthen the rod: the wall is hit after K sqrt(l/g)."""
        hit = ellipk(np.sin(p["angle"] / 2) ** 2) * np.sqrt(p["length"] / p["gravity"])
        return {"length": 2 * p["length"] / hit}


class RollingBall(Problem):
    """A spinning ball slips until it rolls. With velocity v, spin W and slip u = v - R W < 0,

    x = (5/7 v + 2/7 R W) T - 2/7 u^2/(7 mu g)

    Bodies touch at points that are fixed in them, and a ball has none that stays below. So the
    scene has the slip alone, which is decelerated by 7/2 mu g; the rest is linear in it:
    v = 5/7 v_0 + 2/7 R W_0 + 2/7 u at any time.
    """

    title = "spinning ball starts to roll"
    orders = STOP
    RADIUS: ClassVar[float] = 0.1

    def limit(self, p: Any) -> Any:
        """Return how far the ball comes."""
        u = p["speed"] - self.RADIUS * p["spin"]
        return self._free(p) - 2 / 7 * u**2 / (7 * p["friction"] * GRAVITY)

    def _free(self, p: Any) -> Any:
        return (5 * p["speed"] + 2 * self.RADIUS * p["spin"]) / 7 * self.end

    def slopes(self, p: Values) -> Values:
        """Return the derivatives."""
        u, R = p["speed"] - self.RADIUS * p["spin"], self.RADIUS
        by_u = -4 / 49 * u / (p["friction"] * GRAVITY)
        return {
            "speed": 5 / 7 * self.end + by_u,
            "spin": 2 / 7 * R * self.end - R * by_u,
            "friction": -by_u * u / (2 * p["friction"]),
        }

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a node that slips with the friction 7/2 mu."""
        floor = HalfSpaceContact(
            stiffness=rate**2, friction_stiffness=rate, friction=3.5 * p["friction"]
        )
        u = p["speed"] - self.RADIUS * p["spin"]
        model = Model([1.0], {"floor": floor}, gravity=(0, -GRAVITY, 0))
        return model, State([[0, -GRAVITY / rate**2, 0]], [[u, 0, 0]])

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return 2/7 of the way of the slip."""
        return 2 / 7 * end.x[-1, 0, 0], {"adj_x": 2 / 7 * along(0)}

    def value(self, end: Any, p: Values) -> float:
        """Return the way of the ball."""
        return self._free(p) + self.observe(end)[0]

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        by_u, R = g["state.v"][0, 0], self.RADIUS
        return {
            "speed": 5 / 7 * self.end + by_u,
            "spin": 2 / 7 * R * self.end - R * by_u,
            "friction": 3.5 * float(g["floor.friction"]),
        }

    def one_step(self, p: Values, rate: float) -> Values:
        """Spin faster."""
        return {"spin": 3.5 * p["friction"] * GRAVITY / self.RADIUS}


class LandingCloth(Problem):
    """The lowest corner of a falling cloth touches first and is thrown back.

    Its mass is the part b of the cloth's. In the limit the touch turns its velocity s round before
    the cloth can pull, and what the cloth does then does not move the centre of mass: with h
    the height of the corner, s^2 = v^2 + 2 g h and t = (s - v)/g, the centre moves by

    y = -v T - g T^2/2 + 2 b s (T - t)

    The end is before the cloth pulls the corner down again.
    """

    title = "cloth corner lands"
    orders = IMPACT_UNDER_GRAVITY
    CLOTH: ClassVar[Any] = sheet(cells=(2, 2), size=(0.4, 0.4))

    def limit(self, p: Any) -> Any:
        """Return by how much the centre of mass moves."""
        s = np.sqrt(p["speed"] ** 2 + 2 * p["gravity"] * p["height"])
        rest = self.end - (s - p["speed"]) / p["gravity"]
        free = -p["speed"] * self.end - p["gravity"] * self.end**2 / 2
        return free + 2 * self._part() * s * rest

    def slopes(self, p: Values) -> Values:
        """Return dy = -T dv - T^2/2 dg + 2 b (rest ds - s dt)."""
        v, g, h, b = p["speed"], p["gravity"], p["height"], self._part()
        s = np.sqrt(v**2 + 2 * g * h)
        t = (s - v) / g
        rest = self.end - t
        ds = {"height": g / s, "speed": v / s, "gravity": h / s}
        dt = {"height": 1 / s, "speed": (v / s - 1) / g, "gravity": (h / s - t) / g}
        free = {"height": 0.0, "speed": -self.end, "gravity": -(self.end**2) / 2}
        return {n: free[n] + 2 * b * (rest * ds[n] - s * dt[n]) for n in p}

    def _cloth(self) -> tuple[np.ndarray, NeoHookeanTriangles]:
        """Return points of a cloth that stands on its first corner, and its force."""
        x, y, _ = self.CLOTH.points.T
        points = np.stack([(x - y) / np.sqrt(2), (x + y) / 2, (x + y) / 2], axis=1)
        return points, NeoHookeanTriangles(self.CLOTH.faces, points, mu=1.0, lam=1.0, density=1.0)

    def _part(self) -> float:
        mass = Model(forces={"cloth": self._cloth()[1]}).mass
        return mass[0] / mass.sum()

    def scene(self, p: Values, rate: float) -> tuple[Model, State]:
        """Return a cloth over y = 0, which its first corner can touch."""
        points, cloth = self._cloth()
        mass = Model(forces={"cloth": cloth}).mass
        floor = HalfSpaceContact(stiffness=mass[0] * rate**2, contact_nodes=[0])
        forces = {"cloth": cloth, "floor": floor}
        model = Model(forces=forces, gravity=(0, -p["gravity"], 0))
        speed = np.tile([0, -p["speed"], 0], (len(points), 1))
        return model, State(points + np.array([0, p["height"], 0]), speed)

    def observe(self, end: Any) -> tuple[float, dict[str, Any]]:
        """Return the height of the centre of mass above the corner's place in the cloth."""
        points, cloth = self._cloth()
        mass = Model(forces={"cloth": cloth}).mass
        weights = mass / mass.sum()
        adj_x = np.zeros((1, len(mass), 3))
        adj_x[0, :, 1] = weights
        return float(weights @ (end.x[-1] - points)[:, 1]), {"adj_x": adj_x}

    def value(self, end: Any, p: Values) -> float:
        """Return by how much the centre of mass moved."""
        return self.observe(end)[0] - p["height"]

    def pull(self, g: dict[str, np.ndarray], p: Values, rate: float) -> Values:
        """Return the derivatives by the parameters."""
        return {
            "height": g["state.x"][:, 1].sum() - 1.0, "speed": -g["state.v"][:, 1].sum(),
            "gravity": -g["gravity"][1],
        }  # fmt: skip

    def one_step(self, p: Values, rate: float) -> Values:
        """Lift the cloth."""
        return {"height": np.sqrt(p["speed"] ** 2 + 2 * p["gravity"] * p["height"])}


LIMIT_ANGLE = float(np.arctan(0.5))
FALL = {"height": 0.2, "speed": 0.5, "gravity": GRAVITY}
CUBIC = CubicBall(FALL | {"restitution": 0.5}, end=0.27, rate=100.0, dt=5e-4)
DAMPED = DampedBall(FALL | {"ratio": 0.6}, end=0.27, rate=100.0, dt=5e-4)  # keeps half its speed
PROBLEMS: dict[str, Problem] = {
    "ball": BouncingBall(FALL, end=0.27, rate=100.0, dt=5e-4),
    "lossy": LossyBall(FALL | {"dissipation": 0.7}, end=0.27, rate=100.0, dt=5e-4),
    "balls": TwoBalls({"x1": 0.0, "x2": 0.52, "v1": 1.0, "v2": 0.0}, end=1.0, rate=50.0, dt=1e-3),
    "block": SlidingBlock(
        {"position": 0.0, "speed": 1.0, "friction": 0.3, "gravity": GRAVITY},
        end=0.75, rate=50.0, dt=4e-3,
    ),
    "slope": SlidingDown(
        {"angle": LIMIT_ANGLE + 0.08, "friction": 0.5, "gravity": GRAVITY},
        end=0.6, rate=100.0, dt=1e-3,
    ),
    "stick": Sticking(
        {"angle": LIMIT_ANGLE, "friction": 0.5 + 1e-9, "gravity": GRAVITY},
        end=0.6, rate=100.0, dt=1e-3,
    ),
    "rod": LandingRod({"height": 0.5, "speed": 1.0, "angle": 0.6}, end=0.42, rate=200.0, dt=5e-4),
    "pendulum": Pendulum(
        {"angle": 0.8, "length": 1.0, "gravity": GRAVITY}, end=0.8, rate=100.0, dt=5e-4
    ),
    "rolling": RollingBall(
        {"speed": 0.5, "spin": 20.0, "friction": 0.3}, end=0.5, rate=50.0, dt=5e-4
    ),
    "cloth": LandingCloth(
        {"height": 0.02, "speed": 0.6, "gravity": GRAVITY}, end=0.06, rate=200.0, dt=2e-4
    ),
}  # fmt: skip
