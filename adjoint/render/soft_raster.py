r"""Tangent and adjoint of `render/soft_raster.py`: images pulled back to what made them.

What a record keeps of the fragments of a frame is said in `fragment_cache.py`; of a frame of which
it keeps nothing, the reverse finds the fragments again. A frame is pulled back in `frames.py`, and
its tangents are pushed in `tile_tangents.py`. What a derivative holds fixed is said in
`fragments.py` (the fragments and their order in depth), `face_setup.py` (which faces are drawn) and
`coverage.py` (the nearest edge).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.raster.cuda_raster import vjp_on_gpu
from adjoint.render.raster.cuda_tangents import jvp_on_gpu
from adjoint.render.raster.fragment_cache import KeptFrame, draw_kept, recall_frame
from adjoint.render.raster.frames import draw_frame_vjp
from adjoint.render.raster.supersampling import average_vjp
from adjoint.render.raster.tile_tangents import draw_frame_jvp
from adjsim import checks
from adjsim.jit.devices import Device, check_device, module_of
from render.camera import AnyCamera
from render.raster.cuda_raster import DrawnGroup, draw_on_gpu
from render.raster.layers import Layers, layers_of
from render.raster.packing import Job, check_cameras, pack
from render.raster.supersampling import average
from render.raster.thread_pool import Pool, for_each_frame, frame_by_frame
from render.scene import Scene
from render.soft_raster import (
    SoftRasterizer,
    check_rasterizer,
    draw_samples,
    empty_images,
    only_asked,
)


class Drawing(NamedTuple):
    """What was drawn, and what of it was kept: the twin of `draw_frames`."""

    jobs: Sequence[Job]  # of each view
    layers: Sequence[Layers]  # of each view
    kept: Sequence[KeptFrame | None]  # of the frames, view by view
    on_gpu: DrawnGroup | None  # there in place of these, or nothing
    threads: int | None
    device: Device

    def push(self, tangents: Sequence[paths.Packed]) -> np.ndarray:
        """Tangents of the layers, (n_views, n_frames, n_layers, height, width, 4)."""
        jobs, layers, kept, on_gpu, threads, device = self
        if device is Device.CUDA:
            return average(jvp_on_gpu(jobs, layers, on_gpu, tangents), jobs[0].samples)
        tan_images = empty_images(jobs, layers)

        def work(view: int, frame: int, pool: Pool) -> None:
            job, of_view = jobs[view], (layers[view], tangents[view])
            kept_frame = recall_frame(job, frame, kept[view * len(job.x) + frame])
            draw_samples(
                job,
                tan_images[view, frame],
                lambda room: draw_frame_jvp(job, frame, kept_frame, *of_view, room, pool),
            )

        for_each_frame(jobs, threads, work)
        return tan_images

    def pull(self, adj: np.ndarray) -> Iterator[paths.Packed]:
        """Pull the adjoints of the layers back, frame by frame of view by view, or several at once.

        They have the shape (n_views, n_frames, n_layers, height, width, 4).
        """
        jobs, layers, kept, on_gpu, threads, device = self
        if device is Device.CUDA:
            return vjp_on_gpu(jobs, layers, on_gpu, adj)

        def work(view: int, frame: int, pool: Pool) -> paths.Packed:
            job = jobs[view]
            adj_samples = average_vjp(adj[view, frame], job.samples)
            kept_frame = recall_frame(job, frame, kept[view * len(job.x) + frame])
            return draw_frame_vjp(job, frame, kept_frame, layers[view], adj_samples, pool)

        return frame_by_frame(jobs, threads, work)


def draw(
    jobs: Sequence[Job], layers: Sequence[Layers], threads: int | None, device: Device
) -> tuple[np.ndarray, Drawing]:
    """Draw like `draw_frames`, and keep what the adjoint needs."""
    if device is Device.CUDA:
        samples, on_gpu = draw_on_gpu(jobs, layers)
        images = average(samples, jobs[0].samples)
        return images, Drawing(jobs, layers, [], on_gpu, threads, device)
    images, kept = draw_kept(jobs, layers, threads)
    return images, Drawing(jobs, layers, kept, None, threads, device)


@dataclass(frozen=True, eq=False, repr=False)
class ImageRecord:
    """Images, and all that is needed to pull adjoints back from them or push tangents to them.

    Attributes
    ----------
    images : numpy.ndarray or cupy.ndarray
        RGBA as `rasterize` returns it: (height, width, 4), after (n_frames,) if any object
        moves, after (n_cameras,) if the cameras came as a sequence.
    """

    images: np.ndarray
    scene: Scene
    cameras: dict[str, AnyCamera]
    shapes: dict[str, tuple]
    drawing: Drawing

    def __repr__(self) -> str:
        """Return the size of the images, and what they are of, in a line."""
        objects = ", ".join(self.scene.objects)
        return f"ImageRecord(images={self.images.shape} {self.images.dtype}, objects: {objects})"

    def jvp(self, tangents: Mapping[str, Any]) -> np.ndarray:
        """Push tangents of the parameters forward to the images, which are not drawn again.

        Parameters
        ----------
        tangents : mapping of str to array_like
            Path to tangent, of the shape of the parameter; those not named have the tangent 0.

        Returns
        -------
        numpy.ndarray
            Tangents of the images, of their shape.

        Raises
        ------
        ValueError
            If a path is unknown or a tangent does not fit.

        Examples
        --------
        >>> from adjoint import record_images
        >>> from render import Camera, Mesh, Scene, SoftRasterizer
        >>> scene = Scene({"triangle": Mesh([(0, 1, 2)])})
        >>> vertices = {"triangle": [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]}
        >>> camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
        >>> drawn = record_images(scene, camera, SoftRasterizer(), vertices, (32, 48))
        >>> tangent = drawn.jvp({"camera.eye": (0.0, 0.0, -1.0)})
        >>> print(tangent.shape, tangent[..., 3].sum() > 0.0)  # nearer it covers more
        (32, 48, 4) True
        """
        job = self.drawing.jobs[0]
        packed = paths.pack_tangents(self.scene, self.cameras, job, self.shapes, tangents)
        return self.drawing.push(packed).reshape(self.images.shape)

    def vjp(self, adj_images: Any, wrt: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """Pull the adjoint of the images back to the parameters.

        Parameters
        ----------
        adj_images : array_like
            Of the shape of `images`; it may be CuPy's if these are.
        wrt : iterable of str, optional
            Paths of the gradients wanted, by default all.

        Returns
        -------
        dict of str to numpy.ndarray
            Path to gradient, each of the shape of its parameter.

        Raises
        ------
        ValueError
            If the shape does not fit, a number is not finite or a path is unknown.

        Examples
        --------
        >>> from adjoint import record_images
        >>> from render import Camera, Mesh, Scene, SoftRasterizer
        >>> scene = Scene({"triangle": Mesh([(0, 1, 2)])})
        >>> vertices = {"triangle": [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]}
        >>> camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
        >>> drawn = record_images(scene, camera, SoftRasterizer(), vertices, (32, 48))
        >>> gradient = drawn.vjp(drawn.images, wrt=["camera.eye"])  # of |image|^2 / 2
        >>> print(gradient["camera.eye"][2] < 0.0)  # from farther away there is less to see
        True
        """
        jobs, shape = self.drawing.jobs, self.images.shape
        adj = adj_images
        if module_of(adj) is np:
            adj = checks.array("adj_images", adj, shape, dtype=jobs[0].x.dtype)
        shape_of = paths.asked(self.shapes, wrt)
        pulled = self.drawing.pull(adj.reshape(len(jobs), len(jobs[0].x), 1, *shape[-3:]))
        return paths.gradient(self.scene, self.cameras, jobs[0], shape_of, pulled)


def record_images(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> ImageRecord:
    """Draw like `rasterize`, and keep what the adjoint needs.

    Parameters and errors as in `render.soft_raster.rasterize`.

    Returns
    -------
    ImageRecord
        `.images`, `.vjp(adj_images, wrt=None)` and `.jvp(tangents)`.

    Examples
    --------
    >>> from adjoint import record_images
    >>> from render import Camera, Mesh, Scene, SoftRasterizer
    >>> scene = Scene({"triangle": Mesh([(0, 1, 2)])})
    >>> vertices = {"triangle": [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]}
    >>> camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
    >>> drawn = record_images(scene, camera, SoftRasterizer(), vertices, (32, 48))
    >>> gradient = drawn.vjp(drawn.images)  # of |image|^2 / 2
    >>> print(gradient["triangle.vertices"].shape, gradient["camera.eye"][2] < 0.0)
    (3, 3) True
    """
    check_rasterizer(rasterizer)
    cameras, many = check_cameras(scene, camera)
    jobs = pack(scene, cameras, rasterizer, vertices, size)
    images, drawing = draw(jobs, [layers_of(job) for job in jobs], threads, check_device(device))
    images = only_asked(images[:, :, 0], many, jobs[0].batched)
    named = paths.named(cameras, many=many)
    shapes = paths.shapes(scene, named, vertices, jobs[0])
    return ImageRecord(images, scene, named, shapes, drawing)


def rasterize_jvp(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    tangents: Mapping[str, Any],
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw like `rasterize`, and push tangents of the parameters forward to the images.

    Parameters
    ----------
    tangents : mapping of str to array_like
        Path to tangent, of the shape of the parameter; those not named have the tangent 0.
        The others as in `render.soft_raster.rasterize`.

    Returns
    -------
    images, tan_images : numpy.ndarray
        Both of the shape that `rasterize` returns.

    Raises
    ------
    ValueError
        As `rasterize`, or if a path is unknown or a tangent does not fit.

    Examples
    --------
    >>> from adjoint import rasterize_jvp
    >>> from render import Camera, Mesh, Scene, SoftRasterizer
    >>> scene = Scene({"triangle": Mesh([(0, 1, 2)])})
    >>> vertices = {"triangle": [(-1.0, -1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 0.0)]}
    >>> camera = Camera(eye=(0.0, 0.0, 4.0), target=(0.0, 0.0, 0.0), fov_y=45.0)
    >>> nearer = {"camera.eye": (0.0, 0.0, -1.0)}
    >>> _, tangent = rasterize_jvp(scene, camera, SoftRasterizer(), vertices, (32, 48), nearer)
    >>> print(tangent.shape, tangent[..., 3].sum() > 0.0)  # it covers more
    (32, 48, 4) True
    """
    record = record_images(
        scene, camera, rasterizer, vertices, size, threads=threads, device=device
    )
    return record.images, record.jvp(tangents)
