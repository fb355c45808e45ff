"""What a new scene file says of a film and of tracked points, and what their first frames show."""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from studies.cli.new_scene.commented_toml import Row, table_text
from studies.problem.observations.films import FilmData, read_film
from studies.problem.observations.outlines import foreground, outline, plain_background
from studies.problem.observations.point_files import METRES, PointData
from studies.problem.observations.points import read_table
from studies.reports.numbers import count
from studies.runs.errors import StudyError
from studies.scene.declared import Camera, Film, SceneFile
from studies.scene.exif import with_fields_of_view


FPS = 30.0  # of a folder of pictures
LONGEST = 10.0  # a longer mesh or track [m] is taken for one in millimetres
SIZES = ((480, 640), (720, 1280), (1080, 1920), (2160, 3840))  # of films [pixels]
HALF_VIEW = math.radians(20.0)  # of the shorter side of a picture: a phone's


class Seen(NamedTuple):
    """Where a picture has a body, from its middle, in heights of the picture."""

    right: float = 0.0
    down: float = 0.0
    diagonal: float | None = None  # of the box around it; None where that is not known


@dataclass(frozen=True, eq=False)
class Footage:
    """A film or a photograph."""

    path: str
    data: FilmData
    has_rate: bool = True

    @classmethod
    def read(cls, path: str) -> "Footage":
        """Read a film; where it does not say when its frames were taken, at a guessed rate."""
        try:
            return cls(path, read_film(Film(video=path), None, "FILM"))
        except StudyError as error:
            if "`FILM.fps`" not in str(error):
                raise StudyError(str(error).replace("`FILM.video`", "`--film`")) from error
            return cls(path, read_film(Film(video=path, fps=FPS), None, "FILM"), has_rate=False)

    @property
    def is_still(self) -> bool:
        """Whether it is one picture."""
        return len(self.data.frames) == 1

    def first_seen(self) -> tuple[Seen, list[float] | None]:
        """Return where the first frame has the body, and its mean colour, where both are plain."""
        masks = foreground(self.data)
        found = None if masks is None else outline(masks[0])
        if masks is None or found is None:
            return Seen(), None
        color = np.round(self.data.frames[0][masks[0]].mean(axis=0), 2).tolist()
        diagonal = math.hypot(*found.extent) / self.data.size[0]
        return Seen(*from_middle(found.middle, self.data.size), diagonal), color

    def lens(self) -> Row:
        """Return the row of the field of view; that of EXIF data is read with the scene."""
        scene = SceneFile(
            bodies={}, cameras={"": Camera()}, observations={"": Film(video=self.path)}
        )
        fov_y = with_fields_of_view(scene).cameras[""].fov_y
        if fov_y is not None:
            return "# fov_y", fov_y, f"is read from the EXIF data of {Path(self.path).name} [deg]"
        return guessed_lens(self.data.full_size)

    def table(self, folder: Path) -> str:
        """Return the table of the observation."""
        data, n = self.data, len(self.data.frames)
        height, width = data.full_size
        comment = f"{width} x {height} pixels"
        comment += (
            "" if self.is_still else f", {n} frames, {data.fps:.4g}/s, {data.times[-1]:.3g} s"
        )
        rows: list[Row] = [("video", beside(self.path, folder), comment)]
        if not self.has_rate:
            rows.append(("fps", FPS, "guess: the file does not say it"))
        elif data.fps is not None:
            rows.append(("# fps", round(data.fps, 3), "by the file; of slow motion the camera's"))
        if not self.is_still:
            rows.append(("# frames", [0, n], "from where the body is let go, to the end"))
        if data.backdrop is None:
            plain = plain_background(data.frames[0])
            if plain is None:
                what = (
                    "not plain; found from what most frames show, unless you have an empty picture"
                )
                rows.append(("# background.picture", "empty.png", what))
            else:
                color = np.round(plain.mean(axis=(0, 1)), 2)
                rows.append(("# background.color", color, "plain; found in the film if left out"))
        return table_text("[observations.film]", rows)


def from_middle(pixel: Any, size: tuple[int, int]) -> tuple[float, float]:
    """Return how far right and down of the middle a column and row are, in heights."""
    height, width = size
    return (pixel[0] - (width - 1) / 2) / height, (pixel[1] - (height - 1) / 2) / height


def guessed_lens(size: tuple[int, int]) -> Row:
    """Return the row of a field of view for pictures of a height and width."""
    fov_y = 2.0 * math.atan(math.tan(HALF_VIEW) * size[0] / min(size))
    return "fov_y", math.degrees(fov_y), "guess: vertical field of view of a phone [deg]"


def beside(path: str, folder: Path) -> str:
    """Return the path of a file as the scene file in a folder has it."""
    return Path(os.path.relpath(path, folder)).as_posix()


@dataclass(frozen=True, eq=False)
class Track:
    """Tracked points."""

    path: str
    data: PointData
    first: dict[str, np.ndarray]  # where each is seen first, (3,) [m] or (2,) [pixels]
    units: str | None  # of the file, where they are guessed

    @classmethod
    def read(cls, path: str) -> "Track":
        """Read a table of points."""
        try:
            data = read_table(Path(path), "POINTS")
        except StudyError as error:
            raise StudyError(str(error).replace("`POINTS.file`", "`--points`")) from error
        places = {
            name: rows[np.isfinite(rows[:, 0])]
            for name, rows in zip(data.names, np.moveaxis(data.values, 1, 0), strict=True)
        }
        first = {name: rows[0] for name, rows in places.items() if len(rows)}
        if data.is_in_picture:
            return cls(path, data, first, None)
        longest = max(float(np.ptp(rows, axis=0).max()) for rows in places.values() if len(rows))
        is_long = longest * METRES[data.units or "m"] > LONGEST
        units = "mm" if is_long else None if data.units else "m"
        factor = METRES[units or data.units or "m"]
        return cls(path, data, {name: factor * place for name, place in first.items()}, units)

    @property
    def is_in_picture(self) -> bool:
        """Whether the points are in pixels."""
        return self.data.is_in_picture

    def middle(self) -> np.ndarray:
        """Return the mean of where points are seen first, (3,) [m] or (2,) [pixels]."""
        return np.mean(list(self.first.values()), axis=0)

    def size(self) -> tuple[int, int]:
        """Return the height and width of a usual film that has all points in it [pixels]."""
        columns, rows = np.nanmax(self.data.values, axis=(0, 1))
        sizes = [
            *SIZES,
            *(size[::-1] for size in SIZES),
            (math.ceil(rows) + 1, math.ceil(columns) + 1),
        ]
        return next(size for size in sizes if rows < size[0] and columns < size[1])

    def table(self, folder: Path, body: str, at: dict[str, np.ndarray]) -> str:
        """Return the table of the observation; `at` says where points in pixels are at first."""
        times, names = self.data.times, self.data.names
        comment = (
            f"{count(len(names), 'point')}, {count(len(times), 'time')} from {times[0]:.3g} to {times[-1]:.3g} s"
        )
        rows: list[Row] = [("file", beside(self.path, folder), comment), ("body", body, "")]
        if self.is_in_picture:
            rows.append(("camera", "front", "whose film has the pixels"))
            rows.append(("at", at, "guess: where points are at the start [m]"))
            rows.append(("error", 1.0, "guess: one standard deviation [pixels]"))
        else:
            if self.units is not None:
                rows.append(("units", self.units, "guess: by how far the points go"))
            rows.append(("error", 0.001, "guess: one standard deviation [m]"))
        return table_text("[observations.points]", rows)
