import numpy as np
import pytest

from render.faces.face_setup import load_corners
from render.raster.barycentrics import fragment_place
from render.raster.frames import setup_frame
from render.raster.packing import pack
from render.raster.pixel_shading import face_light, pixel_color
from render.raster.tile_calls import gather_kernel
from render.raster.tile_rows import SHADED, log_vector, power_vector
from render.raster.tile_scratch import empty_fragments, tile_size
from render.scene import Scene, SphericalHarmonics
from tests.render.scenes import camera, glossy, rounded, soft, textured, two_tetrahedra


def in_a_sky(scene):
    """Rounded objects under spherical harmonics."""
    coefficients = np.linspace(-0.2, 0.5, 27).reshape(9, 3)
    return Scene(rounded(scene).objects, {"sky": SphericalHarmonics(coefficients)})


@pytest.mark.parametrize("look", [rounded, glossy, textured, in_a_sky])
def test_every_fragment_of_a_block_has_the_colour_of_its_pixel(rng, look):
    # Blocks leave out what cancels in the weights: some roundings of numbers around 1.
    scene, vertices = two_tetrahedra(rng)
    job = pack(look(scene), [camera()], soft(sigma=1e-2), vertices, (64, 64))[0]
    frame = setup_frame(job, 0)
    gather = gather_kernel(job, *frame[:3])
    fragments = empty_fragments(tile_size(frame.tiles, frame.grid))
    n_checked, longest = 0, 0
    for tile in range(len(frame.tiles.capacity)):
        gather(tile, frame.grid, job.scene, frame.faces, frame.tiles, job.settings, fragments)
        pairs = range(frame.tiles.start[tile], frame.tiles.start[tile + 1])
        for k, f in enumerate(frame.tiles.faces[pairs.start : pairs.stop]):
            first, last = fragments.pair[k], fragments.pair[k + 1]
            light = face_light(f, frame.faces, job.scene)
            corners = load_corners(f, frame.faces.corners)
            longest = max(longest, last - first)
            for q in range(first, last, 7):
                _, w = fragment_place((fragments.p_x[q], fragments.p_y[q]), *corners)
                expected = pixel_color(f, w, light, frame.faces, job.scene)
                np.testing.assert_allclose(fragments.rgb[q], expected, rtol=1e-13, atol=1e-15)
                n_checked += 1
    assert n_checked > 100
    assert longest > SHADED  # more than one block


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_power_that_vectorises_is_the_power(dtype):
    eps = np.finfo(dtype).eps
    c = np.concatenate([np.logspace(-29, 0, 400), 1 - np.logspace(-7, 0, 60)[:-1]]).astype(dtype)
    logs = np.array([log_vector(number) for number in c])
    np.testing.assert_allclose(logs, np.log(c.astype(float)), rtol=2 * eps, atol=1e-17)
    for p in (0.7, 1.0, 32.0):
        powers = np.array([power_vector(number, dtype(p)) for number in c])
        exact = c.astype(float) ** p
        assert np.abs(powers - exact).max() <= 4 * eps
        np.testing.assert_allclose(powers, exact, rtol=80 * p * eps, atol=np.finfo(dtype).tiny)
    assert power_vector(dtype(-0.5), dtype(2.0)) == power_vector(dtype(0.0), dtype(2.0)) == 0.0
