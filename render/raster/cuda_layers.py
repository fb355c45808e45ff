r"""Depth, normals and masks on a GPU: `render/raster/layers.py`, a thread per face and fragment.

The fragments of a frame are found once, as in `cuda_raster.py`. Then, layer by layer, each
shows something else in place of its colour, and the pixels are blended again.

Adjoint: `adjoint/render/raster/cuda_layers.py`. Tests: `tests/cuda`.
"""

from typing import Any

import numpy as np

from adjsim.engine.jit.backend import Device, array_module, device_fn, launch, on_device
from render.raster.cuda_raster import Shared, blend_on_gpu, gather_frame, share
from render.raster.face_setup import Faces
from render.raster.fragments import Fragments
from render.raster.layers import NORMALS, Layers, flat_normal_body, layer_body
from render.raster.packing import Job


@device_fn
def flat_normal_thread(f, args):
    """Write the unit normal of face f."""
    faces, x, flat = args
    flat_normal_body(f, faces, x, flat)


@device_fn
def layer_thread(q, args):
    """Have fragment q show a layer in place of its colours."""
    kind, scene, faces, flat, fragments, layered = args
    layer_body(q, kind[0], scene, faces, flat, fragments, layered)


def normals_on_gpu(xp: Any, layers: Layers, faces: Any, x: Any) -> Any:
    """Return the unit normals of all faces, (n_faces, 3), or none if no layer shows them."""
    n = faces.shape[0] if NORMALS in layers.kinds else 0
    flat = on_device(xp.empty((n, 3), x.dtype))
    launch(flat_normal_thread, n, (faces, x, flat))
    return flat


def empty_layered(xp: Any, fragments: Fragments) -> Fragments:
    """Return the fragments with room for what they show in a layer."""
    return fragments._replace(rgb=on_device(xp.empty(fragments.rgb.shape, fragments.rgb.dtype)))


def show_on_gpu(
    i: int, layers: Layers, shared: Shared, faces: Faces, flat: Any, scratch: tuple
) -> tuple[Any, Any]:
    """Have all fragments show layer i; return its kind and what lies behind it.

    `scratch` are the fragments, and those that show the layer.
    """
    kind, behind = on_device((layers.kinds[i : i + 1], layers.behind[i]))
    args = (kind, shared.scene, faces, flat, *scratch)
    launch(layer_thread, scratch[0].y.shape[0], args)
    return kind, behind


def draw_layers_on_gpu(job: Job, layers: Layers) -> np.ndarray:
    """Draw the layers of the frames of a job, (n_frames, n_layers, height, width, 4)."""
    xp, shared = array_module(Device.CUDA), share(job)
    shape, n_layers = (len(job.grid.pixel_y), len(job.grid.pixel_x), 4), len(layers.kinds)
    images = np.empty((len(job.x), n_layers, *shape), job.x.dtype)
    for frame, x in enumerate(job.x):
        place = on_device(x)
        faces, _, fragments = gather_frame(xp, job, shared, place)
        images[frame, 0] = blend_on_gpu(xp, shared, fragments, shared.scene.background, shape)
        flat = normals_on_gpu(xp, layers, shared.scene.faces, place)
        scratch = (fragments, empty_layered(xp, fragments))
        for i in range(1, n_layers):
            _, behind = show_on_gpu(i, layers, shared, faces, flat, scratch)
            images[frame, i] = blend_on_gpu(xp, shared, scratch[1], behind, shape)
    return images
