"""The test films, and variations of three of them.

`scenes/NAME.toml` has the true scene, start and bounds of what is free, and a table [film] with the
rest of `Film`.
"""

import tomllib
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from benchmarks.films.drawing import Color, Shot
from benchmarks.films.solver_soft import ENERGIES


@dataclass(frozen=True, kw_only=True, eq=False)
class Film:
    """A test film: a scene with its true values, what is free, and how it is filmed."""

    name: str
    scene: dict[str, Any]  # bodies, obstacles, cameras and world, at their true values
    free: dict[str, dict[str, Any]]  # "start" and "bounds" of every free parameter, by path
    shot: Shot = field(default_factory=Shot)
    color: Color = (0.8, 0.4, 0.2)  # of the body in the film
    guess: Color = (0.7, 0.5, 0.3)  # what the user believes it to be
    colors: dict[str, tuple[Color, Color]] = field(default_factory=dict)  # the same, by name
    texture: bool = False  # whether the body has a pattern that the scene lacks
    sharp: bool = False  # whether its edges are sharp, as those of a box
    plate: str = "none"  # the background of the scene file: "none", "color" or "picture"
    solver: dict[str, Any] = field(default_factory=dict)  # energy, consistent, or a finer mesh
    law: str = "same"  # "differs" where contact, bending or mesh are not those of adjsim
    note: str = ""

    @property
    def drawn(self) -> list[str]:
        """Names of the bodies, and of the obstacles that are drawn."""
        obstacles = self.scene.get("obstacles", {})
        return [*self.scene["bodies"], *(name for name in obstacles if obstacles[name].get("draw"))]

    def seen(self, name: str) -> tuple[Color, Color]:
        """Return the colour of a body in the film, and what the user believes it to be."""
        return self.colors.get(name, (self.color, self.guess))


def read_film(path: Path) -> Film:
    """Return the film of a file."""
    scene = tomllib.loads(path.read_text())
    return Film(name=path.stem, free=scene.pop("free"), **scene.pop("film"), scene=scene)


FILMS = tuple(map(read_film, sorted(Path(__file__).parent.glob("scenes/*.toml"))))
VARIED = {"beam-clamped": 20, "hexbeam-pushed": 15, "ball-drop": 15}


def variations() -> list[Film]:
    """Return 50 films: three of the others with other noise, codec, energy, light and rate."""
    films = {film.name: film for film in FILMS}
    return [varied(films[name], k) for name, count in VARIED.items() for k in range(count)]


def varied(film: Film, k: int) -> Film:
    """Return variation k of a film of a soft body, with another error of its camera too.

    In contact the energies are those that a third of strain leaves alike, with lumped masses.
    """
    rng = np.random.default_rng([k, len(film.name)])
    angle, height = rng.uniform(-1.0, 1.5), rng.uniform(1.0, 3.0)
    rate = rng.choice([2 / 3, 1.0, 4 / 3])
    shot = replace(
        film.shot,
        fps=round(film.shot.fps * rate),
        n_frames=round((film.shot.n_frames - 1) * rate) + 1,
        noise=float(rng.choice([0.0, 2.0, 5.0, 8.0])),
        crf=int(rng.choice([18, 23, 28, 32])),
        light=(float(2 * np.sin(angle)), float(height), float(2 * np.cos(angle))),
        ambient=float(rng.uniform(0.2, 0.5)),
    )
    touches = "obstacles" in film.scene
    energies = ["log", "volume"] if touches else [*ENERGIES]
    solver = {
        "energy": str(rng.choice(energies)),
        "consistent": bool(rng.integers(2)) and not touches,
    }
    return replace(film, name=f"{film.name}-{k:02d}", shot=shot, solver=solver)
