r"""Depth films as observations: measured depths against drawn ones.

    r = rho(z - z_drawn)/error      where both are there, two pixels away from edges of either

rho is Huber's residual, as of clouds. The loss of a frame is the mean over the pixels that are
compared, which are frozen in the derivatives. It would be least where a body is out of sight. So
where less is compared than `LEAST` of what is drawn at the start, each pixel that is missing counts
as `HUBER` errors, in a last row of the frame, without a slope.

Rows are rho, 0, 0 [m], scaled so that a sum over a frame is that mean times the pixels that are
drawn at the start, and 1 where a pixel is compared, else 0; a target is 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.ndimage import binary_dilation, binary_opening, maximum_filter, minimum_filter

from adjoint.render.outputs import record_outputs
from adjsim.values import values_under
from render.blending import Hard
from render.outputs import rasterize_outputs
from render.scene import Scene
from render.soft_raster import SoftRasterizer
from studies.problem.clouds import HUBER, SHOWN, Rho
from studies.problem.observers import (
    Back,
    Moved,
    NumberObserver,
    ReachedResiduals,
    RecordedPrediction,
    Values,
)
from studies.problem.pixels import camera_names, rays
from studies.problem.steps import Sampling
from studies.runs.errors import StudyError


MARGIN = 2  # pixels about edges
JUMP = (
    0.05  # of the size of the bodies: neighbours that are further apart have an edge between them
)
LEAST = 0.5
LEAST_COMPARED = 16  # pixels of the first frame
WRONG_SCALE = 10.0
RASTERIZER = SoftRasterizer(blend=Hard())


def without_edges(z: np.ndarray, jump: float) -> np.ndarray:
    """Return where depths (n, H, W), NaN where nothing is, are away from edges, (n, H, W) bool.

    Around single pixels that are holes there is no edge.
    """
    is_there, around = np.isfinite(z), np.ones((1, 3, 3), bool)
    low = np.asarray(minimum_filter(np.where(is_there, z, np.inf), footprint=around))
    high = np.asarray(maximum_filter(np.where(is_there, z, -np.inf), footprint=around))
    is_edge = high - low >= 2.0 * jump
    is_edge |= np.asarray(binary_dilation(binary_opening(~is_there, around), around), bool)
    return is_there & ~np.asarray(binary_dilation(is_edge, around, iterations=MARGIN - 1), bool)


@dataclass(frozen=True, eq=False)
class DepthObserver(NumberObserver):
    """A depth film from a camera."""

    KIND, BY_FRAME = "depth film", "depths"

    depths: np.ndarray  # (n_frames, H, W) [m], NaN where nothing was measured
    scene: Scene
    begun: Mapping[str, np.ndarray]  # vertices of what is drawn at the start, (n_vertices, 3) [m]
    jump: float  # between neighbours, that is an edge [m]
    is_simulated: bool = False  # whether it is still to be simulated

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.depths.shape[1], self.depths.shape[2]

    @cached_property
    def is_measured(self) -> np.ndarray:
        """Where depths are measured, away from edges, (n_frames, H, W)."""
        return without_edges(self.depths, self.jump)

    @cached_property
    def count(self) -> int:
        """The number of pixels that are drawn at the start, away from edges."""
        z = self._drawn(self._at_start(1), {})
        return max(int(without_edges(z, self.jump).sum()), 1)

    def _scale(self, compared: np.ndarray) -> np.ndarray:
        """Return what takes rho to rows, by the number of pixels compared; (n_frames,) both."""
        return np.sqrt(self.count / np.maximum(compared, LEAST * self.count))

    def _at_start(self, n_frames: int) -> Moved:
        return {k: np.broadcast_to(x, (n_frames, *x.shape)) for k, x in self.begun.items()}

    def rows_per_frame(self) -> int:
        """Return the number of pixels, and 1 for what is missing."""
        return self.size[0] * self.size[1] + 1

    def targets(self) -> np.ndarray:
        """Return 0: what differences should be."""
        return np.zeros((len(self.times) * self.rows_per_frame(), 3))

    def still(self) -> np.ndarray:
        """Return the rows of bodies that stay where they begin: what there is to explain."""
        return self.shown(self._at_start(len(self.times)), {}).rows[:, :3]

    def fields(self, moved: Moved) -> Moved:
        return {name: moved[name] for name in self.begun}

    def _view(self, seen: Moved, values: Values) -> tuple[Scene, Any, SoftRasterizer, Moved]:
        vertices = {name: np.asarray(x, np.float64) - self.center for name, x in seen.items()}
        return self.scene, self.camera_at(values), RASTERIZER, vertices

    def _drawn(self, seen: Moved, values: Values) -> np.ndarray:
        """Return the depths that are drawn, (n_frames, H, W) [m], NaN where nothing is."""
        scene, camera, rasterizer, vertices = self._view(seen, values)
        drawn = rasterize_outputs(scene, camera, rasterizer, vertices, self.size, ["depth"])
        return _without_background(drawn["depth"], camera.far)

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the rows; of a film that is to be simulated, its depths."""
        if not self.is_simulated:
            return super().predict(moved, at, values)
        rows = np.zeros((len(self.times), self.rows_per_frame(), 4))
        z = self._drawn(self.seen(moved, at), values)
        rows[:, :-1, 0] = z.reshape(len(z), -1)
        return rows.reshape(-1, 4)

    def simulated(self, rows: np.ndarray) -> Self:
        z = rows[:, 0].reshape(len(self.times), -1)[:, :-1].reshape(self.depths.shape)
        return replace(self, depths=z, is_simulated=False)

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        scene, camera, rasterizer, vertices = self._view(seen, values)
        drawn = record_outputs(scene, camera, rasterizer, vertices, self.size, ["depth"])
        z = _without_background(drawn.images["depth"], camera.far)
        is_compared = self.is_measured & without_edges(z, self.jump)
        rho = Rho.of(np.where(is_compared, self.depths - z, 0.0), self.error)
        compared, least = is_compared.sum(axis=(1, 2)), LEAST * self.count
        scale = self._scale(compared)[:, None, None]
        slopes = np.where(is_compared, -scale * rho.slopes, 0.0)
        rows = np.zeros((len(z), self.rows_per_frame(), 4))
        rows[:, :-1, 0] = (scale * rho.values).reshape(len(z), -1)
        rows[:, :-1, 3] = is_compared.reshape(len(z), -1)
        rows[:, -1, 0] = HUBER * self.error * np.sqrt(np.maximum(least - compared, 0.0))

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            tangents = {f"{name}.vertices": x for name, x in tan.items() if name in self.begun}
            of_camera = values_under(self.camera_path, tan_values)
            tangents |= {f"camera.{name}": value for name, value in of_camera.items()}
            out = np.zeros(rows.shape)
            if tangents:
                pushed = slopes * drawn.jvp(tangents)["depth"]
                out[:, :-1, 0] = pushed.reshape(len(z), -1)
            return out.reshape(-1, 4)

        def vjp(adj_rows: np.ndarray) -> Back:
            adj = adj_rows.reshape(rows.shape)[:, :-1, 0].reshape(z.shape) * slopes
            values = {f"camera.{k}": f"{self.camera_path}.{k}" for k in camera_names(camera)}
            names = {f"{name}.vertices": name for name in self.begun}
            back = drawn.vjp({"depth": adj}, wrt=[*names, *values])
            by_path = {path: back[k] for k, path in values.items()}
            return {name: back[k] for k, name in names.items()}, by_path

        return RecordedPrediction(rows.reshape(-1, 4), jvp, vjp)

    def require_compared(self) -> None:
        """Raise if the first frame has no depths where the bodies are drawn, or far from theirs."""
        z, first = self._drawn(self._at_start(1), {}), self.depths[:1]
        both = np.isfinite(z) & np.isfinite(first)
        ratio = float(np.median(first[both] / z[both])) if both.any() else 1.0
        if not 1.0 / WRONG_SCALE < ratio < WRONG_SCALE:
            raise StudyError(
                f"`observations.{self.name}.scale`: depths of the first frame are {ratio:.3g} "
                "times those of the bodies as they are drawn. `scale` takes the file's numbers to "
                "metres: 0.001 of millimetres."
            )
        compared = int((self.is_measured[:1] & without_edges(z, self.jump)).sum())
        if compared < LEAST_COMPARED:
            raise StudyError(
                f"`observations.{self.name}`: only {compared} pixels of the first frame are both "
                f"measured and drawn, of {int(self.is_measured[0].sum())} measured and "
                f"{int(np.isfinite(z).sum())} drawn ones, away from edges. Check "
                f"`{self.camera_path}` and where the bodies are, or run `adjsim preview`."
            )

    # Residuals

    def _factor(self) -> float:
        """Return what scales each row: the mean is over the pixels that are drawn at the start."""
        return float(np.sqrt(self.weight / (self.count * len(self.times)))) / self.error

    def expected_noise(self, rows: np.ndarray) -> np.ndarray:
        """Return the variance of each residual, (m,): larger where fewer pixels are compared."""
        is_compared = rows[:, 3].reshape(len(self.times), -1)
        scale = self._scale(is_compared.sum(axis=1))[:, None]
        return np.square(self._factor() * self.error * scale * is_compared).ravel()

    def reached(self, rows: np.ndarray, count: int) -> ReachedResiduals:
        """Return which residuals may change: those of pixels that are compared."""
        there = np.flatnonzero(rows[:, 3])

        def vjp(adj_r: np.ndarray) -> np.ndarray:
            every = np.zeros(count)
            every[there] = adj_r
            return self.residuals_vjp(every)

        return ReachedResiduals(there, lambda tan: self._factor() * tan[there, 0], vjp)

    def over_surface(self, seen: Moved) -> dict[str, np.ndarray]:
        """Return the points that are compared, and the surface that is drawn, at a few times."""
        n = min(len(self.times), len(next(iter(seen.values()))))
        chosen = np.unique(np.linspace(0, n - 1, SHOWN).round().astype(int))
        seen = {name: np.asarray(x)[chosen] for name, x in seen.items()}
        z, drawn = self.depths[chosen], self._drawn(seen, {})
        mask = self.is_measured[chosen] & without_edges(drawn, self.jump)
        places = np.stack(np.meshgrid(*(np.arange(side) for side in self.size[::-1])), axis=-1)
        camera = self.camera_at({})
        ahead = rays(camera, places.astype(float), self.size)
        points = self.center + camera.pose()[0] + z[..., None] * ahead
        points = np.where(mask[..., None], points, np.nan).reshape(len(chosen), -1, 3)
        counts = np.cumsum([0, *(len(x) for x in self.begun.values())])
        faces = [
            np.asarray(self.scene.objects[name].faces) + first
            for name, first in zip(self.begun, counts, strict=False)
        ]
        return {
            "times": self.times[chosen], "points": points,
            "distances": np.where(mask, drawn - z, 0.0).reshape(len(chosen), -1),
            "vertices": np.concatenate(list(seen.values()), axis=1),
            "faces": np.concatenate(faces),
        }  # fmt: skip


def _without_background(z: np.ndarray, far: float) -> np.ndarray:
    return np.where(z < (1.0 - 1e-6) * far, z, np.nan)
