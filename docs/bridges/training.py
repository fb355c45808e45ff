"""A training loop in PyTorch with a rollout in it: the stiffness of the chain."""

import torch
from chain import RUN, X, measured, model

from adjoint.bridges.torch import rollout
from adjsim import State


swing = rollout(model, State(X), **RUN)
log_stiffness = torch.tensor(100.0, dtype=torch.float64).log().requires_grad_()
adam = torch.optim.Adam([log_stiffness], lr=0.05)
for _ in range(100):
    x = swing({"springs.stiffness": log_stiffness.exp()})["x"]  # (8, 6, 3)
    loss = ((x - torch.from_numpy(measured)) ** 2).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
print(f"{log_stiffness.exp().item():.2f} N/m (true: 60)")
