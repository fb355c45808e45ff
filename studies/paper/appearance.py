"""How fast is the mass of a body found where the film shows one colour, shade, or a texture?

    python -m studies.paper.appearance --out runs/appearance

The figure 7 of the gradSim paper: bodies of `rigid-mass`, one impulse, one start and one budget;
what differs is how the body is drawn, in the film and in the fit alike. Gauss-Newton ends within
1e-10 of the hidden mass with all of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.ndimage
import typer

from adjsim.meshes.shapes import SHAPES
from studies.optimizers.minimize import minimize
from studies.optimizers.problem import Method
from studies.problem.films import films_of
from studies.problem.making import make_problem
from studies.problem.observers import SEEN
from studies.problem.problem import SceneProblem
from studies.reports.figures import BLUE, GREEN, INK, ORANGE, FigureFiles, make_axes
from studies.runs.folder import RESULT, RunFolder
from studies.runs.media import write_png
from studies.scene.declared import Look, Search
from studies.scene.drawing import instance_of
from studies.scene.files import BUNDLED
from studies.scene.reading import read_scene


MASS = "body.mass"
BODIES = ("sphere", "capsule", "apple", "banana", "torus")
TAKEN = "simulate={height=56, width=36, frames=6, duration=0.5}, softness=0.7, kind='film'"
SCENE = (  # two films, so that the loss is the mean square over RGB and A, as in the paper
    "world.dt=2e-3",
    "lights.sun.direction=[0.4, 1.0, 0.7]",
    "search.loss=mse",
    f"observations.film={{{TAKEN}, background.color=[0.45, 0.47, 0.5], weight={0.75 * SEEN**2}}}",
    f"observations.mask={{{TAKEN}, compare='silhouette', weight={0.25 * SEEN**2}}}",
)
START = (0.35, 0.45)  # masses where searches begin, drawn evenly [kg]
COLOR = (0.6, 0.4, 0.3)
SHADED = Look(color=COLOR, ambient=0.4, diffuse=0.6, specular=0.3, shininess=16.0)
TILES, CONTRAST, TEXELS = (4, 8), 0.6, 4  # rows and columns, how far from COLOR, edge of a tile
KINDS = ("color", "shading", "texture")
METHODS = {
    Method.GRADIENT_DESCENT: Search(learning_rate=2.0, momentum=0.0),
    Method.ADAM: Search(learning_rate=0.05),
    Method.GAUSS_NEWTON: Search(),
}
BUDGET = 60  # rollouts of a search; a tangent rollout counts as one
BARS = (1e-2, 1e-4)  # relative errors whose evaluations are counted
REACH = 2.5  # widths of soft edges that the outline reaches: there its coverage is below 2e-3
LEAST = 1e-16  # what is less is rounding


class LookCase(NamedTuple):
    """A body, and its problem with every kind of look."""

    mass: float
    problems: dict[str, SceneProblem]


@dataclass(frozen=True, eq=False)
class Curve:
    """A search: the relative error of the mass at each of its evaluations."""

    body: str
    kind: str
    method: str
    spent: np.ndarray
    error: np.ndarray

    def settled(self, bar: float) -> float:
        """Return the evaluation from which on the error stays at most `bar`; inf if none."""
        above = np.flatnonzero(self.error > bar)
        first = above[-1] + 1 if above.size else 0
        return float(self.spent[first]) if first < len(self.spent) else np.inf

    def held(self, budget: int) -> np.ndarray:
        """Return the error of the last evaluation made, for every one of the budget."""
        at = np.searchsorted(self.spent, np.arange(1, budget + 1), side="right") - 1
        return self.error[np.maximum(at, 0)]


def make_case(body: str, seed: int, folder: Path, overrides: tuple[str, ...] = ()) -> LookCase:
    """Return a body of `rigid-mass` in every look; the texture is a file in the folder."""
    number = list(SHAPES).index(body)
    file = instance_of(read_scene(BUNDLED / "rigid-mass.toml", (*SCENE, *overrides)), seed, number)
    rng = np.random.default_rng([seed, number, 1])
    free = {MASS: replace(file.free[MASS], start=float(rng.uniform(*START)))}
    picture = write_png(folder / f"{body}.png", tiles(rng))
    looks: dict[str, Look] = {
        "color": Look(color=COLOR, ambient=1.0, diffuse=0.0),
        "shading": SHADED,
        "texture": replace(SHADED, texture=str(picture), unwrap=True),
    }
    problems = {}
    for kind in KINDS:
        bodies = {"body": replace(file.bodies["body"], look=looks[kind])}
        dressed = replace(file, free=free, bodies=bodies)
        problems[kind] = make_problem(dressed, fits_first=False).everything
    return LookCase(float(np.asarray(file.truth[MASS])), problems)


def tiles(rng: np.random.Generator) -> np.ndarray:
    """Return a picture of tiles in colours drawn about COLOR, (height, width, 3)."""
    colors = np.array(COLOR) * (1.0 + CONTRAST * rng.uniform(-1.0, 1.0, (*TILES, 3)))
    return colors.clip(0.0, 1.0).repeat(TEXELS, axis=0).repeat(TEXELS, axis=1)


def curve(body: str, case: LookCase, kind: str, method: Method, *, budget: int) -> Curve:
    """Search for the mass of a body."""
    spent, error = [], []

    def seen(evaluation: Any) -> None:
        spent.append(evaluation.spent)
        error.append(abs(float(np.asarray(evaluation.values[MASS]).item()) / case.mass - 1.0))

    problem = case.problems[kind]
    how = replace(METHODS[method], method=method.value, max_evaluations=budget, tolerance=1e-14)
    minimize(problem, problem.parameters.start, how, callback=seen)
    return Curve(body, kind, str(method), np.array(spent), np.array(error))


def looked_at(case: LookCase, kind: str) -> dict[str, float]:
    """Return the curvature of the loss in log m at the truth, 2 |dr/dlog m|^2, and `inside`.

    That is the part of the squared derivatives of pixels that lies well within the outline.
    """
    problem = case.problems[kind]
    film = films_of(problem.observers)[0]
    n_rows = film.rows_per_frame() * len(film.times)
    theta = problem.parameters.theta(np.array([case.mass]))
    rows, slopes = problem.predicted_rows_jvp(theta, np.ones(1))
    per_log = 1.0 / problem.parameters.scene_tangents(theta, np.ones(1))[MASS] * case.mass
    shrink = max(1, int(np.ceil(REACH * film.size[0] / 2.0 * np.sqrt(film.rasterizer.sigma))))
    covered = film.as_images(rows[:n_rows])[..., 3] > 0.5
    within = [scipy.ndimage.binary_erosion(mask, iterations=shrink) for mask in covered]
    squares = np.square(film.as_images(slopes[:n_rows])).sum(axis=-1)
    r = problem.residuals_jvp(theta, np.ones(1)) * per_log
    return {
        "curvature": 2.0 * float(r @ r),
        "inside": float(squares[np.stack(within)].sum() / squares.sum()),
    }


def medians(curves: list[Curve], budget: int) -> list[dict[str, Any]]:
    """Return a row for each method and kind: medians over the bodies."""
    rows = []
    for method, kind in dict.fromkeys((curve.method, curve.kind) for curve in curves):
        group = [curve for curve in curves if (curve.method, curve.kind) == (method, kind)]
        row: dict[str, Any] = {"method": method, "kind": kind}
        for bar in BARS:
            # the upper of two in the middle, so that no median lies halfway to infinity
            median = sorted(curve.settled(bar) for curve in group)[len(group) // 2]
            row[f"{bar:.0e}"] = int(median) if np.isfinite(median) else None
        last = [curve.held(budget)[-1] for curve in group]
        rows.append({**row, "median": float(np.median(last)), "worst": float(np.max(last))})
    return rows


def figure(curves: list[Curve], budget: int) -> Any:
    """Draw errors over evaluations: a panel for each method, bodies faint, medians bold."""
    methods = list(dict.fromkeys(curve.method for curve in curves))
    drawing, axes = make_axes(1, len(methods), (2.9 * len(methods), 2.9))
    for ax, method in zip(axes, methods, strict=True):
        for kind, color in zip(KINDS, (BLUE, ORANGE, GREEN), strict=True):
            group = [curve for curve in curves if (curve.method, curve.kind) == (method, kind)]
            for curve in group:
                ax.semilogy(
                    curve.spent, np.maximum(curve.error, LEAST), color=color, lw=0.8, alpha=0.4
                )
            median = np.median([curve.held(budget) for curve in group], axis=0)
            at = np.arange(1, budget + 1)
            ax.semilogy(at, np.maximum(median, LEAST), color=color, lw=1.8, label=kind)
        ax.set_title(method, fontsize=10, color=INK)
        ax.set(xlabel="evaluations", ylim=(0.5 * LEAST, 2.0))
    axes[0].set_ylabel("relative error of the mass")
    axes[-1].legend(frameon=False, fontsize=8)
    return drawing


def compare(
    folder: RunFolder,
    bodies: tuple[str, ...],
    seed: int,
    *,
    budget: int = BUDGET,
    overrides: tuple[str, ...] = (),
    say: Callable[[str], object] = print,
) -> Mapping[str, Any]:
    """Search for the mass of every body in every look by every method; write what came out."""
    curves: list[Curve] = []
    looked = []
    for body in bodies:
        case = make_case(body, seed, folder.path, overrides)
        search = partial(curve, body, case, budget=budget)
        curves += [search(kind, method) for method in METHODS for kind in KINDS]
        looked.append([[*looked_at(case, kind).values()] for kind in KINDS])
        say(f"{body} ended")
    middle = np.median(looked, axis=0)
    result = {
        "searches": medians(curves, budget),
        "looks": [
            {"kind": kind, "curvature": curvature, "inside": inside}
            for kind, (curvature, inside) in zip(KINDS, middle.tolist(), strict=True)
        ],
    }
    folder.write_json(RESULT, result)
    lines = ["body,kind,method,evaluation,relative error\n"]
    for trace in curves:
        pairs = zip(trace.spent, trace.error, strict=True)
        lines += [f"{trace.body},{trace.kind},{trace.method},{at},{error}\n" for at, error in pairs]
    folder.write_text("curves.csv", "".join(lines))
    FigureFiles(folder).save("convergence", figure(curves, budget))
    return result


def main(
    *,
    out: Annotated[Path, typer.Option(help="A new folder.")] = Path("runs/appearance"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Compare how fast the mass of a body is found in one colour, with shade, with a texture."""
    folder = RunFolder.create(out)
    result = compare(folder, BODIES, seed)
    for row in result["searches"]:
        counts = ", ".join(f"{bar:.0e} after {row[f'{bar:.0e}']}" for bar in BARS)
        typer.echo(f"{row['method']}, {row['kind']}: {counts}, at the end {row['median']:.1e}, "
                   f"worst {row['worst']:.1e}")  # fmt: skip
    for row in result["looks"]:
        typer.echo(f"{row['kind']}: curvature {row['curvature']:.2f}, "
                   f"{100 * row['inside']:.0f} % inside")  # fmt: skip
    typer.echo(folder.path)


if __name__ == "__main__":
    typer.run(main)
