"""What adjsim makes of the first frames of `views`: hulls beside the true surfaces."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyvista

from benchmarks.films.views import DISTANCE, FIELD, SHOT
from studies.problem.from_views import with_hulls
from studies.problem.observations.films import read_film
from studies.scene.mesh_source import read_source, surface_of
from studies.scene.reading import read_scene


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
    resolved, _ = with_hulls(file, films)
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
