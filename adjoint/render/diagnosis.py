r"""Why an object does not feel a loss: where its outline is, and where the loss looks.

A vertex of an object moves a picture through the coverage of pixels near its outline, and
through colours. Where neither reaches a pixel that the loss looks at, that is, one with an
adjoint, the gradient is zero, and one of the reasons below says why. Distances are on the
image, in pixels, from the outline: edges of one drawn face alone, or between a face that
turns towards the camera and one that turns away.

Tests: `tests/render/test_diagnosis.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from adjoint.render.soft_raster import record_images
from render.blending import Hard
from render.camera import AnyCamera
from render.projection import image_size
from render.scene import Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


TINY = 1e-6  # change of the loss per pixel moved, against the largest adjoint of a pixel
FELT = 3.7  # of sqrt(sigma): there the slope of a sigmoid of the squared distance is `TINY`
SHARP = 1e-12  # sigma [-] of a picture that only says which pixels an object covers
NEXT_PIXEL = 1.5  # pixels: closer than this an outline passes between two pixels
CHUNK = 1 << 20  # pairs of pixel and edge worked at a time


class Reason(StrEnum):
    """Why the gradient of an object is zero, or that it is not; the value says it in words."""

    MOVES = "its gradient is not zero"
    FLAT_LOSS = "the loss looks at no pixel: all adjoints are zero"
    EMPTY = "it has no faces"
    CLIPPED = "every face is nearer than `near` or beyond `far`"
    CULLED = "every face turns away from the camera, and such faces are culled"
    EDGE_ON = "no face has an area on the screen"
    OUTSIDE = "it lies outside the view"
    NO_OVERLAP = "its outline is far from all that the loss looks at"
    SATURATED = "its outline passes between pixels: all are wholly covered or not at all"
    HIDDEN = "it is hidden behind other faces"


ADVICE = {
    Reason.MOVES: "",
    Reason.FLAT_LOSS: "Images equal their targets, or the loss does not use them.",
    Reason.EMPTY: "Nothing of it can be drawn.",
    Reason.CLIPPED: "Move the object or the camera, or widen `near` and `far`.",
    Reason.CULLED: "Turn the order of the corners of its faces, or set `cull=False`.",
    Reason.EDGE_ON: "Move the camera off the plane of the faces.",
    Reason.OUTSIDE: "Point the camera at it, widen the view, or start closer.",
    Reason.NO_OVERLAP: "Start closer, widen sigma to that distance and anneal it, or use a "
    "pyramid loss.",
    Reason.SATURATED: "Widen sigma to half a pixel or more: `render.annealing.softness`; "
    "`Hard` has no soft edges at all.",
    Reason.HIDDEN: "Move the camera, add a view, or widen gamma.",
}


@dataclass(frozen=True)
class Diagnosis:
    """What keeps an object from feeling the loss.

    Attributes
    ----------
    reason : Reason
    pull : float
        Change of the loss as its vertices move by a pixel, against the largest adjoint [-].
    distance : float
        From its outline to the nearest pixel that the loss looks at, or, if it is outside
        the view, to the image [pixels]; infinite where there is none.
    softness : float
        sqrt(sigma), of `DIBR` sqrt(kappa), 0 of `Hard` [pixels].
    """

    reason: Reason
    pull: float
    distance: float
    softness: float

    def __str__(self) -> str:
        far = f", {self.distance:.1f} pixels away" if np.isfinite(self.distance) else ""
        what = f"{self.reason.value}{far} (edges are {self.softness:.2g} pixels soft)."
        return f"{what} {ADVICE[self.reason]}".rstrip()


def diagnose(
    scene: Scene,
    camera: AnyCamera,
    rasterizer: SoftRasterizer,
    vertices: Mapping[str, Any],
    size: tuple[int, int],
    adj_images: Any,
) -> dict[str, Diagnosis]:
    """Say for every object why its gradient is zero, if it is.

    Parameters
    ----------
    scene, camera, rasterizer, vertices, size
        As `render.soft_raster.rasterize` takes them, with one camera.
    adj_images : array_like
        Adjoint of the images, of their shape: what `adjoint.render.losses.loss_vjp` pulls back.

    Returns
    -------
    dict of str to Diagnosis
        By the names of the objects. Of several frames it is that of the nearest to moving.

    Raises
    ------
    ValueError
        As `rasterize`, or if the shape of `adj_images` does not fit.
    """
    record = record_images(scene, camera, rasterizer, vertices, size)
    adj = np.asarray(adj_images)
    gradient = record.vjp(adj, [f"{name}.vertices" for name in scene.objects])
    frames = adj.reshape(-1, *adj.shape[-3:])
    out = {}
    for name, mesh in scene.objects.items():
        x, adj_x = np.asarray(vertices[name], float), gradient[f"{name}.vertices"]
        every = [
            _diagnose_frame(
                _Sight(mesh, camera, rasterizer, size, x[k] if x.ndim == 3 else x),
                adj_x[k] if adj_x.ndim == 3 else adj_x,
                looked_at,
            )
            for k, looked_at in enumerate(frames)
        ]
        out[name] = min(every, key=lambda d: (d.reason is not Reason.MOVES, d.distance))
    return out


def _diagnose_frame(sight: "_Sight", adj_x: np.ndarray, adj: np.ndarray) -> Diagnosis:
    """Diagnose one object in one frame."""
    largest = float(np.abs(adj).max())
    blend, spread = sight.rasterizer.blend, sight.rasterizer.spread
    softness = 0.0 if isinstance(blend, Hard) else float(np.sqrt(spread)) * sight.height / 2.0

    def found(reason: Reason, distance: float = np.inf) -> Diagnosis:
        return Diagnosis(reason, pull, distance, softness)

    pull = 0.0
    if largest == 0.0:
        return found(Reason.FLAT_LOSS)
    pull = float((np.linalg.norm(adj_x, axis=1) * sight.metres_per_pixel()).sum()) / largest
    if not sight.is_drawn.any():
        return found(sight.why_not_drawn())
    outline = sight.outline()
    pixels = np.argwhere((adj != 0.0).any(axis=-1))[:, ::-1].astype(float)  # column, row
    distance = nearest(pixels, outline)
    if pull > TINY:
        return found(Reason.MOVES, distance)
    covered = sight.covered()
    away = sight.from_the_image(outline)
    if not covered.any() and away > FELT * softness:
        return found(Reason.OUTSIDE, away)
    if distance > FELT * softness:
        is_inside = covered[pixels[:, 1].astype(int), pixels[:, 0].astype(int)].any()
        near = is_inside or distance <= NEXT_PIXEL
        return found(Reason.SATURATED if near else Reason.NO_OVERLAP, distance)
    return found(Reason.HIDDEN, distance)


class _Sight:
    """One object of one frame as the camera sees it, in pixels."""

    def __init__(
        self,
        mesh: Mesh,
        camera: AnyCamera,
        rasterizer: SoftRasterizer,
        size: tuple[int, int],
        x: np.ndarray,
    ) -> None:
        self.mesh, self.camera, self.rasterizer, self.x = mesh, camera, rasterizer, x
        self.height, self.width = image_size(size)
        eye, axes = camera.pose()
        x_c, y_c, self.depth = axes @ (x - eye).T
        f_x, k, c_x, f_y, c_y = camera.optics.numbers()
        self.foreshortening = np.ones(len(x)) if camera.optics.is_orthographic else self.depth
        with np.errstate(divide="ignore", invalid="ignore"):  # at the eye: not drawn
            s_x = (f_x * x_c + k * y_c) / self.foreshortening + c_x
            s_y = f_y * y_c / self.foreshortening + c_y
            self.place = np.stack(
                [(s_x * self.height + self.width - 1) / 2, ((1 - s_y) * self.height - 1) / 2], 1
            )
            a, b, c = (self.place[mesh.faces[:, k]] for k in range(3))
            self.turn = -np.sign(_cross(b - a, c - a))  # rows count downwards
        z = self.depth[mesh.faces]
        self.is_between = ((z >= camera.near) & (z <= camera.far)).all(axis=1)
        faces_us = self.turn > 0 if rasterizer.cull else self.turn != 0
        self.is_drawn = self.is_between & faces_us

    def why_not_drawn(self) -> Reason:
        """Return why no face is drawn."""
        if not len(self.mesh.faces):
            return Reason.EMPTY
        if not self.is_between.any():
            return Reason.CLIPPED
        is_flat = (self.turn == 0)[self.is_between].all()
        return Reason.EDGE_ON if is_flat else Reason.CULLED

    def metres_per_pixel(self) -> np.ndarray:
        """Return how far each vertex goes for a pixel on the image, (n_vertices,) [m]."""
        f_y = self.camera.optics.numbers()[3]
        return np.abs(self.foreshortening) * 2.0 / (self.height * f_y)

    def outline(self) -> np.ndarray:
        """Return the ends of the edges of the outline, (n_edges, 2, 2) [pixels]."""
        faces, turn = self.mesh.faces[self.is_drawn], self.turn[self.is_drawn]
        edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        unique, which = np.unique(edges, axis=0, return_inverse=True)
        turns = np.bincount(which.ravel(), np.repeat(turn, 3), len(unique))
        counts = np.bincount(which.ravel(), minlength=len(unique))
        return self.place[unique[(counts == 1) | (np.abs(turns) < counts)]]

    def covered(self) -> np.ndarray:
        """Return which pixels the object covers, (height, width) bool."""
        alone, sharp = Scene({"object": Mesh(self.mesh.faces)}), self.rasterizer
        sharp = SoftRasterizer(SHARP, cull=sharp.cull)
        size = (self.height, self.width)
        image = rasterize(alone, self.camera, sharp, {"object": self.x}, size)
        return image[..., 3] > 0.4

    def from_the_image(self, outline: np.ndarray) -> float:
        """Return how far the outline is from the nearest pixel [pixels]."""
        rows, columns = np.mgrid[0 : self.height, 0 : self.width]
        return nearest(np.stack([columns.ravel(), rows.ravel()], 1).astype(float), outline)


def nearest(points: np.ndarray, edges: np.ndarray) -> float:
    """Return the least distance of points (n, 2) from edges (m, 2, 2); inf if there are none."""
    if not (len(points) and len(edges)):
        return float("inf")
    start, u = edges[:, 0], edges[:, 1] - edges[:, 0]
    square = np.maximum(np.square(u).sum(axis=1), np.finfo(float).tiny)
    least, step = np.inf, max(1, CHUNK // len(edges))
    for first in range(0, len(points), step):
        v = points[first : first + step, None] - start
        t = np.clip((v * u).sum(axis=-1) / square, 0.0, 1.0)
        least = min(least, float(np.square(v - t[..., None] * u).sum(axis=-1).min()))
    return float(np.sqrt(least))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
