"""Tetrahedral meshes from .tet files, which neither VTK nor meshio reads.

Lines of a word and its numbers, as simulators of soft bodies write them:

    v x y z        a point
    t a b c d      a tetrahedron, by its points counted from 0; numbers after these are left out

Lines that begin with # and empty ones are left out; so are lines of other words, such as faces.

Tests: `tests/meshes/test_tet_files.py`.
"""

from pathlib import Path

import numpy as np


COUNTS = {"v": (3, "three coordinates"), "t": (4, "four numbers of points, from 0")}


def read_tet_file(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) and tetrahedra (n, 4) of a .tet file.

    Raise a ValueError if a line is damaged, with its number, or if there are no tetrahedra.
    """
    rows: dict[str, list[list[float]]] = {"v": [], "t": []}
    for at, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        word, *rest = line.split("#")[0].split() or [""]
        if word in rows:
            rows[word].append(_numbers(path, at, word, rest))
    points, tets = np.array(rows["v"], float), np.array(rows["t"])
    if not len(tets) or not len(points):
        raise ValueError(
            f"`mesh`: {path} has {len(points)} points (lines `v x y z`) and {len(tets)} tetrahedra "
            "(lines `t a b c d`): it is of another kind, or empty."
        )
    if tets.max() >= len(points):
        raise ValueError(
            f"`mesh`: {path} has {len(points)} points, counted from 0, but a tetrahedron names "
            f"point {int(tets.max())}."
        )
    return points, tets.astype(np.int64)


def _numbers(path: Path, at: int, word: str, given: list[str]) -> list[float]:
    """Return the numbers of a line."""
    count, wanted = COUNTS[word]
    try:
        numbers = [float(text) if word == "v" else int(text) for text in given[:count]]
    except ValueError:
        numbers = []
    if len(numbers) < count or not np.isfinite(numbers).all() or (word == "t" and min(numbers) < 0):
        raise ValueError(
            f"`mesh`: {path}, line {at}: `{word}` must be followed by {wanted}, got "
            f"{' '.join(given)!r}."
        )
    return numbers
