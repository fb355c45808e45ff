"""Other packages beside ours, in the same rounds, and only if they compute the same."""

import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from adjoint.rollout import record
from adjsim.extras import how_to_install
from benchmarks.peers import PeerRun
from benchmarks.timing.clock import Lap
from benchmarks.timing.laps import GPU, SIGMA, Sizes, ball_laps, loop_laps
from benchmarks.timing.scenes import Body, make_ball, make_block
from render.soft_raster import SoftRasterizer, rasterize


BLOCKS = {"JAX": "jax_block", "Newton": "newton_block"}
BALLS = {"PyTorch3D": "pytorch3d_ball", "Mitsuba": "mitsuba_ball", "DEODR": "deodr_ball"}
MAX_DIFFERENCE = 1e-3  # of a peer's trajectory from ours, over the largest displacement
MAX_GRAD_DIFFERENCE = 1e-2  # of the sum of its gradient by mu, relative
MAX_UNCOVERED = 0.03  # pixels covered in one image only; the outline is 2 % of them
TWO_THREADS_FROM = 4000  # tetrahedra from which adjsim takes more than one thread
DTYPE = np.float32


class DiffersError(Exception):
    """A package computed something else."""


def peer_laps(sizes: Sizes) -> tuple[list[Lap], list[str]]:
    """Return the laps of every package that is installed, beside ours, and who is left out."""
    laps, notes = [], []
    ours: dict[Any, list[Lap]] = {}
    for name, file in {**BLOCKS, **BALLS}.items():
        race = _block_races if name in BLOCKS else _ball_races
        try:
            module = import_module(f"benchmarks.peers.{file}")
            with redirect_stdout(io.StringIO()):
                laps += list(race(name, module, sizes, ours))
        except ModuleNotFoundError as error:
            way = how_to_install("peers") if name != "PyTorch3D" else "from its own sources"
            notes.append(f"{name} is not timed: {error}; install it: {way}")
        except Exception as error:  # theirs, of any kind
            notes.append(f"{name} is not timed: {type(error).__name__}: {str(error)[:200]}")
    return [*(lap for each in ours.values() for lap in each), *laps], notes


def _block_races(name: str, module: Any, sizes: Sizes, ours: dict[Any, list[Lap]]) -> Iterator[Lap]:
    """Give the laps of blocks; without a floor where the package's contact is another."""
    has_floor = getattr(module, "HAS_FLOOR", True)
    most = place_of(sizes)
    for size in sizes.tets:
        block = make_block(size, has_floor=has_floor)
        what = f"{block.n_tets} tetrahedra{'' if has_floor else ', no floor'}"
        n_steps = min(sizes.sample_steps(block.n_tets), getattr(module, "MAX_STEPS", 10**9))
        work = float(block.n_tets * n_steps)
        run = module.prepare(block, n_steps, most)
        check_block(run, block, n_steps)
        if what not in ours:
            n = most if block.n_tets >= TWO_THREADS_FROM else min(most, 1)
            alike = replace(sizes, dtype="float32", threads=[n])
            label = ("peers: tetrahedra", f"adjsim, {what}")
            mine = loop_laps(label, block.model, block.state, alike, n_steps=n_steps, work=work)
            ours[what] = mine[:2]
            for lap in ours[what]:
                lap.threads = most
        yield from _laps(run, ("peers: tetrahedra", f"{name}, {what}"), ours[what])


def _ball_races(name: str, module: Any, sizes: Sizes, ours: dict[Any, list[Lap]]) -> Iterator[Lap]:
    """Give the laps of a ball in the smallest of the images."""
    faces, pixels, most = sizes.faces[0], min(sizes.pixels), place_of(sizes)
    what = f"{faces} faces, {pixels}²"
    run = module.prepare(make_ball(faces), pixels, most)
    check_ball(run, faces, pixels)
    if what not in ours:
        ours[what] = list(ball_laps(faces, pixels, replace(sizes, threads=[most])))
        for lap in ours[what]:
            lap.table, lap.case = "peers: images", f"adjsim, {what}"
    yield from _laps(run, ("peers: images", f"{name}, {what}"), ours[what])


def place_of(sizes: Sizes) -> int:
    """Return where packages are timed: on the GPU if there is one, or on how many threads."""
    return GPU if GPU in sizes.threads else max(sizes.threads)


def _laps(run: PeerRun, label: tuple[str, str], ours: list[Lap]) -> Iterator[Lap]:
    for call, mine in zip((run.forward, run.gradient), ours, strict=True):
        yield Lap(*label, mine.kind, mine.threads, call, work=mine.work, beside=mine)


def check_block(run: PeerRun, block: Body, n_steps: int) -> None:
    """Raise DiffersError if the last positions, or their gradient by mu, are not ours."""
    x, grad_mu = _our_block(block, n_steps)
    run.forward()
    scale = np.abs(x - block.state.x).max()
    difference = np.abs(np.asarray(run.result(), float) - x).max() / scale
    if not difference < MAX_DIFFERENCE:
        raise DiffersError(f"its positions differ from ours by {difference:.1e} of the motion")
    run.gradient()
    if run.grad_mu is not None:
        off = abs(float(np.sum(run.grad_mu(), dtype=float)) / grad_mu - 1.0)
        if not off < MAX_GRAD_DIFFERENCE:
            raise DiffersError(f"its gradient by mu differs from ours by {off:.1e}")


def _our_block(block: Body, n_steps: int) -> tuple[np.ndarray, float]:
    """Return our last positions and d(sum x^2/2)/d mu."""
    run = record(block.model, block.state, block.dt, n_steps, dtype=DTYPE)
    x = run.trajectory.x[-1]
    return x, float(run.vjp(x[None], wrt=("block.mu",))["block.mu"])


@cache
def _our_ball(faces: int, pixels: int) -> np.ndarray:
    """Return which pixels are covered."""
    ball = make_ball(faces)
    size = (pixels, pixels)
    rasterizer = SoftRasterizer(sigma=SIGMA)
    image = rasterize(ball.scene, ball.camera, rasterizer, {"ball": ball.points}, size)
    return image[..., 3] > 0.5


def check_ball(run: PeerRun, faces: int, pixels: int) -> None:
    """Raise DiffersError if other pixels than ours are covered."""
    run.forward()
    difference = np.mean(run.result() != _our_ball(faces, pixels))
    if not difference < MAX_UNCOVERED:
        raise DiffersError(f"{100 * difference:.1f} % of the pixels are covered in one image only")
    run.gradient()
