r"""A scene, its observations and what is free of it, as a problem for search and answer.

    theta -> values by path -> model and state -> rollout -> surfaces -> predictions -> residuals
                            -> cameras, looks, lights, start times ----^

The rows of all observations follow each other. Priors are rows of the residuals too:
r = (theta - mean)/(error sqrt(EVIDENCE)), as if an observation were as much evidence as EVIDENCE
independent numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from adjoint.inspector import Inspection
from adjsim.engine.jit.backend import joined, thread_count, to_host
from studies.problem.clusters import FEW_FRAMES, row_clusters
from studies.problem.films import FilmObserver, Scenery
from studies.problem.free import ShapeLosses
from studies.problem.observers import DENSITY, NODES, SEEN, Moved, Observer, Recorded
from studies.problem.parameters import Parameters
from studies.problem.reach import Reach, system_at
from studies.problem.steps import Sampling, Steps, sample_steps
from studies.problem.worlds import Failure, Sample, run_worlds, worlds_at_once
from studies.scene.building import Built
from studies.scene.filming import Pulled
from studies.scene.maps import add_up
from studies.scene.motion import AtRest, Motion, inspect_frames, pull_frames


EVIDENCE = 1000.0
SAME_TIME = 1e-6  # [s]: instants that are nearer are one
MOST_ON_DEVICE = 1 << 30  # bytes of predictions that stay on a device beside what it works with
Judge = Callable[[np.ndarray], tuple[float, np.ndarray]]
# values by scene path, the motion, and where the instants of each observation lie
Moment = tuple[dict[str, np.ndarray], Motion, list[Sampling]]
# the cotangents of predictions: of the trajectory and parameters of the system, of values by path
Back = tuple[Pulled, dict[str, np.ndarray]]
# an observation, its predictions, and the cotangent of these, (n_rows, 4)
Judged = tuple[Observer, np.ndarray, np.ndarray]
STATES = (NODES, DENSITY)


@dataclass(frozen=True, eq=False)
class SceneProblem:
    """A `studies.optimizers.problem.Problem`: predict observations of a scene."""

    built: Built
    observers: tuple[Observer, ...]  # their `index` counts the instants of all observations
    parameters: Parameters
    steps: Steps  # size of the time step
    # instants of all observations
    n_frames: int = 0
    # scene values that are neither free nor the scene's own, such as a fitted look, by path
    fixed: Mapping[str, np.ndarray] = field(default_factory=dict)
    shapes: tuple[ShapeLosses, ...] = ()  # of vertices that are free
    # as `studies.scene.motion.Motion` takes them
    dtype: str = "float64"
    device: str = "cpu"
    threads: int | None = None
    checkpoint: str = "1GB"

    @property
    def loss(self) -> str:
        """What is compared, in words."""
        return ", ".join(f"{one.KIND} `{one.name}`" for one in self.observers)

    @property
    def targets(self) -> np.ndarray:
        """What was observed, (n_rows, 3)."""
        return np.concatenate([one.targets() for one in self.observers])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self.parameters.lower, self.parameters.upper

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are asked for; the others are nuisances, such as a camera."""
        return self.parameters.answers

    @property
    def schedule(self) -> str | None:
        """Which states of the rollout are kept to be reversed, in words."""
        motion = self._moment(self.parameters.start)[1]
        return None if isinstance(motion.system, AtRest) else motion.plan().told()

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing moves: pictures of still things."""
        return isinstance(self.built.system, AtRest)

    # What the problem is restricted to

    def with_dtype(self, dtype: str) -> "SceneProblem":
        """Return the same problem computed in another precision."""
        return replace(self, dtype=dtype)

    def at_stage(self, stage: float) -> "SceneProblem":
        """Return the problem of this part of the frames, at least two; above 1, of softer edges."""
        if stage == 1.0:
            return self
        if stage > 1.0:
            softened = [one.softened(stage) for one in self.observers]
            return replace(self, observers=tuple(softened))
        first = min(one.start + one.times[0] for one in self.observers)
        least = 1 if first > SAME_TIME else 2  # what is at the start shows no motion
        return self.frames_between(0, max(least, int(np.ceil(stage * self.n_frames))))

    def name_of_stage(self, stage: float) -> str:
        """Return how many frames are looked at in a stage, or how soft edges are."""
        if self.is_at_rest:
            return f"edges {stage:g} times as soft"
        return f"{self.at_stage(stage).n_frames} of {self.n_frames} frames"

    def frames_between(self, first: int, stop: int) -> "SceneProblem":
        """Return the problem that compares only these instants; its rollout begins at 0."""
        kept = []
        for one in self.observers:
            keep = (one.index >= first) & (one.index < stop)
            if keep.any():
                part = one.between(keep)
                kept.append(replace(part, index=part.index - first))
        return replace(self, observers=tuple(kept), n_frames=min(stop, self.n_frames) - first)

    def at(self, theta: np.ndarray, keep: tuple[int, ...] | None = None) -> "SceneProblem":
        """Return the problem that starts at theta; with `keep`, with all else fixed there."""
        fixed = {**self.fixed, **self.parameters.scene_values(theta)}
        return replace(self, parameters=self.parameters.held_at(theta, keep), fixed=fixed)

    def with_steps_for(self, theta: np.ndarray) -> "SceneProblem":
        """Return the problem with a time step that suits the stiffness at theta."""
        return self._stepped(self._values(theta))

    def _stepped(self, values: Mapping[str, np.ndarray]) -> "SceneProblem":
        system, _ = system_at(self.built, values, self.steps.dt)
        return replace(self, steps=self.steps.suited_to(system))

    def steps_are_long(self, theta: np.ndarray) -> bool:
        """Whether the time step is too long for theta."""
        system, _ = system_at(self.built, self._values(theta), self.steps.dt)
        return self.steps.are_long(system)

    # From theta to predictions

    def _values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return every value that is not the scene's own, by path."""
        return {**self.fixed, **self.parameters.scene_values(theta)}

    def _moment(self, theta: np.ndarray) -> Moment:
        """Return the values, the motion, and where the instants of each observation lie."""
        values = self._values(theta)
        return values, *self._moment_of(values)

    def _moment_of(self, values: Mapping[str, np.ndarray]) -> tuple[Motion, list[Sampling]]:
        dt = self.steps.dt
        steps, samplings = sample_steps(
            [one.instants(values) for one in self.observers],
            dt,
            moves=[one.start_path in self.parameters.paths for one in self.observers],
        )
        system, state = system_at(self.built, values, dt, varies=True)
        motion = Motion(
            system,
            state,
            dt,
            steps,
            self.dtype,
            device=self.device,
            threads=self.threads,
            checkpoint=self.checkpoint,
        )
        return motion, samplings

    def predictions(self, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the predicted rows of every observation for scene values by path."""
        return self._predicted(*self.moved(values), values)

    def moved(self, values: Mapping[str, np.ndarray]) -> tuple[Moved, list[Sampling]]:
        """Return what moves for these values, in steps that suit them, and where instants lie."""
        own = self._stepped(values)
        motion, samplings = own._moment_of(values)
        return own._moved(motion, motion.run()), samplings

    def sceneries_at(self, theta: np.ndarray) -> list[Scenery]:
        """Return what the cameras of films see at theta."""
        moved, samplings, values = self.run_at(theta)
        pairs = zip(self.observers, samplings, strict=True)
        return [
            one.scenery(one.seen(moved, at), values)
            for one, at in pairs
            if isinstance(one, FilmObserver)
        ]

    def run_at(self, theta: np.ndarray) -> tuple[Moved, list[Sampling], dict[str, np.ndarray]]:
        """Return what moves at theta, where each observation's instants are, and the values."""
        values, motion, samplings = self._moment(theta)
        return self._moved(motion, motion.run()), samplings, values

    def motion_at(self, theta: np.ndarray) -> Motion:
        """Return the motion at theta."""
        return self._moment(theta)[1]

    def _moved(self, motion: Motion, run: Any) -> Moved:
        surfaces = {
            name: subject.vertices(motion, run) for name, subject in self.built.subjects.items()
        }
        return surfaces | _states(run)

    def _tangent_of_motion(
        self, motion: Motion, tangents: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]
    ) -> Moved:
        """Return what moves for tangents by scene path; {} where the system stays."""
        reached = Reach(self.built, motion.dt).jvp(values, tangents)
        if not reached:
            return {}
        run, tan_run = motion.jvp(reached)
        surfaces = {
            name: subject.vertices_jvp(motion, run, tan_run, reached)
            for name, subject in self.built.subjects.items()
        }
        return surfaces | _states(tan_run)

    def images(self, theta: np.ndarray) -> np.ndarray:
        """Return all predictions at theta, (n_rows, 4)."""
        return to_host(self._rows(theta))

    def _rows(self, theta: np.ndarray) -> Any:
        """Return all predictions at theta, on the device if all of them are made there."""
        values, motion, samplings = self._moment(theta)
        moved = self._moved(motion, motion.run(on_device=self._stays))
        return joined(self._predicted(moved, samplings, values))

    @property
    def _stays(self) -> bool:
        """Whether predictions may stay on a device: the bound is the same for all devices."""
        rows = sum(one.rows_per_frame() * len(one.times) for one in self.observers)
        return 4 * rows * np.dtype(self.dtype).itemsize <= MOST_ON_DEVICE

    def _predicted(
        self, moved: Moved, samplings: Sequence[Sampling], values: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Return the rows of every observation."""
        pairs = zip(self.observers, samplings, strict=True)
        return [one.predict(moved, at, values) for one, at in pairs]

    def images_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions at theta and their derivative along `tan_theta`."""
        rows, push = self.pushing(theta)
        return to_host(rows), push(tan_theta)

    def pushing(self, theta: np.ndarray) -> tuple[Any, Callable[[np.ndarray], np.ndarray]]:
        """Return the predictions, made once, and what pushes any number of directions to them.

        The predictions are on the device if all of them are made there.
        """
        moment = self._moment(theta)
        values, motion, _ = moment
        records = self._recorded(moment, motion.run(on_device=self._stays))

        def push(tan_theta: np.ndarray) -> np.ndarray:
            tangents = self.parameters.scene_tangents(theta, tan_theta)
            tan = self._tangent_of_motion(motion, tangents, values)
            return np.concatenate([record.jvp(tan, tangents) for record in records])

        return joined([record.rows for record in records]), push

    def _recorded(self, moment: Moment, run: Any) -> list[Recorded]:
        """Return the predictions of a run with their derivatives."""
        values, motion, samplings = moment
        moved, pairs = self._moved(motion, run), zip(self.observers, samplings, strict=True)
        return [one.record(moved, at, values) for one, at in pairs]

    def pull_back(
        self, theta: np.ndarray, judge: Judge, *, on_device: bool = False
    ) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(rows) -> value, adj_rows`.

        `on_device` shows the judge rows that are on the device, if all of them are made there.
        """
        values, recorded, _, (value, _), back = self._judged(theta, judge, on_device=on_device)
        wanted = self._wanted()
        adjoints = dict(pull_frames(recorded, back[0].frames, wanted)) if wanted else {}
        return value, self._gradient(theta, values, back, adjoints)

    def inspect(self, theta: np.ndarray, **options: Any) -> tuple[Inspection, list[Judged]]:
        """Return what the adjoint of the motion does on its way back, and where it comes from.

        `options` are passed to `Record.inspect`.
        """
        _, recorded, records, (_, adj_rows), back = self._judged(theta, self.judge)
        found = inspect_frames(recorded, back[0].frames, self._wanted(), **options)
        rows = self.by_observer(np.concatenate([record.rows for record in records]))
        pairs = zip(rows, self.by_observer(adj_rows), strict=True)
        return found, [(one, own, adj) for (one, own), (_, adj) in pairs]

    def _judged(
        self, theta: np.ndarray, judge: Judge, *, on_device: bool = False
    ) -> tuple[Any, ...]:
        """Return the values, the record, the predictions, what is judged of them, its cotangent."""
        moment = self._moment(theta)
        recorded = moment[1].record(on_device=on_device and self._stays)
        records = self._recorded(moment, recorded.trajectory)
        value, adj_rows = judge(joined([record.rows for record in records]))
        back = self._pulled(moment[1], recorded.trajectory, records, adj_rows)
        return moment[0], recorded, records, (value, adj_rows), back

    def _pulled(
        self, motion: Motion, run: Any, records: Sequence[Recorded], adj_rows: np.ndarray
    ) -> Back:
        """Pull the cotangent of the predictions of a run back to its frames, and to values."""
        pairs = zip(records, cut(adj_rows, [len(record.rows) for record in records]), strict=True)
        back = [record.vjp(part) for record, part in pairs]
        pulled = Pulled()
        adj_fields = add_up(fields for fields, _ in back)
        for name, adj in sorted(adj_fields.items(), key=lambda item: item[0] in STATES):
            if name in STATES:
                pulled.add(Pulled({name.removeprefix("state."): adj}))
            else:
                pulled.add(self.built.subjects[name].vertices_vjp(motion, run, adj))
        return pulled, add_up(values for _, values in back)

    def _wanted(self) -> tuple[str, ...]:
        """Return the parameters of the system that what is free reaches."""
        free = self.parameters.scene_values(self.parameters.start)
        return Reach(self.built, self.steps.dt).targets(free)

    def _gradient(
        self,
        theta: np.ndarray,
        values: Mapping[str, np.ndarray],
        back: Back,
        adjoints: dict[str, np.ndarray],
    ) -> np.ndarray:
        """Return the gradient in theta from cotangents of parameters that a rollout returned."""
        wanted, (pulled, by_path) = self._wanted(), back
        for path, adj in pulled.values.items():
            if path in wanted:
                adjoints[path] = adjoints.get(path, 0.0) + adj
        found = Reach(self.built, self.steps.dt).vjp(values, adjoints)
        for path, adj in by_path.items():
            found[path] = found[path] + adj if path in found else adj
        return self.parameters.scene_gradient(theta, found)

    # Residuals and losses

    def residuals_of(self, images: np.ndarray) -> np.ndarray:
        """Return r of predictions, without priors."""
        return joined([one.residuals(rows) for one, rows in self.by_observer(images)])

    def _residuals_tangent(self, tan_images: np.ndarray) -> np.ndarray:
        """Return the tangent of r, without priors."""
        pairs = self.by_observer(tan_images)
        return np.concatenate([one.residuals_jvp(rows) for one, rows in pairs])

    def residuals_cotangent(self, images: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of predictions, in as many columns as they have."""
        rows = [one.residuals_vjp(part) for one, part in self.by_residuals(adj_r)]
        return joined(rows)[:, : images.shape[-1]]

    def _residual_counts(self) -> list[int]:
        counts = []
        for one in self.observers:  # as many in every frame: one is enough to count them
            first = one.between(np.arange(len(one.times)) == 0)
            blank = np.zeros((one.rows_per_frame(), 4))
            counts.append(len(one.times) * len(first.residuals_jvp(blank)))
        return counts

    def by_observer(self, rows: np.ndarray) -> list[tuple[Observer, np.ndarray]]:
        """Return every observer with its rows of predictions."""
        counts = [one.rows_per_frame() * len(one.times) for one in self.observers]
        return list(zip(self.observers, cut(rows, counts), strict=True))

    def by_residuals(self, r: np.ndarray) -> list[tuple[Observer, np.ndarray]]:
        """Return every observer with its part of the residuals, without priors."""
        return list(zip(self.observers, cut(r, self._residual_counts()), strict=True))

    def loss_at(self, theta: np.ndarray) -> float:
        """Return the loss only."""
        return self.loss_of(self._rows(theta)) + self.penalty(theta)[0]

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        value, gradient = self.pull_back(theta, self.judge, on_device=True)
        more, slope = self.penalty(theta)
        return value + more, gradient + slope

    def loss_of(self, images: np.ndarray) -> float:
        """Return r @ r, without priors."""
        return _sum_of_squares(self.residuals_of(images))

    def judge(self, images: np.ndarray) -> tuple[float, np.ndarray]:
        """Return r @ r, and its gradient in the predictions."""
        r = self.residuals_of(images)
        return _sum_of_squares(r), self.residuals_cotangent(images, 2.0 * r)

    def penalty(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the squares of the priors, the losses of shape, and their gradient."""
        r, scale = self._prior(theta)
        total, gradient = float(r @ r), 2.0 * scale * r
        values = self.parameters.scene_values(theta) if self.shapes else {}
        for one in self.shapes:
            if one.path in values:
                weight = sum(seen.weight for seen in self.observers) / SEEN**2
                x = values[one.path]
                total += weight * one.value(x)
                adj = {one.path: weight * one.gradient(x)}
                gradient = gradient + self.parameters.scene_gradient(theta, adj)
        return total, gradient

    def _prior(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of the priors, 0 where there is none, and their slopes."""
        scale = 1.0 / (self.parameters.prior_error * np.sqrt(EVIDENCE))
        return scale * (theta - self.parameters.prior_mean), scale

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r at theta; the last rows are the priors."""
        return self.with_priors(theta, to_host(self.residuals_of(self._rows(theta))))

    def with_priors(self, theta: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return r of predictions with the rows of the priors at theta behind it."""
        return np.concatenate([r, self._prior(theta)[0]])

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of r along `tan_theta`."""
        own = self._residuals_tangent(self.images_jvp(theta, tan_theta)[1])
        return np.concatenate([own, self._prior(theta)[1] * tan_theta])

    def residuals_vjp(self, theta: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the gradient in theta for a cotangent of r."""
        n = len(theta)

        def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, self.residuals_cotangent(images, adj_r[:-n])

        return self.pull_back(theta, judge)[1] + self._prior(theta)[1] * adj_r[-n:]

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r and its Jacobian, one tangent sweep a column; columns share the threads."""
        rows, push = replace(self, threads=1).pushing(theta)
        own, (prior, scale) = to_host(self.residuals_of(rows)), self._prior(theta)
        jacobian = np.empty((len(own) + len(theta), len(theta)), order="F")

        def fill(i: int) -> None:
            direction = np.zeros(len(theta))
            direction[i] = 1.0
            pushed = self._residuals_tangent(push(direction))
            jacobian[:, i] = np.concatenate([pushed, scale * direction])

        with ThreadPoolExecutor(thread_count(None, large=self.device == "cpu")) as pool:
            list(pool.map(fill, range(len(theta))))
        return np.concatenate([own, prior]), jacobian

    def clusters_of_rows(self) -> np.ndarray:
        """Return which rows of the residuals are one piece of evidence; -1 for priors.

        They are instants. Of things at rest they are pictures, which if they are few are cut in
        strips.
        """
        counts = np.array(self._residual_counts())
        n = len(counts)
        if not self.is_at_rest:
            pairs = zip(self.observers, counts, strict=True)
            own = [np.repeat(one.index, count // len(one.times)) for one, count in pairs]
        elif n >= FEW_FRAMES or len(set(counts)) > 1:
            own = [np.repeat(np.arange(n), counts)]
        else:
            own = [row_clusters(int(counts.sum()), n)[0]]
        return np.concatenate([*own, np.full(self.parameters.size, -1)])

    def frame_losses(self, images: np.ndarray) -> np.ndarray:
        """Return the loss of every instant alone, (n_frames,): what is observed then."""
        return self._frame_losses(self.residuals_of(images))

    def _frame_losses(self, r: np.ndarray) -> np.ndarray:
        """Return the loss of every instant alone from residuals without priors, (n_frames,)."""
        # the loss of an observation is a mean over its frames: alone, a frame counts whole
        squares, parts = np.zeros(self.n_frames), np.zeros(self.n_frames)
        for one, own in self.by_residuals(r):
            np.add.at(squares, one.index, np.square(own).reshape(len(one.times), -1).sum(axis=1))
            np.add.at(parts, one.index, 1.0 / len(one.times))
        return squares / np.where(parts > 0.0, parts, 1.0)

    def residual_squares(self, theta: np.ndarray) -> np.ndarray:
        """Return the weighted mean squares of prediction - observation by instant."""
        return self._squares(self.images(theta), lambda one: one.targets())

    def look_squares(self, theta: np.ndarray) -> np.ndarray:
        """Return what the looks leave by instant: of the first frame of what is observed then.

        An observation that begins later than the motion may be wrong in its first frame because the
        motion is: its best frame counts.
        """
        moved, samplings, values = self.run_at(theta)
        out = np.zeros(self.n_frames)
        rows = self._predicted(moved, samplings, values)
        for one, own in zip(self.observers, rows, strict=True):
            left = one.squares(own, one.targets())
            begins_late = one.instants(values)[0] > SAME_TIME
            out[one.index] += left.min() if begins_late else left[0]
        return out

    def still_squares(self) -> np.ndarray:
        """Return those of first frame - observation: the motion that is there to explain."""
        return self._squares(self.targets, lambda one: one.still())

    def variation_squares(self) -> np.ndarray:
        """Return those of mean colour or place - observation: what pictures show at all."""
        return self._squares(self.targets, lambda one: _mean_rows(one.targets()))

    def _squares(self, rows: np.ndarray, other: Callable[[Observer], np.ndarray]) -> np.ndarray:
        out = np.zeros(self.n_frames)
        for one, part in self.by_observer(rows):
            out[one.index] += one.squares(part, other(one))
        return out

    # Many points at once

    def losses_by_frame(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return the loss of every instant at many points, (n_points, n_frames).

        It is inf where the rollout blows up. Where the system is a `Model`, the points whose
        stiffness asks for nearly the same time step are worlds of one batch.
        """
        none = np.full(self.n_frames, np.inf)
        samples = self.samples(thetas, with_gradient=False)
        return np.stack([one.frame_loss if isinstance(one, Sample) else none for one in samples])

    def with_rounded_steps(self, theta: np.ndarray) -> "SceneProblem":
        """Return the problem with a time step that suits theta, and that many thetas share."""
        own = self.with_steps_for(theta)
        return replace(own, steps=own.steps.rounded())

    def samples(
        self,
        thetas: Sequence[np.ndarray],
        *,
        with_gradient: bool = True,
        steps: Sequence[Steps] | None = None,
    ) -> list[Sample | Failure]:
        """Return loss and gradient at many points, or why there is none.

        `steps` are the time steps of every point; by default those of `with_rounded_steps`.
        """
        found: list[Sample | Failure] = [Failure("")] * len(thetas)
        alike: dict[Any, list[Any]] = {}
        for k, theta in enumerate(thetas):
            try:
                if steps is None:
                    own = self.with_rounded_steps(theta)
                else:
                    own = replace(self, steps=steps[k])
                moment = own._moment(theta)
            except (ValueError, ArithmeticError) as error:
                found[k] = Failure(str(error) or type(error).__name__)
                continue
            key = (moment[1].dt, moment[1].frames.tobytes())
            alike.setdefault(key, []).append((k, own, moment))
        for points in alike.values():
            count = worlds_at_once(points[0][2][1], keeps=with_gradient)
            for first in range(0, len(points), count):
                some = points[first : first + count]
                made = _sampled(thetas, some, with_gradient=with_gradient)
                for (k, *_), one in zip(some, made, strict=True):
                    found[k] = one
        return found


def _sum_of_squares(r: Any) -> float:
    """Return r @ r; on a device without cuBLAS, whose sums have an order of their own."""
    return float(r @ r) if isinstance(r, np.ndarray) else float((r * r).sum())


def cut(rows: Any, counts: Sequence[int]) -> list[Any]:
    """Return rows in parts of so many."""
    ends = list(accumulate(counts))
    return [rows[end - count : end] for count, end in zip(counts, ends, strict=True)]


def _states(run: Any) -> dict[str, np.ndarray]:
    """Return what observations may see of a trajectory beside surfaces."""
    found = {name: getattr(run, name.removeprefix("state."), None) for name in STATES}
    return {name: rows for name, rows in found.items() if rows is not None}


def _sampled(
    thetas: Sequence[np.ndarray], points: Sequence[Any], *, with_gradient: bool
) -> list[Sample | Failure]:
    """Return loss and gradient at points (number, problem, moment) with one time step."""
    runs, pull = run_worlds([moment[1] for _, _, moment in points], keeps=with_gradient)
    pulled: list[Back | None] = []
    residuals: list[np.ndarray] = []
    for (_, own, moment), run in zip(points, runs, strict=True):
        back, r = None, np.empty(0)
        if not isinstance(run, Failure):
            values, motion, samplings = moment
            if with_gradient:
                records = own._recorded(moment, run)
                rows = np.concatenate([record.rows for record in records])
                r = own.residuals_of(rows)
                adj_rows = own.residuals_cotangent(rows, 2.0 * r)
                back = own._pulled(motion, run, records, adj_rows)
            else:
                parts = own._predicted(own._moved(motion, run), samplings, values)
                r = own.residuals_of(np.concatenate(parts))
        pulled.append(back)
        residuals.append(r)
    adjoints: list[dict[str, np.ndarray]] = [{} for _ in points]
    if with_gradient:
        frames = [{} if one is None else one[0].frames for one in pulled]
        wanted = points[0][1]._wanted()
        adjoints = pull(frames, wanted) if wanted and any(frames) else adjoints
    out: list[Sample | Failure] = []
    for (k, own, moment), run, back, adjoint, r in zip(
        points, runs, pulled, adjoints, residuals, strict=True
    ):
        if isinstance(run, Failure):
            out.append(run)
            continue
        more, slope = own.penalty(thetas[k])
        gradient = np.empty(0)
        if back is not None:
            gradient = own._gradient(thetas[k], moment[0], back, adjoint) + slope
        loss = float(float(r @ r) + more)
        out.append(_checked(Sample(loss, gradient, own._frame_losses(r))))
    return out


def _checked(sample: Sample) -> Sample | Failure:
    if not np.isfinite(sample.loss):
        return Failure("The loss is not finite.")
    if not np.isfinite(sample.gradient).all():
        return Failure("The gradient leaves the finite numbers; the loss does not.")
    return sample


def on_one_timeline(problem: SceneProblem, observers: Sequence[Observer]) -> SceneProblem:
    """Return a problem of these observers, whose instants are counted together."""
    instants = np.sort(np.concatenate([one.start + one.times for one in observers]))
    new = np.concatenate([[True], np.diff(instants) > SAME_TIME])
    timeline = instants[new]
    placed = tuple(
        replace(
            one,
            index=np.searchsorted(timeline, one.start + one.times + SAME_TIME, side="right") - 1,
        )
        for one in observers
    )
    return replace(problem, observers=placed, n_frames=len(timeline))


def _mean_rows(rows: np.ndarray) -> np.ndarray:
    """Return the mean row, as often as there are rows."""
    return np.broadcast_to(rows.mean(axis=0), rows.shape)
