r"""What an observation predicts from a motion, with tangent and cotangent.

Predictions are rows of four numbers: pixels RGBA of a film, x, y, z, 0 of a point in space, and
u, v, 0, 0 of one in a picture; what was observed are rows of three. A loss is the mean over frames
of

    film      weight * mean over pixels of (image - target)^2 / SEEN^2, summed over a pyramid
    points    weight * mean over points of |p - p_0|^2 / error^2

so that a deviation of SEEN in every pixel, or of one standard deviation in every point, is 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from studies.problem.steps import Sampling


SEEN = 0.05  # a difference in colour, where white is 1, that counts as one
Values = Mapping[str, np.ndarray]  # by scene path


@dataclass(frozen=True, eq=False)
class Moved:
    """Where everything is at the steps that are kept: of a trajectory, or tangents of it."""

    surfaces: dict[str, np.ndarray]  # vertices of every drawn object, (n_rows, n_vertices, 3) [m]
    x: np.ndarray | None = None  # nodes, (n_rows, n_nodes, 3) [m]
    density: np.ndarray | None = None  # of smoke, (n_rows, height, width) [-]


@dataclass(eq=False)
class Cotangents:
    """What a prediction pulls back: to what is at the kept steps, and to values by path."""

    surfaces: dict[str, np.ndarray] = field(default_factory=dict)
    x: np.ndarray | None = None
    density: np.ndarray | None = None
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, other: "Cotangents") -> None:
        """Add those of another observation."""
        for mine, theirs in ((self.surfaces, other.surfaces), (self.values, other.values)):
            for key, value in theirs.items():
                mine[key] = mine[key] + value if key in mine else value
        for name in ("x", "density"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None:
                setattr(self, name, theirs if mine is None else mine + theirs)


@dataclass(frozen=True, eq=False)
class Observer(ABC):
    """One observation."""

    KIND: ClassVar[str]  # in words
    BY_FRAME: ClassVar[str]  # name of what was observed, which has a row for each frame

    name: str
    weight: float
    times: np.ndarray  # relative to `start`, increasing, (n_frames,) [s]
    start: float  # the scene's time of time 0 [s]; free as "observations.NAME.start"
    index: np.ndarray  # number of each frame on the timeline of all observations, (n_frames,)

    @property
    def start_path(self) -> str:
        """Path of the start time."""
        return f"observations.{self.name}.start"

    def instants(self, values: Values) -> np.ndarray:
        """Return the scene's times of the frames, (n_frames,) [s]."""
        return self.times + float(values.get(self.start_path, self.start))

    def rows_per_frame(self) -> int:
        """Return the number of rows of a prediction that belong to a frame."""
        return len(self.targets()) // len(self.times)

    @abstractmethod
    def targets(self) -> np.ndarray:
        """Return what was observed, in rows (n_rows, 3)."""

    def between(self, keep: np.ndarray) -> Self:
        """Return the observation at the frames of this mask only, (n_frames,)."""
        own = {name: getattr(self, name)[keep] for name in ("times", "index", self.BY_FRAME)}
        return replace(self, **own)

    @abstractmethod
    def record(self, moved: Moved, at: Sampling, values: Values) -> "Recorded":
        """Predict, and keep what tangents and cotangents need."""

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the prediction, (n_rows, 4)."""
        return self.record(moved, at, values).rows

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r, frame after frame, with loss = r @ r."""
        return (self._factor() * (rows[:, :3] - self.targets())).ravel()

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r, which is linear in the rows."""
        return (self._factor() * tan_rows[:, :3]).ravel()

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the rows."""
        out = np.zeros((len(adj_r) // 3, 4))
        out[:, :3] = self._factor() * adj_r.reshape(-1, 3)
        return out

    def _factor(self) -> Any:
        """Return what scales the difference in each row where r is nothing else, (n_rows, 1)."""
        raise NotImplementedError

    @abstractmethod
    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the weighted mean square of a difference by frame, (n_frames,), no pyramid."""

    def softened(self, factor: float) -> Self:
        """Return the observation with edges drawn softer by a factor; only pictures have any."""
        del factor
        return self

    def still(self) -> np.ndarray:
        """Return the rows of the first frame, at every frame."""
        per_frame = self.rows_per_frame()
        return np.tile(self.targets()[:per_frame], (len(self.times), 1))


@dataclass(frozen=True, eq=False)
class Recorded:
    """A prediction with its derivatives."""

    rows: np.ndarray  # (n_rows, 4)
    # the tangent of the rows; without a tangent of the motion, of values alone
    jvp: Callable[[Moved | None, Values], np.ndarray]
    vjp: Callable[[np.ndarray], Cotangents]  # pulls the cotangent of the rows back


def values_under(path: str, values: Values) -> dict[str, np.ndarray]:
    """Return the values whose paths begin with `path` and a dot, by what follows."""
    prefix = f"{path}."
    return {k.removeprefix(prefix): one for k, one in values.items() if k.startswith(prefix)}
