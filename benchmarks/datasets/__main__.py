"""`python -m benchmarks.datasets pac-nerf | spring-gaus | rgbench`: see the package."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.datasets import views
from benchmarks.datasets.rgbench import rgbench as rgbench_scene
from studies.runs.errors import StudyError


app = typer.Typer(add_completion=False, help="Make scene files of other papers' data sets.")
Folder = Annotated[Path, typer.Argument(help="The folder of one object or capture.")]
Out = Annotated[Path, typer.Argument(help="The folder of the scene, which is made.")]
Mesh = Annotated[Path, typer.Option(help="The mesh of the body, as `mesh` of a scene file.")]
BodyMesh = Annotated[
    Path | None, typer.Option("--mesh", help="The same; without it the hull of the first frames.")
]
Young = Annotated[float, typer.Option("--E", help="Where the search of E begins [Pa].")]
Fps = Annotated[float, typer.Option(help="Frames per second.")]
Floor = Annotated[float, typer.Option(help="Height of the floor [m].")]


@app.command()
def pac_nerf(
    folder: Folder, out: Out, *,
    mesh: BodyMesh = None, young: Young = 1e5, fps: Fps = 24.0, floor: Floor = 0.0,
) -> None:  # fmt: skip
    """Write the scene of an object of PAC-NeRF."""
    _written(lambda: views.pac_nerf(folder, out, mesh, E=young, fps=fps, floor=floor))


@app.command()
def spring_gaus(
    folder: Folder, out: Out, *,
    mesh: BodyMesh = None, young: Young = 1e5, fps: Fps = 24.0, floor: Floor = 0.3,
) -> None:  # fmt: skip
    """Write the scene of a synthetic object of Spring-Gaus; the rate is a guess of ours."""
    _written(lambda: views.spring_gaus(folder, out, mesh, E=young, fps=fps, floor=floor))


@app.command()
def rgbench(
    folder: Folder,
    out: Out,
    *,
    mesh: Mesh,
    delay: Annotated[float, typer.Option(help="`camera_delay` of the capture [s].")] = 0.0,
    reach: Annotated[float, typer.Option(help="Radius of what a gripper holds [m].")] = 0.03,
) -> None:
    """Write the scene of a capture of RGBench."""
    _written(lambda: rgbench_scene(folder, out, mesh, delay=delay, reach=reach))


def _written(write: Callable[[], Path]) -> None:
    try:
        typer.echo(str(write()))
    except StudyError as error:
        raise typer.BadParameter(str(error)) from error


if __name__ == "__main__":
    app()
