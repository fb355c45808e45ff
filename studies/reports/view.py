"""A run in 3-D: the fitted motion, played in a PyVista window or drawn into a file."""

import ctypes
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from render.camera import AnyCamera
from render.lenses import Intrinsics, Orthographic
from studies.runs import folder as run_folder
from studies.runs.errors import StudyError
from studies.runs.folder import RunFolder


SECONDS_PER_FRAME = 0.15
UP, VIEW_FROM = (0.0, 1.0, 0.0), (1.0, 0.6, 1.4)  # gravity pulls along -y; VTK would have z up
MOVED = "moved"  # displacement since the first frame [m]
TITLE = "moved since\nthe first frame [m]\n"  # in lines: one as long leaves the picture
BAR = {
    "title": TITLE, "vertical": True, "height": 0.5, "width": 0.05,
    "position_x": 0.84, "position_y": 0.25,
}  # fmt: skip


def view_run(folder: RunFolder, screenshot: Path | None = None) -> None:
    """Show the fitted motion, coloured by displacement."""
    arrays = folder.read_npz(run_folder.TRAJECTORY)
    if screenshot is not None:
        if screenshot.suffix.lower() != ".png":
            raise StudyError(f"`--screenshot` must name a .png file, got {screenshot}.")
        if not (place := screenshot.parent).absolute().is_dir():
            raise StudyError(
                f"`--screenshot` must name a file in a folder that exists; there is no {place}."
            )
    if problem := drawing_problem(on_screen=screenshot is None):
        raise StudyError(f"{problem} The run's pictures are in {folder.file('report.html')}.")
    if not arrays["objects"].size:
        raise StudyError(
            f"This run moves no meshes. Its pictures are in {folder.file('report.html')}."
        )
    plotter, drawn = make_plotter(arrays, off_screen=screenshot is not None)
    if screenshot is not None:
        _show_frame(drawn, arrays, -1)
        plotter.screenshot(str(screenshot))
        plotter.close()
        return
    plotter.show(interactive_update=True, auto_close=False)
    while plotter.render_window is not None:
        for frame in range(len(arrays["times"])):
            _show_frame(drawn, arrays, frame)
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


def make_plotter(arrays: dict[str, np.ndarray], *, off_screen: bool) -> tuple[Any, dict]:
    """Return a plotter, and its objects by name, whose points move."""
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    if off_screen:  # VTK warns of the display that it tries and does without
        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)
    plotter = pyvista.Plotter(off_screen=off_screen, window_size=[1000, 700])
    plotter.set_background("white")  # pyright: ignore[reportArgumentType]
    drawn = {}
    names = arrays["objects"].tolist()
    largest = max((float(moved_by(arrays, name, -1).max()) for name in names), default=0.0)
    for name in names:
        points = arrays[f"vertices.{name}"][0].astype(float)
        drawn[name] = pyvista.PolyData.from_regular_faces(points, arrays[f"faces.{name}"])
        drawn[name][MOVED] = moved_by(arrays, name, 0)
        plotter.add_mesh(
            drawn[name], scalars=MOVED, show_edges=True, cmap="viridis",
            clim=[0.0, largest or 1.0], edge_color="#33404d",
            scalar_bar_args=BAR,  # pyright: ignore[reportArgumentType]
        )  # fmt: skip
    plotter.add_axes()  # pyright: ignore[reportCallIssue]
    plotter.view_vector(VIEW_FROM, viewup=UP)  # pyright: ignore[reportArgumentType]
    moving = [name for name in names if moved_by(arrays, name, -1).any()] or names
    everywhere = np.concatenate([arrays[f"vertices.{name}"].reshape(-1, 3) for name in moving])
    ends = np.stack([everywhere.min(axis=0), everywhere.max(axis=0)], axis=1)
    # Room for every frame of what moves: a floor may be many times as large.
    plotter.reset_camera(bounds=ends.ravel().tolist())  # pyright: ignore[reportCallIssue]
    return plotter, drawn


def moved_by(arrays: dict[str, np.ndarray], name: str, frame: int) -> np.ndarray:
    """Return how far each vertex is from where the first frame shows it, (n_vertices,) [m]."""
    x = arrays[f"vertices.{name}"].astype(float)
    return np.linalg.norm(x[frame] - x[0], axis=1)


def _show_frame(drawn: dict, arrays: dict[str, np.ndarray], frame: int) -> None:
    """Move the objects to a frame."""
    for name, mesh in drawn.items():
        mesh.points = arrays[f"vertices.{name}"][frame].astype(float)
        mesh[MOVED] = moved_by(arrays, name, frame)


def set_camera(theirs: Any, camera: AnyCamera) -> None:
    """Make VTK's camera, a `pyvista.Camera`, see what ours does."""
    eye, (_, up, forward) = camera.pose()
    theirs.position, theirs.focal_point, theirs.up = eye, eye + forward, up
    theirs.clipping_range = (camera.near, camera.far)
    lens = camera.lens
    if isinstance(lens, Orthographic):
        theirs.parallel_projection, theirs.parallel_scale = True, float(lens.height) / 2.0
    elif isinstance(lens, Intrinsics):
        height, width = lens.size
        theirs.view_angle = 2.0 * np.degrees(np.arctan(height / 2.0 / lens.focal[1]))
        c_u, c_v = lens.principal_point
        theirs.SetWindowCenter(
            -(2.0 * c_u + 1.0 - width) / width, (2.0 * c_v + 1.0 - height) / height
        )
    else:
        theirs.view_angle = float(camera.fov_y)
