r"""What is measured and shown of shapes and textures that pictures of things at rest gave.

    shape      distance of the surfaces, silhouettes apart, in views that it never saw too
    hull       distance from the true mesh, volume
    texture    the texels that the pictures determine, and the errors of these

The first needs another mesh as the hidden truth, and so does the distance of a hull. Two surfaces
are compared by

    chamfer = (mean over a of min_b |a - b| + mean over b of min_a |a - b|)/2

with points a, b drawn evenly on the one and the other. Points of one surface drawn twice are not 0
apart: n points on an area A leave about sqrt(A/n)/2, which is the floor of the measure. Silhouettes
are compared by the pixels covered by both / pixels covered by one or both, over all pictures.

What is shown are pictures as arrays, with words: the report draws them.

Source of the chamfer: Fan, Su & Guibas, A Point Set Generation Network, CVPR 2017, sec. 4.1, here
with distances that are not squared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from adjsim.meshes.triangle_mesh import TriangleMesh
from render.blending import Hard
from render.camera import AnyCamera, Camera
from render.posed_camera import PosedCamera
from render.scene import DirectionalLight, Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.answer.field_metrics import chamfer
from studies.problem.films import films_of
from studies.problem.forward import start_surfaces
from studies.problem.free import VERTICES
from studies.problem.from_views import bodies_from_views
from studies.problem.making import PreparedProblem
from studies.problem.observations.outlines import overlap
from studies.problem.problem import SceneProblem
from studies.problem.texels import TEXELS, felt_by, texel_gain
from studies.scene import declared
from studies.scene.mesh_source import read_source, surface_of


POINTS = 6000  # drawn on each surface
SIZE, FINER = (220, 220), 4  # of a picture that is drawn for the report alone [pixels]
MOST_VIEWS = 4
MOST_TEXELS = 4000  # of which the whole spectrum is computed
GAIN = 10.0  # noise of a pixel comes through to a determined texel at most so many times
CLAY = (0.82, 0.62, 0.45)
DISTANCE, APART, UNSEEN = "surface distance", "silhouettes apart", "silhouettes apart, unseen"


@dataclass(frozen=True, eq=False)
class AppearanceReport:
    """Measures by name, sentences on them, and pictures beside them.

    A measure has its mean, and of several numbers the largest ("max"). Every figure of `looks` has
    pictures of its name in `arrays`, (rows, columns, height, width, 3).
    """

    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    looks: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def add(
        self, look: Mapping[str, Any], pictures: np.ndarray, *, rows: Any = (), columns: Any = ()
    ) -> None:
        """Add a figure, with the titles of its rows and columns."""
        self.looks.append({**look, "rows": list(rows), "columns": list(columns)})
        self.arrays[look["name"]] = pictures


def shown(
    made: PreparedProblem, file: declared.SceneFile, problem: SceneProblem, theta: np.ndarray
) -> AppearanceReport:
    """Return what is measured and shown of the shapes and textures at theta."""
    out, answer = AppearanceReport(), _Answer(made, file, problem, problem.all_values(theta))
    for name in bodies_from_views(file):
        _add_hull(out, answer, name)
    if not problem.is_still:
        return out
    for path in file.free:
        if path.endswith(VERTICES) and f"bodies.{path.removesuffix(VERTICES)}.mesh" in file.truth:
            _add_shape(out, answer, path)
        elif path.endswith(TEXELS) and path in answer.values:
            _add_texture(out, answer, path)
    return out


class _Answer(NamedTuple):
    prepared: PreparedProblem
    file: declared.SceneFile
    problem: SceneProblem
    values: Mapping[str, np.ndarray]  # by scene path


def _add_shape(out: AppearanceReport, answer: _Answer, path: str) -> None:
    """Add how far a shape is from the hidden one, and both in clay."""
    name = path.removesuffix(VERTICES)
    assert answer.prepared.hidden is not None
    hidden = answer.prepared.hidden.built
    films = films_of(answer.problem.observers)
    center = films[0].center
    faces = np.asarray(answer.problem.built.meshes[name].faces)
    begun = answer.prepared.everything
    meshes = {
        "start": TriangleMesh(begun.all_values(begun.parameters.start)[path] - center, faces),
        "fitted": TriangleMesh(answer.values[path] - center, faces),
        "hidden": TriangleMesh(
            start_surfaces(hidden)[name] - center, np.asarray(hidden.meshes[name].faces)
        ),
    }
    cameras = [film.camera_at(answer.values) for film in films]
    unseen = _between(cameras)
    distance, apart = _distance(meshes["fitted"], meshes["hidden"])
    measured = {DISTANCE: distance}
    for key, views in ((APART, cameras), (UNSEEN, unseen)):
        mine, theirs = (
            _silhouettes(meshes[which], views, films[0].size) for which in ("fitted", "hidden")
        )
        measured[key] = 1.0 - overlap(mine, theirs)
    out.measures.update({key: {"mean": value} for key, value in measured.items()})
    out.findings.append(
        f"{measured[APART]:.1%} of the silhouettes of {name} and of the hidden shape are apart, in "
        f"views that no picture shows {measured[UNSEEN]:.1%}. {apart}"
    )
    look = {
        "name": f"shapes-{name}",
        "title": "The shapes",
        "caption": "The mesh at the start, fitted, and the hidden one, from sides that no picture "
        "shows.",
    }
    out.add(look, _in_clay(meshes, unseen), rows=meshes)


def _add_hull(out: AppearanceReport, answer: _Answer, name: str) -> None:
    """Add the surface of a body from views in clay, beside the mesh that the truth names, if any.

    Its volume, and the distance of the two, are measured.
    """
    file, built = answer.file, answer.problem.built
    films = [film for film in films_of(answer.problem.observers) if name in film.scene.objects]
    key, center = f"bodies.{name}.mesh", films[0].center
    faces = np.asarray(built.meshes[name].faces)
    meshes = {"from views": TriangleMesh(start_surfaces(built)[name] - center, faces)}
    out.measures[f"volume of {name} [m3]"] = {"mean": meshes["from views"].volume}
    if key in file.truth:
        body: Any = replace(file.bodies[name], mesh=str(file.truth[key]), cells=None)
        true = surface_of(f"truth.{key}", read_source(f"truth.{key}", body))
        meshes["true"] = TriangleMesh(true.points - center, true.faces)
        distance, apart = _distance(*meshes.values())
        out.measures[DISTANCE] = {"mean": distance}
        more = abs(meshes["from views"].volume / meshes["true"].volume) - 1.0
        out.findings.append(
            f"The surface of {name} from views holds {more:+.1%} more than the true mesh. {apart}"
        )
    cameras = [film.camera_at(answer.values) for film in films]
    look = {
        "name": f"hull-{name}",
        "title": f"The surface of {name} from views",
        "caption": "What was built from the masks of the first frames"
        + (", and the true mesh." if key in file.truth else "."),
    }
    out.add(look, _in_clay(meshes, cameras), rows=meshes)


def _distance(mine: TriangleMesh, true: TriangleMesh) -> tuple[float, str]:
    """Return how far a surface is from a true one about the origin [radii], and a sentence."""
    radius = float(np.linalg.norm(true.points, axis=1).max())
    points = surface_points(true)
    distance, least = (
        chamfer(other, points) / radius for other in (surface_points(mine), surface_points(true, 1))
    )
    return distance, (
        f"The surfaces are {distance:.2g} radii apart, where points drawn twice on the true one "
        f"are {least:.2g}."
    )


def _in_clay(meshes: Mapping[str, TriangleMesh], cameras: Sequence[AnyCamera]) -> np.ndarray:
    """Return pictures of meshes by some of the cameras, (n_meshes, n, height, width, 3)."""
    chosen = list(cameras[:: -(-len(cameras) // MOST_VIEWS)])
    lights = {
        "key": DirectionalLight((0.6, 1.0, 0.8)),
        "fill": DirectionalLight((-0.8, 0.1, -0.6), (0.35, 0.4, 0.5)),
    }
    # for the report alone: hard edges, smoothed by supersampling, on white
    behind = SoftRasterizer(background=(1.0, 1.0, 1.0), blend=Hard(), supersample=FINER)
    pictures = []
    for mesh in meshes.values():
        colors = np.broadcast_to(CLAY, mesh.faces.shape)
        scene = Scene({"mesh": Mesh(mesh.faces, colors, material=Material(0.35, 0.65))}, lights)
        pictures.append(rasterize(scene, chosen, behind, {"mesh": mesh.points}, SIZE)[..., :3])
    return np.stack(pictures)


def _add_texture(out: AppearanceReport, answer: _Answer, path: str) -> None:
    fitted, problem = answer.values[path], answer.problem
    shape, surfaces = fitted.shape[:2], start_surfaces(problem.built)
    matrices = felt_by(problem.observers, surfaces, path)
    seen = np.zeros(shape, bool)
    for matrix in matrices:
        seen.ravel()[np.unique(matrix.indices)] = True
    findings = [f"No pixel looks at {int((~seen).sum())} of {seen.size} texels of `{path}`: they "
                "stay as they started."]  # fmt: skip
    truth = (answer.prepared.true_values or {}).get(path)
    determined = seen
    gain = np.where(seen, 1.0, np.nan)
    if seen.sum() <= MOST_TEXELS:
        gain = np.max([texel_gain(matrix, shape) for matrix in matrices], axis=0)
        determined = gain <= GAIN
        worst = f", the worst {gain[determined].max():.2g}" if determined.any() else ""
        findings.append(
            f"The pictures determine {int(determined.sum())}: noise of a pixel comes through to "
            f"them at most {GAIN:g} times, the median {np.median(gain[determined]):.2g}{worst}. "
            f"{int((seen & ~determined).sum())} more are looked at too little, or only together "
            "with others."
        )
    rows = {"fitted": fitted}
    if truth is not None and determined.any():
        off = np.abs(fitted - truth).max(axis=-1)[determined]
        out.measures["determined texels"] = {"mean": float(off.mean()), "max": float(off.max())}
        findings.append(
            f"The determined texels are off by {off.mean():.1e} in the mean and {off.max():.1e} "
            "at most; 1 is white."
        )
        rows = {"hidden": truth, "fitted": fitted}
    out.findings.extend(findings)
    name, textures = path.removesuffix(TEXELS), rows
    shade = np.clip(np.log10(np.where(np.isfinite(gain), gain, 1e3)) / 3.0, 0.0, 1.0)
    shades = np.where(np.isnan(gain), 0.5, 1.0 - shade)[..., None] * np.ones(3)
    shades[np.isnan(gain)] = (0.45, 0.5, 0.56)
    look = {
        "name": f"textures-{name}",
        "title": "The texture",
        "caption": "What pictures tell of each texel: white ones are determined, noise of a "
        "pixel comes through to dark ones a thousand times. No pixel looks at blue ones.",
    }
    out.add(look, np.stack([*textures.values(), shades])[None], columns=[*textures, "determined"])


def surface_points(mesh: TriangleMesh, seed: int = 0) -> np.ndarray:
    """Return points drawn evenly on a surface, (POINTS, 3) [m]: for a seed always the same ones."""
    rng = np.random.default_rng(seed)
    a, b, c = (mesh.points[mesh.faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    on = rng.choice(len(mesh.faces), POINTS, p=areas / areas.sum())
    u, v = rng.random((2, POINTS, 1))
    beyond = u + v > 1.0
    u, v = np.where(beyond, 1.0 - u, u), np.where(beyond, 1.0 - v, v)
    return a[on] + u * (b - a)[on] + v * (c - a)[on]


def _silhouettes(
    mesh: TriangleMesh, cameras: Sequence[AnyCamera], size: tuple[int, int]
) -> np.ndarray:
    """Return which pixels a mesh covers, (n_cameras, height, width) bool."""
    scene = Scene({"mesh": Mesh(mesh.faces)})
    images = rasterize(scene, cameras, SoftRasterizer(blend=Hard()), {"mesh": mesh.points}, size)
    return images[..., 3] > 0.0


def _between(cameras: Sequence[PosedCamera]) -> list[Camera]:
    """Return cameras that took no picture, looking at the origin: between the others if these
    stand evenly around it, and as far below as they are above.
    """
    angle = np.pi / len(cameras)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, 0.0, s], [0.0, -1.0, 0.0], [-s, 0.0, c]])
    return [
        Camera(
            turn @ camera.pose()[0],
            (0.0, 0.0, 0.0),
            fov_y=camera.fov_y,
            near=camera.near,
            far=camera.far,
        )
        for camera in cameras
    ]
