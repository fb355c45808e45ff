"""Tracked points and states of a body, read from files.

Points are a CSV file with the columns time, point, and x, y, z or u, v, or one of those that
`studies.problem.observations.point_files` reads. States are the positions of all nodes, an .npz
file with `times` and `x`.
"""

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from adjsim.rotations import rotation_matrix
from studies.problem.observations.frames import chosen_frames
from studies.problem.observations.point_files import (
    PointData,
    Rows,
    add_row,
    cut_at,
    is_tracker,
    number_of,
    read_c3d,
    read_tracker,
    table_of,
    unit_of,
)
from studies.problem.observations.undistort import undistorted_points
from studies.runs.errors import StudyError
from studies.scene.arrays import read_node_arrays
from studies.scene.declared import Camera, Points, States
from studies.scene.series import METRES, name_and_unit
from studies.scene.tables import unknown


SPACE, PICTURE = ("x", "y", "z"), ("u", "v")
UNITS = {SPACE: tuple(METRES), PICTURE: ("px", "pixels")}
SHORTEST = 6  # frames from which an acceleration is read
ON_PARABOLA = 0.02  # part of the height of a parabola that the way may be off it
LIKE_GRAVITY, ALONG = 0.3, 0.5  # part by which two accelerations may differ, and least cosine


def read_points(
    points: Points,
    camera: Camera | None = None,
    size: tuple[int, int] | None = None,
    key: str = "points",
) -> PointData:
    """Read tracked points; messages call the table by `key`, "observations.NAME".

    The distortion of `camera` is taken out of points in pixels. One that is given by fov_y needs
    the `size` (height, width) of its film for that.
    """
    assert points.file is not None
    data = read_table(Path(points.file), key)
    for given in ("points", "at"):
        for name in getattr(points, given):
            if name not in data.names:
                raise StudyError(f"`{key}.{given}`: {unknown('point', name, data.names)}")
    data = _chosen(data, points, key)
    if not data.is_in_picture:
        if points.camera is not None:
            raise StudyError(
                f"`{key}.camera` must be left out: {points.file} has x, y and z, which no camera "
                "sees."
            )
        return replace(data, values=_in_world(data, points, key))
    for name in ("units", "rotation", "position"):
        if getattr(points, name) is not None:
            raise StudyError(
                f"`{key}.{name}` must be left out: {points.file} has u and v, which are pixels."
            )
    if camera is None:
        raise StudyError(
            f"`{key}.camera` is missing: {points.file} has u and v, which are pixels of a camera."
        )
    if any(camera.distortion) and camera.K is None and size is None:
        raise StudyError(
            f"`{key}`: without a film of its camera, distortion needs K, in pixels. Give the "
            "camera by K, R and t."
        )
    return replace(data, values=undistorted_points(data.values, camera, size or (0, 0)))


def _chosen(table: PointData, points: Points, key: str) -> PointData:
    """Return the frames and points that are asked for, without points that are never seen."""
    names = list(table.names)
    times, chosen = chosen_frames(points, table.times, key)
    values = table.values[chosen]
    is_seen = np.any(np.isfinite(values[..., 0]), axis=0).tolist()
    kept = [names.index(name) for name in points.points] or [
        k for k, is_kept in enumerate(is_seen) if is_kept
    ]
    unseen = [names[k] for k in kept if not is_seen[k]]
    if unseen or not kept:
        of_all = f" of {', '.join(unseen)}" if unseen else ""
        frames = f" in the frames {list(points.frames)}" if points.frames else ""
        raise StudyError(
            f"`{key}.file`: nothing is left{of_all}: every sample in {points.file} is missing"
            f"{frames}. Choose others with `points`{' or `frames`' if points.frames else ''}."
        )
    return replace(table, names=tuple(names[k] for k in kept), times=times, values=values[:, kept])


def _in_world(table: PointData, points: Points, key: str) -> np.ndarray:
    units = points.units or table.units
    if units is None:
        raise StudyError(
            f"`{key}.units` is missing: {points.file} does not say in which unit its points are. "
            'Give "m", "cm" or "mm".'
        )
    R = rotation_matrix(np.radians(points.rotation or np.zeros(3)))
    return METRES[units] * table.values @ R.T + np.asarray(points.position or np.zeros(3))


def read_table(path: Path, key: str) -> PointData:
    """Return the points of a file, as they are."""
    if path.suffix.lower() == ".c3d":
        return read_c3d(path, key)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"`{key}.file`: {path} cannot be read as a CSV file: {error}.") from error
    header = text.splitlines()[:2]
    if len(header) == 2 and is_tracker(header[1]):
        return read_tracker(text, path, key)
    return _read_csv(text, path, key)


def _read_csv(text: str, path: Path, key: str) -> PointData:
    """Read a table of points: with capitals, units in brackets, other marks between its cells."""
    rows: Rows = {}
    mark = cut_at(text.partition("\n")[0])
    table = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=mark if len(mark) == 1 else ",",
        skipinitialspace=True,
        strict=True,
    )
    filled = ([cell.strip() for cell in row] for row in table if "".join(row).strip())
    try:
        header = next(filled, [])
        names = [name_and_unit(head)[0] for head in header]
        columns = next((each for each in (SPACE, PICTURE) if each[0] in names), SPACE)
        if sorted(names) != sorted(("time", "point", *columns)):
            raise StudyError(
                f"`{key}.file`: line 1 of {path} must name the columns time, point, and x, y, z or "
                f"u, v, and no others, got {', '.join(header) or 'nothing'}."
            )
        unit = unit_of(header, columns, UNITS[columns], f"`{key}.file`: line 1 of {path}")
        for row in filled:
            where = f"`{key}.file`: line {table.line_num} of {path}"
            if len(row) != len(header):
                raise StudyError(f"{where} must have {len(header)} cells, as its header has.")
            cells = dict(zip(names, row, strict=True))
            if not cells["point"]:
                raise StudyError(f"{where}: `point` must be a name, got an empty cell.")
            is_seen = any(cells[name] for name in columns)
            time, *place = (
                number_of(
                    cells[name], f"{where}: `{name}`", mark=mark, needed=name == "time" or is_seen
                )
                for name in ("time", *columns)
            )
            add_row(rows, cells["point"], time, tuple(place), where=where)
    except csv.Error as error:
        raise StudyError(f"`{key}.file`: {path} cannot be read as a CSV file: {error}.") from error
    if not any(math.isfinite(x) for track in rows.values() for x, *_ in track.values()):
        raise StudyError(f"`{key}.file`: {path} has no points.")
    return replace(table_of(rows, len(columns)), units=unit)


def read_states(states: States, key: str = "states") -> PointData:
    """Read positions of nodes; messages call the table by `key`, "observations.NAME"."""
    assert states.file is not None
    return PointData((), *read_node_arrays(f"{key}.file", states.file))


def advice_on_fall(
    times: np.ndarray, places: np.ndarray, gravity: tuple[float, float, float], key: str
) -> list[str]:
    """Return what is doubtful where points (n_times, n_points, 3) [m] fall, but not along gravity.

    The mean of the points moves on a parabola as long as nothing touches them. The longest one from
    the first time on counts if its acceleration is as large as that of gravity.
    """
    g = float(np.linalg.norm(gravity))
    tracked = np.isfinite(places).all(axis=(0, 2))
    if not g or not tracked.any():
        return []
    middle = places[:, tracked].mean(axis=1)
    since = times - times[0]
    for end in range(len(times), SHORTEST - 1, -1):
        powers = np.vander(since[:end], 3)
        coefficients = np.linalg.lstsq(powers, middle[:end], rcond=None)[0]
        acceleration = 2.0 * coefficients[0]
        off = np.abs(powers @ coefficients - middle[:end]).max()
        size = float(np.linalg.norm(acceleration))
        if off > ON_PARABOLA * size * since[end - 1] ** 2 / 8.0:
            continue
        if abs(size / g - 1.0) > LIKE_GRAVITY or acceleration @ gravity > ALONG * size * g:
            return []
        return [
            f"`{key}`: the points fall with an acceleration of {acceleration.round(2).tolist()} "
            f"m/s2, but `world.gravity` is {list(gravity)}. Check which axis points up, and give "
            "`world.gravity` along it."
        ]
    return []
