r"""Smoke: pictures as the start of a periodic grid. Alone in a scene, and drawn by its density.

The values "B.density" (n_rows, n_columns) [-] and "B.velocity" (n_rows, n_columns, 2)
[cells per step] are arrays; a wind "B.wind" (2,) and waves "B.waves" (n_waves, 2) add to the
velocity, which have no divergence:

    u(x, y) = wind + sum over (a, b) of e_ab (p_ab cos f + q_ab sin f)
    f = 2 pi (a x / N_x + b y / N_y)
    e_ab = (k_y, -k_x)/|k|,   k = (sin 2 pi a/N_x, sin 2 pi b/N_y)

over one of each pair (a, b), (-a, -b) up to a largest number of waves along an edge. Every
wave shears across its own direction, so that the central-difference divergence of u is zero,
term by term, and its amplitude is a velocity in cells per step.
"""

from pathlib import Path
from typing import Any

import numpy as np

from adjsim.reduced.smoke import Smoke as SmokeSystem, SmokeState
from render.textured_files import read_texture
from studies.runs.errors import StudyError
from studies.scene.declared import Smoke
from studies.scene.maps import Arrays, ParameterMap, Scaled, Value
from studies.scene.mesh_source import tried


VELOCITY = "state.velocity"
FASTEST = 5.0  # cells per step, by default


def make_smoke(
    name: str, body: Smoke
) -> tuple[SmokeSystem, SmokeState, dict[str, Value], list[ParameterMap]]:
    """Return the system, its state, its values and maps."""
    key = f"bodies.{name}"
    picture = tried(f"{key}.density", lambda: read_texture(body.density))
    density = np.asarray(picture.texels).mean(axis=2)
    velocity = np.zeros((*density.shape, 2))
    if body.velocity is not None:
        path, shape = Path(body.velocity), velocity.shape
        if not path.is_file():
            raise StudyError(f"`{key}.velocity`: there is no file {path}.")
        velocity = tried(f"{key}.velocity", lambda: np.load(path, allow_pickle=False))
        if not isinstance(velocity, np.ndarray) or velocity.shape != shape:
            got = getattr(velocity, "shape", "an archive")
            raise StudyError(
                f"`{key}.velocity`: {path} must have the shape (rows, columns, 2) = {shape} of the "
                f"picture, got {got}."
            )
        velocity = velocity.astype(np.float64)
    system = tried(f"{key}.density", lambda: SmokeSystem(density.shape))
    values = {
        f"{name}.density": Value(density, "-", "linear", (0.0, 1.0)),
        f"{name}.velocity": Value(velocity, "cells/step", "linear", (-FASTEST, FASTEST)),
    }
    maps: list[ParameterMap] = [
        Scaled(f"{name}.{which}", {f"state.{which}": 1.0}) for which in ("density", "velocity")
    ]
    if body.waves:
        flow = Waves(name, density.shape, body.waves)
        starts = {flow.wind: np.zeros(2), flow.waves: np.zeros((len(flow.numbers), 2))}
        for path, start in starts.items():
            values[path] = Value(start, "cells/step", "linear", (-FASTEST, FASTEST))
        maps.append(flow)
    return system, SmokeState(velocity, density), values, maps


class Waves(ParameterMap):
    """From a wind (2,) and amplitudes (n_waves, 2), (p, q) each, to a velocity (N_y, N_x, 2).

    There are up to `largest` waves along an edge of the grid: a and b reach from -largest to
    largest. `numbers` are (a, b) of each wave, (n_waves, 2), the longest waves first.
    """

    targets = (VELOCITY,)

    def __init__(self, name: str, shape: tuple[int, int], largest: int) -> None:
        self.wind, self.waves = self.sources = (f"{name}.wind", f"{name}.waves")
        self.shape = n_y, n_x = shape
        if largest > (most := (min(shape) - 1) // 2):
            raise StudyError(
                f"`bodies.{name}.waves` must be up to {most}, so that a grid of {n_y} x {n_x} "
                f"cells can hold them, got {largest}."
            )
        around = range(-largest, largest + 1)
        half = [(a, b) for b in around for a in around if b > 0 or (b == 0 and a > 0)]
        self.numbers = np.array(sorted(half, key=lambda ab: (ab[0] ** 2 + ab[1] ** 2, ab)))
        k = np.sin(2.0 * np.pi * self.numbers / [n_x, n_y])
        self._across = np.stack([k[:, 1], -k[:, 0]]) / np.linalg.norm(k, axis=1)
        self._along = (
            np.exp(2j * np.pi * np.outer(np.arange(n_y), self.numbers[:, 1]) / n_y),
            np.exp(2j * np.pi * np.outer(np.arange(n_x), self.numbers[:, 0]) / n_x),
        )

    def values(self, sources: Arrays) -> dict[str, np.ndarray]:
        """Return the velocity of wind and waves; missing ones are zero."""
        p, q = np.asarray(sources.get(self.waves, np.zeros((len(self.numbers), 2)))).T
        rows, columns = self._along
        weights = self._across * (p - 1j * q)  # Re w e^{if} = p cos f + q sin f
        flow = np.stack([((rows * w) @ columns.T).real for w in weights], axis=-1)
        return {VELOCITY: flow + sources.get(self.wind, np.zeros(2))}

    def vjp(self, sources: Arrays, adjoints: Arrays) -> dict[str, np.ndarray]:
        adj: Any = adjoints.get(VELOCITY, np.zeros((*self.shape, 2)))
        rows, columns = self._along
        sums = [((rows.T @ adj[..., c]) * columns.T).sum(axis=1) for c in range(2)]
        both = (self._across * sums).sum(axis=0)
        waves = np.stack([both.real, both.imag], axis=-1)
        return {self.wind: adj.sum(axis=(0, 1)), self.waves: waves}
