r"""Adjoint of `render/outputs.py`: read the two files side by side.

What outputs are made of is pulled back and pushed in `adjoint/render/raster/layers.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.render import paths
from adjoint.render.soft_raster import Drawing, draw
from adjsim import checks
from adjsim.jit.devices import Device, check_device
from render.camera import AnyCamera
from render.outputs import channels, check_outputs, pack_outputs, split
from render.raster.layers import Output, layers_of
from render.raster.packing import check_cameras
from render.scene import Scene
from render.soft_raster import SoftRasterizer, empty_images


@dataclass(frozen=True, eq=False, repr=False)
class OutputRecord:
    """Outputs by name, and what is needed to pull adjoints back from them or push tangents.

    Attributes
    ----------
    images : dict of str to numpy.ndarray
        As `rasterize_outputs` returns them.
    """

    images: dict[str, np.ndarray]
    scene: Scene
    cameras: dict[str, AnyCamera]
    shapes: dict[str, tuple]
    drawing: Drawing

    def __repr__(self) -> str:
        """Return the sizes of the outputs, and what they are of, in a line."""
        outputs = ", ".join(f"{name} {image.shape}" for name, image in self.images.items())
        return f"OutputRecord({outputs}; objects: {', '.join(self.scene.objects)})"

    def vjp(
        self, adj_images: Mapping[str, Any], wrt: Iterable[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Pull the adjoints of the outputs back to the parameters.

        Parameters
        ----------
        adj_images : mapping of str to array_like
            For some of the outputs an array of their shape; others have the adjoint 0.
        wrt : iterable of str, optional
            Paths of the gradients wanted, by default all.

        Returns
        -------
        dict of str to numpy.ndarray
            Path to gradient, each of the shape of its parameter.

        Raises
        ------
        ValueError
            If an output or a path is unknown, a shape does not fit or a number is not finite.
        """
        pulled = self.drawing.pull(self._layers(adj_images))
        job, shape_of = self.drawing.jobs[0], paths.asked(self.shapes, wrt)
        return paths.gradient(self.scene, self.cameras, job, shape_of, pulled)

    def jvp(self, tangents: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Push tangents of the parameters forward to the outputs, which are not drawn again.

        Parameters
        ----------
        tangents : mapping of str to array_like
            Path to tangent, of the shape of the parameter; those not named have the tangent 0.

        Returns
        -------
        dict of str to numpy.ndarray
            Tangents of the outputs by name, each of its shape.

        Raises
        ------
        ValueError
            If a path is unknown or a tangent does not fit.
        """
        job = self.drawing.jobs[0]
        packed = paths.pack_tangents(self.scene, self.cameras, job, self.shapes, tangents)
        pushed = split(self.drawing.push(packed), job, check_outputs(self.images), many=True)
        return {name: tan.reshape(self.images[name].shape) for name, tan in pushed.items()}

    def _layers(self, adj_images: Mapping[str, Any]) -> np.ndarray:
        """Return the adjoints of all layers of all views and frames from those of outputs."""
        jobs, layers = self.drawing.jobs, self.drawing.layers
        job, adj = jobs[0], empty_images(jobs, layers)
        adj[:] = 0
        for name, value in adj_images.items():
            checks.known_key("output in `adj_images`", name, self.images)
            shape, dtype = self.images[name].shape, job.x.dtype
            given = checks.array(f"adj_images[{name!r}]", value, shape, dtype=dtype)
            places = channels(layers[0].kinds, Output(name), len(job.scene.ambient))
            parts = given.reshape(*adj.shape[:2], *adj.shape[3:5], len(places))
            for n, (layer, channel) in enumerate(places):
                adj[:, :, layer, :, :, channel] = parts[..., n]
        return adj


def record_outputs(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    outputs: Iterable[Output | str] = tuple(Output),
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> OutputRecord:
    """Draw like `rasterize_outputs`, and keep what the adjoint needs.

    Parameters and errors as in `render.outputs.rasterize_outputs`.

    Returns
    -------
    OutputRecord
        `.images`, `.vjp(adj_images, wrt=None)` and `.jvp(tangents)`, by the names of outputs.
    """
    wanted = check_outputs(outputs)
    cameras, many = check_cameras(scene, camera)
    jobs = pack_outputs(scene, cameras, rasterizer, vertices, size, wanted)
    layers = [layers_of(job, wanted) for job in jobs]
    drawn, drawing = draw(jobs, layers, threads, check_device(device))
    images = split(drawn, jobs[0], wanted, many)
    named = paths.named(cameras, many=many)
    shapes = paths.shapes(scene, named, vertices, jobs[0])
    return OutputRecord(images, scene, named, shapes, drawing)


def rasterize_outputs_jvp(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    tangents: Mapping[str, Any],
    outputs: Iterable[Output | str] = tuple(Output),
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draw like `rasterize_outputs`, and push tangents of the parameters forward.

    Parameters
    ----------
    tangents : mapping of str to array_like
        Path to tangent, of the shape of the parameter; those not named have the tangent 0.
        The others as in `render.outputs.rasterize_outputs`.

    Returns
    -------
    images, tan_images : dict of str to numpy.ndarray
        Both as `rasterize_outputs` returns them.

    Raises
    ------
    ValueError
        As `rasterize_outputs`, or if a path is unknown or a tangent does not fit.
    """
    record = record_outputs(
        scene, camera, rasterizer, vertices, size, outputs, threads=threads, device=device
    )
    return record.images, record.jvp(tangents)
