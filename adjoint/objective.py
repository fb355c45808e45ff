"""A loss of a rollout as a function of its parameters, for optimizers.

Tests: `tests/test_objective.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.rollout import Record, record
from adjoint.system import check_paths, known_paths, require_one_world
from adjoint.vectors import Layout
from adjsim import checks
from adjsim.rollout import check_system


Loss = Callable[[Any], tuple[float, Any]]


@dataclass(frozen=True, eq=False)
class Objective:
    """A loss and its gradient by some parameters, made by `value_and_grad`.

    Attributes
    ----------
    start : numpy.ndarray
        The parameters of the model and state that it was made with, flat, (n,).
    """

    start: np.ndarray
    _loss: Loss
    _at: Callable[[Mapping[str, np.ndarray]], Record[Any, Any]]
    _layout: Layout

    def values(self, theta: Any) -> dict[str, np.ndarray]:
        """Return the parameters of a flat vector (n,) by path, each in its shape."""
        return self._layout.split(checks.array("theta", theta, (self._layout.size,)))

    def flat(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return parameters by path as one flat vector, (n,)."""
        return checks.array("values", self._layout.flat("values", values))

    def __call__(self, at: Any) -> tuple[float, Any]:
        """Return the loss and its gradient, which is in the form of the argument.

        Parameters
        ----------
        at : array or mapping
            The parameters as a flat vector (n,), as SciPy gives it, or by path.

        Raises
        ------
        ValueError
            If something has the wrong shape, or a parameter is out of its range.
        TypeError
            If the loss does not return a value and cotangents.
        RolloutError
            If the rollout or the gradient leaves the finite numbers.
        """
        is_mapping = isinstance(at, Mapping)
        run = self._at(self.values(self.flat(at) if is_mapping else at))
        returned = self._loss(run.trajectory)
        if not (isinstance(returned, tuple) and len(returned) == 2 and np.ndim(returned[0]) == 0):
            raise TypeError(
                "`loss` must return a number and the cotangents of the frames, got "
                f"{type(returned).__name__}. E.g. (np.sum(x**2), 2 * x) with x = trajectory.x."
            )
        value, adj = returned
        wrt = list(self._layout.shapes)
        gradient = run.vjp(**adj, wrt=wrt) if isinstance(adj, Mapping) else run.vjp(adj, wrt=wrt)
        return float(value), gradient if is_mapping else self._layout.flat("gradient", gradient)


def value_and_grad(
    loss: Loss,
    model: Any,
    state: Any,
    dt: float,
    n_steps: int,
    *,
    wrt: Sequence[str],
    **settings: Any,
) -> Objective:
    """Return a function of parameters: the loss of a rollout and its gradient.

        objective = value_and_grad(loss, model, state, dt, n_steps, wrt=["beam.mu", "state.v"])
        found = scipy.optimize.minimize(objective, objective.start, jac=True)
        objective.values(found.x)["beam.mu"]

    Parameters
    ----------
    loss : callable
        Takes the trajectory; returns the loss and its gradient in the frames. That is one array,
        the cotangent of the first field, or a mapping by the names of the arguments of
        `Record.vjp`, such as {"adj_x": ..., "bodies": ...}.
    model, state, dt, n_steps
        As `record` takes them; a batch of worlds is refused.
    wrt : sequence of str
        Paths of the parameters.
    **settings
        What else `record` takes, such as `frames` and `checkpoint`.

    Raises
    ------
    ValueError
        If a path is unknown.
    TypeError
        If the model is a batch.

    Examples
    --------
    >>> from adjoint import value_and_grad
    >>> from adjsim import Model, State
    >>> model, state = Model(mass=[2.0]), State([[0.0, 6.0, 0.0]])  # one node, 6 m high
    >>> def loss(trajectory):
    ...     miss = trajectory.x - [0.0, 5.0, 0.0]
    ...     return (miss**2).sum(), 2.0 * miss
    >>> objective = value_and_grad(loss, model, state, 0.1, 10, wrt=["state.v"])
    >>> value, gradient = objective(objective.start)
    >>> print(round(value, 3), gradient.round(3))
    19.272 [ 0.   -8.78  0.  ]
    """
    require_one_world("model", model)
    check_system(model, state)
    paths = check_paths(wrt, known_paths(model, state))
    values = {**model.parameters(), **model.state_parameters(state)}
    layout = Layout.of("wrt", {path: values[path] for path in paths})

    def at(replaced: Mapping[str, np.ndarray]) -> Record[Any, Any]:
        moved, begun = model.with_values(state, replaced)
        return record(moved, begun, dt, n_steps, **settings)

    start = layout.flat("wrt", {path: values[path] for path in paths})
    return Objective(start, loss, at, layout)
