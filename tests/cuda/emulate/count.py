"""Count what makes a GPU fast or slow: `python -m tests.cuda.emulate count`.

Names of cases choose some. `docs/gpu.md` has the table.
"""

import json
import time
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.engine.packing import pack
from adjsim.engine.patches import TILE_HI, TILE_LO
from adjsim.jit.cuda_launch import BLOCK, Launcher
from adjsim.rollout import rollout
from adjsim.system import RunSettings, make_stepper
from adjsim.tiles.assembly import TILE
from adjsim.worlds import stack
from benchmarks.publish import DATA, record as record_data
from benchmarks.timing.scenes import make_ball, make_block
from render.soft_raster import SoftRasterizer
from studies.problem.making import make_problem
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene
from tests.cuda.emulate import install  # noqa: F401
from tests.cuda.emulate.driver import DEVICE
from tests.cuda.pair_scenes import DT, close_nets
from tests.cuda.study_scenes import BEAM


Row = tuple[str, str]
COMMAND = "python -m tests.cuda.emulate count --data"
STEPS = 3
BARRIERS = "barriers of the grid in a step", "barriers of a block in a step"
BYTES = "read from memory", "written to memory", "in shared memory"
PROCESSORS = 200  # with a block each: enough for the patches of 20 000 tetrahedra
BLOCKS_AT_ONCE = 4 * 132  # of 128 threads with 128 registers, on an H200
IDLE_TIMES = 100
PICTURE = "launches", "kernels and fills of CuPy", "times the host waits", "uploads"
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
        counted.append([counts("launches"), counts(*WAITS), counts("uploads")])
        drawn_film.vjp(adj)
        counted.append([counts("launches"), counts(*WAITS), counts("uploads")])

    counted: list[list[int]] = []
    for _ in range(2):  # the second time everything is compiled
        DEVICE.reset()
        counted.clear()
        run()
    for k, what in enumerate(("launches", "times the host waits", "uploads")):
        yield (
            f"{what}, a film of 60 frames at 64², forward / with reverse",
            " / ".join(str(row[k]) for row in counted),
        )


def picture() -> Iterator[Row]:
    """Draw a ball of 1 280 faces at 128², seamless, and pull back; only vertices are new.

    Then again with kernels that do nothing: what the host is told stays as it was.
    """
    ball, adj = make_ball(1280), np.ones((128, 128, 4))
    rasterizer = SoftRasterizer(sigma=1e-4, seamless=True)
    laps, counted = [], []

    def lap(start: float) -> None:
        laps.append(time.thread_time() - start)
        counted.append([counts("launches"), counts("of CuPy"), counts(*WAITS), counts("uploads")])

    for k in range(IDLE_TIMES):
        DEVICE.is_idle, points = k > 1, (1.0 + 1e-4 * k) * ball.points
        if k == 1:  # the first time kernels are compiled
            DEVICE.reset()
            counted.clear()
        start = time.thread_time()
        drawn = record_images(
            ball.scene, ball.camera, rasterizer, {"ball": points}, (128, 128), device="cuda"
        )
        lap(start)
        drawn.vjp(adj)
        lap(start)
    DEVICE.is_idle = False
    for what, *numbers in zip(PICTURE, *counted[:2], strict=True):
        yield f"{what}, a picture of 128², forward / with reverse", " / ".join(map(str, numbers))
    least = [1e6 * min(laps[k::2]) for k in (0, 1)]
    yield "host time of it with stand-ins, least [µs]", " / ".join(f"{lap:.0f}" for lap in least)


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


def surfaces() -> Iterator[Row]:
    """Find the pairs of two nets again, after steps."""
    model, state = close_nets()
    stepper = make_stepper(model, RunSettings(DT, 1, device="cuda"))
    fields = stepper.allocate(1)
    stepper.load(state, fields, 0)
    stepper.find_pairs(fields[0][0], 0)
    stepper.reached, stepper.changing.moved_on = 1, True
    DEVICE.reset()
    stepper.find_pairs(fields[0][0], 1)
    for what, names in zip(PICTURE, (PICTURE[:1], ("of CuPy",), WAITS, ("uploads",)), strict=True):
        yield f"{what}, a search for pairs of surfaces after the first", str(counts(*names))
    yield "bytes read back by it", str(counts("bytes read back"))


def worlds() -> Iterator[Row]:
    """Run 200 worlds of 100 tetrahedra."""
    block = make_block(100)
    many, states = stack([block.model] * 200), [block.state] * 200
    DEVICE.reset()
    rollout(many, states, block.dt, STEPS, device="cuda")
    threads = f"{of_kernels('busy')} of {of_kernels('threads')}"
    yield "busy threads, 200 worlds of 100 tetrahedra", threads


def world() -> Iterator[Row]:
    """Run 100, 1 000 and 4 000 tetrahedra, forward and with reverse."""
    for size in (100, 1000, 4000):
        block = make_block(size)
        by_steps = {}
        for steps in (STEPS, 2 * STEPS):
            DEVICE.reset()
            run = record(block.model, block.state, block.dt, steps, device="cuda")
            forward = counts_of_world()
            run.vjp(np.ones((1, *block.state.x.shape)))
            by_steps[steps] = np.array([forward, counts_of_world()])
        each = (by_steps[2 * STEPS] - by_steps[STEPS]) / STEPS
        each[:, 2:] *= np.array([SECTOR, SECTOR, 1]) / block.n_tets
        names = (*BARRIERS, *(f"bytes per tetrahedron and step {what}" for what in BYTES))
        for k, what in enumerate(names):
            numbers = " / ".join(f"{number:.0f}" for number in each[:, k])
            yield f"{what}, {block.n_tets} tetrahedra, forward / with reverse", numbers


def counts_of_world() -> list[int]:
    """Return barriers of the grid and of blocks, sectors read and written, and bytes of blocks."""
    names = "barriers", "block_barriers", "sectors_read", "sectors_written", "shared"
    return [of_kernels(name) for name in names]


def turns() -> Iterator[Row]:
    """Count the elements that a thread of an H200 does one after the other in a step."""
    for size in (10_000, 50_000, 100_000):
        block = make_block(size)
        table = pack([block.model], 1, np.dtype(np.float64), 0).patches.table[:-1]
        elements = (table[:, TILE_HI] - table[:, TILE_LO]) * TILE
        n_blocks = min(len(elements), BLOCKS_AT_ONCE)
        longest = max((-(-elements[b::n_blocks] // BLOCK)).sum() for b in range(n_blocks))
        yield f"elements that a thread does in a step, {size} tetrahedra", str(longest)


def mesh() -> Iterator[Row]:
    """Run a block of 20 000 tetrahedra; count bytes in whole sectors."""
    block = make_block(20_000, has_floor=False)
    by_steps = {}
    for steps in (1, 2):
        DEVICE.reset()
        run = record(block.model, block.state, block.dt, steps, device="cuda")
        forward = of_kernels("sectors_read", "sectors_written")
        run.vjp(np.ones((1, *block.state.x.shape)), wrt=("block.mu", "block.lam", "state.x"))
        by_steps[steps] = np.array([forward, of_kernels("sectors_read", "sectors_written")])
    forward, both = SECTOR * (by_steps[2] - by_steps[1]) / block.n_tets
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


EVERY = film, picture, search, surfaces, worlds, world, turns, mesh, memory
CASES = {case.__name__: case for case in EVERY}


def main(names: list[str]) -> int:
    """Print a table of what was counted in some cases, or all.

    With `--json` as an object, with `--data` as `docs/data/gpu-counts.json`.
    """
    options = {name for name in names if name.startswith("--")}
    names = [name for name in names if name not in options]
    if unknown := sorted(set(names) - set(CASES)):
        print(f"No such cases: {', '.join(unknown)}. There are {', '.join(CASES)}.")
        return 2
    DEVICE.processors = PROCESSORS
    rows: list[Row] = []
    for name in names or CASES:
        rows += CASES[name]()
        rows += [(name, fault) for fault in (*DEVICE.faults[:3], *map(repr, DEVICE.errors[:3]))]
    if "--data" in options:
        table = [["quantity", "counted"], *map(list, rows)]
        record_data(DATA, "gpu-counts", {"table": table}, COMMAND)
    if "--json" in options:
        print(json.dumps(dict(rows)))
        return 0
    table = Table("quantity", "counted")
    for row in rows:
        table.add_row(*row)
    Console(width=150).print(table)
    return 0
