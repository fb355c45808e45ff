"""A scan as one data set with named coordinates: `scan.nc`, which `xarray.open_dataset` opens.

    import xarray
    scan = xarray.open_dataset("scan.nc")
    scan.loss.sel({"beam.mu": 2e5}, method="nearest")
    scan.gradient.sel(parameter="beam.mu")

It is NetCDF-4, and plain HDF5 to other readers. A point without a loss is NaN, and `reason` says
why. `contact_event` and `visibility_event` are those between a point and the next one `along` an
axis.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from studies.runs.folder import RunFolder
from studies.scans.points import shown
from studies.scans.terrain import Grid


FILE = "scan.nc"
LONG = {
    "loss": "loss [-]",
    "gradient": "adjoint gradient of the loss per unit of each parameter",
    "frame_loss": "loss of every frame alone; the loss of images is their mean",
    "difference": "central difference of the loss along each axis that is a parameter",
    "relative": "relative difference of gradient and central difference",
    "shorter": "whether they agree with a shorter step, though not with this one",
    "crosses": "whether a touch moves to another step within the two steps of the difference",
    "kink": "distance to the nearest kink along the axis, to first order",
    "black_box": "gradient estimated from values of the loss alone",
    "touches": "pairs of a point and a step that touch",
    "faces": "pairs of a face and a frame that are seen",
    "contact_event": "whether the points that touch at all differ from those at the next point",
    "touch_event": "whether the touches or their steps differ from those at the next point",
    "visibility_event": "whether the faces that are seen differ from those at the next point",
}
SETS = {"contact_event": "contact_set", "touch_event": "touch_set", "visibility_event": "face_set"}


def make_dataset(grid: Grid, records: Sequence[dict[str, Any]]) -> xr.Dataset:
    """Return a scan's points as a data set."""
    keys, labels = [axis.key for axis in grid.axes], grid.first.labels
    coords: dict[str, Any] = {
        axis.key: (axis.key, axis.values, {"units": grid.first.unit(axis.key)})
        for axis in grid.axes
    }
    at: list[Any] = [None] * int(np.prod(grid.shape))
    for record in records:
        at[int(np.ravel_multi_index(record["index"], grid.shape))] = record
    build = _Builder(grid.shape, keys, at)
    coords["parameter"] = [labels[i] for i in shown(grid)]
    coords["along"] = keys
    if grid.on_problem:
        coords["axis"] = [keys[k] for k in grid.on_problem]
    variables = build.all()
    if "frame_loss" in variables:
        coords["frame"] = np.arange(1, variables["frame_loss"][1].shape[-1] + 1)
    if grid.first.truth is not None:
        variables["truth"] = ("parameter", grid.first.truth[shown(grid)])
    variables["held"] = ("parameter", grid.first.base[shown(grid)])
    data = xr.Dataset(variables, coords)
    for name, text in LONG.items():
        if name in data:
            data[name].attrs["long_name"] = text
    data.attrs |= {"title": grid.scan.title, "scan": grid.scan.name}
    return data


class _Builder:
    """Turns records, one for each point of the grid, into arrays."""

    def __init__(self, shape: tuple[int, ...], keys: list[str], at: list[dict[str, Any]]) -> None:
        self._shape, self._keys, self._at = shape, keys, at

    def all(self) -> dict[str, Any]:
        """Return the variables that some point has."""
        found: dict[str, Any] = {
            "loss": self.numbers("loss"),
            "gradient": self.vectors("gradient", "parameter"),
            "reason": (self._keys, self.each(lambda one: one["reason"] or "", object)),
        }
        if len({len(one["frame_loss"]) for one in self._at if "frame_loss" in one}) == 1:
            found["frame_loss"] = self.vectors("frame_loss", "frame")
        own = ("difference", "relative", "shorter", "kink", "crosses", "black_box")
        found |= {name: self.vectors(name, "axis") for name in own if self._has(name)}
        found |= {name: self.numbers(name) for name in ("touches", "faces") if self._has(name)}
        for name, of in SETS.items():
            if self._has(of):
                found[name] = ((*self._keys, "along"), self.changes(of))
        return found

    def each(self, value: Callable[[dict[str, Any]], Any], dtype: Any) -> np.ndarray:
        """Return a value of every point."""
        return np.array([value(one) for one in self._at], dtype).reshape(self._shape)

    def numbers(self, name: str) -> tuple[Any, np.ndarray]:
        """Return a number of every point; NaN where it has none."""
        return self._keys, self.each(lambda one: one.get(name), float)

    def vectors(self, name: str, dim: str) -> tuple[Any, np.ndarray]:
        """Return some numbers of every point; NaN where it has none."""
        n = next((len(one[name]) for one in self._at if name in one), 0)
        rows = [one.get(name) or [None] * n for one in self._at]
        return (*self._keys, dim), np.array(rows, float).reshape(*self._shape, n)

    def _has(self, name: str) -> bool:
        return any(one.get(name) is not None for one in self._at)

    def changes(self, name: str) -> np.ndarray:
        """Return whether a set differs from that of the next point along each axis."""
        names = self.each(lambda one: one.get(name) or "", object)
        found = np.zeros((*self._shape, len(self._shape)), bool)
        for k in range(len(self._shape)):
            here, there = np.moveaxis(names, k, 0)[:-1], np.moveaxis(names, k, 0)[1:]
            known = (here != "") & (there != "")
            np.moveaxis(found[..., k], k, 0)[:-1] = known & (here != there)
        return found


def write_dataset(folder: RunFolder, data: xr.Dataset) -> None:
    """Write a data set."""
    with folder.replacing(FILE) as part:
        data.to_netcdf(part, engine="h5netcdf")


def read_dataset(path: Path) -> xr.Dataset:
    """Return a data set, read whole."""
    with xr.open_dataset(path, engine="h5netcdf") as data:
        return data.load()
