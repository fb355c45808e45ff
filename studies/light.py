"""What light falls on a known mesh, as spherical harmonics?

    adjsim run light

A correct run ends with the coefficients within 1e-10 of the hidden ones and a certificate that
passed. Pictures are linear in the coefficients, so the loss has one optimum. A single picture shows
half of all normals: they still determine all 27 numbers, some better than others, and the spectrum
in the report says which.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.ball import ball_tets
from render.harmonics import N_HARMONICS
from render.orbit_camera import OrbitCamera
from render.scene import Mesh, Scene, SphericalHarmonics
from render.soft_raster import rasterize
from studies import figures
from studies.instances import Bar, make_job
from studies.looks import LOOK_SIZE, Look, look_rasterizer
from studies.noise import Noise
from studies.parameters import Parameters, block
from studies.picture_fit import PictureFit
from studies.picture_problem import PictureProblem
from studies.registry import Job, RunOptions
from studies.scenery import Scenery, make_rasterizer, photographed
from studies.search.local import make_loss, make_search
from studies.settings import draw
from studies.subjects import cameras_around, find_mesh, require_outside, view_names
from studies.transforms import Identity
from studies.truth import Truth
from studies.wires import Wire, Wires


NAME, SKY = "mesh", "sky"
PATH = "coefficients"
WIRES = Wires((Wire(PATH, f"{SKY}.coefficients"),))
BALL_SHELLS = 12
SIDES = (0.0, 90.0, 180.0, 270.0)  # azimuths from which the white ball is shown [deg]


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    is_clean = not settings["noise"]["level"] and not settings["noise"]["eight_bit"]
    bars = {PATH: Bar(1e-10)} if is_clean else {}
    return make_job(settings, options, partial(make_fit, settings, options), bars)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> PictureFit:
    """Draw an instance, render its pictures, and return the search for its light."""
    require_outside(settings)
    rng = np.random.default_rng([options.seed, instance])
    mesh = find_mesh(settings["mesh"], instance)
    hidden = drawn(settings, "hidden", rng)
    start = drawn(settings, "start", rng)
    noise = Noise.of(settings["noise"])
    color = checks.array("mesh.color", settings["mesh"]["color"], (3,))
    colors = np.broadcast_to(color, mesh.points.shape)
    seen = Mesh(mesh.faces, vertex_colors=colors, smooth_normals=settings["mesh"]["smooth"])
    rasterizer, size = make_rasterizer(settings["image"])
    cameras = cameras_around(settings["camera"])
    scenery = Scenery(
        Scene({NAME: seen}, {SKY: SphericalHarmonics(hidden)}), cameras, rasterizer,
        {NAME: mesh.points}, size, dtype=options.dtype, device=options.device,
    )  # fmt: skip
    truth = photographed(scenery)
    limit = checks.positive("bounds.coefficients", settings["bounds"]["coefficients"])
    free = block((PATH,), Identity(), [start], {PATH: (-limit, limit)})
    problem = PictureProblem(
        scenery,
        Parameters([free], WIRES),
        make_loss(settings["loss"]),
        noise.apply(truth, rng),
    )
    size_of_light = float(np.sqrt(np.square(hidden).mean()))
    return LightFit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="Light, from pictures of a known mesh",
        units={},
        what=f"a mesh of {len(mesh.faces)} faces under spherical harmonics of order 2",
        truth=Truth({PATH: hidden}, truth, noise.apply, scales={PATH: size_of_light}),
        noise_repeats=settings["noise"]["repeats"],
        instance=instance,
        names=view_names(cameras),
    )


@dataclass(frozen=True, eq=False)
class LightFit(PictureFit):
    """A fit of light, shown on a white ball."""

    def draw_looks(self, theta: np.ndarray, history: np.ndarray) -> list[Look]:
        """Draw the ball under the light of start, truth and fit."""
        del history
        assert self.truth is not None
        parameters = self.problem.parameters
        hidden = np.asarray(self.truth.values[PATH])
        start, fitted = (parameters.values(at)[PATH] for at in (parameters.start, theta))
        return [ball_look({"start": start, "hidden": hidden, "fitted": fitted})]


def drawn(settings: dict[str, Any], table: str, rng: np.random.Generator) -> np.ndarray:
    """Return drawn coefficients, (9, 3): the mean light, and all that differs by direction."""
    given = settings[table]
    out = np.empty((N_HARMONICS, 3))
    for k, c in np.ndindex(*out.shape):
        key = "even" if k == 0 else "uneven"
        out[k, c] = draw(rng, f"{table}.{key}", given[key])
    return out


def ball_look(lights: dict[str, np.ndarray]) -> Look:
    """Draw a white ball under each light, (9, 3), from four sides."""
    ball = ball_tets(BALL_SHELLS)
    surface = ball.surface()
    mesh = Mesh(surface.local_faces, smooth_normals=True)
    cameras = [OrbitCamera(3.2, 0.0, side) for side in SIDES]
    rasterizer = look_rasterizer()
    rows = [
        list(
            rasterize(
                Scene({NAME: mesh}, {SKY: SphericalHarmonics(light)}), cameras, rasterizer,
                {NAME: ball.points[surface.nodes]}, LOOK_SIZE,
            )
        )
        for light in lights.values()
    ]  # fmt: skip
    caption = (
        "A white ball under the light of the start, the hidden and the fitted light, seen from "
        f"azimuths of {', '.join(f'{side:.0f}' for side in SIDES)} degrees. A side that no "
        "picture shows is told by the harmonics alone."
    )
    return Look("ball", "The light", caption, figures.grid(rows, list(lights)))
