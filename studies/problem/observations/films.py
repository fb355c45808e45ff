"""Films and still pictures as they are compared: undistorted, in blocks of pixels, with times.

Frames are read one by one, so that only the small ones are in memory.

A frame has the time of its stamp, so intervals may differ. The steps of the simulation all have one
length: where a frame is on no step, vertices are interpolated between the two steps around it
(`studies.problem.steps.Sampling`), which is off by at most |a| dt^2 / 8 where the acceleration is
a. Loss and gradient are those of the interpolated vertices, so the gradient is exact.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from studies.problem.observations.undistort import source_pixels, undistorted_picture
from studies.runs import media
from studies.runs.errors import MissingTimesError, StudyError, renamed
from studies.scene.declared import Camera, Film
from studies.scene.reading import PICTURES


ROWS, COLUMNS = 120, 160  # that the default of `downsample` leaves
STILL = 8.0 / 255.0  # a change that compression and the noise of a camera make too
SURE = 0.25  # part of the frames that must show a background
LIKE = 0.08  # a difference in colour that may lie between neighbouring places of a background
DIFFERENT = 0.15  # a difference from the background that is surely a body
VISIBLE = 4  # pixels that must change in one frame, for something to move
REPEATED = 0.25  # part of the frames of a motion that repeat the one before, which is suspicious
SAME = 1.0 / 255.0  # a change that is none
OTHER_RATE = 0.02  # a difference of frame rates, as 29.97 for 30 is none
SLOWEST, FASTEST = 0.5, 1e4  # frames per second that films have
GAP = 1.5  # times the usual time between frames, from which on some are missing
ROUNDED = 1.0 + 1e-6  # ticks between which the rounding errors of time stamps lie
MOST_ROUNDED = 0.5  # of the interval between frames


@dataclass(frozen=True, eq=False)
class FilmData:
    """A film or a still picture, as it is compared."""

    frames: np.ndarray  # RGB in [0, 1], (n, H, W, 3); where the film has alpha, over the backdrop
    # where the bodies are, (n, H, W) in [0, 1]: the film of masks, or else the film's alpha
    masks: np.ndarray | None
    times: np.ndarray  # of the frames after the first [s], (n,)
    # frames per second, the usual ones where they differ; None of a still picture
    fps: float | None
    factor: int  # blocks of so many pixels a side of the file became one
    full_size: tuple[int, int]  # height and width of the file [pixels]
    # what is behind the bodies, (H, W, 3), where it is declared, or black behind a film with
    # alpha; None where it is to be found in the film
    backdrop: np.ndarray | None
    own_fps: float | None = None  # frames per second, on average, that the file says
    # (H, W) of truth values: what is not compared, where all frames have the colours around
    ignored: np.ndarray | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width [pixels] of the frames."""
        return self.frames.shape[1], self.frames.shape[2]

    @property
    def interval(self) -> float:
        """The usual time between frames [s], of which there are two or more."""
        return float(np.median(np.diff(self.times)))


def read_film(film: Film, camera: Camera | None, key: str = "film") -> FilmData:
    """Read a film, masks and background picture without the camera's distortion; `key` names it."""
    assert film.video is not None
    clip = _opened(film.video, f"{key}.video")
    frames = _Frames(film, camera, key)
    kept, n_frames = frames.read(clip.frames, f"{key}.video")
    times, fps = _times(film, clip, np.array(_chosen(film)[: len(kept)]), key)
    masks = kept[..., 3] if kept.shape[-1] == 4 else None
    backdrop = frames.backdrop(has_alpha=masks is not None)
    if masks is not None and backdrop is not None:
        kept = _over(kept, backdrop)
    if film.masks is not None:
        masks = frames.read_masks(film.masks, n_frames)
    assert frames.size is not None
    if (ignored := frames.ignored()) is not None:  # nothing is seen there
        behind = _filled(np.median(kept, axis=0), ignored) if backdrop is None else backdrop
        kept = np.where(ignored[..., None], behind, kept)
        masks = None if masks is None else np.where(ignored, 0.0, masks)
    factor, size = frames.factor, frames.size
    return FilmData(kept, masks, times, fps, factor, size, backdrop, clip.fps, ignored)


def _chosen(film: Film) -> range:
    return range(*(film.frames or (sys.maxsize,)))


def _times(
    film: Film, clip: media.Clip, numbers: np.ndarray, key: str
) -> tuple[np.ndarray, float | None]:
    """Return the times of frames after the first of them, (n,) [s], and frames per second.

    Time stamps are whole ticks. Where they are those of a constant rate, the average of the file or
    of the stamps, rounded to ticks, the times are of that rate.
    """
    count = numbers - numbers[0]
    if film.fps is not None or len(count) == 1:
        fps = film.fps or clip.fps
        return count / (fps or 1.0), fps
    if not clip.stamps:
        raise _without_rate(film, key)
    stamps = [clip.stamps[number] for number in numbers]
    known = [stamp for stamp in stamps if stamp is not None]
    if len(known) < len(stamps):
        raise MissingTimesError(
            f"`{key}.video`: frame {numbers[stamps.index(None)]} of {film.video} has no time stamp."
            f" Declare `{key}.fps`."
        )
    ticks = np.array(known) - known[0]
    back = np.flatnonzero(np.diff(ticks) <= 0)
    if back.size:
        a, b = back[0], back[0] + 1
        first, second = (float(known[k] * clip.tick) for k in (a, b))
        raise MissingTimesError(
            f"`{key}.video`: the time stamps of {film.video} must increase, but frame {numbers[a]} "
            f"is at {first:.6g} s and frame {numbers[b]} at {second:.6g} s. Declare `{key}.fps`, "
            f"or leave such frames out by `{key}.frames`."
        )
    mean = float(Fraction(int(count[-1]), int(ticks[-1])) / clip.tick)
    for fps in (clip.fps, mean):
        # a tick as long as an interval would round a gap away
        most = min(ROUNDED, MOST_ROUNDED / (fps * float(clip.tick))) if fps else 0.0
        if fps and np.ptp(ticks - count / (fps * float(clip.tick))) <= most:
            return count / fps, fps
    times = ticks * float(clip.tick)
    return times, float(np.median(np.diff(count) / np.diff(times)))


def _without_rate(film: Film, key: str) -> MissingTimesError:
    return MissingTimesError(
        f"`{key}.fps` is missing: {film.video} does not say its frames per second."
    )


def blank_film(film: Film, times: np.ndarray, key: str) -> FilmData:
    """Return a simulated film whose frames are still black, over its background, or else black."""
    assert film.simulate is not None
    frames = _Frames(film, None, key)
    frames.size = size = film.simulate.height, film.simulate.width
    backdrop = frames.backdrop(has_alpha=True)
    blank = np.zeros((len(times), *size, 3))
    return FilmData(blank, None, times, None, 1, size, backdrop, ignored=frames.ignored())


def film_pictures(
    film: Film, camera: Camera | None, key: str, *, rows: int, chosen: np.ndarray
) -> np.ndarray:
    """Return chosen frames of a film with `rows` rows or more, or all that it has, as uint8 RGB."""
    assert film.video is not None
    size = next(iter(_opened(film.video, key).frames)).shape[:2]
    factor = default_factor((size[0], size[1]), rows, 1)
    frames = _Frames(replace(film, downsample=factor), camera, key)
    wanted = {_chosen(film)[k] for k in chosen.tolist()}
    kept = [
        frames.compared(media.as_float(picture))
        for number, picture in frames.checked(_opened(film.video, key).frames, key)
        if number in wanted
    ]
    pictures = np.stack(kept)
    if pictures.shape[-1] == 4:
        backdrop = frames.backdrop(has_alpha=True)
        assert backdrop is not None
        pictures = _over(pictures, backdrop)
    return media.as_uint8(pictures)


def film_frames(film: Film, key: str) -> tuple[Iterator[np.ndarray], Callable[[int], np.ndarray]]:
    """Return the frames of a film one by one, as they are, and the times of the first n [s]."""
    assert film.video is not None
    clip = _opened(film.video, f"{key}.video")
    if film.fps is None and clip.fps is None:
        raise _without_rate(film, key)
    checked = _Frames(film, None, key).checked(clip.frames, f"{key}.video")
    frames = (media.as_float(picture)[..., :3] for _, picture in checked)

    def times(n: int) -> np.ndarray:
        return _times(film, clip, np.array(_chosen(film)[:n]), key)[0]

    return islice(frames, *(film.frames or (None,))), times


def default_factor(size: tuple[int, int], rows: int = ROWS, columns: int = COLUMNS) -> int:
    """Return the largest divisor of height and width that leaves as many rows and columns, or 1."""
    height, width = size
    common = math.gcd(height, width)
    return max(
        k
        for k in range(1, common + 1)
        if common % k == 0 and (k == 1 or (height >= k * rows and width >= k * columns))
    )


def plate_of(data: FilmData, covered: np.ndarray) -> np.ndarray:
    """Return the picture without the bodies, (H, W, 3).

    Where the first frame shows what most frames show, outside `covered`, it is that. Elsewhere it
    is the first of these: what a quarter of the frames show that is like the background around;
    what most frames show, unless that has the colour of a body; outside `covered` the first frame,
    unless that has; what any frame shows that is like the background around; this, smoothed.
    """
    if data.backdrop is not None:
        return data.backdrop
    covered = np.asarray(covered, bool)
    first, usual = data.frames[0], np.median(data.frames, axis=0)
    is_background = (_distance(usual, first) < STILL) & ~covered
    if is_background.all() or not is_background.any():
        return usual
    around = _filled(usual, ~is_background)
    rows, columns = np.nonzero(~is_background)
    frames, filled = data.frames[:, rows, columns], around[rows, columns]
    near = _distance(frames, filled) < LIKE
    counts = near.sum(axis=0)[:, None]
    mean = (frames * near[..., None]).sum(axis=0) / np.maximum(counts, 1)
    often = usual[rows, columns]
    lasting = (_distance(frames, often) < STILL).mean(axis=0) > 0.5
    bodies = frames[0, covered[rows, columns] & ~near[0]]
    bodies = bodies[~_is_like(bodies, usual[is_background])]
    lasting &= ~_is_like(often, bodies)
    begun = ~covered[rows, columns] & ~_is_like(frames[0], bodies)
    choices = [counts >= SURE * len(frames), lasting[:, None], begun[:, None], counts > 0]
    plate = usual.copy()
    plate[rows, columns] = np.select(choices, [mean, often, frames[0], mean], filled)
    return plate if data.ignored is None else np.where(data.ignored[..., None], usual, plate)


def _is_like(colors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return which colours (n, 3) are like one of some others, (n,)."""
    from scipy.spatial import KDTree

    if not len(others):
        return np.zeros(len(colors), bool)
    distances, _ = KDTree(others).query(colors, p=np.inf, distance_upper_bound=LIKE)
    return np.isfinite(distances)


def silhouettes(data: FilmData, plate: np.ndarray) -> np.ndarray:
    """Return where the bodies are, (n, H, W) in [0, 1]: the masks, or what is unlike the plate."""
    if data.masks is not None:
        return data.masks
    return np.clip((_distance(data.frames, plate) - STILL) / (DIFFERENT - STILL), 0.0, 1.0)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b).max(axis=-1)


def _filled(picture: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Return a picture whose hole has the colours around it, the smoother the further in."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    transform: Any = distance_transform_edt(hole, return_indices=True)
    inside, nearest = transform
    filled = picture[tuple(nearest)]
    sigma = max(0.5 * float(inside.max()), 1.0)
    weight = gaussian_filter((~hole).astype(float), sigma)
    blurred = gaussian_filter(np.where(hole[..., None], 0.0, picture), (sigma, sigma, 0.0))
    smooth = blurred / np.maximum(weight, 1e-12)[..., None]
    share = np.clip(inside / sigma, 0.0, 1.0)[..., None] * (weight > 1e-6)[..., None]
    return np.where(hole[..., None], (1.0 - share) * filled + share * smooth, picture)


class _Frames:
    """How the pictures of one film become frames; the first one says what size they must have."""

    def __init__(self, film: Film, camera: Camera | None, key: str) -> None:
        self.film, self.camera, self.key = film, camera, key
        self.size: tuple[int, int] | None = None
        self.factor = 1
        self.source: np.ndarray | None = None

    def read(self, pictures: Iterator[np.ndarray], key: str) -> tuple[np.ndarray, int]:
        """Return the frames that `film.frames` keeps, and how many there are in all."""
        chosen, kept, n_frames = _chosen(self.film), [], 0
        for number, picture in self.checked(pictures, key):
            n_frames = number + 1
            if number in chosen:
                kept.append(self.compared(media.as_float(picture)))
        if self.film.frames and n_frames < chosen.stop:
            raise StudyError(
                f"`{self.key}.frames` must lie within the {n_frames} frames of {self.film.video}, "
                f"got {list(self.film.frames)}."
            )
        if not kept:
            raise StudyError(f"`{key}`: {self.film.video} has no frames.")
        if len({frame.shape for frame in kept}) > 1:
            raise StudyError(f"`{key}`: all frames must have alpha, or none, in {self.film.video}.")
        return np.stack(kept), n_frames

    def checked(self, pictures: Iterator[np.ndarray], key: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield number and picture, all as large as the first of the film."""
        for number, picture in enumerate(_decoded(pictures, key)):
            self._check_size(picture, number, key)
            yield number, picture

    def read_masks(self, path: str, n_frames: int) -> np.ndarray:
        """Return masks (n, H, W) in [0, 1], checked to be as large and as many as the frames."""
        key = f"{self.key}.masks"
        masks, n_masks = self.read(_opened(path, key).frames, key)
        if n_masks != n_frames:
            raise StudyError(
                f"`{key}` must have one mask for each of the {n_frames} frames of "
                f"{self.film.video}, got {n_masks}."
            )
        return masks[..., :3].mean(axis=-1)

    def backdrop(self, *, has_alpha: bool) -> np.ndarray | None:
        """Return what is declared to be behind the bodies, (H, W, 3)."""
        assert self.size is not None
        height, width = (n // self.factor for n in self.size)
        background = self.film.background
        if background.picture is not None:
            return self._picture(background.picture, (height, width))
        if background.color is None and not has_alpha:
            return None
        color = background.color or (0.0, 0.0, 0.0)
        return np.broadcast_to(np.array(color, float), (height, width, 3)).copy()

    def ignored(self) -> np.ndarray | None:
        """Return what is not compared, (H, W) of truth values; None where all is."""
        declared, key = self.film.ignore, f"{self.key}.ignore"
        if declared is None:
            return None
        assert self.size is not None
        height, width = self.size
        mask = np.zeros((height, width))
        if isinstance(declared, str):
            pictures = _opened(declared, key, is_picture=True).frames
            mask = media.as_float(next(iter(_decoded(pictures, key))))[..., :3].max(axis=-1)
            if mask.shape != self.size:
                raise StudyError(
                    f"`{key}` must be as large as the film, {_text(self.size)} (height x width), "
                    f"got {_text(mask.shape)}."
                )
        for x0, y0, x1, y1 in () if isinstance(declared, str) else declared:
            if not (0 <= x0 <= x1 < width and 0 <= y0 <= y1 < height):
                raise StudyError(
                    f"`{key}` must have rectangles [x0, y0, x1, y1] from the first to the last "
                    f"column and row, within 0 to {width - 1} and 0 to {height - 1}, got "
                    f"{[x0, y0, x1, y1]}."
                )
            mask[y0 : y1 + 1, x0 : x1 + 1] = 1.0
        covered = self.compared(mask[..., None])[..., 0] > 0.0
        if not covered.any():
            raise StudyError(f"`{key}` covers no pixel of the film. Leave it out.")
        if covered.all():
            raise StudyError(f"`{key}` covers the whole film: nothing is left to compare.")
        return covered

    def compared(self, picture: np.ndarray) -> np.ndarray:
        """Return a picture of the file's size without distortion, in blocks of pixels."""
        return media.area_mean(undistorted_picture(picture, self.source), self.factor)

    def _picture(self, path: str, size: tuple[int, int]) -> np.ndarray:
        key = f"{self.key}.background.picture"
        pictures = _opened(path, key, is_picture=True).frames
        picture = media.as_float(next(iter(_decoded(pictures, key))))[..., :3]
        if picture.shape[:2] == self.size:
            return self.compared(picture)
        if picture.shape[:2] == size:
            return picture
        assert self.size is not None
        raise StudyError(
            f"`{key}` must be as large as the film, {_text(self.size)} (height x width), got "
            f"{_text(picture.shape)}."
        )

    def _check_size(self, picture: np.ndarray, i: int, key: str) -> None:
        size = picture.shape[0], picture.shape[1]
        if self.size is None:
            self.size = size
            self.factor = self.film.downsample or default_factor(size)
            if size[0] % self.factor or size[1] % self.factor:
                common = math.gcd(*size)
                ways = ", ".join(str(k) for k in range(1, common + 1) if common % k == 0)
                raise StudyError(
                    f"`{self.key}.downsample` must divide the size of the film, {_text(size)} "
                    f"(height x width), got {self.factor}. Take one of {ways}."
                )
            if self.camera is not None:
                name = self.film.camera or "CAMERA"
                self.source = source_pixels(self.camera, size, f"cameras.{name}")
        elif size != self.size:
            raise StudyError(
                f"`{key}` must have frames as large as the first of {self.film.video}, "
                f"{_text(self.size)} (height x width), got {_text(size)} at frame {i}. "
                "Scale them to it."
            )


def _over(pictures: np.ndarray, backdrop: np.ndarray) -> np.ndarray:
    """Return pictures (n, H, W, 4) over what is behind them, (n, H, W, 3)."""
    alpha = pictures[..., 3:]
    return alpha * pictures[..., :3] + (1.0 - alpha) * backdrop


def _opened(path: str, key: str, *, is_picture: bool = False) -> media.Clip:
    """Return a film, a folder or a picture, still to be read; mistakes by `key`."""
    file = Path(path)
    if not file.exists():
        raise StudyError(f"`{key}`: there is no file or folder {path}.")
    with renamed({"`video`": f"`{key}`"}):
        if is_picture or file.suffix.lower() in PICTURES:
            picture = media.read_image(file, name=key)
            return media.Clip(iter([np.rint(65535.0 * picture).astype(np.uint16)]))
        return media.open_video(file)


def _decoded(pictures: Iterator[np.ndarray], key: str) -> Iterator[np.ndarray]:
    with renamed({"`video`": f"`{key}`"}):
        yield from pictures


def _text(size: tuple[int, ...]) -> str:
    return f"{size[0]} x {size[1]}"


def advice_on_film(data: FilmData, key: str = "film") -> list[str]:
    """Return what is doubtful about a film; raise if it has several frames and nothing moves."""
    if len(data.frames) < 2:
        return []
    changes = np.stack([_change(frame, data.frames[0]) for frame in data.frames])
    moving = (changes > STILL).sum(axis=(1, 2))
    if moving.max() < VISIBLE:
        raise StudyError(
            f"`{key}.video`: nothing moves. No more than {moving.max()} pixels of a frame differ "
            f"from the first by more than {255 * STILL:g} of 255 levels. Give a film, or with "
            "`frames` a part of it, in which the bodies move."
        )
    advice = []
    if data.fps and data.own_fps and abs(data.fps / data.own_fps - 1.0) > OTHER_RATE:
        advice.append(
            f"`{key}.fps` is {data.fps:g}, but the file says {data.own_fps:.4g} frames per second. "
            "Leave `fps` out, unless the file is wrong, as that of a slow-motion film."
        )
    elif data.own_fps and not SLOWEST <= data.own_fps <= FASTEST:
        advice.append(
            f"`{key}.video`: by its time stamps the film has {data.own_fps:.3g} frames per second. "
            f"Were they written in another unit, such as milliseconds? Declare `{key}.fps`."
        )
    gaps = np.diff(data.times)
    if missing := int((gaps > GAP * data.interval).sum()):
        a = int(gaps.argmax())
        advice.append(
            f"`{key}.video`: by the time stamps, frames are missing. Gaps: {missing}, the longest "
            f"from {data.times[a]:.4g} to {data.times[a + 1]:.4g} s; frames are usually "
            f"{data.interval:.3g} s apart. Nothing is compared in a gap."
        )
    if (changes.max(axis=0) > STILL).mean() > 0.9:
        advice.append(
            f"`{key}.video`: nearly every pixel changes. The camera must stand still, and the "
            "light must not change."
        )
    steps = np.array([np.abs(b - a).max() for a, b in pairwise(data.frames)])
    steps = steps[: np.flatnonzero(steps > SAME).max(initial=0) + 1]
    if len(steps) > 3 and (steps < SAME).mean() > REPEATED:
        n = int((steps < SAME).sum())
        advice.append(
            f"`{key}.video`: {n} of {len(steps) + 1} frames repeat the one before, as where a film "
            f"was converted to another rate. Check `{key}.fps`, now {data.fps:g}."
        )
    return advice


def _change(frame: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return by how much a frame differs from the first, (H, W), smoothed over 3 x 3 pixels."""
    from scipy.ndimage import uniform_filter

    change = frame - first
    channels = [np.abs(uniform_filter(change[..., c], 3)) for c in range(change.shape[2])]
    return np.max(channels, axis=0)
