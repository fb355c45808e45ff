"""How fast was each point of a curtain thrown?

    adjsim run cloth-velocity

A correct run ends with errors of the velocities that are below 1e-3 of the mean speed, and a
certificate that passed.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.element import Force
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.filming import MeshFilming, Skin, make_filming
from studies.fit import Fit
from studies.instances import Bar, make_job
from studies.motion import Motion
from studies.parameters import Parameters, block
from studies.registry import Job, RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import bounds_of, draw_each, require_not_negative, require_positive
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.transforms import Identity
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Rows, Wire, Wires


NAME, VELOCITY = "cloth", "velocity"
AXES = ("x", "y", "z")
BARS = {VELOCITY: Bar(1e-3, 2.6e-2)}
WAVES = np.array([[5.0, 1.0, 0.3], [-1.5, 5.5, 1.1], [3.5, -4.0, 2.0]])  # of red, green, blue
BRIGHT, CONTRAST = 0.55, 0.35


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check_settings(settings)
    return make_job(settings, options, partial(make_fit, settings, options), BARS)


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    checks.array("cloth.size", settings["cloth"]["size"], (2,))
    checks.integers("cloth.cells", settings["cloth"]["cells"], (2,))
    require_positive(settings, "cloth", "size", "cells", "mu", "lam", "density")
    require_not_negative(settings, "cloth", "viscosity", "bending")
    require_not_negative(settings, "air", "lift", "drag")
    bounds_of(settings, (VELOCITY,))


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, render its video, and return the search for its velocities."""
    rng = np.random.default_rng([options.seed, instance])
    mesh, held = curtain(settings)
    free = np.flatnonzero(~held)
    truth = np.array([[*draw_each(rng, settings, "hidden", AXES).values()] for _ in free])
    one = [*draw_each(rng, settings, "start", AXES).values()]
    wires = Wires((Wire(VELOCITY, "state.v", Rows(free, len(held))),))
    begin = np.broadcast_to(one, truth.shape)
    bounds = {VELOCITY: settings["bounds"][VELOCITY]}
    parameters = Parameters([block((VELOCITY,), Identity(), [begin], bounds)], wires)
    motion = make_motion(settings, mesh, held, options)
    filming = cloth_filming(settings, mesh, options.device)
    images = film(filming, motion, wires.values({VELOCITY: truth}))
    problem = VideoProblem(motion, filming, parameters, make_loss(settings["loss"]), images)
    speed = float(np.linalg.norm(truth, axis=1).mean())
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="How a curtain was thrown, identified from video",
        units={VELOCITY: "m/s"},
        what=f"{len(mesh.faces)} triangles, {len(held)} nodes",
        truth=Truth({VELOCITY: truth}, images, scales={VELOCITY: speed}),
        findings=lambda _: [f"Errors are relative to the mean speed, {speed:.3g} m/s."],
        instance=instance,
    )


def curtain(settings: dict[str, Any]) -> tuple[TriangleMesh, np.ndarray]:
    """Return the curtain about the origin, and which of its points are held."""
    cloth = settings["cloth"]
    size = np.array(cloth["size"])
    flat = sheet(cloth["cells"], cloth["size"], (*(-size / 2.0), 0.0))
    x, y, z = flat.points.T
    cos, sin = np.cos(cloth["tilt"]), np.sin(cloth["tilt"])
    points = np.stack([x, y * cos - z * sin, y * sin + z * cos], axis=1)
    is_top = y > size[1] / 2.0 - 1e-9
    held = is_top & (np.abs(x) > size[0] / 2.0 - 1e-9)
    return TriangleMesh(points, flat.faces), held


def make_motion(
    settings: dict[str, Any], mesh: TriangleMesh, held: np.ndarray, options: RunOptions
) -> Motion:
    """Return the curtain at rest; its velocities come by wire."""
    cloth, air = settings["cloth"], settings["air"]
    viscosity = cloth["viscosity"] or None
    skin = NeoHookeanTriangles(
        mesh.faces, mesh.points, cloth["mu"], cloth["lam"], viscosity=viscosity
    )
    forces: dict[str, Force] = {NAME: skin}
    if cloth["bending"]:
        forces["hinges"] = Hinges(mesh_hinges(mesh.faces), mesh.points, cloth["bending"])
    forces["air"] = LiftDrag(mesh.faces, air["lift"], air["drag"])
    model = Model(skin.lumped_mass(cloth["density"]), forces, pinned=held)
    dt, steps = frame_steps(settings["time"])
    return Motion(
        model, State(mesh.points), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def cloth_filming(settings: dict[str, Any], mesh: TriangleMesh, device: str) -> MeshFilming:
    """Return the camera on the curtain, whose print follows the cloth."""
    place = mesh.points[:, :2] - mesh.points[:, :2].mean(axis=0)
    waves = np.sin(place @ WAVES[:, :2].T + WAVES[:, 2])
    colors = BRIGHT + CONTRAST * settings["image"]["print"] * waves
    drawn = Mesh(mesh.faces, vertex_colors=colors, material=Material(1.0, 0.0))
    skin = Skin.of_nodes(np.arange(len(mesh.points)), len(mesh.points))
    return make_filming(settings, {NAME: (drawn, skin)}, device=device)
