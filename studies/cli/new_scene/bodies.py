"""What a new scene file says of the body that is observed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from studies.cli.new_scene.commented_toml import Row, table_text
from studies.cli.new_scene.observations import LONGEST, beside
from studies.runs.errors import StudyError
from studies.scene.checking import RESERVED
from studies.scene.declared import Cloth, Rigid, Soft, Springs
from studies.scene.mesh_source import GENERATORS, SHAPE, read_source, surface_of, volume_of


PENDULUM = "pendulum"
MILLIMETRE = 0.001
SMALLER = 0.1  # a generated mesh, in parts of its default size
TOP = 0.02  # part of the height of a thing that hangs in a photograph by which it is held
LENGTH, ANGLE = 0.5, 20.0  # of a pendulum [m], [deg]


@dataclass(frozen=True, eq=False)
class Subject:
    """What the camera looks at."""

    text: str  # its tables
    box: np.ndarray  # lower and upper corner, (2, 3) [m]
    free: dict[str, dict[str, Any]]  # what is asked for, by path
    name: str = ""
    tracked: np.ndarray | None = None  # what a track in pixels is of, (3,) [m]; None: its middle
    up: int = 1  # the axis that points up
    settles: bool = False  # whether it is seen where it rests
    meshes: dict[str, Any] = field(default_factory=dict)  # to be written, by name of the file
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of body: its class, its material, and what is asked for."""

    declared: Any
    counts: str  # of its mesh
    material: tuple[Row, ...]
    free: dict[str, dict[str, Any]]
    bends: bool = True  # so that it may be held, and seen where it rests


KINDS = {
    "soft": Kind(
        Soft, "tetrahedra",
        (
            ("E", 1e5, "guess: Young's modulus, where the search starts [Pa]"),
            ("nu", 0.4, "guess: Poisson's ratio"),
            ("density", 1000.0, "guess: weigh the body [kg/m3]"),
        ),
        {"E": {"bounds": [1e3, 1e7]}},
    ),
    "cloth": Kind(
        Cloth, "triangles",
        (
            ("thickness", 0.001, "guess: measure it [m]"),
            ("E", 1e6, "guess: Young's modulus, where the search starts [Pa]"),
            ("density", 1000.0, "guess: of the material; weigh it [kg/m3]"),
        ),
        {"E": {"bounds": [1e4, 1e8]}},
    ),
    "rigid": Kind(
        Rigid, "triangles",
        (("density", 1000.0, "guess: weigh the body [kg/m3]; or `mass` [kg]"),),
        {"velocity": {}}, bends=False,
    ),
    "springs": Kind(
        Springs, "points",
        (
            ("stiffness", 1000.0, "guess: of every spring [N/m]"),
            ("mass", 0.1, "guess: of the body; weigh it [kg]"),
        ),
        {"stiffness": {"bounds": [10.0, 1e5]}},
    ),
}  # fmt: skip


def pendulum(place: np.ndarray | None) -> Subject:
    """Return a pendulum of one link, whose bob is at a place (3,) [m], if that is known."""
    angle = np.radians(ANGLE)
    bob = LENGTH * np.array([np.sin(angle), -np.cos(angle), 0.0])
    pivot = np.zeros(3) if place is None else place - bob
    rows: list[Row] = [
        ("kind", PENDULUM, "one link; for two, lists of two numbers"),
        ("length", [LENGTH], "guess: from the pivot to the middle of the bob [m]"),
        ("angle", [ANGLE], "guess: at the start, from the vertical [deg]"),
        ("pivot", pivot, "guess: where it hangs [m]"),
        ("bob_radius", 0.05 * LENGTH, "guess: drawn [m]"),
        ("rod_radius", 0.01 * LENGTH, "guess: drawn [m]"),
    ]
    middle, half = pivot + 0.5 * bob, 0.6 * LENGTH
    return Subject(
        table_text("[bodies.rod]", rows), np.stack([middle - half, middle + half]),
        {"rod.length": {}, "rod.angle": {}}, "rod", pivot + bob,
    )  # fmt: skip


def meshed_body(
    mesh: str, kind: str | None, folder: Path, *,
    place: np.ndarray | None, color: list[float] | None, is_still: bool,
) -> Subject:  # fmt: skip
    """Return a body with a mesh: a file or a generator, as `resolved` returns it.

    Its middle is put at a `place` (3,) [m]. A body that bends is held at its top where it
    `is_still`.
    """
    stem = re.sub(r"\W", "_", Path(mesh.rpartition(":")[2]).stem)
    name = stem if stem.isidentifier() and stem not in RESERVED else "body"
    sized = _generated(mesh, kind) if mesh in GENERATORS or mesh.startswith(SHAPE) else []
    chosen = {key: value for key, value, _ in sized}
    with _in_words_of_the_command():
        source = read_source("MESH", KINDS[kind or "soft"].declared(mesh=mesh, **chosen))
        surface = None if kind == "springs" else surface_of("MESH", source)
        longest, notes = float(np.ptp(source.mesh.points, axis=0).max()), ()
        if not sized:
            sized = [
                ("scale", 1.0, f"to metres: the mesh is {longest:.4g} m long, if that is right")
            ]
            if longest > LONGEST:
                why = f"its mesh is {longest:.4g} long, which must be millimetres"
                sized, notes = [("scale", MILLIMETRE, f"guess: {why}")], (f"{name}: {why}.",)
        kind_guess = "" if kind else "guess: by the mesh; "
        kind = kind or ("cloth" if _opening(surface) else "soft")
        _check_kind(kind, surface, mesh)
        body = KINDS[kind]
        chosen = {key: value for key, value, _ in sized}
        source = read_source("MESH", body.declared(mesh=mesh, **chosen))
        count = len(source.mesh.points) if surface is None else len(surface.faces)
        filled = ""
        if kind == "soft":
            volume = volume_of("MESH", source, Soft.edge_length)
            count, filled = volume.n_tets, "" if volume is source.mesh else "filled with "
    points = np.asarray(source.mesh.points)
    box = np.stack([points.min(axis=0), points.max(axis=0)])
    shift = np.zeros(3) if place is None else place - box.mean(axis=0)
    box += shift
    is_file = Path(mesh).is_absolute()
    rows: list[Row] = [
        ("kind", kind, f"{kind_guess}or {', '.join(other for other in KINDS if other != kind)}"),
        ("mesh", beside(mesh, folder) if is_file else mesh, f"{filled}{count} {body.counts}"),
        *sized,
    ]
    if filled:
        rows.append(("edge_length", Soft.edge_length, "guess: of the tetrahedra; finer is surer"))
    where = "of the mesh's origin [m]"
    rows.append(("position", shift, where if place is None else f"guess: {where}"))
    rows += body.material
    if body.bends:
        top = [
            *box.mean(axis=0)[:1],
            box[1, 1] - TOP * (box[1, 1] - box[0, 1]),
            box.mean(axis=0)[2],
        ]
        held = {"plane": {"point": top, "normal": [0.0, -1.0, 0.0]}}
        if is_still:
            rows.append(("held", held, "guess: it hangs on its upper end"))
        else:
            rows.append(("# held", held, "where it is clamped; here its upper end"))
    if color is not None:
        rows.append(("look", {"color": color}, "guess: fitted to the first frame, as the light is"))
    floor: list[Row] = [
        ("point", [0.0, float(box[0, 1]), 0.0], "what it lands on, if anything: its height"),
        ("friction", 0.3, ""),
    ]
    free = {"position": {}} if is_still and not body.bends else body.free
    return Subject(
        "\n".join([table_text(f"[bodies.{name}]", rows), table_text("# [obstacles.floor]", floor)]),
        box, {f"{name}.{key}": settings for key, settings in free.items()}, name,
        settles=is_still and body.bends, notes=notes,
    )  # fmt: skip


def _generated(mesh: str, kind: str | None) -> list[Row]:
    """Return the rows of the size and the cells of a generated mesh."""
    _, sizes, cells = GENERATORS.get(mesh, (None, (1.0,), None))
    size = [SMALLER * edge for edge in sizes]
    rows: list[Row] = [("size", size, "guess: measure it [m]")]
    if cells is not None and kind != "rigid":
        counts = (
            [max(1, round(cells * edge / max(size))) for edge in size]
            if isinstance(cells, int)
            else cells
        )
        rows.append(("cells", counts, "guess: more are surer, and take longer"))
    return rows


def _opening(surface: Any) -> str:
    """Return why a surface bounds no solid; nothing where it does."""
    try:
        surface.require_closed("mesh")
    except ValueError as error:
        return str(error)
    return ""


def _check_kind(kind: str, surface: Any, mesh: str) -> None:
    """Raise if a kind of body does not fit the surface of its mesh; springs fit any."""
    if surface is None:
        return
    opening, name = _opening(surface), Path(mesh).name
    if kind == "cloth" and not opening:
        raise StudyError(
            f"`--kind` cloth does not fit {name}, which is a closed solid: give `--kind soft` or "
            "`--kind rigid`, or the mesh of a sheet."
        )
    if kind != "cloth" and opening:
        raise StudyError(
            f"`--kind` {kind} does not fit {name}, which is no closed solid: {opening} Or give "
            "`--kind cloth`."
        )


@contextmanager
def _in_words_of_the_command() -> Iterator[None]:
    """Name the option where a message names a key of a body."""
    try:
        yield
    except StudyError as error:
        raise StudyError(str(error).replace("`MESH.mesh`", "`--mesh`")) from error
