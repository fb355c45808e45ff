r"""Soft rasterization: images that are smooth in everything that makes them.

    vertices -> screen -> faces ready to be drawn -> fragments of a tile -> pixels

`face_setup.py`, `fragments.py` and `blending.py` hold the three stages; this file runs
them over tiles of pixels and frames. One frame or one run of tiles is worked by one thread
from start to end, so the images are equal to the bit on any number of threads.

Memory beside the images: some 200 bytes for each face and 150 for each pair of a face and a
tile that it reaches; and for each thread 90 bytes (drawing) or 120 (pulling back) for each
pixel in the boxes of the faces of one tile, the fullest. Tiles are cut smaller until that is
at most `LARGEST_TILE` pixels, or until a tile is one pixel; so it does not grow with the image.

Adjoint: `adjoint/render/soft_raster.py`. Tests: `tests/render/test_soft_raster.py`.
Source: Liu et al., Soft Rasterizer, ICCV 2019; the Over blend is this project's.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np

from adjsim import checks
from adjsim.backend import Device, check_device, cpu_kernel, device_fn
from render.blending import DIBR, Blend, Over, background_at, blend_body
from render.camera import AnyCamera
from render.cuda_raster import draw_on_gpu
from render.face_setup import Faces, setup_faces
from render.fragments import BLOCK, Fragments, Grid, Tiles, gather_tile, tile_area
from render.lists import BINS, count_tiles, fill_tiles, order_faces
from render.packing import Job, check_cameras, pack
from render.scene import Scene
from render.seamless import find_soft
from render.supersampling import average
from render.tile_shading import LANES, SCRATCH


SERIAL_PIXELS = 200 * 200  # fewer pixels than this, over all frames, are drawn by one thread
SHORTEST = 16  # a run of tiles is no shorter than an even share divided by this
TILE_WORK = 1 << 9  # of the pixels of a tile, counted in fragments
LARGEST_TILE = 1 << 20  # fragments; if a tile may hold more, tiles are smaller


@dataclass(frozen=True, eq=False)
class SoftRasterizer:
    """How faces become pixels.

    Parameters
    ----------
    sigma : float
        Softness of coverage [screen units squared], positive.
    gamma : float
        Temperature of depth in `Softmax` [-], positive.
    epsilon : float
        Nearness of the background in `Softmax` [-].
    background : array_like
        RGB behind everything, (3,), or behind each pixel, (height, width, 3) [-].
    blend : Over, Softmax, DIBR or Hard
        `DIBR` has its own softness in place of `sigma`; `Hard` has none.
    cull : bool
        Draw only the faces whose corners go counter-clockwise on the screen.
    supersample : int
        Samples of a pixel in each direction, of which it is the mean
        (`render/supersampling.py`). It changes neither `sigma` nor the size of `background`.
    seamless : bool
        Soften faces at silhouettes and boundaries alone, not where two faces meet
        (`render/seamless.py`).

    Raises
    ------
    ValueError
        If `sigma` or `gamma` is not positive, `supersample` is not a positive whole number, or
        `background` is neither a colour nor an image.
    TypeError
        If `blend` is none of these.
    """

    sigma: float = 1e-5
    gamma: float = 1e-4
    epsilon: float = 1e-3
    background: Any = (0.0, 0.0, 0.0)
    blend: Blend = field(default_factory=Over)
    cull: bool = False
    supersample: int = 1
    seamless: bool = False

    def __post_init__(self) -> None:
        for name in ("sigma", "gamma", "epsilon"):
            value = float(checks.array(f"rasterizer.{name}", getattr(self, name), ()))
            object.__setattr__(self, name, value)
        checks.positive("rasterizer.sigma", self.sigma, hint="In screen units squared.")
        checks.positive("rasterizer.gamma", self.gamma)
        shape = ("height", "width", 3) if np.ndim(self.background) == 3 else (3,)
        background = checks.array("rasterizer.background", self.background, shape).copy()
        background.setflags(write=False)
        object.__setattr__(self, "background", background)
        if not isinstance(self.blend, Blend):
            raise TypeError(
                "`rasterizer.blend` must be Over(), Softmax(), DIBR() or Hard(), got "
                f"{self.blend!r}."
            )
        for name in ("cull", "seamless"):
            flag = checks.flag(f"rasterizer.{name}", getattr(self, name))
            object.__setattr__(self, name, flag)
        supersample = checks.whole("rasterizer.supersample", self.supersample, 1)
        object.__setattr__(self, "supersample", supersample)

    @property
    def spread(self) -> float:
        """What squared distances are divided by: kappa in DIBR, else sigma [screen units²]."""
        return self.blend.kappa if isinstance(self.blend, DIBR) else self.sigma


def rasterize(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> np.ndarray:
    """Draw the scene at one instant or at many, seen by one camera or by many.

    Parameters
    ----------
    scene : Scene
    camera : Camera, OrbitCamera, PosedCamera or sequence of them
        In a sequence every camera sees every frame.
    rasterizer : SoftRasterizer
    vertices : mapping of str to array_like
        For each object its vertices [m], (n_vertices, 3), or (n_frames, n_vertices, 3).
        float32 if all of them are, float64 otherwise.
    size : tuple of int
        Height and width [pixels].
    threads : int, optional
        How many threads draw; by default one for small images, all of Numba's for others.
        The images do not depend on it.
    device : Device or str
        `Device.CPU`, the reference, or `Device.CUDA`.

    Returns
    -------
    numpy.ndarray
        RGBA, (height, width, 4), or (n_frames, height, width, 4) if any object moves; a
        sequence of cameras puts (n_cameras,) before that. RGB is already over the
        background, nothing is clamped.

    Raises
    ------
    ValueError
        If a shape does not fit, a vertex is not finite, a face indexes no vertex, an
        object is unknown or missing, the size is not positive, or the device is unknown.
    RuntimeError
        If no GPU can be used; the message says why and the way out.

    Notes
    -----
    Equations: Liu et al. 2019, eq. 1-4; `render.coverage`, `render.barycentrics`,
    `render.blending`. Adjoint: `adjoint.render.soft_raster.record_images`.
    """
    check_rasterizer(rasterizer)
    cameras, many = check_cameras(scene, camera)
    jobs = pack(scene, cameras, rasterizer, vertices, size)
    return only_asked(draw_frames(jobs, threads, check_device(device)), many, jobs[0].batched)


def draw_frames(jobs: Sequence[Job], threads: int | None, device: Device) -> np.ndarray:
    """Draw the frames of every view; return the images, (n_views, n_frames, height, width, 4)."""
    if device is Device.CUDA:
        return np.stack([average(draw_on_gpu(job), job.samples) for job in jobs])
    images = empty_images(jobs)

    def draw(view: int, frame: int, pool: "Pool") -> None:
        job = jobs[view]
        draw_samples(job, images[view, frame], lambda room: draw_frame(job, frame, room, pool))

    for_each_frame(jobs, threads, draw)
    return images


def draw_samples(job: Job, image: np.ndarray, draw: Callable[[np.ndarray], None]) -> None:
    """Have an image drawn, or the samples of which it is the mean."""
    if job.samples == 1:
        draw(image)
        return
    shape = (*image.shape[:-3], len(job.grid.pixel_y), len(job.grid.pixel_x), 4)
    samples = np.empty(shape, image.dtype)
    draw(samples)
    image[:] = average(samples, job.samples)


def only_asked(images: np.ndarray, many: bool, batched: bool) -> np.ndarray:
    """Drop the axes of views and of frames where one camera and no frames were given."""
    images = images if batched else images[:, 0]
    return images if many else images[0]


def check_rasterizer(rasterizer: Any) -> None:
    """Raise unless this is a SoftRasterizer."""
    if not isinstance(rasterizer, SoftRasterizer):
        raise TypeError(f"`rasterizer` must be a SoftRasterizer, got {type(rasterizer).__name__}.")


def empty_images(jobs: Sequence[Job]) -> np.ndarray:
    """Return room for the images of all views, (n_views, n_frames, height, width, 4)."""
    x, k = jobs[0].x, jobs[0].samples
    height, width = len(jobs[0].grid.pixel_y) // k, len(jobs[0].grid.pixel_x) // k
    return np.empty((len(jobs), len(x), height, width, 4), x.dtype)


class Frame(NamedTuple):
    """One frame, ready for its tiles to be drawn."""

    faces: Faces
    tiles: Tiles
    grid: Grid


def setup_frame(job: Job, frame: int) -> Frame:
    """Project a frame, set up its faces and sort them into tiles."""
    x = job.x[frame]
    n_faces, dtype = len(job.scene.faces), x.dtype
    height, width = len(job.grid.pixel_y), len(job.grid.pixel_x)
    faces = Faces(
        np.empty((len(x), 3), dtype),
        np.empty((n_faces, 10), dtype),
        np.empty((n_faces, 9), dtype),
        np.empty((n_faces, 4), np.int64),
        np.empty((len(x) if job.scene.rounded.any() else 0, 3), dtype),
        np.empty((len(job.edges.number), 12), np.int64),
        np.empty((len(x) if job.scene.by_pixel.any() else 0, 3), dtype),
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # at depth 0: faces not drawn
        setup_faces(job.view, job.scene, x, job.settings, (height, width), job.corners, faces)
        if len(faces.soft):
            find_soft(
                job.scene.faces, job.edges, job.corners, faces.corners, job.settings, faces.soft
            )
    shift = job.grid.shift
    while True:
        n_down, n_across = (-(-n >> shift) for n in (height, width))
        start, capacity = (np.empty(n_down * n_across + n, np.int64) for n in (1, 0))
        count_tiles(faces.box, shift, n_across, start, capacity)
        if shift == 0 or capacity.max() <= LARGEST_TILE:
            break
        shift -= 1
    tiles = Tiles(start, np.empty(start[-1], np.int64), capacity)
    fill_tiles(faces.box, shift, n_across, near_to_far(faces), start.copy(), tiles.faces)
    return Frame(faces, tiles, job.grid._replace(shift=shift))


def near_to_far(faces: Faces) -> np.ndarray:
    """Return the faces that are drawn, int64, roughly from near to far."""
    n_faces = len(faces.box)
    order = np.empty(n_faces, np.int64)
    bins = np.empty(min(2 * n_faces, BINS) + 1, np.int64)
    return order[: order_faces(faces.corners, faces.box, bins, order)]


def empty_fragments(frame: Frame, first: int, last: int) -> Fragments:
    """Return room for the fragments of any of the tiles first..last-1 of a frame."""
    grid, tiles = frame.grid, frame.tiles
    n = int(tiles.capacity[first:last].max()) + LANES
    n_pairs = int(np.diff(tiles.start[first : last + 1]).max())
    dtype, side = grid.pixel_x.dtype, 1 << grid.shift
    pixel, face, order, spare = (np.empty(n, np.int32) for _ in range(4))
    p_x, p_y, y, D, rest, z, u = (np.empty(n, dtype) for _ in range(7))
    start = np.empty(side * side + 2, np.int32)
    pair = np.empty(n_pairs + 1, np.int64)
    logits, box_x, box_y = (np.empty(max(BLOCK, side) + LANES, dtype) for _ in range(3))
    rgb, shade = np.empty((n, 3), dtype), np.empty(SCRATCH, dtype)
    return Fragments(
        pixel, face, p_x, p_y, y, D, rest, z, u, rgb, order, spare, start, pair,
        logits, box_x, box_y, shade,
    )  # fmt: skip


def draw_frame(job: Job, frame: int, image: np.ndarray, pool: "Pool") -> None:
    """Draw one frame."""
    ready = setup_frame(job, frame)

    n_tiles = len(ready.tiles.capacity)

    def draw(runs: Iterable[tuple[int, int]]) -> None:
        fragments = empty_fragments(ready, 0, n_tiles)
        for first, last in runs:
            draw_tiles(first, last, job.scene, job.settings, *ready, fragments, image)

    pool.over_tiles(ready.tiles.capacity, draw)


@device_fn
def tile_body(tile, grid, settings, background, fragments, image):
    """Blend the lists of the pixels of a tile."""
    top, bottom, left, right = tile_area(tile, grid)
    for i in range(top, bottom):
        for j in range(left, right):
            k = ((i - top) << grid.shift) + j - left
            begin, end = fragments.start[k], fragments.start[k + 1]
            behind = background_at(i, j, background)
            rgba = blend_body(begin, end, fragments, settings, behind)
            image[i, j, 0], image[i, j, 1], image[i, j, 2], image[i, j, 3] = rgba


def _draw_tiles(first, last, scene, settings, faces, tiles, grid, fragments, image):
    """Draw the tiles first..last-1 of a frame."""
    for tile in range(first, last):
        gather_tile(tile, grid, scene, faces, tiles, settings, fragments)
        tile_body(tile, grid, settings, scene.background, fragments, image)


draw_tiles = cpu_kernel(_draw_tiles)


class Pool:
    """Runs the tiles of a frame, on threads if there is an executor."""

    def __init__(self, executor: ThreadPoolExecutor | None = None, threads: int = 1) -> None:
        self.executor, self.threads = executor, threads

    def over_tiles(
        self, capacity: np.ndarray, work: Callable[[Iterable[tuple[int, int]]], None]
    ) -> None:
        """Call work(runs) on every thread; the runs (first, last) make up all tiles together.

        A thread that is done with one run takes the next: tiles differ in how much they hold.
        """
        if self.executor is None:
            work([(0, len(capacity))])
            return
        runs = iter(runs_of(capacity, self.threads))  # shared: each run is taken once
        others = [self.executor.submit(work, runs) for _ in range(self.threads - 1)]
        work(runs)
        for other in others:
            other.result()


def runs_of(capacity: np.ndarray, threads: int) -> list[tuple[int, int]]:
    """Cut tiles that hold so much into runs (first, last): long ones first, then shorter ones.

    Each is half of an even share of what is left, so few are handed out, and the last to be
    done is short.
    """
    held = np.concatenate([[0], np.cumsum(capacity + TILE_WORK)])
    least, edges = held[-1] / (SHORTEST * threads), [0]
    while edges[-1] < len(capacity):
        size = max((held[-1] - held[edges[-1]]) / (2 * threads), least)
        edges.append(max(edges[-1] + 1, int(np.searchsorted(held, held[edges[-1]] + size))))
    edges[-1] = len(capacity)
    return list(pairwise(edges))


@cache
def shared_executor(threads: int) -> ThreadPoolExecutor:
    """Return the threads that draw, made once: to start them takes as long as a small image."""
    return ThreadPoolExecutor(threads, "adjsim-draw")


os.register_at_fork(after_in_child=shared_executor.cache_clear)  # a child has none of them


def for_each_frame(
    jobs: Sequence[Job], threads: int | None, work: Callable[[int, int, Pool], Any]
) -> list[Any]:
    """Return work(view, frame, pool) for every frame of every view, view by view."""
    return list(frame_by_frame(jobs, threads, work))


def frame_by_frame(
    jobs: Sequence[Job], threads: int | None, work: Callable[[int, int, Pool], Any]
) -> Iterator[Any]:
    """Yield work(view, frame, pool) for every frame of every view, view by view.

    Frames share the threads; where there is one alone, its tiles do.
    """
    frames = [(view, frame) for view in range(len(jobs)) for frame in range(len(jobs[0].x))]
    if threads is None:
        grid = jobs[0].grid
        n_pixels = len(frames) * len(grid.pixel_x) * len(grid.pixel_y)
        threads = 1 if n_pixels < SERIAL_PIXELS else numba.get_num_threads()
    elif threads < 1:
        raise ValueError(f"`threads` must be at least 1, got {threads}.")
    if threads == 1:
        yield from (work(view, frame, Pool()) for view, frame in frames)
        return
    executor = shared_executor(threads)
    if len(frames) == 1:
        yield work(0, 0, Pool(executor, threads))
        return
    yield from executor.map(lambda which: work(which[0], which[1], Pool()), frames)
