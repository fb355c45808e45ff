"""A node bounces without gravity: how it comes back, and what its derivatives are worth.

It flies at speed s towards a plane h away. In the spring of contact it makes half a swing at
omega = sqrt(k_e/m); undamped, after time T it is at

    y = s (T - pi/omega) - h

Damped, k_d acts on the way in alone; with zeta = k_d/(2 sqrt(k_e m)) it comes back at

    s e,   e = exp(-zeta/sqrt(1 - zeta^2) acos(zeta))

The scheme touches at the first step inside, at most dt late. Undamped that is continuous:
bias O(dt), in derivatives too. The damping force jumps at touch, and the speed back jumps by
e (k_d/m) s dt as the touch moves to another step. Between two jumps it has the slope

    d(s e)/dh = -e k_d/m,   d(s e)/ds = e + (h/s) e k_d/m

for every dt, where the closed form says 0 and e: the derivative of the code is right, and is
not that of the limit. By k_e, k_d and m, which move no touch, it is.
"""

import numpy as np
import pytest

from adjoint.rollout import record
from adjsim.contact_margins import nearest_touch
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.model import Model, State
from adjsim.rollout import rollout
from tests.physics_proofs.slopes import listed, slope_of


VALUES = {"h": 0.1, "s": 1.3, "k_e": 400.0, "k_d": 1.5, "m": 0.25}
PATHS = {"k_e": "plane.stiffness", "k_d": "plane.damping"}
T = 0.3  # from the start to the end, 0.077 s of it to the plane and 0.079 s inside
DTS = (1e-3, 2.5e-4, 6.25e-5)
# Of differences: steps of 1e-6, positions and speeds of 1 rounded some thousand times.
ROUNDING = 1e-7


def scene(h, s, k_e, k_d, m):
    """The node above the plane y = 0."""
    plane = HalfSpaceContact(stiffness=k_e, damping=k_d)
    return Model([m], {"plane": plane}, gravity=(0, 0, 0)), State([[0, h, 0]], [[0, -s, 0]])


def end(dt, values):
    """Height [m] and speed [m/s] at the end."""
    run = rollout(*scene(**values), dt, round(T / dt))
    return run.x[0, 0, 1], run.v[0, 0, 1]


def gradients(dt, values):
    """Gradients of height and speed at the end by the five values."""
    run, up = record(*scene(**values), dt, round(T / dt)), np.array([[[0.0, 1.0, 0.0]]])
    pulled = []
    for adj in ((up, None), (None, up)):
        g = run.vjp(*adj)
        by = {name: g[path] for name, path in PATHS.items()}
        pulled.append(by | {"h": g["state.x"][0, 1], "s": -g["state.v"][0, 1], "m": g["mass"][0]})
    return pulled


def slopes(dt, values, which, closed):
    """Derivatives of the height (0) or the speed (1) at the end."""
    adjoint = gradients(dt, values)[which]

    def along(name):
        return lambda value: end(dt, values | {name: value})[which]

    return {n: slope_of(along(n), values[n], adjoint[n], closed[n]) for n in closed}


def nearest(dt, values):
    """The event nearest to happening in another step."""
    model, state = scene(**values)
    n = round(T / dt)
    return nearest_touch(model, rollout(model, state, dt, n, frames=range(n)))


def restitution(k_e, k_d, m, **_):
    """Speed out per speed in, e, and its derivative by zeta."""
    z = k_d / (2 * np.sqrt(k_e * m))
    w = np.sqrt(1 - z**2)
    e = np.exp(-z / w * np.arccos(z))
    return z, e, e * (z / w**2 - np.arccos(z) / w**3)


def test_an_undamped_bounce_and_its_derivatives():
    values = VALUES | {"k_d": 0.0}
    s, k_e, m = values["s"], values["k_e"], values["m"]
    half = np.pi * np.sqrt(m / k_e)
    height = s * (T - half) - values["h"]
    closed = {
        "h": -1.0, "s": T - half, "k_e": s * half / (2 * k_e), "m": -s * half / (2 * m)
    }  # fmt: skip
    worst = []
    for dt in DTS:
        derivatives = slopes(dt, values, 0, closed)
        y, v = end(dt, values)
        event = nearest(dt, values)
        print("\n" + listed(f"bounce, dt = {dt}: height's bias {y / height - 1:+.1e}", derivatives))
        print(f"  speed's bias {v / s - 1:+.1e}; nearest touch {event.distance:.1e} m away")
        assert event.distance > 5e-6, "differences move the node by 1e-6 m"
        assert max(f.error for f in derivatives.values()) <= ROUNDING
        worst.append(max(abs(f.bias) for f in derivatives.values()))
    # Where in a step it touches moves the derivatives by up to omega dt omega T = 480 dt.
    assert (np.array(worst) <= 480 * np.array(DTS)).all()


def test_the_speed_of_a_damped_rebound_and_its_derivatives():
    z, e, by_z = restitution(**VALUES)
    s, k_e, k_d, m = (VALUES[name] for name in ("s", "k_e", "k_d", "m"))
    closed = {
        "k_e": -s * by_z * z / (2 * k_e), "k_d": s * by_z * z / k_d, "m": -s * by_z * z / (2 * m)
    }  # fmt: skip
    # Where in a step it leaves moves ln(v) by up to (omega dt)^2/2 a step, and omega moves
    # that by pi/(2 omega dt) steps: omega dt pi/4 of the v dv/dln(k_e) = s by_z z/2 looked for.
    for dt in DTS:
        values = VALUES | {"h": (round(0.08 / (s * dt)) + 0.5) * s * dt}
        derivatives = slopes(dt, values, 1, closed)
        _, v = end(dt, values)
        print(
            "\n"
            + listed(f"rebound, e = {e:.3f}, dt = {dt}: bias {v / (s * e) - 1:+.1e}", derivatives)
        )
        assert max(f.error for f in derivatives.values()) <= ROUNDING
        sawtooth = np.sqrt(k_e / m) * dt * np.pi / 4 * e / abs(by_z * z / 2)
        assert abs(v / (s * e) - 1) <= 3 * dt
        assert max(abs(f.bias) for f in derivatives.values()) <= sawtooth


def test_the_derivative_by_what_moves_the_touch_has_a_bias_that_stays():
    _, e, _ = restitution(**VALUES)
    s, rate = VALUES["s"], VALUES["k_d"] / VALUES["m"]
    for dt in DTS:
        h = (round(0.08 / (s * dt)) + 0.5) * s * dt
        values = VALUES | {"h": h}
        derivatives = slopes(dt, values, 1, {"h": 0.0, "s": e})
        print("\n" + listed(f"speed of the rebound, dt = {dt}: touches move", derivatives))
        assert max(f.error for f in derivatives.values()) <= ROUNDING
        late = e * rate * h / s
        # As above, leaving moves the speed by up to omega^2 dt/2 per way moved.
        sawtooth = VALUES["k_e"] / VALUES["m"] * dt / 2
        assert derivatives["h"].adjoint == pytest.approx(-e * rate, abs=sawtooth)
        assert derivatives["s"].adjoint == pytest.approx(e + late, abs=sawtooth * h / s + 3 * dt)


def test_the_speed_jumps_just_where_the_nearest_touch_says():
    dt, (_, e, _) = 2.5e-4, restitution(**VALUES)
    values = VALUES | {"h": 0.0803}
    event, slope = nearest(dt, values), gradients(dt, values)[1]["h"]
    assert event.force == "plane"
    before = np.sign(rollout(*scene(**values), dt, event.step, frames=[event.step]).x[0, 0, 1])
    off = {}
    for fraction in (0.5, 0.99, 1.01, 1.5):
        moved = -before * fraction * event.distance  # towards the plane, or out of it
        _, v = end(dt, values | {"h": values["h"] + moved})
        off[fraction] = float(v - end(dt, values)[1] - slope * moved)
    jump = -before * e * VALUES["k_d"] / VALUES["m"] * VALUES["s"] * dt
    print(
        f"\nnearest touch {event.distance:.2e} m away, step {event.step}: off the tangent", end=""
    )
    print(f" by {off}, jump {jump:.2e} m/s")
    assert abs(off[0.5]) + abs(off[0.99]) <= 1e-10
    for fraction in (1.01, 1.5):
        assert off[fraction] == pytest.approx(jump, rel=0.05)
