"""What touches and what is seen at a point of a scan, as sets that can be compared.

Where two neighbours of a grid differ in what touches in which step, a touch has moved to another
step somewhere between them, and the loss has a kink there, or with contact damping a jump. Where
they differ in which faces are seen in which frame, one has come into view or left it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from adjsim.contact_margins import ContactMargins
from render.blending import Hard
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize
from studies.answer.kinks import margins
from studies.problem.problem import SceneProblem


DIGITS = 12  # of the name of a set


def events(problem: SceneProblem, natural: np.ndarray) -> dict[str, Any]:
    """Return what touches and what is seen at natural values; None where nothing can.

    `touches` counts pairs of a point and a step, `faces` pairs of a face and a frame. The sets
    have names that are equal where the sets are: of the pairs, and of the points that touch at all.
    """
    found: dict[str, Any] = dict.fromkeys(
        ("touches", "touch_set", "contact_set", "faces", "face_set")
    )
    if seen := [_seen(*scenery) for scenery in problem.sceneries_at(natural)]:
        found |= {"faces": sum(int(one.sum()) for one in seen), "face_set": _name(seen)}
    if contacts := touches_of(problem, natural):
        touching = [own.touch > 0.0 for own in contacts.values()]
        found["touches"] = int(sum(one.sum() for one in touching))
        found["touch_set"] = touch_set(contacts)
        found["contact_set"] = _name(np.any(one, axis=0) for one in touching)
    return found


def touch_set(contacts: Mapping[str, ContactMargins]) -> str:
    """Return the name of the set of points and steps that touch."""
    return _name(own.touch > 0.0 for own in contacts.values())


def touches_of(problem: SceneProblem, natural: np.ndarray) -> dict[str, ContactMargins]:
    """Return the margins of every contact at natural values; none where nothing can touch."""
    return margins(problem.motion_at(natural))


def _seen(scene: Scene, camera: Any, vertices: Mapping[str, np.ndarray], size: Any) -> np.ndarray:
    """Return which faces are nearest at the middle of some pixel, (n_frames, n_faces)."""
    total = sum(len(mesh.faces) for mesh in scene.objects.values())
    objects, first = {}, 1
    for name, mesh in scene.objects.items():
        number = np.arange(first, first + len(mesh.faces)) / total
        first += len(mesh.faces)
        colors = np.repeat(number[:, None], 3, axis=1)
        objects[name] = Mesh(mesh.faces, face_colors=colors, material=Material(1.0, 0.0))
    exact = {name: np.asarray(x, np.float64) for name, x in vertices.items()}
    drawn = rasterize(
        Scene(objects, scene.lights), camera, SoftRasterizer(blend=Hard()), exact, size
    )
    frames = np.rint(drawn[..., 0] * total).astype(np.int64)
    frames = frames.reshape(-1, frames.shape[-2] * frames.shape[-1])
    seen = np.zeros((len(frames), total + 1), bool)
    np.put_along_axis(seen, frames, values=True, axis=1)
    return seen[:, 1:]


def _name(sets: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for own in sets:
        digest.update(repr(own.shape).encode())
        digest.update(np.packbits(own).tobytes())
    return digest.hexdigest()[:DIGITS]
