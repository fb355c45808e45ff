"""Files of depth films: what is read of every format, and what is wrong with others."""

import numpy as np
import pytest
from PIL import Image

from studies.problem.observations.depths import read_depth
from studies.runs.errors import StudyError
from studies.scene.declared import Camera, Depth


K = ((20.0, 0.0, 3.5), (0.0, 20.0, 2.5), (0.0, 0.0, 1.0))
CAMERA = Camera(eye=(0, 0, 1), target=(0, 0, 0), K=K)
Z = 0.8 + 0.001 * np.arange(2 * 6 * 8).reshape(2, 6, 8)


def read(path, camera=CAMERA, **more):
    return read_depth(Depth(file=str(path), **more), camera, camera_key="cameras.front")


def write_pictures(folder, z=Z, factor=1e3):
    folder.mkdir(exist_ok=True)
    for k, frame in enumerate(z):
        Image.fromarray(np.rint(factor * frame).astype(np.uint16)).save(folder / f"{k}.png")
    return folder


def test_pictures_hold_millimetres_and_arrays_metres(tmp_path):
    holes = Z.copy()
    holes[0, 2, 3] = 0.0
    data = read(write_pictures(tmp_path / "film", holes), fps=10.0)
    expected = np.where(holes > 0.0, holes, np.nan)
    np.testing.assert_allclose(data.depths, expected, atol=1e-9)
    assert data.times.tolist() == [0.0, 0.1]
    assert data.full_size == (6, 8)
    np.savez(tmp_path / "a.npz", depth=expected, times=[0.2, 0.5])
    data = read(tmp_path / "a.npz")
    np.testing.assert_array_equal(data.depths, expected)
    assert data.times.tolist() == [0.2, 0.5]
    assert read(tmp_path / "a.npz", frames=(1, 2)).times.tolist() == [0.0]
    np.testing.assert_allclose(read(tmp_path / "a.npz", scale=2.0).depths, 2.0 * expected)


def test_pictures_have_the_order_of_their_numbers(tmp_path):
    folder = write_pictures(tmp_path / "film")
    (folder / "0.png").rename(folder / "depth_2.png")
    (folder / "1.png").rename(folder / "depth_10.png")
    for path in (folder, folder / "depth_*.png"):
        np.testing.assert_allclose(read(path, fps=10.0).depths, Z, atol=1e-9)


def test_blocks_have_their_medians_unless_half_are_holes(tmp_path):
    z = np.ones((1, 4, 5))
    z[0, :2, :2] = [[1.0, 1.2], [1.1, 9.0]]
    z[0, 2:, :2] = [[0.0, 0.0], [0.0, 3.0]]
    z[0, :2, 2] = 0.0
    np.savez(tmp_path / "a.npz", depth=z)
    blocks = read(tmp_path / "a.npz", downsample=2, fps=1.0).depths
    np.testing.assert_allclose(blocks, [[[1.2, np.nan], [np.nan, 1.0]]])


def test_a_lens_is_taken_out_with_the_nearest_pixel(tmp_path):
    np.savez(tmp_path / "a.npz", depth=Z)
    camera = Camera(eye=(0, 0, 1), target=(0, 0, 0), K=K, distortion=(0.5, 0.0))
    z = read(tmp_path / "a.npz", camera, fps=1.0).depths
    assert set(z[np.isfinite(z)]) <= set(Z.ravel())
    assert z[0, 2, 3] == Z[0, 2, 3]
    assert (z != Z).any()


@pytest.mark.parametrize(
    ("arrays", "more", "message"),
    [
        ({"depth": Z[0]}, {}, r"must have an array `depth` of numbers, \(n, height, width\), got"),
        ({"z": Z}, {}, "must have an array `depth`"),
        ({"depth": Z[:0]}, {}, "must have an array `depth`"),
        ({"depth": Z, "times": [1.0, 0.5]}, {}, r"`times` in .* finite numbers that increase"),
        ({"depth": Z[:1], "times": [np.nan]}, {}, "finite numbers that increase"),
        ({"depth": Z, "times": ["a", "b"]}, {}, "got the shape .* and the type <U1"),
        ({"depth": Z, "times": [0, 1, 2]}, {}, "one for each of its 2 frames, got the shape"),
        ({"depth": Z, "times": [0, 1]}, {"fps": 5.0}, "`depth.fps` must be left out: .* has times"),
        ({"depth": Z, "times": [0, 1]}, {"times": "t"}, "`depth.times` must be left out: "),
        ({"depth": Z}, {"fps": 1.0, "downsample": 7}, r"`depth.downsample` must be at most 6, "),
        ({"depth": Z}, {}, "must have `fps`, or `times` .* for the 2 frames in .*, got neither"),
        ({"depth": Z}, {"fps": 1.0, "frames": (0, 3)}, "must lie within the 2 frames"),
        ({"depth": 0.0 * Z}, {"fps": 1.0}, "frame 0 of .* is empty: all of its pixels are holes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, more, message, tmp_path):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(StudyError, match=message):
        read(tmp_path / "a.npz", **more)


def test_depths_without_intrinsics_are_refused(tmp_path):
    camera = Camera(eye=(0, 0, 1), target=(0, 0, 0), fov_y=40.0)
    with pytest.raises(StudyError, match=r"`cameras.front.K` is missing: depths of `depth` are"):
        read(write_pictures(tmp_path / "film"), camera, fps=10.0)


def test_pictures_that_are_none_are_refused(tmp_path):
    folder = tmp_path / "film"
    folder.mkdir()
    with pytest.raises(StudyError, match="must have 16-bit PNG files, got no files"):
        read(folder, fps=10.0)
    (folder / "0.exr").write_bytes(b"")
    with pytest.raises(StudyError, match=r"must have 16-bit PNG files, got .exr. Convert others"):
        read(folder, fps=10.0)
    with pytest.raises(StudyError, match=r"must be an .npz file .*0.exr. Convert others, such as"):
        read(folder / "0.exr", fps=10.0)
    Image.fromarray(np.zeros((6, 8), np.uint8)).save(folder / "0.png")
    with pytest.raises(StudyError, match=r"one channel of 16 bits, got the mode L. Eight bits"):
        read(folder, fps=10.0)
    write_pictures(folder)
    Image.fromarray(np.ones((6, 9), np.uint16)).save(folder / "1.png")
    with pytest.raises(StudyError, match=r"must have one size, but 1.png has \(6, 9\) and 0.png"):
        read(folder, fps=10.0)
    (folder / "0.png").write_bytes(b"no picture")
    with pytest.raises(StudyError, match=r"`depth.file`: .*0.png cannot be read"):
        read(folder, fps=10.0)
