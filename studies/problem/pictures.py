"""What is measured and shown of shapes and textures that pictures of things at rest gave.

    shape      distance of the surfaces, silhouettes apart, in views that it never saw too
    texture    the texels that the pictures determine, and the errors of these

The first needs another mesh as the hidden truth. What is shown are pictures as arrays, with words:
the report draws them.

Tests: `tests/studies/problem/test_still.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adjsim.meshes.triangle_mesh import TriangleMesh
from render.blending import Hard
from render.camera import AnyCamera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.problem import shape_measures as measures
from studies.problem.films import FilmObserver, with_look
from studies.problem.making import Made
from studies.problem.problem import SceneProblem
from studies.problem.shapes import VERTICES
from studies.problem.start import start_surfaces
from studies.problem.texels import TEXELS, felt_by, texel_gain
from studies.scene import declared


SIZE, FINER = (220, 220), 4  # of a picture that is drawn for the report alone [pixels]
MOST_VIEWS = 4
MOST_TEXELS = 4000  # of which the whole spectrum is computed
GAIN = 10.0  # noise of a pixel comes through to a determined texel at most so many times
CLAY = (0.82, 0.62, 0.45)
DISTANCE, APART, UNSEEN = "surface distance", "silhouettes apart", "silhouettes apart, unseen"


@dataclass(frozen=True, eq=False)
class Shown:
    """Measures by name, sentences on them, and pictures beside them.

    Attributes
    ----------
    measures : dict
        Mean, and of several numbers the largest ("max"), by name.
    findings : list of str
    looks : list of dict
        Name, title, caption, and the titles of rows and columns of each figure.
    arrays : dict
        Its pictures by name, (rows, columns, height, width, 3).
    """

    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    looks: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def shown(made: Made, file: declared.SceneFile, problem: SceneProblem, theta: np.ndarray) -> Shown:
    """Return what is measured and shown of the shapes and textures at theta."""
    out = Shown()
    if not problem.is_at_rest:
        return out
    for path in file.free:
        if path.endswith(VERTICES) and f"bodies.{path.removesuffix(VERTICES)}.mesh" in file.truth:
            _add_shape(out, made, problem, theta, path=path)
        elif path.endswith(TEXELS) and path in problem._values(theta):
            _add_texture(out, made, problem, theta, path=path)
    return out


def _films(problem: SceneProblem) -> list[FilmObserver]:
    return [one for one in problem.observers if isinstance(one, FilmObserver)]


def _add_shape(
    out: Shown, made: Made, problem: SceneProblem, theta: np.ndarray, *, path: str
) -> None:
    """Add how far a shape is from the hidden one, and both in clay."""
    name = path.removesuffix(VERTICES)
    assert made.hidden is not None
    hidden = made.hidden.built
    films = _films(problem)
    center = films[0].center
    faces = np.asarray(problem.built.meshes[name].faces)
    begun = made.everything
    meshes = {
        "start": TriangleMesh(begun._values(begun.parameters.start)[path] - center, faces),
        "fitted": TriangleMesh(problem._values(theta)[path] - center, faces),
        "hidden": TriangleMesh(
            start_surfaces(hidden)[name] - center, np.asarray(hidden.meshes[name].faces)
        ),
    }
    cameras = [one.camera_at(problem._values(theta)) for one in films]
    unseen = measures.between(cameras)
    radius = float(np.linalg.norm(meshes["hidden"].points, axis=1).max())
    points = measures.surface_points(meshes["hidden"])
    found = {DISTANCE: measures.chamfer(measures.surface_points(meshes["fitted"]), points) / radius}
    for key, views in ((APART, cameras), (UNSEEN, unseen)):
        both = (
            measures.silhouettes(meshes[which], views, films[0].size)
            for which in ("fitted", "hidden")
        )
        found[key] = 1.0 - measures.overlap(*both)
    out.measures.update({key: {"mean": value} for key, value in found.items()})
    least = measures.floor(meshes["hidden"]) / radius
    out.findings.append(
        f"{found[APART]:.1%} of the silhouettes of {name} and of the hidden shape are apart, in "
        f"views that no picture shows {found[UNSEEN]:.1%}. The surfaces are {found[DISTANCE]:.2g} "
        f"radii apart, where points drawn twice on the hidden one are {least:.2g}."
    )
    chosen = unseen[:: -(-len(unseen) // MOST_VIEWS)]
    out.arrays[f"shapes-{name}"] = np.stack([_in_clay(mesh, chosen) for mesh in meshes.values()])
    out.looks.append(
        {
            "name": f"shapes-{name}",
            "title": "The shapes",
            "caption": "The mesh at the start, fitted, and the hidden one, from sides that no "
            "picture shows.",
            "rows": list(meshes),
            "columns": [],
        }
    )


def _in_clay(mesh: TriangleMesh, cameras: Sequence[AnyCamera]) -> np.ndarray:
    """Return pictures of a mesh with nothing but shade, (n_cameras, height, width, 3)."""
    drawn = Mesh(mesh.faces, np.broadcast_to(CLAY, mesh.faces.shape), material=Material(0.35, 0.65))
    lights = {
        "key": DirectionalLight((0.6, 1.0, 0.8)),
        "fill": DirectionalLight((-0.8, 0.1, -0.6), (0.35, 0.4, 0.5)),
    }
    return _drawn(Scene({"mesh": drawn}, lights), cameras, {"mesh": mesh.points})


def _drawn(
    scene: Scene, cameras: Sequence[AnyCamera], vertices: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return pictures for the report alone: hard edges, smoothed by supersampling, on white."""
    behind = SoftRasterizer(background=(1.0, 1.0, 1.0), blend=Hard(), supersample=FINER)
    return rasterize(scene, list(cameras), behind, dict(vertices), SIZE)[..., :3]


def _add_texture(
    out: Shown, made: Made, problem: SceneProblem, theta: np.ndarray, *, path: str
) -> None:
    """Add which texels pictures determine and how well, and the body from other sides."""
    fitted = problem._values(theta)[path]
    shape, surfaces = fitted.shape[:2], start_surfaces(problem.built)
    matrices = felt_by(problem.observers, surfaces, path)
    seen = np.zeros(shape, bool)
    for matrix in matrices:
        seen.ravel()[np.unique(matrix.indices)] = True
    found = [f"No pixel looks at {int((~seen).sum())} of {seen.size} texels of `{path}`: they stay "
             "as they started."]  # fmt: skip
    truth = None if made.true_values is None else made.true_values.get(path)
    determined = seen
    gain = np.where(seen, 1.0, np.nan)
    if seen.sum() <= MOST_TEXELS:
        gain = np.max([texel_gain(matrix, shape) for matrix in matrices], axis=0)
        determined = gain <= GAIN
        worst = f", the worst {gain[determined].max():.2g}" if determined.any() else ""
        found.append(
            f"The pictures determine {int(determined.sum())}: noise of a pixel comes through to "
            f"them at most {GAIN:g} times, the median {np.median(gain[determined]):.2g}{worst}. "
            f"{int((seen & ~determined).sum())} more are looked at too little, or only together "
            "with others."
        )
    rows = {"fitted": fitted}
    if truth is not None and determined.any():
        off = np.abs(fitted - truth).max(axis=-1)[determined]
        out.measures["determined texels"] = {"mean": float(off.mean()), "max": float(off.max())}
        found.append(
            f"The determined texels are off by {off.mean():.1e} in the mean and {off.max():.1e} "
            "at most; 1 is white."
        )
        rows = {"hidden": truth, "fitted": fitted}
    out.findings.extend(found)
    _show_texture(out, problem, rows, gain, path=path, surfaces=surfaces)


def _show_texture(
    out: Shown,
    problem: SceneProblem,
    textures: Mapping[str, np.ndarray],
    gain: np.ndarray,
    *,
    path: str,
    surfaces: Mapping[str, np.ndarray],
) -> None:
    """Add the textures with what pictures tell of them, and the body from other sides."""
    name, films = path.removesuffix(TEXELS), _films(problem)
    shade = np.clip(np.log10(np.where(np.isfinite(gain), gain, 1e3)) / 3.0, 0.0, 1.0)
    told = np.where(np.isnan(gain), 0.5, 1.0 - shade)[..., None] * np.ones(3)
    told[np.isnan(gain)] = (0.45, 0.5, 0.56)
    out.arrays[f"textures-{name}"] = np.stack([*textures.values(), told])[None]
    out.looks.append(
        {
            "name": f"textures-{name}",
            "title": "The texture",
            "caption": "What pictures tell of each texel: white ones are determined, noise of a "
            "pixel comes through to dark ones a thousand times. No pixel looks at blue ones.",
            "rows": [],
            "columns": [*textures, "told"],
        }
    )
    cameras = measures.between([one.camera for one in films[:MOST_VIEWS]])
    points = {key: x - films[0].center for key, x in surfaces.items()}
    paths = {f"{name}.texels": path}
    drawn = [
        _drawn(with_look(films[0].scene, paths, {path: one}), cameras, points)
        for one in textures.values()
    ]
    out.arrays[f"elsewhere-{name}"] = np.stack(drawn)
    out.looks.append(
        {
            "name": f"elsewhere-{name}",
            "title": "From other sides",
            "caption": "From sides that no picture shows. What none shows is as it started.",
            "rows": list(textures),
            "columns": [],
        }
    )
