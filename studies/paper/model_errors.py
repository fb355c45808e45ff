"""Table 4, left, of gradSim: the mass from a film by a model that is not quite that of the film.

    python -m studies.paper.model_errors                         30 bodies of each kind, ten minutes
    python -m studies.paper.model_errors perfect no-friction --count 5

The force of a contact is k_e c + k_d max(0, -u_n): what its spring has stored comes back, and
the damper takes its part on the way in. One vertex with damping ratio z = k_d/(2 sqrt(k_e m)) > 1
leaves with about 1/(2 z) of the speed it came with, for it never gets deeper than m u/k_d. Shape,
pose, velocity, contact and force are known, the mass is not. A perfect model ends at it; of a wrong
one the error is that of the model.
"""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy.spatial.transform import Rotation

from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.shapes import SHAPES, shape
from adjsim.meshes.tet_mesh import TetMesh
from render.camera import Camera
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import NOT_FINITE
from studies.paper import photo, traced
from studies.paper.tables import cells, markdown, summary
from studies.problem.films import FilmObserver, films_of
from studies.problem.making import make_problem
from studies.problem.problem import SceneProblem
from studies.reports.figures import BLUE, GREEN, INK, ORANGE, FigureFiles, make_axes
from studies.runs.errors import StudyError
from studies.runs.folder import RESULT, RunFolder
from studies.scene.declared import Free, Rigid, SceneFile, Search, Soft
from studies.scene.reading import read_scene


HERE = Path(__file__).parent
PUBLISHED = tomllib.loads((HERE / "published.toml").read_text())["mass-under-model-error"]
DENSITY = "body.density"
MASSES, STARTS, BOUNDS = (1.0, 3.0), (3.5, 4.5), (0.7, 7.0)  # [kg]
CONTACT = {
    "stiffness": (200.0, 500.0),
    "damping": (1.0, 3.0),
    "friction_stiffness": (6.0, 12.0),
    "friction": (0.2, 1.0),
}
DEAD_DAMPING = 150.0  # of a fit without elasticity [N s/m]
SLOWEST, FASTEST, SPIN = (1.5, -2.0, -0.3), (2.5, -1.0, 0.3), 1.0  # [m/s], [rad/s]
STRETCH = (0.8, 1.2)
MATERIAL: dict[str, Any] = {"mu": 100.0, "lam": 100.0, "viscosity": 2.0}
STAGES, BUDGET, POINTS = (0.4, 1.0), 40, 25
SEARCH = Search(method="l-bfgs-b", max_evaluations=BUDGET, tolerance=1e-9)
SAME = 1e-6  # a mean relative error below it is a search that reached the truth


class Kind(StrEnum):
    """What the model of the fit has otherwise than the film."""

    NO_FRICTION = "no-friction"
    NO_ELASTICITY = "no-elasticity"  # k_d so large that next to nothing bounces
    RIGID_AS_DEFORMABLE = "rigid-as-deformable"  # soft in place of rigid
    DEFORMABLE_AS_RIGID = "deformable-as-rigid"
    PHOTOREALISTIC = "photorealistic"  # one colour in place of light, shadows and a floor, by VTK
    PATH_TRACED = "path-traced"  # the same by Mitsuba
    PERFECT = "perfect"
    PERFECT_DEFORMABLE = "perfect-deformable"  # both soft


SOFT_FILMS = (Kind.PERFECT_DEFORMABLE, Kind.DEFORMABLE_AS_RIGID)
SOFT_FITS = (Kind.PERFECT_DEFORMABLE, Kind.RIGID_AS_DEFORMABLE)
PHOTOGRAPHERS = {Kind.PHOTOREALISTIC: photo, Kind.PATH_TRACED: traced}
# Solids whose surface a rigid body can have: mesh, size relative to the others, cells.
SOLIDS: dict[str, tuple[str, tuple[float, ...], tuple[int, ...]]] = {
    "ball": ("ball", (1.0,), (2,)),
    "cube": ("box", (1.0, 1.0, 1.0), (3, 3, 3)),
    "bar": ("box", (2.5, 1.0, 1.0), (5, 2, 2)),
    "slab": ("box", (2.0, 2.0, 0.8), (4, 4, 2)),
}


@dataclass(frozen=True, eq=False)
class ErrorCase:
    """A body, its film, and the problem of a model."""

    what: str  # its shape
    mass: float  # hidden [kg]
    start: float  # where the search begins [kg]
    volume: float  # what divides masses to densities, which are free [m3]
    problem: SceneProblem  # of the model of the fit
    exact: SceneProblem  # of the film's own model: its loss is 0 at the truth

    def theta(self, mass: float) -> np.ndarray:
        """Return the theta of a mass."""
        return self.problem.parameters.theta(np.array([mass / self.volume]))

    def mass_at(self, theta: np.ndarray) -> float:
        """Return the mass at theta [kg]."""
        return float(self.problem.parameters.values(theta)[DENSITY].item()) * self.volume


def make_case(kind: Kind, seed: int, k: int) -> ErrorCase:
    """Draw body k, make its film, and pose the problem of the model that is not quite its own."""
    rng = np.random.default_rng([seed, k])
    is_solid = kind in (*SOFT_FILMS, *SOFT_FITS)
    names = list(SOLIDS if is_solid else SHAPES)
    what = names[k % len(names)]
    body, volume, low = _thrown(what, rng, is_solid=is_solid)
    contact = {name: float(rng.uniform(*ends)) for name, ends in CONTACT.items()}
    mass, start = float(rng.uniform(*MASSES)), float(rng.uniform(*STARTS))
    file = read_scene(HERE / "model-error.toml")
    declared: Any = file.bodies["body"]
    position = np.add(declared.position, [0.0, -low, 0.0])
    free = Free(start=start / volume, bounds=(BOUNDS[0] / volume, BOUNDS[1] / volume))
    body |= {"density": mass / volume, "position": tuple(position.tolist())}
    body["look"] = declared.look
    scene = _with(file, body, contact, is_soft=kind in SOFT_FILMS)
    scene = replace(scene, free={DENSITY: replace(free, start=None)})
    seen = make_problem(scene, fits_first=False).everything
    exact = make_problem(replace(scene, free={DENSITY: free}), fits_first=False).everything
    if kind is Kind.NO_FRICTION:
        contact["friction"] = 0.0
    if kind is Kind.NO_ELASTICITY:
        contact["damping"] = DEAD_DAMPING
    fitted = replace(_with(file, body, contact, is_soft=kind in SOFT_FITS), free={DENSITY: free})
    problem = make_problem(fitted, fits_first=False).everything
    video, empty = film_of(seen).frames, None
    if kind in PHOTOGRAPHERS:
        video, empty = _photographed(seen, file, PHOTOGRAPHERS[kind].photograph)
    return ErrorCase(what, mass, start, volume, showing(problem, video, empty),
                showing(exact, film_of(seen).frames))  # fmt: skip


def _thrown(
    what: str, rng: np.random.Generator, *, is_solid: bool
) -> tuple[dict[str, Any], float, float]:
    """Return keys of a stretched body in some pose and motion, its volume, its lowest height."""
    stretch = rng.uniform(*STRETCH, size=3)
    turn = Rotation.from_quat(rng.standard_normal(4))
    if is_solid:
        mesh, size, cells = SOLIDS[what]
        tets = solid(what)
        surface, volume = tets, float(tets.volumes.sum())
        stretch /= np.linalg.norm(tets.points, axis=1).max()
        keys: dict[str, Any] = {"mesh": mesh, "size": size, "cells": cells}
    else:
        surface = shape(what)
        volume = surface.volume
        keys = {"mesh": f"shape:{what}"}
    points = turn.apply(surface.points * stretch)
    keys |= {
        "scale": tuple(stretch.tolist()),
        "rotation": tuple(turn.as_rotvec(degrees=True).tolist()),
        "velocity": tuple(rng.uniform(SLOWEST, FASTEST).tolist()),
        "spin": tuple(turn.apply(rng.uniform(-SPIN, SPIN, size=3)).tolist()),
    }
    return keys, float(volume * np.prod(stretch)), float(points[:, 1].min())


def solid(name: str) -> TetMesh:
    """Return the tetrahedra of a solid as the generators of scenes make them."""
    mesh, size, cells = SOLIDS[name]
    if mesh == "ball":
        return ball_tets(cells[0], size[0])
    return box_tets(cells, size, [-0.5 * edge for edge in size])


def _with(
    file: SceneFile, body: dict[str, Any], contact: dict[str, float], *, is_soft: bool
) -> SceneFile:
    """Return the scene with a body, rigid or soft, and numbers of its contact."""
    made = Soft(**{**body, **MATERIAL}) if is_soft else Rigid(**body)
    floor = replace(file.obstacles["floor"], **contact)
    return replace(file, bodies={"body": made}, obstacles={"floor": floor})


def film_of(problem: SceneProblem) -> FilmObserver:
    """Return the one film of a problem."""
    (film,) = films_of(problem.observers)
    return film


def showing(
    problem: SceneProblem, video: np.ndarray, behind: np.ndarray | None = None
) -> SceneProblem:
    """Return the problem of this film, (n_frames, height, width, 3), before this background."""
    film = film_of(problem).of_frames(video)
    if behind is not None:
        film = replace(film, rasterizer=replace(film.rasterizer, background=behind))
    return replace(problem, observers=(film,))


def _photographed(
    seen: SceneProblem, file: SceneFile, photograph: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the photorealistic film of a motion, and the picture of the empty scene."""
    moved, (at,) = seen.moved(seen.parameters.scene_values(seen.parameters.start))
    view: Any = file.cameras["front"]
    body: Any = file.bodies["body"]
    camera, size = Camera(view.eye, view.target, fov_y=view.fov_y), film_of(seen).size
    faces, frames = seen.built.meshes["body"].faces, at.at(moved["body"])
    return photograph(faces, frames, color=body.look.color, camera=camera, size=size)


def searched(case: ErrorCase) -> float:
    """Return the mass that a search finds: first of part of the film, then of the whole [kg]."""
    theta = case.theta(case.start)
    for stage in STAGES:
        shortened = case.problem.at_stage(stage)
        theta = minimize(shortened, theta, SEARCH).theta
    return case.mass_at(theta)


def scanned(case: ErrorCase) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mass from the lowest of a grid over all masses, the grid and its losses."""
    grid = np.geomspace(*BOUNDS, POINTS)
    losses = np.array([loss_at(case.problem, case.theta(mass)) for mass in grid])
    inside = np.clip(grid[np.nanargmin(losses)], BOUNDS[0] * (1 + 1e-9), BOUNDS[1] * (1 - 1e-9))
    best = minimize(case.problem, case.theta(inside), replace(SEARCH, max_evaluations=BUDGET // 2))
    return case.mass_at(best.theta), grid, losses


def loss_at(problem: SceneProblem, theta: np.ndarray) -> float:
    """Return the loss, NaN where the motion diverges."""
    try:
        return problem.loss_at(theta)
    except NOT_FINITE:
        return np.nan


def run_kind(
    kind: Kind, seed: int, count: int, say: Callable[[str], object] = print
) -> dict[str, Any]:
    """Return the errors of all bodies of a kind, in parts of the hidden mass."""
    rows = []
    for k in range(count):
        case = make_case(kind, seed, k)
        mass, (scan, *_) = searched(case), scanned(case)
        rows.append(
            {
                "body": case.what,
                "hidden": case.mass,
                "found": mass,
                "scan": scan,
                "error": mass / case.mass - 1.0,
                "scan_error": scan / case.mass - 1.0,
                "is_at_bound": min(abs(mass / end - 1.0) for end in BOUNDS) < SAME,
            }
        )
        say(f"{kind} {k}: {case.what}, {case.mass:.4g} kg hidden, {mass:.4g} kg found")
    errors = np.abs([row["error"] for row in rows])
    return {
        "kind": str(kind),
        "published": PUBLISHED.get(kind),
        **summary(errors),
        "scan_mean": float(np.abs([row["scan_error"] for row in rows]).mean()),
        "too_heavy": sum(row["error"] > SAME for row in rows),
        "at_a_bound": sum(row["is_at_bound"] for row in rows),
        "median_body": int(np.argsort(errors)[(len(errors) - 1) // 2]),
        "bodies": rows,
    }


def figure(kinds: Sequence[dict[str, Any]], seed: int) -> Any:
    """Draw the loss over the mass for the body of the median error of each kind."""
    across = min(4, len(kinds))
    down = -(-len(kinds) // across)
    drawing, axes = make_axes(down, across, (2.9 * across, 2.6 * down))
    for ax in axes[len(kinds) :]:
        ax.set_visible(False)
    for ax, result in zip(axes, kinds, strict=False):
        case = make_case(Kind(result["kind"]), seed, result["median_body"])
        grid = np.geomspace(*BOUNDS, POINTS)
        for problem, color, name in (
            (case.exact, GREEN, "model of the film"),
            (case.problem, BLUE, "model of the fit"),
        ):
            losses = [loss_at(problem, case.theta(mass)) for mass in grid]
            ax.plot(grid, losses, color=color, label=name)
        ax.axvline(case.mass, color=GREEN, lw=1.0)
        ax.axvline(result["bodies"][result["median_body"]]["found"], color=ORANGE, ls="--", lw=1.0)
        ax.set(xscale="log", xlabel="mass [kg]", ylim=(0.0, None))
        ax.set_title(f"{result['kind']}: {case.what}", fontsize=9, color=INK)
    axes[0].legend(frameon=False, fontsize=7)
    return drawing


def table(kinds: Sequence[dict[str, Any]]) -> str:
    """Return a table in Markdown."""
    head = ["kind", "published mean", "mean", "median", "worst", "scan: mean", "too heavy"]
    lines = []
    for row in kinds:
        numbers = cells(row, ("published", "mean", "median", "worst", "scan_mean"))
        heavy = f"{row['too_heavy']} of {len(row['bodies'])}"
        lines.append([row["kind"], *numbers, heavy, str(row["at_a_bound"])])
    return markdown([*head, "at a bound"], lines)


def main(
    kinds: Annotated[
        list[Kind] | None, typer.Argument(help="Default: all but path-traced, which needs Mitsuba.")
    ] = None,
    *,
    count: Annotated[int, typer.Option(min=1, help="Bodies of each kind.")] = 30,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path, typer.Option(help="A new folder.")] = Path("runs/model-errors"),
) -> None:
    """Find masses by models that are not those of the films, and print the errors."""
    chosen = kinds or [kind for kind in Kind if kind is not Kind.PATH_TRACED]
    for kind in chosen:
        if kind in PHOTOGRAPHERS and (problem := PHOTOGRAPHERS[kind].missing()):
            raise StudyError(f"`{kind}` is drawn by {PHOTOGRAPHERS[kind].NAME}. {problem}")
    folder = RunFolder.create(out)
    results = []
    for kind in chosen:
        results.append(run_kind(kind, seed, count, typer.echo))
        folder.write_json(RESULT, {"seed": seed, "kinds": results})
    FigureFiles(folder).save("landscapes", figure(results, seed))
    folder.write_text("table.md", table(results) + "\n")
    typer.echo(table(results))
    typer.echo(folder.path)


if __name__ == "__main__":
    typer.run(main)
