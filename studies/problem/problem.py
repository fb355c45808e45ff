"""A scene, its observations and what is free of it, as a problem for search and answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from studies.problem.losses import SceneLosses
from studies.problem.many_thetas import samples
from studies.problem.observers import Observer
from studies.problem.worlds import Sample


SAME_TIME = 1e-6  # [s]: instants that are nearer are one


@dataclass(frozen=True, eq=False)
class SceneProblem(SceneLosses):
    """A `studies.optimizers.problem.Problem`, with the parts of it that a search begins with."""

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self.parameters.lower, self.parameters.upper

    @property
    def answers(self) -> tuple[int, ...]:
        """Components of theta that are asked for; the others are nuisances, such as a camera."""
        return self.parameters.answers

    @property
    def staged(self) -> tuple[int, ...]:
        """Components of theta that are searched in stages, the others held.

        First frames of films show cameras and looks before the search. Where tracked points alone
        are observed, cameras are searched with the answers: in a wrong one no answer explains them.
        Errors of shapes, of which there are many, come last.
        """
        if any(observer.IS_PICTURE for observer in self.observers):
            return self.parameters.first_answers
        is_staged = self.parameters.each([not free.is_shape_error for free in self.parameters.free])
        return tuple(np.flatnonzero(is_staged).tolist()) or self.answers

    def with_dtype(self, dtype: str) -> Self:
        """Return the same problem computed in another precision."""
        return replace(self, dtype=dtype)

    def at_stage(self, stage: float) -> Self:
        """Return the problem of this part of the frames, at least two; above 1, of softer edges."""
        if stage == 1.0:
            return self
        if stage > 1.0:
            softened = [observer.softened(stage) for observer in self.observers]
            return replace(self, observers=tuple(softened))
        first = min(observer.start + observer.times[0] for observer in self.observers)
        least = 1 if first > SAME_TIME else 2  # what is at the start shows no motion
        return self.first_frames(max(least, int(np.ceil(stage * self.n_frames))))

    def name_of_stage(self, stage: float) -> str:
        """Return how many frames are looked at in a stage, or how soft edges are."""
        if self.is_still:
            return f"edges {stage:g} times as soft"
        return f"{self.at_stage(stage).n_frames} of {self.n_frames} frames"

    def first_frames(self, count: int) -> Self:
        """Return the problem that compares only the first instants."""
        kept = [(observer, observer.index < count) for observer in self.observers]
        observers = tuple(observer.between(keep) for observer, keep in kept if keep.any())
        return replace(self, observers=observers, n_frames=min(count, self.n_frames))

    def at(self, theta: np.ndarray, keep: tuple[int, ...] | None = None) -> Self:
        """Return the problem that starts at theta; with `keep`, with all else fixed there."""
        fixed = {**self.fixed, **self.parameters.scene_values(theta)}
        return replace(self, parameters=self.parameters.held_at(theta, keep), fixed=fixed)

    def losses_by_frame(self, thetas: Sequence[np.ndarray]) -> np.ndarray:
        """Return the loss of every instant at many points, (n_points, n_frames).

        It is inf where the rollout blows up. Where the system is a `Model`, the points whose
        stiffness asks for nearly the same time step are worlds of one batch.
        """
        none = np.full(self.n_frames, np.inf)
        out = samples(self, thetas, with_gradient=False)
        return np.stack(
            [sample.frame_loss if isinstance(sample, Sample) else none for sample in out]
        )


def on_one_timeline(problem: SceneProblem, observers: Sequence[Observer]) -> SceneProblem:
    """Return a problem of these observers, whose instants are counted together."""
    instants = np.sort(np.concatenate([observer.start + observer.times for observer in observers]))
    new = np.concatenate([[True], np.diff(instants) > SAME_TIME])
    timeline = instants[new]
    placed = tuple(
        replace(
            observer,
            index=np.searchsorted(
                timeline, observer.start + observer.times + SAME_TIME, side="right"
            )
            - 1,
        )
        for observer in observers
    )
    return replace(problem, observers=placed, n_frames=len(timeline))
