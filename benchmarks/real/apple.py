"""An apple on a string, filmed by a phone: the length of the string.

The pivot is outside of the picture, and nothing is known of the phone but a guess of its field of
view. The red of the apple is tracked; the search starts 50 % off, with the camera free, roll
included.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.fits import draw_fit, found_in_scene, row
from studies.cli.tracking import track_command


FILE = "redapple.mov"
SOURCE = "A film of github.com/christianausb/controlAlgorithms (MIT), 21.7 s at 60000/1001 Hz."
LENGTH = 1.056  # from the period, for g = 9.81 [m]
RED = "0.46 0.16 0.18"
ANSWER = (1, 2)  # where it stands in the table: row and column
SCENE = """
[bodies.string]
kind = "pendulum"
length = [1.6]
angle = [-22.0]
damping = [0.01]
mass = [0.2]
bob_radius = 0.04
rod_radius = 0.003

[cameras.phone]
K = [[554.0, 0.0, 319.5], [0.0, 554.0, 179.5], [0.0, 0.0, 1.0]]
R = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
t = [0.0, -1.4, 1.2]
position_error = 0.3
angle_error = 5.0
fov_error = 0.0

[observations.apple]
kind = "points"
file = "apple.csv"
body = "string"
camera = "phone"
at = { apple = [-0.5994, -1.4835, 0.0] }
error = 2.0

[free]
"string.length" = { bounds = [0.3, 4.0] }
"string.angle" = { bounds = [-60.0, 60.0] }
"string.damping" = { bounds = [1e-4, 1.0] }
"cameras.phone.pose" = {}
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the length that is found, beside that from the period.

    With `axes` of Matplotlib the fit is drawn.
    """
    with tempfile.TemporaryDirectory() as folder:
        numbers = {"color": RED, "frames": None, "region": None}
        track_command(
            file, Path(folder) / "apple.csv", numbers,
            background=False, tolerance=0.15, fps=None, point="apple",
        )  # fmt: skip
        answer = found_in_scene(SCENE, Path(folder))
    if axes is not None:
        draw_fit(axes, answer, 0, label="column of the apple [pixels]")
        axes.set_title(
            f"apple: {answer.values['string.length'].item():.3f} m, {LENGTH} by the period"
        )
    yield "| number | start | found (95 % interval) | verdict | by the period |"
    yield "|" + " --- |" * 5
    yield row(answer, "string.length", "1.6 m", f"{LENGTH} m")
