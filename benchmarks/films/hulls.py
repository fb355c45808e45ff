"""What adjsim makes of `views`: hulls beside the true surfaces, E and nu beside the true ones."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyvista

from benchmarks.films import table as tables
from benchmarks.films.views import DISTANCE, FIELD, SHOT
from studies.problem.from_views import with_hulls
from studies.problem.observations.films import read_film
from studies.scene.mesh_source import read_source, surface_of
from studies.scene.reading import read_scene


FITS = (
    "body",
    "views",
    "number",
    "start",
    "answer",
    "truth",
    "off",
    "interval",
    "holds",
    "verdict",
)
HEADER = ("body", "views", "vertices", "volume", "distance", "in pixels", "seconds")


def hull_row(folder: Path, name: str, count: int) -> tuple[str, ...]:
    """Return the cells of `HEADER` of the hull of so many views.

    The distance is the mean of that from one surface to the other, to and fro.
    """
    file = read_scene(folder / f"scene-{count}.toml")
    films = {
        key: read_film(film, file.camera_of(film), f"observations.{key}")
        for key, film in file.films.items()
    }
    began = time.perf_counter()
    resolved = with_hulls(file, films)
    seconds = time.perf_counter() - began
    key = f"bodies.{name}"
    surface = surface_of(key, read_source(key, resolved.bodies[name]))
    true: Any = pyvista.read(str(file.truth[f"{key}.mesh"]))
    mesh = pyvista.PolyData.from_regular_faces(surface.points, surface.faces)
    apart = np.mean([
        np.abs(np.asarray(a.compute_implicit_distance(b)["implicit_distance"])).mean()
        for a, b in ((mesh, true), (true, mesh))
    ])  # fmt: skip
    pixel = DISTANCE * 2.0 * np.tan(np.radians(FIELD / 2.0)) / SHOT.size[1]
    return (
        name, str(count), str(len(surface.points)), f"{surface.volume / abs(true.volume) - 1:+.1%}",
        f"{1e3 * apart:.1f} mm", f"{apart / pixel:.2f}", f"{seconds:.1f}",
    )  # fmt: skip


def fit_rows(folder: Path, name: str, count: int) -> list[tuple[str, ...]]:
    """Return the cells of `FITS` of E and nu from the films of so many views.

    E is off by so many tenfolds, |log10 E/E_true|, as the field's tables have it. The verdict is
    that on the number alone.
    """
    scene = f"scene-{count}.toml"
    result = tables.run_folder(folder, scene) / "result.json"
    if not result.exists():
        tables.run(folder, scene, "--no-certificate")
    entries = json.loads(result.read_text())["parameters"] if result.exists() else ()
    verdicts = {entry["name"]: entry["verdict"] for entry in entries}
    rows = [row for row in tables.rows_of(folder, scene) if row.parameter != f"{name}.velocity"]
    return [
        cells_of(replace(row, verdict=verdicts.get(row.parameter, row.verdict)), count)
        for row in rows
    ]


def cells_of(row: tables.Row, count: int) -> tuple[str, ...]:
    """Return the cells of `FITS` of E or nu from so many views."""
    name, number = row.parameter.split(".")
    answer, interval, off = "", "", ""
    if len(row.estimate):
        of_E, of_nu = np.log10(row.estimate / row.truth), row.estimate - row.truth
        shift = of_E if number == "E" else of_nu
        answer, off = f"{row.estimate[0]:.4g}", f"{abs(shift[0]):.3f}"
    if len(row.interval):
        interval = "[{:.3g}, {:.3g}]".format(*row.interval[0])
    start, truth = (f"{value[0]:.4g}" for value in (row.start, row.truth))
    holds = "".join("yes" if inside else "no" for inside in row.covers)
    which = (name, str(count), number)
    return (*which, start, answer, truth, off, interval, holds, row.verdict)
