"""Other packages beside ours, in the same rounds, and only if they compute the same."""

import io
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjoint.rollout import record
from render.soft_raster import SoftRasterizer, rasterize
from studies.peers import IMAGES, MAX_DIFFERENCE, MAX_UNCOVERED, PEERS, TETS, Peer, PeerRun
from studies.timing_clock import Lap, warm_up
from studies.timing_laps import BOTH, FORWARD, sample_steps
from studies.timing_scenes import Block, make_ball, make_block


SAMPLE = 0.004  # of ours [s]; the others take longer
DTYPE = np.float32
FAILED: dict[str, str] = {}  # by name of the package, why it does not run


@dataclass(eq=False)
class Race:
    """A peer on one problem, with its laps, and what its result differs from ours."""

    peer: Peer
    run: PeerRun
    laps: list[Lap]
    expected: np.ndarray
    scale: float
    expected_grad_mu: float | None = None
    difference: float | None = None
    grad_difference: float | None = None
    labels: dict[str, Any] = field(default_factory=dict)

    def compare(self) -> None:
        """Measure the differences of the last forward run and gradient from ours."""
        if self.peer.part == IMAGES:
            self.difference = float(np.mean(self.run.result() != self.expected))
            return
        got = np.asarray(self.run.result(), np.float64)
        self.difference = float(np.abs(got - self.expected).max() / self.scale)
        if self.run.grad_mu is not None and self.expected_grad_mu:
            total = float(np.sum(self.run.grad_mu(), dtype=np.float64))
            self.grad_difference = abs(total / self.expected_grad_mu - 1.0)

    @property
    def agrees(self) -> bool:
        """Whether the trajectory is ours, or the same pixels are covered."""
        limit = MAX_DIFFERENCE if self.peer.part == TETS else MAX_UNCOVERED
        return self.difference is None or self.difference < limit


def find_peers() -> list[dict[str, Any]]:
    """Return every peer with its version, or how to get it."""
    return [
        {
            "name": peer.name,
            "part": peer.part,
            "note": peer.note,
            "version": peer.version,
            "missing": peer.missing() or FAILED.get(peer.name),
        }
        for peer in PEERS
    ]


def peer_laps(settings: dict[str, Any], threads: int, seed: int) -> tuple[list[Lap], list[Race]]:
    """Return the laps of every installed peer, and the races they belong to."""
    races: list[Race] = []
    for peer in PEERS:
        if peer.missing() or (peer.part == IMAGES and not settings["renderer"]):
            continue
        if problem := peer.trouble():
            FAILED[peer.name] = f"fails here: {problem}"
            continue
        try:
            with redirect_stdout(io.StringIO()):
                races += _races(peer, settings["peer"], threads, seed)
        except Exception as error:
            FAILED[peer.name] = f"fails here: {type(error).__name__}: {str(error)[:200]}"
    return [lap for race in races for lap in race.laps], races


def _races(peer: Peer, table: dict[str, Any], threads: int, seed: int) -> list[Race]:
    """Return the races of one peer; each lap has run once."""
    if peer.part == TETS:
        races = [_tet_race(peer, size, threads) for size in table["sizes"]]
    else:
        races = [_image_race(peer, table, threads, seed)]
    warm_up(lap for race in races for lap in race.laps)
    return races


def _tet_race(peer: Peer, size: int, threads: int) -> Race:
    module = peer.load()
    block = make_block(size, has_floor=getattr(module, "HAS_FLOOR", True))
    n_steps = getattr(module, "whole_steps", int)(sample_steps(block.n_tets, SAMPLE))
    run = module.prepare(block, n_steps, threads)
    labels = {
        "part": "peers",
        "name": peer.name,
        "size": size,
        "tets": block.n_tets,
        "dtype": "float32",
        "steps": n_steps,
    }
    expected, scale, grad_mu = _ours(block, n_steps)
    units = float(block.n_tets * n_steps)
    return Race(peer, run, _laps(run, labels, units), expected, scale, grad_mu, labels=labels)


def _ours(block: Block, n_steps: int) -> tuple[np.ndarray, float, float]:
    """Return our last positions, the largest displacement, and d(sum x^2/2)/d mu."""
    run = record(block.model, block.state, block.dt, n_steps, dtype=DTYPE)
    x = run.trajectory.x[-1]
    scale = float(np.abs(x - block.state.x).max())
    return x, scale, float(run.vjp(x[None], wrt=("block.mu",))["block.mu"])


def _image_race(peer: Peer, table: dict[str, Any], threads: int, seed: int) -> Race:
    ball = make_ball(table["faces"], seed)
    pixels = table["pixels"]
    run = peer.load().prepare(ball, pixels, threads)
    vertices = {"ball": ball.points}
    image = rasterize(ball.scene, ball.camera, SoftRasterizer(), vertices, (pixels, pixels))
    labels = {
        "part": "peers",
        "name": peer.name,
        "faces": table["faces"],
        "pixels": pixels,
    }
    return Race(peer, run, _laps(run, labels, 1.0), image[..., 3] > 0.5, 1.0, labels=labels)


def _laps(run: PeerRun, labels: dict[str, Any], units: float) -> list[Lap]:
    laps = [Lap({**labels, "pass": FORWARD}, units, run.forward, run.reset)]
    if run.gradient is not None:
        laps.append(Lap({**labels, "pass": BOTH}, units, run.gradient, run.reset))
    return laps
