r"""Initial velocities of smoke as a sum of waves, and pictures as densities.

    u(x, y) = wind + sum over (a, b) of e_ab (p_ab cos f + q_ab sin f)
    f = 2 pi (a x / N_x + b y / N_y)
    e_ab = (k_y, -k_x)/|k|,   k = (sin 2 pi a/N_x, sin 2 pi b/N_y)

over one of each pair (a, b), (-a, -b) up to a largest number of waves along an edge. Every
wave shears across its own direction, so that the central-difference divergence of u is zero,
term by term, and its amplitude is a velocity in cells per step.

Tests: `tests/studies/test_smoke.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from studies.errors import StudyError
from studies.media import read_image


PICTURES = ("disc", "heart", "column", "layer")
HEART = 3.661972  # area of (x^2 + y^2 - 1)^3 < x^2 y^3
ASPECT = 3.0  # height of the column over its width
EDGE = 1.5  # width of soft edges [cells]


@dataclass(frozen=True, eq=False)
class Waves:
    """The linear map from amplitudes (n_waves, 2), (p, q) each, to a velocity (N_y, N_x, 2).

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the grid (N_y, N_x).
    largest : int
        Waves along an edge, at most: a and b reach from -largest to largest.
    numbers : ndarray
        (a, b) of each wave, (n_waves, 2), the longest waves first.
    """

    shape: tuple[int, int]
    largest: int
    numbers: np.ndarray = field(init=False)
    _across: np.ndarray = field(init=False)
    _along: tuple[np.ndarray, np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        n_y, n_x = self.shape
        if not 1 <= self.largest <= (min(self.shape) - 1) // 2:
            raise StudyError(
                f"`flow.waves` must be from 1 to {(min(self.shape) - 1) // 2}, so that a grid of "
                f"{n_y} x {n_x} cells can hold them, got {self.largest}."
            )
        around = range(-self.largest, self.largest + 1)
        half = [(a, b) for b in around for a in around if b > 0 or (b == 0 and a > 0)]
        numbers = np.array(sorted(half, key=lambda ab: (ab[0] ** 2 + ab[1] ** 2, ab)))
        k = np.sin(2.0 * np.pi * numbers / [n_x, n_y])
        object.__setattr__(self, "numbers", numbers)
        e = np.stack([k[:, 1], -k[:, 0]]) / np.linalg.norm(k, axis=1)
        object.__setattr__(self, "_across", e)
        along = (
            np.exp(2j * np.pi * np.outer(np.arange(n_y), numbers[:, 1]) / n_y),
            np.exp(2j * np.pi * np.outer(np.arange(n_x), numbers[:, 0]) / n_x),
        )
        object.__setattr__(self, "_along", along)

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return the velocity of amplitudes (n_waves, 2)."""
        rows, columns = self._along
        weights = self._across * (value[:, 0] - 1j * value[:, 1])  # Re w e^{if} = p cos f + q sin f
        return np.stack([((rows * w) @ columns.T).real for w in weights], axis=-1)

    def transpose(self, adj: np.ndarray) -> np.ndarray:
        """Return the cotangent of the amplitudes from that of the velocity."""
        rows, columns = self._along
        sums = [((rows.T @ adj[..., c]) * columns.T).sum(axis=1) for c in range(2)]
        both = (self._across * sums).sum(axis=0)
        return np.stack([both.real, both.imag], axis=-1)


@dataclass(frozen=True, eq=False)
class Everywhere:
    """The linear map from one velocity (2,) to that of all cells, (N_y, N_x, 2)."""

    shape: tuple[int, int]

    def apply(self, value: np.ndarray) -> np.ndarray:
        """Return the velocity in every cell."""
        return np.broadcast_to(value, (*self.shape, 2)).copy()

    def transpose(self, adj: np.ndarray) -> np.ndarray:
        """Return the sum over all cells."""
        return adj.sum(axis=(0, 1))


def picture(key: str, name: str, shape: tuple[int, int], area: float) -> np.ndarray:
    """Return a density (N_y, N_x) in [0, 1].

    Parameters
    ----------
    key : str
        The setting it comes from, for messages.
    name : str
        One of `PICTURES`, drawn to cover the part `area` of the grid; or a PNG file of the
        grid's size, whose mean of red, green and blue is the density.

    Raises
    ------
    StudyError
        If the name is neither, the file cannot be read, or is of another size.
    """
    if name in PICTURES:
        return drawn(name, shape, area)
    path = Path(name)
    if path.suffix.lower() != ".png":
        raise StudyError(
            f"`{key}` must be one of {', '.join(PICTURES)}, or name a .png file, got {name!r}."
        )
    try:
        image = read_image(path)
    except (FileNotFoundError, ValueError) as error:
        raise StudyError(f"`{key}`: {error}") from error
    if image.shape[:2] != shape:
        raise StudyError(
            f"`{key}` must have one pixel for each cell, {shape[0]} x {shape[1]}, got "
            f"{image.shape[0]} x {image.shape[1]} in {path}. Scale the picture, or set "
            "`smoke.rows` and `smoke.columns`."
        )
    return image[..., :3].mean(axis=-1)


def drawn(name: str, shape: tuple[int, int], area: float) -> np.ndarray:
    """Return a shape that covers the part `area` of the grid, with soft edges."""
    n_y, n_x = shape
    cells = area * n_y * n_x
    y, x = np.mgrid[:n_y, :n_x].astype(float)
    x, y = x - (n_x - 1) / 2.0, (n_y - 1) / 2.0 - y  # from the middle, y upwards [cells]
    if name == "layer":
        outside = y + n_y / 2.0 - area * n_y
    elif name == "column":
        half = np.sqrt(cells / ASPECT) / 2.0
        outside = np.maximum(np.abs(x) - half, np.abs(y) - ASPECT * half)
    elif name == "disc":
        outside = np.hypot(x, y) - np.sqrt(cells / np.pi)
    else:
        outside = _outside_heart(x, y, np.sqrt(cells / HEART))
    return np.clip(0.5 - outside / EDGE, 0.0, 1.0)


def _outside_heart(x: np.ndarray, y: np.ndarray, size: float) -> np.ndarray:
    """Return about the distance from the rim of a heart, positive outside [cells]."""
    x, y = x / size, y / size + 0.1  # 0.1: its middle is above its centre of mass
    f = np.cbrt((x * x + y * y - 1.0) ** 3 - x * x * y**3)
    d_y, d_x = np.gradient(f, 1.0 / size)
    return size * f / np.maximum(np.hypot(d_x, d_y), 0.5)
