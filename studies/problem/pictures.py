"""Pictures as observations: compared over a pyramid, with tangent and cotangent."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from adjoint.render.losses import residuals_jvp, residuals_vjp
from adjoint.render.pyramid_boxes import box_residuals_vjp
from adjsim.jit.device_arrays import beside
from adjsim.jit.devices import module_of
from render.losses import Mse, PyramidMse, difference, residuals
from render.pyramid_boxes import boxes_around
from studies.optimizers.jacobian import Jacobian
from studies.problem.observers import SEEN, Observer, ReachedResiduals
from studies.runs.media import hatched


@dataclass(frozen=True, eq=False)
class PictureObserver(Observer):
    """What is compared picture by picture, over a pyramid."""

    BY_FRAME, IS_PICTURE = "frames", True

    frames: np.ndarray  # (n_frames, H, W, 3)
    levels: int  # of the pyramid; 1: none
    first: np.ndarray  # first frame of the whole film, (H, W, 3)
    # weight of one of them relative to the next finer one
    growth: float = field(default=1.0, kw_only=True)
    # what is not compared, (H, W) of truth values
    ignored: np.ndarray | None = field(default=None, kw_only=True)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.frames.shape[1], self.frames.shape[2]

    def targets(self) -> np.ndarray:
        """Return the pixels in RGB, (n_frames H W, 3)."""
        return self.frames.reshape(-1, 3)

    def still(self) -> np.ndarray:
        """Return the pixels of the first frame of the whole film, at every frame."""
        return np.broadcast_to(self.first, self.frames.shape).reshape(-1, 3)

    def simulated(self, rows: np.ndarray) -> Self:
        return self.of_frames(rows[:, :3].reshape(self.frames.shape))

    def of_frames(self, frames: np.ndarray) -> Self:
        """Return the film of other frames, (n_frames, H, W, 3)."""
        return replace(self, frames=frames, first=frames[0])

    def as_images(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1, *self.size, rows.shape[-1])

    @property
    def loss(self) -> Mse | PyramidMse:
        """The loss of images, before it is weighted."""
        return Mse() if self.levels == 1 else PyramidMse(self.levels, self.growth)

    @property
    def part_compared(self) -> float:
        """The part of the pixels that is compared."""
        return 1.0 if self.ignored is None else 1.0 - float(self.ignored.mean())

    def where_compared(self, images: Any, other: Any = 0.0) -> Any:
        """Return images (n_frames, H, W, k), with those of others where they are not compared."""
        if self.ignored is None:
            return images
        ignored = beside(self.ignored, images)[..., None]
        other = beside(other, images) if np.ndim(other) else other
        return (~ignored * images + ignored * other).astype(images.dtype)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.weight / self.part_compared)) / SEEN

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        images = self.where_compared(self.as_images(rows)[..., :3], self.frames)
        r = residuals(self.loss, images, self.frames)
        r *= self._scale
        return r

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        tangent = self.where_compared(self.as_images(tan_rows))
        tan_r = residuals_jvp(self.loss, tangent, self.frames, tangent)
        tan_r *= self._scale
        return tan_r

    def residuals_near(self, mask: np.ndarray, dtype: np.dtype) -> ReachedResiduals:
        """Return the residuals that see a pixel of a mask (n_frames, H, W)."""
        boxes = boxes_around(mask, self.loss, 3, dtype)

        def jvp(tan_rows: np.ndarray) -> np.ndarray:
            tangent = self.where_compared(self.as_images(tan_rows)[..., :3])
            return self._scale * boxes.residuals(tangent)

        def vjp(adj_r: np.ndarray) -> np.ndarray:
            adj = np.zeros((*mask.shape, 4), adj_r.dtype)
            box_residuals_vjp(boxes, self._scale * adj_r, adj[..., :3])
            return self.where_compared(adj).reshape(-1, 4)

        return ReachedResiduals(boxes.rows, jvp, vjp)

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        shape = (*self.frames.shape[:-1], 4)
        xp = module_of(adj_r)
        blank = xp.broadcast_to(xp.zeros((), self.frames.dtype), shape)
        adj = residuals_vjp(self.loss, blank, self.frames, adj_r)
        adj *= self._scale
        return self.where_compared(adj).reshape(-1, 4)

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return weight times the mean square of the difference in RGB by frame, over SEEN^2."""
        pairs = zip(self.as_images(rows), self.as_images(other[:, :3]), strict=True)
        offs = (self.where_compared(difference(a[..., :3], b)) for a, b in pairs)  # frame by frame
        mean = np.array([np.square(off, dtype=np.float64).mean() for off in offs])
        return self.weight / SEEN**2 * mean / self.part_compared

    def mean(self) -> np.ndarray:
        """Return the mean of the colours that are compared, at every pixel."""
        rows = self.targets()
        compared = rows if self.ignored is None else self.frames[:, ~self.ignored].reshape(-1, 3)
        return np.broadcast_to(compared.mean(axis=0), rows.shape)

    def frames_compared(self, rows: np.ndarray, begun: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return `target`, and the pictures of two predictions, `fitted` and at the `start`.

        All are of float32; those of the start are 0 where they are None. They may go on for longer:
        an answer may rest on the first frames alone.
        """
        fitted = self.as_images(rows).astype(np.float32)
        # a copy: its pixels are written
        start = np.zeros_like(fitted)
        if begun is not None:
            start[:] = self.as_images(begun)[: len(start)]
        for pictures in (fitted, start):
            pictures[..., :3] = hatched(pictures[..., :3], self.ignored)
        target = hatched(self.frames, self.ignored).astype(np.float32)
        return {"times": self.times, "target": target, "fitted": fitted, "start": start}

    def facts(self) -> dict[str, Any]:
        return {"frames": len(self.times), "size": list(self.size)}

    def noise(self, rows: np.ndarray, r: np.ndarray, n_parameters: int) -> float:
        """Return the variance of a pixel; those that are not compared do not count."""
        apart = difference(self.as_images(rows)[..., :3], self.frames)
        off = self.where_compared(apart).ravel()
        return float(off @ off) / max(self.part_compared * off.size - n_parameters, 1.0)

    def information(self, J: Jacobian, variance: float | np.ndarray) -> np.ndarray:
        """Return variance (A^T J)^T (A^T J), (p, p), of the residuals A d of pixels d."""
        n_frames, total = len(self.times), np.zeros((J.shape[1], J.shape[1]))
        count = len(J) // n_frames
        # The A of a single frame, since its mean is over that frame alone
        first = self.between(np.arange(n_frames) == 0)
        for k in range(n_frames):
            of_frame = J[k * count : (k + 1) * count]
            stored = np.zeros(count)
            stored[of_frame.rows] = 1.0
            is_seen = first.residuals_vjp(stored)[:, 0] > 0.0  # by residuals that are stored
            near = first.residuals_near(is_seen.reshape(1, *self.size), stored.dtype)
            columns = (near.vjp((of_frame @ axis)[near.rows]) for axis in np.eye(J.shape[1]))
            pulled = np.stack([adj[is_seen, :3].ravel() for adj in columns])
            total += pulled @ pulled.T
        return variance * (total / n_frames)
