"""Video and image files: in as floats in [0, 1], out as 8 bit.

The 8-bit rule is round(255 clip(c, 0, 1)) both ways, without gamma. Video files have no
alpha: they are compared in RGB. Written videos are h264 in yuv420p, which every player
shows; it keeps colour at half the resolution, so it is close to the images but not equal.
"""

import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from adjsim import checks
from render.picture_files import open_picture
from studies.runs.files import files_of, replacing


MOST_PIXELS = 64_000_000  # of a picture: a film in 8K has half of them
MOST_GIF = 250_000_000  # pixels of a gif, whose frames pack to next to nothing
LONGEST = 16_384  # side of a picture: no encoder takes more
STRIPE = 3  # pixels: width of the stripes of what is not compared
SHARP = 4096  # side of small images that are shown with every pixel repeated
KINDS = "Give an mp4, or what else FFmpeg reads, a gif, or a folder of PNG frames."


@dataclass(frozen=True, eq=False)
class Video:
    """Frames and their rate."""

    frames: np.ndarray  # images, (n_frames, height, width, 3 or 4) float64 in [0, 1], RGB or RGBA
    fps: float | None  # frames per second; None where the files do not say (a folder of PNG frames)


@dataclass(frozen=True, eq=False)
class Clip:
    """A film whose frames are still to be read, one by one."""

    frames: Iterator[np.ndarray]  # (H, W, 3 or 4) uint8 or uint16
    fps: float | None = None  # frames per second, on average, where the file says them
    tick: Fraction = Fraction(1)  # unit of `stamps` [s]
    # When each frame read so far is shown, None where the file does not say; empty of pictures.
    stamps: list[int | None] = field(default_factory=list)


def read_video(path: str | os.PathLike) -> Video:
    """Read an mp4 (or any container FFmpeg reads), a gif, or a folder of PNG frames.

    Files of a folder are taken in natural order (2 before 10). Frames have 4 channels where the
    files have alpha, 3 otherwise.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"`video`: there is no file or folder {path}.")
    clip = open_video(path)
    images = [as_float(frame) for frame in clip.frames]
    if not images:
        raise ValueError(f"`video`: {path} has no frames.")
    for i, image in enumerate(images):
        if image.shape != images[0].shape:
            raise ValueError(
                f"`video`: all frames must have one size, but frame {i} of {path} is "
                f"{_size(image)} and frame 0 is {_size(images[0])}."
            )
    return Video(np.stack(images), clip.fps)


def read_image(path: str | os.PathLike, *, name: str = "image") -> np.ndarray:
    """Read one picture, (H, W, 3 or 4) float64 in [0, 1]; `name` is what messages call it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`{name}`: there is no file {path}.")
    return as_float(_read_picture(path, name))


def area_mean(images: np.ndarray, factor: int) -> np.ndarray:
    """Return images (..., H, W, C) with blocks of `factor` x `factor` pixels averaged.

    `factor` divides H and W.
    """
    if factor == 1:
        return images
    *lead, height, width, channels = images.shape
    blocks = (*lead, height // factor, factor, width // factor, factor, channels)
    return images.reshape(blocks).mean(axis=(-4, -2))


def magnified(images: np.ndarray, *, height: int) -> np.ndarray:
    """Return small images (n, H, W, C) about so high, with repeated pixels: nothing blurs them."""
    _, rows, columns, _ = images.shape
    factor = min(height // rows, SHARP // max(rows, columns))
    return images.repeat(factor, axis=1).repeat(factor, axis=2) if factor > 1 else images


def resized(image: np.ndarray, size: tuple[int, int], *, by: str = "BICUBIC") -> np.ndarray:
    """Return an image (H, W, C) of another size, (H, W), smooth between pixels."""
    from PIL import Image

    channels = [
        Image.fromarray(np.ascontiguousarray(channel, np.float32)).resize(
            (size[1], size[0]), Image.Resampling[by]
        )
        for channel in np.moveaxis(image, -1, 0)
    ]
    return np.stack([np.asarray(channel) for channel in channels], axis=-1)


def hatched(images: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return images (..., H, W, 3) from 0 to 1 with grey stripes where a mask of any size is true.

    None stands for a mask that is nowhere true.
    """
    if mask is None:
        return images
    height, width = images.shape[-3:-1]
    rows, columns = (
        np.arange(n) * m // n for n, m in zip((height, width), mask.shape, strict=True)
    )
    stripes = np.add.outer(np.arange(height), np.arange(width)) // STRIPE % 2
    where = mask[np.ix_(rows, columns)][..., None]
    return np.where(where, 0.45 + 0.25 * stripes[..., None], images)


def as_float(image: np.ndarray) -> np.ndarray:
    """Return an image of 8 or 16 bit integers as float64 in [0, 1]."""
    return image.astype(np.float64) / np.iinfo(image.dtype).max


def as_uint8(images: np.ndarray) -> np.ndarray:
    """Return round(255 clip(images, 0, 1)) as uint8; any shape, finite."""
    finite = checks.array("images", images, [f"n{d}" for d in range(np.ndim(images))])
    scaled = np.clip(finite, 0.0, 1.0, out=np.empty_like(finite))
    scaled *= 255.0
    return np.rint(scaled, out=scaled).astype(np.uint8)


def write_png(path: str | os.PathLike, image: np.ndarray) -> Path:
    """Write one image (H, W, 3 or 4) as an 8-bit PNG file; alpha is kept."""
    pixels = as_uint8(image)
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        raise ValueError(f"`image` must have shape (height, width, 3 or 4), got {pixels.shape}.")
    return _write_picture(_with_suffix(path, ".png"), pixels)


def write_jpeg(path: str | os.PathLike, image: np.ndarray) -> Path:
    """Write one image (H, W, 3) of uint8 as a JPEG file: a poster of a film."""
    return _write_picture(_with_suffix(path, ".jpg"), image)


def png_bytes(pixels: np.ndarray) -> bytes:
    """Return an image (H, W, 3 or 4) of uint8 as a PNG file for a page."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def _write_picture(path: Path, pixels: np.ndarray) -> Path:
    from PIL import Image

    is_png = path.suffix.lower() == ".png"
    with replacing(path) as temporary:
        Image.fromarray(pixels).save(temporary, format="png" if is_png else "jpeg", quality=85)
    return path


def write_video(
    path: str | os.PathLike, images: np.ndarray, fps: float, *, crf: int = 8, pad: bool = False
) -> Path:
    """Write images as an mp4 file: h264, yuv420p.

    Images are (n_frames, height, width, 3 or 4), uint8 or numbers from 0 to 1; RGB is already over
    the background, so alpha is dropped. `crf` is the quality: 0 is the best, 8 differs from the
    images by about a grey level where their colour is smooth, 23 is the usual one for films. `pad`
    repeats the last row or column where the height or width is odd, which yuv420p cannot hold. The
    encoder does not promise the same bytes from run to run.
    """
    path = _with_suffix(path, ".mp4")
    is_ready = np.asarray(images).dtype == np.uint8
    pixels = np.asarray(images) if is_ready else as_uint8(images)
    if pixels.ndim != 4 or pixels.shape[3] not in (3, 4) or pixels.size == 0:
        raise ValueError(
            f"`images` must have shape (n_frames, height, width, 3 or 4), got {pixels.shape}."
        )
    if max(pixels.shape[1:3]) > LONGEST:
        raise ValueError(
            f"`images` must be at most {LONGEST} pixels along a side to become a video, got "
            f"{_size(pixels[0, ..., :3])}. Scale them down."
        )
    if not (np.isfinite(fps) and fps > 0.0):
        raise ValueError(f"`fps` must be positive, got {fps}.")
    if not 0 <= crf <= 51:
        raise ValueError(f"`crf` must be in 0 to 51, got {crf}.")
    odd = [(0, size % 2) for size in pixels.shape[1:3]]
    if odd != [(0, 0), (0, 0)] and not pad:
        raise ValueError(
            f"`images` must have an even height and width to become h264 in yuv420p, got "
            f"{_size(pixels[0, ..., :3])}. Render an even size, or pass `pad=True`."
        )
    frames = np.pad(pixels[..., :3], ((0, 0), *odd, (0, 0)), mode="edge")
    with replacing(path) as temporary:
        _encode(temporary, frames, Fraction(fps).limit_denominator(10_000), crf)
    return path


def _encode(path: Path, pixels: np.ndarray, rate: Fraction, crf: int) -> None:
    import av

    with av.open(str(path), mode="w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=rate)
        stream.height, stream.width = pixels.shape[1:3]
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": str(crf), "preset": "slow"}
        for frame in pixels:
            image = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            container.mux(stream.encode(image))
        container.mux(stream.encode())


def open_video(path: Path) -> Clip:
    """Return a film, a gif or a folder of PNG frames, whose frames are still to be read."""
    if path.is_dir():
        files = [file for file in files_of(path) or () if file.suffix.lower() == ".png"]
        if not files:
            raise FileNotFoundError(f"`video`: there is no PNG file in the folder {path}.")
        return Clip(_read_picture(file) for file in files)
    if not path.is_file():  # reading from a pipe would wait for ever
        raise FileNotFoundError(f"`video`: {path} is neither a file nor a folder.")
    if path.suffix.lower() == ".gif":
        return _read_gif(path)
    return _read_container(path)


def _require_size(path: Path, name: str, size: tuple[int, int]) -> None:
    """Raise if a picture is too large to be decoded; `size` is width and height by its header."""
    if size[0] * size[1] > MOST_PIXELS or max(size) > LONGEST:
        raise ValueError(
            f"`{name}`: {path} has {size[1]} x {size[0]} pixels (height x width); at most "
            f"{MOST_PIXELS / 1e6:.0f} million are read, {LONGEST} along a side. Scale it down."
        )


@contextmanager
def _picture(path: Path, name: str, kind: str) -> Iterator[Any]:
    """Give a picture whose header is read, and raise what is wrong with it as one message."""
    from PIL import Image

    wrong = (OSError, SyntaxError, Image.DecompressionBombError, ValueError, struct.error)
    try:
        image = open_picture(path)
    except wrong as error:
        raise ValueError(f"`{name}`: {path} cannot be read as {kind}: {error}.") from error
    with image:
        _require_size(path, name, image.size)
        try:
            yield image
        except wrong as error:
            raise ValueError(f"`{name}`: {path} cannot be read as {kind}: {error}.") from error


def _read_picture(path: Path, name: str = "video") -> np.ndarray:
    """Return one image as RGB or RGBA, uint8 or uint16."""
    from PIL import ImageOps

    with _picture(path, name, "an image") as file:
        image = ImageOps.exif_transpose(file)  # upright, as the camera was held
        if image.mode.startswith("I;16"):
            return np.repeat(np.asarray(image)[..., None].astype(np.uint16), 3, axis=2)
        has_alpha = "A" in image.getbands() or "transparency" in image.info
        return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))


def _read_gif(path: Path) -> Clip:
    """Return the frames drawn over each other; the rate is that of the first one."""
    with _picture(path, "video", "a gif") as image:
        (width, height), n_frames = image.size, image.n_frames  # counted without unpacking
    if width * height * n_frames > MOST_GIF:
        raise ValueError(
            f"`video`: {path} has {n_frames} frames of {height} x {width} pixels (height x width); "
            f"at most {MOST_GIF / 1e6:.0f} million pixels are read from a gif. Scale it down, or "
            "convert it to mp4."
        )
    durations, is_opaque = [], True
    for frame, duration in _gif_frames(path):
        is_opaque = is_opaque and bool((frame[..., 3] == 255).all())
        durations.append(duration)
    channels = 3 if is_opaque else 4
    frames = (frame[..., :channels] for frame, _ in _gif_frames(path))
    if not durations[0]:
        return Clip(frames)
    starts = np.cumsum([0, *durations[:-1]]).tolist()
    return Clip(frames, 100.0 / durations[0], Fraction(1, 100), starts)


def _gif_frames(path: Path) -> Iterator[tuple[np.ndarray, int]]:
    """Yield the frames of a gif in RGBA, one by one in memory, and how long each is shown [cs]."""
    from PIL import ImageSequence

    with _picture(path, "video", "a gif") as image:
        for frame in ImageSequence.Iterator(image):
            yield np.asarray(frame.convert("RGBA")), round(frame.info.get("duration", 0) / 10)


def _read_container(path: Path) -> Clip:
    with _container(path, "read as a video") as container:
        if not container.streams.video:
            raise ValueError(f"`video`: {path} has no pictures, only sound or text. {KINDS}")
        stream = container.streams.video[0]
        _require_size(path, "video", (stream.width, stream.height))
        rate, tick = stream.average_rate, stream.time_base
    stamps: list[int | None] = []
    return Clip(_decoded(path, stamps), float(rate) if rate else None, tick, stamps)


def _decoded(path: Path, stamps: list[int | None]) -> Iterator[np.ndarray]:
    """Yield the frames, and note when each is shown."""
    with _container(path, "decoded") as container:
        for frame in container.decode(video=0):
            _require_size(path, "video", (frame.width, frame.height))
            stamps.append(frame.pts)
            turns = round(getattr(frame, "rotation", 0) / 90)  # as a phone was held
            yield np.rot90(frame.to_ndarray(format="rgb24"), turns)


@contextmanager
def _container(path: Path, what: str) -> Iterator[Any]:
    import av
    from av.error import FFmpegError

    try:
        with av.open(str(path)) as container:
            yield container
    except FFmpegError as error:
        raise ValueError(f"`video`: {path} cannot be {what}: {error.strerror}. {KINDS}") from error


def _with_suffix(path: str | os.PathLike, suffix: str) -> Path:
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise ValueError(f"`path` must end in {suffix}, got {path.name}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"`path`: there is no folder {path.parent}.")
    return path


def _size(image: np.ndarray) -> str:
    """Return "64 x 96 x 3", height first, for an image."""
    return " x ".join(str(n) for n in image.shape)
