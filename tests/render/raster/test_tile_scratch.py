from threading import Thread

import numpy as np
import pytest

from adjoint.render.outputs import record_outputs
from adjoint.render.soft_raster import record_images
from adjoint.render.textures import empty_records
from render.blending import Over
from render.raster.layers import Output
from render.raster.tile_scratch import LARGEST_KEPT, ROOMS, TileSize, empty_fragments, own_room
from render.scene import Scene
from tests.render.scenes import BLENDS, camera, glossy, rounded, soft, textured, two_tetrahedra


SIZE = (40, 70)
SMALL = TileSize(100, 10, 5, np.dtype(np.float64))


@pytest.fixture(autouse=True)
def no_rooms():
    """Nothing left over from the tests before."""
    ROOMS.kept.clear()


def arrays_in(room):
    """Every array of a room."""
    return [room] if isinstance(room, np.ndarray) else [a for slot in room for a in arrays_in(slot)]


def spoil_rooms():
    """Fill all that this thread keeps with what no tile leaves: NaN, and numbers of no face."""
    arrays = [array for _, room in ROOMS.kept.values() for array in arrays_in(room)]
    for array in arrays:
        array[...] = np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max // 2
    return len(arrays)


def drawn_and_undone(record, rng):
    """The images of a record, a tangent of them and a gradient."""
    gradient = record.vjp(rng.normal(size=record.images.shape))
    tangents = {path: np.ones_like(value) for path, value in gradient.items()}
    return [record.images, record.jvp(tangents), *gradient.values()]


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("look", [lambda scene: scene, rounded, glossy, textured])
def test_what_is_left_over_in_a_room_changes_nothing(rng, blend, look):
    scene, vertices = two_tetrahedra(rng)
    args = (look(scene), camera(), soft(blend=blend, sigma=1e-2), vertices, SIZE)
    fresh = drawn_and_undone(record_images(*args, threads=1), np.random.default_rng(2))
    assert spoil_rooms() > 20
    again = drawn_and_undone(record_images(*args, threads=1), np.random.default_rng(2))
    assert all(np.abs(value).max() > 0 for value in fresh[:2])
    for repeated, expected in zip(again, fresh, strict=True):
        np.testing.assert_array_equal(repeated, expected)


def test_what_is_left_over_changes_no_layer(rng):
    scene, vertices = two_tetrahedra(rng)

    def pulled_back():
        record = record_outputs(
            rounded(scene), camera(), soft(blend=Over(), sigma=1e-2), vertices, SIZE,
            outputs=list(Output), threads=1,
        )  # fmt: skip
        adj = {name: np.ones_like(value) for name, value in record.images.items()}
        return [*record.images.values(), *record.vjp(adj).values()]

    fresh = pulled_back()
    assert spoil_rooms() > 40
    for repeated, expected in zip(pulled_back(), fresh, strict=True):
        np.testing.assert_array_equal(repeated, expected)


def test_a_thread_has_one_room_that_grows_and_is_its_own():
    room = own_room(empty_fragments, SMALL)
    assert own_room(empty_fragments, SMALL._replace(fragments=7, pairs=3)) is room
    more_pairs = own_room(empty_fragments, SMALL._replace(fragments=7, pairs=30))
    assert (len(more_pairs.y), len(more_pairs.pair)) == (len(room.y), 31)
    assert own_room(empty_fragments, SMALL) is more_pairs
    single = own_room(empty_fragments, SMALL._replace(dtype=np.dtype(np.float32)))
    assert single.y.dtype == np.float32
    assert own_room(empty_fragments, SMALL) is more_pairs
    others = []
    thread = Thread(target=lambda: others.append(own_room(empty_fragments, SMALL)))
    thread.start()
    thread.join()
    assert others[0] is not more_pairs


def test_a_large_room_is_not_kept_and_does_not_replace_one_that_is():
    room = own_room(empty_fragments, SMALL)
    large = own_room(empty_fragments, SMALL._replace(fragments=LARGEST_KEPT + 1))
    assert len(large.y) > LARGEST_KEPT
    assert own_room(empty_fragments, SMALL) is room


@pytest.mark.parametrize("look", [lambda scene: scene, glossy])
def test_fragments_without_a_texture_leave_no_record_of_texels(rng, look, monkeypatch):
    scene, vertices = two_tetrahedra(rng)
    objects = {"left": look(scene).objects["left"], "right": textured(scene).objects["right"]}
    args = (Scene(objects, scene.lights), camera(), soft(sigma=1e-2), vertices, SIZE)

    def spoilt(xp, n, dtype):
        records = empty_records(xp, n, dtype)
        records.at[:], records.values[:] = 0, 1e3  # what memory that was used before may hold
        return records

    monkeypatch.setattr("adjoint.render.raster.frames.empty_records", spoilt)
    serial, threaded = (record_images(*args, threads=n) for n in (1, 2))
    adj = rng.normal(size=serial.images.shape)
    alone, shared = serial.vjp(adj), threaded.vjp(adj)
    assert np.abs(alone["right.texels"]).max() > 0
    for path, expected in alone.items():
        np.testing.assert_array_equal(shared[path], expected, err_msg=path)
