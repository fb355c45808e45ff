"""A ball on a rope that strikes one at rest, of the benchmark IRIS: the lengths of both ropes.

The film is one of those that the benchmark's repository shows: 800 x 450 pixels, at 10 Hz. Nothing
is known of its camera but a guess of its field of view. Both balls are tracked by their colours.
Struck, a ball flies off along its rope's circle, until the next strike 0.7 s later; the other one
hangs on a slack rope meanwhile. So the flight of either ball after it was struck is fitted, in one
scene. Each begins where the ball is lowest, before its first frame, and both ropes hang from one
point. How much deeper the dark ball hangs is from the picture.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.found import draw_fit, found_in_scene
from studies.cli.tracking import track_command


FILE = "iris_two_moving_pendulum_one_static.gif"
SOURCE = (
    "A film of github.com/KurbanIntelligenceLab/iris-bench (CC-BY-NC 4.0): R. Khanbayov et al., "
    "IRIS, ECCV 2026; ropes of 0.5 m."
)
LENGTH = 0.5  # [m]
# By ball: its colour, where it is looked for, how much deeper it hangs [m], its speed at the start
# [m/s], and the frames of its flight
BALLS = {
    "light": ("0.33 0.49 0.52", "100 130 800 450", 0.0, 2.0, (12, 19)),
    "dark": ("0.05 0.05 0.25", None, 0.008, -2.0, (19, 26)),
}
ANSWER = (1, 2)  # where it stands in the table: row and column
BALL = """
[bodies.{name}]
kind = "rigid"
mesh = "shape:sphere"
size = [0.036]
position = [0.0, {height}, 0.0]
velocity = [{speed}, 0.0, 0.0]
mass = 0.031
inertia = [1.5e-5, 1.5e-5, 1.5e-5]

[joints.{name}_rope]
kind = "hinge"
between = ["world", "{name}"]
anchor = [0.0, 0.6, 0.0]
axis = [0.0, 0.0, 1.0]
viscous_friction = 1e-4
stiffness = 500.0
damping = 0.2
angular_stiffness = 1.0
angular_damping = 0.001

[observations.{name}]
kind = "points"
file = "{name}.csv"
body = "{name}"
camera = "front"
frames = {frames}
at = {{ {name} = [0.0, {height}, 0.0] }}
error = 3.0
start = 0.05
fps_error = 0.002
"""
SCENE = """
[world]
gravity_error = 0.0  # the camera rolls

[cameras.front]
K = [[800.0, 0.0, 399.5], [0.0, 800.0, 224.5], [0.0, 0.0, 1.0]]
R = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]
t = [0.0, 0.26, 1.3]
size = [800, 450]
position_error = 0.3
angle_error = 5.0
fov_error = 0.0

[free]
"light_rope.anchor[1]" = { bounds = [0.2, 1.5] }
"dark_rope.anchor[1]" = { tied_to = "light_rope.anchor[1]" }
"light.velocity[0]" = { bounds = [0.0, 5.0] }
"dark.velocity[0]" = { bounds = [-5.0, 0.0] }
"observations.light.start" = { bounds = [0.0, 0.2] }
"observations.dark.start" = { bounds = [0.0, 0.1] }
"cameras.front.translation" = {}
"cameras.front.rotation[2]" = {}

[search]
coarse = 8
basins = 1
stages = [1.0]
held_back = 0.0
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the lengths that are found, beside those of the authors.

    With `axes` of Matplotlib the fit is drawn.
    """
    scene = SCENE
    with tempfile.TemporaryDirectory() as folder:
        for name, (color, region, deeper, speed, frames) in BALLS.items():
            numbers = {"color": color, "frames": None, "region": region}
            track_command(
                file, Path(folder) / f"{name}.csv", numbers,
                background=False, tolerance=0.12, fps=None, point=name, hue=True,
            )  # fmt: skip
            scene += BALL.format(name=name, height=-deeper, speed=speed, frames=list(frames))
        answer = found_in_scene(scene, Path(folder))
    path = "light_rope.anchor[1]"
    ends = [float(end.item()) for end in (answer.values[path], *answer.intervals[path])]
    if axes is not None:
        draw_fit(axes, answer, 0, label="columns of both balls [pixels]")
        axes.set_title(f"two balls: {ends[0]:.3f} m, {LENGTH} by the authors")
    yield "| number | start | found (95 % interval) | verdict | by the authors |"
    yield "|" + " --- |" * 5
    for name, (_, _, deeper, _, _) in BALLS.items():
        value, low, high = (end + deeper for end in ends)
        found = f"{value:.4g} m ({low:.4g} to {high:.4g})"
        verdict = answer.verdicts[path]
        yield f"| rope of the {name} ball | 0.6 m | {found} | {verdict} | {LENGTH} m |"
