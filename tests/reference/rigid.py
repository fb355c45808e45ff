r"""Rigid bodies in plain NumPy: quaternions by the sandwich product, torques about x.

    v+ = v + dt (f/m + g - kappa v)
    w+ = w + dt I^-1 (R^T tau - w x I w - kappa I w),   tau = sum (p - x) x f
    x+ = x + dt v+,   r+ = r (x) exp(dt/2 w+)

Quaternions are (x, y, z, w). Branches look at real parts only, so every argument may carry
a complex step.

Source: Jatavallabhula et al., gradSim, ICLR 2021, eq. 2; Sola, Quaternion kinematics for
the error-state Kalman filter, 2017, sec. 1 and 2.
"""

import numpy as np


def product(p, q):
    """Hamilton's product by the multiplication table of i, j, k."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return np.array(
        [
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz,
        ]
    )


def rotate(r, c):
    """The vector part of r (x) (c, 0) (x) r*."""
    conjugate = np.asarray(r) * np.array([-1, -1, -1, 1])
    return product(product(r, np.array([*c, 0])), conjugate)[:3]


def matrix(r):
    """R(r), column by column."""
    return np.stack([rotate(r, e) for e in np.eye(3)], axis=1)


def exponential(h):
    """Exp of a pure quaternion h."""
    h = np.asarray(h)
    angle = np.sqrt((h * h).sum())
    if abs(angle) < 1e-8:  # to rounding
        return np.array([*h, 1 - (h * h).sum() / 2])
    return np.array([*(np.sin(angle) / angle * h), np.cos(angle)])


def tensor(six):
    """The symmetric matrix of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def mass_properties(x, faces):
    """Volume, centre and six numbers of the inertia about it, at density 1, of a closed mesh.

    Sums over tetrahedra from the origin, whose second moment is det/120 sum (1 + d_ab) x_a x_b^T.
    """
    corners = x[faces]
    det = np.sum(corners[:, 0] * np.cross(corners[:, 1], corners[:, 2]), axis=1)
    volume, total = det.sum() / 6, corners.sum(axis=1)
    center = det @ total / (24 * volume)
    second = np.einsum("e,eai,eaj->ij", det, corners, corners)
    second = (second + np.einsum("e,ei,ej->ij", det, total, total)) / 120
    about = second - volume * np.outer(center, center)
    I = np.trace(about) * np.eye(3) - about
    return volume, center, I[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


def points(state, c):
    """Positions and velocities (n, 3) of points c (n, 3) of a body (x, r, v, w)."""
    x, r, v, w = state
    R = matrix(r)
    return x + np.asarray(c) @ R.T, v + np.cross(w, c) @ R.T


def step(state, forces, c, weight, gravity, dt):
    """The body (x, r, v, w) after a step with forces (n, 3) at its points c (n, 3).

    `weight` is (mass, inertia, kappa).
    """
    mass, inertia, drag = weight
    x, r, v, w = state
    p, _ = points(state, c)
    tau, force = np.cross(p - x, forces).sum(axis=0), np.sum(forces, axis=0)
    R, inertia = matrix(r), tensor(inertia)
    v = v + dt * ((force - drag * mass * v) / mass + gravity)
    spun = inertia @ w
    w = w + dt * np.linalg.solve(inertia, R.T @ tau - np.cross(w, spun) - drag * spun)
    return x + dt * v, product(r, exponential(dt / 2 * w)), v, w


def rollout(states, arms, weights, forces, gravity, dt, n_steps, frames):
    """States of some bodies at the frames, and their points there.

    `states`, `arms`, `weights` have for each body (x, r, v, w), (n, 3), (mass, inertia, kappa);
    forces(k, body, x, v) returns (n, 3) at the points of a body in step k.
    """
    shown = {}
    for k in range(n_steps + 1):
        if k in frames:
            shown[k] = [(*state, *points(state, c)) for state, c in zip(states, arms, strict=True)]
        states = [
            step(state, forces(k, b, *points(state, c)), c, weight, gravity, dt)
            for b, (state, c, weight) in enumerate(zip(states, arms, weights, strict=True))
        ]
    return [shown[k] for k in frames]
