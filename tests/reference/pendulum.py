r"""Pendula in plain NumPy, from the equations of motion, one step after the other.

    simple   q'' = -(g/l) sin q - (b/m) q' + T/(m l^2)
    double   M(q) q'' = tau(q, q') + T - b * q'

    u+ = u + dt q''(q, u),   q+ = q + dt u+

The 2 x 2 system is solved by `numpy.linalg.solve`, so that nothing is shared with the kernels;
every argument may be complex.

Source: Goldstein, Classical Mechanics, sec. 1.6; gradSim (ICLR 2021) eq. 4.
"""

import numpy as np


def simple(q, u, length, mass, damping, gravity, torque):
    """Angular acceleration [rad/s2] of numbers."""
    return -gravity / length * np.sin(q) - damping / mass * u + torque / (mass * length**2)


def double(q, u, length, mass, damping, gravity, torque):
    """Both angular accelerations (2,) [rad/s2]."""
    l1, l2 = length
    m1, m2 = mass
    delta = q[0] - q[1]
    coupling = m2 * l1 * l2
    M = np.array(
        [
            [(m1 + m2) * l1**2, coupling * np.cos(delta)],
            [coupling * np.cos(delta), m2 * l2**2],
        ]
    )
    tau = np.array(
        [
            -coupling * np.sin(delta) * u[1] ** 2 - (m1 + m2) * gravity * l1 * np.sin(q[0]),
            coupling * np.sin(delta) * u[0] ** 2 - m2 * gravity * l2 * np.sin(q[1]),
        ]
    )
    return np.linalg.solve(M, tau + torque - damping * u)


def rollout(acceleration, angle, rate, dt, n_steps, *, torque, **constants):
    """Angles and rates (n_steps + 1, ...) of all states; `torque` is called with the step."""
    states = [(np.asarray(angle), np.asarray(rate))]
    for k in range(n_steps):
        q, u = states[-1]
        u = u + dt * acceleration(q, u, torque=torque(k), **constants)
        states.append((q + dt * u, u))
    return np.stack([q for q, _ in states]), np.stack([u for _, u in states])


def energy(angle, rate, length, mass, gravity):
    """Energy [J] of each state of a double pendulum, angles and rates (n, 2), from Cartesians."""
    velocity = np.zeros((len(angle), 2))
    height, total = np.zeros(len(angle)), np.zeros(len(angle))
    for k in range(2):
        q, u = angle[:, k], rate[:, k]
        velocity = velocity + (length[k] * u)[:, None] * np.stack([np.cos(q), np.sin(q)], axis=1)
        height = height - length[k] * np.cos(q)
        total = total + mass[k] * ((velocity**2).sum(axis=1) / 2 + gravity * height)
    return total
