"""Depth films as they are compared: in metres, in blocks of pixels, with times."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.ndimage import map_coordinates

from render.picture_files import open_picture
from studies.problem.observations.frames import chosen_frames, declared_times
from studies.problem.observations.undistort import source_pixels
from studies.runs.errors import StudyError
from studies.runs.files import files_of
from studies.scene.arrays import checked_times, load_arrays
from studies.scene.declared import Camera, Depth


MILLIMETRES = 1e-3  # of PNG


@dataclass(frozen=True, eq=False)
class DepthData:
    """Depths along the view of a camera."""

    times: np.ndarray  # increasing, (n_frames,) [s]
    depths: np.ndarray  # (n_frames, height, width) [m], NaN where nothing was measured
    full_size: tuple[int, int]  # height and width of the file [pixels]


def read_depth(depth: Depth, camera: Camera, key: str = "depth", *, camera_key: str) -> DepthData:
    """Read a depth film, without the camera's distortion; messages call the table by `key`.

    Raise a StudyError if files cannot be read, have empty frames, or do not fit the table.
    """
    assert depth.file is not None
    if camera.K is None:
        raise StudyError(
            f"`{camera_key}.K` is missing: depths of `{key}` are along the view of a sensor whose "
            "intrinsics are known. Give K, R and t as OpenCV has them."
        )
    path = Path(depth.file)
    files = files_of(path)
    if files is None:
        times, raw = _read_arrays(path, key)
    else:
        times, raw = None, _read_pictures(files, path, key)
    times = declared_times(depth, times, len(raw), key)
    times, chosen = chosen_frames(depth, times, key)
    scale = depth.scale or (1.0 if files is None else MILLIMETRES)
    size = raw[0].shape
    if depth.downsample > min(size):
        raise StudyError(
            f"`{key}.downsample` must be at most {min(size)}, the shorter side of the pictures in "
            f"{path} [pixels], got {depth.downsample}."
        )
    source = source_pixels(camera, size, camera_key)
    frames = []
    for k in chosen:
        z = scale * raw[k].astype(np.float64)
        z[~(np.isfinite(z) & (z > 0.0))] = np.nan
        if source is not None:  # the nearest pixel: between an edge and what is behind is nothing
            z = map_coordinates(z, source, order=0, cval=np.nan)
        if not np.isfinite(z).any():
            raise StudyError(
                f"`{key}.file`: frame {k} of {path} is empty: all of its pixels are holes. Leave "
                "it out by `frames`."
            )
        frames.append(_in_blocks(z, depth.downsample))
    return DepthData(times, np.stack(frames), size)


def _in_blocks(z: np.ndarray, factor: int) -> np.ndarray:
    """Return the medians of blocks; NaN where half of a block are holes."""
    height, width = (side // factor * factor for side in z.shape)
    blocks = z[:height, :width].reshape(height // factor, factor, width // factor, factor)
    flat = np.sort(np.moveaxis(blocks, 2, 1).reshape(*blocks.shape[::2], -1), axis=-1)
    return flat[..., flat.shape[-1] // 2]  # NaN are sorted to the end


def _read_pictures(files: list[Path], path: Path, key: str) -> list[np.ndarray]:
    pictures = [file for file in files if file.suffix.lower() == ".png"]
    if not pictures:
        others = ", ".join(sorted({file.suffix.lower() for file in files})) or "no files"
        raise StudyError(
            f"`{key}.file`: {path} must have 16-bit PNG files, got {others}. Convert others, such "
            "as EXR, to such files, or to an .npz file with an array `depth` (n, height, width)."
        )
    frames = []
    for file in pictures:
        try:
            picture: Image.Image = open_picture(file)
            pixels = np.asarray(picture)
        except (OSError, ValueError, SyntaxError) as error:
            raise StudyError(f"`{key}.file`: {file} cannot be read: {error}.") from error
        if pixels.ndim != 2 or not picture.mode.startswith("I"):
            raise StudyError(
                f"`{key}.file`: {file} must be a PNG picture with one channel of 16 bits, got the "
                f"mode {picture.mode}. Eight bits and colours do not hold depths: save the "
                "sensor's numbers."
            )
        if frames and pixels.shape != frames[0].shape:
            raise StudyError(
                f"`{key}.file`: all pictures in {path} must have one size, but {file.name} has "
                f"{pixels.shape} and {pictures[0].name} {frames[0].shape}."
            )
        frames.append(pixels)
    return frames


def _read_arrays(path: Path, key: str) -> tuple[np.ndarray | None, np.ndarray]:
    if path.suffix.lower() != ".npz":
        raise StudyError(
            f"`{key}.file` must be an .npz file with an array `depth` (n, height, width) or a "
            f"folder of 16-bit PNG files, got {path}. Convert others, such as EXR, to one of them."
        )
    arrays = load_arrays(path, f"{key}.file")
    z = arrays.get("depth", np.zeros(0))
    if z.ndim != 3 or not z.size or z.dtype.kind not in "iuf":
        raise StudyError(
            f"`{key}.file`: {path} must have an array `depth` of numbers, (n, height, width), got "
            f"the shape {z.shape}."
        )
    has_times = "times" in arrays
    return checked_times(arrays["times"], len(z), f"{key}.file", path) if has_times else None, z
