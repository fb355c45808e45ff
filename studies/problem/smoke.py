"""A film of smoke as an observer: its density is the picture, one pixel for each cell."""

from dataclasses import dataclass

import numpy as np

from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from render.smoke import smoke_images
from studies.problem.films import PictureObserver
from studies.problem.observations.films import FilmData
from studies.problem.observers import Cotangents, Moved, Recorded, Values
from studies.problem.sampling import Sampling
from studies.runs.errors import StudyError
from studies.scene import declared


WHITE = (1.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class SmokeObserver(PictureObserver):
    """A film of white smoke over a colour, its frames as large as the grid."""

    KIND = "film of smoke"

    background: np.ndarray  # (3,)

    def record(self, moved: Moved, at: Sampling, values: Values) -> "RecordedSmoke":
        """Draw the film."""
        del values
        assert moved.density is not None
        images = smoke_images(at.at(moved.density), WHITE, self.background)
        return RecordedSmoke(moved, at, images.reshape(-1, 4), self)


@dataclass(frozen=True, eq=False)
class RecordedSmoke(Recorded):
    """A film of smoke that was drawn."""

    film: SmokeObserver

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
    """Return a film of smoke as an observer."""
    if data.size != grid:
        raise StudyError(
            f"`observations.{name}.video` must be as large as the picture of the smoke's density, "
            f"{grid[0]} x {grid[1]} (height x width), got {data.size[0]} x {data.size[1]} after "
            "`downsample`."
        )
    background = np.asarray(one.background.color or (0.0, 0.0, 0.0))
    index = np.arange(len(data.times))
    return SmokeObserver(
        name, one.weight, data.times, one.start, index, data.frames, levels, data.frames[0],
        background,
    )  # fmt: skip
