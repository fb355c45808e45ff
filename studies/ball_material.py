"""How is the mass of a soft ball spread over its particles?

    adjsim run ball-material

A correct run ends with a mean relative error of the masses below 1e-6 and a certificate that
passed. The ball falls, hits the floor and rolls; free flight shows no mass at all, the way it
is squeezed shows all of them, though some far better than others.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.errors import StudyError
from studies.filming import MeshFilming, Skin, make_filming
from studies.fit import Fit
from studies.instances import Bar, make_job
from studies.motion import Motion
from studies.parameters import Block, Parameters, lame_block, positive_block
from studies.registry import Job, RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import (
    bounds_of,
    draw,
    draw_each,
    ends,
    require_ball_above_floor,
    require_chosen,
    require_not_negative,
    require_positive,
)
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.truth import Truth
from studies.video_problem import VideoProblem


NAME = "ball"
DRAWN = ("mass", "mu", "lam")
FREE = ("mass", "material")
UNITS = {"mass": "kg", "ball.mu": "Pa", "ball.lam": "Pa"}
BARS = {
    "mass": Bar(1e-2, 4.8e-2),
    "ball.mu": Bar(1e-2, 5.4e-3),
    "ball.lam": Bar(1e-2, 5.6e-3),
}
COLOR = (0.85, 0.4, 0.25)


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
    require_positive(settings, "ball", "shells", "radius", "density")
    require_not_negative(settings, "ball", "viscosity")
    require_not_negative(
        settings, "floor", "stiffness", "damping", "friction_stiffness", "friction"
    )
    require_ball_above_floor(settings)
    require_chosen("free", settings["free"], FREE)
    for table in ("hidden", "start"):
        given = ends(settings, table, DRAWN)
        require_positive(settings, table, *DRAWN)
        if not given["lam"][0] > given["mu"][1] / 8.0:
            raise StudyError(
                f"`{table}.lam` must be above {table}.mu/8 = {given['mu'][1] / 8.0:g} for a "
                f"stable rest shape, got {given['lam'][0]:g}."
            )
    bounds_of(settings, DRAWN)


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, render its video, and return the search for its values."""
    rng = np.random.default_rng([options.seed, instance])
    ball = settings["ball"]
    mesh = ball_tets(ball["shells"], ball["radius"], ball["position"])
    drawn = {table: draw_each(rng, settings, table, ("mu", "lam")) for table in ("hidden", "start")}
    speed = draw(rng, "hidden.speed", settings["hidden"]["speed"])
    motion = make_motion(settings, mesh, drawn["hidden"], speed=speed, options=options)
    even = motion.system.parameters()["mass"]
    parts = [draw(rng, "hidden.mass", settings["hidden"]["mass"]) for _ in even]
    hidden = {
        "mass": even * parts,
        **{f"{NAME}.{key}": value for key, value in drawn["hidden"].items()},
    }
    start = even * draw(rng, "start.mass", settings["start"]["mass"])
    motion = motion.with_values({"mass": hidden["mass"]})  # known, unless it is free
    parameters = Parameters(make_blocks(settings, even, start, drawn["start"]))
    filming = ball_filming(settings, mesh, options.device)
    images = film(filming, motion, {})
    problem = VideoProblem(motion, filming, parameters, make_loss(settings["loss"]), images)
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="The masses of a soft ball, identified from video",
        units=UNITS,
        what=f"{mesh.n_tets} tetrahedra, {mesh.n_points} nodes",
        truth=Truth({path: hidden[path] for path in parameters.paths}, images),
        instance=instance,
    )


def make_blocks(
    settings: dict[str, Any], even: np.ndarray, start: np.ndarray, material: dict[str, float]
) -> list[Block]:
    """Return the blocks of what is free: every mass by log, and mu and lam as a pair."""
    bounds, blocks = settings["bounds"], []
    if "mass" in settings["free"]:
        low, high = bounds["mass"]
        blocks.append(positive_block("mass", start, {"mass": (low * even, high * even)}))
    if "material" in settings["free"]:
        ends = {f"{NAME}.{key}": bounds[key] for key in ("mu", "lam")}
        blocks.append(lame_block(NAME, material["mu"], material["lam"], ends))
    return blocks


def make_motion(
    settings: dict[str, Any],
    mesh: TetMesh,
    material: dict[str, float],
    *,
    speed: float,
    options: RunOptions,
) -> Motion:
    """Return the ball of even mass above the floor."""
    ball = settings["ball"]
    viscosity = ball["viscosity"] or None
    solid = NeoHookeanTets(mesh.tets, mesh.points, **material, viscosity=viscosity)
    model = Model(
        solid.lumped_mass(ball["density"]),
        {NAME: solid, "floor": HalfSpaceContact(**settings["floor"])},
    )
    dt, steps = frame_steps(settings["time"])
    state = State(mesh.points, np.broadcast_to([speed, 0.0, 0.0], mesh.points.shape))
    return Motion(
        model, state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def ball_filming(settings: dict[str, Any], mesh: TetMesh, device: str) -> MeshFilming:
    """Return the camera on the ball."""
    surface = mesh.surface()
    # One colour without shade: faces that change their order in depth leave no trace.
    colors = np.broadcast_to(COLOR, (len(surface.nodes), 3))
    drawn = Mesh(surface.local_faces, vertex_colors=colors, material=Material(1.0, 0.0))
    skin = Skin.of_nodes(surface.nodes, mesh.n_points)
    return make_filming(settings, {NAME: (drawn, skin)}, device=device)
