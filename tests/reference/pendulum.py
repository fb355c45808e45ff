r"""Pendula in plain NumPy, from the equations of motion, one step after the other.

    simple   (I + m c^2) q'' = T - m g c sin q - b l^2 q' - f s(q')
    double   M(q) q'' = tau(q, q') + T - b * q'

    u+ = u + dt q''(q, u),   q+ = q + dt u+,   s(w) = w / sqrt(w^2 + eps^2)

Of the double one M and tau come from the centres of mass x_k in Cartesian coordinates, by
Lagrange's equations: with the Jacobians x_k' = A_k q',

    M = sum of m_k A_k^T A_k + I_k,   tau = sum of m_k A_k^T (gravity - A_k' q') + friction

The 2 x 2 system is solved by `numpy.linalg.solve`, so that nothing is shared with the kernels;
every argument may be complex.

Source: Goldstein, Classical Mechanics, sec. 1.4; gradSim (ICLR 2021) eq. 4.
"""

import numpy as np


CONSTANTS = ("length", "mass", "center_of_mass", "inertia", "damping", "friction")
CONSTANTS += ("friction_width", "gravity")


def sign(w, width):
    """The smooth sign of a rate."""
    return w / np.sqrt(w**2 + width**2)


def simple(
    q, u, *, length, mass, damping, gravity, torque,
    center_of_mass=None, inertia=0.0, friction=0.0, friction_width=0.01,
):  # fmt: skip
    """Angular acceleration [rad/s2] of numbers."""
    c = length if center_of_mass is None else center_of_mass
    dry = friction * sign(u, friction_width)
    fall = mass * gravity * c * np.sin(q)
    return (torque - fall - damping * length**2 * u - dry) / (inertia + mass * c**2)


def double(
    q, u, *, length, mass, damping, gravity, torque,
    center_of_mass=None, inertia=(0.0, 0.0), friction=(0.0, 0.0), friction_width=0.01,
):  # fmt: skip
    """Both angular accelerations (2,) [rad/s2]."""
    c = length if center_of_mass is None else center_of_mass
    along = np.stack([np.sin(q), -np.cos(q)])  # of each link as a column
    across = np.stack([np.cos(q), np.sin(q)])
    M, tau = np.diag(inertia), torque - damping * u
    for m, arms in zip(mass, ([c[0], 0.0], [length[0], c[1]]), strict=True):
        A, turning = arms * across, -(arms * along) @ u**2  # A' q'
        M = M + m * A.T @ A
        tau = tau + m * A.T @ (np.array([0.0, -1.0]) * gravity - turning)
    at_joints = friction * sign(np.array([u[0], u[1] - u[0]]), friction_width)
    return np.linalg.solve(M, tau - at_joints + np.array([at_joints[1], 0.0]))


def rollout(acceleration, angle, rate, dt, n_steps, *, torque, **constants):
    """Angles and rates (n_steps + 1, ...) of all states; `torque` is called with the step."""
    states = [(np.asarray(angle), np.asarray(rate))]
    for k in range(n_steps):
        q, u = states[-1]
        u = u + dt * acceleration(q, u, torque=torque(k), **constants)
        states.append((q + dt * u, u))
    return np.stack([q for q, _ in states]), np.stack([u for _, u in states])


def energy(angle, rate, length, mass, gravity, center_of_mass=None, inertia=(0.0, 0.0)):
    """Energy [J] of each state of a double pendulum, angles and rates (n, 2), from Cartesians."""
    center = length if center_of_mass is None else center_of_mass
    velocity = np.zeros((len(angle), 2))
    height, total = np.zeros(len(angle)), np.zeros(len(angle))
    for k in range(2):
        q, u = angle[:, k], rate[:, k]
        turning = u[:, None] * np.stack([np.cos(q), np.sin(q)], axis=1)
        at, v = height - center[k] * np.cos(q), velocity + center[k] * turning
        total = total + mass[k] * ((v**2).sum(axis=1) / 2 + gravity * at) + inertia[k] * u**2 / 2
        height, velocity = height - length[k] * np.cos(q), velocity + length[k] * turning
    return total
