"""A run in 3-D: the fitted motion, played in a PyVista window or drawn into a file."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from studies import run_folder
from studies.errors import StudyError
from studies.run_folder import RunFolder


SECONDS_PER_FRAME = 0.15


def view_run(folder: RunFolder, screenshot: Path | None = None) -> None:
    """Show the fitted motion, coloured by displacement.

    Parameters
    ----------
    folder : RunFolder
        A finished run.
    screenshot : pathlib.Path, optional
        Write the last frame to this PNG file, without a window.

    Raises
    ------
    StudyError
        If the run is not finished, or the file is no PNG.
    """
    arrays = folder.read_npz(run_folder.TRAJECTORY)
    if screenshot is not None and screenshot.suffix.lower() != ".png":
        raise StudyError(f"`--screenshot` must name a .png file, got {screenshot}.")
    plotter, grid = make_plotter(arrays, off_screen=screenshot is not None)
    if screenshot is not None:
        show_frame(grid, arrays, -1)
        plotter.screenshot(str(screenshot))
        plotter.close()
        return
    plotter.show(interactive_update=True, auto_close=False)
    while plotter.render_window is not None:
        for frame in range(len(arrays["x"])):
            show_frame(grid, arrays, frame)
            plotter.update()
            time.sleep(SECONDS_PER_FRAME)


def make_plotter(arrays: dict[str, np.ndarray], *, off_screen: bool) -> tuple[Any, Any]:
    """Return a plotter and the grid whose points move."""
    import pyvista

    tets = arrays["tets"]
    cells = np.hstack([np.full((len(tets), 1), 4), tets]).ravel()
    kinds = np.full(len(tets), pyvista.CellType.TETRA)
    grid = pyvista.UnstructuredGrid(cells, kinds, arrays["rest"].astype(float))
    moved = np.linalg.norm(arrays["x"] - arrays["rest"], axis=2)
    grid["displacement [m]"] = moved[-1]
    plotter = pyvista.Plotter(off_screen=off_screen, window_size=[1000, 700])
    plotter.set_background("white")  # pyright: ignore[reportArgumentType]
    plotter.add_mesh(
        grid, scalars="displacement [m]", show_edges=True, cmap="viridis",
        clim=[0.0, float(moved.max())], edge_color="#33404d",
    )  # fmt: skip
    plotter.add_axes()  # pyright: ignore[reportCallIssue]
    return plotter, grid


def show_frame(grid: Any, arrays: dict[str, np.ndarray], frame: int) -> None:
    """Move the grid to a frame."""
    x = arrays["x"][frame].astype(float)
    grid.points = x
    grid["displacement [m]"] = np.linalg.norm(x - arrays["rest"], axis=1)
