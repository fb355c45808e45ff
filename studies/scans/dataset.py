"""A scan as one data set with named coordinates: `scan.nc`, which `xarray.open_dataset` opens.

    import xarray
    scan = xarray.open_dataset("scan.nc")
    scan.loss.sel({"beam.mu": 2e5}, method="nearest")
    scan.gradient.sel(parameter="beam.mu")

It is NetCDF-4, and plain HDF5 to other readers. A point without a loss is NaN, and `reason` says
why. `contact_event` and `visibility_event` are those between a point and the next one `along` an
axis.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from studies.runs.folder import RunFolder
from studies.scans.terrain import ScanPoints


FILE, POINTS = "scan.nc", "points.jsonl"
# What a point has, by the dimension that it adds to those of the grid, and what it means.
NUMBERS = {
    "loss": (None, "loss [-]"),
    "gradient": ("parameter", "adjoint gradient of the loss per unit of each parameter"),
    "reason": (None, ""),
    "frame_loss": ("frame", "loss of every frame alone; the loss of images is their mean"),
    "difference": (
        "axis", "central difference of the loss along each axis that is a parameter"
    ),
    "relative": ("axis", "relative difference of gradient and central difference"),
    "shorter": ("axis", "whether they agree with a shorter step, though not with this one"),
    "kink": ("axis", "distance to the nearest kink along the axis, to first order"),
    "crosses": (
        "axis", "whether a touch moves to another step within the two steps of the difference"
    ),
    "black_box": ("axis", "gradient estimated from values of the loss alone"),
    "touches": (None, "pairs of a point and a step that touch"),
    "faces": (None, "pairs of a face and a frame that are seen"),
}  # fmt: skip
# Where a set differs from that of the next point.
EVENTS = {
    "contact_event": (
        "contact_set",
        "whether the points that touch at all differ from those at the next point",
    ),
    "touch_event": (
        "touch_set", "whether the touches or their steps differ from those at the next point"
    ),
    "visibility_event": (
        "face_set", "whether the faces that are seen differ from those at the next point"
    ),
}  # fmt: skip


def make_dataset(grid: ScanPoints, records: Sequence[dict[str, Any]]) -> xr.Dataset:
    """Return a scan's points as a data set."""
    keys, first, kept = [axis.key for axis in grid.axes], grid.first, grid.kept
    points = sorted(records, key=lambda record: record["index"])
    coords: dict[str, Any] = {
        axis.key: (axis.key, axis.values, {"units": first.unit(axis.key)}) for axis in grid.axes
    }
    coords["parameter"] = [first.labels[i] for i in kept]
    coords["along"] = keys
    if grid.on_problem:
        coords["axis"] = [keys[k] for k in grid.on_problem]
    n_frames = {len(point["frame_loss"]) for point in points if "frame_loss" in point}
    if len(n_frames) == 1:
        coords["frame"] = np.arange(1, max(n_frames) + 1)
    variables: dict[str, Any] = {}
    for name, (dim, text) in NUMBERS.items():
        is_there = name in ("loss", "gradient") or any(
            point.get(name) is not None for point in points
        )
        if name == "reason":
            variables[name] = keys, _over_grid(points, name, grid.shape, "")
        elif is_there and (dim is None or dim in coords):
            empty = np.nan if dim is None else [np.nan] * len(coords[dim])
            dims = keys if dim is None else [*keys, dim]
            values = _over_grid(points, name, grid.shape, empty).astype(float)
            variables[name] = dims, values, {"long_name": text}
    for name, (of, text) in EVENTS.items():
        if any(point.get(of) for point in points):
            sets = xr.DataArray(_over_grid(points, of, grid.shape, ""), dims=keys)
            following = [sets.shift({key: -1}, fill_value="") for key in sets.dims]
            changes = [(sets != "") & (other != "") & (sets != other) for other in following]
            along = xr.concat(changes, "along").transpose(..., "along")
            variables[name] = along.assign_attrs(long_name=text)
    if first.truth is not None:
        variables["truth"] = "parameter", first.truth[kept]
    variables["held"] = "parameter", first.base[kept]
    return xr.Dataset(variables, coords, {"title": grid.scan.title, "scan": grid.scan.name})


def _over_grid(
    points: Sequence[dict[str, Any]], name: str, shape: tuple[int, ...], empty: Any
) -> np.ndarray:
    """Return what every point has of this name; `empty` where it has nothing."""
    values = [empty if point.get(name) is None else point[name] for point in points]
    return np.array(values, object).reshape(*shape, *np.shape(empty))


def read_dataset(folder: RunFolder) -> xr.Dataset:
    """Return the data set of a scan that has ended."""
    with folder.reading(FILE) as path, xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()
