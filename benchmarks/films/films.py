"""The test films: scenes with their true values, what is free, and how each is filmed."""

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


def camera(
    eye: tuple[float, ...], target: tuple[float, ...], fov_y: float = 35.0
) -> dict[str, dict[str, Any]]:
    """Return the cameras of a scene with one."""
    return {"front": {"eye": list(eye), "target": list(target), "fov_y": fov_y}}


def floor(friction: float) -> dict[str, dict[str, Any]]:
    """Return the obstacles of a scene with a floor."""
    return {"floor": {"kind": "plane", "point": [0.0, 0.0, 0.0], "friction": friction}}


SOFT_FILMS = (
    Film(
        name="beam-clamped",
        scene={
            "bodies": {
                "beam": {
                    "kind": "soft",
                    "mesh": "beam.vtu",
                    "position": [0.2, 0.0, 0.0],
                    "E": 6e5,
                    "nu": 0.35,
                    "density": 1000.0,
                    "held": {"plane": {"point": [0.001, 0.0, 0.0], "normal": [1.0, 0.0, 0.0]}},
                }
            },
            "cameras": camera((0.35, 0.08, 0.72), (0.19, -0.09, 0.0)),
        },
        free={"beam.E": (1.5e6, (1e4, 1e8))},
        sharp=True,
        plate="color",
    ),
    Film(
        name="ball-drop",
        scene={
            "bodies": {
                "ball": {
                    "kind": "soft",
                    "mesh": "ball.vtu",
                    "position": [0.0, 0.36, 0.0],
                    "E": 5e4,
                    "nu": 0.4,
                    "density": 1000.0,
                }
            },
            "obstacles": floor(0.5),
            "cameras": camera((0.12, 0.32, 0.8), (0.0, 0.21, 0.0)),
        },
        free={"ball.E": (2e5, (3e3, 1e7))},
        shot=Shot(floor=0.0),
        color=(0.2, 0.5, 0.8),
        guess=(0.3, 0.4, 0.7),
        law="differs",
    ),
)
FILMS = SOFT_FILMS
