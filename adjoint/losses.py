r"""Adjoint of `adjsim/losses.py`: read the two files side by side.

Every block undoes the forward line with the same number, last line first. The tangents
stand above the adjoints and read forwards. Targets are data: they get no cotangent.

    state_mse           adj_x = 2 (x - target) / N
    center_of_mass      adj_x_i = m_i adj_c / M,   adj_m_i = (x_i - c).adj_c / M
"""

import numpy as np

from adjsim import checks
from adjsim.losses import (
    center_of_mass,
    checked_masses,
    checked_positions,
    checked_target_com,
)


def state_mse_jvp(x: np.ndarray, target: np.ndarray, tan_x: np.ndarray) -> float:
    """Push a tangent of the positions forward through `adjsim.losses.state_mse`.

    Parameters
    ----------
    x, target, tan_x : ndarray
        Of the same shape, (n_frames, n_nodes, 3) or (n_nodes, 3) [m].

    Returns
    -------
    float
        The tangent of the loss [m^2].

    Examples
    --------
    >>> from adjoint import state_mse_jvp
    >>> print(state_mse_jvp([[0.0, 3.0, 0.0]], [[0.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]))
    2.0
    """
    x, target = checked_positions(x, target)
    tan_x = checks.array("tan_x", tan_x, x.shape)
    d = x - target  # (1)
    return float(2 * (d * tan_x).mean())  # (2)


def state_mse_vjp(x: np.ndarray, target: np.ndarray, adj: float = 1.0) -> np.ndarray:
    """Pull the cotangent of `adjsim.losses.state_mse` back to the positions.

    Parameters
    ----------
    x, target : ndarray
        Of the same shape, (n_frames, n_nodes, 3) or (n_nodes, 3) [m].
    adj : float
        Cotangent of the loss; 1 gives the gradient.

    Returns
    -------
    ndarray
        adj_x, the shape of `x` [m].

    Examples
    --------
    >>> from adjoint import state_mse_vjp
    >>> print(state_mse_vjp([[0.0, 3.0, 0.0]], [[0.0, 0.0, 0.0]]))
    [[0. 2. 0.]]
    """
    x, target = checked_positions(x, target)
    d = x - target  # (1) replayed

    # (2) L = sum d^2 / N;  (1) d = x - target
    return 2 * adj / d.size * d


def center_of_mass_jvp(
    x: np.ndarray, mass: np.ndarray, tan_x: np.ndarray, tan_mass: np.ndarray
) -> np.ndarray:
    """Push tangents of positions and masses forward to the centres of mass.

    Shapes as in `adjsim.losses.center_of_mass`; returns tan_c [m].
    """
    c = center_of_mass(x, mass)
    x, mass = checked_masses(x, mass)
    tan_x = checks.array("tan_x", tan_x, x.shape)
    tan_mass = checks.array("tan_mass", tan_mass, mass.shape)
    total, tan_total = mass.sum(), tan_mass.sum()  # (1)
    tan_sum = (tan_mass[:, None] * x + mass[:, None] * tan_x).sum(axis=-2)
    return (tan_sum - tan_total * c) / total  # (2)


def center_of_mass_vjp(
    x: np.ndarray, mass: np.ndarray, adj_c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pull cotangents (n_frames, 3) of the centres of mass back: adj_x, adj_mass.

    Shapes as in `adjsim.losses.center_of_mass`.
    """
    c = center_of_mass(x, mass)  # (2) replayed
    x, mass = checked_masses(x, mass)
    adj_c = checks.array("adj_c", adj_c, c.shape)
    total = mass.sum()  # (1) replayed

    # (2) c = sum m x / M
    adj_sum = adj_c[..., None, :] / total
    adj_x = mass[:, None] * adj_sum
    # (1) M = sum m, together with m in (2): x adj_sum - c adj_sum, without cancellation
    adj_mass = ((x - c[..., None, :]) * adj_sum).sum(axis=-1)
    return adj_x, adj_mass.reshape(-1, len(mass)).sum(axis=0)


def center_of_mass_mse_jvp(
    x: np.ndarray,
    mass: np.ndarray,
    target_com: np.ndarray,
    tan_x: np.ndarray,
    tan_mass: np.ndarray,
) -> float:
    """Push tangents forward through `adjsim.losses.center_of_mass_mse`.

    Parameters
    ----------
    x, tan_x : ndarray
        Positions (n_frames, n_nodes, 3) or (n_nodes, 3) and their tangent [m].
    mass, tan_mass : ndarray
        (n_nodes,) and their tangent [kg].
    target_com : ndarray
        (n_frames, 3) or (3,) [m].

    Returns
    -------
    float
        The tangent of the loss [m^2].

    Examples
    --------
    >>> from adjoint import center_of_mass_mse_jvp
    >>> x, mass = [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0]], [3.0, 1.0]
    >>> upwards = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    >>> print(round(center_of_mass_mse_jvp(x, mass, [0.0, 0.0, 0.0], upwards, [0.0, 0.0]), 6))
    0.666667
    """
    c = center_of_mass(x, mass)  # (1)
    tan_c = center_of_mass_jvp(x, mass, tan_x, tan_mass)
    d = c - checked_target_com(target_com, c)  # (2)
    return float(2 * (d * tan_c).mean())  # (3)


def center_of_mass_mse_vjp(
    x: np.ndarray, mass: np.ndarray, target_com: np.ndarray, adj: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Pull the cotangent of `adjsim.losses.center_of_mass_mse` back.

    Parameters
    ----------
    x : ndarray
        Positions (n_frames, n_nodes, 3) or (n_nodes, 3) [m].
    mass : ndarray
        (n_nodes,) [kg], positive.
    target_com : ndarray
        (n_frames, 3) or (3,) [m].
    adj : float
        Cotangent of the loss; 1 gives the gradient.

    Returns
    -------
    adj_x : ndarray
        The shape of `x` [m].
    adj_mass : ndarray
        (n_nodes,) [m^2/kg].

    Examples
    --------
    >>> from adjoint import center_of_mass_mse_vjp
    >>> x, mass = [[0.0, 0.0, 0.0], [0.0, 4.0, 0.0]], [3.0, 1.0]
    >>> adj_x, adj_mass = center_of_mass_mse_vjp(x, mass, [0.0, 0.0, 0.0])
    >>> print(adj_x, adj_mass)
    [[0.         0.5        0.        ]
     [0.         0.16666667 0.        ]] [-0.16666667  0.5       ]
    """
    c = center_of_mass(x, mass)  # (1) replayed
    d = c - checked_target_com(target_com, c)  # (2) replayed

    # (3) L = sum d^2 / N
    adj_d = 2 * adj / d.size * d
    # (2) d = c - target
    # (1) c = center_of_mass(x, mass)
    return center_of_mass_vjp(x, mass, adj_d)
