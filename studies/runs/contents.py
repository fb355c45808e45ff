"""The fields of the JSON files that `--resume` reads, so that they are checked.

A checksum shows a file that is damaged; this shows one that another program has written. Files may
hold more.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError


_Numbers = list[float | None] | None
_adapter = cache(TypeAdapter)


@dataclass(kw_only=True)
class Manifest:
    """What a run was made with: `manifest.json`."""

    study: str
    name: str = ""
    verb: str
    target: str
    command: str
    arguments: dict[str, Any] = field(default_factory=dict)
    depends_on: dict[str, Any]
    seed: int
    dtype: str
    device: str
    started: str
    resumed: list[str]
    toml: str
    versions: dict[str, str | None]
    machine: dict[str, Any]
    commit: str | None


@dataclass(kw_only=True)
class EvaluationRecord:
    """An answer to an optimizer: a line of `iterations.jsonl`."""

    stage: str = ""
    kind: str
    spent: int
    cost: int
    loss: float | None
    values: dict[str, float | list[Any]]
    theta: list[float]
    gradient: list[float] | None
    jacobian: list[list[float]] | None
    seconds: float


@dataclass(kw_only=True)
class PointRecord:
    """A point of a scan: a line of `points.jsonl`. One that has failed has a reason alone."""

    index: list[int]
    reason: str | None
    loss: float | None = None
    gradient: _Numbers = None
    frame_loss: _Numbers = None
    difference: _Numbers = None
    relative: _Numbers = None
    shorter: list[bool] | None = None
    kink: _Numbers = None
    crosses: list[bool] | None = None
    black_box: _Numbers = None
    touches: int | None = None
    faces: int | None = None


def require_contents(data: bytes, kind: type) -> None:
    """Raise ValueError with what is wrong if JSON does not hold the fields of a dataclass."""
    try:
        _adapter(kind).validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"`{key}`: {first['msg'][0].lower()}{first['msg'][1:]}") from error
