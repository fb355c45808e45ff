r"""State losses: the distance of a trajectory from known positions, one number.

    state_mse           L = mean over everything of (x - target)^2                   [m^2]
    center_of_mass_mse  L = mean over frames and coordinates of (c - target)^2       [m^2]
                        c = sum_i m_i x_i / sum_i m_i

Adjoint: `adjoint/losses.py`. Tests: `tests/test_losses_state.py`.
Source: Jatavallabhula et al., gradSim, ICLR 2021, sec. 4: the 3-D supervised baseline.
"""

import numpy as np

from adjsim import checks


def state_mse(x: np.ndarray, target: np.ndarray) -> float:
    """Return the mean squared difference of positions.

    Parameters
    ----------
    x, target : ndarray
        Positions of the same shape, (n_frames, n_nodes, 3) or (n_nodes, 3) [m].

    Returns
    -------
    float
        Mean over frames, nodes and coordinates [m^2].

    Raises
    ------
    ValueError
        If the shapes differ, an array is empty or not finite.
    """
    x, target = checked_positions(x, target)
    d = x - target  # (1)
    return float(np.square(d).mean())  # (2)


def center_of_mass(x: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the centre of mass of each frame.

    Parameters
    ----------
    x : ndarray
        Positions (n_frames, n_nodes, 3) or (n_nodes, 3) [m].
    mass : ndarray
        (n_nodes,) [kg], positive.

    Returns
    -------
    ndarray
        (n_frames, 3) or (3,) [m].

    Raises
    ------
    ValueError
        If the masses do not fit the positions or are not positive.
    """
    x, mass = checked_masses(x, mass)
    total = mass.sum()  # (1)
    return (mass[:, None] * x).sum(axis=-2) / total  # (2)


def center_of_mass_mse(x: np.ndarray, mass: np.ndarray, target_com: np.ndarray) -> float:
    """Return the mean squared difference of centres of mass.

    Parameters
    ----------
    x : ndarray
        Positions (n_frames, n_nodes, 3) or (n_nodes, 3) [m].
    mass : ndarray
        (n_nodes,) [kg], positive.
    target_com : ndarray
        (n_frames, 3) or (3,) [m].

    Returns
    -------
    float
        Mean over frames and coordinates [m^2].

    Raises
    ------
    ValueError
        If the shapes do not fit, a mass is not positive, an array is not finite.
    """
    c = center_of_mass(x, mass)  # (1)
    d = c - checked_target_com(target_com, c)  # (2)
    return float(np.square(d).mean())  # (3)


def checked_positions(x, target):
    """Return both as float arrays of one shape."""
    x = checks.array("x", x)
    if x.ndim not in {2, 3} or x.shape[-1] != 3 or x.size == 0:
        raise ValueError(
            "`x` must have shape (n_frames, n_nodes, 3) or (n_nodes, 3), none of them 0, "
            f"got {x.shape}."
        )
    return x, checks.array("target", target, x.shape, hint="Pass the same frames and nodes.")


def checked_masses(x, mass):
    """Return positions and masses that fit each other."""
    x, _ = checked_positions(x, x)
    return x, checks.positive("mass", checks.array("mass", mass, (x.shape[-2],)))


def checked_target_com(target_com, c):
    """Return the targets of the centres of mass `c`, of the same shape."""
    return checks.array(
        "target_com", target_com, c.shape, hint="One centre of mass for each frame of `x`."
    )
