"""The evaluations of a search as a run folder keeps them: one line of a log for each."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.runs.contents import EvaluationRecord
from studies.runs.files import read_records


@dataclass(frozen=True)
class Evaluation:
    """One answer to an optimizer: `kind` is gradient, residual or jacobian, or beside: a gradient
    that a difference takes near theta.

    `cost` counts rollouts, `spent` all of the run so far. A loss that is not finite is
    inf. `jacobian` is reduced, `(n + 1, n)`. `stage` names the stage of a search that has several.
    """

    kind: str
    theta: np.ndarray
    loss: float
    gradient: np.ndarray | None
    jacobian: np.ndarray | None
    values: dict[str, Any]
    cost: int
    spent: int
    seconds: float
    stage: str = ""

    @property
    def gradient_norm(self) -> float | None:
        """Norm of the loss's gradient in theta, where it is known."""
        return None if self.gradient is None else float(np.linalg.norm(self.gradient))

    def to_record(self) -> dict[str, Any]:
        """Return a record of the log."""
        return {
            **({"stage": self.stage} if self.stage else {}),
            "kind": self.kind,
            "spent": self.spent,
            "cost": self.cost,
            "loss": self.loss if np.isfinite(self.loss) else None,
            "gradient_norm": self.gradient_norm,
            "values": self.values,
            "theta": self.theta.tolist(),
            "gradient": None if self.gradient is None else self.gradient.tolist(),
            "jacobian": None if self.jacobian is None else self.jacobian.tolist(),
            "seconds": self.seconds,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Evaluation":
        """Return the evaluation of a record of the log."""
        keys = ("kind", "values", "cost", "spent", "seconds")
        plain: dict[str, Any] = {key: record[key] for key in keys}
        for key in ("theta", "gradient", "jacobian"):
            plain[key] = None if record[key] is None else np.array(record[key])
        loss = np.inf if record["loss"] is None else record["loss"]
        return cls(**plain, loss=loss, stage=record.get("stage", ""))


def read_log(path: Path, *, cut: bool = False) -> list[Evaluation]:
    """Return the evaluations logged so far; `cut` as `read_records` takes it."""
    records = read_records(path, EvaluationRecord, cut=cut)
    return [Evaluation.from_record(record) for record in records]
