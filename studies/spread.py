r"""Natural values that reach the rollout through a constant linear map.

    body.mu   ->  body.mu, and body.lam = (lam/mu) body.mu if Poisson's ratio is given
    density   ->  mass = density * (node masses at density 1)
    velocity  ->  state.v = velocity of every node that is not pinned

Every other path is a parameter of the rollout by itself. Since the map A is linear, values
and tangents are spread by A, and cotangents gathered by A^T.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from studies.parameters import Block, Parameters
from studies.video_problem import Motion


@dataclass(frozen=True, eq=False)
class Spread:
    """The map A.

    Attributes
    ----------
    lam_over_mu : float or None
        lam/mu where lam follows mu.
    unit_mass : ndarray
        Node masses at density 1, (n_nodes,) [m^3].
    moving : ndarray
        One for nodes that are not pinned, (n_nodes,).
    """

    lam_over_mu: float | None
    unit_mass: np.ndarray
    moving: np.ndarray

    def rollout_paths(self, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Return the parameters of the rollout that the paths reach."""
        named = {"density": "mass", "velocity": "state.v"}
        out = [named.get(path, path) for path in paths]
        tied = self.lam_over_mu is not None and "body.mu" in paths
        return (*out, "body.lam") if tied else tuple(out)

    def spread(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return A applied to values or tangents by path."""
        out: dict[str, Any] = {}
        for path, value in values.items():
            if path == "density":
                out["mass"] = self.unit_mass * value
            elif path == "velocity":
                out["state.v"] = self.moving[:, None] * value
            else:
                out[path] = value
            if path == "body.mu" and self.lam_over_mu is not None:
                out["body.lam"] = self.lam_over_mu * np.asarray(value)
        return out

    def gather(self, paths: tuple[str, ...], adjoints: Mapping[str, Any]) -> dict[str, Any]:
        """Return A^T applied to cotangents of the rollout's parameters."""
        out: dict[str, Any] = {}
        for path in paths:
            if path == "density":
                out[path] = self.unit_mass @ adjoints["mass"]
            elif path == "velocity":
                out[path] = self.moving @ adjoints["state.v"]
            else:
                out[path] = adjoints[path]
            if path == "body.mu" and self.lam_over_mu is not None:
                out[path] = out[path] + self.lam_over_mu * adjoints["body.lam"]
        return out


class SpreadParameters(Parameters):
    """Free natural values; tangents and cotangents speak of the rollout's parameters."""

    def __init__(self, blocks: list[Block], spread: Spread) -> None:
        super().__init__(blocks)
        self._free = self.paths
        self._spread = spread
        self.paths = spread.rollout_paths(self._free)

    def tangents(self, theta: np.ndarray, tan_theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the tangents of the rollout's parameters for a tangent of theta."""
        return self._spread.spread(super().tangents(theta, tan_theta))

    def gradient(self, theta: np.ndarray, adjoints: Mapping[str, Any]) -> np.ndarray:
        """Return the gradient in theta from cotangents of the rollout's parameters."""
        return super().gradient(theta, self._spread.gather(self._free, adjoints))

    def natural_jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Return d natural / d theta, `(size, size)`."""
        natural = super().tangents
        columns = [
            np.concatenate([np.ravel(t) for t in natural(theta, column).values()])
            for column in np.eye(self.size)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class SpreadMotion(Motion):
    """A motion that takes natural values."""

    spread: Spread | None = None

    def with_values(self, values: Mapping[str, Any]) -> Motion:
        """Return the motion with natural values by path replaced, all at once."""
        spread = self.spread.spread(values) if self.spread else dict(values)
        forces = {
            name: replace(cast(Any, force), **_members(spread, name))
            for name, force in self.model.forces.items()
        }
        own = {path: value for path, value in spread.items() if "." not in path}
        return replace(
            self,
            model=replace(self.model, forces=forces, **own),
            state=replace(self.state, **_members(spread, "state")),
        )


def _members(values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Return the values of one owner by their own names: "body.mu" as "mu"."""
    prefix = f"{owner}."
    return {
        path.removeprefix(prefix): value
        for path, value in values.items()
        if path.startswith(prefix)
    }
