import numpy as np
import pytest

from adjoint.render.fragments import pair_vjp_body
from adjoint.render.soft_raster import empty_adjoints, empty_slots
from adjoint.render.tile_adjoints import pair_vjp_tile, row_sum
from render.blending import Hard, Over, Softmax
from render.fragments import gather_tile
from render.packing import pack
from render.soft_raster import empty_fragments, setup_frame
from render.tile_shading import SHADED
from tests.render.scenes import camera, soft, two_tetrahedra


@pytest.mark.parametrize("n", [0, 8, 56])
def test_a_row_is_summed_whole_and_alone(n):
    block = np.full(200, np.nan)
    block[40 : 40 + n] = np.arange(n) ** 2
    assert row_sum(np.uint64(40), n, block) == (np.arange(n) ** 2).sum()


@pytest.mark.parametrize("blend", [Over(), Softmax(), Hard()])
@pytest.mark.parametrize("seamless", [False, True])
def test_blocks_of_fragments_add_up_to_what_each_one_adds(rng, blend, seamless):
    # The same terms in another order of sums: some hundred roundings of the largest.
    scene, vertices = two_tetrahedra(rng)
    rasterizer = soft(blend=blend, sigma=1e-2, seamless=seamless)
    job = pack(scene, [camera()], rasterizer, vertices, (64, 64))[0]
    frame = setup_frame(job, 0)
    fragments = empty_fragments(frame, 0, len(frame.tiles.capacity))
    adj = empty_adjoints(len(fragments.y), len(fragments.start), job.x.dtype)
    slots = [empty_slots(job, frame).pairs for _ in range(2)]
    for array in (adj.y, adj.z, adj.w, adj.rgba):
        array[...] = rng.normal(size=array.shape)
    longest = 0
    for tile in range(len(frame.tiles.capacity)):
        gather_tile(tile, frame.grid, job.scene, frame.faces, frame.tiles, job.settings, fragments)
        first = frame.tiles.start[tile]
        for pair in range(first, frame.tiles.start[tile + 1]):
            k, f = pair - first, frame.tiles.faces[pair]
            longest = max(longest, fragments.pair[k + 1] - fragments.pair[k])
            sigmas = [
                body(
                    k, f, frame.grid, job.scene, frame.faces, job.settings, fragments, adj, pair,
                    slots[n],
                )
                for n, body in enumerate((pair_vjp_body, pair_vjp_tile))
            ]  # fmt: skip
            largest = np.abs(slots[0][pair]).max()
            np.testing.assert_allclose(slots[1][pair], slots[0][pair], atol=1e-12 * largest)
            np.testing.assert_allclose(sigmas[1], sigmas[0], rtol=1e-10)
            assert largest > 0 or fragments.pair[k + 1] == fragments.pair[k]
    assert longest > (0 if blend == Hard() else SHADED)  # more than one block
