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
    mass : array, optional
        Node masses m, (n_nodes,) [kg], positive. None: the sum of what the forces with a
        `density` give their nodes; then those densities are parameters and "mass" is not.
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
        force does not fit the nodes, or its name cannot be part of a path; if masses are
        given twice, by `mass` and a density, or not at all for some node.
    """

    mass: Any = None
    forces: Mapping[str, Force] = field(default_factory=dict)
    gravity: Any = (0.0, -9.8, 0.0)
    pinned: Any = None
    # The masses that came from densities: `dataclasses.replace` passes them on as `mass` and
    # here, and then they are computed again.
    _lumped: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_forces(self.forces)
        given = None if self.mass is self._lumped else self.mass
        mass = check_mass(given, lumped_masses(self.forces))
        n = len(mass)
        if n == 0:
            raise ValueError("`mass` must not be empty: it has one entry per node.")
        pinned = np.zeros(n, bool) if self.pinned is None else np.asarray(self.pinned)
        if pinned.dtype != bool or pinned.shape != (n,):
            raise ValueError(
                f"`pinned` must be a mask of shape (n_nodes,) = ({n},), bool; got "
                f"{pinned.shape} {pinned.dtype}. From indices: np.isin(np.arange({n}), indices)."
            )
        forces = {name: force.bind(n, name) for name, force in self.forces.items()}
        checks.freeze(self, "mass", mass)
        object.__setattr__(self, "_lumped", self.mass if given is None else None)
        checks.freeze(self, "gravity", checks.array("gravity", self.gravity, (3,)))
        checks.freeze(self, "pinned", pinned)
        object.__setattr__(self, "forces", forces)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.mass)

    @property
    def has_densities(self) -> bool:
        """Whether the masses come from the forces' densities."""
        return self._lumped is not None

    @property
    def inverse_mass(self) -> np.ndarray:
        """W = 1/m, 0 where pinned, (n_nodes,) [1/kg]."""
        return np.where(self.pinned, 0.0, 1.0 / self.mass)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by its path, e.g. "beam.mu"."""
        named = {} if self.has_densities else {"mass": self.mass}
        named["gravity"] = self.gravity
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


def _check_forces(forces: Mapping[str, Any]) -> None:
    """Complain of what is no force, or has a name that cannot be part of a path."""
    for name, force in forces.items():
        if not name.isidentifier() or name in RESERVED_NAMES:
            raise ValueError(
                f"`forces` must have names that are identifiers other than "
                f"{', '.join(RESERVED_NAMES)}, got {name!r}."
            )
        if not isinstance(force, Force):
            raise TypeError(f"`forces[{name!r}]` must be a Force, got {type(force).__name__}.")


def lumped_masses(forces: Mapping[str, Force]) -> dict[str, np.ndarray]:
    """Return the node masses, (n_nodes,) [kg], of each force that has a density."""
    masses = {name: force.node_mass() for name, force in forces.items()}
    return {name: mass for name, mass in masses.items() if mass is not None}


def check_mass(given: Any, lumped: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the node masses: those given, or the sum of those that densities give.

    Raises
    ------
    ValueError
        If both are there, or neither, or a node has none.
    """
    if given is not None:
        if lumped:
            raise ValueError(
                f"`mass` is given, and `{next(iter(lumped))}.density` too: masses would be given "
                "twice. Leave one of the two out."
            )
        return checks.positive("mass", checks.array("mass", given, ("n_nodes",)))
    if not lumped:
        raise ValueError(
            "`mass` must be given, one entry per node, unless a force has a `density` to compute "
            "it from."
        )
    sizes = {name: len(mass) for name, mass in lumped.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"`rest_positions` must have one row per node of the model, got {sizes}.")
    total = np.sum(list(lumped.values()), axis=0)
    if not (total > 0.0).all():
        raise ValueError(
            f"`mass` must be positive, but node {int(np.argmin(total))} is in no element of "
            f"{', '.join(lumped)}, from whose density its mass would come. Leave the node out, or "
            "give `mass`."
        )
    return total


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
