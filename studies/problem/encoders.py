r"""Encoders as observations: the angle of a hinge or the length of a slider over time.

Body A (or the world) carries the points o, o + u and o + v, and B the points q and q + w; all of
them are weighted sums of vertices, and at the start o = q is the anchor. With u x v along the axis
of a hinge, u along that of a slider, and w = u at the start,

    angle = atan2(w . v, w . u)         length = (q - o) . u

What an encoder says is that and its `offset`. An angle counts up to whole turns: its row is the
nearest to what was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from studies.problem.observers import Back, Moved, NumberObserver, RecordedPrediction, Values
from studies.scene.maps import Value


TURN = 360.0  # [deg]


@dataclass(frozen=True, eq=False)
class EncoderObserver(NumberObserver):
    """What the encoder of a joint measured."""

    KIND, BY_FRAME, IS_CARRIED = "encoder", "measured", True

    measured: np.ndarray  # (n_frames,) [deg] of a hinge, [m] of a slider
    offset: float  # what it says where the joint is at 0 [unit]; free as "observations.NAME.offset"
    unit: str
    factor: float  # [deg/unit] or [m/unit]
    is_hinge: bool
    # what moves: vertices to the three points of A, if it is a body, and of B, (3, n_vertices)
    weights: Mapping[str, np.ndarray]
    points: np.ndarray  # the three points at the start, (3, 3) [m]

    @property
    def offset_path(self) -> str:
        """Path of the offset."""
        return f"observations.{self.name}.offset"

    def values(self) -> dict[str, Value]:
        """Return its start and its offset, which may be free."""
        half = TURN / 2 / self.factor if self.is_hinge else np.inf
        bounds = (self.offset - half, self.offset + half)
        offset = Value(np.asarray(self.offset), self.unit, "linear", bounds)
        return {**super().values(), self.offset_path: offset}

    def targets(self) -> np.ndarray:
        return np.pad(self.measured[:, None], [(0, 0), (0, 2)])

    def simulated(self, rows: np.ndarray) -> Self:
        return replace(self, measured=rows[:, 0].copy())

    def fields(self, moved: Moved) -> Moved:
        return {name: moved[name] for name in self.weights}

    def carried_as(self, other: "EncoderObserver") -> Self:
        return replace(self, weights=other.weights)

    def _points(self, seen: Moved, otherwise: np.ndarray) -> list[np.ndarray]:
        """Return the points of A and of B, (n_frames, 3, 3); those of the world are given."""
        ends = [self.weights[k] @ np.asarray(seen[k], np.float64) for k in self.weights]
        return ends if len(ends) == 2 else [np.broadcast_to(otherwise, ends[0].shape), *ends]

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:
        offset = self.factor * float(values.get(self.offset_path, self.offset))
        a, b = self._points(seen, self.points)
        u, v, w, q = a[:, 1] - a[:, 0], a[:, 2] - a[:, 0], b[:, 1] - b[:, 0], b[:, 0] - a[:, 0]
        slopes_a, slopes_b = np.zeros(a.shape), np.zeros(a.shape)  # of the row by the points
        if self.is_hinge:
            s, c = np.einsum("ij,ij->i", w, v), np.einsum("ij,ij->i", w, u)
            row = offset + np.degrees(np.arctan2(s, c))
            row = row + TURN * np.rint((self.measured - row) / TURN)
            of_s, of_c = (np.degrees(x / (s * s + c * c))[:, None] for x in (c, -s))
            slopes_a[:, 1], slopes_a[:, 2] = of_c * w, of_s * w
            slopes_b[:, 1] = of_s * v + of_c * u
        else:
            row = offset + np.einsum("ij,ij->i", q, u)
            slopes_a[:, 1], slopes_b[:, 0] = q, u
        # a row does not change where both move as one
        slopes_b[:, 0] -= slopes_b[:, 1]
        slopes_a[:, 0] = -(slopes_a[:, 1] + slopes_a[:, 2] + slopes_b.sum(axis=1))

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            tangents = {k: tan.get(k, np.zeros_like(seen[k])) for k in self.weights}
            tan_a, tan_b = self._points(tangents, np.zeros((3, 3)))
            pushed = np.einsum("ijk,ijk->i", slopes_a, tan_a)
            pushed = pushed + np.einsum("ijk,ijk->i", slopes_b, tan_b)
            pushed = pushed + self.factor * tan_values.get(self.offset_path, 0.0)
            return np.pad(pushed[:, None], [(0, 0), (0, 3)])

        def vjp(adj_rows: np.ndarray) -> Back:
            slopes = [slopes_a, slopes_b][-len(self.weights) :]
            adj = adj_rows[:, :1, None]
            pairs = zip(self.weights, slopes, strict=True)
            back = {k: self.weights[k].T @ (adj * slope) for k, slope in pairs}
            return back, {self.offset_path: self.factor * adj.sum()}

        return RecordedPrediction(np.pad(row[:, None], [(0, 0), (0, 3)]), jvp, vjp)

    def curves(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        n = len(rows)
        label = "angle [deg]" if self.is_hinge else "length [m]"
        return {
            "times": self.times[:n], "observed": self.measured[:n, None, None],
            "predicted": rows[:, None, :1], "labels": np.array([label]),
        }  # fmt: skip
