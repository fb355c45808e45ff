"""The body of a new scene file: its mesh, in metres, and whether its kind fits it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies.cli.new_scene.observations import LONGEST, beside
from studies.runs.errors import StudyError, renamed
from studies.scene.checking import RESERVED
from studies.scene.declared import Cloth, Rigid, Soft, Springs
from studies.scene.mesh_source import GENERATORS, SHAPE, read_source, surface_of, volume_of


# By name: the class, and what its mesh is counted in.
KINDS: dict[str, tuple[Any, str]] = {
    "soft": (Soft, "tetrahedra"),
    "cloth": (Cloth, "triangles"),
    "rigid": (Rigid, "triangles"),
    "springs": (Springs, "points"),
}
MILLIMETRE = 0.001
SMALLER = 0.1  # a generated mesh, in parts of its default size
TOP = 0.02  # part of the height of a thing that hangs in a photograph by which it is held


@dataclass(frozen=True, eq=False, kw_only=True)
class NewBody:
    """What the template says of a body with a mesh."""

    name: str
    kind: str
    is_kind_guess: bool
    mesh: str  # as the scene file has it
    size: list[float] | None  # of a generated mesh
    cells: list[int] | None
    scale: float
    length: float  # of the file, in its unit
    count: str  # of what its mesh is made
    is_filled: bool  # with tetrahedra of this length
    edge_length: float = Soft.edge_length
    position: np.ndarray  # (3,) [m]
    is_placed: bool  # where points are
    box: np.ndarray  # lower and upper corner, (2, 3) [m]

    @property
    def note(self) -> str:
        """What is thought of a mesh in millimetres."""
        return f"the mesh is {self.length:.4g} long, so it must be in millimetres"

    @property
    def top(self) -> dict[str, Any]:
        """The plane that holds its upper end."""
        (low, high), (x, _, z) = self.box[:, 1], self.box.mean(axis=0)
        return {"point": [x, high - TOP * (high - low), z], "normal": [0.0, -1.0, 0.0]}

    @property
    def bottom(self) -> list[float]:
        """A point of a floor below it."""
        return [0.0, float(self.box[0, 1]), 0.0]


def body_of(mesh: str, kind: str | None, folder: Path, place: np.ndarray | None) -> NewBody:
    """Return a body whose mesh is a file or a generator, as `resolved` returns it.

    Its middle is put at a `place` (3,) [m], if one is given. Raise StudyError if the mesh cannot be
    read, or the kind does not fit it.
    """
    stem = re.sub(r"\W", "_", Path(mesh.rpartition(":")[2]).stem)
    size, cells, scale = None, None, 1.0
    if mesh in GENERATORS or mesh.startswith(SHAPE):
        size, cells = _generated(mesh, kind)
    with renamed({"`MESH.mesh`": "`--mesh`"}):
        keys = {"mesh": mesh, "size": size, "cells": cells}
        source = read_source("MESH", KINDS[kind or "soft"][0](**keys))
        length = float(np.ptp(source.mesh.points, axis=0).max())
        if size is None and length > LONGEST:
            scale = MILLIMETRE
        surface = None if kind == "springs" else surface_of("MESH", source)
        checked = _checked_kind(kind, surface, Path(mesh).name)
        declared, unit = KINDS[checked]
        source = read_source("MESH", declared(**keys, scale=scale))
        n, is_filled = len(source.mesh.points if surface is None else surface.faces), False
        if checked == "soft":
            volume = volume_of("MESH", source, Soft.edge_length)
            n, is_filled = volume.n_tets, volume is not source.mesh
    points = np.asarray(source.mesh.points)
    box = np.stack([points.min(axis=0), points.max(axis=0)])
    position = np.zeros(3) if place is None else place - box.mean(axis=0)
    return NewBody(
        name=stem if stem.isidentifier() and stem not in RESERVED else "body",
        kind=checked, is_kind_guess=kind is None,
        mesh=beside(mesh, folder) if Path(mesh).is_absolute() else mesh,
        size=size, cells=cells, scale=scale, length=length,
        count=f"{'filled with ' if is_filled else ''}{n} {unit}", is_filled=is_filled,
        position=position, is_placed=place is not None, box=box + position,
    )  # fmt: skip


def _generated(mesh: str, kind: str | None) -> tuple[list[float], list[int] | None]:
    """Return size and cells of a generated mesh; no cells where they cannot be chosen."""
    _, sizes, cells = GENERATORS.get(mesh, (None, (1.0,), None))
    size = [SMALLER * edge for edge in sizes]
    if cells is None or kind == "rigid":
        return size, None
    if isinstance(cells, int):  # along the longest edge
        return size, [max(1, round(cells * edge / max(size))) for edge in size]
    return size, list(cells)


def _checked_kind(kind: str | None, surface: Any, name: str) -> str:
    """Return the kind of a body with a surface, which springs need not have, if it fits."""
    if surface is None:
        return "springs"
    try:
        surface.require_closed("mesh")
    except ValueError as error:
        if kind in (None, "cloth"):
            return "cloth"
        raise StudyError(
            f"`--kind` {kind} does not fit {name}, which is no closed solid: {error} Or give "
            "`--kind cloth`."
        ) from error
    if kind == "cloth":
        raise StudyError(
            f"`--kind` cloth does not fit {name}, which is a closed solid: give `--kind soft` or "
            "`--kind rigid`, or the mesh of a sheet."
        )
    return kind or "soft"
