r"""More than colours from one look at a scene: depth, normals, and which object is seen.

Each output blends another attribute of the same fragments with the same weights as RGB, over
its own value behind everything. With the weight w_j of fragment j and w_bg of the background,

    Over         w_j = T_j D_j,  w_bg = T_end
    Softmax      w_j and w_bg of the softmax
    DIBR, Hard   w = 1 for the nearest face that covers the pixel, or for the background

    rgba     sum w_j C_j + w_bg C_bg, and alpha as the blend says
    depth    sum w_j z_j + w_bg far                       z_j along the view [m]
    normals  sum w_j n_j                                  of the world, not flipped to the eye
    mask     of object o: sum of w_j over its faces

n_j is the unit normal of a face, or the interpolated and normalised one where an object has
`smooth_normals`; their sum is not normalised again, so it fades towards edges. The masks of all
objects sum to 1 - w_bg, which is alpha in Over and Hard. In DIBR they are hard, like RGB.
Supersampling takes the mean of each. All of it is differentiated, kinks and jumps as RGB.

What fragments show is in `render/raster/layers.py`; one loop draws it with the colours.
Adjoint: `adjoint/render/outputs.py`. Tests: `tests/render/test_outputs.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adjsim.jit.devices import Device, check_device
from render.camera import AnyCamera
from render.raster.layers import DEPTH, MASK, NORMALS, Output, layers_of
from render.raster.packing import Job, check_cameras, pack
from render.scene import Scene
from render.soft_raster import SoftRasterizer, check_rasterizer, draw_frames, only_asked


def channels(kinds: np.ndarray, output: Output, n_objects: int) -> list[tuple[int, int]]:
    """Return the layer and the channel of every number of an output."""
    at = {int(kind): layer for layer, kind in enumerate(kinds)}
    if output is Output.RGBA:
        return [(0, c) for c in range(4)]
    if output is Output.DEPTH:
        return [(at[DEPTH], 0)]
    if output is Output.NORMALS:
        return [(at[NORMALS], c) for c in range(3)]
    return [(at[MASK + o // 3], o % 3) for o in range(n_objects)]


def split(images: np.ndarray, job: Job, outputs: Iterable[Output], many: bool) -> dict:
    """Return the outputs by name from all layers of all views and frames."""
    kinds, n_objects = layers_of(job, outputs).kinds, len(job.scene.ambient)
    out = {}
    for output in outputs:
        layer, channel = np.array(channels(kinds, output, n_objects), int).reshape(-1, 2).T
        whole = np.ascontiguousarray(np.moveaxis(images[:, :, layer, :, :, channel], 0, -1))
        whole = whole[..., 0] if output is Output.DEPTH else whole
        out[output.value] = only_asked(whole, many, job.batched)
    return out


def check_outputs(outputs: Any) -> tuple[Output, ...]:
    """Return the outputs without repetition; raise if one is unknown or there are none."""
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    for name in names:
        if name not in set(Output):
            raise ValueError(f"`outputs` must be among {', '.join(Output)}, got {name!r}.")
    if not names:
        raise ValueError(f"`outputs` must name at least one of {', '.join(Output)}, got none.")
    return tuple(dict.fromkeys(Output(name) for name in names))


def pack_outputs(
    scene: Scene,
    cameras: Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    outputs: tuple[Output, ...],
) -> list[Job]:
    """Pack the arguments of `rasterize_outputs`, a job for each camera."""
    check_rasterizer(rasterizer)
    jobs = pack(scene, cameras, rasterizer, vertices, size)
    if Output.DEPTH not in outputs:
        return jobs
    return [job._replace(settings=job.settings._replace(is_deep=True)) for job in jobs]


def rasterize_outputs(
    scene: Scene,
    camera: AnyCamera | Sequence[AnyCamera],
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    outputs: Iterable[Output | str] = tuple(Output),
    *,
    threads: int | None = None,
    device: Device | str = Device.CPU,
) -> dict[str, np.ndarray]:
    """Draw like `rasterize`, and return more than colours.

    Parameters
    ----------
    scene, camera, rasterizer, vertices, size, threads, device
        As `render.soft_raster.rasterize` takes them.
    outputs : iterable of Output or str
        Which of "rgba" [-], "depth" [m], "normals" [-] and "mask" [-]; by default all.

    Returns
    -------
    dict of str to numpy.ndarray
        "rgba" as `rasterize` returns it, (height, width, 4), "depth" (height, width),
        "normals" (height, width, 3), "mask" (height, width, n_objects) in the order of the
        scene; each after (n_frames,) and (n_cameras,) as in `rasterize`.

    Raises
    ------
    ValueError
        As `rasterize`, or if an output is unknown.
    RuntimeError
        As `rasterize`.

    Notes
    -----
    Equations: `render.outputs`. Adjoint: `adjoint.render.outputs.record_outputs`.
    """
    wanted = check_outputs(outputs)
    cameras, many = check_cameras(scene, camera)
    jobs = pack_outputs(scene, cameras, rasterizer, vertices, size, wanted)
    layers = [layers_of(job, wanted) for job in jobs]
    images = draw_frames(jobs, layers, threads, check_device(device))
    return split(images, jobs[0], wanted, many)
