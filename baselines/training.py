"""Train a network on the videos of a data set, and have it guess those that it has not seen.

What is guessed is the logarithm of every parameter, less its mean over the training set and divided
by its deviation there; the loss is the mean square. A tenth of the training set is kept back, and
the weights of the epoch that is best on it are taken: the test set is looked at once, at the end.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from baselines.networks import NETWORKS
from baselines.videos import Videos
from studies.runs.errors import StudyError


KEPT_BACK = 10  # every so many videos of the training set one is not trained on
AT_ONCE = 16  # videos of a step


@dataclass(frozen=True)
class Plan:
    """How a network is trained.

    Attributes
    ----------
    network : str
        One of `NETWORKS`.
    epochs : int
    rate : float
        Of Adam at first; it falls to 0 along a cosine.
    seed : int
        Of weights, dropout and order.
    """

    network: str
    epochs: int
    rate: float
    seed: int


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that was trained.

    Attributes
    ----------
    network : torch.nn.Module
    mean, scale : numpy.ndarray
        Of the logarithms, (n_targets,).
    losses : list of dict
        Of every epoch: train, kept_back [-].
    best : int
        Whose weights these are.
    seconds : float
    """

    network: nn.Module
    mean: np.ndarray
    scale: np.ndarray
    losses: list[dict[str, float]]
    best: int
    seconds: float

    def guess(self, videos: Videos) -> np.ndarray:
        """Return what the network guesses, in the parameters' own units, (n, n_targets)."""
        self.network.eval()
        with torch.no_grad():
            parts = [self.network(some) for some in _batches(videos, np.arange(len(videos)))]
        return np.exp(torch.cat(parts).double().numpy() * self.scale + self.mean)


def train(
    videos: Videos, plan: Plan, report: Callable[[int, dict[str, float]], Any] = lambda *_: None
) -> Trained:
    """Train a network.

    Parameters
    ----------
    videos : Videos
        The training set.
    plan : Plan
    report : callable
        report(epoch, losses) after every epoch.

    Raises
    ------
    StudyError
        If there are too few videos.
    """
    size = videos.images.shape[-2:]
    if len(videos) < 2 * KEPT_BACK:
        raise StudyError(f"Training needs at least {2 * KEPT_BACK} videos, got {len(videos)}.")
    torch.manual_seed(plan.seed)
    order = np.random.default_rng(plan.seed)
    is_kept = np.arange(len(videos)) % KEPT_BACK == KEPT_BACK - 1
    seen, kept = np.flatnonzero(~is_kept), np.flatnonzero(is_kept)
    logs = np.log(videos.values)
    mean, scale = logs[seen].mean(axis=0), logs[seen].std(axis=0)
    aims = torch.from_numpy(((logs - mean) / scale).astype(np.float32))
    network = NETWORKS[plan.network](videos.images.shape[1], size, videos.values.shape[1])
    adam = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=1e-2)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, plan.epochs)
    losses: list[dict[str, float]] = []
    best, weights = 0, {}
    began = time.perf_counter()
    for epoch in range(plan.epochs):
        loss = _epoch(network, videos, aims, order.permutation(seen), adam=adam)
        falling.step()
        losses.append({"train": loss, "kept_back": _loss(network, videos, aims, kept)})
        if losses[-1]["kept_back"] <= losses[best]["kept_back"]:
            best = epoch
            weights = {name: value.clone() for name, value in network.state_dict().items()}
        report(epoch, losses[-1])
    network.load_state_dict(weights)
    return Trained(network, mean, scale, losses, best, time.perf_counter() - began)


def _epoch(
    network: nn.Module, videos: Videos, aims: Tensor, rows: np.ndarray, *, adam: Any
) -> float:
    """Take a step for every batch of these videos; return their mean loss."""
    network.train()
    total = 0.0
    for some, batch in zip(_batches(videos, rows), _cut(rows), strict=True):
        adam.zero_grad()
        loss = nn.functional.mse_loss(network(some), aims[batch])
        loss.backward()
        adam.step()
        total += float(loss.detach()) * len(batch)
    return total / len(rows)


def _loss(network: nn.Module, videos: Videos, aims: Tensor, rows: np.ndarray) -> float:
    """Return the loss of videos that are not learned from."""
    network.eval()
    with torch.no_grad():
        parts = torch.cat([network(some) for some in _batches(videos, rows)])
    return float(nn.functional.mse_loss(parts, aims[rows]))


def _batches(videos: Videos, rows: np.ndarray) -> Iterator[Tensor]:
    """Yield videos some at a time, from 0 to 1, float32."""
    for batch in _cut(rows):
        yield torch.from_numpy(videos.images[batch]).float() / 255.0


def _cut(rows: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(rows), AT_ONCE):
        yield rows[first : first + AT_ONCE]
