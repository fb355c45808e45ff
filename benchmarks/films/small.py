"""Inputs that are a little wrong, one in each case: what a user cannot know, or leaves out.

An answer may be *found* for them only if its interval holds the truth.
"""

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from benchmarks.films.films import FILMS, Film
from benchmarks.films.making import MEASURED, make


Scene = dict[str, Any]
HEADER = (
    "case",
    "what is wrong",
    "number",
    "answer",
    "truth",
    "error",
    "interval holds",
    "verdict",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A test film, and one thing in which film and scene file differ."""

    film: str
    wrong: str  # for readers
    scene: Callable[[Scene], None] = lambda _scene: None  # declares it wrongly, in place
    filmed: Callable[[Film], Film] = lambda film: film  # films what the scene file lacks


def _multiplied(table: str, name: str, key: str, by: float) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        section = scene[table][name]
        section[key] = by * section.get(key, 1.0)

    return change


def _rate(by: float) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        fps = next(film.shot.fps for film in FILMS if film.name == scene["title"])
        scene["observations"]["film"]["fps"] = by * fps

    return change


def _tilted(degrees: float) -> Callable[[Scene], None]:
    """The scene leans by this angle against the gravity that is declared."""

    def change(scene: Scene) -> None:
        turn = np.radians(degrees)
        down = [9.81 * np.sin(turn), -9.81 * np.cos(turn), 0.0]
        scene.setdefault("world", {})["gravity"] = [float(component) for component in down]

    return change


def _without(table: str, name: str, key: str) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        del scene[table][name][key]
        scene["free"].pop(f"{name}.{key}", None)

    return change


def _row_held(scene: Scene) -> None:
    scene["bodies"]["beam"]["held"]["plane"]["point"][0] += 0.4 / 16  # cells along the beam


def _solved(**more: Any) -> Callable[[Film], Film]:
    return lambda film: replace(film, solver={**film.solver, **more})


def _of_another_solid(film: Film) -> Film:
    poisson = {"duck.nu": {"start": 0.3, "bounds": [0.05, 0.49]}}
    return replace(film, solver={"energy": "volume"}, free={**film.free, **poisson})


def _blurred(film: Film) -> Film:
    return replace(film, shot=replace(film.shot, shutter=0.5))


CASES = {
    **{
        f"{name}-{percent}": Case(film=film, wrong=f"{what}, {percent} %", scene=change(percent))
        for name, film, what, change in (
            ("size", "duck-wall", "size too large",
             lambda percent: _multiplied("bodies", "duck", "scale", 1 + percent / 100)),
            ("rate", "pendulum", "frame rate too high", lambda percent: _rate(1 + percent / 100)),
            ("density", "beam-clamped", "density too large",
             lambda percent: _multiplied("bodies", "beam", "density", 1 + percent / 100)),
        )
        for percent in (3, 5, 7)
    },
    **{
        f"tilt-{degrees}": Case(
            film="puck-slide", wrong=f"gravity tilted, {degrees}°", scene=_tilted(degrees)
        )
        for degrees in (1, 5)
    },
    "no-dry-friction": Case(
        film="links", wrong="no dry friction in the elbow",
        scene=_without("joints", "elbow", "dry_friction"),
    ),
    "no-damping": Case(
        film="pendulum", wrong="no damping", scene=_without("bodies", "pendulum", "damping")
    ),
    "no-drag": Case(
        film="rigid-throw", wrong="no drag, which is 0.5 1/s", filmed=_solved(drag=0.5)
    ),
    "contact-law": Case(
        film="ball-drop", wrong="nodes leave the floor with half their speed",
        filmed=_solved(restitution=0.5),
    ),
    "solid-law": Case(
        film="duck-wall", wrong="another energy of the solid, nu free", filmed=_of_another_solid
    ),
    "blur": Case(film="ball-thrown", wrong="half a frame of motion blur", filmed=_blurred),
    "held-row": Case(
        film="beam-clamped", wrong="one more row of nodes held", scene=_row_held
    ),
}  # fmt: skip


def make_case(name: str, out: Path) -> Path:
    """Make the film of a case and its scene file; return their folder."""
    case, folder = CASES[name], out / name
    film = next(film for film in FILMS if film.name == case.film)
    make(case.filmed(film), folder)
    scene = tomllib.loads((folder / "scene.toml").read_text())
    case.scene(scene)
    world = scene.get("world", {})
    owners = (world, *scene["bodies"].values(), *scene.get("obstacles", {}).values())
    for owner in owners:  # nothing was measured: the uncertainties are those that adjsim takes
        for key in (*MEASURED, "tilt_error", "gravity_error"):
            owner.pop(key, None)
    (folder / "scene.toml").write_text(tomlkit.dumps(scene))
    truth = json.loads((folder / "truth.json").read_text())
    kept = {path: value for path, value in truth["parameters"].items() if path in scene["free"]}
    changed = {**truth, "parameters": kept, "wrong": case.wrong}
    (folder / "truth.json").write_text(json.dumps(changed, indent=1))
    return folder
