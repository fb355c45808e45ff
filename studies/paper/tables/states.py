"""From states: the search of the scene's study with positions in place of pictures.

The 3-D supervised baseline of the gradSim paper: where every node, or the centre of every rigid
body, is at the frames is known, and the loss is their mean squared distance. Start, stages, budget
and method are those of the search from video.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adjoint.losses import state_mse_vjp
from adjsim.losses import state_mse
from studies.errors import FailedSearchError
from studies.image_problem import filled_columns
from studies.motion import Motion, pull_frames
from studies.optimizers.problem import Status
from studies.paper.tables.from_video import silent
from studies.paper.tables.table import Case, Estimate, Settings
from studies.parameters import Parameters
from studies.runs.folder import RunFolder
from studies.search.local import search
from studies.timeline import first_part
from studies.uncertainty import Uncertainty, spectrum


@dataclass(frozen=True, eq=False)
class StateProblem:
    """A `studies.optimizers.problem.Problem`: compare positions at the frames with known ones.

    Attributes
    ----------
    motion : Motion
    parameters : Parameters
        What is free; its targets are parameters of the motion.
    targets : numpy.ndarray
        Positions of nodes, then of bodies, (n_frames, n_points, 3) [m].
    """

    motion: Motion
    parameters: Parameters
    targets: np.ndarray

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of theta."""
        return self.parameters.lower, self.parameters.upper

    @property
    def dtype(self) -> str:
        """Kind of number that the rollout is worked out in."""
        return self.motion.dtype

    def at_stage(self, stage: float) -> "StateProblem":
        """Return the problem of this part of the frames, at least one."""
        if stage == 1.0:
            return self
        count = first_part(len(self.motion.frames), stage)
        motion = self.motion.at(self.motion.frames[:count])
        return replace(self, motion=motion, targets=self.targets[:count])

    def name_of_stage(self, stage: float) -> str:
        """Return how many frames are looked at in a stage."""
        count = len(self.motion.frames)
        return f"{first_part(count, stage)} of {count} frames"

    def values(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural values by path."""
        return self.parameters.values(theta)

    def motion_at(self, theta: np.ndarray) -> Motion:
        """Return the motion with the values at theta."""
        return self.motion.with_values(self.parameters.rollout_values(theta))

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        recorded = self.motion_at(theta).record()
        run = recorded.trajectory
        adj_x = state_mse_vjp(positions(run), self.targets)
        adjoints = pull_frames(recorded, split_positions(run, adj_x), self.parameters.targets)
        return state_mse(positions(run), self.targets), self.parameters.gradient(theta, adjoints)

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r with loss = r @ r."""
        d = positions(self.motion_at(theta).run()) - self.targets
        return d.ravel() / np.sqrt(d.size)

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of the residuals along `tan_theta`."""
        _, tan_run = self.motion_at(theta).jvp(self.parameters.tangents(theta, tan_theta))
        tan_x = positions(tan_run)
        return tan_x.ravel() / np.sqrt(tan_x.size)

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and their Jacobian, one tangent rollout a column."""
        alone = replace(self, motion=replace(self.motion, threads=1))
        r = alone.residuals(theta)
        jacobian = filled_columns(
            lambda direction: alone.residuals_jvp(theta, direction),
            (len(r), len(theta)),
            self.motion.device,
        )
        return r, jacobian


def positions(run: Any) -> np.ndarray:
    """Return where nodes and then bodies are, (n_frames, n_points, 3) [m]."""
    own = [run.x] if run.x.size else []
    return np.concatenate([*own, *(one.position for one in run.bodies.values())], axis=1)


def split_positions(run: Any, adj_x: np.ndarray) -> dict[str, np.ndarray]:
    """Return the cotangents of a trajectory's fields from that of its `positions`."""
    fields = {"x": run.x} if run.x.size else {}
    fields |= {f"{name}.position": one.position for name, one in run.bodies.items()}
    ends = np.cumsum([field.shape[1] for field in fields.values()])
    return dict(zip(fields, np.split(adj_x, ends[:-1], axis=1), strict=True))


def state_problem(case: Case) -> StateProblem:
    """Return the problem of the states of a case's hidden motion."""
    video = case.problem
    truth = video.motion_at(video.parameters.theta(case.truth)).run()
    return StateProblem(video.motion, video.parameters, positions(truth))


@dataclass(frozen=True)
class FromStates:
    """An estimator: the study's search, on positions."""

    name: str = "states"
    label: str = "3-D supervision"

    def about(self, settings: Settings) -> str:
        """Return what it does."""
        del settings
        return (
            "The same search on states instead of pictures: the positions of all nodes, or of the "
            "centres of rigid bodies, at the frames; start, stages, budget and method are those "
            "of the search from video."
        )

    def check(self, settings: Settings) -> None:
        """Accept all settings: they are the study's."""
        del settings

    def estimate(self, case: Case) -> Estimate:
        """Search, and give the spectrum of the states."""
        problem, how = state_problem(case), case.fit.search
        seed = (case.options.seed, case.k)
        with tempfile.TemporaryDirectory() as place:
            found = search(problem, how, RunFolder(Path(place)), silent(case), seed=seed)
        if found.best.status is Status.NOT_FINITE:
            raise FailedSearchError(found.best.message)
        theta = found.best.theta
        return Estimate(
            theta,
            found.best.status.name,
            found.best.loss,
            found.evaluations,
            len(found.all),
            _determined(problem, theta).to_dict(problem.parameters.theta_labels),
        )


def _determined(problem: StateProblem, theta: np.ndarray) -> Uncertainty:
    """Return how well the states determine theta: the spectrum, without intervals."""
    values, directions = spectrum(problem.residuals_and_jacobian(theta)[1])
    nan = np.full(len(theta), np.nan)
    return Uncertainty((nan, nan), (nan, nan), 0.0, values, directions, "states have no noise")


STATES = FromStates()
