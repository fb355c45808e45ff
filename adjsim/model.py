"""What does not change in a rollout (`Model`), what does (`State`), and `Trajectory`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from adjsim import checks
from adjsim.forces.acted_rows import NODES, ActedRows, acted_on, frames_of
from adjsim.forces.element import Force
from adjsim.forces.node_mass import check_mass, lumped_masses
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState, BodyTrajectory
from adjsim.stable_step import rate_of_bodies, rate_of_nodes, step_of
from adjsim.system import System
from adjsim.values import grouped, parts_with_values, replace_values


RESERVED_NAMES = ("mass", "gravity", "state", "camera", "rasterizer", NODES)


@dataclass(frozen=True, eq=False)
class Model(System["State", "Trajectory"]):
    """Nodes with masses, rigid bodies, gravity, and named forces.

    Parameters
    ----------
    mass : array, optional
        Node masses m, (n_nodes,) [kg], positive. None: the sum of what the forces with a
        `density` give their nodes, and then those densities are parameters and "mass" is not;
        or no nodes, in a model of bodies only.
    forces : mapping of str to Force
        Named forces, e.g. {"beam": NeoHookeanTets(...), "floor": HalfSpaceContact(...)}.
        The name is the first part of a parameter's path: "beam.mu".
    gravity : array
        Acceleration g, (3,) [m/s2].
    pinned : array, optional
        Mask of pinned nodes, (n_nodes,) bool. A pinned node keeps its velocity, unless a `Grip`
        among the forces leads it: nodes of grips are pinned, named here or not.
    bodies : mapping of str to RigidBodies
        Named sets of bodies; the names are paths too: "block.density". A force that acts on
        bodies names sets in its `acts_on`.

    Raises
    ------
    ValueError
        If an array has the wrong shape, is not finite, or a mass is not positive; if a
        force does not fit the nodes or bodies; if a name is given twice or cannot be part of a
        path; if masses are given twice, by `mass` and a density, or not at all for some node.
    """

    CAN_MARK: ClassVar[bool] = True

    mass: Any = None
    forces: Mapping[str, Force] = field(default_factory=dict)
    gravity: Any = (0.0, -9.8, 0.0)
    pinned: Any = None
    bodies: Mapping[str, RigidBodies] = field(default_factory=dict)
    # The masses that came from densities: `dataclasses.replace` passes them on as `mass` and
    # here, and then they are computed again.
    _lumped: Any = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        self._check_parts()
        given, lumped = self.mass, lumped_masses(self.forces)
        if given is self._lumped:
            given = None if lumped or not self.bodies else ()
        mass = check_mass(given, lumped, self.forces)
        n = len(mass)
        if n == 0 and not self.bodies:
            raise ValueError(
                "`mass` must not be empty: it has one entry per node. Only a model with `bodies` "
                "may have no nodes."
            )
        pinned = np.zeros(n, bool) if self.pinned is None else np.asarray(self.pinned)
        if pinned.dtype != bool or pinned.shape != (n,):
            raise ValueError(
                f"`pinned` must be a mask of shape (n_nodes,) = ({n},), bool; got "
                f"{pinned.shape} {pinned.dtype}. From indices: np.isin(np.arange({n}), indices)."
            )
        checks.freeze(self, "mass", mass)
        object.__setattr__(self, "_lumped", self.mass if given is None else None)
        checks.freeze(self, "gravity", checks.array("gravity", self.gravity, (3,)))
        object.__setattr__(self, "bodies", self._with_frames())
        forces = {name: self._bind(name, force) for name, force in self.forces.items()}
        object.__setattr__(self, "forces", forces)
        checks.freeze(self, "pinned", pinned | self._led_nodes())

    def _check_parts(self) -> None:
        """Raise on forces and bodies that are none, or whose names cannot begin a path."""
        for where in ("forces", "bodies"):
            checks.mapping(where, getattr(self, where), "{'floor': ...}")
        for name, bodies in self.bodies.items():
            _check_named("bodies", name, bodies, RigidBodies)
        for name, force in self.forces.items():
            _check_named("forces", name, force, Force)
            if name in self.bodies:
                raise ValueError(
                    f"`forces` and `bodies` must have different names, got {name!r} in both: the "
                    "name is the first part of a parameter's path."
                )

    def _with_frames(self) -> dict[str, RigidBodies]:
        """Return the bodies; those on whose pose forces act offer frame points, no others."""
        wanted: dict[str, set[int]] = {name: set() for name in self.bodies}
        for name, force in self.forces.items():
            for owner, number in force.framed:
                checks.known_key(f"set of bodies in `{name}`", owner, self.bodies)
                n = self.bodies[owner].n_bodies
                if number >= n:
                    raise ValueError(
                        f"`{name}` must act on bodies that there are: `{owner}` has {n}, numbered "
                        f"from 0, got {number}."
                    )
                wanted[owner].add(number)
        return {name: bodies.with_frames(wanted[name]) for name, bodies in self.bodies.items()}

    def _bind(self, name: str, force: Force) -> Force:
        """Return a force fitted to the rows that it acts on."""
        rows = self.rows(force.acts_on, f"{name}.acts_on")
        return force.bind(rows, name).with_mass(self.mass)

    def without(self, forces: Iterable[str]) -> "Model":
        """Return the model without forces of these names; what grips held stays pinned."""
        left = {name: force for name, force in self.forces.items() if name not in set(forces)}
        return replace(self, forces=left)

    def _led_nodes(self) -> np.ndarray:
        """Return the mask of nodes that grips lead; complain of one that several lead."""
        leaders: dict[int, str] = {}
        for name, force in self.forces.items():
            for node in force.nodes.ravel().tolist() if force.leads else ():
                if leaders.setdefault(node, name) != name:
                    raise ValueError(
                        f"`forces` must lead each node by one grip, got node {node} in "
                        f"`{leaders[node]}` and `{name}`."
                    )
        return np.isin(np.arange(self.n_nodes), list(leaders))

    def rows(self, acts_on: str | Sequence[str] = NODES, where: str = "acts_on") -> ActedRows:
        """Return the rows of X of "nodes", of sets of bodies, or of several of these.

        Raise a ValueError if the model has no set of a name, or no nodes; it names the argument
        `where`.
        """
        firsts, parts = self._first_rows(), []
        for name in acted_on(acts_on):
            if name == NODES and self.n_nodes:
                parts.append(ActedRows.of_nodes(self.n_nodes))
            elif name in firsts:
                parts.append(ActedRows.of_bodies(name, self.bodies[name], firsts[name]))
            else:
                names = [*([NODES] if self.n_nodes else []), *self.bodies]
                raise ValueError(
                    f"`{where}` must name what the model has, got {name!r}."
                    f"{checks.known_names(name, names)}"
                )
        frames = {}
        for name, bodies in self.bodies.items():
            frames |= frames_of(name, bodies, firsts[name])
        return ActedRows.joined(parts, frames)

    def _first_rows(self) -> dict[str, int]:
        """Return the row of X of the first point of each set of bodies."""
        sizes = [bodies.n_points for bodies in self.bodies.values()]
        return dict(zip(self.bodies, accumulate(sizes, initial=self.n_nodes), strict=False))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.mass)

    @property
    def has_densities(self) -> bool:
        """Whether the masses come from the forces' densities."""
        return self._lumped is not None

    @property
    def n_bodies(self) -> int:
        """Number of rigid bodies, in all sets."""
        return sum(bodies.n_bodies for bodies in self.bodies.values())

    @property
    def n_rows(self) -> int:
        """Number of nodes and of points of bodies, which forces act on alike."""
        return self.n_nodes + sum(bodies.n_points for bodies in self.bodies.values())

    def body_slices(self) -> dict[str, slice]:
        """Return which of all bodies are those of each set."""
        ends = np.cumsum([0, *(bodies.n_bodies for bodies in self.bodies.values())]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(self.bodies)}

    @property
    def inverse_mass(self) -> np.ndarray:
        """W = 1/m, 0 where pinned, (n_nodes,) [1/kg]."""
        return np.where(self.pinned, 0.0, 1.0 / self.mass)

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by its path, e.g. "beam.mu"."""
        named = {} if self.has_densities or not self.n_nodes else {"mass": self.mass}
        named["gravity"] = self.gravity
        for name, component in {**self.forces, **self.bodies}.items():
            named |= {f"{name}.{key}": value for key, value in component.parameters().items()}
        return named

    def state_parameters(self, state: "State") -> dict[str, np.ndarray]:
        """Return initial positions and velocities, of nodes and of bodies, by path."""
        named = {"state.x": state.x, "state.v": state.v} if self.n_nodes else {}
        for name, body_state in state.bodies.items():
            named |= {f"{name}.{key}": value for key, value in body_state.parameters().items()}
        return named

    def with_values(self, state: "State", values: Mapping[str, Any]) -> tuple["Model", "State"]:
        """Return model and state with other values of some parameters, by path.

        Raises
        ------
        ValueError
            If a path is unknown, or a value is out of range.
        """
        values = checks.mapping("values", values, "{'gravity': (0.0, -9.8, 0.0)}")
        parameters = self.parameters()
        start = self.state_parameters(checks.instance("state", state, State))
        for path in values:
            checks.known_key("parameter", path, [*parameters, *start])
        of_state = grouped({path: value for path, value in values.items() if path in start})
        of_model = grouped({path: value for path, value in values.items() if path in parameters})
        moved = of_state.pop("state", {})
        if of_state:
            moved["bodies"] = parts_with_values(state.bodies, of_state)
        changed = of_model.pop("", {})
        if of_model:
            changed["forces"] = parts_with_values(self.forces, of_model)
            changed["bodies"] = parts_with_values(self.bodies, of_model)
        return replace_values(self, changed), replace_values(state, moved)

    def check_state(self, state: "State") -> None:
        """Raise on a state that does not have the model's nodes and bodies."""
        checks.instance("state", state, State)
        if state.x.shape != (self.n_nodes, 3):
            raise ValueError(
                f"`state.x` must have one row per node of the model: expected "
                f"({self.n_nodes}, 3), got {state.x.shape}."
            )
        for name, force in self.forces.items():
            collapsed = force.collapsed(state.x, name) if force.is_of_nodes else None
            if collapsed:
                raise ValueError(
                    f"`state.x` must leave every element its shape, but {collapsed}. Move one of "
                    "its nodes."
                )
        if set(state.bodies) != set(self.bodies):
            raise ValueError(
                f"`state.bodies` must have the model's sets of bodies, "
                f"{', '.join(self.bodies) or 'none'}, got {', '.join(state.bodies) or 'none'}."
            )
        for name, bodies in self.bodies.items():
            n = len(state.bodies[name].position)
            if n != bodies.n_bodies:
                raise ValueError(
                    f"`state.bodies[{name!r}]` must have {bodies.n_bodies} bodies, got {n}."
                )

    def stable_dt(self) -> float:
        """Estimate the largest stable step [s] from bounds of stiffness and damping at rest.

        Without damping it is 2 sqrt(m/k) of the stiffest node, without stiffness 2 m/c. Large
        strains may need a smaller step. inf without forces. Of a rigid body the points that can
        touch at once count (`adjsim/stable_step.py`).
        """
        forces, rates = list(self.forces.values()), [0.0]
        for name, bodies in self.bodies.items():
            rates.append(rate_of_bodies(forces, bodies, self._first_rows()[name]))
        return min(self.stable_dt_of_nodes(), step_of(max(rates)))

    def stable_dt_of_nodes(self) -> float:
        """Estimate the same for the nodes alone, which takes less time."""
        return step_of(rate_of_nodes(list(self.forces.values()), self.inverse_mass))


def _check_named(where: str, name: str, value: Any, kind: type) -> None:
    """Raise on a part whose name cannot begin a path, or that is of the wrong class."""
    if not isinstance(name, str) or not name.isidentifier() or name in RESERVED_NAMES:
        raise ValueError(
            f"`{where}` must have names that are identifiers other than "
            f"{', '.join(RESERVED_NAMES)}, got {name!r}."
        )
    if not isinstance(value, kind):
        article = "a Force" if kind is Force else kind.__name__
        raise TypeError(f"`{where}[{name!r}]` must be {article}, got {type(value).__name__}.")


@dataclass(frozen=True, eq=False)
class State:
    """Positions and velocities of the nodes, and the states of the bodies.

    Parameters
    ----------
    x : array
        Positions, (n_nodes, 3) [m]. None: no nodes.
    v : array, optional
        Velocities, (n_nodes, 3) [m/s]. None: at rest.
    bodies : mapping of str to BodyState
        States of the model's sets of bodies, by the same names.
    """

    x: Any = None
    v: Any = None
    bodies: Mapping[str, BodyState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        x = np.zeros((0, 3)) if self.x is None else checks.array("x", self.x, ("n_nodes", 3))
        v = np.zeros_like(x) if self.v is None else checks.array("v", self.v, x.shape)
        checks.freeze(self, "x", x)
        checks.freeze(self, "v", v)
        bodies = checks.mapping("bodies", self.bodies, "{'block': BodyState(...)}")
        for name, body_state in bodies.items():
            _check_named("bodies", name, body_state, BodyState)
        object.__setattr__(self, "bodies", bodies)


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
    bodies : mapping of str to BodyTrajectory
        States of each set of bodies at the frames.
    diverged : int, optional
        Step in which it left the finite numbers: later states, and what a tangent or a
        gradient says of it, are NaN. None: it did not. Only with `on_divergence="mark"`.
    """

    steps: np.ndarray
    dt: float
    x: np.ndarray
    v: np.ndarray
    bodies: Mapping[str, BodyTrajectory] = field(default_factory=dict)
    diverged: int | None = None

    @property
    def times(self) -> np.ndarray:
        """Time of each frame, (n_frames,) [s]."""
        return self.steps * self.dt
