"""Two networks from a video to numbers: a CNN on each frame, and a convolutional LSTM.

Both are small, so that a thousand videos of 64 x 64 pixels train in minutes without a GPU. The
CNN of gradSim is a pretrained EfficientNet-B0 on every frame; ours start from random weights.

Source of the convolutional LSTM: Shi et al., Convolutional LSTM Network, NeurIPS 2015, without
its peepholes.
"""

import torch
from torch import Tensor, nn


def halving(n_in: int, n_out: int) -> nn.Module:
    """Return a convolution that halves height and width, normalised and rectified."""
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, stride=2, padding=1), nn.BatchNorm2d(n_out), nn.ReLU()
    )


def n_left(size: tuple[int, int]) -> int:
    """Return how many pixels four halvings leave; each rounds height and width up."""
    return -(-size[0] // 16) * -(-size[1] // 16)


def head(n_in: int, n_out: int) -> nn.Module:
    """Return what turns features into numbers."""
    return nn.Sequential(
        nn.Linear(n_in, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 64), nn.ReLU(),
        nn.Linear(64, n_out),
    )  # fmt: skip


class FrameCnn(nn.Module):
    """The same convolutions on every frame, then all frames together.

    (n, n_frames, 4, height, width) to (n, n_out).
    """

    FEATURES = 48  # of a frame

    def __init__(self, n_frames: int, size: tuple[int, int], n_out: int) -> None:
        super().__init__()
        self.frames = nn.Sequential(
            halving(4, 16), halving(16, 32), halving(32, 32), halving(32, 32), nn.Flatten(),
            nn.Linear(32 * n_left(size), self.FEATURES), nn.ReLU(),
        )  # fmt: skip
        self.head = head(n_frames * self.FEATURES, n_out)

    def forward(self, videos: Tensor) -> Tensor:
        """Return the numbers of every video."""
        n, n_frames = videos.shape[:2]
        features = self.frames(videos.flatten(0, 1))
        return self.head(features.reshape(n, n_frames * self.FEATURES))


class ConvLstm(nn.Module):
    """A state of pictures that every frame changes; the last one tells the numbers.

    i, f, o = sigmoid(W * [x, h]),  g = tanh(W * [x, h]),  c' = f c + i g,  h' = o tanh(c')
    """

    HIDDEN = 24

    def __init__(self, n_frames: int, size: tuple[int, int], n_out: int) -> None:
        del n_frames  # any number
        super().__init__()
        self.frames = nn.Sequential(halving(4, 16), halving(16, 16))
        self.gates = nn.Conv2d(16 + self.HIDDEN, 4 * self.HIDDEN, 3, padding=1)
        self.tail = nn.Sequential(halving(self.HIDDEN, 32), halving(32, 32), nn.Flatten())
        self.head = head(32 * n_left(size), n_out)

    def forward(self, videos: Tensor) -> Tensor:
        """Return the numbers of every video."""
        n, n_frames = videos.shape[:2]
        features = self.frames(videos.flatten(0, 1))
        features = features.reshape(n, n_frames, *features.shape[1:])
        shape = (n, self.HIDDEN, *features.shape[-2:])
        h, c = features.new_zeros(shape), features.new_zeros(shape)
        for k in range(n_frames):
            i, f, o, g = self.gates(torch.cat([features[:, k], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(self.tail(h))


NETWORKS: dict[str, type[nn.Module]] = {"cnn": FrameCnn, "convlstm": ConvLstm}
