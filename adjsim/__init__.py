"""Forward physics: models, forces and their tangents, rollouts, equilibria."""

__version__ = "0.1.0"

from adjsim.courses import Policy as Policy, Signal as Signal
from adjsim.model import Model as Model, State as State, Trajectory as Trajectory
from adjsim.rollout import rollout as rollout
from adjsim.steps.implicit import ImplicitEuler as ImplicitEuler
from adjsim.steps.semi_implicit import SemiImplicitEuler as SemiImplicitEuler
from adjsim.system import OnDivergence as OnDivergence, RolloutError as RolloutError
from adjsim.worlds import Batch as Batch, stack as stack
