"""Bodies that bounce, by impulses with a restitution that is the same at every speed.

Between touches a ball flies along a parabola and a bar swings by its equation, to 1e-10. Their
restitution is Newton's. A box is stepped as in `solver_rigid`; its corners strike one after the
other, by impulses that grow little by little (Keller, Impact with friction, J. Applied Mechanics
53, 1986), with Coulomb's friction at each, and an energetic restitution: the corner gives back e^2
of the work that was done on it (Stronge, Rigid body collisions with friction, Proc. R. Soc. A 431,
1990). Newton's would make energy where a corner slides.
"""

from typing import Any

import numba
import numpy as np
from scipy.integrate import solve_ivp


REST = 1e-3  # [m/s] or [rad/s]: what leaves more slowly stays
STRIKES = 0.02  # [m/s]: a corner of a box that arrives more slowly is stopped by the floor
PIECES = 2000  # of an impulse that stops a corner


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


@numba.njit(cache=True)
def strike(motion, arms, contact):
    """Return velocity and spin, (2, 3), when no corner at `arms` (n, 3) arrives any more.

    `contact` has the inverse inertia of a mass of 1 kg, friction and restitution. The corner that
    arrives fastest strikes first.
    """
    for _ in range(8 * len(arms)):
        fastest, least = 0, -STRIKES
        for k in range(len(arms)):
            u_n = motion[0, 1] + np.cross(motion[1], arms[k])[1]
            if u_n < least:
                fastest, least = k, u_n
        if least == -STRIKES:
            break
        motion = struck(motion, arms[fastest], contact)
    return motion


@numba.njit(cache=True)
def struck(motion, arm, contact):
    """Return velocity and spin, (2, 3), after the blow of a floor on one corner."""
    inverse, friction, restitution = contact
    v, w = motion[0], motion[1]
    columns = np.empty((3, 3))  # the change of the corner's velocity by impulses along the axes
    for i in range(3):
        columns[:, i] = np.eye(3)[i] + np.cross(inverse @ np.cross(arm, np.eye(3)[i]), arm)
    A = columns[0::2, 0::2].copy()
    held = -np.linalg.solve(A, columns[0::2, 1].copy())  # what keeps a corner from sliding
    sticks = np.hypot(held[0], held[1]) <= friction
    u = v + np.cross(w, arm)
    piece = -u[1] / columns[1, 1] / PIECES
    work = least = 0.0
    while u[1] < 0.0 or work < least * (1.0 - restitution**2):
        slip = np.hypot(u[0], u[2])
        push = np.array([0.0, 1.0, 0.0])
        if slip > piece * friction * columns[0, 0]:
            push[0], push[2] = -friction * u[0] / slip, -friction * u[2] / slip
        elif sticks:
            push[0], push[2] = held[0], held[1]
        v = v + piece * push
        w = w + piece * (inverse @ np.cross(arm, push))
        before, u = u[1], v + np.cross(w, arm)
        work += 0.5 * piece * (before + u[1])
        least = min(least, work)
    return np.stack((v, w))
