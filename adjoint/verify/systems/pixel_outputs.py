"""Pictures of depth, normals and objects: those of `pixels.py`, with every output."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from adjoint.render.outputs import rasterize_outputs_jvp, record_outputs
from adjoint.verify.problem import Problem, Values, changed, systems
from adjoint.verify.systems.pixels import picture_problem, smooth_sky
from render.outputs import Output, rasterize_outputs
from render.picture import Picture


def flattened(images: dict[str, np.ndarray]) -> np.ndarray:
    """Return all outputs as one array, in the order in which they are declared."""
    return np.concatenate([images[output].ravel() for output in Output])


def outputs_problem(build: Callable[[], Picture]) -> Problem:
    """Return a picture as a problem; its outputs are the numbers of all its outputs."""
    picture, as_images = build(), picture_problem(build)
    run = record_outputs(*picture.arguments)

    def forward(values: Values) -> np.ndarray:
        moved = picture.at(changed(values, as_images.point))
        return flattened(rasterize_outputs(*moved.arguments))

    def jvp(tangents: Values) -> np.ndarray:
        return flattened(rasterize_outputs_jvp(*picture.arguments, tangents=tangents)[1])

    def vjp(adj: np.ndarray, wrt: Sequence[str]) -> Values:
        ends = np.cumsum([run.images[output].size for output in Output])[:-1]
        parts = zip(Output, np.split(adj, ends), strict=True)
        return run.vjp({o: adj_image.reshape(run.images[o].shape) for o, adj_image in parts}, wrt)

    return dataclasses.replace(as_images, forward=forward, jvp=jvp, vjp=vjp)


SYSTEMS = systems("pixels", outputs_problem, {"raster/outputs": smooth_sky})
