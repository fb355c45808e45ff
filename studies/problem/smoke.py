"""Films of smoke as observations, its density white over a colour, with tangent and cotangent."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjoint.render.smoke import smoke_images_jvp, smoke_images_vjp
from render.smoke import smoke_images
from studies.problem.film_pages import ROWS, PageFilm, until
from studies.problem.observers import DENSITY, Back, Moved, RecordedPrediction, Values
from studies.problem.pictures import PictureObserver
from studies.runs.media import as_uint8, hatched, magnified


WHITE = (1.0, 1.0, 1.0)  # smoke


@dataclass(frozen=True, eq=False)
class SmokeObserver(PictureObserver):
    """A film of white smoke over a colour, its frames as large as the grid."""

    KIND = "film of smoke"

    background: np.ndarray  # (3,)

    def fields(self, moved: Moved) -> Moved:
        return {DENSITY: moved[DENSITY]}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        density = seen[DENSITY]

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            del tan_values
            tangent = tan.get(DENSITY, np.zeros_like(density))
            return smoke_images_jvp(tangent, WHITE, self.background).reshape(-1, 4)

        def vjp(adj_rows: np.ndarray) -> Back:
            return {DENSITY: smoke_images_vjp(self.as_images(adj_rows), WHITE, self.background)}, {}

        return RecordedPrediction(
            smoke_images(density, WHITE, self.background).reshape(-1, 4), jvp, vjp
        )

    def silhouette(self) -> np.ndarray:
        """Return the density in the last picture, from 0 to 1."""
        shown = self.frames[-1] - self.background
        return shown.sum(axis=-1) / np.sum(np.asarray(WHITE) - self.background)

    def page(self, problem: Any, file: Any, values: Values, truth: Any = None) -> PageFilm:
        """Return film and answer, enlarged; the whole motion where the film is a picture."""
        times = self.times if len(self.times) > 1 else until(self, values) - self.start
        frames = np.broadcast_to(np.float32(0.0), (len(times), *self.frames.shape[1:]))
        drawn = replace(self, times=times, index=np.arange(len(times)), frames=frames)
        moved, (at,) = replace(problem, observers=(drawn,)).moved(values)
        answer = as_uint8(drawn.as_images(drawn.predict(moved, at, values))[..., :3])
        film = as_uint8(hatched(self.frames, self.ignored).astype(np.float32))
        film, answer = (magnified(images, height=ROWS) for images in (film, answer))
        return PageFilm(film, answer, is_hatched=self.ignored is not None)
