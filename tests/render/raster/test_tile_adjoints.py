import numpy as np
import pytest

from adjoint.render.faces.face_setup import COLORS
from adjoint.render.raster import tile_calls
from adjoint.render.raster.fragments import pair_vjp_body, pixels_vjp_body
from adjoint.render.raster.frames import compile_shading, empty_slots
from adjoint.render.raster.pixel_shading import ShadeParts
from adjoint.render.raster.tile_adjoints import empty_scratch, pair_vjp_tile
from adjoint.render.raster.tile_rows import SCRATCH_VJP, SUMS, add_sums
from adjoint.render.raster.tile_shading import pixels_vjp_tile, power_slopes_vector
from adjoint.render.shaders.shading import power_slopes
from adjoint.render.textures import empty_records
from render.blending import Hard, Over, Softmax
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.raster.tile_calls import gather_kernel
from render.raster.tile_rows import SHADED
from render.raster.tile_scratch import tile_size
from render.textures import is_textured
from tests.render.raster.test_tile_shading import in_a_sky
from tests.render.scenes import camera, glossy, rounded, soft, textured, two_tetrahedra


def test_the_sums_that_were_found_are_added_to_a_slot(rng):
    slots, block = rng.normal(size=(2, 36)), rng.normal(size=SCRATCH_VJP)
    expected, sums = slots.copy(), block[int(SUMS) :][:9]
    add_sums(9, 1, 18, slots, block)
    expected[1, 18:27] += sums
    np.testing.assert_array_equal(slots, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_slopes_of_the_power_that_vectorise_are_its_slopes(dtype):
    eps = np.finfo(dtype).eps
    for p in (0.7, 1.0, 32.0):
        for c in np.concatenate([np.logspace(-6, 0, 50), 1 - np.logspace(-6, -1, 20)]):
            slopes = power_slopes_vector(dtype(c), dtype(p))
            expected = power_slopes(float(dtype(c)), p)
            np.testing.assert_allclose(slopes, expected, rtol=500 * p * eps, atol=4 * eps)
    assert power_slopes_vector(dtype(-0.5), dtype(2.0)) == (0.0, 0.0, 0.0)


def given_fragments(rng, look, rasterizer):
    """A job, its frame, and for each tile the fragments with adjoints drawn at random."""
    scene, vertices = two_tetrahedra(rng)
    job = pack(look(scene), [camera()], rasterizer, vertices, (64, 64))[0]
    frame = setup_frame(job, 0)
    gather = gather_kernel(job, *frame[:3])
    fragments, adj = empty_scratch(tile_size(frame.tiles, frame.grid))

    def each_tile():
        for tile in range(len(frame.tiles.capacity)):
            fragments.shade[:] = np.nan  # nothing rests on what was left there
            gather(tile, frame.grid, job.scene, frame.faces, frame.tiles, job.settings, fragments)
            n = fragments.pair[frame.tiles.start[tile + 1] - frame.tiles.start[tile]]
            for array in (adj.y, adj.z, adj.w):
                array[:n], array[n:] = rng.normal(size=n), np.nan
            adj.z[:n] *= job.settings.is_deep  # else nothing flows through depths
            adj.rgba[:] = rng.normal(size=adj.rgba.shape)
            for array in (fragments.p_x, fragments.p_y, fragments.y):
                array[n:] = np.nan
            yield tile

    return job, frame, fragments, adj, each_tile()


def is_near(sums, expected):
    """Whether the same terms were added, in whatever order: some hundred roundings."""
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(sums, expected, rtol=0.0, atol=1e-12 * scale)


@pytest.mark.parametrize("blend", [Over(), Softmax(), Hard()])
@pytest.mark.parametrize("seamless", [False, True])
def test_blocks_of_fragments_add_up_to_what_each_one_adds(rng, blend, seamless):
    rasterizer = soft(blend=blend, sigma=1e-2, seamless=seamless)
    job, frame, fragments, adj, tiles = given_fragments(rng, lambda scene: scene, rasterizer)
    slots = [empty_slots(job, frame).pairs for _ in range(2)]
    longest = 0
    for tile in tiles:
        first = frame.tiles.start[tile]
        for pair in range(first, frame.tiles.start[tile + 1]):
            k, f = pair - first, frame.tiles.faces[pair]
            longest = max(longest, fragments.pair[k + 1] - fragments.pair[k])
            args = (k, f, job.scene, frame.faces, job.settings, fragments, adj, pair)
            expected = pair_vjp_body(*args, slots[0])
            assert abs(pair_vjp_tile(*args, slots[1]) - expected) <= 1e-10 * abs(expected)
            is_near(slots[1][pair], slots[0][pair])
    assert longest > (0 if blend == Hard() else SHADED)  # more than one block


@pytest.mark.parametrize("look", [rounded, glossy, textured, in_a_sky])
def test_blocks_of_pixels_add_up_to_what_each_one_adds(rng, look):
    rasterizer = soft(blend=Softmax(), sigma=1e-2)
    job, frame, fragments, adj, tiles = given_fragments(rng, look, rasterizer)
    slots = [empty_slots(job, frame) for _ in range(2)]
    records = [empty_records(np, len(fragments.y), job.x.dtype) for _ in range(2)]
    for record in records:
        record.at[:], record.values[:] = -1, 0.0
    of_pairs, bodies = (pair_vjp_body, pair_vjp_tile), (pixels_vjp_body, pixels_vjp_tile)
    n_checked = 0
    for tile in tiles:
        first = frame.tiles.start[tile]
        for pair in range(first, frame.tiles.start[tile + 1]):
            k, f = pair - first, frame.tiles.faces[pair]
            if not job.scene.by_pixel[f]:
                continue
            for n, body in enumerate(bodies):
                slots[n].pairs[pair] = 0.0
                args = (k, f, job.scene, frame.faces, job.settings, fragments, adj, pair)
                of_pairs[n](*args, slots[n].pairs)  # with depths in blocks, without in the other
                tile_parts = ShadeParts(*(per_tile[tile] for per_tile in slots[n].parts))
                row = job.scene.owner[f]
                body(
                    k, f, job.scene, frame.faces, fragments, adj, pair, slots[n].pairs, tile_parts,
                    row, records[n], 0,
                )  # fmt: skip
            q = slice(fragments.pair[k], fragments.pair[k + 1])
            expected = slots[0].pairs[pair]
            if not (job.scene.smooth[f] or is_textured(f, job.scene)):
                # One colour: it is the sum over the corners that counts.
                corners = expected[COLORS : COLORS + 9].reshape(3, 3)
                corners[:] = [corners.sum(axis=0), np.zeros(3), np.zeros(3)]
            is_near(slots[1].pairs[pair], expected)
            np.testing.assert_array_equal(records[1].at[:, q], records[0].at[:, q])
            is_near(records[1].values[:, q], records[0].values[:, q])
            n_checked += q.stop - q.start
    assert n_checked > 1000
    for sums, expected in zip(slots[1].parts, slots[0].parts, strict=True):
        is_near(sums, expected)
    assert np.abs(slots[0].parts.harmonics if look is in_a_sky else slots[0].parts.lights).max() > 0


def test_shading_is_compiled_for_the_types_that_a_frame_has(rng, monkeypatch):
    monkeypatch.setattr(tile_calls, "cpu_kernel", lambda loop, signatures: None)
    scene, vertices = two_tetrahedra(rng)
    (job,), signatures = pack(glossy(scene), [camera()], soft(), vertices, (64, 64)), []
    for make in (compile_shading, lambda job: empty_slots(job, setup_frame(job, 0))):
        monkeypatch.setattr(tile_calls, "_kernels", {})
        monkeypatch.setattr(tile_calls, "_signatures", {})
        make(job)
        assert list(tile_calls._kernels) == [job.x.dtype]
        signatures.append(tile_calls._signatures)
    assert signatures[0] == signatures[1]
