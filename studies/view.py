"""A run in 3-D: the fitted motion, played in a PyVista window or drawn into a file."""

import ctypes
import os
import sys
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
        If the run is not finished, the file is no PNG, or nothing here can draw.
    """
    arrays = folder.read_npz(run_folder.TRAJECTORY)
    if screenshot is not None and screenshot.suffix.lower() != ".png":
        raise StudyError(f"`--screenshot` must name a .png file, got {screenshot}.")
    if problem := drawing_problem(on_screen=screenshot is None):
        raise StudyError(f"{problem} The run's pictures are in {folder.file('report.html')}.")
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


def drawing_problem(*, on_screen: bool) -> str | None:
    """Return why VTK cannot draw here and the way out, or None if it can.

    Without these libraries VTK does not raise: the process ends with a segmentation fault.
    """
    if not sys.platform.startswith("linux"):
        return None
    has_display = bool(os.environ.get("DISPLAY"))
    if on_screen and not has_display:
        return "There is no display to open a window on: add `--screenshot FILE.png`."
    on_display = has_display and _loads("libGL.so.1") and _loads("libX11.so.6")
    if on_display or (not on_screen and (_loads("libEGL.so.1") or _loads("libOSMesa.so.8"))):
        return None
    return "VTK needs an OpenGL library to draw, on Debian: apt install libegl1 libgl1 libx11-6."


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


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
