"""Which nodes of a body a table selects: those that are held, or muscles."""

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.declared import Held


ROUNDING = 1e-9  # of the body's diagonal, by which a place may be missed


def held_nodes(key: str, held: Held | None, points: np.ndarray, *, numbered: bool) -> np.ndarray:
    """Return the mask of the nodes that a table selects, (n_nodes,).

    `points` are the nodes in the world, (n_nodes, 3) [m]; `numbered` says whether they have the
    numbers of the body's mesh file.
    """
    mask = np.zeros(len(points), bool)
    if held is None:
        return mask
    low, high = points.min(axis=0), points.max(axis=0)
    near = ROUNDING * float(np.linalg.norm(high - low))
    if held.box is not None:
        lower, upper = np.asarray(held.box.lower), np.asarray(held.box.upper)
        mask |= np.all((points >= lower - near) & (points <= upper + near), axis=1)
    if held.plane is not None:
        normal = np.asarray(held.plane.normal)
        mask |= (points - held.plane.point) @ (normal / np.linalg.norm(normal)) <= near
    if held.ball is not None:
        distance = np.linalg.norm(points - held.ball.center, axis=1)
        mask |= distance <= held.ball.radius + near
    if held.nodes:
        _hold_numbers(key, held.nodes, mask, numbered=numbered)
    if not mask.any() or mask.all():
        body = ".".join(key.split(".")[:2])
        ends = (", ".join(f"{value:.4g}" for value in end) for end in (low, high))
        raise StudyError(
            f"`{key}` must select some nodes and leave some out, but it selects "
            f"{int(mask.sum())} of {len(mask)}. The body reaches from [{next(ends)}] to "
            f"[{next(ends)}] m in the world. If it should be smaller or larger, correct "
            f"`{body}.scale`: a file in millimetres needs 0.001."
        )
    return mask


def _hold_numbers(key: str, nodes: tuple[int, ...], mask: np.ndarray, *, numbered: bool) -> None:
    if not numbered:
        raise StudyError(
            f"`{key}.nodes` must be left out for a surface that is filled with tetrahedra, "
            "whose nodes have other numbers. Use a box, a plane or a ball."
        )
    outside = [node for node in nodes if not 0 <= node < len(mask)]
    if outside:
        raise StudyError(
            f"`{key}.nodes` must be numbers from 0 to {len(mask) - 1}, got {outside[0]}."
        )
    mask[list(nodes)] = True
