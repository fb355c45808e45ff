"""What does not change in a rollout (`Model`), what does (`State`), and `Trajectory`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.element import Force, replace_values
from adjsim.system import System


RESERVED_NAMES = ("mass", "gravity", "state", "camera", "rasterizer")


@dataclass(frozen=True, eq=False)
class Model(System["State", "Trajectory"]):
    """Nodes with masses, gravity, and named forces.

    Parameters
    ----------
    mass : array
        Node masses m, (n_nodes,) [kg], positive.
    forces : mapping of str to Force
        Named forces, e.g. {"beam": NeoHookeanTets(...), "floor": HalfSpaceContact(...)}.
        The name is the first part of a parameter's path: "beam.mu".
    gravity : array
        Acceleration g, (3,) [m/s2].
    pinned : array, optional
        Mask of pinned nodes, (n_nodes,) bool. A pinned node keeps its velocity.

    Raises
    ------
    ValueError
        If an array has the wrong shape, is not finite, or a mass is not positive; if a
        force does not fit the nodes, or its name cannot be part of a path.
    """

    mass: Any
    forces: Mapping[str, Force] = field(default_factory=dict)
    gravity: Any = (0.0, -9.8, 0.0)
    pinned: Any = None

    def __post_init__(self) -> None:
        mass = checks.positive("mass", checks.array("mass", self.mass, ("n_nodes",)))
        n = len(mass)
        if n == 0:
            raise ValueError("`mass` must not be empty: it has one entry per node.")
        pinned = np.zeros(n, bool) if self.pinned is None else np.asarray(self.pinned)
        if pinned.dtype != bool or pinned.shape != (n,):
            raise ValueError(
                f"`pinned` must be a mask of shape (n_nodes,) = ({n},), bool; got "
                f"{pinned.shape} {pinned.dtype}. From indices: np.isin(np.arange({n}), indices)."
            )
        forces = {}
        for name, force in self.forces.items():
            if not name.isidentifier() or name in RESERVED_NAMES:
                raise ValueError(
                    f"`forces` must have names that are identifiers other than "
                    f"{', '.join(RESERVED_NAMES)}, got {name!r}."
                )
            if not isinstance(force, Force):
                raise TypeError(f"`forces[{name!r}]` must be a Force, got {type(force).__name__}.")
            forces[name] = force.bind(n, name)
        checks.freeze(self, "mass", mass)
        checks.freeze(self, "gravity", checks.array("gravity", self.gravity, (3,)))
        checks.freeze(self, "pinned", pinned)
        object.__setattr__(self, "forces", forces)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.mass)

    @property
    def inverse_mass(self) -> np.ndarray:
        """W = 1/m, 0 where pinned, (n_nodes,) [1/kg]."""
        return np.where(self.pinned, 0.0, 1.0 / self.mass)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by its path, e.g. "beam.mu"."""
        named = {"mass": self.mass, "gravity": self.gravity}
        for name, force in self.forces.items():
            named |= {f"{name}.{key}": value for key, value in force.parameters().items()}
        return named

    def state_parameters(self, state: "State") -> dict[str, np.ndarray]:
        """Return the initial positions and velocities by path."""
        return {"state.x": state.x, "state.v": state.v}

    def with_values(self, state: "State", values: Mapping[str, Any]) -> tuple["Model", "State"]:
        """Return model and state with other values of some parameters, by path.

        Raises
        ------
        ValueError
            If a path is unknown, or a value is out of range.
        """
        known = [*self.parameters(), *self.state_parameters(state)]
        grouped: dict[str, dict[str, Any]] = {}
        for path, value in values.items():
            owner, _, name = checks.known_key("parameter", path, known).rpartition(".")
            grouped.setdefault(owner, {})[name] = value
        state = replace_values(state, grouped.pop("state", {}))
        own = grouped.pop("", {})
        if grouped:
            forces = {
                name: force.with_values(grouped.get(name, {}))
                for name, force in self.forces.items()
            }
            own["forces"] = forces
        return replace_values(self, own), state

    def check_state(self, state: "State") -> None:
        """Complain of a state that does not have the model's nodes."""
        if state.x.shape != (self.n_nodes, 3):
            raise ValueError(
                f"`state.x` must have one row per node of the model: expected "
                f"({self.n_nodes}, 3), got {state.x.shape}."
            )

    def stable_dt(self) -> float:
        """Estimate the largest stable step [s] from bounds of stiffness and damping at rest.

        Semi-implicit Euler with M x'' = -K x - C x' is stable while dt^2 K + 2 dt C < 4 M. The
        sums k and c of a node's elements' bounds are diagonal bounds of K and C, so

            dt = min over nodes of (-c + sqrt(c^2 + 4 m k))/k

        which is 2 sqrt(m/k) without damping and 2 m/c without stiffness. Large strains may
        need a smaller step. inf without forces.
        """
        k, c = np.zeros(self.n_nodes), np.zeros(self.n_nodes)
        for force in self.forces.values():
            nodes, n = force.nodes.ravel(), force.nodes.shape[1]
            k += np.bincount(nodes, np.repeat(force.stiffness_bound(), n), self.n_nodes)
            c += np.bincount(nodes, np.repeat(force.damping_bound(), n), self.n_nodes)
        w = self.inverse_mass
        rate = w * c + np.sqrt(np.square(w * c) + 4.0 * w * k)  # nothing cancels
        fastest = float(rate.max())
        return 4.0 / fastest if fastest > 0.0 else float("inf")


@dataclass(frozen=True, eq=False)
class State:
    """Positions and velocities of the nodes.

    Parameters
    ----------
    x : array
        Positions, (n_nodes, 3) [m].
    v : array, optional
        Velocities, (n_nodes, 3) [m/s]. None: at rest.
    """

    x: Any
    v: Any = None

    def __post_init__(self) -> None:
        x = checks.array("x", self.x, ("n_nodes", 3))
        v = np.zeros_like(x) if self.v is None else checks.array("v", self.v, x.shape)
        checks.freeze(self, "x", x)
        checks.freeze(self, "v", v)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States at the requested frames.

    Parameters
    ----------
    steps : array
        Step of each frame, (n_frames,), increasing; state 0 is the initial one.
    dt : float
        Step size [s].
    x, v : array
        Positions [m] and velocities [m/s], (n_frames, n_nodes, 3).
    """

    steps: np.ndarray
    dt: float
    x: np.ndarray
    v: np.ndarray

    @property
    def times(self) -> np.ndarray:
        """Time of each frame, (n_frames,) [s]."""
        return self.steps * self.dt
