"""What the grid of a scan says of its loss: minima, where the truth lies, and trust.

A local minimum is a point lower than every neighbour, diagonal ones too; one at the border of the
grid may go on falling outside. Settings make problems of their own: each combination of them is
looked at alone, a slice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from scipy.ndimage import minimum_filter

from studies.reports.curves import hermite_curve, hermite_minimum, hermite_surface
from studies.reports.numbers import number
from studies.scans.spec import Axis, Scan
from studies.scans.trust import AGREES


Index = tuple[int, ...]
NEAR = 1e-9  # steps of the grid that count as none
FINE = 200  # points of a surface along each axis
# Why gradient and difference disagree, see `agreement`.
REASONS = {
    "jumps": "a pixel jumps within the step, and a shorter one agrees",
    "crosses": "a touch moves to another time step within it",
    "differ": "no reason was found",
}


@dataclass(frozen=True, eq=False)
class Slice:
    """The points that share their settings, by key; of a scan over settings alone, all points."""

    settings: dict[str, float]
    axes: tuple[Axis, ...]  # the other ones
    data: xr.Dataset

    @property
    def keys(self) -> list[str]:
        """The keys of the axes."""
        return [axis.key for axis in self.axes]

    @property
    def loss(self) -> np.ndarray:
        """Losses over the axes; NaN where there is none."""
        return self.data.loss.transpose(*self.keys).values

    @property
    def truth(self) -> dict[str, float] | None:
        """The hidden values along the axes, by key; None where they are not known."""
        if "truth" not in self.data or not set(self.keys) <= set(self.data.parameter.values):
            return None
        return {key: float(self.data.truth.sel(parameter=key)) for key in self.keys}

    def truth_inside(self) -> dict[str, float] | None:
        """Return the hidden values along the axes, None where they are not inside the grid."""
        return self.truth if self.holds_truth() else None

    def to_draw(self) -> "Slice":
        """Return the slice without its axes of one value, but with one axis at least."""
        wide = tuple(axis for axis in self.axes if axis.count > 1) or self.axes[:1]
        held = {axis.key: 0 for axis in self.axes if axis not in wide}
        return replace(self, axes=wide, data=self.data.isel(held))

    def at(self, index: Index) -> dict[str, float]:
        """Return the values of a point by key."""
        places = zip(self.axes, index, strict=True)
        return {axis.key: float(axis.values[i]) for axis, i in places}

    @property
    def has_gradient(self) -> bool:
        """Whether the axes are parameters of the problem; a setting has no gradient."""
        return "gradient" in self.data and set(self.keys) <= set(self.data.parameter.values)

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return places along the only axis, and the loss there: cubic through losses and slopes.

        Straight from point to point where there are no slopes.
        """
        (axis,) = self.axes
        if not self.has_gradient:
            return axis.values, self.loss
        shares = np.linspace(0.0, 1.0, axis.count)
        fine, loss = hermite_curve(shares, self.loss, per_axis(self.axes, self.data.gradient)[:, 0])
        return axis.at(fine), loss

    def surface(self, *shares: np.ndarray) -> np.ndarray:
        """Return the smooth surface through losses and slopes over two axes, (n, m).

        `shares`, (n,) and (m,), are those of the way along each axis. Without slopes they are
        estimated from the losses.
        """
        grid = [np.linspace(0.0, 1.0, axis.count) for axis in self.axes]
        points, at = (np.stack(np.meshgrid(*s, indexing="ij"), axis=-1) for s in (grid, shares))
        slopes = np.full(points.shape, np.nan)
        if self.has_gradient:
            slopes = per_axis(self.axes, self.data.gradient.transpose(*self.keys, ...))
        return hermite_surface(points.reshape(-1, 2), self.loss.ravel(), slopes.reshape(-1, 2), at)

    def minimum(self) -> dict[str, float] | None:
        """Return where the curve or surface through losses and slopes is lowest.

        To three digits, and to a thousandth of the axis. None over settings, over more than two
        axes, and where there is no curve.
        """
        drawable = self.to_draw()
        axes = drawable.axes
        if not drawable.has_gradient or len(axes) > 2 or min(axis.count for axis in axes) < 2:
            return None
        if len(axes) == 1:
            shares = np.linspace(0.0, 1.0, axes[0].count)
            slopes = per_axis(axes, drawable.data.gradient)[:, 0]
            lowest = hermite_minimum(shares, drawable.loss, slopes)
            place = None if lowest is None else [lowest.at]
        else:
            place = drawable._lowest_of_surface()
        if place is None:
            return None
        values = {}
        for axis, share in zip(axes, place, strict=True):
            value, least = float(axis.at(np.array(share))), 1e-3 * abs(axis.stop - axis.start)
            digits = max(3, int(np.ceil(np.log10(max(abs(value) / least, 1.0)))))
            values[axis.key] = float(f"{value:.{digits}g}")
        return values

    def _lowest_of_surface(self) -> list[float] | None:
        """Return the shares of the axes at which the surface is lowest: on a grid, and a finer."""
        shares, place = [np.linspace(0.0, 1.0, FINE + 1)] * 2, []
        for _ in range(2):
            loss = self.surface(*shares)
            if not np.isfinite(loss).any():
                return None
            index = np.unravel_index(np.nanargmin(loss), loss.shape)
            place = [float(share[i]) for share, i in zip(shares, index, strict=True)]
            shares = [np.clip(np.linspace(s - 1.0 / FINE, s + 1.0 / FINE, 21), 0, 1) for s in place]
        return place

    def lowest(self) -> Index | None:
        """Return the index of the lowest point; None where no point has a loss."""
        loss = self.loss
        if not np.isfinite(loss).any():
            return None
        return tuple(int(i) for i in np.unravel_index(np.nanargmin(loss), loss.shape))

    def is_on_border(self, index: Index) -> bool:
        """Whether a point is the first or last along an axis."""
        places = zip(self.axes, index, strict=True)
        return any(i in {0, axis.count - 1} for axis, i in places if axis.count > 1)

    def local_minima(self) -> list[Index]:
        """Return the points lower than all their neighbours."""
        loss = np.where(np.isfinite(self.loss), self.loss, np.inf)
        beside = np.ones((3,) * loss.ndim, bool)
        beside[(1,) * loss.ndim] = False
        lowest = minimum_filter(loss, footprint=beside, mode="constant", cval=np.inf)
        return [tuple(index) for index in np.argwhere(loss < lowest).tolist()]

    def steps_from_truth(self, index: Index) -> tuple[float, ...] | None:
        """Return how many steps of the grid a point is from the truth, along every axis."""
        truth = self.truth
        if truth is None:
            return None
        places = zip(self.axes, index, strict=True)
        return tuple(abs(axis.place(truth[axis.key]) - i) for axis, i in places)

    def is_beside(self, index: Index) -> bool | None:
        """Whether a point is one of those around the truth, or next to one, along every axis.

        Along an axis that has the truth as a value that is one step, else less than two: any of
        the points around it may be above the next one in a valley askew to the grid.
        """
        steps = self.steps_from_truth(index)
        if steps is None:
            return None
        most = (1.0 + NEAR if abs(step - round(step)) <= NEAR else 2.0 for step in steps)
        return all(step <= limit for step, limit in zip(steps, most, strict=True))

    def holds_truth(self) -> bool | None:
        """Whether the truth is inside the grid."""
        truth = self.truth
        if truth is None:
            return None
        places = [(axis.place(truth[axis.key]), axis.count - 1) for axis in self.axes]
        return all(-NEAR <= at <= last + NEAR for at, last in places)

    def record(self) -> dict[str, Any]:
        """Return the lowest point, the truth and the minima as plain values."""
        record: dict[str, Any] = {"settings": self.settings, "lowest": None, "truth": self.truth}
        lowest = self.lowest()
        if lowest is None:
            return {**record, "local_minima": []}
        return {
            **record,
            "lowest": self.at(lowest),
            "loss": float(self.loss[lowest]),
            "on_border": self.is_on_border(lowest),
            "minimum": self.minimum(),
            "truth_inside": self.holds_truth(),
            "steps_from_truth": self.steps_from_truth(lowest),
            "beside": self.is_beside(lowest),
            "local_minima": [
                {"at": self.at(i), "loss": float(self.loss[i]), "on_border": self.is_on_border(i)}
                for i in self.local_minima()
            ],
        }


def slices(scan: Scan, data: xr.Dataset) -> Iterator[Slice]:
    """Yield the points of a scan, those of each combination of settings for themselves."""
    on_problem = set(data.axis.values) if "axis" in data.coords else set()
    settings = [axis for axis in scan.axes if axis.key not in on_problem]
    if not on_problem or not settings:
        yield Slice({}, scan.axes, data)
        return
    others = tuple(axis for axis in scan.axes if axis.key in on_problem)
    for index in product(*(range(axis.count) for axis in settings)):
        chosen = {axis.key: i for axis, i in zip(settings, index, strict=True)}
        values = {axis.key: float(axis.values[chosen[axis.key]]) for axis in settings}
        yield Slice(values, others, data.isel(chosen))


def agreement(data: xr.Dataset, key: str, tolerance: float) -> dict[str, xr.DataArray]:
    """Return at which points gradient and difference along an axis agree, or why they do not."""
    along = data[["relative", "shorter", "crosses"]].sel(axis=key)
    agree = along.relative <= tolerance
    apart = np.isfinite(along.relative) & ~agree
    jumps, crosses = apart & (along.shorter == 1.0), apart & (along.crosses == 1.0)
    return {
        "agree": agree,
        "jumps": jumps,
        "crosses": crosses & ~jumps,
        "differ": apart & ~jumps & ~crosses,
    }


def per_axis(axes: Sequence[Axis], field: xr.DataArray) -> np.ndarray:
    """Return derivatives along axes per length of each, as it is drawn: (..., n_axes).

    `field` has the derivatives per unit along its last dimension; of a logarithmic axis the
    length is counted in its logarithm.
    """
    parts = []
    for axis in axes:
        derivative = field.sel({str(field.dims[-1]): axis.key})
        length = np.log(axis.stop / axis.start) if axis.is_log else axis.stop - axis.start
        rate = derivative[axis.key] * length if axis.is_log else length
        parts.append((derivative * rate).transpose(*field.dims[:-1]).values)
    return np.stack(parts, axis=-1)


def cosines(axes: Sequence[Axis], data: xr.Dataset) -> np.ndarray:
    """Return the cosine between a black box's estimate and the gradient, at every point."""
    compared = [axis for axis in axes if axis.key in data.axis.values]
    estimate, exact = per_axis(compared, data.black_box), per_axis(compared, data.gradient)
    length = np.linalg.norm(estimate, axis=-1) * np.linalg.norm(exact, axis=-1)
    out = np.full(length.shape, np.nan)
    np.divide((estimate * exact).sum(axis=-1), length, out=out, where=length > 0.0)
    return np.clip(out, -1.0, 1.0)


def summary(scan: Scan, data: xr.Dataset) -> dict[str, Any]:
    """Return what a scan found, as plain values and as sentences."""
    parts = [scan_slice.record() for scan_slice in slices(scan, data)]
    units, trust = units_of(data), _trust(scan, data)
    failed = int(np.sum(data.reason.values != ""))
    sentences = [_told(record, units) for record in parts]
    if failed:
        first = np.argwhere(data.reason.values != "")[0]
        where = named(Slice({}, scan.axes, data).at(tuple(first)), units)
        sentences.append(
            f"{failed} of {data.loss.size} points {'has' if failed == 1 else 'have'} no loss; "
            f"that at {where}: {data.reason.values[tuple(first)]}"
        )
    sentences += [
        f"Along {axis} gradient and central difference agree to {trust['tolerance']:.0e} at "
        f"{counts['agree']} of {counts['compared']} points" + because(counts)
        for axis, counts in trust["axes"].items()
    ]
    return {
        "points": data.loss.size,
        "failed": failed,
        "slices": parts,
        "trust": trust,
        "told": sentences,
    }


def _trust(scan: Scan, data: xr.Dataset) -> dict[str, Any]:
    """Return at how many points gradient and difference agree, axis by axis."""
    tolerance = AGREES[scan.options.dtype]
    axes: dict[str, Any] = {}
    for name in data.axis.values if "relative" in data else ():
        kinds = agreement(data, name, tolerance)
        axes[str(name)] = {
            "compared": int(np.isfinite(data.relative.sel(axis=name)).sum()),
            **{kind: int(kinds[kind].sum()) for kind in ("agree", "jumps", "crosses")},
        }
    return {"tolerance": tolerance, "axes": axes}


def because(counts: dict[str, Any]) -> str:
    """Return in words why gradient and difference disagree at some points of an axis."""
    left = counts["compared"] - counts["agree"] - counts["jumps"] - counts["crosses"]
    parts = {**counts, "differ": left}
    return "".join(f"; at {parts[kind]} {text}" for kind, text in REASONS.items() if parts[kind])


def _told(record: dict[str, Any], units: Mapping[str, str]) -> str:
    text = "no point has a loss"
    if record["lowest"] is not None:
        border = sum(minimum["on_border"] for minimum in record["local_minima"])
        inside = len(record["local_minima"]) - border
        text = f"the lowest point is {named(record['lowest'], units)} (loss {record['loss']:.2e})"
        if record["minimum"]:
            text = (
                f"{through(record)} has its minimum at {named(record['minimum'], units)}; "
                + text.replace("lowest", "lowest computed", 1)
            )
        text += ", on the border of the grid" if record["on_border"] else ""
        if record["truth"] is not None:
            text += f"; the truth is at {named(record['truth'], units)}, {where_truth_is(record)}"
        text += f"; {inside} local {'minimum' if inside == 1 else 'minima'} inside"
        text += f", {border} at the border" if border else ""
    where = named(record["settings"], units)
    return f"{where}: {text}" if where else text[0].upper() + text[1:]


def through(record: Mapping[str, Any]) -> str:
    """Return in words what the minimum of a slice is the minimum of."""
    shape = "curve" if len(record["minimum"]) == 1 else "surface"
    return f"the {shape} through losses and slopes"


def where_truth_is(record: Mapping[str, Any]) -> str:
    """Return in words where the truth of a slice is from the grid and its lowest point."""
    return f"{nearness(record)} the lowest point" if record["truth_inside"] else "outside the grid"


def nearness(record: Mapping[str, Any]) -> str:
    """Return in words how far truth and lowest point of a slice are from each other."""
    if max(record["steps_from_truth"]) <= NEAR:
        return "at"
    return "next to" if record["beside"] else "not at"


def named(values: Mapping[str, float], units: Mapping[str, str]) -> str:
    """Return values by key in words, with their units where these are known."""
    parts = (f"{key} = {number(value)} {units.get(key, '')}" for key, value in values.items())
    return ", ".join(text.rstrip() for text in parts)


def units_of(data: xr.Dataset) -> dict[str, str]:
    """Return the unit of every axis; empty where it has none."""
    return {str(key): str(data[key].attrs.get("units", "")) for key in data.along.values}
