"""What a test film is: a scene with its true values, what is free, and how it is filmed.

`scenes/NAME.toml` has the true scene, start and bounds of what is free, and a table [film] with the
rest of `Film`.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.films.drawing import Shot


Color = tuple[float, float, float]
Free = tuple[Any, tuple[float, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Film:
    """A test film.

    Attributes
    ----------
    name, note : str
    scene : dict
        Bodies (one), obstacles, cameras and world of the scene file, at their true values.
    free : dict
        Start and bounds of every free parameter, by path.
    shot : Shot
    color, guess : Color
        Of the body in the film, and what the user believes.
    texture, sharp : bool
        Whether the body has a pattern that the scene lacks, and whether its edges are sharp.
    plate : str
        What the scene file says of the background: "none", "color" or "picture".
    solver : dict
        Options of the solver: energy, consistent, or a finer mesh.
    law : str
        "same", or "differs" where contact, bending or mesh are not those of adjsim.
    """

    name: str
    scene: dict[str, Any]
    free: dict[str, Free]
    shot: Shot = field(default_factory=Shot)
    color: Color = (0.8, 0.4, 0.2)
    guess: Color = (0.7, 0.5, 0.3)
    texture: bool = False
    sharp: bool = False
    plate: str = "none"
    solver: dict[str, Any] = field(default_factory=dict)
    law: str = "same"
    note: str = ""

    @property
    def body(self) -> str:
        """Name of the body."""
        return next(iter(self.scene["bodies"]))


def read_film(path: Path) -> Film:
    """Return the film of a file."""
    scene = tomllib.loads(path.read_text())
    free = {name: (one["start"], tuple(one["bounds"])) for name, one in scene.pop("free").items()}
    about = scene.pop("film")
    shot = Shot(**{key: _tuple(value) for key, value in about.pop("shot", {}).items()})
    about = {key: _tuple(value) for key, value in about.items()}
    return Film(name=path.stem, scene=scene, free=free, shot=shot, **about)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
