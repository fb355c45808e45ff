"""Bodies that bounce, by impulses with Newton's restitution, the same at every speed.

Between touches a ball flies along a parabola and a bar swings by its equation, to 1e-10. A box is
stepped as in `solver_rigid`, with a restitution at its corners.
"""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp


REST = 1e-3  # [m/s] or [rad/s]: what leaves more slowly stays


def ball(
    radius: float,
    start: dict[str, np.ndarray],
    times: np.ndarray,
    *,
    gravity: np.ndarray,
    floor: float,
    restitution: float,
    friction: float,
) -> np.ndarray:
    """Return the centres of a solid ball that bounces on a floor, (n_times, 3) [m].

    Friction is Coulomb's, or as much as makes the point that touches stand: 2/7 of its speed.
    """
    x, v, w = (start[name].astype(float) for name in ("centre", "velocity", "spin"))
    g, t, centres = -float(gravity[1]), 0.0, []
    arm = np.array([0.0, -radius, 0.0])
    for end in times:
        while True:
            height = x[1] - floor - radius
            touch = (v[1] + np.sqrt(max(v[1] ** 2 + 2 * g * height, 0.0))) / g
            if t + touch > end or (v[1] <= REST and height <= 1e-9):
                break
            x = x + touch * v + touch**2 / 2 * gravity
            v = v + touch * gravity
            x[1], t = floor + radius, t + touch
            slip = v + np.cross(w, arm)
            slip[1] = 0.0
            fast = max(float(np.linalg.norm(slip)), 1e-300)
            kick = -min(friction * (1 + restitution) * -v[1], 2 / 7 * fast) * slip / fast
            v = v + kick
            v[1] *= -restitution
            w = w + 5 / (2 * radius**2) * np.cross(arm, kick)
        dt = end - t
        if v[1] <= REST and x[1] - floor - radius <= 1e-9:
            v[1] = 0.0
            x = x + dt * v
        else:
            x, v = x + dt * v + dt**2 / 2 * gravity, v + dt * gravity
        t = end
        centres.append(x)
    return np.array(centres)


def bar(
    arm: np.ndarray,
    mass: float,
    inertia: float,
    times: np.ndarray,
    *,
    wall: float,
    restitution: float,
    viscous: float,
    gravity: float,
) -> np.ndarray:
    """Return the angles of a bar on a hinge from rest, which a wall stops, (n_times,) [rad].

    At the start the angle is 0 and `arm` (2,) [m] leads from the hinge to the centre of mass. The
    inertia [kg m2] is about the hinge, `wall` is the angle at which it meets the wall.
    """

    def rate(_: float, y: np.ndarray) -> list[float]:
        c, s = np.cos(y[0]), np.sin(y[0])
        return [y[1], (-mass * gravity * (c * arm[0] - s * arm[1]) - viscous * y[1]) / inertia]

    def meets(_: float, y: np.ndarray) -> float:
        return y[0] - wall

    events: Any = meets
    events.terminal, side = True, np.sign(-wall)
    events.direction = -side
    t, y, angles = 0.0, np.zeros(2), np.zeros(len(times))
    while t < times[-1]:
        done = solve_ivp(
            rate, (t, times[-1]), y, events=events, dense_output=True, rtol=1e-10, atol=1e-12
        )
        inside = (times >= t) & (times <= done.t[-1])
        angles[inside] = done.sol(times[inside])[0]
        t, y = float(done.t[-1]), np.array([wall + 1e-12 * side, -restitution * done.y[1, -1]])
        if done.status == 1 and abs(y[1]) < REST:
            angles[times > t] = wall
            break
    return angles
