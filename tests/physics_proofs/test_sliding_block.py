"""A block (one node) on a slope and on the level: it sticks or slides, and how far it goes.

With the normal at rest, p = m g cos(angle), and along the slope

    v' = g sin(angle) - min(mu p, k_f v)/m

Coulomb's block sticks for tan(angle) <= mu; the model's creeps at m g sin(angle)/k_f, which
is its bias. On the level Coulomb's stops after v^2/(2 mu g). The model's slips down to
v_s = mu m g/k_f and then dies away: v^2/(2 mu g) + v_s^2/(2 mu g) in continuous time. Of the
scheme, n = the steps that slip, b = dt k_f/m:

    D = sum_(k=1..n) dt (v - k dt mu g) + dt v_n (1 - b)/b,   v_n = v - n dt mu g
"""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.contact_margins import contact_margins
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics_proofs.slopes import Slope, listed, slope_of


M, G, K_E, K_F = 0.7, 9.81, 1e4, 200.0
MU, SPEED, DT = 0.4, 2.0, 1e-3
# Of differences: steps of 4e-6 at least, a way of 1 m rounded a few thousand times.
ROUNDING = 5e-8


class Block:
    """A node at rest in the normal direction of a slope, moving down it."""

    def __init__(self, angle, *, dt=DT, time=1.0, k_f=K_F, speed=SPEED):
        self.down = np.array([np.cos(angle), -np.sin(angle), 0.0])
        self.up = np.array([np.sin(angle), np.cos(angle), 0.0])
        self.start = -M * G * np.cos(angle) / K_E * self.up
        self.dt, self.n_steps, self.k_f, self.speed = dt, round(time / dt), k_f, speed

    def scene(self, mu=MU, speed=None):
        slope = HalfSpaceContact(
            normal=self.up, stiffness=K_E, friction_stiffness=self.k_f, friction=mu
        )
        v = (self.speed if speed is None else speed) * self.down
        return Model([M], {"slope": slope}, gravity=(0, -G, 0)), State([self.start], [v])

    def way(self, mu=MU, speed=None):
        """How far it goes [m]."""
        run = rollout(*self.scene(mu, speed), self.dt, self.n_steps)
        return float((run.x[0, 0] - self.start) @ self.down)

    def slopes(self, closed):
        """Derivatives of the way by mu and by the speed."""
        gradient = record(*self.scene(), self.dt, self.n_steps).vjp(self.down[None, None])
        return {
            "mu": slope_of(lambda mu: self.way(mu=mu), MU, gradient["slope.friction"], closed[0]),
            "speed": slope_of(
                lambda v: self.way(speed=v), self.speed, gradient["state.v"][0] @ self.down,
                closed[1],
            ),
        }  # fmt: skip

    def distance_to_kink(self):
        """The slip speed by which the nearest step misses the edge of the cone [m/s]."""
        model, state = self.scene()
        run = rollout(model, state, self.dt, self.n_steps, frames=range(self.n_steps))
        return np.abs(contact_margins(model, run)["slope"].slip).min() / self.k_f


@pytest.mark.parametrize("excess", [-0.3, -0.01, 0.01, 0.3])
def test_a_block_sticks_or_slides_as_its_angle_says(excess):
    angle = np.arctan(MU * (1.0 + excess))
    block = Block(angle, time=4.0, speed=0.0)
    half, end = block.n_steps // 2, block.n_steps
    run = record(*block.scene(), block.dt, end, frames=[half, end])
    v_half, v_end = run.trajectory.v[:, 0] @ block.down
    by_mu = run.vjp(None, np.array([[0.0 * block.down], [block.down]]))["slope.friction"]
    if excess < 0.0:  # the model creeps: its bias
        creep = M * G * np.sin(angle) / K_F
        print(f"\ntan/mu - 1 = {excess:+}: sticks, creeps at {v_end:.2e} m/s, dv/dmu = {by_mu}")
        assert v_end == pytest.approx(creep, rel=1e-9)
        assert by_mu == 0.0
    else:
        a = G * (np.sin(angle) - MU * np.cos(angle))
        off = (v_end - v_half) / (block.dt * (end - half)) / a - 1.0
        print(
            f"\ntan/mu - 1 = {excess:+}: slides, acceleration off by {off:.1e}, dv/dmu {by_mu:.3}"
        )
        # Speeds of order 1 rounded over 4000 steps, and differences of 0.08 m/s.
        assert abs(off) <= 1e-10
        assert by_mu < -1.0


def test_creep_falls_with_the_friction_stiffness():
    angle = np.arctan(0.5 * MU)
    speeds = []
    for k_f in (100.0, 200.0, 400.0):
        block = Block(angle, k_f=k_f, speed=0.0)
        run = rollout(*block.scene(), block.dt, block.n_steps)
        speeds.append(float(run.v[0, 0] @ block.down))
    print(f"\ncreep at k_f = 100, 200, 400 N s/m: {speeds} m/s")
    np.testing.assert_allclose(speeds, M * G * np.sin(angle) / [100, 200, 400], rtol=1e-9)


def test_how_far_a_block_slides_down_and_its_derivatives():
    # x = v t + a t^2/2, the scheme a dt t/2 more, as long as it slips from the start.
    angle, t = np.arctan(1.3 * MU), 1.0
    a = G * (np.sin(angle) - MU * np.cos(angle))
    closed = SPEED * t + a * t**2 / 2
    block = Block(angle)
    bias = block.way() / closed - 1.0
    slopes = block.slopes((-G * np.cos(angle) * t**2 / 2, t))
    print("\n" + listed(f"sliding down for 1 s, dt = {DT}: way's bias {bias:+.2e}", slopes))
    assert block.way() == pytest.approx(closed + a * DT * t / 2, rel=1e-11)
    assert max(s.error for s in slopes.values()) <= ROUNDING
    assert slopes["mu"].bias == pytest.approx(DT / t, abs=ROUNDING)
    assert abs(slopes["speed"].bias) <= ROUNDING


def scheme(dt, k_f=K_F):
    """Way of the scheme and its derivatives by mu and speed, while n stays."""
    v_s, b = MU * M * G / k_f, dt * k_f / M
    n = int(np.ceil((SPEED - v_s) / (dt * MU * G)))
    v_n, tail = SPEED - n * dt * MU * G, dt * (1 - b) / b
    way = dt * (n * SPEED - n * (n + 1) / 2 * dt * MU * G) + v_n * tail
    return way, (-dt * G * (dt * n * (n + 1) / 2 + n * tail), n * dt + tail)


def test_a_block_stops_where_the_scheme_says_and_so_do_its_derivatives():
    block = Block(0.0)
    way, by = scheme(DT)
    off = block.way() / way - 1.0
    slopes = block.slopes(by)
    print(
        "\n" + listed(f"stopping, against the scheme's closed form: way off by {off:+.1e}", slopes)
    )
    away = block.distance_to_kink()
    print(f"  nearest change of stick to slip: {away:.1e} m/s away, differences step by 2e-5")
    assert away > 1e-4
    assert abs(off) <= 1e-12
    for s in slopes.values():
        assert s.error <= ROUNDING
        assert abs(s.adjoint / s.closed - 1.0) <= 1e-11


def test_the_stopping_distance_tends_to_coulombs_and_so_do_its_derivatives():
    coulomb = SPEED**2 / (2 * MU * G)
    closed = -coulomb / MU, SPEED / (MU * G)
    ways, biases = [], []
    for dt in (1e-3, 5e-4, 2.5e-4):
        block = Block(0.0, dt=dt)
        slopes = block.slopes(closed)
        ways.append(block.way())
        biases.append([s.bias for s in slopes.values()])
        what = f"stopping, dt = {dt}: way's bias {ways[-1] / coulomb - 1.0:+.2e}"
        print("\n" + listed(what, slopes))
        assert max(s.error for s in slopes.values()) <= ROUNDING
        # Which step is the last that slips moves the derivatives by up to dt, of 0.51 s.
        assert np.abs(biases[-1]).max() <= 1e-4 + 3 * dt
    # In continuous time the model's way is v_s^2/(2 mu g) = mu g (m/k_f)^2/2 longer.
    creep = MU * G * (M / K_F) ** 2 / 2
    order = np.log2(np.abs(np.array(ways) - coulomb - creep))
    print(f"order in dt {-np.diff(order)}; bias of the friction slope {creep / coulomb:.1e}")
    assert np.abs(-np.diff(order) - 1.0).max() < 0.02


def test_slope_tells_error_and_bias_apart():
    s = Slope(adjoint=-1.1, differences=-1.0, closed=-2.0)
    assert s.error == pytest.approx(0.1)
    assert s.bias == pytest.approx(-0.5)
    assert Slope(0.3, 0.3, 0.0).bias == pytest.approx(0.3)
