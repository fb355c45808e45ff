r"""What an observation predicts from a motion, with tangent and cotangent.

Predictions are rows of four numbers: pixels RGBA of a film, x, y, z, 0 of a point in space, and
u, v, 0, 0 of one in a picture; what was observed are rows of three. Rows of a cloud, a depth film
or an encoder are one number each. A loss is the mean over frames of

    film      weight * mean over pixels of (image - target)^2 / SEEN^2, summed over a pyramid
    points    weight * mean over points of |p - p_0|^2 / error^2

so that a deviation of SEEN in every pixel, or of one standard deviation in every point, is 1.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from adjsim.jit.device_arrays import to_host
from adjsim.values import values_under
from render.posed_camera import PosedCamera
from studies.optimizers.jacobian import Jacobian
from studies.problem.pixels import UNITS, camera_names
from studies.problem.steps import Sampling
from studies.runs.errors import NotFiniteError
from studies.scene.maps import Value


NOISE = 2.0 / 255.0  # standard deviation of a pixel that is expected of a film
START = 0.25  # of its length: how far the start of a film is searched; of a picture, seconds
SEEN = 0.05  # a difference in colour, where white is 1, that counts as one
NODES, DENSITY = "state.x", "state.density"
Values = Mapping[str, np.ndarray]  # by scene path
# Where everything is at the steps that are kept, or tangents of it: by name the vertices of every
# drawn object (n_rows, n_vertices, 3) [m], and `NODES` of the model (n_rows, n_nodes, 3) [m] or
# `DENSITY` of smoke (n_rows, height, width) [-], and what sensors read (n_rows, 1, 3), "force.NAME"
Moved = Mapping[str, np.ndarray]
# Cotangents of what moves, and of values by path
Back = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


def surfaces(moved: Moved) -> dict[str, np.ndarray]:
    """Return the vertices of the drawn objects alone."""
    return {name: rows for name, rows in moved.items() if "." not in name}


@dataclass(frozen=True, eq=False)
class RecordedPrediction:
    """A prediction with its derivatives."""

    rows: np.ndarray  # (n_rows, 4)
    # the tangent of the rows, of those of what moves and of values; missing ones are 0
    jvp: Callable[[Moved, Values], np.ndarray]
    vjp: Callable[[np.ndarray], Back]


class ReachedResiduals(NamedTuple):
    """The residuals of an observation that theta may change."""

    rows: np.ndarray  # their numbers, ascending, (m,)
    # their tangent, (m,), of that of the prediction, (n_rows, 4)
    jvp: Callable[[np.ndarray], np.ndarray]
    # and back: the cotangent of the prediction, as far as theta may change it
    vjp: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Observer(ABC):
    """One observation: what it predicts, and all else that a run asks of it.

    A kind of observation answers what is asked of it below; most questions have an answer that does
    nothing.
    """

    KIND: ClassVar[str]  # in words
    BY_FRAME: ClassVar[str]  # name of what was observed, which has a row for each frame
    IS_PICTURE: ClassVar[bool] = False  # whether rows are pixels, which `as_images` gives as images
    IS_CARRIED: ClassVar[bool] = False  # whether places of a body are observed, as of markers

    name: str
    weight: float
    times: np.ndarray  # relative to `start`, increasing, (n_frames,) [s]
    start: float  # the scene's time of time 0 [s]; free as "observations.NAME.start"
    index: np.ndarray  # number of each frame on the timeline of all observations, (n_frames,)
    sensor: str = field(default="", kw_only=True)  # of the built scene, that it reads; "": none
    # of what is seen in a picture; it looks at points minus `center`, so that it turns about there
    camera: PosedCamera | None = field(default=None, kw_only=True)
    camera_path: str = field(default="", kw_only=True)  # "cameras.NAME"
    center: np.ndarray = field(default_factory=lambda: np.zeros(3), kw_only=True)  # (3,) [m]
    device: str = field(default="cpu", kw_only=True)  # where it is predicted: cpu or cuda
    notes: tuple[str, ...] = field(default=(), kw_only=True)  # what is doubtful about its data

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
        kept = np.flatnonzero(keep)
        rows: np.ndarray | slice = kept
        if len(kept) and kept[-1] - kept[0] == len(kept) - 1:
            rows = slice(kept[0], kept[-1] + 1)  # a view: films are large
        changes = {name: getattr(self, name)[rows] for name in ("times", "index", self.BY_FRAME)}
        return replace(self, **changes)

    def camera_at(self, values: Values) -> Any:
        """Return the camera with the values of its paths.

        A step of a search may be so long that there is none: it counts as a motion that blows up.
        """
        camera_values = values_under(self.camera_path, values)
        if self.camera is None or not camera_values:
            return self.camera
        try:
            return self.camera.with_values(camera_values)
        except ValueError as error:
            raise NotFiniteError(str(error)) from error

    @abstractmethod
    def fields(self, moved: Moved) -> Moved:
        """Return the part of what moves that is seen."""

    @abstractmethod
    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        """Predict from what is seen at the instants."""

    def seen(self, moved: Moved, at: Sampling) -> dict[str, np.ndarray]:
        """Return what is seen at the instants."""
        return {name: at.at(rows) for name, rows in self._fields(moved).items()}

    def _fields(self, moved: Moved) -> Moved:
        """Return the part of what moves that is seen, where it is looked at."""
        fields = self.fields(moved)
        if self.device == "cuda":
            return fields
        return dict(zip(fields, to_host(tuple(fields.values())), strict=True))

    def record(self, moved: Moved, at: Sampling, values: Values) -> RecordedPrediction:
        """Predict, and keep what tangents and cotangents need."""
        fields, shown = self._fields(moved), self.shown(self.seen(moved, at), values)

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            shift = tan_values.get(self.start_path)
            tangents: dict[str, np.ndarray] = {}
            for name, rows in fields.items():
                parts: list[Any] = [at.at(tan[name])] if name in tan else []
                if shift is not None:
                    parts.append(float(shift) * at.slope(to_host(rows)))
                if parts:
                    tangents[name] = parts[0] if len(parts) == 1 else parts[0] + parts[1]
            return shown.jvp(tangents, tan_values)

        def vjp(adj_rows: np.ndarray) -> Back:
            adj_seen, adj_values = shown.vjp(adj_rows)
            slope = sum(at.slope_vjp(fields[k], adj) for k, adj in adj_seen.items())
            back = {name: at.spread(adj, len(fields[name])) for name, adj in adj_seen.items()}
            return back, {**adj_values, self.start_path: np.asarray(slope)}

        return RecordedPrediction(shown.rows, jvp, vjp)

    def predict(self, moved: Moved, at: Sampling, values: Values) -> np.ndarray:
        """Return the prediction, (n_rows, 4)."""
        return self.record(moved, at, values).rows

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        """Return r, frame after frame, with loss = r @ r."""
        return (self._factor() * (rows[:, :3] - self.targets())).ravel()

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        """Return the tangent of r, which is linear in the rows."""
        return (self._factor() * tan_rows[:, :3]).ravel()

    def reached(self, rows: np.ndarray, count: int) -> ReachedResiduals:
        """Return which of `count` residuals may change where these rows are predicted: all."""
        return ReachedResiduals(np.arange(count), self.residuals_jvp, self.residuals_vjp)

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of the rows."""
        return np.pad(self._factor() * adj_r.reshape(-1, 3), [(0, 0), (0, 1)])

    def _factor(self) -> Any:
        """Return what scales the difference in each row, (n_rows, 1).

        Observers whose residuals are something else replace `residuals`, `residuals_jvp` and
        `residuals_vjp` instead.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `_factor` or its residuals.")

    @abstractmethod
    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the weighted mean square of a difference by frame, (n_frames,), no pyramid."""

    def softened(self, factor: float) -> Self:
        """Return the observation with edges drawn softer by a factor; only pictures have any."""
        return self

    # What may be free, and what is known of the noise

    def values(self) -> dict[str, Value]:
        """Return what may be free of the observation, by scene path: its start, its camera."""
        around = START * (float(np.ptp(self.times)) or 1.0)
        bounds = (self.start - around, self.start + around)
        out = {self.start_path: Value(np.asarray(self.start), "s", "linear", bounds)}
        if self.camera is not None:
            parameters, wide = self.camera.parameters(), (-np.inf, np.inf)
            for name in camera_names(self.camera):
                value = Value(parameters[name], UNITS[name], "linear", wide)
                out[f"{self.camera_path}.{name}"] = value
        return out

    def counted(self, rows: np.ndarray) -> np.ndarray:
        """Return which predicted rows can tell a right motion from a wrong one, (n_rows,) bool."""
        return np.ones(len(rows), bool)

    def agreed(self, rows: np.ndarray) -> np.ndarray:
        """Return in which predicted rows a body is there where one was observed, (n_rows,) bool."""
        return np.ones(len(rows), bool)

    def noise(self, rows: np.ndarray, r: np.ndarray, n_parameters: int) -> float:
        """Return the variance of its numbers by the residuals r that predicted rows leave.

        What is exactly 0 was not measured: a missing sample, the third column of places in pixels.
        """
        return float(r @ r) / max(np.count_nonzero(r) - n_parameters, 1.0)

    def expected_noise(self, rows: np.ndarray) -> float | np.ndarray:
        """Return the variance of its numbers that is expected, or that of each residual, (m,).

        `rows` are predicted, (n_rows, 4).
        """
        return NOISE**2

    def information(self, J: Jacobian, variance: float | np.ndarray) -> np.ndarray:
        """Return what J^T r varies by, (p, p), for the Jacobian of its residuals, (m, p)."""
        weights = np.broadcast_to(variance, len(J))[J.rows, None]
        return J.values.T @ (weights * J.values)

    # The same observation of another problem

    def refined(self, nodes_before: Any) -> Self:
        """Return the observation on a finer mesh.

        `nodes_before` is the sparse matrix from all nodes to those of before, (n_before, n_nodes).
        """
        return self

    def carried_as(self, other: Any) -> Self:
        """Return the observation of places that a body carries as in another one."""
        raise NotImplementedError(f"{type(self).__name__} `IS_CARRIED`: it must say how.")

    def in_space(self, problem: Any) -> "tuple[Observer, ...]":
        """Return observations in space of all that is seen of a `SceneProblem` in pictures."""
        return (self,)

    def shaded_otherwise(self) -> Self:
        """Return the observation with flat shading for smooth, smooth for flat."""
        return self

    def simulated(self, rows: np.ndarray) -> Self:
        """Return the observation of what was predicted, (n_rows, 4), in place of what was seen."""
        return self

    def track(self, subjects: Mapping[str, Any], begun: Mapping[str, Any]) -> "Observer | None":
        """Return where bodies are in place of how they look; None where that cannot be told.

        `subjects` are the drawn objects of a problem, and `begun` the first frames of films by
        name, as `studies.problem.films.Begun`.
        """
        return self

    # What is looked at

    def doubts(self, rows: np.ndarray) -> list[str]:
        """Return what is doubtful about its data beside what is predicted at the start values."""
        return []

    def check(self, problem: Any) -> None:
        """Raise if derivatives that a user gave are wrong at the start of a `SceneProblem`."""
        del problem

    def as_images(self, rows: np.ndarray) -> Any:
        """Return rows as images, (n_frames, height, width, 3 or 4); None of what is no picture."""
        del rows

    def pictures(self, rows: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return predicted and seen colours, and where both have bodies; None of what is no film.

        These are two films (n_frames, height, width, 3) and two masks (n_frames, height, width).
        """
        del rows

    def scenery(self, seen: Moved, values: Values) -> Any:
        """Return what its camera sees, a `studies.problem.films.Scenery`; None without faces."""
        del seen, values

    def silhouette(self) -> np.ndarray | None:
        """Return where the last picture shows bodies, (height, width); None of no picture."""
        return None

    def curves(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return what is drawn over time beside a prediction, {} of what has no curves.

        These are `times` (n_frames,), `observed` and `predicted` (n_frames, n_points, k), and for
        each of the k numbers of a point its axis, with unit, in `labels`.
        """
        return {}

    def over_surface(self, seen: Moved) -> dict[str, np.ndarray]:
        """Return measured points over the surfaces that are seen, {} of what has none.

        At k of its times these are `times` (k,) [s], `points` (k, n_points, 3) [m], NaN where there
        is none, their signed `distances` (k, n_points) [m], `vertices` (k, n_vertices, 3) [m] and
        `faces` (n_faces, 3).
        """
        return {}

    def frames_compared(self, rows: np.ndarray, begun: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return pictures as they are compared, for two predictions; {} of what is no picture."""
        return {}

    def looks(self) -> Iterable[str]:
        """Return the scene paths of the looks and lights that it sees: none."""
        return ()

    def page(self, problem: Any, file: Any, values: Values, truth: Any = None) -> Any:
        """Return what a page shows of it, a `film_pages.PageFilm`, if it is a picture.

        `problem` is the `SceneProblem` of the answer, and `values` are those at the answer by scene
        path. `truth` are both of what was simulated, which is drawn again.
        """
        del problem, file, values, truth

    def facts(self) -> dict[str, Any]:
        """Return what the result says of the observation."""
        return {"frames": len(self.times), "size": None}

    def mean(self) -> np.ndarray:
        """Return the mean of what was observed, at every row."""
        rows = self.targets()
        return np.broadcast_to(rows.mean(axis=0), rows.shape)

    def still(self) -> np.ndarray:
        """Return the rows of the first frame, at every frame."""
        per_frame = self.rows_per_frame()
        return np.tile(self.targets()[:per_frame], (len(self.times), 1))


@dataclass(frozen=True, eq=False)
class MeasuredObserver(Observer):
    """What is compared with numbers that were measured, all with one standard deviation."""

    error: float  # standard deviation of a number

    def _factor(self) -> Any:
        """Return what scales the difference in each row: the loss is the mean over the frames."""
        return float(np.sqrt(self.weight / len(self.times))) / self.error

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        scaled = np.square(self._factor() * (rows[:, :3] - other[:, :3]))
        return len(self.times) * scaled.reshape(len(self.times), -1).sum(axis=1)

    def expected_noise(self, rows: np.ndarray) -> float | np.ndarray:
        """Return the variance of each residual: the declared error squared."""
        return self.residuals_jvp(np.full(rows.shape, self.error)) ** 2


@dataclass(frozen=True, eq=False)
class NumberObserver(MeasuredObserver):
    """What compares one number of each row, the first; a `_factor` is one number for all rows."""

    def residuals(self, rows: np.ndarray) -> np.ndarray:
        return self._factor() * (rows[:, 0] - self.targets()[:, 0])

    def residuals_jvp(self, tan_rows: np.ndarray) -> np.ndarray:
        return self._factor() * tan_rows[:, 0]

    def residuals_vjp(self, adj_r: np.ndarray) -> np.ndarray:
        return np.pad(self._factor() * adj_r[:, None], [(0, 0), (0, 3)])

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        off = np.square(self._factor() * (rows[:, 0] - other[:, 0]))
        return len(self.times) * off.reshape(len(self.times), -1).sum(axis=1)

    def expected_noise(self, rows: np.ndarray) -> float | np.ndarray:
        return (self._factor() * self.error) ** 2
