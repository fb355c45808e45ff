"""Components of values by path: "world.gravity[1]" is one number of "world.gravity"."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.runs.errors import StudyError


_PATH = re.compile(r"(?P<owner>[^\[]+)\[(?P<index>[0-9]+(?:, *[0-9]+)*)\]")


def split_component(path: str) -> tuple[str, tuple[int, ...] | None]:
    """Return the path of the whole value, and which component it is; None: all of it."""
    match = _PATH.fullmatch(path)
    if match is None:
        return path, None
    return match["owner"], tuple(int(k) for k in match["index"].split(","))


def component_of(key: str, path: str, value: Any) -> np.ndarray:
    """Return the part of a whole value that a path names."""
    index, whole = split_component(path)[1], np.asarray(value, np.float64)
    if index is None:
        return whole
    if len(index) != whole.ndim or any(k >= n for k, n in zip(index, whole.shape, strict=True)):
        shape = " x ".join(map(str, whole.shape)) or "1"
        raise StudyError(
            f"`{key}` must name a component of {shape} numbers, counted from 0, got {list(index)}."
        )
    return whole[index]


def with_components(
    values: Mapping[str, np.ndarray], wholes: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return values by path of the whole; where only components are given, the rest of `wholes`."""
    out: dict[str, np.ndarray] = {}
    for path, value in values.items():
        owner, index = split_component(path)
        if index is None:
            out[path] = value
            continue
        if owner not in out:
            out[owner] = np.array(wholes[owner], np.float64)
        out[owner][index] = value
    return out
