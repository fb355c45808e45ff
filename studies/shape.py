"""What shape is seen in these pictures? A sphere becomes the mesh behind them.

    adjsim run shape
    adjsim run shape instances=20

A correct run ends with silhouettes that overlap the hidden ones by 96 % and more, in views it never
saw too, or by 88 % where the shape has thin parts, and a certificate that passed. Every vertex is
free; what keeps the mesh fair are losses of its shape: Laplacian, edge length and consistency of
normals.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.triangle_mesh import TriangleMesh
from render.harmonics import Y0, Y1
from render.orbit_camera import OrbitCamera
from render.scene import DirectionalLight, Material, Mesh, Scene, SphericalHarmonics
from render.shape_losses import EdgeLength, Laplacian, NormalConsistency, ShapeLoss
from render.soft_raster import rasterize
from studies import figures, run_folder
from studies.errors import StudyError
from studies.instances import Bar, make_job
from studies.looks import LOOK_SIZE, Look, look_rasterizer
from studies.optimizers.problem import Method
from studies.outcome import accepted
from studies.parameters import Parameters, block
from studies.picture_fit import PictureFit
from studies.picture_problem import PictureProblem
from studies.registry import Job, RunOptions
from studies.run_folder import RunFolder
from studies.scenery import Scenery, make_rasterizer, photographed
from studies.search.local import Found, make_loss, make_search, read_search
from studies.settings import draw
from studies.shape_measures import (
    POINTS,
    chamfer,
    floor,
    overlap,
    silhouettes,
    surface_points,
)
from studies.subjects import cameras_around, find_mesh, placed, require_outside, view_names
from studies.transforms import Identity
from studies.uncertainty import Uncertainty


NAME = "mesh"
PATH = f"{NAME}.vertices"
EVEN, UNEVEN = 0.55, 0.35  # of the light: the mean shade, and what a direction adds or takes
DISTANCE, APART, UNSEEN = "surface distance", "silhouettes apart", "silhouettes apart, unseen"
MEASURES = {DISTANCE: "radii", APART: "", UNSEEN: ""}
BARS = {DISTANCE: Bar(0.03), APART: Bar(0.04), UNSEEN: Bar(0.05)}
MOST_MEASURED, MOST_PLAYED = 24, 60
CLAY = (0.82, 0.62, 0.45)


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    return make_job(settings, options, partial(make_fit, settings, options), BARS)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> "ShapeFit":
    """Render the pictures of an instance, and return the search for its shape."""
    for mesh in ("mesh", "start"):
        require_outside(settings, mesh)
    rng = np.random.default_rng([options.seed, instance])
    hidden = stretched_and_turned(find_mesh(settings["mesh"], instance), settings["mesh"], rng)
    start = start_mesh(settings["start"], rng)
    rasterizer, size = make_rasterizer(settings["image"])
    cameras = cameras_around(settings["camera"])
    lights = {"sky": SphericalHarmonics(colored_sky())} if settings["image"]["shaded"] else {}
    flat = Material(1.0, 0.0)

    def scenery(mesh: TriangleMesh) -> Scenery:
        scene = Scene({NAME: Mesh(mesh.faces, material=flat)}, lights)
        return Scenery(
            scene, cameras, rasterizer, {NAME: mesh.points}, size,
            dtype=options.dtype, device=options.device,
        )  # fmt: skip

    if settings["optimizer"]["method"] == Method.GAUSS_NEWTON:
        raise StudyError(
            "`optimizer.method` must not be gauss-newton here: the losses of shape are no sums of "
            "squares, and there are thousands of columns. Take l-bfgs-b."
        )
    search = make_search(settings["optimizer"], without=[Method.GAUSS_NEWTON])
    penalties = make_penalties(settings["penalty"], start)
    problem = PictureProblem(
        scenery(start),
        Parameters([block((PATH,), Identity(), [start.points])]),
        make_loss(settings["loss"]),
        photographed(scenery(hidden)),
        {PATH: penalties} if penalties else {},
    )
    return ShapeFit(
        problem,
        search,
        options,
        title="A shape, from pictures",
        units=MEASURES,
        what=f"a sphere of {len(start.points)} vertices and {len(start.faces)} faces, to become a "
        f"mesh of {len(hidden.faces)} faces",
        instance=instance,
        names=view_names(cameras),
        felt=NAME,
        hidden=hidden,
        unseen=between(settings["camera"]),
    )


def stretched_and_turned(
    mesh: TriangleMesh, table: dict[str, Any], rng: np.random.Generator
) -> TriangleMesh:
    """Return a mesh stretched along each axis, turned about any, and as far-reaching as before."""
    between = checks.positive("mesh.stretch", checks.array("mesh.stretch", table["stretch"], (2,)))
    factors = [draw(rng, "mesh.stretch", between) for _ in range(3)]
    axis = rng.standard_normal(3)
    angle = np.radians(draw(rng, "mesh.turn", table["turn"]))
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
    return TriangleMesh(placed(turn.apply(mesh.points * factors), table["radius"]), mesh.faces)


def start_mesh(table: dict[str, Any], rng: np.random.Generator) -> TriangleMesh:
    """Return the sphere that the search starts from, its vertices a little out of place."""
    for key in ("shells", "radius"):
        checks.positive(f"start.{key}", table[key])
    roughness = checks.non_negative("start.roughness", table["roughness"])
    ball = ball_tets(table["shells"], table["radius"])
    surface = ball.surface()
    points = ball.points[surface.nodes]
    shift = roughness * table["radius"] * rng.standard_normal(points.shape)
    return TriangleMesh(points + shift, surface.local_faces)


def colored_sky() -> np.ndarray:
    """Return the light that gives a shade of EVEN + UNEVEN (n_x, n_y, n_z), (9, 3)."""
    out = np.zeros((9, 3))
    out[0] = EVEN / Y0
    out[3, 0] = out[1, 1] = out[2, 2] = UNEVEN / Y1
    return out


def between(table: dict[str, Any]) -> tuple[OrbitCamera, ...]:
    """Return cameras half-way between those of the pictures, their elevations in turn reversed."""
    half = 180.0 / table["views"]
    turned = {"azimuth": table["azimuth"] + half, "elevations": table["elevations"][::-1]}
    return cameras_around({**table, **turned})


def make_penalties(
    table: dict[str, Any], start: TriangleMesh
) -> tuple[tuple[float, ShapeLoss], ...]:
    """Return the losses of shape with their weights; a weight of 0 leaves one out."""
    ends = start.points[start.edges]
    length = float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean())
    every = {
        "laplacian": Laplacian(start.faces),
        "edge_length": EdgeLength(start.faces, length),
        "normals": NormalConsistency(start.faces),
    }
    weights = {key: checks.non_negative(f"penalty.{key}", table[key]) for key in every}
    return tuple((weights[key], loss) for key, loss in every.items() if weights[key])


@dataclass(frozen=True, eq=False)
class ShapeFit(PictureFit):
    """A fit of a mesh that is held against the one behind the pictures.

    Attributes
    ----------
    hidden : TriangleMesh
    unseen : tuple of camera
        From where the mesh is looked at only to measure.
    """

    errors_are = ""

    hidden: TriangleMesh = field(kw_only=True)
    unseen: tuple[OrbitCamera, ...] = field(kw_only=True)

    @property
    def radius(self) -> float:
        """Distance of the farthest point of the hidden mesh from the origin [m]."""
        return float(np.linalg.norm(self.hidden.points, axis=1).max())

    def mesh_at(self, theta: np.ndarray) -> TriangleMesh:
        """Return the mesh at theta."""
        scenery = self.problem.scenery_at(theta)
        return TriangleMesh(scenery.vertices[NAME], scenery.scene.objects[NAME].faces)

    def measured(self, theta: np.ndarray) -> dict[str, float]:
        """Return how far a shape is from the hidden one: see `studies/shape_measures.py`."""
        mesh, scenery = self.mesh_at(theta), self.problem.scenery
        out = {DISTANCE: chamfer(surface_points(mesh), surface_points(self.hidden)) / self.radius}
        for name, cameras in ((APART, scenery.cameras), (UNSEEN, self.unseen)):
            both = (silhouettes(one, cameras, scenery.size) for one in (mesh, self.hidden))
            out[name] = 1.0 - overlap(*both)
        return out

    def errors(self, theta: np.ndarray) -> dict[str, Any]:
        """Return the measures, for the table of instances."""
        return {name: {"mean": value} for name, value in self.measured(theta).items()}

    def rows(self, theta: np.ndarray, spread: Uncertainty) -> list[dict[str, Any]]:
        """Return the measures in place of hundreds of vertices."""
        del spread
        start = self.measured(self.problem.parameters.start)
        return [
            {
                "name": name,
                "index": None,
                "count": 1,
                "unit": MEASURES[name],
                "start": start[name],
                "estimate": value,
                "interval": None,
                "pixel_interval": None,
            }
            for name, value in self.measured(theta).items()
        ]

    def write_seen(self, folder: RunFolder, found: Found) -> None:
        """Write pictures and looks, and the mesh on its way, to be played."""
        history = accepted(read_search(folder, found.logs[found.start]))
        thetas = np.array([one.theta for one in history])
        super().write_seen(folder, found)
        played = evenly(len(thetas), MOST_PLAYED)
        folder.write_npz(
            run_folder.TRAJECTORY,
            objects=np.array([NAME]),
            steps=played,
            times=np.array([history[k].spent for k in played], float),
            **{
                f"faces.{NAME}": self.problem.scenery.scene.objects[NAME].faces,
                f"vertices.{NAME}": np.stack([self.mesh_at(thetas[k]).points for k in played]),
            },
        )

    def draw_looks(self, theta: np.ndarray, history: np.ndarray) -> list[Look]:
        """Draw the shapes in 3-D, and the measures on the way."""
        meshes = {
            "start": self.mesh_at(self.problem.parameters.start),
            "fitted": self.mesh_at(theta),
            "hidden": self.hidden,
        }
        chosen = evenly(len(history), MOST_MEASURED)
        measured = [self.measured(history[k]) for k in chosen]
        curves = {name: np.array([one[name] for one in measured]) for name in MEASURES}
        return [
            Look(
                "shapes",
                "The shapes",
                "The mesh at the start, fitted, and the hidden one, from sides that no picture "
                "shows.",
                figures.grid(
                    [in_clay(mesh, self.unseen) for mesh in meshes.values()], list(meshes)
                ),
            ),
            Look(
                "measures",
                "How far the shapes are apart",
                f"Surface distance: mean distance of {POINTS} points on each surface to the other, "
                "over the radius; points drawn twice on the hidden surface are "
                f"{floor(self.hidden) / self.radius:.2g} apart. Silhouettes apart: one less their "
                "intersection over union, in the pictures and in views half-way between them.",
                figures.curves(chosen, curves, "evaluations"),
            ),
        ]


def evenly(count: int, most: int) -> np.ndarray:
    """Return at most so many of the numbers 0 to count - 1, the first and the last among them."""
    return np.unique(np.rint(np.linspace(0, count - 1, min(count, most))).astype(int))


def in_clay(mesh: TriangleMesh, cameras: tuple[OrbitCamera, ...]) -> list[np.ndarray]:
    """Return pictures of a mesh with nothing but shade, from four of the cameras."""
    seen = Mesh(mesh.faces, np.broadcast_to(CLAY, mesh.faces.shape), material=Material(0.35, 0.65))
    lights = {
        "key": DirectionalLight((0.6, 1.0, 0.8)),
        "fill": DirectionalLight((-0.8, 0.1, -0.6), (0.35, 0.4, 0.5)),
    }
    rasterizer = look_rasterizer()
    four = [cameras[k] for k in evenly(len(cameras), 5)[:4]]
    return list(
        rasterize(Scene({NAME: seen}, lights), four, rasterizer, {NAME: mesh.points}, LOOK_SIZE)
    )
