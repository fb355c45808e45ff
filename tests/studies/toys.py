"""Every synthetic study in a tiny version, with the error that it must not exceed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Toy:
    """Overrides that make a study tiny, and what is asked of it then.

    `errors` holds the largest mean relative error of each path. `mistakes` are overrides
    with what the message must say.
    """

    study: str
    overrides: tuple[str, ...]
    errors: dict[str, float]
    mistakes: tuple[tuple[tuple[str, ...], str], ...]


BOUNCE = Toy(
    "bounce",
    (
        "time.dt=1e-3",
        "time.steps=1600",
        "time.frames=10",
        "image.height=24",
        "image.width=48",
        "optimizer.stages=[0.5, 1.0]",
    ),
    {"speed": 1e-8, "gravity": 1e-8},
    (
        (("ball.radius=0.0",), "`ball.radius` must be positive"),
        (("ball.mass=-1.0",), "`ball.mass` must be positive"),
        (("ball.position=[0.0, 0.5, 0.0]",), "`ball.position` must be above the floor"),
        (("hidden.speed=[2.0, 1.0]",), r"`hidden.speed` must be \[low, high\]"),
        (("hidden.speed=[2.0]",), r"`hidden.speed` must have shape \(2\)"),
        (("start.gravity=[20.0, 20.0]",), "start of `gravity` must lie inside its bounds"),
        (("floor.stiffness=0.0",), "`floor.stiffness` must be positive"),
        (("time.steps=3",), "`time.steps` must be at least `time.frames`"),
        (("optimizer.stages=[0.5]",), "`optimizer.stages` must be parts of the video"),
        (("instances=0",), "`instances` must be positive"),
        (("time.dt=0.5",), "`camera` sees nothing of the motion"),
    ),
)

TOYS = {toy.study: toy for toy in (BOUNCE,)}
