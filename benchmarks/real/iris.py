"""A ball on a rope before a wall, of the benchmark IRIS: the length to the middle of the ball.

The film is one of those that the benchmark's repository shows: 800 x 450 pixels, at 10 Hz. Nothing
is known of its camera but a guess of its field of view. The ball is tracked by its colour from its
second swing on: in the first one its support still sways by 16 pixels, 5 % of the rope.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.found import draw_fit, found_in_scene, row
from studies.cli.tracking import track_command


FILE = "iris_pendulum.gif"
SOURCE = (
    "A film of github.com/KurbanIntelligenceLab/iris-bench (CC-BY-NC 4.0): R. Khanbayov et al., "
    "IRIS, ECCV 2026; ropes of 0.5 m, and the ball's radius of 0.031 m."
)
LENGTH = 0.531  # [m]
BALL = "0.6 0.7 0.1"
ANSWER = (1, 2)  # where it stands in the table: row and column
SCENE = """
[bodies.rope]
kind = "pendulum"
length = [0.8]
angle = [75.0]
rate = [-30.0]
damping = [0.01]
mass = [0.06]
bob_radius = 0.031
rod_radius = 0.003

[cameras.front]
K = [[800.0, 0.0, 399.5], [0.0, 800.0, 224.5], [0.0, 0.0, 1.0]]
R = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
t = [0.0, -0.4, 1.94]
size = [800, 450]
position_error = 0.3
angle_error = 5.0
fov_error = 0.0

[observations.ball]
kind = "points"
file = "ball.csv"
body = "rope"
camera = "front"
frames = [12, 39]
at = { ball = [0.7727, -0.2071, 0.0] }
error = 3.0

[free]
"rope.length" = { bounds = [0.1, 3.0] }
"rope.angle" = { bounds = [-170.0, 170.0] }
"rope.rate" = { bounds = [-1500.0, 1500.0] }
"rope.damping" = { bounds = [1e-4, 1.0] }
"cameras.front.pose" = {}
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the length that is found, beside that of the authors.

    With `axes` of Matplotlib the fit is drawn.
    """
    with tempfile.TemporaryDirectory() as folder:
        numbers = {"color": BALL, "frames": None, "region": None}
        track_command(
            file, Path(folder) / "ball.csv", numbers,
            background=False, tolerance=0.3, fps=None, point="ball",
        )  # fmt: skip
        answer = found_in_scene(SCENE, Path(folder))
    if axes is not None:
        draw_fit(axes, answer, 0, label="column of the ball [pixels]")
        axes.set_title(
            f"ball: {answer.values['rope.length'].item():.3f} m, {LENGTH} by the authors"
        )
    yield "| number | start | found (95 % interval) | verdict | by the authors |"
    yield "|" + " --- |" * 5
    yield row(answer, "rope.length", "0.8 m", f"{LENGTH} m")
