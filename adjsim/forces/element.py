"""A set of elements of one kind, with its parameters: what a force declares of itself.

What an element function is given: `adjsim/tiles/element_kind.py`.
"""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from adjsim import checks
from adjsim.forces.acted_rows import NODES, ActedRows, Body, acted_on
from adjsim.series import series_rows, series_rows_jvp, series_values, steps_of
from adjsim.tiles.element_kind import ElementKind
from adjsim.values import Parameter, replace_values


_NO_TANGENT = (
    "{} must define rest_jvp if it declares `rest_positions`, mass_jvp if it declares `density`."
)


class CarriedBound(NamedTuple):
    """What a body feels that carries a shape, from all contacts with it.

    `center` is the row of X of its centre, `pressed` and `rubbed` are arms at which the stiffness
    [N/m] and the damping [N s/m] may act, (n, 3) [m]. None: at any of the body's vertices.
    """

    center: int
    stiffness: float
    damping: float
    pressed: np.ndarray | None = None
    rubbed: np.ndarray | None = None


class Force:
    """A set of elements of one kind, with its parameters. Subclasses are frozen dataclasses.

    What a subclass declares is often all that it needs; what differs it overrides.

    Attributes
    ----------
    PARAMETERS : tuple of Parameter
        What is differentiable: fields of the dataclass.
    KIND : ElementKind
        The kind of its elements, where all objects of the class have the same.
    PACKED : dict
        The parameters that the element function gets as `params`, in this order, each with the
        shape of one element's value: () or (3,). One value may serve all elements.
    SERIES : (str, tuple)
        The parameter that may vary in time, which the element function gets as `series`, and the
        shape of one element's value: () or (3,). By default there is none.
    ELEMENTS : str
        The field that has the rows that each element joins, (n_elements, kind.n_nodes), or
        (n_elements,) for one node. Where it is None, or there is no field, each row has an element.
    acts_on : str or sequence of str
        What the rows are of: "nodes", the name of a set of rigid bodies, or several of these
        (`adjsim/forces/acted_rows.py`). A subclass that may act on bodies makes it a field.
    rows : array, optional
        What `ELEMENTS` has, as rows of X; None before the force is part of a model.
    framed : sequence of Body
        Bodies on whose pose it acts, as set and number: the model has them offer frame points.
    touches : bool
        Whether there are states at which its force jumps or has a kink: see `margins`.
    changes : bool
        Whether its elements sum up pairs that are found again as the rows move: see
        `adjsim/engine/changing.py`.
    leads : bool
        Whether it says where its nodes are, as `adjsim/forces/grip.py` does: they are pinned, and
        each element's series is the place of one of them.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]]
    KIND: ClassVar[ElementKind]
    PACKED: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    SERIES: ClassVar[tuple[str, tuple[int, ...]]] = ("", ())
    ELEMENTS: ClassVar[str] = ""
    acts_on: str | Sequence[str] = NODES
    rows: Any = None
    framed: Sequence[Body] = ()
    touches: ClassVar[bool] = False
    changes: ClassVar[bool] = False
    leads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for parameter in self.PARAMETERS:
            name = parameter.name
            if name in self.PACKED and not self.is_left_out(name):
                value = checks.array(name, getattr(self, name))
                value = checks.non_negative(name, value) if parameter.positive else value
                checks.freeze(self, name, value)

    def freeze_each(self, n: int, size: str) -> None:
        """Check and freeze the parameters in `PACKED`, one value for all n elements or one each."""
        for parameter in self.PARAMETERS:
            name = parameter.name
            if name in self.PACKED and not self.is_left_out(name):
                value = checks.scalar_or_array(
                    name, getattr(self, name), n, size, self.PACKED[name]
                )
                value = checks.non_negative(name, value) if parameter.positive else value
                checks.freeze(self, name, value)

    def is_left_out(self, name: str) -> bool:
        """Whether a parameter is None, and may be: None is its default."""
        return getattr(self, name) is None and getattr(type(self), name, 0.0) is None

    @property
    def kind(self) -> ElementKind:
        """The kind of element these are."""
        return self.KIND

    @property
    def nodes(self) -> np.ndarray:
        """Rows of X that each element joins, (n_elements, kind.n_nodes)."""
        rows: Any = getattr(self, self.ELEMENTS, None) if self.rows is None else self.rows
        return np.reshape(rows, (-1, self.kind.n_nodes))

    def bind(self, rows: ActedRows, name: str) -> Self:
        """Return the force fitted to the rows of a model; raise a ValueError by `name`."""
        elements = getattr(self, self.ELEMENTS, None)
        elements = rows.surface if elements is None else elements
        shape = ("n_elements", self.kind.n_nodes)[: 1 if self.kind.n_nodes == 1 else 2]
        indices = rows.indices[rows.numbers(f"{name}.{self.ELEMENTS or 'rows'}", elements, shape)]
        if self.rows is not None and np.array_equal(self.rows, indices):
            return self  # as in a model with other values, which has it unchanged
        for key, value in self.parameters().items():
            if key in self.PACKED:
                of = self.PACKED[key]
                checks.scalar_or_array(f"{name}.{key}", value, len(indices), "n_elements", of)
        bound = copy.copy(self)
        checks.freeze(bound, "rows", indices)
        return bound

    @property
    def touching_rows(self) -> np.ndarray:
        """Rows of X of what touches an obstacle, (n,); of other forces none."""
        return np.zeros(0, np.int64)

    @property
    def is_of_nodes(self) -> bool:
        """Whether it acts on nodes alone."""
        return acted_on(self.acts_on) == (NODES,) and not self.framed

    def with_mass(self, mass: np.ndarray) -> "Force":
        """Return the bound force of nodes of these masses, (n_nodes,) [kg]; self if it needs none.

        A force that needs them has a tangent of this, `with_mass_jvp`, and its twin an adjoint,
        `with_mass_vjp`.
        """
        del mass
        return self

    def collapsed(self, x: np.ndarray, name: str) -> str | None:
        """Return which element of `name` has no force at these positions, and why; None: none."""
        del x, name
        return None

    def pack_consts(self) -> np.ndarray:
        """Rows of the rest shape, (n_elements, kind.n_consts): by default none."""
        return np.zeros((len(self.nodes), 0))

    def pack_params(self) -> np.ndarray:
        """Packed parameters, (n_elements, kind.n_params): by default those in `PACKED`."""
        return self.packed(self.parameters())

    def packed(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return values of parameters in `PACKED` as rows, (n_elements, n); 0 for a missing one."""
        n = len(self.nodes)
        rows = [np.zeros((n, 0))]
        for name, shape in self.PACKED.items():
            value = np.broadcast_to(values.get(name, 0.0), (n, *shape))
            rows.append(value.reshape(n, math.prod(shape)))
        return np.concatenate(rows, axis=1)

    def pack_series(self, n_steps: int) -> np.ndarray:
        """Packed series, (1 or n_steps, n_elements, kind.n_series); one row means constant.

        By default the parameter in `SERIES`. It may be kept: an array that does not change.
        """
        value, full_shape = self._varying
        if value is None:
            return np.zeros((1, len(self.nodes), self.kind.n_series))
        rows = series_rows(value, full_shape, n_steps)
        return rows if len(full_shape) > 1 else rows[..., None]

    def series_jvp(self, tangents: Mapping[str, np.ndarray], n_steps: int) -> np.ndarray:
        """Push a tangent of the parameter in `SERIES` to rows; a missing one is zero."""
        value, full_shape = self._varying
        if value is None:
            return np.zeros_like(self.pack_series(n_steps))
        rows = series_rows_jvp(value, full_shape, tangents.get(self.SERIES[0]), n_steps)
        return rows if len(full_shape) > 1 else rows[..., None]

    @property
    def _varying(self) -> tuple[Any, tuple[int, ...]]:
        """The parameter in `SERIES`, None where there is none, and its full shape."""
        name, shape = self.SERIES
        return getattr(self, name, None), (len(self.nodes), *shape)

    def series_steps(self) -> dict[str, int]:
        """Return how many rows each parameter has that is a series, by name."""
        value, full_shape = self._varying
        return {} if value is None else steps_of(self, {self.SERIES[0]: full_shape})

    def check_steps(self, n_steps: int, name: str) -> None:
        """Raise by `name` on what does not fit a rollout of `n_steps` steps."""
        for key, rows in self.series_steps().items():
            if rows != n_steps:
                raise ValueError(
                    f"`{name}.{key}` has a series of {rows} rows, but the rollout has "
                    f"{n_steps} steps: give one row per step, or a constant."
                )

    def check_precision(self, consts: np.ndarray, dtype: np.dtype, name: str) -> None:
        """Warn by `name` of elements whose packed rest shapes are too thin for a dtype."""
        del consts, dtype, name

    def node_mass(self) -> np.ndarray | None:
        """Node masses, (n_nodes,) [kg], from the force's density; None if it has none."""
        return None

    def stiffness_bound(self) -> np.ndarray:
        """Upper bound of the stiffness felt by each element's nodes, (n_elements,) [N/m]."""
        return np.zeros(len(self.nodes))

    def damping_bound(self) -> np.ndarray:
        """Upper bound of the damping felt by each element's nodes, (n_elements,) [N s/m]."""
        return np.zeros(len(self.nodes))

    @property
    def bounded_rows(self) -> np.ndarray:
        """Rows of X that the bounds are of, (n_elements, k): by default all of `nodes`."""
        return self.nodes

    def row_bounds(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of both bounds at the first rows of X, (n_rows,) each."""
        rows = self.bounded_rows
        flat = rows.ravel()
        inside = flat < n_rows
        bounds = (self.stiffness_bound(), self.damping_bound())
        weights = (np.repeat(bound, rows.shape[1])[inside] for bound in bounds)
        k, c = (np.bincount(flat[inside], weight, n_rows) for weight in weights)
        return k, c

    def frame_bounds(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield bounds of what a force does to the poses of bodies: rows, stiffness, damping.

        Each is of one body of every element: the row of X of its centre, (n_elements,), and what
        its velocity and spin feel in its own axes, (n_elements, 6, 6). By default none.
        """
        yield from ()

    @property
    def arrival_loss(self) -> float:
        """Bound of the damping over sqrt(K M) of a contact, beside `row_bounds`; by default 0."""
        return 0.0

    def carried_bound(self) -> CarriedBound | None:
        """Return what a body feels that carries what this is contact with; by default none does."""
        return None

    def margins(self, steps: np.ndarray, x: np.ndarray, v: np.ndarray) -> Any:
        """Return the `ContactMargins` of a force that `touches`, in states of a rollout.

        `x` and `v` have all rows of X, (n_frames, n_rows, 3), in float64.
        """
        del steps, x, v
        raise NotImplementedError(f"{type(self).__name__} `touches`, and must define `margins`.")

    def with_depths(self, depths: np.ndarray) -> Self:
        """Return the force with a stable step for contacts this deep, (n_contacts,) [m]."""
        del depths
        return self

    def parameters(self) -> Mapping[str, np.ndarray]:
        """Return the differentiable parameters that this force has, by name."""
        present = {p.name: getattr(self, p.name) for p in self.PARAMETERS}
        return {name: series_values(v) for name, v in present.items() if v is not None}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the force with other values of some parameters, all at once.

        In the place of a `Signal` an array of its values will do.
        """
        return replace_values(self, values)

    def pack_jvp(
        self, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of parameters to packed rows; a missing one is zero.

        Returns tan_params (n_elements, n_params) and tan_series, shaped like
        `pack_series(n_steps)`.
        """
        return self.packed(tangents), self.series_jvp(tangents, n_steps)

    def rest_jvp(self, tan_rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Push a tangent of the rest positions to rows: tan_consts and what adds to tan_params."""
        raise NotImplementedError(_NO_TANGENT.format(type(self).__name__))

    def mass_jvp(self, tangents: dict[str, np.ndarray]) -> np.ndarray:
        """Push tangents of `density` and `rest_positions` to the node masses, (n_nodes,)."""
        raise NotImplementedError(_NO_TANGENT.format(type(self).__name__))

    def with_mass_jvp(self, tan_mass: np.ndarray) -> np.ndarray | float:
        """Push a tangent of these masses to rows: what adds to tan_params."""
        del tan_mass
        return 0.0
