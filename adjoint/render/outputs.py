r"""Adjoint of `render/outputs.py`: read the two files side by side.

A layer is undone like colours are: its weights get adjoints through the attribute that it
shows, and the attribute gets w times the adjoint of its pixel. The adjoints of logits and
depths of all layers add up before the faces are undone, once. Depth passes on to z, a normal
to the face or to the normals of its corners; which object a face belongs to is fixed. The
tangents are in `layer_tangents.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adjoint.render import paths
from adjoint.render.face_setup import NORMALS, add_row
from adjoint.render.fragments import place_slots_vjp
from adjoint.render.layer_tangents import draw_frame_layers_jvp
from adjoint.render.normals import unit_or_zero_vjp
from adjoint.render.pixel_shading import add_corners, no_corners, weighted_vjp
from adjoint.render.shading import flat_normal_vjp
from adjoint.render.soft_raster import (
    empty_adjoints,
    empty_slots,
    pairs_vjp_body,
    recording,
    tile_vjp_body,
    undo_frame,
)
from adjoint.render.supersampling import average_vjp
from adjoint.render.textures import TexelRecords
from adjsim import checks
from adjsim.backend import cpu_kernel, device_fn, lit
from render.barycentrics import fragment_place
from render.camera import AnyCamera
from render.face_setup import load3, load_corners
from render.fragments import gather_tile
from render.normals import VertexCorners, vertex_corners
from render.outputs import (
    DEPTH,
    Layers,
    Output,
    channels,
    check_outputs,
    draw_outputs,
    empty_layers,
    frame_normals,
    layer_body,
    layers_of,
    pack_outputs,
    split,
)
from render.packing import Job, check_cameras
from render.pixel_shading import corner_rows, weighted
from render.scene import Scene
from render.soft_raster import (
    Pool,
    SoftRasterizer,
    draw_samples,
    empty_fragments,
    for_each_frame,
    setup_frame,
)


@device_fn
def add_layer_body(n, kind, fragments, adj_layer, adj):
    """Add the adjoints of logits and depths of the first n fragments from one layer."""
    for q in range(n):
        adj.y[q] += adj_layer.y[q]
        adj.z[q] += adj_layer.z[q]
        if kind == DEPTH:
            adj.z[q] += adj_layer.w[q] * adj_layer.rgba[fragments.pixel[q], 0]


@device_fn
def normals_vjp_body(k, f, scene, faces, fragments, adj_layer, pair, slots, normal_slots):
    """Pair k of the tile, face f: undo the normals that its fragments show."""
    corners = load_corners(f, faces.corners)
    zero = lit(0.0, corners[0][0])
    sums = no_corners(zero)
    for c in range(3):
        normal_slots[pair, c] = zero
    for q in range(fragments.pair[k], fragments.pair[k + 1]):
        i, s = fragments.pixel[q], adj_layer.w[q]
        adj_n = (s * adj_layer.rgba[i, 0], s * adj_layer.rgba[i, 1], s * adj_layer.rgba[i, 2])
        if scene.rounded[f]:
            p = (fragments.p_x[q], fragments.p_y[q])
            _, w = fragment_place(p, corners[0], corners[1], corners[2], corners[3])
            n = corner_rows(f, scene.faces, faces.normals)

            # (3) n = m/|m|,  m = sum w_k n_k
            adj_m = unit_or_zero_vjp(weighted(w, n), adj_n)
            sums = add_corners(sums, w, adj_m)

            # (2) w at the pixel
            place_slots_vjp(p, corners, zero, weighted_vjp(n, adj_m), pair, slots)
        else:
            add_row(normal_slots, pair, adj_n)  # (1)
    if scene.rounded[f]:
        for a in range(3):
            for c in range(3):
                slots[pair, NORMALS + 3 * a + c] += sums[a][c]


def _draw_layers_vjp(
    first, last, scene, settings, frame, scratch, layers, flat, adj_images, slots, normal_slots
):
    """Fill the slots of the tiles first..last-1 from all layers of a frame."""
    faces, tiles, grid = frame
    fragments, layered, adj, adj_layer = scratch
    nowhere = slots.behind[:0]
    for tile in range(first, last):
        gather_tile(tile, grid, scene, faces, tiles, settings, fragments)
        begin, end = tiles.start[tile], tiles.start[tile + 1]
        sums, others, n = slots.tiles[tile], normal_slots.tiles[tile], fragments.pair[end - begin]
        sums[:] = 0
        others[:] = 0
        tile_vjp_body(
            tile, scene.background, settings, grid, fragments, adj, adj_images[0], sums,
            slots.behind,
        )  # fmt: skip
        for i in range(1, layers.kinds.shape[0]):
            layer_body(n, layers.kinds[i], scene, faces, flat, fragments, layered)
            tile_vjp_body(
                tile, layers.behind[i], settings, grid, layered, adj_layer, adj_images[i], others,
                nowhere,
            )  # fmt: skip
            add_layer_body(n, layers.kinds[i], fragments, adj_layer, adj)
        sums[1] += others[1]
        sums[2] += others[2]
        pairs_vjp_body(tile, scene, settings, grid, faces, tiles, fragments, adj, slots)
        if flat.shape[0] > 0:  # the last layer is that of normals
            for pair in range(begin, end):
                normals_vjp_body(
                    pair - begin, tiles.faces[pair], scene, faces, fragments, adj_layer, pair,
                    slots.pairs, normal_slots.pairs,
                )  # fmt: skip


def _flat_normals_vjp(faces, rounded, box, x, pair_faces, normal_slots, adj_flat, adj_x):
    """Sum the slots of the normal of every face, and add its adjoint to the vertices."""
    adj_flat[:] = 0
    for pair in range(pair_faces.shape[0]):
        add_row(adj_flat, pair_faces[pair], load3(normal_slots, pair))
    for f in range(faces.shape[0]):
        if box[f, 0] < box[f, 1] and not rounded[f]:
            i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
            adj = flat_normal_vjp(load3(x, i), load3(x, j), load3(x, k), load3(adj_flat, f))
            add_row(adj_x, i, adj[0])
            add_row(adj_x, j, adj[1])
            add_row(adj_x, k, adj[2])


draw_layers_vjp = cpu_kernel(_draw_layers_vjp)
flat_normals_vjp = cpu_kernel(_flat_normals_vjp)


class LayerSlots(NamedTuple):
    """What the layers of a frame pull back to beside the slots of its colours."""

    tiles: np.ndarray  # (n_tiles, 6) of sigma, gamma, epsilon and a background that is fixed
    pairs: np.ndarray  # (n_pairs, 3) of the normals of faces


def draw_frame_layers_vjp(
    job: Job,
    frame: int,
    layers: Layers,
    corners: VertexCorners,
    adj_images: np.ndarray,
    pool: Pool,
) -> paths.Packed:
    """Adjoints of everything from the adjoints of the layers of one frame."""
    ready, flat = setup_frame(job, frame), frame_normals(job, frame, layers)
    slots, dtype = empty_slots(job, ready), job.x.dtype
    records: dict[int, TexelRecords] = {}
    n_tiles, n_pairs = len(ready.tiles.capacity), len(ready.tiles.faces)
    own = LayerSlots(np.empty_like(slots.tiles), np.empty((n_pairs if len(flat) else 0, 3), dtype))

    def draw(runs: Iterable[tuple[int, int]]) -> None:
        fragments = empty_fragments(ready, 0, n_tiles)
        layered = fragments._replace(rgb=np.empty_like(fragments.rgb))
        n, n_pixels = len(fragments.y), len(fragments.start)
        rooms = [empty_adjoints(n, n_pixels, dtype) for _ in range(2)]
        for first, last in runs:
            draw_layers_vjp(
                first, last, job.scene, job.settings, tuple(ready), (fragments, layered, *rooms),
                layers, flat, adj_images, recording(job, ready, first, last, slots, records), own,
            )  # fmt: skip

    pool.over_tiles(n_tiles, draw)
    adj = undo_frame(job, frame, ready, corners, slots, records)
    flat_normals_vjp(
        job.scene.faces[: len(flat)], job.scene.rounded, ready.faces.box, job.x[frame],
        ready.tiles.faces[: len(own.pairs)], own.pairs, np.empty_like(flat), adj.x,
    )  # fmt: skip
    return adj


@dataclass(frozen=True, eq=False)
class OutputRecord:
    """Outputs by name, and all that is needed to pull adjoints back from them.

    Attributes
    ----------
    images : dict of str to numpy.ndarray
        As `rasterize_outputs` returns them.
    """

    images: dict[str, np.ndarray]
    layers: list[Layers]
    scene: Scene
    cameras: dict[str, AnyCamera]
    jobs: list[Job]
    shapes: dict[str, tuple]
    threads: int | None

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
        adj, job = self._layers(adj_images), self.jobs[0]
        shape_of = paths.asked(self.shapes, wrt)
        corners = vertex_corners(job.scene.faces, job.x.shape[1])

        def undo(view: int, frame: int, pool: Pool) -> paths.Packed:
            adj_samples = average_vjp(adj[view, frame], job.samples)
            return draw_frame_layers_vjp(
                self.jobs[view], frame, self.layers[view], corners, adj_samples, pool
            )

        pulled = for_each_frame(self.jobs, self.threads, undo)
        return paths.gradient(self.scene, self.cameras, job, shape_of, pulled)

    def _layers(self, adj_images: Mapping[str, Any]) -> np.ndarray:
        """Return the adjoints of all layers of all views and frames from those of outputs."""
        job, adj = self.jobs[0], empty_layers(self.jobs, self.layers[0])
        adj[:] = 0
        for name, value in adj_images.items():
            checks.known_key("output in `adj_images`", name, self.images)
            shape, dtype = self.images[name].shape, job.x.dtype
            given = checks.array(f"adj_images[{name!r}]", value, shape, dtype=dtype)
            places = channels(self.layers[0].kinds, Output(name), len(job.scene.ambient))
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
) -> OutputRecord:
    """Draw like `rasterize_outputs`, and keep what the adjoint needs.

    Parameters and errors are those of `render.outputs.rasterize_outputs`.

    Returns
    -------
    OutputRecord
        `.images`, and `.vjp(adj_images, wrt=None)`, both by the names of outputs.
    """
    wanted = check_outputs(outputs)
    cameras, many = check_cameras(scene, camera)
    jobs = pack_outputs(scene, cameras, rasterizer, vertices, size, wanted)
    layers = [layers_of(job, wanted) for job in jobs]
    images = split(draw_outputs(jobs, layers, threads), jobs[0], wanted, many)
    named = paths.named(cameras, many=many)
    shapes = paths.shapes(scene, named, vertices, jobs[0])
    return OutputRecord(images, layers, scene, named, jobs, shapes, threads)


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
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draw like `rasterize_outputs`, and push tangents of the parameters forward.

    Parameters
    ----------
    tangents : mapping of str to array_like
        Path to tangent, of the shape of the parameter; those not named have the tangent 0.
        The others are those of `render.outputs.rasterize_outputs`.

    Returns
    -------
    images, tan_images : dict of str to numpy.ndarray
        Both as `rasterize_outputs` returns them.

    Raises
    ------
    ValueError
        As `rasterize_outputs`, or if a path is unknown or a tangent does not fit.
    """
    record = record_outputs(scene, camera, rasterizer, vertices, size, outputs, threads=threads)
    jobs, layers = record.jobs, record.layers
    packed = paths.pack_tangents(scene, record.cameras, jobs[0], record.shapes, tangents)
    tan_images = empty_layers(jobs, layers[0])

    def push(view: int, frame: int, pool: Pool) -> None:
        job, tangent = jobs[view], packed[view]
        draw_samples(
            job,
            tan_images[view, frame],
            lambda room: draw_frame_layers_jvp(job, frame, layers[view], tangent, room, pool),
        )

    for_each_frame(jobs, threads, push)
    many = not isinstance(camera, AnyCamera)
    return record.images, split(tan_images, jobs[0], check_outputs(outputs), many)
