r"""From theta to the predictions of observations: forward, along a tangent, and back.

    theta -> values by path -> model and state -> rollout -> surfaces -> predictions
                            -> cameras, looks, lights, start times ----^

The rows of all observations follow each other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Self

import numpy as np

from adjsim.jit.device_arrays import joined, to_host
from studies.problem.contact_steps import stable_steps
from studies.problem.observers import DENSITY, NODES, Moved, Observer, RecordedPrediction
from studies.problem.parameters import Parameters
from studies.problem.scene_maps import SceneMaps, system_at
from studies.problem.steps import Sampling, TimeSteps, sample_steps
from studies.scene.building import BuiltScene
from studies.scene.filming import ImageCotangents
from studies.scene.maps import add_up
from studies.scene.motion import AtRest, Motion, Settled, pull_frames


MOST_ON_DEVICE = 1 << 30  # bytes of predictions that stay on a device beside what it works with
Judge = Callable[[np.ndarray], tuple[float, np.ndarray]]
# values by scene path, the motion, and where the instants of each observation lie
Moment = tuple[dict[str, np.ndarray], Motion, list[Sampling]]
# the cotangents of predictions: of the trajectory and parameters of the system, of values by path
Back = tuple[ImageCotangents, dict[str, np.ndarray]]
STATES = (NODES, DENSITY)


@dataclass(frozen=True, eq=False)
class ScenePredictor:
    """Predict the observations of a scene."""

    built: BuiltScene
    observers: tuple[Observer, ...]  # their `index` counts the instants of all observations
    parameters: Parameters
    steps: TimeSteps  # size of the time step
    # instants of all observations
    n_frames: int = 0
    # scene values that are neither free nor the scene's own, such as a fitted look, by path
    fixed: Mapping[str, np.ndarray] = field(default_factory=dict)
    # as `studies.scene.motion.Motion` takes them
    dtype: str = "float64"
    device: str = "cpu"
    threads: int | None = None
    checkpoint: str = "1GB"

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

    @property
    def schedule(self) -> str | None:
        """Which states of the rollout are kept to be reversed, in words."""
        motion = self.moment(self.parameters.start)[1]
        return motion.plan().in_words() if self.rolls_out else None

    @property
    def is_still(self) -> bool:
        """Whether nothing moves: pictures of still things."""
        return isinstance(self.built.system, AtRest)

    @property
    def rolls_out(self) -> bool:
        """Whether there is a rollout: neither still things nor a body where it rests."""
        return not isinstance(self.built.system, AtRest | Settled)

    @property
    def settles(self) -> bool:
        """Whether bodies are seen where they rest."""
        return isinstance(self.built.system, Settled)

    @property
    def is_of_forces(self) -> bool:
        """Whether load cells are observed, and nothing through a camera."""
        observers = self.observers
        return any(observer.sensor for observer in observers) and all(
            observer.camera is None for observer in observers
        )

    def by_observer(self, rows: np.ndarray) -> list[tuple[Observer, np.ndarray]]:
        """Return every observer with its rows of predictions."""
        counts = [observer.rows_per_frame() * len(observer.times) for observer in self.observers]
        return list(zip(self.observers, cut(rows, counts), strict=True))

    # The size of the time step

    def with_steps_for(self, theta: np.ndarray) -> Self:
        """Return the problem with a time step that suits the stiffness at theta."""
        return self._stepped(self.all_values(theta))

    def with_stable_steps(self, theta: np.ndarray) -> Self:
        """Return the problem with steps that suit the stiffness and the contacts at theta."""
        stepped = self.with_steps_for(theta)
        return replace(stepped, steps=stepped._stable_steps(theta))

    def _stable_steps(self, theta: np.ndarray) -> TimeSteps:
        values = self.all_values(theta)
        end = max(float(observer.instants(values).max()) for observer in self.observers)
        return stable_steps(self.steps, self.built, values, end, device=self.device)

    def with_rounded_steps(self, theta: np.ndarray) -> Self:
        """Return the problem with a time step that suits theta, and that many thetas share."""
        stepped = self.with_steps_for(theta)
        return replace(stepped, steps=stepped.steps.rounded())

    def _stepped(self, values: Mapping[str, np.ndarray]) -> Self:
        system, _ = system_at(self.built, values, self.steps.dt)
        return replace(self, steps=self.steps.suited_to(system))

    def steps_are_long(self, theta: np.ndarray) -> bool:
        """Whether the time step is too long for theta."""
        system, _ = system_at(self.built, self.all_values(theta), self.steps.dt)
        return self.steps.are_long(system) or self._stable_steps(theta) is not self.steps

    def steps_are_short(self, theta: np.ndarray) -> bool:
        """Whether longer time steps would do for theta as well."""
        system, _ = system_at(self.built, self.all_values(theta), self.steps.dt)
        return self.steps.are_short(system)

    # Forward

    def all_values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return every value that is not the scene's own, by path."""
        return {**self.fixed, **self.parameters.scene_values(theta)}

    def moment(self, theta: np.ndarray) -> Moment:
        """Return the values, the motion, and where the instants of each observation lie."""
        values = self.all_values(theta)
        return values, *self._moment_of(values)

    def _moment_of(self, values: Mapping[str, np.ndarray]) -> tuple[Motion, list[Sampling]]:
        dt = self.steps.dt
        steps, samplings = sample_steps(
            [observer.instants(values) for observer in self.observers],
            dt,
            moves=[observer.start_path in self.parameters.paths for observer in self.observers],
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
            step=self.built.step,
        )
        return motion, samplings

    def predictions(self, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the predicted rows of every observation for scene values by path."""
        return self.rows_of(*self.moved(values), values)

    def moved(self, values: Mapping[str, np.ndarray]) -> tuple[Moved, list[Sampling]]:
        """Return what moves for these values, in steps that suit them, and where instants lie."""
        stepped = self._stepped(values)
        motion, samplings = stepped._moment_of(values)
        return stepped.moved_by(motion, motion.run()), samplings

    def sceneries_at(self, theta: np.ndarray) -> dict[str, Any]:
        """Return what the camera of each observation sees at theta, by name, if it sees faces."""
        moved, samplings, values = self.run_at(theta)
        pairs = zip(self.observers, samplings, strict=True)
        sceneries = {
            observer.name: observer.scenery(observer.seen(moved, at), values)
            for observer, at in pairs
        }
        return {name: scenery for name, scenery in sceneries.items() if scenery is not None}

    def run_at(self, theta: np.ndarray) -> tuple[Moved, list[Sampling], dict[str, np.ndarray]]:
        """Return what moves at theta, where each observation's instants are, and the values."""
        values, motion, samplings = self.moment(theta)
        return self.moved_by(motion, motion.run()), samplings, values

    def seen_at(self, theta: np.ndarray) -> list[dict[str, Any]]:
        """Return what every observer sees at its instants, (n_instants, n, 3) by name."""
        moved, samplings, _ = self.run_at(theta)
        return [
            observer.seen(moved, at) for observer, at in zip(self.observers, samplings, strict=True)
        ]

    def motion_at(self, theta: np.ndarray) -> Motion:
        """Return the motion at theta."""
        return self.moment(theta)[1]

    def moved_by(self, motion: Motion, run: Any) -> Moved:
        """Return what moves in a run of a motion: surfaces, and states that are observed."""
        surfaces = {name: subject.vertices(motion, run) for name, subject in self._shown.items()}
        return surfaces | _states(run)

    @property
    def _shown(self) -> dict[str, Any]:
        """What is drawn, and the sensors that observations read, by name."""
        names = {observer.sensor for observer in self.observers if observer.sensor}
        return {**self.built.subjects, **{name: self.built.sensors[name] for name in names}}

    def predicted_rows(self, theta: np.ndarray) -> np.ndarray:
        """Return all predictions at theta, (n_rows, 4)."""
        return to_host(self._rows(theta))

    def _rows(self, theta: np.ndarray) -> Any:
        """Return all predictions at theta, on the device if all of them are made there."""
        values, motion, samplings = self.moment(theta)
        moved = self.moved_by(motion, motion.run(on_device=self._stays))
        return joined(self.rows_of(moved, samplings, values))

    @property
    def _stays(self) -> bool:
        """Whether predictions may stay on a device: the bound is the same for all devices."""
        rows = sum(observer.rows_per_frame() * len(observer.times) for observer in self.observers)
        return 4 * rows * np.dtype(self.dtype).itemsize <= MOST_ON_DEVICE

    def rows_of(
        self, moved: Moved, samplings: Sequence[Sampling], values: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Return the rows of every observation."""
        pairs = zip(self.observers, samplings, strict=True)
        return [observer.predict(moved, at, values) for observer, at in pairs]

    # Along a tangent

    def _tangent_of_motion(
        self, motion: Motion, tangents: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]
    ) -> Moved:
        """Return what moves for tangents by scene path; {} where the system stays."""
        reached = SceneMaps(self.built, motion.dt).jvp(values, tangents)
        if not reached:
            return {}
        run, tan_run = motion.jvp(reached)
        surfaces = {
            name: subject.vertices_jvp(motion, run, tan_run, reached)
            for name, subject in self._shown.items()
        }
        return surfaces | _states(tan_run)

    def predicted_rows_jvp(
        self, theta: np.ndarray, tan_theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions at theta and their derivative along `tan_theta`."""
        records, push = self.pushing(theta)
        return to_host(joined([record.rows for record in records])), joined(push(tan_theta))

    def pushing(
        self, theta: np.ndarray
    ) -> tuple[list[RecordedPrediction], Callable[[np.ndarray], list[np.ndarray]]]:
        """Return all predictions, made once, and what pushes any number of directions to each.

        The predictions are on the device if all of them are made there.
        """
        moment = self.moment(theta)
        values, motion, _ = moment
        records = self.recorded(moment, motion.run(on_device=self._stays))

        def push(tan_theta: np.ndarray) -> list[np.ndarray]:
            tangents = self.parameters.scene_tangents(theta, tan_theta)
            tan = self._tangent_of_motion(motion, tangents, values)
            return [record.jvp(tan, tangents) for record in records]

        return records, push

    def recorded(self, moment: Moment, run: Any) -> list[RecordedPrediction]:
        """Return the predictions of a run with their derivatives."""
        values, motion, samplings = moment
        moved, pairs = self.moved_by(motion, run), zip(self.observers, samplings, strict=True)
        return [observer.record(moved, at, values) for observer, at in pairs]

    # Back

    def pull_back(
        self, theta: np.ndarray, judge: Judge, *, on_device: bool = False
    ) -> tuple[float, np.ndarray]:
        """Return the value and the gradient in theta of `judge(rows) -> value, adj_rows`.

        `on_device` shows the judge rows that are on the device, if all of them are made there.
        """
        values, recorded, _, (value, _), back = self._judged(theta, judge, on_device=on_device)
        wanted = self.reached_parameters()
        adjoints = dict(pull_frames(recorded, back[0].frames, wanted)) if wanted else {}
        return value, self.gradient_of(theta, values, back, adjoints)

    def _judged(
        self, theta: np.ndarray, judge: Judge, *, on_device: bool = False
    ) -> tuple[Any, ...]:
        """Return the values, the record, the predictions, what is judged of them, its cotangent."""
        moment = self.moment(theta)
        recorded = moment[1].record(on_device=on_device and self._stays)
        records = self.recorded(moment, recorded.trajectory)
        value, adj_rows = judge(joined([record.rows for record in records]))
        back = self.pull_rows_back(moment[1], recorded.trajectory, records, adj_rows)
        return moment[0], recorded, records, (value, adj_rows), back

    def pull_rows_back(
        self, motion: Motion, run: Any, records: Sequence[RecordedPrediction], adj_rows: np.ndarray
    ) -> Back:
        """Pull the cotangent of the predictions of a run back to its frames, and to values."""
        pairs = zip(records, cut(adj_rows, [len(record.rows) for record in records]), strict=True)
        back = [record.vjp(adj) for record, adj in pairs]
        pulled = ImageCotangents()
        adj_fields = add_up(fields for fields, _ in back)
        for name, adj in sorted(adj_fields.items(), key=lambda item: item[0] in STATES):
            if name in STATES:
                pulled.add(ImageCotangents({name.removeprefix("state."): adj}))
            else:
                pulled.add(self._shown[name].vertices_vjp(motion, run, adj))
        return pulled, add_up(values for _, values in back)

    def reached_parameters(self) -> tuple[str, ...]:
        """Return the parameters of the system that what is free reaches."""
        free = self.parameters.scene_values(self.parameters.start)
        return SceneMaps(self.built, self.steps.dt).targets(free)

    def gradient_of(
        self,
        theta: np.ndarray,
        values: Mapping[str, np.ndarray],
        back: Back,
        adjoints: dict[str, np.ndarray],
    ) -> np.ndarray:
        """Return the gradient in theta from cotangents of parameters that a rollout returned."""
        gradients = self.by_path(values, back, adjoints, self.reached_parameters())
        return self.parameters.scene_gradient(theta, gradients)

    def by_path(
        self,
        values: Mapping[str, np.ndarray],
        back: Back,
        adjoints: dict[str, np.ndarray],
        wanted: Sequence[str],
    ) -> dict[str, np.ndarray]:
        """Return the same by scene path, of the `wanted` parameters of the system."""
        pulled, by_path = back
        for path, adj in pulled.values.items():
            if path in wanted:
                adjoints[path] = adjoints.get(path, 0.0) + adj
        return add_up([SceneMaps(self.built, self.steps.dt).vjp(values, adjoints), by_path])


def cut(rows: Any, counts: Sequence[int]) -> list[Any]:
    """Return rows in parts of so many."""
    ends = list(accumulate(counts))
    return [rows[end - count : end] for count, end in zip(counts, ends, strict=True)]


def _states(run: Any) -> dict[str, np.ndarray]:
    """Return what observations may see of a trajectory beside surfaces."""
    states = {name: getattr(run, name.removeprefix("state."), None) for name in STATES}
    return {name: rows for name, rows in states.items() if rows is not None}
