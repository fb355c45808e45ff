"""Further pictures of a report: what a study shows beside targets and fits."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adjoint.render.diagnosis import ADVICE, diagnose
from adjoint.render.gradient_pictures import SAMPLES, face_gradients, gradient_picture
from adjoint.render.losses import loss_vjp
from render.blending import Hard
from render.soft_raster import SoftRasterizer
from studies import figures, run_folder
from studies.picture_problem import PictureProblem
from studies.run_folder import RunFolder


LOOK_SIZE = (220, 220)  # pixels of a picture that is drawn for the report alone
MOST_VIEWS = 4


@dataclass(frozen=True)
class Look:
    """A picture with its heading and what it shows; `name` is its file's."""

    name: str
    title: str
    caption: str
    data: bytes


def look_rasterizer() -> SoftRasterizer:
    """Return what draws for the report alone: hard edges, smoothed by supersampling, on white."""
    return SoftRasterizer(background=(1.0, 1.0, 1.0), blend=Hard(), supersample=SAMPLES)


def write_looks(folder: RunFolder, looks: list[Look]) -> None:
    """Write the pictures, and what the report says of them."""
    folder.write_figures({look.name: look.data for look in looks})
    told = [{"name": k.name, "title": k.title, "caption": k.caption} for k in looks]
    folder.write_json(run_folder.LOOKS, told)


def felt(problem: PictureProblem, name: str, theta: np.ndarray, stage: float) -> Any:
    """Return scenery, adjoint of the pictures and gradient of an object's vertices at a stage."""
    at = problem.at_stage(stage)
    scenery = at.scenery_at(theta)
    record = scenery.record()
    adj = loss_vjp(at.loss, record.images, at.targets)
    path = f"{name}.vertices"
    return scenery, adj, record.vjp(adj, wrt=[path])[path]


def gradient_look(
    problem: PictureProblem, name: str, theta: np.ndarray, stages: tuple[float, ...]
) -> Look:
    """Draw the faces of an object in the colours of their gradients, at wide and sharp edges."""
    rows, titles = [], []
    for stage in dict.fromkeys((stages[0], stages[-1])):
        scenery, _, adj = felt(problem, name, theta, stage)
        faces, x = scenery.scene.objects[name].faces, scenery.vertices[name]
        largest = float(face_gradients(faces, adj).max()) or 1.0
        chosen = scenery.cameras[:: -(-len(scenery.cameras) // MOST_VIEWS)]
        height, width = scenery.size
        size = (LOOK_SIZE[0], round(LOOK_SIZE[0] * width / height))
        rows.append(
            [
                gradient_picture({name: faces}, one, {name: x}, {name: adj}, size, largest=largest)
                for one in chosen
            ]
        )
        titles.append(f"edges {problem.softness(stage):.2g} px soft\nat most {largest:.1e}")
    return Look(
        "gradients",
        "Which faces feel the loss at the start",
        "Each face in the colour of the loss's gradient by its vertices: grey feels nothing, dark "
        "the most. Coverage pulls at outlines, shade and colour at what lies inside them; wide "
        "edges pull from farther away.",
        figures.grid(rows, titles),
    )


def diagnosis(
    problem: PictureProblem, name: str, theta: np.ndarray, stages: tuple[float, ...]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return why the vertices of an object feel the loss or do not, and what to do about it.

    One row for the pictures that have a reason in common, at the widest edges and the sharpest.
    """
    rows: list[dict[str, Any]] = []
    advice: dict[str, None] = {}
    n = len(problem.scenery.cameras)
    for stage in dict.fromkeys((stages[0], stages[-1])):
        scenery, adj, _ = felt(problem, name, theta, stage)
        alike: dict[Any, list[float]] = {}
        for camera, one in zip(scenery.cameras, adj, strict=True):
            found = diagnose(
                scenery.scene, camera, scenery.rasterizer, scenery.vertices, scenery.size, one
            )[name]
            alike.setdefault(found.reason, []).append(found.distance)
        for reason, distances in alike.items():
            least = min(distances)
            rows.append(
                {
                    "pictures": f"{len(distances)} of {n}" if n > 1 else "the one",
                    "softness": problem.softness(stage),
                    "reason": reason.value,
                    "distance": least if np.isfinite(least) else None,
                }
            )
            if ADVICE[reason]:
                advice[ADVICE[reason]] = None
    return rows, list(advice)
