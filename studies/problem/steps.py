"""The size of the time step: chosen from the estimate of the stable one, unless it is given."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjsim.model import Model
from studies.scene.contacts import stable_dt


ROOM = 0.6  # of the estimated stable step: 2.8 times the stiffness is still stable
LONG = 1.0  # of it, from which on steps are too long
LEAST, SMOOTH = 4, 64  # steps between frames; without an estimate, as for a pendulum


@dataclass(frozen=True)
class Steps:
    """A time step that divides the time between frames."""

    interval: float  # time between frames [s]
    count: int  # steps in it
    is_given: bool = False  # whether the scene file says how long a step is

    @property
    def dt(self) -> float:
        """The step [s]."""
        return self.interval / self.count

    def suited_to(self, system: Any) -> "Steps":
        """Return the steps for a system, as many as the estimate asks for."""
        if self.is_given:
            return self
        stable = stable_dt(system) if isinstance(system, Model) else np.inf
        if not np.isfinite(stable):
            return replace(self, count=SMOOTH)
        count = int(np.ceil(self.interval / (ROOM * stable)))
        return replace(self, count=max(count, LEAST))

    def rounded(self) -> "Steps":
        """Return as many steps or more: the next power of two, which many systems share."""
        if self.is_given:
            return self
        return replace(self, count=1 << (self.count - 1).bit_length())

    def are_long(self, system: Any) -> bool:
        """Whether the steps are too long for a system."""
        if self.is_given or not isinstance(system, Model):
            return False
        return self.dt > LONG * stable_dt(system)


def first_steps(interval: float, given: float | None) -> Steps:
    """Return steps between frames: given ones, at most `given` long, or some to begin with."""
    if given is None:
        return Steps(interval, LEAST)
    return Steps(interval, max(int(np.ceil(interval / given - 1e-9)), 1), is_given=True)
