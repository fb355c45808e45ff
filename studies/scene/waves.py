r"""Initial velocities of smoke as a sum of waves that have no divergence.

    u(x, y) = wind + sum over (a, b) of e_ab (p_ab cos f + q_ab sin f)
    f = 2 pi (a x / N_x + b y / N_y)
    e_ab = (k_y, -k_x)/|k|,   k = (sin 2 pi a/N_x, sin 2 pi b/N_y)

over one of each pair (a, b), (-a, -b) up to a largest number of waves along an edge. Every
wave shears across its own direction, so that the central-difference divergence of u is zero,
term by term, and its amplitude is a velocity in cells per step.

Tests: `tests/studies/scene/test_waves.py`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies.runs.errors import StudyError
from studies.scene.maps import Arrays, ParameterMap


TARGET = "state.velocity"


@dataclass(frozen=True, eq=False)
class Waves(ParameterMap):
    """From a wind (2,) and amplitudes (n_waves, 2), (p, q) each, to a velocity (N_y, N_x, 2)."""

    wind: str  # paths of the two values
    waves: str
    shape: tuple[int, int]  # rows and columns of the grid (N_y, N_x)
    largest: int  # waves along an edge, at most: a and b reach from -largest to largest
    # (a, b) of each wave, (n_waves, 2), the longest waves first.
    numbers: np.ndarray = field(init=False)
    _across: np.ndarray = field(init=False)
    _along: tuple[np.ndarray, np.ndarray] = field(init=False)

    targets = (TARGET,)

    def __post_init__(self) -> None:
        n_y, n_x = self.shape
        if self.largest > (most := (min(self.shape) - 1) // 2):
            owner = self.waves.rpartition(".")[0]
            raise StudyError(
                f"`bodies.{owner}.waves` must be up to {most}, so that a grid of {n_y} x {n_x} "
                f"cells can hold them, got {self.largest}."
            )
        around = range(-self.largest, self.largest + 1)
        half = [(a, b) for b in around for a in around if b > 0 or (b == 0 and a > 0)]
        numbers = np.array(sorted(half, key=lambda ab: (ab[0] ** 2 + ab[1] ** 2, ab)))
        k = np.sin(2.0 * np.pi * numbers / [n_x, n_y])
        e = np.stack([k[:, 1], -k[:, 0]]) / np.linalg.norm(k, axis=1)
        along = (
            np.exp(2j * np.pi * np.outer(np.arange(n_y), numbers[:, 1]) / n_y),
            np.exp(2j * np.pi * np.outer(np.arange(n_x), numbers[:, 0]) / n_x),
        )
        for name, value in (("numbers", numbers), ("_across", e), ("_along", along)):
            object.__setattr__(self, name, value)

    @property
    def sources(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Wind and waves."""
        return (self.wind, self.waves)

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the velocity of wind and waves; missing ones are zero."""
        p, q = np.asarray(sources.get(self.waves, np.zeros((len(self.numbers), 2)))).T
        rows, columns = self._along
        weights = self._across * (p - 1j * q)  # Re w e^{if} = p cos f + q sin f
        flow = np.stack([((rows * w) @ columns.T).real for w in weights], axis=-1)
        return {TARGET: flow + sources.get(self.wind, np.zeros(2))}

    def jvp(self, sources: Arrays, tangents: Arrays) -> dict[str, np.ndarray]:
        """Return the tangent: the map is linear."""
        del sources
        return self.values(tangents)

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        """Return the cotangents of wind and waves from that of the velocity."""
        del sources
        adj: Any = adjoints.get(TARGET, np.zeros((*self.shape, 2)))
        rows, columns = self._along
        sums = [((rows.T @ adj[..., c]) * columns.T).sum(axis=1) for c in range(2)]
        both = (self._across * sums).sum(axis=0)
        waves = np.stack([both.real, both.imag], axis=-1)
        return {self.wind: adj.sum(axis=(0, 1)), self.waves: waves}
