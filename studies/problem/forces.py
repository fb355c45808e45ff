"""The force of a grip or an obstacle over time as an observation."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from studies.problem.observers import Back, MeasuredObserver, Moved, RecordedPrediction, Values


THOUSAND = 1000.0  # between newtons, and milli- or kilonewtons
NEAR = 3.0  # times: as near to a thousand as start values let one tell a unit
OPPOSITE = -0.8  # cosine of the angle between two series: the one is the other reversed


@dataclass(frozen=True, eq=False)
class ForceObserver(MeasuredObserver):
    """What a load cell reads: three components, or one along an axis."""

    KIND, BY_FRAME = "force", "forces"

    forces: np.ndarray  # (n_frames, 3), or (n_frames, 1) along `axis` [N]
    axis: np.ndarray | None = None  # unit vector, (3,)

    def targets(self) -> np.ndarray:
        return _padded(self.forces, 3)

    def simulated(self, rows: np.ndarray) -> Self:
        return replace(self, forces=rows[:, : self.forces.shape[1]])

    def doubts(self, rows: np.ndarray) -> list[str]:
        """Return whether the cell likely reads the other way, or in another unit than newtons."""
        measured, simulated = self.targets(), rows[:, :3]
        sizes = np.linalg.norm(measured), np.linalg.norm(simulated)
        if not min(sizes) > 0.0:
            return []
        notes, key = [], f"`observations.{self.name}`"
        if np.vdot(measured, simulated) < OPPOSITE * sizes[0] * sizes[1]:
            turn = "the sign of its columns" if self.axis is None else "`axis`"
            notes.append(
                f"The force of {key} has the other sign than the scene's at its start values: "
                f"reverse {turn}."
            )
        ratio = float(sizes[0] / sizes[1])
        for what, unit, change in (
            (ratio / THOUSAND, "mN", "large as the scene's at its start values: divide"),
            (ratio * THOUSAND, "kN", "small as the scene's at its start values: multiply"),
        ):
            if 1.0 / NEAR < what < NEAR:
                notes.append(
                    f"The force of {key} is about 1000 times as {change} it by 1000 if it is in "
                    f"{unit}; else check the units of the scene."
                )
        return notes

    def curves(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the forces over time; of a prediction of fewer frames, of these."""
        n, k = len(rows), self.forces.shape[1]
        names = ("force",) if self.axis is not None else [f"force along {name}" for name in "xyz"]
        labels = np.array([f"{name} [N]" for name in names])
        return {
            "times": self.times[:n], "observed": self.forces[:n, None],
            "predicted": rows[:, None, :k], "labels": labels,
        }  # fmt: skip

    def fields(self, moved: Moved) -> Moved:
        return {self.sensor: moved[self.sensor]}

    def shown(self, seen: Moved, values: Values) -> RecordedPrediction:

        def jvp(tan: Moved, tan_values: Values) -> np.ndarray:
            del tan_values
            tan_force = tan.get(self.sensor)
            return np.zeros((len(self.times), 4)) if tan_force is None else self._read(tan_force)

        def vjp(adj_rows: np.ndarray) -> Back:
            along = adj_rows[:, :3] if self.axis is None else adj_rows[:, :1] * self.axis
            return {self.sensor: along[:, None]}, {}

        return RecordedPrediction(self._read(seen[self.sensor]), jvp, vjp)

    def _read(self, force: np.ndarray) -> np.ndarray:
        """Return forces (n_frames, 1, 3) as rows, along the axis if there is one."""
        rows = force[:, 0] if self.axis is None else force[:, 0] @ self.axis[:, None]
        return _padded(rows, 4)


def _padded(rows: np.ndarray, n: int) -> np.ndarray:
    """Return rows with zeros behind them, (n_rows, n)."""
    return np.pad(rows, ((0, 0), (0, n - rows.shape[1])))
