"""What a film and tracked points say for a new scene file, and what their first frames show."""

import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from studies.problem.observations.clouds import read_cloud
from studies.problem.observations.depths import read_depth
from studies.problem.observations.films import STILL, FilmData, read_film
from studies.problem.observations.outlines import foreground, outline, plain_background
from studies.problem.observations.point_files import PointData
from studies.problem.observations.points import read_table
from studies.reports.numbers import count
from studies.runs.errors import MissingTimesError, renamed
from studies.scene.declared import Camera, Cloud, Depth, Film, SceneFile
from studies.scene.exif import with_fields_of_view
from studies.scene.series import METRES


FPS = 30.0  # of a folder of pictures
FOCAL = 0.9  # focal length of a depth camera, of the width of its pictures
LONGEST = 10.0  # a longer mesh or track [m] is taken for one in millimetres
SIZES = ((480, 640), (720, 1280), (1080, 1920), (2160, 3840))  # of films [pixels]
PLACES = 2  # of a colour


class Seen(NamedTuple):
    """Where a picture has a body, from its middle, in heights of the picture."""

    right: float = 0.0
    down: float = 0.0
    diagonal: float | None = None  # of the box around it; None where that is not known


def from_middle(pixel: Any, size: tuple[int, int]) -> Seen:
    """Return where a column and a row are in a picture of a height and width."""
    height, width = size
    return Seen((pixel[0] - (width - 1) / 2) / height, (pixel[1] - (height - 1) / 2) / height)


def beside(path: str, folder: Path) -> str:
    """Return the path of a file as a scene file in a folder has it."""
    return Path(os.path.relpath(path, folder)).as_posix()


@dataclass(frozen=True, eq=False)
class Footage:
    """A film or a photograph."""

    path: str
    file: str  # as the scene file has it
    data: FilmData
    has_rate: bool = True

    @classmethod
    def read(cls, path: str, folder: Path) -> "Footage":
        """Read a film; where it does not say when its frames were taken, at a guessed rate."""
        file = beside(path, folder)
        with renamed({"`FILM.video`": "`--film`"}):
            try:
                return cls(path, file, read_film(Film(video=path), None, "FILM"))
            except MissingTimesError:
                data = read_film(Film(video=path, fps=FPS), None, "FILM")
                return cls(path, file, data, has_rate=False)

    @property
    def is_still(self) -> bool:
        """Whether it is one picture."""
        return len(self.data.frames) == 1

    @cached_property
    def _mask(self) -> np.ndarray | None:
        """What surely differs from the background in the first frame, (H, W), if that is plain."""
        masks = foreground(self.data)
        return None if masks is None or not masks[0].any() else masks[0]

    @property
    def seen(self) -> Seen:
        """Where the first frame has the body; in the middle, if that cannot be said."""
        body = None if self._mask is None else outline(self._mask)
        if body is None:
            return Seen()
        diagonal = math.hypot(*body.extent) / self.data.size[0]
        return from_middle(body.middle, self.data.size)._replace(diagonal=diagonal)

    @property
    def color(self) -> list[float]:
        """The mean colour of the body; nothing where that cannot be said."""
        if self._mask is None:
            return []
        return np.round(self.data.frames[0][self._mask].mean(axis=0), PLACES).tolist()

    @property
    def background(self) -> list[float]:
        """The colour of a background of one colour; nothing where it is not."""
        plain = plain_background(self.data.frames[0])
        if plain is None or np.ptp(plain, axis=(0, 1)).max() > STILL:
            return []
        return np.round(plain.mean(axis=(0, 1)), PLACES).tolist()

    def exif_field(self) -> float | None:
        """Return the vertical field of view that a photograph says [deg]."""
        camera, film = {"front": Camera()}, Film(video=self.path)
        file = SceneFile(bodies={}, cameras=camera, observations={"film": film})
        return with_fields_of_view(file).cameras["front"].fov_y


@dataclass(frozen=True, eq=False)
class Track:
    """Tracked points."""

    file: str  # as the scene file has it
    data: PointData
    first: dict[str, np.ndarray]  # where each is seen first, (3,) [m] or (2,) [pixels]
    units: str | None  # of the file, where they are a guess

    @classmethod
    def read(cls, path: str, folder: Path) -> "Track":
        """Read a table of points."""
        with renamed({"`POINTS.file`": "`--points`"}):
            data = read_table(Path(path), "POINTS")
        tracks = {
            name: rows[np.isfinite(rows[:, 0])]
            for name, rows in zip(data.names, np.moveaxis(data.values, 1, 0), strict=True)
        }
        tracks = {name: rows for name, rows in tracks.items() if len(rows)}
        units, factor = None, 1.0
        if not data.is_in_picture:
            longest = max(float(np.ptp(rows, axis=0).max()) for rows in tracks.values())
            is_long = longest * METRES[data.units or "m"] > LONGEST
            units = "mm" if is_long else None if data.units else "m"
            factor = METRES[units or data.units or "m"]
        first = {name: factor * rows[0] for name, rows in tracks.items()}
        return cls(beside(path, folder), data, first, units)

    @property
    def middle(self) -> np.ndarray:
        """The mean of where points are seen first, (3,) [m] or (2,) [pixels]."""
        return np.mean(list(self.first.values()), axis=0)

    @property
    def count(self) -> str:
        """What is in the table."""
        times, n = self.data.times, len(self.data.names)
        return f"{count(n, 'point')}, {len(times)} times from {times[0]:.3g} to {times[-1]:.3g} s"

    def film_size(self) -> tuple[int, int]:
        """Return height and width of a usual film that has all points in it [pixels]."""
        columns, rows = np.nanmax(self.data.values, axis=(0, 1))
        sizes = [*SIZES, *(size[::-1] for size in SIZES)]
        fitting = (size for size in sizes if rows < size[0] and columns < size[1])
        return next(fitting, (math.ceil(rows) + 1, math.ceil(columns) + 1))


@dataclass(frozen=True, eq=False)
class Scan:
    """A cloud or a depth film."""

    file: str  # as the scene file has it
    kind: str  # "cloud" or "depth"
    count: str  # what is in the file
    has_times: bool
    middle: np.ndarray | None = None  # of the first frame of a cloud, (3,) [m]
    units: str | None = None  # of a cloud, which are a guess
    size: tuple[int, int] | None = None  # of a depth film: height and width [pixels]

    @property
    def K(self) -> list[list[float]]:
        """A guess of the intrinsics of a depth camera."""
        height, width = self.size or (1, 1)
        f = round(FOCAL * width, 1)
        return [[f, 0.0, 0.5 * (width - 1)], [0.0, f, 0.5 * (height - 1)], [0.0, 0.0, 1.0]]

    @classmethod
    def read(cls, path: str, folder: Path, kind: str) -> "Scan":
        """Read a cloud or a depth film; where the file does not say times, at a guessed rate."""
        with renamed({"`SCAN.file`": f"`--{kind}`"}):
            try:
                data, has_times = _read_scan(path, kind, None), True
            except MissingTimesError:
                data, has_times = _read_scan(path, kind, FPS), False
        frames = f"{count(len(data.times), 'frame')} until {data.times[-1]:.3g} s"
        file = beside(path, folder)
        if kind == "depth":
            height, width = data.full_size
            seen = f"{width} x {height} pixels, {frames}"
            return cls(file, kind, seen, has_times, size=data.full_size)
        first = data.frames[0]
        is_long = float(np.ptp(first, axis=0).max()) > LONGEST
        middle = first.mean(axis=0) * (METRES["mm"] if is_long else 1.0)
        seen = f"{frames}, {len(first)} points in the first"
        return cls(file, kind, seen, has_times, middle, "mm" if is_long else "m")


def _read_scan(path: str, kind: str, fps: float | None) -> Any:
    if kind == "cloud":
        return read_cloud(Cloud(file=path, fps=fps), "SCAN")
    intrinsics = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    camera = Camera(K=intrinsics)
    return read_depth(Depth(file=path, fps=fps), camera, "SCAN", camera_key="cameras.front")
