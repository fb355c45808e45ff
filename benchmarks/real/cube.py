"""Tosses of a cube on a table: friction from six of them, and the motion of the others.

The file has an array (n_frames, 13) for each toss, at 148 Hz with z up: position and, behind the
quaternion (w, x, y, z), velocity [half widths, a second], and spin in the axes of the body [rad/s].
Velocities and spins of the file are noisy, so those of the start come from the poses of the first
frames.
"""

import csv
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from studies.api import Answer, Problem, fit, simulate
from studies.scene.declared import Free, PlaneObstacle, Points, Rigid, Scene, World


FILE = "cube_tosses.npz"
SOURCE = (
    "Tosses of github.com/DAIRLab/contact-nets (BSD-3): Pfrommer, Halm, Posa, ContactNets: "
    "Learning Discontinuous Contact Dynamics with Smooth, Implicit Representations, CoRL 2020."
)
RATE, FRAMES = 148.0, 81  # [Hz], and how many are used: 0.54 s
STARTING = 4  # frames in flight that give the start
WIDTH, MASS, INERTIA = 0.1048, 0.37, 8.1e-4  # [m], [kg], [kg m2]
GRAVITY = np.array([0.0, 0.0, -9.81])  # [m/s2]
FRICTION, RESTITUTION = 0.18, 0.125  # those of the authors
OTHERS = {"Drake": 0.097, "MuJoCo": 0.233, "Bullet": 0.385}  # friction tuned on the same tosses
FITTED, DRAWN = 6, 4  # the first tosses, and the first of the others
START, CHOSEN = 0.4, 0.15  # where a search starts: friction, and the restitution that is chosen
ERROR = 5e-3  # of a corner [m]
ANSWER = (2, 1)  # where it stands in the table: row and column
HEADER = (
    "numbers", "friction", "restitution", "verdict", "tosses", "position", "rotation", "median",
)  # fmt: skip
FLOOR = ("friction", "restitution")

Tosses = Mapping[str, np.ndarray]


def table(file: Path, axes: Any = None, *, fitted: int = FITTED) -> Iterator[str]:
    """Yield the lines of a table: what was found, and how well tosses are predicted with it.

    With `axes` of Matplotlib, tosses that no fit saw are drawn beside their predictions.
    """
    tosses = read_tosses(file)
    names = list(tosses)
    seen = {name: tosses[name] for name in names[:fitted]}
    unseen = {name: tosses[name] for name in names[fitted:]}
    yield (
        f"Errors are means over {(FRAMES - 1) / RATE:.2f} s, of the position in parts of the "
        "width; chosen numbers are those of a scene file that gives none."
    )
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + " --- |" * len(HEADER)
    floor = PlaneObstacle(normal=(0, 0, 1), friction=FRICTION)
    given = [f"{FRICTION:g}, given", "chosen", ""]
    yield _row("chosen, no fit", given, tosses, prediction_errors(tosses, floor))
    for keys in (("friction",), FLOOR):
        more = {"restitution": CHOSEN} if "restitution" in keys else {}
        start = PlaneObstacle(normal=(0, 0, 1), friction=START, **more)
        answer = fit_floor(seen, start, keys)
        cells = [_found(answer, key) for key in FLOOR] + [answer.verdict.kind]
        errors = prediction_errors(unseen, start, answer.values)
        if axes is not None and len(keys) == 1:
            _draw(axes, unseen, start, answer)
        yield _row(f"fitted to {len(seen)} others", cells, unseen, errors)
    others = ", ".join(f"{name} {friction:g}" for name, friction in OTHERS.items())
    yield (
        f"Others: friction {FRICTION:g} and restitution {RESTITUTION:g} by the authors; friction "
        f"of engines tuned on the same tosses: {others}."
    )


def _draw(axes: Any, tosses: Tosses, floor: PlaneObstacle, answer: Answer) -> None:
    """Draw the height of a few tosses: measured as dots, predicted as lines."""
    few = dict(list(tosses.items())[:DRAWN])
    seconds = np.arange(FRAMES) / RATE
    run = simulate(toss_scene(few, floor), seconds, answer.values)
    for name, toss in few.items():
        dots = axes.plot(seconds[: len(toss)], 50.0 * WIDTH * toss[:, 2], ".", ms=3)[0]
        height = 100.0 * run.surfaces[name].mean(axis=1)[:, 2]
        axes.plot(seconds, height, "-", lw=1, color=dots.get_color())
    friction = float(answer.values["floor.friction"])
    axes.set_title(f"cube: friction {friction:.3f}, {FRICTION:g} by the authors")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("height of tosses that no fit saw [cm]")


def read_tosses(file: Path) -> dict[str, np.ndarray]:
    """Return the frames of each toss that are used, by name."""
    with np.load(file) as arrays:
        return {name: arrays[name][:FRAMES].astype(float) for name in arrays.files}


def toss_scene(tosses: Tosses, floor: PlaneObstacle) -> Scene:
    """Return a scene with a body for each toss; they do not touch each other."""
    bodies = {name: _body(toss) for name, toss in tosses.items()}
    return Scene(bodies=bodies, obstacles={"floor": floor}, world=World(gravity=tuple(GRAVITY)))


def fit_floor(tosses: Tosses, floor: PlaneObstacle, keys: tuple[str, ...]) -> Answer:
    """Return the answer of a search for numbers of the floor by the tracked corners of tosses."""
    free = {f"floor.{key}": Free() for key in keys}
    with tempfile.TemporaryDirectory() as folder:
        tracks = {
            f"{name}_corners": _corners(name, toss, Path(folder)) for name, toss in tosses.items()
        }
        return fit(Problem(toss_scene(tosses, floor), tracks, free))


def prediction_errors(
    tosses: Tosses, floor: PlaneObstacle, values: Mapping[str, Any] | None = None
) -> np.ndarray:
    """Return mean errors of what follows from the start of each toss, (n_tosses, 2).

    They are those of the position, in widths, and of the rotation [deg].
    """
    run = simulate(toss_scene(tosses, floor), np.arange(FRAMES) / RATE, values)
    means = []
    for name, toss in tosses.items():
        corners = run.surfaces[name][: len(toss)]
        centers = corners.mean(axis=1)
        arms = corners - centers[:, None]
        turns = [Rotation.align_vectors(now, arms[0])[0] for now in arms]
        wrong = Rotation.concatenate(turns) * _turns(toss[0]) * _turns(toss).inv()
        away = np.linalg.norm(centers - 0.5 * WIDTH * toss[:, :3], axis=1)
        means.append((away.mean() / WIDTH, np.degrees(wrong.magnitude()).mean()))
    return np.array(means)


def _body(toss: np.ndarray) -> Rigid:
    """Return the cube of a toss at its first frame."""
    first, last = toss[[0, STARTING]]
    turn, seconds = _turns(first), STARTING / RATE
    velocity = 0.5 * WIDTH * (last[:3] - first[:3]) / seconds - 0.5 * GRAVITY * seconds
    spin = (_turns(last) * turn.inv()).as_rotvec() / seconds
    return Rigid(
        mesh="box", size=(WIDTH,) * 3, mass=MASS, inertia=(INERTIA,) * 3,
        position=tuple(0.5 * WIDTH * first[:3]), rotation=tuple(np.degrees(turn.as_rotvec())),
        velocity=tuple(velocity), spin=tuple(spin),
    )  # fmt: skip


def _turns(states: np.ndarray) -> Rotation:
    """Return the rotations of states, (..., 13)."""
    return Rotation.from_quat(states[..., [4, 5, 6, 3]])


def _corners(name: str, toss: np.ndarray, folder: Path) -> Points:
    """Return the corners of a toss as tracked points, whose file is in a folder."""
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    turned = np.stack([_turns(toss).apply(corner) for corner in corners], axis=1)
    places = 0.5 * WIDTH * (toss[:, None, :3] + turned)
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "point", "x", "y", "z"])
        for k, frame in enumerate(places):
            rows.writerows([k / RATE, i, *place] for i, place in enumerate(frame))
    return Points(file=str(path), body=name, error=ERROR)


def _found(answer: Answer, key: str) -> str:
    """Return what was found of a number of the floor: value, interval and its own verdict."""
    path = f"floor.{key}"
    if path not in answer.values:
        return "chosen"
    low, high = answer.intervals[path]
    kind = answer.verdicts.get(path, answer.verdict.kind)
    return f"{float(answer.values[path]):.3f} ({low:.3f} to {high:.3f}), {kind}"


def _row(label: str, cells: list[str], tosses: Tosses, errors: np.ndarray) -> str:
    away, wrong = errors.T
    means = [f"{100 * away.mean():.1f} %", f"{wrong.mean():.1f}°", f"{np.median(wrong):.1f}°"]
    return "| " + " | ".join([label, *cells, str(len(tosses)), *means]) + " |"
