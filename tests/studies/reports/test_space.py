"""Bodies in space on a page: the places of the run to 16 bits, and no more than a page can hold."""

import base64

import numpy as np
import pytest

from studies.reports import space
from studies.reports.space import coarsened, make_view, motion_view


def unpacked(packed):
    values = np.frombuffer(base64.b64decode(packed["data"]), space.TYPES[packed["type"]])
    return packed["scale"] * values.reshape(-1, packed["count"], 3)


def sphere(n):
    """Return the vertices of a tessellated ball (m, 3), and its faces."""
    u, v = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, n), np.linspace(0.0, np.pi, n))
    x = np.stack([np.cos(u) * np.sin(v), np.cos(v), np.sin(u) * np.sin(v)], axis=-1).reshape(-1, 3)
    i = np.arange(n * n).reshape(n, n)
    a, b, c, d = i[:-1, :-1].ravel(), i[1:, :-1].ravel(), i[1:, 1:].ravel(), i[:-1, 1:].ravel()
    return x, np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])


@pytest.fixture
def arrays():
    """A ball that flies over a plate that stands still."""
    x, faces = sphere(8)
    way = np.linspace(0.0, 2.0, 30)[:, None, None] * [1.0, 0.0, 0.0] + [10.0, 1.0, 0.0]
    plate = np.array([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    return {
        "objects": np.array(["ball", "plate"]), "times": 0.1 * np.arange(30),
        "vertices.ball": 0.05 * x + way, "faces.ball": faces,
        "vertices.plate": np.tile(plate, (30, 1, 1)), "faces.plate": np.array([[0, 1, 2]]),
    }  # fmt: skip


def test_what_moves_is_there_to_a_part_in_thousands_of_its_way(arrays):
    view = motion_view(arrays)
    assert view is not None
    assert (view["frames"], view["bodies"]) == (30, [len(arrays["faces.ball"])])
    x = unpacked(view["points"])
    assert x.shape == arrays["vertices.ball"].shape
    off = x - arrays["vertices.ball"]
    assert np.ptp(off, axis=(0, 1)).max() < 1e-4  # the same shift for all
    assert view["wires"]["count"] == 0


def test_obstacles_keep_their_place_beside_the_bodies(arrays):
    wires = np.array([[[10.0, 0.0, 0.0], [12.0, 0.0, 0.0]]])
    view = motion_view({**arrays, "wires": wires})
    assert view is not None
    shift = unpacked(view["points"])[0, 0] - arrays["vertices.ball"][0, 0]
    moved = np.broadcast_to(shift, wires.shape)
    np.testing.assert_allclose(unpacked(view["wires"]) - wires, moved, atol=1e-4)


def test_frames_are_left_out_and_vertices_merged_of_what_is_large(arrays, monkeypatch):
    monkeypatch.setattr(space, "MOST_BYTES", 10 * 6 * 64)
    view = motion_view(arrays)
    assert view is not None
    assert view["frames"] == 10
    assert (view["times"][0], view["times"][-1]) == (0.0, 2.9)
    x, faces = sphere(60)
    used, coarse = coarsened(x, faces, 1000)
    assert 300 < len(coarse) <= 1000
    assert coarse.max() < len(used)
    corners = x[used][coarse]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.linalg.norm(normals, axis=1).min() > 0.0
    assert np.abs(np.linalg.norm(corners.mean(axis=1), axis=1) - 1.0).max() < 0.1
    same, kept = coarsened(x, faces, len(faces))
    assert len(same) == len(x)
    assert kept is faces


def test_bodies_that_all_stand_still_are_shown_and_no_body_is_no_view(arrays):
    still = {**arrays, "vertices.ball": np.tile(arrays["vertices.ball"][:1], (30, 1, 1))}
    view = motion_view(still)
    assert view is not None
    assert len(view["bodies"]) == 2
    assert motion_view({**arrays, "objects": np.array([], str)}) is None


def test_arrows_of_very_different_sizes_keep_their_digits():
    arrows = np.array([[[1.0, 0.0, 0.0]], [[3e-12, 0.0, 0.0]]])
    view = make_view(at=np.zeros((2, 1, 3)), arrows=arrows)
    np.testing.assert_allclose(unpacked(view["arrows"]), arrows, rtol=1e-6)
