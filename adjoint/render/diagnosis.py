r"""Why an object does not feel a loss: where its outline is, and where the loss looks.

A vertex of an object moves a picture through the coverage of pixels near its outline, and
through colours. Where neither reaches a pixel that the loss looks at, that is, one with an
adjoint, the gradient is zero, and one of the reasons below says why. Distances are on the
image, in pixels, from the outline: edges of one drawn face alone, or between a face that
turns towards the camera and one that turns away.

An outline near such a pixel may still not be felt. What keeps it from that is found by asking the
same of other pictures, blended with `Over` at the softness of the one asked about; the first
that holds is the reason:

    the object alone, white on black, does not feel it    its outline is too far, or too sharp
    nor among the other objects, painted black            they hide it
    the scene feels it                                    the blend asked about is not soft there
    otherwise                                             it looks like what is behind it

Tests: `tests/render/test_diagnosis.py`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from adjoint.render.soft_raster import record_images
from render.blending import Hard, Over
from render.camera import AnyCamera
from render.projection import image_size
from render.scene import Material, Mesh, Scene
from render.soft_raster import SoftRasterizer, rasterize


TINY = 1e-6  # change of the loss per pixel moved, against the largest adjoint of a pixel
FELT = 3.7  # of sqrt(sigma): there the slope of a sigmoid of the squared distance is `TINY`
SHARP = 1e-12  # sigma [-] of a picture that only says which pixels an object covers
NEXT_PIXEL = 1.5  # pixels: closer than this an outline passes between two pixels
CANCELLED = 100.0 * TINY  # what the adjoints of pixels pull at least if theirs cancels
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
    INSIDE = "all that the loss looks at lies inside its outline, wholly covered"
    SATURATED = "its outline passes between pixels: all are wholly covered or not at all"
    HIDDEN = "it is hidden behind other faces"
    NOT_SOFT = "the blend has no soft edges in what the loss looks at"
    NO_CONTRAST = "what the loss looks at is the same as of what lies behind it"
    BALANCED = "what pulls at it cancels"


ADVICE = {
    Reason.MOVES: "",
    Reason.FLAT_LOSS: "Images equal their targets, or the loss does not use them.",
    Reason.EMPTY: "Nothing of it can be drawn.",
    Reason.CLIPPED: "Move the object or the camera, or widen `near` and `far`.",
    Reason.CULLED: "Turn the order of the corners of its faces, or set `cull=False`.",
    Reason.EDGE_ON: "Move the camera off the plane of the faces.",
    Reason.OUTSIDE: "Point the camera at it, widen the view, or start closer.",
    Reason.NO_OVERLAP: "Start closer, widen sigma (of `DIBR`, kappa) to that distance and anneal "
    "it, or use a pyramid loss.",
    Reason.INSIDE: "Let the loss look at its outline too, widen sigma to that distance and anneal "
    "it, or give it colours or light that vary.",
    Reason.SATURATED: "Widen sigma (of `DIBR`, kappa) to half a pixel or more: "
    "`render.annealing.softness`.",
    Reason.HIDDEN: "Move the camera, add a view, or widen gamma in `Softmax`.",
    Reason.NOT_SOFT: "Take `Over` with edges as soft as that distance, or give the loss alpha "
    "around the object too: in `DIBR` only that is soft, in `Softmax` colours are at a wide gamma "
    "alone. `Hard` has no soft edges at all.",
    Reason.NO_CONTRAST: "Give the loss alpha, or a mask where another object is behind it, or take "
    "another background or colour.",
    Reason.BALANCED: "It may be where it belongs; if not, start elsewhere.",
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
        By the names of the objects. Of several frames the one nearest to moving counts.

    Raises
    ------
    ValueError
        As `rasterize`, or if the shape of `adj_images` does not fit.
    TypeError
        If `camera` is a sequence of cameras.
    """
    if not isinstance(camera, AnyCamera):
        raise TypeError(
            f"`camera` must be one camera, got {type(camera).__name__}. Call once for each."
        )
    record = record_images(scene, camera, rasterizer, vertices, size)
    adj = np.asarray(adj_images)
    gradient = record.vjp(adj, [f"{name}.vertices" for name in scene.objects])
    frames = adj.reshape(-1, *adj.shape[-3:])
    out = {}
    for name in scene.objects:
        adj_x, every = gradient[f"{name}.vertices"], []
        for k, looked_at in enumerate(frames):
            at = {key: np.asarray(x, float) for key, x in vertices.items()}
            at = {key: x[k] if x.ndim == 3 else x for key, x in at.items()}
            sight = _Sight(scene, name, camera, rasterizer, size, at)
            every.append(_diagnose_frame(sight, adj_x[k] if adj_x.ndim == 3 else adj_x, looked_at))
        out[name] = min(every, key=lambda d: (d.reason is not Reason.MOVES, d.distance))
    return out


def _diagnose_frame(sight: "_Sight", adj_x: np.ndarray, adj: np.ndarray) -> Diagnosis:
    """Diagnose one object in one frame."""
    largest = float(np.abs(adj).max())
    blend, spread = sight.rasterizer.blend, sight.rasterizer.spread
    softness = 0.0 if isinstance(blend, Hard) else float(np.sqrt(spread)) * sight.height / 2.0

    def diagnosis(reason: Reason, distance: float = np.inf) -> Diagnosis:
        return Diagnosis(reason, pull, distance, softness)

    pull = 0.0
    if largest == 0.0:
        return diagnosis(Reason.FLAT_LOSS)
    pull = sight.pull(adj_x) / largest
    if not sight.is_drawn.any():
        return diagnosis(sight.why_not_drawn())
    outline, adj = sight.outline(), adj / largest
    looked_at = np.abs(adj).max(axis=-1) > TINY
    distance = nearest(np.argwhere(looked_at)[:, ::-1].astype(float), outline)  # column, row
    if pull > TINY:
        return diagnosis(Reason.MOVES, distance)
    covered = sight.covered()
    away = sight.from_the_image(outline)
    if not covered.any() and away > FELT * softness:
        return diagnosis(Reason.OUTSIDE, away)
    reason = sight.why_not_felt(adj, looked_at, distance)
    if reason is None and FELT * softness < distance <= NEXT_PIXEL:
        reason = Reason.SATURATED
    if reason is None:
        reason = Reason.INSIDE if covered[looked_at].all() else Reason.NO_OVERLAP
    return diagnosis(reason, distance)


class _Sight:
    """One object of one frame as the camera sees it, in pixels."""

    def __init__(
        self,
        scene: Scene,
        name: str,
        camera: AnyCamera,
        rasterizer: SoftRasterizer,
        size: tuple[int, int],
        vertices: Mapping[str, np.ndarray],
    ) -> None:
        self.scene, self.name, self.vertices = scene, name, vertices
        self.camera, self.rasterizer = camera, rasterizer
        self.mesh = mesh = scene.objects[name]
        x = vertices[name]
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

    def pull(self, adj_x: np.ndarray) -> float:
        """Return the change of the loss as the vertices move by a pixel, from their gradient."""
        return float((np.linalg.norm(adj_x, axis=1) * self.metres_per_pixel()).sum())

    def why_not_felt(
        self, adj: np.ndarray, looked_at: np.ndarray, distance: float
    ) -> Reason | None:
        """Return why pixels that its outline reaches do not feel it; None if it reaches none.

        Adjoints are scaled at random, so that what they pull does not cancel. Of `Hard` the
        question is what edges would do that are as soft as the distance.
        """
        rng = np.random.default_rng(0)
        scale = rng.uniform(0.5, 1.5, adj.shape) * rng.choice([-1.0, 1.0], adj.shape)
        if self._felt(self.scene, self.rasterizer, scale * adj) > CANCELLED:
            return Reason.BALANCED
        is_hard = isinstance(self.rasterizer.blend, Hard)
        wide = (2.0 * min(max(distance, 0.5), self.height) / self.height) ** 2
        sigma = wide if is_hard else self.rasterizer.spread
        over = replace(self.rasterizer, sigma=sigma, blend=Over())
        black = replace(over, background=(0.0, 0.0, 0.0))
        red = looked_at[..., None] * scale * [1.0, 0.0, 0.0, 0.0]
        if self._felt(_painted(self.scene, self.name, [self.name]), black, red) <= TINY:
            return Reason.NOT_SOFT if is_hard else None
        if self._felt(_painted(self.scene, self.name, self.scene.objects), black, red) <= TINY:
            return Reason.HIDDEN
        is_felt = self._felt(self.scene, over, scale * adj) > TINY
        return Reason.NOT_SOFT if is_felt else Reason.NO_CONTRAST

    def _felt(self, scene: Scene, rasterizer: SoftRasterizer, adj: np.ndarray) -> float:
        """Return the pull of an adjoint at the object in a picture of some of the scene."""
        vertices = {name: self.vertices[name] for name in scene.objects}
        size, path = (self.height, self.width), f"{self.name}.vertices"
        record = record_images(scene, self.camera, rasterizer, vertices, size)
        return self.pull(record.vjp(adj, [path])[path])

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
        image = rasterize(alone, self.camera, sharp, {"object": self.vertices[self.name]}, size)
        return image[..., 3] > 0.4

    def from_the_image(self, outline: np.ndarray) -> float:
        """Return how far the outline is from the nearest pixel [pixels]."""
        rows, columns = np.mgrid[0 : self.height, 0 : self.width]
        return nearest(np.stack([columns.ravel(), rows.ravel()], 1).astype(float), outline)


def _painted(scene: Scene, name: str, among: Iterable[str]) -> Scene:
    """Return some objects of a scene without light, one of them white, the others black."""
    return Scene(
        {
            other: Mesh(
                scene.objects[other].faces,
                face_colors=np.full((len(scene.objects[other].faces), 3), float(other == name)),
                material=Material(ambient=1.0, diffuse=0.0),
            )
            for other in among
        }
    )


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
