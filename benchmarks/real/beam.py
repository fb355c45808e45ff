"""A silicone beam that is clamped at one end and let go, with and without a load at its tip.

Six markers on stems are tracked, three of them on the clamp. The file has up along x and the beam
along z; frames begin just before the beam is let go.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.real.found import draw_fit, found_in_scene, row


FILE, LOADED = "beam_gravity.c3d", "beam_load52.c3d"
SOURCE = (
    "Markers of github.com/srl-ethz/diffPD_sim2real (MIT): Dubied, Michelis, Spielberg, "
    "Katzschmann, Sim-to-Real for Soft Robots Using Differentiable FEM, IEEE RA-L 2022."
)
OTHERS = "264 and 294 kPa (authors), 267 to 296 kPa (beam theory)"
CELLS = ((3, 3, 10), (4, 4, 14))
SCENE = """
[bodies.beam]
kind = "soft"
mesh = "box"
size = [0.03, 0.03, 0.1]
cells = {cells}
position = [-0.0306, 0.053, 0.0293]
E = 5e5
nu = 0.45
density = 1070.0
viscosity = 50.0
held.plane = {{ point = [0.0, 0.0, -0.0206], normal = [0.0, 0.0, 1.0] }}
{push}
[observations.markers]
kind = "points"
file = "{file}"
body = "beam"
rotation = [0.0, 0.0, 90.0]
frames = {frames}
error = 0.001
start = -0.004

[free]
"beam.E" = {{ bounds = [3e4, 3e6] }}
"beam.viscosity" = {{ bounds = [1.0, 1000.0] }}
"observations.markers.start" = {{ bounds = [-0.03, 0.03] }}
"""
LOAD = """
[pushes.load]
body = "beam"
force = [0.0, -0.510, 0.0]
at = [-0.0306, 0.068, 0.0793]
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the stiffness that is found with meshes and loads.

    With `axes` of Matplotlib the fit of the finer mesh without load is drawn.
    """
    yield f"Others: {OTHERS}."
    yield "| mesh | load | number | start | found (95 % interval) | verdict |"
    yield "|" + " --- |" * 6
    loads = [(file, "none", "", [64, 130])]
    if (other := file.with_name(LOADED)).is_file():
        loads.append((other, "0.510 N", LOAD, [44, 110]))
    for markers, load, push, frames in loads:
        for cells in CELLS:
            scene = SCENE.format(
                cells=list(cells), push=push, file=markers.resolve(), frames=frames
            )
            with tempfile.TemporaryDirectory() as folder:
                answer = found_in_scene(scene, Path(folder))
            if axes is not None and not push and cells == CELLS[-1]:
                draw_fit(axes, answer, 1, unit=1e-3, label="height of the markers [mm]")
                stiff = answer.values["beam.E"].item() / 1e3
                axes.set_title(f"beam: {stiff:.0f} kPa, others 264 to 296")
            mesh = " x ".join(map(str, cells))
            yield f"| {mesh} | {load} " + row(answer, "beam.E", "500 kPa", unit=1e3, name="kPa")
