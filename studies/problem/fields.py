"""Fields of a body among the answers as colours on its mesh: masses of nodes, muscles of elements.

Of several numbers of one node or element, such as a velocity or the weights of a policy, the length
is shown. Values of elements are averaged at their nodes.
"""

from typing import Any

import numpy as np

from render.annealing import softness
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem.films import FilmObserver
from studies.problem.making import Made
from studies.problem.page_films import SOFT
from studies.problem.solve import Solved
from studies.problem.start import start_surfaces
from studies.scene.filming import Skin


UNKNOWN = 0.6  # grey level where a field has no value
COLORS = "viridis"
MARGIN = 24  # pixels around a body
ROWS = 960  # of a picture, before it is cut


def fields_shown(made: Made, solved: Solved, *, has_truth: bool) -> dict[str, dict[str, Any]]:
    """Return pictures of the fields among the answers by path, seen by the first film's camera.

    Each has `images` by name ("truth" and "answer"), (height, width, 3), the `unit`, and the ends
    of its colours, `low` and `high`.
    """
    problem, theta = solved.problem, solved.result.theta
    camera = next((one for one in problem.observers if isinstance(one, FilmObserver)), None)
    if camera is None:
        return {}
    surfaces, out = start_surfaces(problem.built), {}
    for one, value in zip(
        problem.parameters.free, problem.parameters.values(theta).values(), strict=True
    ):
        body = one.path.partition(".")[0]
        subject = problem.built.subjects.get(body)
        if not one.is_answer or not isinstance(subject, Skin):
            continue
        both = {"answer": value}
        if has_truth and made.truth is not None:
            both = {"truth": made.truth.flat((one.path,)).reshape(value.shape), **both}
        found = {name: _of_vertices(solved, body, subject, each) for name, each in both.items()}
        painted = {name: each for name, each in found.items() if each is not None}
        if not painted:
            continue
        low = min(float(np.nanmin(each)) for each in painted.values())
        high = max(float(np.nanmax(each)) for each in painted.values())
        place = surfaces[body][None] - camera.center
        view = camera.camera_at(problem._values(theta))
        height, width = camera.size
        size = (ROWS, max(round(ROWS * width / height), 1))
        rasterizer = SoftRasterizer(
            sigma=softness(SOFT, ROWS), seamless=True, background=(1.0, 1.0, 1.0)
        )
        images = {}
        for name, each in painted.items():
            mesh = _painted(np.asarray(problem.built.meshes[body].faces), each, low, high)
            (drawn,) = rasterize(Scene({body: mesh}), view, rasterizer, {body: place}, size)
            images[name] = drawn[_around(drawn[..., 3])][..., :3]
        unit = problem.parameters.units().get(one.path, "")
        out[one.path] = {"images": images, "unit": unit, "low": low, "high": high}
    return out


def _of_vertices(solved: Solved, body: str, subject: Skin, value: np.ndarray) -> np.ndarray | None:
    """Return a value for each drawn vertex, NaN where there is none; None of what is no field."""
    if value.ndim == 0 or value.size < 2:
        return None
    built = solved.problem.built
    field = np.linalg.norm(value.reshape(len(value), -1), axis=1) if value.ndim > 1 else value
    rows = built.nodes.get(body)
    if rows is None or built.held is None:
        return None
    n_nodes = len(built.held)
    nodal = np.full(n_nodes, np.nan)
    own = np.arange(n_nodes)[rows]
    free = own[~built.held[rows]]
    elements = getattr(getattr(built.system, "forces", {}).get(body), "nodes", None)
    if len(field) == len(own):
        nodal[own] = field
    elif len(field) == len(free):
        nodal[free] = field
    elif elements is not None and len(field) == len(elements):
        corners, each = np.asarray(elements).ravel(), elements.shape[1]
        total = np.bincount(corners, np.repeat(field, each), n_nodes)
        count = np.bincount(corners, minlength=n_nodes)
        nodal = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    else:
        return None
    known = np.isfinite(nodal)
    weight = subject.matrix @ known.astype(float)
    mean = subject.matrix @ np.where(known, nodal, 0.0) / np.where(weight > 0.0, weight, 1.0)
    return np.where(weight > 0.0, mean, np.nan)


def _around(alpha: np.ndarray) -> tuple[slice, slice]:
    """Return the rows and columns where something is drawn, and a margin."""
    cuts = []
    for axis in (1, 0):
        (there,) = np.nonzero(alpha.max(axis=axis) > 0.0)
        first, last = (there[0], there[-1]) if there.size else (0, alpha.shape[1 - axis] - 1)
        cuts.append(slice(max(first - MARGIN, 0), last + MARGIN))
    return cuts[0], cuts[1]


def _painted(faces: np.ndarray, values: np.ndarray, low: float, high: float) -> Mesh:
    """Return a mesh in the colours of its vertices' values, whatever the light."""
    from matplotlib import colormaps

    share = (values - low) / (high - low) if high > low else np.full_like(values, 0.5)
    colors = colormaps[COLORS](np.nan_to_num(share))[:, :3]
    colors[np.isnan(values)] = UNKNOWN
    return Mesh(faces, vertex_colors=colors, material=Material(ambient=1.0, diffuse=0.0))
