r"""Soft rasterization: images that are smooth in everything that makes them.

    vertices -> screen -> faces ready to be drawn -> fragments of a tile -> pixels

`face_setup.py`, `fragments.py` and `blending.py` hold the three stages; `frames.py` runs them
over the tiles of a frame, `thread_pool.py` over frames, and this file says what is drawn.

A wide sigma lets an edge feel targets that are far away; a wide gamma lets faces behind others be
seen. In DIBR it is kappa that lets alpha feel what is far away; sigma does nothing there.

Adjoint: `adjoint/render/soft_raster.py`. Tests: `tests/render/test_soft_raster.py`.
Source: Liu et al., Soft Rasterizer, ICCV 2019; the Over blend is this project's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.jit.devices import Device, check_device
from render.blending import DIBR, Blend, Over
from render.camera import AnyCamera
from render.raster.cuda_raster import draw_on_gpu
from render.raster.frames import draw_frame
from render.raster.layers import Layers, layers_of
from render.raster.packing import Job, check_cameras, pack
from render.raster.supersampling import average
from render.raster.thread_pool import Pool, for_each_frame
from render.scene import Scene


def softness(pixels: float, height: int) -> float:
    """Return the sigma [screen units squared] of edges that are so many pixels soft.

    Parameters
    ----------
    pixels : float
        sqrt(sigma) [pixels], positive.
    height : int
        Of the image [pixels].

    Raises
    ------
    ValueError
        If a number is not positive.
    """
    wide, high = checks.number("pixels", pixels), checks.number("height", height)
    checks.positive("pixels", wide)
    checks.positive("height", high)
    return (2.0 * wide / high) ** 2


def without_alpha(background: Any) -> str:
    """Return what to do about a background of RGBA, or nothing."""
    if np.shape(background)[-1:] != (4,):
        return ""
    return (
        "It is RGB: alpha cannot be set, it is what the faces cover of a pixel. "
        "Pass background[..., :3]."
    )


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
        (`render/raster/supersampling.py`). It changes neither `sigma` nor the size of `background`.
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
        background = checks.colors(
            "rasterizer.background", self.background, shape, hint=without_alpha(self.background)
        ).copy()
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
    camera : Camera, PosedCamera or sequence of them
        In a sequence every camera sees every frame.
    rasterizer : SoftRasterizer
    vertices : mapping of str to array_like
        For each object its vertices [m], (n_vertices, 3), or (n_frames, n_vertices, 3).
        float32 if all of them are, float64 otherwise. On "cuda" they may be CuPy's.
    size : tuple of int
        Height and width [pixels].
    threads : int, optional
        How many threads draw; by default one for small images, all of Numba's for others.
        The images do not depend on it.
    device : Device or str
        `Device.CPU`, the reference, or `Device.CUDA`.

    Returns
    -------
    numpy.ndarray, or cupy.ndarray if vertices of an object are
        RGBA, (height, width, 4), or (n_frames, height, width, 4) if any object moves; a
        sequence of cameras puts (n_cameras,) before that. RGB is already over the
        background, nothing is clamped.

    Raises
    ------
    ValueError
        If a shape does not fit, a vertex is not finite, a face indexes no vertex, an
        object is unknown or missing, the size is not positive, or the device is unknown.
    MemoryError
        If there is no room for the images; the message names their size in bytes.
    RuntimeError
        If no GPU can be used; the message says why and the way out.

    Notes
    -----
    Equations: Liu et al. 2019, eq. 1-4; `render.faces.coverage`, `render.raster.barycentrics`,
    `render.blending`. Adjoint: `adjoint.render.soft_raster.record_images`.

    Examples
    --------
    >>> from render import Camera, Mesh, Scene, SoftRasterizer, rasterize
    >>> scene = Scene({"triangle": Mesh([(0, 1, 2)])})
    >>> vertices = {"triangle": [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]}
    >>> camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
    >>> image = rasterize(scene, camera, SoftRasterizer(), vertices, (32, 48))
    >>> print(image.shape, image[16, 24, 3].round(3))
    (32, 48, 4) 1.0
    """
    check_rasterizer(rasterizer)
    cameras, many = check_cameras(scene, camera)
    jobs = pack(scene, cameras, rasterizer, vertices, size)
    layers = [layers_of(job) for job in jobs]
    images = draw_frames(jobs, layers, threads, check_device(device))
    return only_asked(images[:, :, 0], many, jobs[0].batched)


def draw_frames(
    jobs: Sequence[Job], layers: Sequence[Layers], threads: int | None, device: Device
) -> np.ndarray:
    """Draw the layers of every frame of every view; each view has its own.

    Returns the images, (n_views, n_frames, n_layers, height, width, 4); colours come first.
    """
    if device is Device.CUDA:
        return average(draw_on_gpu(jobs, layers)[0], jobs[0].samples)
    images = empty_images(jobs, layers)

    def draw(view: int, frame: int, pool: Pool) -> None:
        job = jobs[view]
        draw_samples(
            job, images[view, frame], lambda room: draw_frame(job, frame, layers[view], room, pool)
        )

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


def empty_images(jobs: Sequence[Job], layers: Sequence[Layers]) -> np.ndarray:
    """Return room for all views, (n_views, n_frames, n_layers, height, width, 4)."""
    x, k, grid = jobs[0].x, jobs[0].samples, jobs[0].grid
    height, width = len(grid.pixel_y) // k, len(grid.pixel_x) // k
    return np.empty((len(jobs), len(x), len(layers[0].kinds), height, width, 4), x.dtype)
