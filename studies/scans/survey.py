"""Points of a scan as pieces of work: pure, to be made here or by another process.

A piece is the indices of a few points that share their settings. A process keeps the grid of
the scan, and the problem of the last settings, for the next piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from math import ceil
from typing import Any
from uuid import uuid4

import numpy as np

from studies.problem.worlds import Failure, Sample, worlds_at_once
from studies.scans.spec import Scan
from studies.scans.terrain import ScanPoints, Terrain, make_grid
from studies.scans.trust import compare, estimates, events


Index = tuple[int, ...]
MOST_POINTS = 16  # of a piece, so that a stopped scan loses little
EACH = 4  # pieces for each of several workers, at least, so that all end at about the same time


@dataclass(frozen=True)
class Survey:
    """A scan that is made once; another one of the same settings is not equal to it."""

    scan: Scan = field(compare=False)
    token: str = field(default_factory=lambda: uuid4().hex)

    @property
    def grid(self) -> ScanPoints:
        """The grid; raises as `make_grid` does."""
        return _grid(self)

    def pieces(self, left: Sequence[Index], workers: int = 1) -> list[tuple[Index, ...]]:
        """Cut points into pieces, in their order."""
        grid = self.grid
        motion = grid.first.problem.motion_at(grid.first.base)
        most = min(MOST_POINTS, worlds_at_once(motion, keeps=True))
        if workers > 1:
            most = min(most, max(1, ceil(len(left) / (EACH * workers))))
        alike = (list(group) for _, group in groupby(left, lambda index: str(grid.settings(index))))
        return [tuple(group[k : k + most]) for group in alike for k in range(0, len(group), most)]

    def __call__(self, piece: Sequence[Index]) -> list[dict[str, Any]]:
        """Return what is kept of the points of a piece; without a problem, the reason of each."""
        terrain = _terrain(self, tuple(self.grid.settings(piece[0]).items()))
        if isinstance(terrain, str):
            return [{"index": list(index), "reason": terrain} for index in piece]
        return _make_points(self.grid, terrain, piece)


@lru_cache(maxsize=1)
def _grid(survey: Survey) -> ScanPoints:
    return make_grid(survey.scan)


@lru_cache(maxsize=1)
def _terrain(survey: Survey, changed: tuple[tuple[str, Any], ...]) -> Terrain | str:
    """Return the problem with these settings, or why there is none."""
    try:
        return survey.grid.terrain(dict(changed))
    except (ValueError, ArithmeticError) as error:
        return str(error) or type(error).__name__


def _make_points(
    grid: ScanPoints, terrain: Terrain, indices: Sequence[Index]
) -> list[dict[str, Any]]:
    points = [grid.natural(terrain, index) for index in indices]
    records: list[dict[str, Any]] = [{"index": list(index)} for index in indices]
    samples: dict[int, Sample] = {}
    for k, sample in enumerate(terrain.samples(points)):
        if isinstance(sample, Failure):
            records[k]["reason"] = sample.reason
        else:
            samples[k] = sample
            records[k] |= {
                "reason": None,
                "loss": sample.loss,
                "gradient": _plain(sample.gradient[grid.kept]),
                "frame_loss": _plain(sample.frame_loss),
            }
    if not samples:
        return records
    sampled_points = [points[k] for k in samples]
    steps = [terrain.problem.with_rounded_steps(point).steps for point in sampled_points]
    if grid.scan.trust and grid.on_problem:
        compared = compare(grid, terrain, sampled_points, list(samples.values()), steps=steps)
        for k, comparison in zip(samples, compared, strict=True):
            records[k] |= {name: _plain(value) for name, value in vars(comparison).items()}
    if grid.scan.trust:
        for k, point, step in zip(samples, sampled_points, steps, strict=True):
            records[k] |= events(replace(terrain.problem, steps=step), point)
    if grid.scan.black_box is not None and grid.on_problem:
        numbers = [int(np.ravel_multi_index(indices[k], grid.shape)) for k in samples]
        drawn = estimates(grid, terrain, sampled_points, numbers, steps=steps)
        for k, estimate in zip(samples, drawn, strict=True):
            records[k]["black_box"] = _plain(estimate)
    return records


def _plain(values: np.ndarray) -> list[Any]:
    """Return numbers ready for JSON; null where they are not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
