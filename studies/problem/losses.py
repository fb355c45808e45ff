r"""Residuals, priors and losses of what was observed of a scene.

Priors are rows of the residuals too: r = (theta - mean)/(error sqrt(EVIDENCE)), as if an
observation were as much evidence as EVIDENCE independent numbers.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjoint.inspector import Inspection
from adjsim.jit.backend import thread_count
from adjsim.jit.device_arrays import joined, to_host
from studies.optimizers.jacobian import Jacobian
from studies.problem.free import ShapeLosses
from studies.problem.observers import SEEN, Observer, ReachedResiduals
from studies.problem.predict import ScenePredictor, cut
from studies.problem.scene_maps import SceneMaps
from studies.scene.motion import inspect_frames, pull_frames


EVIDENCE = 1000.0
# an observation, its predictions, and the cotangent of these, (n_rows, 4)
Judged = tuple[Observer, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class SceneLosses(ScenePredictor):
    """Compare predictions with what was observed."""

    shapes: tuple[ShapeLosses, ...] = ()  # of vertices that are free

    @property
    def loss(self) -> str:
        """What is compared, in words."""
        return ", ".join(f"{observer.KIND} `{observer.name}`" for observer in self.observers)

    @property
    def targets(self) -> np.ndarray:
        """What was observed, (n_rows, 3)."""
        return np.concatenate([observer.targets() for observer in self.observers])

    # Residuals of predictions

    def residuals_of(self, images: np.ndarray) -> np.ndarray:
        """Return r of predictions, without priors."""
        return joined([observer.residuals(rows) for observer, rows in self.by_observer(images)])

    def residuals_cotangent(self, images: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the cotangent of predictions, in as many columns as they have."""
        rows = [observer.residuals_vjp(adj) for observer, adj in self.by_residuals(adj_r)]
        return joined(rows)[:, : images.shape[-1]]

    def reached_cotangent(self, images: Any, r: Any) -> Any:
        """Return the gradient of r @ r in the predictions, as far as theta may change these."""
        if not isinstance(images, np.ndarray):  # on a device all of it is as fast
            return self.residuals_cotangent(images, 2.0 * r)
        rows = []
        for (observer, predicted), (_, of_observer) in zip(
            self.by_observer(images), self.by_residuals(r), strict=True
        ):
            reached = observer.reached(predicted, len(of_observer))
            rows.append(reached.vjp(2.0 * of_observer[reached.rows]))
        return joined(rows)[:, : images.shape[-1]]

    def residual_counts(self) -> list[int]:
        """Return how many residuals every observer has, without priors."""
        counts = []
        for observer in self.observers:  # as many in every frame: one is enough to count them
            first = observer.between(np.arange(len(observer.times)) == 0)
            blank = np.zeros((observer.rows_per_frame(), 4))
            counts.append(len(observer.times) * len(first.residuals_jvp(blank)))
        return counts

    def reached(
        self, predicted: Sequence[np.ndarray]
    ) -> tuple[list[ReachedResiduals], list[np.ndarray]]:
        """Return the residuals of every observer that theta may change, and their numbers in r."""
        counts = self.residual_counts()
        observed = zip(self.observers, predicted, counts, strict=True)
        blocks = [observer.reached(rows, count) for observer, rows, count in observed]
        starts = np.cumsum(counts) - counts
        return blocks, [first + each.rows for first, each in zip(starts, blocks, strict=True)]

    def by_residuals(self, r: np.ndarray) -> list[tuple[Observer, np.ndarray]]:
        """Return every observer with its part of the residuals, without priors."""
        return list(zip(self.observers, cut(r, self.residual_counts()), strict=True))

    def loss_of(self, images: np.ndarray) -> float:
        """Return r @ r, without priors."""
        return _sum_of_squares(self.residuals_of(images))

    def judge(self, images: Any) -> tuple[float, Any]:
        """Return r @ r, and its gradient in the predictions, as far as theta may change these."""
        r = self.residuals_of(images)
        return _sum_of_squares(r), self.reached_cotangent(images, r)

    def frame_losses(self, images: np.ndarray) -> np.ndarray:
        """Return the loss of every instant alone, (n_frames,): what is observed then."""
        return self.frame_losses_of(self.residuals_of(images))

    def frame_losses_of(self, r: np.ndarray) -> np.ndarray:
        """Return the loss of every instant alone from residuals without priors, (n_frames,)."""
        # the loss of an observation is a mean over its frames: alone, a frame counts whole
        squares, parts = np.zeros(self.n_frames), np.zeros(self.n_frames)
        for observer, residuals in self.by_residuals(r):
            by_frame = residuals.reshape(len(observer.times), -1)
            np.add.at(squares, observer.index, np.einsum("ij,ij->i", by_frame, by_frame))
            np.add.at(parts, observer.index, 1.0 / len(observer.times))
        return squares / np.where(parts > 0.0, parts, 1.0)

    # Of theta

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Return r at theta; the last rows are the priors."""
        return self.with_priors(theta, to_host(self.residuals_of(self._rows(theta))))

    def with_priors(self, theta: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return r of predictions with the rows of the priors at theta behind it."""
        return np.concatenate([r, self._prior(theta)[0]])

    def _prior(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals of the priors, 0 where there is none, and their slopes."""
        scale = 1.0 / (self.parameters.prior_error * np.sqrt(EVIDENCE))
        return scale * (theta - self.parameters.prior_mean), scale

    def residuals_jvp(self, theta: np.ndarray, tan_theta: np.ndarray) -> np.ndarray:
        """Return the derivative of r along `tan_theta`."""
        pairs = self.by_observer(self.predicted_rows_jvp(theta, tan_theta)[1])
        tan_r = np.concatenate([observer.residuals_jvp(rows) for observer, rows in pairs])
        return np.concatenate([tan_r, self._prior(theta)[1] * tan_theta])

    def residuals_vjp(self, theta: np.ndarray, adj_r: np.ndarray) -> np.ndarray:
        """Return the gradient in theta for a cotangent of r."""
        n = len(theta)

        def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, self.residuals_cotangent(images, adj_r[:-n])

        return self.pull_back(theta, judge)[1] + self._prior(theta)[1] * adj_r[-n:]

    def products_with(
        self, theta: np.ndarray, J: Jacobian, paths: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """Return J^T dr/dv of values v by path, (p, size) each, one reverse sweep a column of J."""
        defaults = {path: self.built.values[path].value for path in paths}
        there = replace(self, fixed={**defaults, **self.fixed})
        moment, products = there.moment(theta), []
        wanted = SceneMaps(self.built, self.steps.dt).targets(defaults)
        recorded = moment[1].record()
        records = there.recorded(moment, recorded.trajectory)
        reached, places = self.reached([record.rows for record in records])
        for unit in np.eye(J.shape[1]):
            column = J @ unit
            pairs = zip(reached, places, strict=True)
            adj = [residuals.vjp(column[rows]) for residuals, rows in pairs]
            adj_rows = joined(adj)[:, : records[0].rows.shape[-1]]
            back = self.pull_rows_back(moment[1], recorded.trajectory, records, adj_rows)
            adjoints = dict(pull_frames(recorded, back[0].frames, wanted))
            products.append(self.by_path(moment[0], back, adjoints, wanted))
        return {path: np.stack([np.ravel(product[path]) for product in products]) for path in paths}

    def residuals_and_jacobian(self, theta: np.ndarray) -> tuple[np.ndarray, Jacobian]:
        """Return r and its Jacobian, one tangent sweep a column; columns share the threads.

        The rows of the priors, the last ones, are always stored.
        """
        n, (records, push) = len(theta), replace(self, threads=1).pushing(theta)
        predicted = [record.rows for record in records]
        pairs = zip(self.observers, predicted, strict=True)
        r = self.with_priors(
            theta, joined([to_host(observer.residuals(rows)) for observer, rows in pairs])
        )
        reached, numbers = self.reached(predicted)
        numbers.append(len(r) - n + np.arange(n))
        ends = np.cumsum([len(rows) for rows in numbers])
        values, scale = np.empty((ends[-1], n), order="F"), self._prior(theta)[1]

        def fill(i: int) -> None:
            direction = np.zeros(n)
            direction[i] = 1.0
            rooms = np.split(values[:, i], ends[:-1])
            for block, pushed, room in zip(reached, push(direction), rooms, strict=False):
                room[:] = block.jvp(pushed)
            rooms[-1][:] = scale * direction

        with ThreadPoolExecutor(thread_count(None, large=self.device == "cpu")) as pool:
            list(pool.map(fill, range(n)))
        return r, Jacobian(np.concatenate(numbers), values, len(r))

    def loss_at(self, theta: np.ndarray) -> float:
        """Return the loss only."""
        return self.loss_of(self._rows(theta)) + self.penalty(theta)[0]

    def loss_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient in theta."""
        value, gradient = self.pull_back(theta, self.judge, on_device=True)
        more, slope = self.penalty(theta)
        return value + more, gradient + slope

    def penalty(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the squares of the priors, the losses of shape, and their gradient."""
        r, scale = self._prior(theta)
        total, gradient = float(r @ r), 2.0 * scale * r
        values = self.parameters.scene_values(theta) if self.shapes else {}
        for shape in self.shapes:
            if shape.path in values:
                weight = sum(seen.weight for seen in self.observers) / SEEN**2
                x = values[shape.path]
                total += weight * shape.value(x)
                adj = {shape.path: weight * shape.gradient(x)}
                gradient = gradient + self.parameters.scene_gradient(theta, adj)
        return total, gradient

    def inspect(self, theta: np.ndarray, **options: Any) -> tuple[Inspection, list[Judged]]:
        """Return what the adjoint of the motion does on its way back, and where it comes from.

        `options` are passed to `Record.inspect`.
        """

        def judge(images: np.ndarray) -> tuple[float, np.ndarray]:
            return 0.0, 2.0 * self.residuals_cotangent(images, self.residuals_of(images))

        _, recorded, records, (_, adj_rows), back = self._judged(theta, judge)
        inspection = inspect_frames(recorded, back[0].frames, self.reached_parameters(), **options)
        rows = self.by_observer(np.concatenate([record.rows for record in records]))
        pairs = zip(rows, self.by_observer(adj_rows), strict=True)
        return inspection, [(observer, predicted, adj) for (observer, predicted), (_, adj) in pairs]


def _sum_of_squares(r: Any) -> float:
    """Return r @ r; on a device without cuBLAS, whose sums have an order of their own."""
    return float(r @ r) if isinstance(r, np.ndarray) else float((r * r).sum())
