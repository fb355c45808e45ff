"""Where did the camera stand that took this picture of a known mesh, and how wide was its view?

    adjsim run camera

A correct run ends with rotation, translation and field of view within 1e-8 of the hidden ones
and a certificate that passed. The pose is a rotation vector and a translation: the mesh lies at
the origin, so the one turns it in place and the other moves it in the picture. Distance and field
of view nearly do the same; only perspective tells them apart, as the spectrum in the report shows.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from render.orbit_camera import OrbitCamera
from render.posed_camera import PosedCamera
from render.scene import Material, Mesh, Scene
from studies.instances import Bar, make_job
from studies.noise import Noise
from studies.parameters import Block, Parameters, block
from studies.picture_fit import PictureFit
from studies.picture_problem import PictureProblem
from studies.registry import Job, RunOptions
from studies.scenery import Scenery, make_rasterizer, photographed
from studies.search.local import make_loss, make_search
from studies.settings import bounds_of, draw, draw_each, require_chosen, require_positive, sun
from studies.subjects import find_mesh, place_colors, require_outside
from studies.transforms import Identity, Log
from studies.truth import Truth
from studies.wires import Wire, Wires


NAME = "mesh"
FREE = ("rotation", "translation", "fov_y")
DRAWN = ("distance", "elevation", "azimuth", "fov_y")
UNITS = {"rotation": "rad", "translation": "m", "fov_y": "deg"}
WIRES = Wires(tuple(Wire(name, f"camera.0.{name}") for name in FREE))
BAR = 1e-8


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    free, noise = settings["free"], settings["noise"]
    require_chosen("free", free, FREE)
    require_positive(settings, "hidden", "distance")
    require_outside(settings, camera="hidden")
    is_clean = not noise["level"] and not noise["eight_bit"]
    bars = {name: Bar(BAR) for name in free} if is_clean else {}
    return make_job(settings, options, partial(make_fit, settings, options), bars)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> PictureFit:
    """Draw an instance, render its picture, and return the search for its camera."""
    rng = np.random.default_rng([options.seed, instance])
    mesh = find_mesh(settings["mesh"], instance)
    noise = Noise.of(settings["noise"])
    camera = hidden_camera(settings, rng)
    start = start_camera(settings, camera, rng)
    material = Material(settings["mesh"]["ambient"], settings["mesh"]["diffuse"])
    seen = Mesh(mesh.faces, vertex_colors=place_colors(mesh.points), material=material)
    light = sun(settings["image"])
    rasterizer, size = make_rasterizer(settings["image"])
    scenery = Scenery(
        Scene({NAME: seen}, {"sun": light}), (start,), rasterizer, {NAME: mesh.points}, size,
        dtype=options.dtype, device=options.device,
    )  # fmt: skip
    hidden = about(camera, start)
    known = [name for name in FREE if name not in settings["free"]]
    scenery = scenery.with_values({f"camera.0.{name}": hidden[name] for name in known})
    truth = photographed(replace(scenery, cameras=(camera,)))
    free = [free_block(settings, name, start) for name in settings["free"]]
    problem = PictureProblem(
        scenery, Parameters(free, WIRES), make_loss(settings["loss"]), noise.apply(truth, rng)
    )
    distance = float(np.linalg.norm(camera.translation))
    values = {name: hidden[name] for name in settings["free"]}
    scales = {"rotation": 1.0, "translation": distance}  # of which components may be 0
    return PictureFit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="A camera, from a picture of a known mesh",
        units=UNITS,
        what=f"a mesh of {len(mesh.faces)} faces, {distance:.3g} m away",
        truth=Truth(values, truth, noise.apply, scales=scales),
        noise_repeats=settings["noise"]["repeats"],
        instance=instance,
        names=("",),
        felt=NAME,
    )


def hidden_camera(settings: dict[str, Any], rng: np.random.Generator) -> PosedCamera:
    """Return the camera that takes the picture: on an orbit, aimed a little beside the mesh."""
    numbers: dict[str, Any] = draw_each(rng, settings, "hidden", DRAWN)
    target = [draw(rng, "hidden.target", settings["hidden"]["target"]) for _ in range(3)]
    return posed(OrbitCamera(**numbers, target=target))


def posed(camera: OrbitCamera) -> PosedCamera:
    """Return the same camera by its pose."""
    return PosedCamera.from_extrinsics(camera.extrinsics(), fov_y=camera.fov_y)


def start_camera(
    settings: dict[str, Any], hidden: PosedCamera, rng: np.random.Generator
) -> PosedCamera:
    """Return the camera of the start: turned, shifted and zoomed away from the hidden one."""
    table = settings["start"]
    axis, way = (rng.standard_normal(3) for _ in range(2))
    angle = np.radians(draw(rng, "start.turn", table["turn"]))
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    shift = draw(rng, "start.shift", table["shift"]) * np.linalg.norm(hidden.translation)
    factor = checks.positive("start.zoom", draw(rng, "start.zoom", table["zoom"]))
    return PosedCamera(
        np.zeros(3),
        hidden.translation + shift * way / np.linalg.norm(way),
        turn @ hidden.nominal,
        fov_y=hidden.fov_y * factor,
    )


def about(camera: PosedCamera, start: PosedCamera) -> dict[str, Any]:
    """Return the numbers of a camera as the search has them: turned from that of the start."""
    turned = Rotation.from_matrix(camera.nominal @ start.nominal.T).as_rotvec()
    return {"rotation": turned, "translation": camera.translation, "fov_y": camera.fov_y}


def free_block(settings: dict[str, Any], name: str, start: PosedCamera) -> Block:
    """Return one free quantity of the camera, with its bounds."""
    bounds, at = settings["bounds"], getattr(start, name)
    if name == "fov_y":
        ends = bounds_of(settings, (name,))
        checks.positive("bounds.fov_y", ends[name])
        return block((name,), Log(), [at], ends)
    limit = checks.positive(f"bounds.{name}", bounds[name])
    if name == "translation":
        limit *= float(np.linalg.norm(at))
    return block((name,), Identity(), [at], {name: (at - limit, at + limit)})
