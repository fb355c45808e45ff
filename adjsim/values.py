"""Declare the parameters of frozen dataclasses, and replace their values by path ("beam.mu")."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from adjsim.series import with_array


@dataclass(frozen=True)
class Parameter:
    """A differentiable parameter as its class declares it.

    `shape` names its sizes. A `positive` one is refused below 0, and searched for by its logarithm.
    """

    name: str
    symbol: str
    unit: str
    shape: str
    positive: bool = False


T = TypeVar("T")


def replace_values(owner: T, values: Mapping[str, Any]) -> T:
    """Return a frozen dataclass with other values of some fields, signals kept signals."""
    changed = {key: with_array(getattr(owner, key), value) for key, value in values.items()}
    return replace(owner, **changed) if changed else owner  # pyright: ignore[reportArgumentType, reportReturnType]


def broadcast(value: np.ndarray, n_elements: int) -> np.ndarray:
    """Return a scalar or per-element parameter as (n_elements,)."""
    return np.broadcast_to(value, (n_elements,))


def grouped(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return values by the first part of their paths, then by the rest."""
    groups: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        owner, _, name = path.rpartition(".")
        groups.setdefault(owner, {})[name] = value
    return groups


def parts_with_values(parts: Mapping[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return named parts with other values of some parameters; complain by the part's name."""
    changed = {}
    for name, component in parts.items():
        try:
            changed[name] = component.with_values(groups.get(name, {}))
        except (TypeError, ValueError) as error:
            raise type(error)(f"In `{name}`: {error}") from None
    return changed


def values_under(path: str, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the values whose paths begin with `path` and a dot, by what follows."""
    prefix = f"{path}."
    return {k.removeprefix(prefix): value for k, value in values.items() if k.startswith(prefix)}
