"""Clouds of points in space as they are compared: in metres, in the world, with times.

A frame is a PLY, PCD, CSV or NPZ file; one CSV or NPZ file may have all frames.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adjsim.rotations import rotation_matrix
from studies.problem.observations.frames import chosen_frames, declared_times
from studies.runs.errors import StudyError
from studies.runs.files import files_of
from studies.scene.arrays import checked_times, load_arrays
from studies.scene.declared import Cloud
from studies.scene.series import METRES, read_columns


SUFFIXES = (".ply", ".pcd", ".csv", ".npz")
SPACE = ("x", "y", "z")
# NumPy's types by those of PLY, and by those of PCD with their bytes
PLY = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2",
    "int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8",
}  # fmt: skip
PCD = {"F": "f", "I": "i", "U": "u"}
# times, where a file has any, points of each frame, (n, 3), and what messages call these
Frames = tuple[np.ndarray | None, list[np.ndarray], list[str]]


@dataclass(frozen=True, eq=False)
class CloudData:
    """Points of each frame, and its time."""

    times: np.ndarray  # increasing, (n_frames,) [s]
    frames: list[np.ndarray]  # (n_points, 3) [m] each, in the world

    def padded(self) -> np.ndarray:
        """Return all points, (n_frames, n_points, 3), NaN behind the last one of a frame."""
        out = np.full((len(self.frames), max(map(len, self.frames)), 3), np.nan)
        for row, points in zip(out, self.frames, strict=True):
            row[: len(points)] = points
        return out


def read_cloud(cloud: Cloud, key: str = "cloud") -> CloudData:
    """Read a cloud; messages call the table by `key`, "observations.NAME".

    Raise a StudyError if files cannot be read, have no points, or do not fit the table.
    """
    assert cloud.file is not None
    times, frames, names = _read(Path(cloud.file), f"{key}.file")
    times = declared_times(cloud, times, len(frames), key)
    times, chosen = chosen_frames(cloud, times, key)
    return CloudData(times, [_in_world(frames[k], cloud, key, names[k]) for k in chosen])


def _in_world(points: np.ndarray, cloud: Cloud, key: str, name: str) -> np.ndarray:
    """Return the points of a frame that are compared, in metres, in the world."""
    R = rotation_matrix(np.radians(cloud.rotation or np.zeros(3)))
    x = METRES[cloud.units] * points @ R.T + np.asarray(cloud.position or np.zeros(3))
    if cloud.box is not None:
        x = x[((x >= cloud.box.lower) & (x <= cloud.box.upper)).all(axis=1)]
    if not len(x):
        box = "" if cloud.box is None else f" in `{key}.box`"
        raise StudyError(
            f"`{key}.file`: {name} has no points{box}. Leave empty frames out: by `frames`, or "
            "without their files and with `times`."
        )
    return x[np.unique(np.linspace(0, len(x) - 1, min(len(x), cloud.most_points)).astype(int))]


def _read(path: Path, key: str) -> Frames:
    """Return the frames of a file or folder."""
    every = files_of(path)
    if every is None:
        return _read_file(path, key)
    files = [each for each in every if each.suffix.lower() in SUFFIXES]
    kinds = sorted({each.suffix.lower() for each in files})
    if len(kinds) != 1:
        raise StudyError(
            f"`{key}`: {path} must have files of one kind, one for each frame: "
            f"{', '.join(SUFFIXES)}, got {' and '.join(kinds) or 'none'}."
        )
    frames = [_read_file(each, key, is_frame=True)[1][0] for each in files]
    return None, frames, [str(each) for each in files]


def _read_file(path: Path, key: str, *, is_frame: bool = False) -> Frames:
    """Return the frames of a file, or a single one that has all of its points."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        names, table = read_columns(path, key, SPACE)
        points = table[:, [names.index(name) for name in SPACE]]
        if "time" in names and not is_frame:
            points, at = _finite(points, path, key), table[:, names.index("time")]
            times = np.unique(_finite(at[:, None], path, key))
            return times, [points[at == t] for t in times], [f"{path} at {t:g} s" for t in times]
    elif suffix == ".npz":
        arrays = load_arrays(path, key)
        points, has_times = arrays.get("points", np.zeros(0)), "times" in arrays and not is_frame
        shape = "(n, n_points, 3)" if has_times else "(n_points, 3)"
        if points.ndim != 2 + has_times or points.shape[-1] != 3 or points.dtype.kind not in "iuf":
            raise StudyError(
                f"`{key}`: {path} must have an array `points` of numbers, {shape}, got the shape "
                f"{points.shape}."
            )
        if has_times:
            times = checked_times(arrays["times"], len(points), key, path)
            frames = [_finite(x[~np.isnan(x).all(axis=1)], path, key) for x in points]
            return times, frames, [f"frame {k} of {path}" for k in range(len(frames))]
    elif suffix in SUFFIXES:
        try:
            points = (_read_ply if suffix == ".ply" else _read_pcd)(path.read_bytes())
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            kind = suffix[1:].upper()
            message = f"`{key}`: {path} cannot be read as a {kind} file: {error}."
            raise StudyError(message) from error
    else:
        raise StudyError(f"`{key}` must be one of {', '.join(SUFFIXES)}, or a folder, got {path}.")
    return None, [_finite(points, path, key)], [str(path)]


def _finite(points: np.ndarray, path: Path, key: str) -> np.ndarray:
    """Return points in float64; raise if a number is not finite."""
    wrong = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(wrong):
        raise StudyError(
            f"`{key}`: {path} has {len(wrong)} of {len(points)} points with NaN or infinity, first "
            f"number {wrong[0]} (counted from 0). Leave out what was not measured."
        )
    return points.astype(np.float64)


def _read_ply(data: bytes) -> np.ndarray:
    """Return the vertices of a PLY file, (n, 3)."""
    header, _, body = data.partition(b"end_header")
    lines = [line.split() for line in header.decode("ascii", "replace").splitlines()]
    if not lines or lines[0] != ["ply"]:
        raise ValueError("it does not begin with `ply`")
    (layout,) = (line[1] for line in lines if line[:1] == ["format"])
    starts = [k for k, line in enumerate(lines) if line[:1] == ["element"]]
    if not starts or lines[starts[0]][1] != "vertex":
        raise ValueError("its first element must be `vertex`")
    end = starts[1] if len(starts) > 1 else len(lines)
    columns = [line for line in lines[starts[0] + 1 : end] if line[:1] == ["property"]]
    order = ">" if layout == "binary_big_endian" else "<"
    types = [(line[-1], order + PLY[line[1]]) for line in columns]
    body = body[body.index(b"\n") + 1 :]
    return _records(body, types, int(lines[starts[0]][2]), is_text=layout == "ascii")


def _read_pcd(data: bytes) -> np.ndarray:
    """Return the points of a PCD file, (n, 3); those that it marks as invalid by NaN are left out.

    Source: https://pointclouds.org/documentation/tutorials/pcd_file_format.html, version 0.7.
    """
    match = re.search(rb"^DATA[ \t]+(\S+)[ \t]*\r?\n", data, re.MULTILINE)
    if match is None:
        raise ValueError("it has no line DATA")
    lines = data[: match.start()].decode("ascii", "replace").splitlines()
    of_key = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    layout = match[1].decode("ascii", "replace")
    if layout not in ("ascii", "binary"):
        raise ValueError(f"DATA must be ascii or binary, got {layout}: save it uncompressed")
    counts = of_key.get("COUNT", ["1"] * len(of_key["FIELDS"]))
    types: list[Any] = [
        (name, f"<{PCD[kind]}{size}", (int(count),))
        if int(count) > 1
        else (name, f"<{PCD[kind]}{size}")
        for name, kind, size, count in zip(
            of_key["FIELDS"], of_key["TYPE"], of_key["SIZE"], counts, strict=True
        )
    ]
    body = data[match.end() :]
    points = _records(body, types, int(of_key["POINTS"][0]), is_text=layout == "ascii")
    return points[~np.isnan(points).any(axis=1)]


def _records(body: bytes, types: list[Any], count: int, *, is_text: bool) -> np.ndarray:
    """Return x, y, z of records with these fields, (count, 3)."""
    layout = np.dtype(types)
    if any(name not in (layout.names or ()) for name in SPACE):
        raise ValueError(f"it must have x, y and z, got {', '.join(layout.names or ())}")
    if not is_text:
        if len(body) < count * layout.itemsize:
            raise ValueError(f"it is cut: there are fewer than its {count} points")
        table = np.frombuffer(body, layout, count)
        return np.stack([table[name] for name in SPACE], axis=1)
    columns, n_columns = {}, 0  # of texts: a field may have several
    for name in layout.names or ():
        columns[name] = n_columns
        n_columns += int(np.prod(layout[name].shape))
    rows = [line.split() for line in body.decode("ascii", "replace").splitlines()[:count]]
    if len(rows) < count or any(len(row) < n_columns for row in rows):
        raise ValueError(f"it is cut: there are fewer than its {count} points")
    numbers = [[float(row[columns[name]]) for name in SPACE] for row in rows]
    return np.array(numbers).reshape(-1, 3)
