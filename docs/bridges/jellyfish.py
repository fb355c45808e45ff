"""A policy network in PyTorch steers the bundled jellyfish: it sees how it moves, and beats."""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from adjoint.bridges.torch import rollout
from studies.scene.building import build
from studies.scene.files import scene_file
from studies.scene.reading import read_scene


BEATS, STEPS, DT = 30, 32, 1.0 / 960.0  # decisions, steps between them, a step [s]
FREQUENCY, MOST = 16.0, 0.15 * np.pi  # of the beat [rad/s]; how far a hinge may bend [rad]

built = build(read_scene(scene_file("control-jellyfish")))
muscles = built.system.forces["jellyfish_bending"]
muscles = replace(muscles, actuation=np.zeros(len(muscles.hinges)))  # in place of a declared policy
model = replace(built.system, forces={**built.system.forces, "jellyfish_bending": muscles})
swim = rollout(model, built.state, DT, STEPS)

is_of_bell = built.state.x[:, 1] > -0.01  # below are the lappets, which have no muscles
strength = torch.tensor(MOST * is_of_bell[muscles.hinges].all(axis=1))  # of each hinge [rad]


def make_policy():
    """Return a network from a clock and the velocity of the jellyfish to what each hinge does."""
    torch.manual_seed(0)
    n = len(strength)
    return nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, n), nn.Tanh()).double()


def episode(policy):
    """Return the positions of the nodes after every decision, (BEATS, n_nodes, 3)."""
    x, v = torch.tensor(built.state.x), torch.tensor(built.state.v)
    path = []
    for beat in range(BEATS):
        phase = torch.tensor(FREQUENCY * beat * STEPS * DT)
        seen = torch.stack([phase.sin(), phase.cos(), *v.mean(dim=0)])
        angle = strength * policy(seen)
        end = swim({"state.x": x, "state.v": v, "jellyfish_bending.actuation": angle})
        x, v = end["x"][0], end["v"][0]
        path.append(x)
    return torch.stack(path)


def train(policy, evaluations):
    """Train the policy to swim 2 m up, and return how far it rose in each episode [m]."""
    adam = torch.optim.Adam(policy.parameters(), lr=0.03, betas=(0.8, 0.95))
    start, risen = torch.tensor(built.state.x.mean(axis=0)), []
    for _ in range(evaluations):
        way = episode(policy)[-1].mean(dim=0) - start
        loss = ((way - torch.tensor([0.0, 2.0, 0.0])) ** 2).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        risen.append(way[1].item())
    return risen


if __name__ == "__main__":
    for number, rise in enumerate(train(make_policy(), 60)):
        print(f"episode {number}: {rise:+.3f} m")
