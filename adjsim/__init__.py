"""Forward physics: models, forces, rollouts. Never learns that gradients exist."""

from adjsim.model import Model as Model, State as State, Trajectory as Trajectory
from adjsim.rollout import RolloutError as RolloutError, rollout as rollout
