"""A film of smoke as an observer: its density is the picture, one pixel for each cell."""

from dataclasses import dataclass, replace

import numpy as np

from adjoint.render.losses import residuals_jvp, residuals_vjp
from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from render.losses import Mse, PyramidMse, residuals
from render.smoke import smoke_images
from studies.errors import StudyError
from studies.observations.films import FilmData
from studies.problem.observers import SEEN, Cotangents, Moved, Observer, Recorded, Values
from studies.problem.sampling import Sampling
from studies.scene import declared


WHITE = (1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class SmokeObserver(Observer):
    """A film of white smoke over a colour.

    Attributes
    ----------
    frames : numpy.ndarray
        (n_frames, H, W, 3), as large as the grid.
    background : numpy.ndarray
        (3,).
    levels : int
        Of the pyramid; 1: none.
    first : numpy.ndarray
        First frame of the whole film.
    """

    KIND = "film of smoke"

    frames: np.ndarray
    background: np.ndarray
    levels: int
    first: np.ndarray

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels]."""
        return self.frames.shape[1], self.frames.shape[2]

    def targets(self) -> np.ndarray:
        """Return the pixels in RGB, (n_frames H W, 3)."""
        return self.frames.reshape(-1, 3)

    def still(self) -> np.ndarray:
        """Return the pixels of the first frame at every frame."""
        return np.broadcast_to(self.first, self.frames.shape).reshape(-1, 3)

    def between(self, keep: np.ndarray) -> "SmokeObserver":
        """Return the film of the frames of this mask only."""
        return replace(
            self, frames=self.frames[keep], times=self.times[keep], index=self.index[keep]
        )

    def as_images(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as images, (n_frames, H, W, 3 or 4)."""
        return rows.reshape(-1, *self.size, rows.shape[-1])

    def record(self, moved: Moved, at: Sampling, values: Values) -> "RecordedSmoke":
        """Draw the film."""
        del values
        assert moved.density is not None
        images = smoke_images(at.at(moved.density), WHITE, self.background)
        return RecordedSmoke(self, moved, at, images.reshape(-1, 4))

    @property
    def _loss(self) -> Mse | PyramidMse:
        return Mse() if self.levels == 1 else PyramidMse(self.levels)

    @property
    def _scale(self) -> float:
        return float(np.sqrt(self.weight)) / SEEN

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r of the pyramid, frame after frame."""
        return self._scale * residuals(self._loss, self.as_images(rows), self.frames)

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r."""
        tangent = self.as_images(tan_rows)
        return self._scale * residuals_jvp(self._loss, tangent, self.frames, tangent)

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the pixels."""
        blank = np.zeros((*self.frames.shape[:-1], 4), self.frames.dtype)
        return residuals_vjp(self._loss, blank, self.frames, self._scale * adj_r).reshape(-1, 4)

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return weight times the mean square of the difference by frame, over SEEN^2."""
        off = self.as_images(rows[:, :3] - other[:, :3])
        return self.weight / SEEN**2 * np.square(off, dtype=np.float64).mean(axis=(1, 2, 3))


@dataclass(frozen=True, eq=False)
class RecordedSmoke(Recorded):
    """A film of smoke that was drawn."""

    film: SmokeObserver
    moved: Moved
    at: Sampling
    drawn: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """The pixels, (n_frames H W, 4)."""
        return self.drawn

    def jvp(self, tan: Moved | None, tan_values: Values) -> np.ndarray:
        """Return the tangent of the pixels."""
        film, density = self.film, self.moved.density
        assert density is not None
        tangent = np.zeros((len(film.times), *density.shape[1:]))
        if tan is not None and tan.density is not None:
            tangent += self.at.at(tan.density)
        if (shift := tan_values.get(film.start_path)) is not None:
            tangent += float(shift) * self.at.slope(density)
        return smoke_images_jvp(tangent, WHITE, film.background).reshape(-1, 4)

    def vjp(self, adj_rows: np.ndarray) -> Cotangents:
        """Pull the cotangent of the pixels back to the density."""
        film, density = self.film, self.moved.density
        assert density is not None
        adj = smoke_images_vjp(film.as_images(adj_rows), WHITE, film.background)
        slope = np.asarray(np.sum(adj * self.at.slope(density)))
        return Cotangents(
            density=self.at.spread(adj, len(density)), values={film.start_path: slope}
        )


def smoke_observer(
    name: str, one: declared.Film, data: FilmData, *, grid: tuple[int, int], levels: int
) -> SmokeObserver:
    """Return a film of smoke as an observer.

    Raises
    ------
    StudyError
        If the film is not as large as the grid.
    """
    if data.size != grid:
        raise StudyError(
            f"`observations.{name}.video` must be as large as the picture of the smoke's density, "
            f"{grid[0]} x {grid[1]} (height x width), got {data.size[0]} x {data.size[1]} after "
            "`downsample`."
        )
    background = np.asarray(one.background.color or (0.0, 0.0, 0.0))
    index = np.arange(len(data.times))
    return SmokeObserver(
        name, one.weight, data.times, one.start, index, data.frames, background, levels,
        data.frames[0],
    )  # fmt: skip
