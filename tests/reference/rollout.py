r"""Semi-implicit Euler in plain NumPy, one step after the other.

    v+ = v + dt (w f(k, x, v) + [w > 0] g),   x+ = x + dt v+,   w = 1/m, 0 where pinned

Source: Jatavallabhula et al., gradSim, ICLR 2021, eq. 4; Hairer, Lubich & Wanner,
Geometric Numerical Integration, sec. I.1.
"""

from collections.abc import Callable, Sequence

import numpy as np


def rollout(
    x: np.ndarray,
    v: np.ndarray,
    mass: np.ndarray,
    forces: Sequence[Callable],
    dt: float,
    n_steps: int,
    *,
    gravity=(0.0, -9.8, 0.0),
    pinned: np.ndarray | None = None,
    frames: Sequence[int] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities (nf, n, 3) of the states in `frames`.

    Each force is called as force(k, x, v) -> (n, 3) [N] in step k, which makes state
    k + 1; a series over time is a callable that reads its row k. `frames` are increasing
    numbers of states, 0 (the initial one) to `n_steps`; by default all of them. Any
    argument may be complex.
    """
    gravity = np.asarray(gravity)
    moves = np.ones(len(x), bool) if pinned is None else ~np.asarray(pinned)
    w = np.where(moves, 1 / np.asarray(mass), 0)[:, None]
    wanted = range(n_steps + 1) if frames is None else frames
    states = [(np.asarray(x), np.asarray(v))]
    for k in range(n_steps):
        x, v = states[-1]
        f = sum((force(k, x, v) for force in forces), np.zeros(x.shape))
        v = v + dt * (w * f + moves[:, None] * gravity)
        states.append((x + dt * v, v))
    return (np.stack([states[k][0] for k in wanted]), np.stack([states[k][1] for k in wanted]))
