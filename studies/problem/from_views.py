"""A body whose mesh is "from-views": the hull of the first frames of films, fitted to outlines.

It is in the world's axes, and goes on as a file: filled with tetrahedra like any closed surface.

    films -> carving.hull -> adjsim/meshes/level_set -> outlines -> a file
    -> scene/mesh_source.volume_of -> runs/meshes.filled -> adjsim/meshes/tetrahedralise

The file is in the cache, named by what is in it, so that it is the same in every process.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.ndimage
from scipy.spatial import ConvexHull
from scipy.spatial.distance import pdist

from adjsim.jit.backend import CACHE_DIR
from adjsim.meshes.triangle_mesh import TriangleMesh
from studies.problem.carving import View
from studies.problem.observations.films import (
    DIFFERENT,
    STILL,
    FilmData,
    plate_of,
    read_film,
    silhouettes,
)
from studies.problem.outlines import surface_from_views
from studies.problem.pixels import posed
from studies.runs.files import replacing
from studies.scene.cameras import make_camera
from studies.scene.declared import FROM_VIEWS, SceneFile


LARGEST_SCALE_ERROR = 0.5
CELLS = 24  # along the longest side of the hull
SOLID = 5  # pixels a side, one of which the body covers whole if it covers part of the middle one
FAR_AWAY = (1e6, 1e6, 1e6)  # where no camera is; planes near and far are set when it draws
BORDER = 0.05  # of a picture, where the background is looked for if none is declared


def bodies_from_views(file: SceneFile) -> list[str]:
    """Return the names of the bodies whose meshes are built from films."""
    return [k for k, body in file.bodies.items() if getattr(body, "mesh", None) == FROM_VIEWS]


def with_hulls(
    file: SceneFile,
    films: Mapping[str, FilmData] | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> SceneFile:
    """Return a scene whose bodies have their meshes.

    `films` are those that have been read, by name. `say` gets a line on each hull.

    Raise a StudyError where the views do not say what a body is like: see
    `studies.problem.carving.hull`.
    """
    bodies: dict[str, Any] = dict(file.bodies)
    for name in bodies_from_views(file):
        views = {
            f"observations.{key}": _view(file, key, films or {})
            for key, film in file.films.items()
            if film.video is not None
            and film.start == 0.0
            and not film.validate
            and set(film.bodies or file.bodies) == {name}
        }
        cells = (bodies[name].cells or (CELLS,))[0]
        surface, error, warning = surface_from_views(views, cells, f"bodies.{name}.mesh")
        if warning:
            say(warning)
        corners = surface.points[ConvexHull(surface.points).vertices]
        say(
            f"{name} is built from {len(views)} views: {pdist(corners).max():.3g} m long, "
            f"{surface.volume:.4g} m3. Its surface is known to about {error:.1g} m."
        )
        errors: dict[str, float] = {}
        if hasattr(bodies[name], "shape_error"):  # of which modes move it, and make it larger
            errors = {"shape_error": error, "scale_error": 0.0, "position_error": 0.0}
        elif f"{name}.vertices" not in file.free:
            half = 0.5 * float(np.ptp(surface.points, axis=0).max())
            errors = {"scale_error": min(error / half, LARGEST_SCALE_ERROR)}
        errors = {key: errors[key] for key in errors if getattr(bodies[name], key) is None}
        bodies[name] = replace(bodies[name], mesh=_written(surface), cells=None, **errors)
    return replace(file, bodies=bodies)


def _written(surface: TriangleMesh) -> str:
    """Return the path of the file of a surface."""
    import pyvista

    digest = hashlib.sha256(surface.points.tobytes() + surface.faces.tobytes()).hexdigest()
    path = CACHE_DIR.parent / "meshes" / f"{digest[:24]}.vtp"
    if not path.is_file():
        with replacing(path) as temporary:
            pyvista.PolyData.from_regular_faces(surface.points, surface.faces).save(temporary)
    return str(path)


def _view(file: SceneFile, name: str, films: Mapping[str, FilmData]) -> View:
    """Return what the camera of a film sees in its first frame."""
    film, key = file.films[name], f"observations.{name}"
    data = films.get(name) or read_film(film, file.camera_of(film), key)
    shows_body = data.masks is not None or data.backdrop is not None
    if data.factor > 1 and shows_body:
        first = (film.frames or (0,))[0]  # it needs no other frame to tell the body
        film = replace(film, downsample=1, frames=(first, first + 1))
        data = read_film(film, file.camera_of(film), key)
    camera = file.camera_name(film)
    posed_camera = make_camera(camera, file.cameras[camera], data.full_size, middle=FAR_AWAY)
    mask = coverage(data) if data.masks is None else data.masks[0]
    return View(mask, posed(posed_camera, np.zeros(3)))


def coverage(data: FilmData) -> np.ndarray:
    """Return which part of each pixel of the first frame of a film bodies cover, (H, W) in [0, 1].

    It is how unlike the background a pixel is, over how unlike it the most unlike pixel around is:
    at the edge of a body a pixel mixes both. So an outline is known to a part of a pixel.
    """
    height, width = data.size
    rows, columns = (max(int(np.ceil(BORDER * n)), 2) for n in (height, width))
    inner = np.zeros((height, width), bool)
    inner[rows:-rows, columns:-columns] = True
    plate = plate_of(data, inner)
    unlike = np.abs(data.frames[0] - plate).max(axis=-1) - STILL
    most = scipy.ndimage.maximum_filter(unlike, SOLID)
    covered = np.clip(unlike / np.maximum(most, DIFFERENT - STILL), 0.0, 1.0)
    within = scipy.ndimage.binary_erosion(silhouettes(data, plate)[0] >= 1.0, iterations=2)
    return np.where(within, 1.0, covered)
