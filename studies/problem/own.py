r"""Residuals of the user's own: a Python function of the bodies' surfaces, and its cotangent.

    def residuals(surfaces):            # {"duck": (n_frames, n_vertices, 3) [m], ...}
        ...
        return r                        # (n_frames, m)
    def vjp(surfaces, adj_r):
        return {"duck": adj_vertices}   # cotangents of the surfaces that r depends on

The loss is the mean over frames of the squares of r, times the weight. Gauss-Newton needs the
tangent of r too: give `jvp(surfaces, tan_surfaces)`, or it is taken by central differences of
`residuals` along the tangent.

Before a search, `OwnObserver.check` compares `vjp` and `jvp` with differences of `residuals` for
the motion at the start.

The functions always get all frames. Where a search looks at the first frames only, the surfaces of
later ones are those of the last frame that is simulated, and their rows of r are left out.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from studies.optimizers.problem import NOT_FINITE
from studies.problem.observers import Back, Moved, Observer, RecordedPrediction, Values, surfaces
from studies.problem.problem import SceneProblem
from studies.runs.errors import NotFiniteError, StudyError
from studies.scene.declared import OwnObservation, SceneFile
from studies.scene.own_code import imported
from studies.scene.tables import unknown


Surfaces = Mapping[str, np.ndarray]
SURE, AGREE = 1e-5, 1e-4  # parts by which differences of two steps, and two derivatives, may differ
STEP = 1e-6  # of the differences, relative to the largest coordinate over the largest tangent


@dataclass(frozen=True, eq=False)
class OwnResiduals:
    """Residuals of the user's own.

    Attributes
    ----------
    times : array
        Of the frames, increasing, (n_frames,) [s].
    residuals : callable
        Takes surfaces, a dict of arrays (n_frames, n_vertices, 3) [m] by body; returns r,
        (n_frames, m).
    vjp : callable
        Takes surfaces and a cotangent of r, (n_frames, m); returns cotangents of the surfaces.
    jvp : callable, optional
        Takes surfaces and their tangents; returns the tangent of r. By default a central
        difference.
    weight : float
        Factor in the loss.
    start : float
        Time of the scene at time 0 of `times` [s].
    validate : bool
        Predict it before it is fitted, to judge the answer.
    """

    times: np.ndarray
    residuals: Callable[[Surfaces], np.ndarray]
    vjp: Callable[[Surfaces, np.ndarray], Surfaces]
    jvp: Callable[[Surfaces, Surfaces], np.ndarray] | None = None
    weight: float = 1.0
    start: float = field(default=0.0, kw_only=True)
    validate: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class OwnObserver(Observer):
    """Residuals of the user's own as an observer: rows are the residuals, in threes."""

    KIND, BY_FRAME = "residuals of one's own", "kept"

    terms: OwnResiduals
    count: int  # rows of each frame: a third of the residuals, rounded up
    kept: np.ndarray  # which of all frames are compared, (n_frames,)
    motionless: np.ndarray  # residuals of bodies that stay where they begin, (n_all_frames, m)

    @property
    def filled(self) -> np.ndarray:
        """Return the compared frame whose surfaces each of all frames has, (n_all_frames,)."""
        last = np.searchsorted(self.kept, np.arange(np.size(self.terms.times)), side="right") - 1
        return np.maximum(last, 0)

    def rows_per_frame(self) -> int:
        return self.count

    def targets(self) -> np.ndarray:
        """Return 0: what residuals should be."""
        return np.zeros((len(self.times) * self.count, 3))

    def still(self) -> np.ndarray:
        """Return the residuals of bodies that stay where they begin: what there is to explain."""
        return self.in_rows(self.motionless)[:, :3]

    def fields(self, moved: Moved) -> Moved:
        return surfaces(moved)

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        given = {name: rows[self.filled] for name, rows in seen.items()}
        r = np.asarray(self.terms.residuals(given), np.float64)
        n_all = np.size(self.terms.times)
        if r.ndim != 2 or len(r) != n_all or r.shape[1] > 3 * self.count:
            raise StudyError(
                f"`observations.{self.name}.residuals` must return one row for each of the "
                f"{n_all} frames, (n_frames, m), got shape {r.shape}."
            )

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            del tan_values
            if not tan:  # looks and lights, which it does not see: nothing to ask the user for
                return self.in_rows(np.zeros_like(r))
            tangents = {
                name: tan[name][self.filled] if name in tan else np.zeros_like(rows)
                for name, rows in given.items()
            }
            return self.in_rows(self._pushed(given, tangents))

        def vjp(adj_rows: np.ndarray) -> Back:
            adj_r, out = np.zeros(r.shape), {}
            adj_r[self.kept] = adj_rows[:, :3].reshape(len(self.times), -1)[:, : r.shape[1]]
            self._require_finite("residuals", r)
            for name, adj in self.pulled(given, adj_r).items():
                out[name] = np.zeros((len(self.times), *adj.shape[1:]), seen[name].dtype)
                np.add.at(out[name], self.filled, adj)
            return out, {}

        return RecordedPrediction(self.in_rows(r), jvp, vjp)

    def pulled(self, surfaces: Surfaces, adj_r: np.ndarray) -> dict[str, np.ndarray]:
        """Return what the user's `vjp` returns, checked."""
        key, by_body = f"`observations.{self.name}.vjp`", self.terms.vjp(surfaces, adj_r)
        if not isinstance(by_body, Mapping):
            raise StudyError(
                f"{key} must return arrays by body, such as {{{next(iter(surfaces))!r}: "
                f"adj_vertices}}, got {type(by_body).__name__}."
            )
        out = {}
        for name, adj in by_body.items():
            if name not in surfaces:
                raise StudyError(f"{key}: {unknown('body', name, surfaces)}")
            out[name] = np.asarray(adj, np.float64)
            if out[name].shape != surfaces[name].shape:
                raise StudyError(
                    f"{key} must return an array of the shape of the vertices for {name!r}, "
                    f"{surfaces[name].shape}, got {out[name].shape}."
                )
            self._require_finite("vjp", out[name])
        return out

    def _require_finite(self, function: str, rows: np.ndarray) -> None:
        if not np.isfinite(rows).all():
            frame = int(np.argwhere(~np.isfinite(rows))[0][0])
            raise NotFiniteError(
                f"`observations.{self.name}.{function}` must return finite numbers, got NaN or "
                f"infinity in frame {frame} (counted from 0)."
            )

    def check(self, problem: SceneProblem) -> None:
        """Raise if `vjp` or `jvp` contradict differences of `residuals` at the start of a problem.

        Columns of r whose differences depend on the step, as at a kink, are left out.
        """
        try:
            moved, (at,), _ = replace(problem, observers=(self,)).run_at(problem.parameters.start)
        except NOT_FINITE:
            return  # the search begins elsewhere, or says why it cannot
        seen = self.seen(moved, at)
        surfaces = {name: np.asarray(x, np.float64)[self.filled] for name, x in seen.items()}
        rng = np.random.default_rng(0)
        tangents = {name: rng.standard_normal(x.shape) for name, x in surfaces.items()}
        tan_r, other = (self._difference(surfaces, tangents, step) for step in (STEP, 2.0 * STEP))
        self._require_finite("residuals", tan_r)
        sizes = np.linalg.norm(tan_r, axis=0)
        sure = np.linalg.norm(tan_r - other, axis=0) < SURE * sizes
        weights = np.where(sure, 1.0 / np.where(sure, sizes, 1.0) ** 2, 0.0)
        pulled = self.pulled(surfaces, weights * tan_r)  # each column counts 1
        products = {"vjp": sum(float(np.sum(adj * tangents[k])) for k, adj in pulled.items())}
        if self.terms.jvp is not None:
            products["jvp"] = float(np.sum(weights * tan_r * self._pushed(surfaces, tangents)))
        expected = int(sure.sum())
        for function, value in products.items():
            if abs(value - expected) > AGREE * expected:
                what = "derivative" if function == "jvp" else "transposed derivative"
                raise StudyError(
                    f"`observations.{self.name}.{function}` must be the {what} of `residuals`, but "
                    f"for a random change of all vertices it gives {value / expected:.6g} times "
                    "what differences of `residuals` give. Check factor, sign and index of every "
                    "term."
                )

    def _pushed(self, surfaces: Surfaces, tangents: Surfaces) -> np.ndarray:
        if self.terms.jvp is not None:
            return np.asarray(self.terms.jvp(surfaces, tangents))
        return self._difference(surfaces, tangents, STEP)

    def _difference(self, surfaces: Surfaces, tangents: Surfaces, step: float) -> np.ndarray:
        """Return the central difference of the residuals along a tangent."""
        size = max(float(np.abs(rows).max(initial=0.0)) for rows in surfaces.values())
        slope = max(float(np.abs(rows).max(initial=0.0)) for rows in tangents.values())
        h = step * max(size, 1e-3) / slope if slope > 0.0 else 1.0
        ahead, behind = (
            np.asarray(
                self.terms.residuals(
                    {name: rows + sign * h * tangents[name] for name, rows in surfaces.items()}
                )
            )
            for sign in (1.0, -1.0)
        )
        return (ahead - behind) / (2.0 * h)

    def in_rows(self, r: np.ndarray) -> np.ndarray:
        """Return residuals of all frames, (n_all_frames, m), in rows of four of compared ones."""
        padded = np.pad(r[self.kept], [(0, 0), (0, 3 * self.count - r.shape[1])])
        return np.pad(padded.reshape(-1, 3), [(0, 0), (0, 1)])

    def _factor(self) -> float:
        """Return the scale that makes r @ r the weighted mean over frames."""
        return float(np.sqrt(self.weight / len(self.times)))

    def squares(self, rows: np.ndarray, other: np.ndarray) -> np.ndarray:
        off = np.square(rows[:, :3] - other[:, :3]).reshape(len(self.times), -1)
        return self.weight * off.sum(axis=1)


def own_observer(name: str, terms: OwnResiduals, start: Surfaces) -> OwnObserver:
    """Return residuals of the user's own as an observer."""
    times = np.asarray(terms.times, np.float64)
    if times.ndim != 1 or not times.size or (np.diff(times) <= 0.0).any():
        raise StudyError(f"`observations.{name}.times` must increase, got {times.tolist()}.")
    still = {k: np.broadcast_to(x, (len(times), *x.shape)) for k, x in start.items()}
    r = np.asarray(terms.residuals(still), np.float64)
    if r.ndim != 2 or len(r) != len(times):
        raise StudyError(
            f"`observations.{name}.residuals` must return one row for each of the {len(times)} "
            f"frames, (n_frames, m), got shape {r.shape}."
        )
    if not np.isfinite(r).all():
        raise StudyError(
            f"`observations.{name}.residuals` must return finite numbers, got NaN or infinity for "
            "bodies that stay where they begin."
        )
    count = max(-(-r.shape[1] // 3), 1)
    every = np.arange(len(times))
    return OwnObserver(name, terms.weight, times, terms.start, every, terms, count, every, r)


def declared_own(file: SceneFile) -> dict[str, OwnResiduals]:
    """Return the residuals of the user's own that a scene file names.

    Raise a StudyError if a function cannot be imported, or returns something else.
    """
    out = {}
    for name, observation in file.observations.items():
        if not isinstance(observation, OwnObservation):
            continue
        key = f"observations.{name}"
        make = imported(f"{key}.type", observation.type, is_called=True)
        # A function that the module only imports, such as `os.system`, is not what is allowed.
        if (
            not callable(make)
            or getattr(make, "__module__", "") != observation.type.partition(":")[0]
        ):
            raise StudyError(
                f"`{key}.type` must be module:function, a function of that module, got "
                f"{observation.type!r}."
            )
        try:
            arguments = inspect.signature(make).bind(**observation.values)
        except TypeError as error:
            raise StudyError(
                f"`{key}.values` must be arguments of {observation.type}: {error}"
            ) from error
        returned = make(*arguments.args, **arguments.kwargs)
        if not isinstance(returned, OwnResiduals):
            raise StudyError(
                f"`{key}.type`: {observation.type} must return a `studies.api.OwnResiduals`, got "
                f"{type(returned).__name__}."
            )
        out[name] = replace(
            returned,
            weight=observation.weight,
            start=observation.start,
            validate=observation.validate,
        )
    return out
