"""A silicone beam that is clamped at one end and let go, with and without a weight at its tip.

Six markers on stems are tracked, three of them at the clamp. The files have up along x and the beam
along z; frames begin just before the beam is let go. A weight of 52 g at the upper edge of the tip
pulls with 0.510 N, and swings with the beam: its period is 0.231 s with the weight and 0.129 s
without. The clamp is 1.5 mm further back in the file with the weight.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adjsim.meshes.grid import box_tets
from benchmarks.real.fits import draw_fit, found_in_scene, row


FILE, LOADED = "beam_gravity.c3d", "beam_load52.c3d"
SOURCE = (
    "Markers of github.com/srl-ethz/diffPD_sim2real (MIT): Dubied, Michelis, Spielberg, "
    "Katzschmann, Sim-to-Real for Soft Robots Using Differentiable FEM, IEEE RA-L 2022."
)
OTHERS = "264 and 294 kPa (authors), 267 to 296 kPa (beam theory)"
CELLS = ((3, 3, 10), (4, 4, 14))
SIZE, DENSITY = (0.03, 0.03, 0.1), 1070.0  # [m], [kg/m3]
WEIGHT = 0.052  # [kg]
ANSWER = (2, 4)  # where it stands in the table: row and column
SCENE = """
[bodies.beam]
kind = "soft"
mesh = "box"
size = {size}
cells = {cells}
position = [-0.0306, 0.053, 0.0293]
E = 5e5
nu = 0.45
density = {density}
mass_factors = {factors}
viscosity = 50.0
held.plane = {{ point = [0.0, 0.0, -0.0206], normal = [0.0, 0.0, 1.0] }}

[observations.markers]
kind = "points"
file = "{file}"
body = "beam"
rotation = [0.0, 0.0, 90.0]
position = [0.0, 0.0, {ahead}]
frames = {frames}
error = 0.001
start = -0.004

[free]
"beam.E" = {{ bounds = [3e4, 3e6] }}
"beam.viscosity" = {{ bounds = [1.0, 1000.0] }}
"observations.markers.start" = {{ bounds = [-0.03, 0.03] }}
"""


def table(file: Path, axes: Any = None) -> Iterator[str]:
    """Yield the lines of a table: the stiffness that is found with meshes and weights.

    With `axes` of Matplotlib the fit of the finer mesh without weight is drawn.
    """
    yield f"Others: {OTHERS}."
    yield "| mesh | weight | number | start | found (95 % interval) | verdict |"
    yield "|" + " --- |" * 6
    loads = [(file, 0.0, [64, 130], 0.0)]
    if (other := file.with_name(LOADED)).is_file():
        loads.append((other, WEIGHT, [44, 110], 0.0015))
    for markers, weight, frames, ahead in loads:
        for cells in CELLS:
            scene = SCENE.format(
                size=list(SIZE),
                cells=list(cells),
                density=DENSITY,
                factors=mass_factors(cells, weight),
                file=markers.resolve(),
                ahead=ahead,
                frames=frames,
            )
            with tempfile.TemporaryDirectory() as folder:
                answer = found_in_scene(scene, Path(folder))
            if axes is not None and not weight and cells == CELLS[-1]:
                draw_fit(axes, answer, 1, unit=1e-3, label="height of the markers [mm]")
                stiff = answer.values["beam.E"].item() / 1e3
                axes.set_title(f"beam: {stiff:.0f} kPa, others 264 to 296")
            mesh = " x ".join(map(str, cells))
            yield f"| {mesh} | {1e3 * weight:g} g " + row(
                answer, "beam.E", "500 kPa", unit=1e3, name="kPa"
            )


def mass_factors(cells: tuple[int, int, int], weight: float) -> list[float]:
    """Return what masses of nodes are multiplied by where a weight is at the tip's upper edge."""
    mesh = box_tets(cells, SIZE)
    masses = np.zeros(len(mesh.points))
    np.add.at(masses, mesh.tets, DENSITY / 4.0 * mesh.volumes[:, None])
    edge = np.all(np.isclose(mesh.points[:, 1:], SIZE[1:]), axis=1)
    return (1.0 + weight / edge.sum() * edge / masses).tolist()
