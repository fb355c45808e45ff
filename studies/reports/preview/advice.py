"""What looks wrong about a scene beside its film: place, size, overlap, held nodes, frame rate.

Lengths are in pixels of the frames that are compared. Cameras and looks are fitted later, so what
that will settle gives no advice.
"""

import numpy as np
from scipy.ndimage import uniform_filter

from studies.problem.observations.films import DIFFERENT
from studies.problem.observations.outlines import (
    Outline,
    drawn_as_filmed,
    outline,
    overlap,
    size_ratio,
)
from studies.reports.preview.shots import Shot
from studies.scene.building import BuiltScene
from studies.scene.declared import EQUILIBRIUM, Pendulum, Rigid, SceneFile, Smoke, Soft


Mask = np.ndarray | None  # of pixels, where there is a film
COVERED = 4  # pixels, below which a scene covers nothing
LARGER = 1.15  # times larger: what a camera's errors do not explain
DARK = 1.05  # times larger with its dark parts: more than soft edges add
SHIFTED = 0.05  # of the height, likewise
REMAINS = 0.5  # part of what differs in the first frame, if a body is still there
LIKE = 0.7  # overlap that is good enough to start from
MOVED = 0.5  # part of the held nodes that may seem to move
FALLS = 0.15  # of the height: a fall that is one
FAST = 1.4  # times the acceleration that is another one
STAYS = 0.4  # part of such a fall that is none
STRAIGHT = 0.7  # part of a motion that goes down, if it is a fall
NEAR = 0.04  # of the height: how far around a held node the film is looked at
CHANGES = 0.4  # part of that, which does not change around held nodes
SHORTEST = 6  # frames from which an acceleration is read,
EARLY = 6.0  # pixels that it makes in them at least,
ON_PARABOLA = 1.0  # and pixels that the way is off a parabola at most


class SizeWarning(str):
    """A warning that bodies are drawn larger or smaller than they are filmed."""

    __slots__ = ()


def advice_on(
    file: SceneFile, built: BuiltScene, shot: Shot, seen: Mask, *, faint: Mask = None
) -> list[str]:
    """Return what looks wrong about a film.

    `seen` (n, H, W) is what surely differs from its background, `faint` (H, W) what differs by more
    than noise in the first frame. Where that is clearly more, the body has parts as dark as what is
    behind them, and it is enough if the scene fits one of the two.
    """
    if file.world.motion == EQUILIBRIUM:  # where it is drawn depends on what is asked
        return []
    motion = [] if seen is None else _advice_on_motion(file, shot, seen)
    first = None if seen is None else seen[0]
    advice = _advice_on_start(file, built, shot, first)
    if first is not None and faint is not None and faint.sum() > DARK**2 * first.sum():
        advice = min(advice, _advice_on_start(file, built, shot, faint), key=len)
    if seen is None or advice or motion:
        return advice + motion
    return _advice_on_leaving(file, shot, seen[shot.indices[: len(shot.images)]])


def _advice_on_start(file: SceneFile, built: BuiltScene, shot: Shot, seen: Mask) -> list[str]:
    """Return what looks wrong about the first frame; `seen` (H, W) is where the bodies are."""
    whole = outline(shot.drawn[0])
    where = f"first frame of `{shot.key}`"
    if whole is None or whole.area < COVERED:
        return [f"The scene is not in the {where}. {_whereabouts(shot)}"]
    if seen is None:
        return _advice_on_held(file, built, shot, np.zeros(2))
    filmed = outline(seen)
    if filmed is None:
        return [f"Nothing differs from the background in the {where}."]
    mask, apart = drawn_as_filmed(shot.images[0], shot.plate, filmed)
    drawn = outline(mask) or whole
    off = np.subtract(filmed.middle, drawn.middle) if apart is None else apart
    advice = _advice_on_held(file, built, shot, off)
    ratio = size_ratio(drawn, filmed)
    if ratio is not None and not 1.0 / LARGER < ratio < LARGER:
        return [_advice_on_size(file, ratio, where), *advice]
    if apart is not None and np.abs(off).max() > SHIFTED * shot.size[0]:
        return [_advice_on_place(file, shot, off, where), *advice]
    across, down = np.rint(off).astype(int)
    same = overlap(np.roll(mask, (down, across), axis=(0, 1)), seen)
    if same < LIKE:
        advice.append(
            f"The outlines in the {where} overlap only by {100 * same:.0f} %, moved on top of each "
            "other. Check `rotation` and the mesh, and whether shadows or other things are filmed."
        )
    return advice


def _advice_on_motion(file: SceneFile, shot: Shot, seen: np.ndarray) -> list[str]:
    """Return what looks wrong about how bodies fall: missing held nodes, or the frame rate."""
    down = _down(file, shot)
    if down is None or len(shot.images) < 3:
        return []
    scene = _moved([outline(mask) for mask in shot.drawn])
    film = _moved([outline(mask) for mask in seen[shot.indices[: len(shot.images)]]])
    both = np.isfinite(scene[:, 0] + film[:, 0])
    if not both[0] or both.sum() < 3:
        return []
    last, height = np.flatnonzero(both)[-1], shot.size[0]
    scene_down, film_down = scene @ down, film @ down
    bodies = file.bodies.values()
    hang = any(isinstance(b, Pendulum) or getattr(b, "held", None) is not None for b in bodies)
    if not hang and (advice := _advice_on_rate(file, shot, scene_down, film_down)):
        return advice
    falls = scene_down[last] > STRAIGHT * float(np.linalg.norm(scene[last]))
    stays = float(np.linalg.norm(film[last])) < STAYS * scene_down[last]
    if falls and stays and scene_down[last] > FALLS * height:
        floor = "" if file.obstacles else " There is no obstacle to land on."
        return [
            f"In the scene the bodies fall by {scene_down[last]:.0f} pixels, in `{shot.key}` by "
            f"{film_down[last]:.0f} in the same time.{_advice_on_unheld(file)}{floor} Check "
            "stiffness and `fps`."
        ]
    return []


def _advice_on_leaving(file: SceneFile, shot: Shot, filmed: np.ndarray) -> list[str]:
    """Return what is said of a scene that leaves the picture while `filmed` (n, H, W) shows one."""
    least = max(COVERED, REMAINS * filmed[0].sum())
    for k, mask in enumerate(filmed):
        if shot.drawn[k].sum() < COVERED and mask.sum() > least:
            floor = "" if file.obstacles else " There is no obstacle to land on."
            return [
                f"After {shot.times[k]:.2g} s the scene is not in the picture of `{shot.key}`, but "
                f"the film shows a body there.{_advice_on_unheld(file)}{floor}"
            ]
    return []


def _advice_on_unheld(file: SceneFile) -> str:
    """Return which bodies could be held, but are not."""
    free = [
        f"`bodies.{name}`"
        for name, body in file.bodies.items()
        if getattr(body, "held", "") is None and not isinstance(body, Rigid)
    ]
    return f" No nodes of {' and '.join(free)} are held: give `held`, if they are." if free else ""


def _advice_on_rate(file: SceneFile, shot: Shot, scene: np.ndarray, film: np.ndarray) -> list[str]:
    """Return what is said of films whose free fall, from the start on, is not that of the scene."""
    g = float(np.linalg.norm(file.world.gravity))
    expected = g * shot.pixels_per_metre
    times = shot.times[: len(scene)] - shot.times[0]
    for end in range(len(scene), SHORTEST - 1, -1):
        a, b = (_acceleration(times[:end], way[:end]) for way in (scene, film))
        if a is None or b is None:
            continue
        is_fall = 0.7 * expected < a < 1.3 * expected
        is_seen = is_fall and 0.5 * min(a, abs(b)) * times[end - 1] ** 2 >= EARLY
        if is_seen and 1.0 / FAST < -b / a < FAST:
            return [
                f"In `{shot.key}` the bodies fall the other way than in the scene. Check which "
                f"axis points up: `world.gravity` is {list(file.world.gravity)}, and the camera "
                "must show it downwards."
            ]
        if not is_seen or b < 0.0 or 1.0 / FAST < b / a < FAST:
            return []
        rate = (shot.data and shot.data.fps) or 0.0
        held = _advice_on_unheld(file) if b < a else ""
        return [
            f"In `{shot.key}` the bodies fall with {b / a:.2g} times the acceleration of the "
            f"scene. Check `fps` (now {rate:g}; {rate / np.sqrt(b / a):.3g} would be the same), "
            f"`world.gravity` and the scale of the scene.{held}"
        ]
    return []


def _acceleration(times: np.ndarray, way: np.ndarray) -> float | None:
    """Return the acceleration [pixels/s2] of a way that is a parabola; None if it is none."""
    used = np.isfinite(way)
    if used.sum() < SHORTEST:
        return None
    parabola = np.polynomial.Polynomial.fit(times[used], way[used], 2)
    is_near = np.abs(parabola(times[used]) - way[used]).max() < ON_PARABOLA
    return float(parabola.deriv(2)(0.0)) if is_near else None


def _advice_on_size(file: SceneFile, ratio: float, where: str) -> str:
    larger = f"{1.0 / ratio:.2g} times larger" if ratio < 1.0 else f"{ratio:.2g} times smaller"
    scales = [
        f"`bodies.{name}.scale` = {', '.join(f'{ratio * s:.3g}' for s in np.atleast_1d(scale))}"
        for name, body in file.bodies.items()
        if (scale := getattr(body, "scale", None)) is not None
    ]
    fix = f"try {' and '.join(scales)}" if scales else "correct the sizes"
    return SizeWarning(
        f"In the {where} the scene is drawn {larger} than what differs from the background. If the "
        f"camera is right, {fix}; if the sizes are right, correct its distance or field of view."
    )


def _advice_on_place(file: SceneFile, shot: Shot, off: np.ndarray, where: str) -> str:
    """Return by how much the scene is drawn beside the film, and what moves it there."""
    height, width = shot.size
    sides = [
        f"{abs(off[0]):.0f} pixels too far {'left' if off[0] > 0 else 'right'}",
        f"{abs(off[1]):.0f} too {'high' if off[1] > 0 else 'low'}",
    ]
    right, up, _ = shot.camera.pose()[1]
    shift = ((off[0] * right - off[1] * up) / shot.pixels_per_metre).round(4).tolist()  # [m]
    swings = any(isinstance(body, Pendulum) for body in file.bodies.values())
    place = "`pivot`" if swings else "`position`"
    pose = ", `angle` and `length`" if swings else ""
    return (
        f"In the {where} the scene is drawn {' and '.join(sides)}, of {width} x {height} pixels. "
        f"Correct the camera{pose}, or add {shift} m to {place}."
    )


def _advice_on_held(file: SceneFile, built: BuiltScene, shot: Shot, off: np.ndarray) -> list[str]:
    """Return what is said of held nodes that lie, moved by `off`, where the film changes."""
    data = shot.data
    if data is None or built.held is None or len(data.frames) < 2:
        return []
    height, width = data.size
    changes = np.abs(data.frames - data.frames[0]).max(axis=(0, 3)) > DIFFERENT
    near = 2 * max(round(NEAR * height), 1) + 1
    changing = uniform_filter(changes.astype(float), near) > CHANGES  # at some time, (H, W)
    advice = []
    for name, rows in built.nodes.items():
        if not isinstance(file.bodies[name], Soft):
            continue
        points = np.asarray(built.state.x)[rows][built.held[rows]]
        if np.linalg.matrix_rank(points - points[:1], tol=1e-6) < 2:
            continue  # a hinge, about which everything turns
        pixels, depths = shot.seen_at(points)
        columns, lines = np.rint(pixels[depths > 0.0] + off).astype(int).T
        inside = (columns >= 0) & (columns < width) & (lines >= 0) & (lines < height)
        if inside.any() and (moves := changing[lines[inside], columns[inside]].mean()) > MOVED:
            advice.append(
                f"`bodies.{name}.held`: {100 * moves:.0f} % of the held nodes lie where "
                f"`{shot.key}` changes. Check `held`, and the camera."
            )
    return advice


def _moved(outlines: list[Outline | None]) -> np.ndarray:
    """Return how far middles moved since the first frame, (n, 2); NaN where they are cut off."""
    places = np.array(
        [
            (np.nan, np.nan) if contour is None or (contour.touches_edge and k) else contour.middle
            for k, contour in enumerate(outlines)
        ]
    )
    return places - places[0]


def _down(file: SceneFile, shot: Shot) -> np.ndarray | None:
    """Return the direction of gravity in the picture, (2,); None where it is along the view."""
    gravity = np.array(file.world.gravity)
    if not gravity.any() or any(isinstance(body, Smoke) for body in file.bodies.values()):
        return None
    size = 0.1 * shot.reach
    below = shot.center + size * gravity / np.linalg.norm(gravity)
    pixels, depths = shot.seen_at(np.stack([shot.center, below]))
    step = pixels[1] - pixels[0]
    length = float(np.linalg.norm(step))
    is_across = length > 0.5 * size * shot.pixels_per_metre
    return step / length if depths.min() > 0.0 and is_across else None


def _whereabouts(shot: Shot) -> str:
    """Return where the camera has the middle of the scene."""
    height, width = shot.size
    (place,), (depth,) = shot.seen_at(shot.center[None])
    low, high = shot.box.round(3).tolist()
    if depth <= 0.0:
        said = "Its middle is behind the camera."
    elif 0.0 <= place[0] < width and 0.0 <= place[1] < height:
        size = 100.0 * shot.reach * shot.pixels_per_metre / height
        said = f"Its middle is in view, but it is {size:.2g} % as large as the picture."
    else:
        said = (
            f"Its middle is at column {place[0]:.0f} and row {place[1]:.0f} of {width} x {height}."
        )
    return (
        f"{said} The bodies reach from {low} to {high} m: check the camera, `position` and `scale`."
    )
