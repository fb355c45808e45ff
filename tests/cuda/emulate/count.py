"""Count what makes a GPU fast or slow: `python -m tests.cuda.emulate count`.

Names of cases choose some. `docs/gpu.md` has the table.
"""

import time
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.jit.cuda_launch import Launcher
from adjsim.rollout import rollout
from adjsim.worlds import stack
from benchmarks.timing.scenes import make_ball, make_block
from render.soft_raster import SoftRasterizer
from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from tests.cuda.emulate import install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE
from tests.cuda.study_scenes import BEAM


Row = tuple[str, str]
STEPS = 3
SECTOR = 32  # [bytes]
WAITS = "syncs", "downloads", "host reads"  # the host waits for the device


def counts(*names: str) -> int:
    """Return the sum of some counts of the host."""
    return sum(DEVICE.counts[name] for name in names)


def of_kernels(*names: str) -> int:
    """Return the sum of some counts of all kernels."""
    return sum(kernel[name] for kernel in DEVICE.kernels.values() for name in names)


def film() -> Iterator[Row]:
    """Draw a ball of 320 faces in 60 frames of 64²."""
    ball = make_ball(320)
    points = ball.points + np.linspace(0.0, 0.2, 60)[:, None, None]
    adj = np.ones((60, 64, 64, 4))

    def run() -> None:
        drawn_film = record_images(
            ball.scene, ball.camera, SoftRasterizer(sigma=1e-4), {"ball": points}, (64, 64),
            device="cuda",
        )  # fmt: skip
        found.append([counts("launches"), counts(*WAITS), counts("uploads")])
        drawn_film.vjp(adj)
        found.append([counts("launches"), counts(*WAITS), counts("uploads")])

    found: list[list[int]] = []
    for _ in range(2):  # the second time everything is compiled
        DEVICE.reset()
        found.clear()
        run()
    for k, what in enumerate(("launches", "times the host waits", "uploads")):
        yield (
            f"{what}, a film of 60 frames at 64², forward / with reverse",
            " / ".join(str(row[k]) for row in found),
        )


def search() -> Iterator[Row]:
    """Evaluate loss and gradient of the bundled beam, small."""
    file = instance_of(read_scene(BUNDLED / "beam.toml", BEAM), 0)
    problem = make_problem(file, device="cuda").problem
    theta = problem.parameters.start
    problem.loss_and_gradient(theta)
    usual, spent = Launcher.run, []

    def timed(self: Launcher, *args, **options) -> None:
        usual(self, *args, **options)
        DEVICE.is_idle, laps = True, []  # a kernel that runs here empties the caches
        for _ in range(10):
            before, start = DEVICE.seconds, time.thread_time()
            usual(self, *args, **options)
            laps.append(time.thread_time() - start - (DEVICE.seconds - before))
        DEVICE.is_idle = False
        spent.append(min(laps))

    Launcher.run = timed  # pyright: ignore[reportAttributeAccessIssue]
    for k in range(1, 6):
        DEVICE.reset()
        problem.loss_and_gradient((1.0 + 0.001 * k) * theta)
    Launcher.run = usual
    yield "uploads of an evaluation of a search, after the first", str(counts("uploads"))
    yield "times the host waits in it", str(counts(*WAITS))
    yield "launches in it", str(counts("launches"))
    yield "host time of a launch, median [µs]", f"{1e6 * np.median(spent):.0f}"


def worlds() -> Iterator[Row]:
    """Run 200 worlds of 100 tetrahedra."""
    one = make_block(100)
    many, states = stack([one.model] * 200), [one.state] * 200
    DEVICE.reset()
    rollout(many, states, one.dt, STEPS, device="cuda")
    threads = f"{of_kernels('busy')} of {of_kernels('threads')}"
    yield "busy threads, 200 worlds of 100 tetrahedra", threads


def world() -> Iterator[Row]:
    """Run 100 and 4 000 tetrahedra, forward and with reverse."""
    for size in (100, 4000):
        block = make_block(size)
        found = {}
        for steps in (STEPS, 2 * STEPS):
            DEVICE.reset()
            run = record(block.model, block.state, block.dt, steps, device="cuda")
            run.vjp(np.ones((1, *block.state.x.shape)))
            names = "barriers", "block_barriers", "read", "written", "shared"
            found[steps] = np.array([of_kernels(name) for name in names])
        each = (found[2 * STEPS] - found[STEPS]) / STEPS
        text = (
            f"{each[0]:.0f} of the grid, {each[1]:.0f} of a block; {each[2] / block.n_tets:.0f} "
            f"bytes read, {each[3] / block.n_tets:.0f} written, {each[4] / block.n_tets:.0f} shared"
        )
        yield f"barriers and bytes per tetrahedron of a step and its reverse, {block.n_tets}", text


def mesh() -> Iterator[Row]:
    """Run a block of 20 000 tetrahedra; count bytes in whole sectors."""
    block = make_block(20_000, has_floor=False)
    found = {}
    for steps in (1, 2):
        DEVICE.reset()
        run = record(block.model, block.state, block.dt, steps, device="cuda")
        forward = of_kernels("sectors_read", "sectors_written")
        run.vjp(np.ones((1, *block.state.x.shape)), wrt=("block.mu", "block.lam", "state.x"))
        found[steps] = np.array([forward, of_kernels("sectors_read", "sectors_written")])
    forward, both = SECTOR * (found[2] - found[1]) / block.n_tets
    what = f"bytes per tetrahedron and step in 32-byte sectors, {block.n_tets} tetrahedra, float64"
    yield f"{what}, forward / with reverse", f"{forward:.0f} / {both:.0f}"


def memory() -> Iterator[Row]:
    """Draw 20 480 faces at 256² with a wide sigma."""
    ball = make_ball(20_480)
    DEVICE.reset()
    DEVICE.peak = 0
    record_images(
        ball.scene, ball.camera, SoftRasterizer(sigma=1e-4), {"ball": ball.points}, (256, 256),
        device="cuda",
    ).vjp(np.ones((256, 256, 4)))  # fmt: skip
    yield (
        "most memory of a frame, 20 480 faces at 256², sigma = 1e-4",
        f"{DEVICE.peak / 1e6:.0f} MB",
    )


CASES = {case.__name__: case for case in (film, search, worlds, world, mesh, memory)}


def main(names: list[str]) -> int:
    """Print a table of what was counted in some cases, or all."""
    if unknown := sorted(set(names) - set(CASES)):
        print(f"No such cases: {', '.join(unknown)}. There are {', '.join(CASES)}.")
        return 2
    table = Table("quantity", "counted")
    for name in names or CASES:
        for row in CASES[name]():
            table.add_row(*row)
        for fault in (*DEVICE.faults[:3], *map(repr, DEVICE.errors[:3])):
            table.add_row(f"[red]{name}", fault)
    Console(width=150).print(table)
    return 0
