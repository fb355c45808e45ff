"""Oscillations sampled at frames: the loss of all has many wrong minima, that of a few has one."""

from dataclasses import dataclass, field, replace

import numpy as np

from studies.problem.parameters import Identity, Parameters
from studies.runs.errors import NotFiniteError
from studies.search.robust import first_part
from tests.studies.problem.free import block, positive_block


FREQUENCY, AMPLITUDE = 20.0, 1.5
TIMES = np.linspace(0.02, 1.2, 60)


def one_free(start, bounds=(2.0, 200.0)):
    return Parameters([positive_block("w", start, {"w": bounds})])


def two_free(start, amplitude=1.0):
    bounds = {"w": (2.0, 200.0), "a": (0.1, 10.0)}
    return Parameters([positive_block("w", start, bounds), positive_block("a", amplitude, bounds)])


def with_offset(start):
    """An offset of the picture is a nuisance; it may have either sign."""
    offset = block("offset", Identity(), 0.0, {"offset": (-1.0, 1.0)})
    return Parameters([*one_free(start).free, offset])


def three_free(start):
    decay = positive_block("decay", 0.5, {"decay": (0.01, 5.0)})
    return Parameters([*two_free(start).free, decay])


def four_free(start):
    return Parameters([*three_free(start).free, *with_offset(start).free[1:]])


@dataclass(frozen=True, eq=False)
class Swing:
    """r_k = (a exp(-decay t_k) sin(w t_k) + offset - target_k) / sqrt(n), one residual a frame.

    `longest_step` times the frequency is the step above which a rollout blows up.
    """

    parameters: Parameters
    times: np.ndarray = field(default_factory=lambda: TIMES)
    noise: float = 0.0
    truth: float = FREQUENCY
    answers: tuple[int, ...] = (0,)
    dt: float = 0.0
    longest_step: float = np.inf
    calls: list = field(default_factory=list)

    dtype = "float64"
    is_still = False

    @property
    def bounds(self):
        return self.parameters.lower, self.parameters.upper

    @property
    def n_frames(self):
        return len(self.times)

    @property
    def targets(self):
        noise = self.noise * np.random.default_rng(4).normal(size=len(TIMES))
        return AMPLITUDE * np.sin(self.truth * self.times) + noise[: len(self.times)]

    def values(self, theta):
        return {"a": AMPLITUDE, "offset": 0.0, "decay": 0.0} | self.parameters.values(theta)

    def differences(self, theta):
        value = self.values(theta)
        if self.dt * value["w"] > self.longest_step:
            raise NotFiniteError("blew up")
        size = value["a"] * np.exp(-value["decay"] * self.times)
        return size * np.sin(value["w"] * self.times) + value["offset"] - self.targets

    def residuals(self, theta):
        self.calls.append(theta)
        return self.differences(theta) / np.sqrt(self.n_frames)

    def residuals_and_jacobian(self, theta):
        value = self.values(theta)
        wave = np.exp(1j * value["w"] * self.times - value["decay"] * self.times)
        slopes = {
            "w": value["a"] * wave.real * self.times,
            "a": wave.imag,
            "offset": np.ones(self.n_frames),
            "decay": -value["a"] * wave.imag * self.times,
        }
        by_path = np.stack([slopes[path] for path in self.parameters.paths], axis=1)
        jacobian = by_path * self.parameters.natural_rates(theta)
        return self.residuals(theta), jacobian / np.sqrt(self.n_frames)

    def loss_and_gradient(self, theta):
        r, jacobian = self.residuals_and_jacobian(theta)
        return float(r @ r), 2.0 * jacobian.T @ r

    def losses_by_frame(self, thetas):
        self.calls.append(thetas)
        return np.stack([self.differences_or_inf(theta) ** 2 for theta in thetas])

    def differences_or_inf(self, theta):
        try:
            return replace(self, dt=0.0).differences(theta)
        except NotFiniteError:
            return np.full(self.n_frames, np.inf)

    def at_stage(self, stage):
        return replace(self, times=self.times[: first_part(self.n_frames, stage)])

    def name_of_stage(self, stage):
        return f"{first_part(self.n_frames, stage)} of {self.n_frames} frames"

    def with_steps_for(self, theta):
        return self

    def with_stable_steps(self, theta):
        return self.with_steps_for(theta)

    def steps_are_long(self, theta):
        return False

    def steps_are_short(self, theta):
        return False


class Stepped(Swing):
    """With time steps that fit a theta: half of what is stable there."""

    def with_steps_for(self, theta):
        return replace(self, dt=0.5 * self.longest_step / float(self.values(theta)["w"]))

    def steps_are_long(self, theta):
        return bool(self.dt * self.values(theta)["w"] > 0.7 * self.longest_step)

    def steps_are_short(self, theta):
        return bool(1.5 * self.dt <= self.with_steps_for(theta).dt)
