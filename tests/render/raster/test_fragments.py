import numpy as np
import pytest

from adjoint.render.raster import tile_calls as adjoint_calls
from adjoint.render.soft_raster import record_images
from adjsim.jit.calls import function_table
from render.blending import DIBR, Hard, Over, Softmax
from render.raster import tile_calls
from render.raster.fragments import tile_area
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.raster.tile_calls import gather_kernel
from render.raster.tile_rows import LANES
from render.raster.tile_scratch import empty_fragments, tile_size
from render.scene import Mesh, Scene
from render.soft_raster import rasterize
from tests.render.scenes import camera, soft, two_tetrahedra


def test_there_is_room_for_every_fragment_of_a_tile(rng):
    scene, vertices = two_tetrahedra(rng)
    frame = setup_frame(pack(scene, [camera()], soft(), vertices, (70, 40))[0], 0)
    assert len(frame.tiles.capacity) == 3 * 2
    fragments = empty_fragments(tile_size(frame.tiles, frame.grid))
    assert len(fragments.y) == frame.tiles.capacity.max() + LANES
    assert len(fragments.pair) == np.diff(frame.tiles.start).max() + 1


def test_tiles_cover_the_image_once(rng):
    scene, vertices = two_tetrahedra(rng)
    frame = setup_frame(pack(scene, [camera()], soft(), vertices, (70, 40))[0], 0)
    count = np.zeros((70, 40), int)
    for tile in range(6):
        top, bottom, left, right = tile_area(tile, frame.grid)
        count[top:bottom, left:right] += 1
    assert (count == 1).all()


@pytest.mark.parametrize("size", [(70, 40), (5, 99), (99, 5), (33, 31)])
def test_every_face_is_found_at_every_pixel_it_reaches_and_nowhere_else(rng, size):
    scene, vertices = two_tetrahedra(rng)
    job = pack(scene, [camera()], soft(blend=Over(), sigma=1e-2), vertices, size)[0]
    frame = setup_frame(job, 0)
    gather = gather_kernel(job, *frame[:3])
    times_listed = np.zeros((len(job.scene.faces), *size), int)
    largest = tile_size(frame.tiles, frame.grid)
    for tile, capacity in enumerate(frame.tiles.capacity):
        fragments = empty_fragments(largest._replace(fragments=int(capacity)))
        gather(tile, frame.grid, job.scene, frame.faces, frame.tiles, job.settings, fragments)
        top, bottom, left, right = tile_area(tile, frame.grid)
        for k in range((bottom - top) << frame.grid.shift):
            here = fragments.order[fragments.start[k] : fragments.start[k + 1]]
            i, j = top + (k >> frame.grid.shift), left + k % (1 << frame.grid.shift)
            for q in here:
                assert fragments.pixel[q] == k
                assert (fragments.p_x[q], fragments.p_y[q]) == (
                    job.grid.pixel_x[j],
                    job.grid.pixel_y[i],
                )
                times_listed[fragments.face[q], i, j] += 1
            assert len(here) == 0 or j < right
            z, face = fragments.z[here], fragments.face[here]
            np.testing.assert_array_equal(np.lexsort((face, z)), np.arange(len(here)))
    expected = np.array([reached(frame.faces, f, job) for f in range(len(times_listed))])
    assert 0 < expected.mean() < 1
    np.testing.assert_array_equal(times_listed, expected)


@pytest.mark.parametrize("blend", [Over(), Softmax(), DIBR(1e-4), Hard()])
def test_slivers_across_many_tiles_are_found_at_every_pixel_they_reach(rng, blend):
    n = 24
    ends = rng.uniform(-1.5, 1.5, (n, 2, 3)) * [1.0, 1.0, 0.3]
    third = ends.mean(axis=1) + rng.normal(scale=0.02, size=(n, 3))
    corners = np.concatenate([ends, third[:, None]], axis=1)
    scene = Scene({"slivers": Mesh(np.arange(3 * n).reshape(n, 3))})
    vertices = {"slivers": corners.reshape(-1, 3)}
    job = pack(scene, [camera()], soft(blend=blend, sigma=1e-4), vertices, (150, 170))[0]
    frame = setup_frame(job, 0)
    gather = gather_kernel(job, *frame[:3])
    times_listed = np.zeros((n, 150, 170), int)
    fragments = empty_fragments(tile_size(frame.tiles, frame.grid))
    for tile in range(len(frame.tiles.capacity)):
        gather(tile, frame.grid, job.scene, frame.faces, frame.tiles, job.settings, fragments)
        top, _, left, _ = tile_area(tile, frame.grid)
        count = fragments.pair[frame.tiles.start[tile + 1] - frame.tiles.start[tile]]
        k = fragments.pixel[:count]
        i, j = top + (k >> frame.grid.shift), left + k % (1 << frame.grid.shift)
        np.add.at(times_listed, (fragments.face[:count], i, j), 1)
    expected = np.array([reached(frame.faces, f, job) for f in range(n)])
    assert 0 < expected.mean() < 0.1
    # A pixel on an edge, or whose coverage is D_min, up to rounding, may fall on either side.
    assert np.count_nonzero(times_listed != expected) <= 2
    assert times_listed.max() == 1


def reached(faces, f, job):
    """Mask (height, width) of the pixels where the coverage of face f is at least D_min."""
    a = faces.corners[f, :6].reshape(3, 2)
    p = np.stack(np.meshgrid(job.grid.pixel_x, job.grid.pixel_y), axis=-1)
    squared, turns = [], []
    for k in range(3):
        start, edge = a[k], a[(k + 1) % 3] - a[k]
        t = np.clip((p - start) @ edge / (edge @ edge), 0.0, 1.0)
        squared.append(((p - start - t[..., None] * edge) ** 2).sum(axis=-1))
        turns.append(edge[0] * (p - start)[..., 1] - edge[1] * (p - start)[..., 0])
    inside = (np.min(turns, axis=0) >= 0) | (np.max(turns, axis=0) <= 0)
    is_drawn = faces.box[f, 0] < faces.box[f, 1]
    d = np.min(squared, axis=0) * np.where(inside, 1.0, -1.0)
    return is_drawn & (d / job.settings.sigma >= job.settings.lowest)


def test_a_compilation_that_was_cut_short_leaves_nothing_behind(rng, monkeypatch):
    scene, vertices = two_tetrahedra(rng)
    rasterize(scene, camera(), soft(), vertices, (9, 9))
    dtype = np.dtype(np.float64)
    monkeypatch.setattr(tile_calls, "_kernels", {})
    with monkeypatch.context() as cut:
        cut.setattr(tile_calls, "cpu_kernel", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rasterize(scene, camera(), soft(), vertices, (9, 9))
    assert not tile_calls._kernels
    rasterize(scene, camera(), soft(), vertices, (9, 9))
    assert list(tile_calls._kernels) == [dtype]
    assert len([signature for signature in tile_calls._signatures if signature == dtype]) == 1


def test_either_precision_tells_the_types_of_both(rng, monkeypatch):
    """So loops over tiles have one key, whichever is drawn first."""
    (scene, vertices), signatures = two_tetrahedra(rng), []
    for dtype in (np.float64, np.float32):
        for module in (tile_calls, adjoint_calls):
            monkeypatch.setattr(module, "_kernels", {})
        adjoint_calls._signatures.clear()
        points = {name: x.astype(dtype) for name, x in vertices.items()}
        record = record_images(scene, camera(), soft(), points, (9, 9))
        record.vjp(np.ones_like(record.images))
        signatures.append(dict(tile_calls._signatures) | {"vjp": dict(adjoint_calls._signatures)})
    assert signatures[0] == signatures[1]
    assert len(signatures[0]) == 3
    assert signatures[0]["vjp"].keys() == {np.dtype(np.float64), np.dtype(np.float32)}


def test_all_loops_over_tiles_of_one_type_call_one_function(rng):
    scene, vertices = two_tetrahedra(rng)
    kernels = []
    for dtype, blend, size in (
        (np.float64, Over(), (33, 31)),
        (np.float64, Hard(), (70, 40)),
        (np.float32, Over(), (33, 31)),
    ):
        points = {name: x.astype(dtype) for name, x in vertices.items()}
        job = pack(scene, [camera()], soft(blend=blend), points, size)[0]
        frame = setup_frame(job, 0)
        kernels.append(gather_kernel(job, *frame[:3]))
        np.testing.assert_array_equal(frame.calls, function_table([kernels[-1]]))
    assert kernels[0] is kernels[1]
    assert kernels[0] is not kernels[2]
