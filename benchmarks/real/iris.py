"""A ball on a rope before a wall, of the benchmark IRIS: the length to the middle of the ball.

The film is one of those that the benchmark's repository shows: 800 x 450 pixels, at 10 Hz. Nothing
is known of its camera but a guess of its field of view. The ball is tracked by its colour from its
second swing on, and so is the tip of the support that holds the rope: it is where the camera must
see the pivot. The camera rolls and moves in the fit, but is taken to look straight at the wall.

The support gives way: its tip sways to the ball's side, as a point of the rope does that is a
little below a pivot that stays. What swings is longer than the rope by so much, in parts of it the
slope of the tip's column against that of the ball seen from the tip.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.found import draw_fit, found_in_scene, row
from studies.api import Answer
from studies.cli.tracking import track_command


FILE = "iris_pendulum.gif"
SOURCE = (
    "A film of github.com/KurbanIntelligenceLab/iris-bench (CC-BY-NC 4.0): R. Khanbayov et al., "
    "IRIS, ECCV 2026; ropes of 0.5 m, and the ball's radius of 0.031 m."
)
LENGTH = 0.531  # [m]
# Colour, how far pixels may differ from it, and where it is looked for
BALL = "0.6 0.7 0.1", 0.3, None
TIP = "0.12 0.12 0.12", 0.12, "400 20 460 60"
ANSWER = (2, 2)  # where it stands in the table: row and column
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
fps_error = 0.002

[observations.tip]
kind = "points"
file = "tip.csv"
body = "rope"
camera = "front"
frames = [12, 39]
at = { tip = [0.0, 0.0, 0.0] }
error = 6.0
fps_error = 0.002

[free]
"rope.length" = { bounds = [0.1, 3.0] }
"rope.angle" = { bounds = [-170.0, 170.0] }
"rope.rate" = { bounds = [-1500.0, 1500.0] }
"rope.damping" = { bounds = [1e-4, 1.0] }
"cameras.front.translation" = {}
"cameras.front.rotation[2]" = {}
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the length that is found, beside that of the authors.

    With `axes` of Matplotlib the fit is drawn.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, (color, tolerance, region) in {"ball": BALL, "tip": TIP}.items():
            numbers = {"color": color, "frames": None, "region": region}
            track_command(
                file, Path(folder) / f"{name}.csv", numbers,
                background=False, tolerance=tolerance, fps=None, point=name,
            )  # fmt: skip
        answer = found_in_scene(SCENE, Path(folder))
    part = 1.0 / (1.0 + _sway(answer))
    if axes is not None:
        draw_fit(axes, answer, 0, label="column of ball and support [pixels]")
        length = part * answer.values["rope.length"].item()
        axes.set_title(f"ball: {length:.3f} m, {LENGTH} by the authors")
    yield "| number | start | found (95 % interval) | verdict | by the authors |"
    yield "|" + " --- |" * 5
    yield row(answer, "rope.length", "0.8 m", "")
    rope = row(answer, "rope.length", "0.8 m", f"{LENGTH} m", unit=1.0 / part)
    yield rope.replace("rope.length", "from the support's tip")


def _sway(answer: Answer) -> float:
    """Return by what part of the rope its upper end is below a pivot that stays."""
    columns = {one.name: one.targets()[:, 0] for one in answer.solved.problem.observers}
    return float(np.polyfit(columns["ball"] - columns["tip"], columns["tip"], 1)[0])
