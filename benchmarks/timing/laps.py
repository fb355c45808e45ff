"""The laps over our own loops, by part: tetrahedra, cloth, contact, smoke, worlds, images.

The loops of tetrahedra, cloth and worlds are called as the rollout and the reverse sweep call them,
on memory that was touched before; packing, allocation and the shaping of the gradient, paid once a
gradient, are in the laps of smoke. The rest shape is not differentiated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from adjoint.engine.sweep import ReverseSweep
from adjoint.render.soft_raster import record_images
from adjoint.rollout import record
from adjsim.engine.stepper import ModelStepper
from adjsim.rollout import frame_rows, rollout
from adjsim.system import RunSettings, make_stepper
from adjsim.worlds import stack
from benchmarks.timing.clock import Lap
from benchmarks.timing.scenes import (
    DT,
    LOOKS,
    make_ball,
    make_block,
    make_cloth,
    make_fold,
    make_pile,
    make_smoke,
)
from render.blending import Over, Softmax
from render.soft_raster import SoftRasterizer, rasterize


GUESS = 15e-9  # forward time per element and step [s], to choose the number of steps
MIN_STEPS = 4
SIGMA = 1e-5
GPU = 0  # in the place of a number of threads
FORWARD, BOTH, BOTH_MASS = "forward", "forward+reverse", "forward+reverse+mass"


@dataclass(frozen=True)
class Sizes:
    """What is timed, and how long."""

    threads: Sequence[int] = (1,)  # GPU among them: there too
    dtype: str = "float64"
    sample: float = 0.004  # length of a forward sample of tetrahedra and cloth [s]
    tets: Sequence[int] = (100, 1000, 10000)
    triangles: Sequence[int] = (2048,)
    folds: Sequence[int] = (2048,)  # triangles of a cloth that touches itself
    piles: Sequence[int] = (1000,)  # tetrahedra of each of two blocks that touch
    touching: int = 300  # steps of these
    cells: Sequence[int] = (110,)  # of a grid of smoke, along an edge
    worlds: int = 1000  # of a batch
    each: int = 100  # tetrahedra of a world
    steps: int = 100  # of smoke and of worlds
    # Balls and square images, each with each; the first of both are the middle of `grow_faces`
    # and `grow_pixels`, where one grows and the other stays.
    faces: Sequence[int] = (1280, 5120)
    pixels: Sequence[int] = (256, 128)
    grow_faces: Sequence[int] = (80, 320, 5120, 20480, 81920)
    grow_pixels: Sequence[int] = (64, 128, 512, 1024)
    films: Sequence[int] = (64,)  # square images of a film
    frames: int = 60  # of a film

    def for_gpu(self) -> "Sizes":
        """Return sizes for a GPU beside the CPU, with meshes that only a GPU is made for.

        Rollouts are long: a call to a GPU takes the host up to 2 ms, whatever its length.
        """
        tets, triangles = (*self.tets, 100_000, 1_000_000), (*self.triangles, 200_000)
        long = replace(self, sample=0.3, steps=300, folds=(2048, 20_000), piles=(1000, 8_000))
        return replace(long, threads=(GPU, *self.threads), tets=tets, triangles=triangles)

    def sample_steps(self, n_elements: int) -> int:
        """Return how many steps take about `sample` seconds."""
        return max(MIN_STEPS, round(self.sample / (GUESS * n_elements)))

    def small(self) -> "Sizes":
        """Return sizes that take no time."""
        return replace(
            self, sample=1e-6, tets=(5, 40), triangles=(8,), folds=(32,), piles=(5,), touching=3,
            cells=(4,), worlds=3, each=5, steps=3, faces=(20,), pixels=(8,), grow_faces=(80, 320),
            grow_pixels=(12, 16), films=(8,), frames=2,
        )  # fmt: skip


def loop_laps(
    label: tuple[str, str], model: Any, state: Any, sizes: Sizes, *, n_steps: int, work: float,
    dt: float = DT,
) -> list[Lap]:  # fmt: skip
    """Return the laps forward, with reverse, and with the gradient of mass, of all threads."""
    laps = []
    for n in sizes.threads:
        run = RunSettings(dt, n_steps, np.dtype(sizes.dtype), n or None, device_of(n))
        stepper = make_stepper(model, run)
        assert isinstance(stepper, ModelStepper)
        facts = {"steps": n_steps}
        for kind, (prepare, call) in _passes(stepper, state, n_steps).items():
            laps.append(Lap(*label, kind, n, call, prepare, work, dict(facts)))
    return laps


def device_of(threads: int) -> str:
    """Return where a lap on so many threads runs."""
    return "cuda" if threads == GPU else "cpu"


def _passes(
    stepper: ModelStepper, state: Any, n_steps: int
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return what prepares and what runs each kind of pass, with memory for every state."""
    first = stepper.models[0]
    known = [*first.parameters(), *first.state_parameters(stepper.states(state)[0])]
    wanted = [path for path in known if not path.endswith(".rest_positions")]
    fields, end = stepper.allocate(n_steps + 1), np.array([n_steps])
    two_rows, tape_rows = frame_rows(end, n_steps), np.arange(n_steps + 1)
    sweep: ReverseSweep

    def begin() -> None:
        stepper.load(state, fields, int(two_rows[0]))

    def forward() -> None:  # as `adjsim.rollout` does: two states in turn
        stepper.advance(0, two_rows, fields)

    def begin_both(paths: list[str]) -> None:  # with a cotangent of ones on the last positions
        nonlocal sweep
        stepper.load(state, fields, 0)
        adj = [np.zeros((1, *field.shape[1:]), stepper.dtype) for field in fields]
        adj[0][:] = 1.0
        sweep = ReverseSweep(stepper, state, end, tuple(adj), paths)

    def both() -> None:
        stepper.advance(0, tape_rows, fields)
        sweep.undo(0, tape_rows[:-1], fields)

    without_mass = [path for path in wanted if path != "mass"]
    return {
        FORWARD: (begin, forward),
        BOTH: (partial(begin_both, without_mass), both),
        BOTH_MASS: (partial(begin_both, wanted), both),
    }


def tet_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give blocks on a floor, without and with viscosity; the work is tetrahedra times steps."""
    for size in sizes.tets:
        for viscous in (False, True):
            block = make_block(size, viscous=viscous)
            n_steps = sizes.sample_steps(block.n_tets)
            label = ("tets", f"{block.n_tets} tetrahedra{', viscosity' if viscous else ''}")
            yield from loop_laps(
                label, block.model, block.state, sizes, n_steps=n_steps, work=block.n_tets * n_steps
            )


def cloth_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give sheets with hinges; the work is steps."""
    for size in sizes.triangles:
        cloth = make_cloth(size)
        n_hinges = len(cloth.model.forces["hinges"].hinges)  # pyright: ignore
        n_steps = sizes.sample_steps(len(cloth.mesh.faces) + n_hinges)
        label = ("cloth", f"{len(cloth.mesh.faces)} triangles, {n_hinges} hinges")
        yield from loop_laps(label, cloth.model, cloth.state, sizes, n_steps=n_steps, work=n_steps)


def contact_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give a sheet that lands on itself and a block on a block, beside the same without contact.

    The work is steps.
    """
    scenes = [(make_fold, n, "folded sheet of {} triangles") for n in sizes.folds]
    scenes += [(make_pile, n, "{0} tetrahedra on {0}") for n in sizes.piles]
    for make, size, case in scenes:
        alone, touching = (make(size, touches=touches) for touches in (False, True))
        n = len(alone.mesh.faces) if make is make_fold else alone.n_tets
        n_steps, label = sizes.touching, case.format(n)
        how = {"n_steps": n_steps, "work": float(n_steps), "dt": alone.dt}
        laps, others = (
            loop_laps(("contact", what), body.model, body.state, sizes, **how)
            for what, body in ((label, touching), (f"{label}, no contact", alone))
        )
        for lap, other in zip(laps, others, strict=True):
            if lap.kind != BOTH_MASS:
                lap.beside = other
                yield from (other, lap)


def world_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give a batch of small blocks, and beside it a block a tenth as large as the batch.

    It takes ten times the steps, so that both do the same work. On a floor the skin of small blocks
    has more nodes per tetrahedron.
    """
    steps = max(1, sizes.steps // 5)
    for has_floor in (False, True):
        small = make_block(sizes.each, has_floor=has_floor)
        n_tets = small.n_tets * sizes.worlds
        block = make_block(max(small.n_tets, n_tets // 10), has_floor=has_floor)
        what = "floor" if has_floor else "no floor"
        more = steps * n_tets // block.n_tets
        alone = loop_laps(
            ("worlds", f"one block of {block.n_tets}, {what}"), block.model, block.state, sizes,
            n_steps=more, work=block.n_tets * more,
        )  # fmt: skip
        many = loop_laps(
            ("worlds", f"{sizes.worlds} worlds of {small.n_tets}, {what}"),
            stack([small.model] * sizes.worlds), [small.state] * sizes.worlds, sizes,
            n_steps=steps, work=n_tets * steps,
        )  # fmt: skip
        for lap, other in zip(many, alone, strict=True):
            if lap.kind != BOTH_MASS:
                lap.beside = other
                yield from (other, lap)


def smoke_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give smoke on square grids, forward and to the gradient of its first velocity."""
    for size, n in product(sizes.cells, sizes.threads):
        case = f"{size}² cells, {sizes.steps} steps"
        options = {"dtype": sizes.dtype, "device": device_of(n), "threads": n or None}
        args = (*make_smoke(size), 1.0, sizes.steps)
        adj = np.ones((1, size, size), sizes.dtype)

        def both(args: Any = args, options: Any = options, adj: Any = adj) -> None:
            record(*args, **options).vjp(None, adj, wrt=("state.velocity",))

        yield Lap("smoke", case, FORWARD, n, partial(rollout, *args, **options))
        yield Lap("smoke", case, BOTH, n, both)


def image_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give balls in images by blend, by look beside flat shading, and where one size grows."""
    each = [(faces, pixels) for faces in sizes.faces for pixels in sizes.pixels]
    grown = [(sizes.faces[0], pixels) for pixels in sizes.grow_pixels]
    grown += [(faces, sizes.pixels[0]) for faces in sizes.grow_faces]
    for faces, pixels in dict.fromkeys([*each, *grown]):
        yield from ball_laps(faces, pixels, sizes)
    faces, pixels = sizes.faces[0], sizes.pixels[0]
    yield from ball_laps(faces, pixels, sizes, blend="softmax")
    for more in (faces, *sizes.grow_faces):
        yield from ball_laps(more, pixels, sizes, name="seamless ", seamless=True)
    flat = list(ball_laps(faces, pixels, sizes, name="flat "))
    yield from flat
    for look in LOOKS[1:]:
        for lap, plain in zip(
            ball_laps(faces, pixels, sizes, look=look, name=f"{look} "), flat, strict=True
        ):
            lap.beside = plain
            yield lap
    for pixels in sizes.films:
        yield from ball_laps(sizes.faces[0], pixels, sizes, n_frames=sizes.frames)


def ball_laps(
    faces: int, pixels: int, sizes: Sizes, *, look: str = LOOKS[0], blend: str = "over",
    name: str = "", n_frames: int = 1, seamless: bool = False,
) -> Iterator[Lap]:  # fmt: skip
    """Give drawing a ball, or a film of one that moves, and drawing it with all gradients.

    Fits draw seamless pictures.
    """
    ball = make_ball(faces, look)
    points = ball.points.astype(sizes.dtype)
    if n_frames > 1:
        points = points + np.linspace(0.0, 0.2, n_frames, dtype=sizes.dtype)[:, None, None]
    shape = (*points.shape[:-2], pixels, pixels, 4)
    adj = np.random.default_rng(0).standard_normal(shape).astype(sizes.dtype)
    by_blend = Over() if blend == "over" else Softmax()
    rasterizer = SoftRasterizer(sigma=SIGMA, blend=by_blend, seamless=seamless)
    args = (ball.scene, ball.camera, rasterizer, {"ball": points}, (pixels, pixels))
    alpha = rasterize(*args, threads=1)[..., 3]
    film = f", {n_frames} frames" if n_frames > 1 else ""
    look = name or film  # what is not one plain ball
    facts = {"faces": faces, "covered": int((alpha > 0.5).sum()), "blend": blend, "look": look}
    case = f"{name}{faces} faces, {pixels}²{', softmax' if blend == 'softmax' else ''}{film}"
    for n in sizes.threads:
        how: dict[str, Any] = {"threads": n or None, "device": device_of(n)}

        def both(how: dict[str, Any] = how) -> None:
            record_images(*args, **how).vjp(adj)

        draw = partial(rasterize, *args, **how)
        yield Lap("images", case, FORWARD, n, draw, facts=facts)
        yield Lap("images", case, BOTH, n, both, facts=facts)


def memory_laps(sizes: Sizes) -> Iterator[Lap]:
    """Give gradients in less and less memory, beside the rollout alone, on one thread."""
    block = make_block(sizes.each * 10, viscous=False)
    n_steps, wrt = sizes.steps * 10, ("block.mu", "block.lam", "floor.friction", "state.v")
    last = {"frames": [n_steps], "threads": 1, "dtype": sizes.dtype}
    adj = np.ones((1, *block.state.x.shape), sizes.dtype)

    def both(budget: str) -> None:
        run = record(block.model, block.state, DT, n_steps, checkpoint=budget, **last)
        run.vjp(adj, wrt=wrt)

    case = f"{block.n_tets} tetrahedra, {n_steps} steps"
    ahead = partial(rollout, block.model, block.state, DT, n_steps, **last)
    alone = Lap("memory", case, FORWARD, 1, ahead)
    yield alone
    for budget in ("all", "4MB", "1MB", "100kB"):
        yield Lap("memory", f"{case}, {budget}", BOTH, 1, partial(both, budget), beside=alone)


PARTS: dict[str, Callable[[Sizes], Iterator[Lap]]] = {
    "tets": tet_laps,
    "cloth": cloth_laps,
    "contact": contact_laps,
    "smoke": smoke_laps,
    "worlds": world_laps,
    "images": image_laps,
    "memory": memory_laps,
}
