r"""Tangent and adjoint of `render/shape_losses.py`: read the two files side by side.

    Laplacian            adj_x = 2/n L^T delta
    EdgeLength           adj_e = 2/n (l - l_0) e/l
    NormalConsistency    adj_m_1 = -(m_2 - m_1 (m_1.m_2)/|m_1|^2)/(n |m_1| |m_2|), and in turn

Where it is not smooth: an edge of length 0 has no direction; its slope is taken as 0.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from adjsim import checks
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency, ShapeLoss, norms


def shape_loss_jvp(loss: ShapeLoss, x: Any, tan_x: Any) -> float:
    """Push a tangent of the vertices forward to that of the loss.

    Parameters
    ----------
    loss : Laplacian, EdgeLength or NormalConsistency
    x, tan_x : array_like
        Vertices and their tangent, (n_vertices, 3) or (n_frames, n_vertices, 3) [m].

    Returns
    -------
    float
        The derivative of loss(x + s tan_x) by s at s = 0.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    frames = loss.checked(x)
    tangents = checks.array("tan_x", tan_x, np.shape(x)).reshape(frames.shape)
    push = TWINS[type(loss)][0]
    pushed = [push(loss, frame, tangent) for frame, tangent in zip(frames, tangents, strict=True)]
    return sum(pushed, start=0.0) / len(frames)


def shape_loss_vjp(loss: ShapeLoss, x: Any, adj: float = 1.0) -> np.ndarray:
    """Pull the cotangent of the loss back to the vertices.

    Parameters
    ----------
    loss : Laplacian, EdgeLength or NormalConsistency
    x : array_like
        Vertices, (n_vertices, 3) or (n_frames, n_vertices, 3) [m].
    adj : float
        Cotangent of the loss; 1 gives the gradient.

    Returns
    -------
    ndarray
        adj_x, of the shape of `x`.

    Raises
    ------
    ValueError
        If the shape does not fit.
    """
    frames = loss.checked(x)
    pull = TWINS[type(loss)][1]
    return np.stack([pull(loss, frame, adj / len(frames)) for frame in frames]).reshape(np.shape(x))


def laplacian_jvp(loss: Laplacian, x: np.ndarray, tan_x: np.ndarray) -> float:
    """Tangent of one frame."""
    delta = loss.matrix @ x[: loss.n_reached]
    tan_delta = loss.matrix @ tan_x[: loss.n_reached]  # (1)
    return float(2.0 * (delta * tan_delta).sum() / loss.n_used)  # (2)


def laplacian_vjp(loss: Laplacian, x: np.ndarray, adj: float) -> np.ndarray:
    """Adjoint of one frame."""
    delta = loss.matrix @ x[: loss.n_reached]  # (1) replayed

    # (2) mean of |delta|^2
    adj_delta = 2.0 * adj / loss.n_used * delta

    # (1) delta = L x
    adj_x = np.zeros_like(x)
    adj_x[: loss.n_reached] = loss.matrix.T @ adj_delta
    return adj_x


def edge_length_jvp(loss: EdgeLength, x: np.ndarray, tan_x: np.ndarray) -> float:
    """Tangent of one frame."""
    i, j = loss.ends.T
    e, tan_e = x[j] - x[i], tan_x[j] - tan_x[i]  # (1)
    l = norms(e)
    tan_l = (directions(e, l) * tan_e).sum(axis=1)  # (2)
    return float((2.0 * (l - loss.length) * tan_l).mean())  # (3)


def edge_length_vjp(loss: EdgeLength, x: np.ndarray, adj: float) -> np.ndarray:
    """Adjoint of one frame."""
    i, j = loss.ends.T
    e = x[j] - x[i]  # (1) replayed
    l = norms(e)  # (2) replayed

    # (3) mean of (l - l_0)^2
    adj_l = 2.0 * adj / len(l) * (l - loss.length)

    # (2) l = |e|
    adj_e = adj_l[:, None] * directions(e, l)

    # (1) e = x_j - x_i
    adj_x = np.zeros_like(x)
    np.add.at(adj_x, j, adj_e)
    np.subtract.at(adj_x, i, adj_e)
    return adj_x


def directions(e: np.ndarray, l: np.ndarray) -> np.ndarray:
    """Return e/l, 0 where l is 0."""
    return e / np.where(l > 0.0, l, 1.0)[:, None]


def normal_consistency_jvp(loss: NormalConsistency, x: np.ndarray, tan_x: np.ndarray) -> float:
    """Tangent of one frame."""
    m_1, m_2 = loss.normals(x)
    x_1, x_2, x_3, x_4 = (x[loss.hinges[:, k]] for k in range(4))
    t_1, t_2, t_3, t_4 = (tan_x[loss.hinges[:, k]] for k in range(4))
    tan_m_1 = np.cross(t_1 - t_3, x_1 - x_4) + np.cross(x_1 - x_3, t_1 - t_4)  # (1)
    tan_m_2 = np.cross(t_2 - t_4, x_2 - x_3) + np.cross(x_2 - x_4, t_2 - t_3)
    slope_1, slope_2 = cosine_slopes(m_1, m_2)
    tan_cos = (slope_1 * tan_m_1 + slope_2 * tan_m_2).sum(axis=1)  # (2), (3)
    return float(-tan_cos.mean())  # (4)


def cosine_slopes(m_1: np.ndarray, m_2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of cos = m_1.m_2/(|m_1| |m_2|) to m_1 and m_2, (n, 3) each."""
    square_1, square_2 = np.square(m_1).sum(axis=1), np.square(m_2).sum(axis=1)
    product = (m_1 * m_2).sum(axis=1)
    scale = 1.0 / np.sqrt(square_1 * square_2)
    slope_1 = scale[:, None] * (m_2 - (product / square_1)[:, None] * m_1)
    slope_2 = scale[:, None] * (m_1 - (product / square_2)[:, None] * m_2)
    return slope_1, slope_2


def normal_consistency_vjp(loss: NormalConsistency, x: np.ndarray, adj: float) -> np.ndarray:
    """Adjoint of one frame."""
    m_1, m_2 = loss.normals(x)  # (1) replayed

    # (4) mean of 1 - cos
    adj_cos = -adj / len(m_1)

    # (3), (2) cos = m_1.m_2/(|m_1| |m_2|)
    slope_1, slope_2 = cosine_slopes(m_1, m_2)
    adj_m_1, adj_m_2 = adj_cos * slope_1, adj_cos * slope_2

    # (1) m_2 = (x_2 - x_4) x (x_2 - x_3), m_1 = (x_1 - x_3) x (x_1 - x_4)
    x_1, x_2, x_3, x_4 = (x[loss.hinges[:, k]] for k in range(4))
    a_2, b_2 = np.cross(x_2 - x_3, adj_m_2), np.cross(adj_m_2, x_2 - x_4)
    a_1, b_1 = np.cross(x_1 - x_4, adj_m_1), np.cross(adj_m_1, x_1 - x_3)
    adj_x = np.zeros_like(x)
    for k, adj_corner in enumerate((a_1 + b_1, a_2 + b_2, -a_1 - b_2, -b_1 - a_2)):
        np.add.at(adj_x, loss.hinges[:, k], adj_corner)
    return adj_x


TWINS: dict[type, tuple[Callable[..., float], Callable[..., np.ndarray]]] = {
    Laplacian: (laplacian_jvp, laplacian_vjp),
    EdgeLength: (edge_length_jvp, edge_length_vjp),
    NormalConsistency: (normal_consistency_jvp, normal_consistency_vjp),
}
