"""What a test film is: a scene with its true values, what is free, and how it is filmed."""

from dataclasses import dataclass, field
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


def soft(mesh: str, *, E: float, nu: float = 0.4, **more: Any) -> dict[str, Any]:
    """Return the table of a soft body of 1000 kg/m3."""
    return {"kind": "soft", "mesh": mesh, "E": E, "nu": nu, "density": 1000.0, **more}


def plane(point: list[float], normal: list[float]) -> dict[str, Any]:
    """Return the table that holds the nodes on a plane and behind it."""
    return {"plane": {"point": point, "normal": normal}}


def camera(
    eye: tuple[float, ...], target: tuple[float, ...], fov_y: float = 35.0
) -> dict[str, dict[str, Any]]:
    """Return the cameras of a scene with one."""
    return {"front": {"eye": list(eye), "target": list(target), "fov_y": fov_y}}


def floor(friction: float) -> dict[str, dict[str, Any]]:
    """Return the obstacles of a scene with a floor."""
    return {"floor": {"kind": "plane", "point": [0.0, 0.0, 0.0], "friction": friction}}
