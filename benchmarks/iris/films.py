"""Simulated films of all classes of IRIS, in its layout, by the solvers of `benchmarks.films`.

    python -m benchmarks.iris.films OUT

Bodies that adjsim did not simulate are drawn by VTK: flights, bounces and slides of the rigid
solver, pendula by Runge-Kutta, two of them with blows between, and closed forms.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyvista
import typer
from scipy.integrate import solve_ivp

from benchmarks.films import drawing, solver_bounces, solver_rigid
from benchmarks.iris.folder import GRAVITY, PARAMETERS


DOWN = np.array([0.0, -GRAVITY, 0.0])
RADIUS = 0.03  # of balls [m]
RED, GREEN, TEAL, NAVY = (0.8, 0.2, 0.15), (0.6, 0.7, 0.1), (0.33, 0.49, 0.52), (0.05, 0.05, 0.25)
WALL = (0.88, 0.86, 0.82)  # whose hue is that of no ball
Surface = tuple[np.ndarray, np.ndarray]
Drawn = list[tuple[Surface, drawing.Color]]


@dataclass(frozen=True, eq=False)
class Setting:
    """A class and a setting: what is filmed from how far, and what is measured of it."""

    name: str  # CLASS/SETTING
    measured: dict[str, float]
    film: Callable[[np.ndarray], Drawn]  # of the times of its frames
    fps: int
    n_frames: int
    distance: float  # of the camera [m]
    height: float = 0.0  # of the camera [m]


def ball(way: np.ndarray, radius: float = RADIUS) -> Surface:
    """Return vertices and faces of a ball on its way (n_frames, 3) [m]."""
    mesh = pyvista.Sphere(radius=radius, theta_resolution=24, phi_resolution=24)
    return way[:, None] + np.asarray(mesh.points, float), mesh.regular_faces


def in_plane(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return places in the plane z = 0, (n, 3)."""
    return np.stack([x, y, np.zeros_like(x)], axis=1)


def dropped(height: float) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a ball that falls by a height until it touches the floor of y = 0."""

    def film(times: np.ndarray) -> Drawn:
        start = {"centre": np.array([0.0, height + RADIUS, 0.0]), "velocity": np.zeros(3)}
        way = solver_bounces.ball(
            RADIUS, {**start, "spin": np.zeros(3)}, times,
            gravity=DOWN, floor=0.0, restitution=0.6, friction=0.2,
        )  # fmt: skip
        return [(ball(way), RED)]

    return film


def fallen(radius: float) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a ball that falls past the camera."""

    def film(times: np.ndarray) -> Drawn:
        start = {"velocity": np.array([0.05, 0.0, 0.0]), "spin": np.array([0.0, 0.0, 1.0])}
        way, _ = solver_rigid.throw(np.eye(3), start, times, DOWN)
        return [(ball(way, radius), RED)]

    return film


def swung(angle: float, damping: float = 0.01) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a ball on a rope of 0.5 m to its surface, from rest at an angle [deg]."""

    def film(times: np.ndarray) -> Drawn:
        length = 0.5 + 0.031
        (q,) = solver_rigid.pendulum(
            np.array([length]), np.deg2rad([angle]), times,
            mass=np.array([0.06]), damping=np.array([damping]), gravity=GRAVITY,
        ).T  # fmt: skip
        return [(ball(in_plane(length * np.sin(q), -length * np.cos(q)), 0.031), GREEN)]

    return film


def turned(damping: float, rate: float) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a mark 0.12 m from an axis: z'' + damping z' + 0.1 z = 0, closed form."""

    def film(times: np.ndarray) -> Drawn:
        first, pulse = 0.9, np.sqrt(0.1 - damping**2 / 4)
        swing = (rate + damping / 2 * first) / pulse * np.sin(pulse * times)
        z = np.exp(-damping / 2 * times) * (first * np.cos(pulse * times) + swing)
        way = 0.12 * in_plane(np.cos(z), np.sin(z))
        return [(ball(way, 0.02), RED)]

    return film


def struck(angles: tuple[float, float], restitution: float = 0.95) -> Callable[..., Drawn]:
    """Return the film of two balls on ropes of 0.5 m from one pivot that strike each other.

    Ropes are as long as from the pivot to the middles of the balls, whose masses are equal. Angles
    are those at the start, from rest [deg].
    """

    def film(times: np.ndarray) -> Drawn:
        radius, length = 0.036, 0.5
        closest = 2 * np.arcsin(radius / length)

        def rate(_: float, y: np.ndarray) -> np.ndarray:
            return np.append(y[2:], -GRAVITY / length * np.sin(y[:2]))

        def gap(_: float, y: np.ndarray) -> float:
            return y[1] - y[0] - closest

        event: Any = gap
        event.terminal, event.direction = True, -1
        t, y, out = 0.0, np.append(np.deg2rad(angles), [0.0, 0.0]), np.zeros((len(times), 2))
        while t < times[-1]:
            done = solve_ivp(rate, (t, times[-1]), y, events=event, dense_output=True, rtol=1e-9)
            inside = (times >= t) & (times <= done.t[-1])
            out[inside] = done.sol(times[inside])[:2].T
            t, y = float(done.t[-1]), done.y[:, -1].copy()
            middle, half = y[2:].mean(), 0.5 * restitution * (y[2] - y[3])
            y[2:] = middle - half, middle + half
            y[1] = max(y[1], y[0] + closest + 1e-9)
        ways = [length * in_plane(np.sin(q), -np.cos(q)) for q in out.T]
        return [(ball(ways[0], radius), NAVY), (ball(ways[1], radius), TEAL)]

    return film


def slid(angle: float, friction: float = 0.2) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a cone that slides down a slope [deg], by the rigid solver.

    The solver's floor is the slope, and gravity leans.
    """

    def film(times: np.ndarray) -> Drawn:
        cone = pyvista.Cone(direction=(0, 1, 0), height=0.06, radius=0.04, resolution=24)
        mesh: Any = cone.triangulate().clean()
        points, faces = np.asarray(mesh.points, float), mesh.regular_faces
        points[:, 1] -= points[:, 1].min()
        volume, centre, inertia = solver_rigid.mass_properties(points, faces)
        c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        start = {"centre": centre, "velocity": np.zeros(3), "spin": np.zeros(3)}
        x = solver_rigid.slide(
            points, inertia / volume, start, times,
            gravity=GRAVITY * np.array([s, -c, 0.0]), floor=0.0, friction=friction,
        )  # fmt: skip
        level = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        return [((x @ level.T, faces), RED)]

    return film


def rolled(speed: float) -> Callable[[np.ndarray], Drawn]:
    """Return the film of a ball that rolls, is slowed a little, strikes, and rolls back."""

    def film(times: np.ndarray) -> Drawn:
        drag, strike = 0.2, 0.5 / speed
        x = -0.4 - np.expm1(-drag * times) / drag * speed
        at = -0.4 - np.expm1(-drag * strike) / drag * speed
        after = times > strike
        x[after] = at - 0.3 * speed * (times[after] - strike)
        return [(ball(in_plane(x, np.zeros_like(x))), RED)]

    return film


SETTINGS = (
    *(
        Setting(f"Dropping_ball/drop_{100 * h:.0f}", {"drop_height": h, "camera_to_object": d},
                dropped(h), 60, 54 + round(60 * h / 3), d, 0.5 * h)
        for h, d in ((0.5, 1.0), (1.0, 1.7), (1.5, 2.4))
    ),
    *(
        Setting(f"Falling_ball/{name}", {"camera_to_object": 1.2}, fallen(r), 60, 24, 1.2, -0.35)
        for name, r in (("small", 0.02), ("mid", 0.03), ("big", 0.05))
    ),
    *(
        Setting(f"Pendulum/pendulum_{angle}", {"rope_length": 0.5}, swung(angle), 30, 90, 1.9, -0.3)
        for angle in (20, 45, 90)
    ),
    *(
        Setting(f"Rotation/{name}",
                {"angular_damping": damping, "angular_stiffness": 0.1, "camera_to_object": 0.5},
                turned(damping, rate), 5, 100, 0.5)
        for name, damping, rate in (("slow", 0.03, 0.3), ("mid", 0.05, 0.6), ("fast", 0.08, 1.0))
    ),
    *(
        Setting(f"Sliding_cone/cone_{angle}", {"angle": angle, "camera_to_object": 1.0},
                slid(angle), 60, n, 1.0, -0.2)
        for angle, n in ((45, 26), (60, 24), (80, 22))
    ),
    *(
        Setting(f"Hitting_cones/{name}", {"speed": speed, "camera_to_object": 1.0},
                rolled(speed), 60, round(36 / speed) + 6, 1.0)
        for name, speed in (("slow", 0.5), ("mid", 1.0), ("fast", 1.5))
    ),
    *(
        Setting(f"Two_Moving_Pendulums/pendulum_{angle}",
                {"rope_length_1": 0.5, "rope_length_2": 0.5},
                struck((-angle, 0.7 * angle)), 30, 60, 1.5, -0.3)
        for angle in (20, 45, 90)
    ),
    *(
        Setting(f"Two_Moving_Pendulum_One_Static/pendulum_{angle}",
                {"rope_length_1": 0.5, "rope_length_2": 0.5},
                struck((-angle, 0.0)), 30, 75, 1.5, -0.3)
        for angle in (20, 45, 90)
    ),
)  # fmt: skip


def make(out: Path, settings: Sequence[Setting] = SETTINGS) -> None:
    """Write the films of settings, one take each, and `parameters.json`."""
    measured: dict[str, Any] = {}
    for seed, case in enumerate(settings):
        kind, setting = case.name.split("/")
        entries = {name: {"mean": value, "std": 0.0} for name, value in case.measured.items()}
        measured.setdefault(kind.lower(), {})[setting] = entries
        path = out / case.name / "01.mp4"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = drawing.Shot(
            fps=case.fps, n_frames=case.n_frames, noise=1.0, crf=18, background=WALL
        )
        drawn = case.film(shot.times)
        # As many pixels to the focal length as the picture is wide
        field = 2 * np.rad2deg(np.arctan(0.5 * shot.size[1] / shot.size[0]))
        eye = [0.0, case.height, case.distance]
        camera = {"eye": eye, "target": [0.0, case.height, 0.0], "fov_y": float(field)}
        looks = [{"color": color} for _, color in drawn]
        frames = drawing.draw([s for s, _ in drawn], looks, camera, shot, seed=seed)
        unfinished = path.with_name("unfinished.mp4")
        drawing.write(unfinished, frames, shot)
        unfinished.replace(path)
        typer.echo(str(path))
    (out / PARAMETERS).write_text(json.dumps(measured, indent=1), "utf-8")


def main(out: Annotated[Path, typer.Argument(help="The folder, which is made.")]) -> None:
    """Write simulated films of all classes in the layout of IRIS; those that are there stay."""
    make(out)


if __name__ == "__main__":
    typer.run(main)
