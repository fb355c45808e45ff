r"""The tangent of an image, term by term: what moved each pixel.

A fragment enters its pixel by its coverage D, its depth z, and its colour sum w_k c_k. So the
tangent of an image is a sum of four, each with the tangents of the other three set to 0:

    coverage      y = delta d^2/sigma                by the corners on the screen, and sigma
    depth         z, gamma, epsilon, near, far       by the corners: which face is in front
    barycentrics  w_k                                by the corners: what is painted slides
    shading       c_k: normals, lights, materials, colours; and the background

In Over, DIBR and Hard the order in depth is frozen, so the term of depth is 0. Colours that are
shaded pixel by pixel take their weights with barycentrics, and all else with shading.

Tests: `tests/render/test_terms.py`.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

from adjoint.render import paths
from adjoint.render.faces.face_setup import FaceTangents
from adjoint.render.raster.tile_tangents import (
    empty_tangents,
    push_tile,
    setup_frame_jvp,
    tile_tangents_body,
)
from adjoint.render.soft_raster import record_images
from adjsim.jit.backend import cpu_kernel, lit
from render.camera import AnyCamera
from render.raster.frames import setup_frame
from render.raster.packing import Job
from render.raster.tile_calls import GATHER, call_gather
from render.raster.tile_scratch import own_room, tile_size
from render.scene import Scene
from render.soft_raster import SoftRasterizer, draw_samples


class Term(StrEnum):
    """One of the four ways by which a parameter moves a pixel."""

    COVERAGE = "coverage"
    DEPTH = "depth"
    BARYCENTRICS = "barycentrics"
    SHADING = "shading"


def rasterize_jvp_terms(
    scene: Scene,
    camera: AnyCamera,
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    tangents: Mapping[str, Any],
) -> tuple[np.ndarray, dict[Term, np.ndarray]]:
    """Draw the scene, and push tangents of the parameters forward to the image, term by term.

    The terms add up to the tangent that `adjoint.render.soft_raster.rasterize_jvp` returns.

    Parameters
    ----------
    scene, camera, rasterizer, vertices, size
        As `render.soft_raster.rasterize` takes them, with one camera.
    tangents : mapping of str to array_like
        Path to tangent, of the shape of the parameter; those not named have the tangent 0.

    Returns
    -------
    images : numpy.ndarray
        As `rasterize` returns them.
    terms : dict of Term to numpy.ndarray
        Each of the shape of `images`.

    Raises
    ------
    ValueError
        As `rasterize_jvp`.
    TypeError
        If `camera` is a sequence of cameras.
    """
    if not isinstance(camera, AnyCamera):
        raise TypeError(
            f"`camera` must be one camera, got {type(camera).__name__}. Call once for each."
        )
    record = record_images(scene, camera, rasterizer, vertices, size)
    job = record.drawing.jobs[0]
    (packed,) = paths.pack_tangents(scene, record.cameras, job, record.shapes, tangents)
    terms = {}
    for term in Term:
        tan_images = np.empty((len(job.x), *record.images.shape[-3:]), job.x.dtype)
        for frame in range(len(job.x)):
            draw = partial(_draw_term, job, frame, packed, term)
            draw_samples(job, tan_images[frame], draw)
        terms[term] = tan_images.reshape(record.images.shape)
    return record.images, terms


def _draw_term(
    job: Job, frame: int, tangents: paths.Packed, term: Term, tan_image: np.ndarray
) -> None:
    """One term of the tangent of the image of one frame."""
    ready = setup_frame(job, frame)
    tan_faces = setup_frame_jvp(job, frame, ready, tangents)
    nothing = paths.zeros(job)
    tan_scene, tan_numbers = nothing.scene, nothing.numbers
    if term is Term.SHADING:
        tan_scene, tan_faces = tangents.scene, _without_corners(tan_faces)
    else:
        tan_faces = _without_colors(tan_faces)
    if term is Term.COVERAGE:
        tan_numbers[paths.SIGMA] = tangents.numbers[paths.SIGMA]
    if term is Term.DEPTH:
        tan_numbers[paths.GAMMA :] = tangents.numbers[paths.GAMMA :]
    keep = (term is Term.COVERAGE, term is Term.DEPTH, term in {Term.BARYCENTRICS, Term.SHADING})
    scratch = own_room(empty_tangents, tile_size(ready.tiles, ready.grid))
    draw_tiles_term(
        len(ready.tiles.capacity), job.scene, tan_scene, job.settings, tan_numbers, tuple(ready),
        tan_faces, scratch, keep, tan_image,
    )  # fmt: skip


def _without_corners(tan_faces: FaceTangents) -> FaceTangents:
    """Return these tangents with faces that stand still on the screen."""
    screen, corners = np.zeros_like(tan_faces.screen), np.zeros_like(tan_faces.corners)
    return tan_faces._replace(screen=screen, corners=corners)


def _without_colors(tan_faces: FaceTangents) -> FaceTangents:
    """Return these tangents with faces that keep their colours, normals and view."""
    names = ("shaded", "normals", "towards")
    return tan_faces._replace(**{name: np.zeros_like(getattr(tan_faces, name)) for name in names})


def _draw_tiles_term(
    n_tiles, scene, tan_scene, settings, tan_numbers, frame, tan_faces, scratch, keep, tan_image
):
    """Tangents of the pixels from those of y, z or the colours of fragments: those to keep."""
    faces, tiles, grid, calls = frame
    fragments, tangents = scratch
    keep_y, keep_z, keep_rgb = keep
    zero = lit(0.0, settings.sigma)
    for tile in range(n_tiles):
        call_gather(calls, GATHER, (tile, grid, scene, faces, tiles, settings, fragments))
        tile_tangents_body(
            tile, scene, tan_scene, settings, tan_numbers, faces, tan_faces, tiles,
            fragments, tangents,
        )  # fmt: skip
        for q in range(fragments.pair[tiles.start[tile + 1] - tiles.start[tile]]):
            tangents.y[q] = tangents.y[q] if keep_y else zero
            tangents.z[q] = tangents.z[q] if keep_z else zero
            for c in range(3):
                tangents.rgb[q, c] = tangents.rgb[q, c] if keep_rgb else zero
        push_tile(
            tile, scene.background, tan_scene.background, settings, tan_numbers, grid,
            fragments, tangents, tan_image,
        )  # fmt: skip


draw_tiles_term = cpu_kernel(_draw_tiles_term)
