"""A chain of masses on springs that swings; its stiffness is to be found from where it was."""

import numpy as np

from adjsim import Model, State, rollout
from adjsim.forces import Springs


X = np.array([[0.2 * k, 0.0, 0.0] for k in range(6)])
springs = Springs([(k, k + 1) for k in range(5)], stiffness=100.0, rest_length=0.2, damping=0.05)
model = Model(np.full(6, 0.1), {"springs": springs}, pinned=np.arange(6) == 0)
RUN = {"dt": 2e-3, "n_steps": 400, "frames": range(50, 401, 50)}


def frames(stiffness):
    """Return where the chain is at eight instants, (8, 6, 3)."""
    moved, state = model.with_values(State(X), {"springs.stiffness": stiffness})
    return rollout(moved, state, **RUN).x


measured = frames(60.0)
