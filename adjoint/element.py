"""What the reverse sweep needs to know of a force: the twins of `adjsim/element.py`.

    jvp(x, v, consts, params, series, tan_x, tan_v, tan_params, tan_series) -> tan_f
    vjp(x, v, consts, params, series, adj_f) -> adj_x, adj_v, adj_params, adj_series

Both are pure element functions; `v`, `tan_v` and `adj_v` are () for a kind that has no
use for velocities.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from adjsim.element import ElementKind, Force


F = TypeVar("F", bound=Force)


@dataclass(frozen=True)
class TwinKind:
    """The tangent and the adjoint of one kind of element."""

    kind: ElementKind
    jvp: Callable
    vjp: Callable


class ForceTwin(ABC, Generic[F]):
    """The adjoint of one class of forces: its kernels and the twin of its packing."""

    @abstractmethod
    def twin_kind(self, force: F) -> TwinKind:
        """Return the kernels that undo `force.kind`."""

    @abstractmethod
    def pack_vjp(
        self, force: F, adj_params: np.ndarray, adj_series: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Pull cotangents of packed rows back to the force's parameters, in their shapes.

        `adj_params` (n_elements, n_params), `adj_series` (n_rows, n_elements, n_series).
        """

    @abstractmethod
    def pack_jvp(
        self, force: F, tangents: dict[str, np.ndarray], n_steps: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Push tangents of parameters to packed rows; a missing one is zero.

        Returns tan_params (n_elements, n_params) and tan_series, shaped like
        `force.pack_series(n_steps)`.
        """


def unbroadcast(adj: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum a per-element cotangent to the shape of the parameter it belongs to.

    The twin of `adjsim.element.broadcast`. NumPy's sum of a fixed array has a fixed order.
    """
    return adj.reshape(shape) if adj.shape == shape else np.asarray(adj.sum())
