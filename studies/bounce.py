"""How fast was the ball thrown, and how strong is gravity?

    adjsim run bounce

A correct run ends with both within 1e-6 of the hidden values and a certificate that passed.
The ball is one node with a radius, drawn as a ball; it bounces on a penalty floor.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim.forces.half_space import HalfSpaceContact
from adjsim.meshes.ball import ball_tets
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.filming import MeshFilming, Skin, make_filming
from studies.fit import Fit
from studies.instances import Bar, make_job
from studies.motion import Motion
from studies.parameters import Parameters, block, positive_block
from studies.registry import Job, RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import (
    bounds_of,
    draw_each,
    require_ball_above_floor,
    require_not_negative,
    require_positive,
)
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.touches import nearest_touch, told
from studies.transforms import Identity
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Outer, Wire, Wires


NAMES = ("speed", "gravity")
UNITS = {"speed": "m/s", "gravity": "m/s2"}
BARS = {name: Bar(1e-6) for name in NAMES}
# Gravity has a path of the rollout's own; the study speaks of its strength.
WIRES = Wires(
    (
        Wire("speed", "state.v", Outer(np.array([[1.0, 0.0, 0.0]]))),
        Wire("gravity", "gravity", Outer(np.array([0.0, -1.0, 0.0]))),
    )
)
SHELLS = 2  # of the drawn ball: 42 vertices
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
    require_positive(settings, "ball", "radius", "mass")
    require_ball_above_floor(settings)
    require_positive(settings, "floor", "stiffness")
    require_not_negative(settings, "floor", "damping")
    for table in ("hidden", "start"):
        require_positive(settings, table, "gravity")


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, render its video, and return the search for its values."""
    rng = np.random.default_rng([options.seed, instance])
    hidden, start = (draw_each(rng, settings, table, NAMES) for table in ("hidden", "start"))
    bounds = bounds_of(settings, NAMES)
    parameters = Parameters(
        [
            block(("speed",), Identity(), [start["speed"]], bounds),
            positive_block("gravity", start["gravity"], bounds),
        ],
        WIRES,
    )
    motion, filming = make_motion(settings, options), ball_filming(settings, options.device)
    truth = film(filming, motion, WIRES.values(hidden))
    problem = VideoProblem(motion, filming, parameters, make_loss(settings["loss"]), truth)
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="A bouncing ball, identified from video",
        units=UNITS,
        what="a ball of one node, with a radius",
        truth=Truth(hidden, truth),
        findings=lambda theta: told(nearest_touch(problem, theta)),
        instance=instance,
    )


def make_motion(settings: dict[str, Any], options: RunOptions) -> Motion:
    """Return the ball above the floor; its velocity and gravity come by wire."""
    ball, floor = settings["ball"], settings["floor"]
    contact = HalfSpaceContact(
        stiffness=floor["stiffness"], damping=floor["damping"], radius=ball["radius"]
    )
    model = Model([ball["mass"]], {"floor": contact})
    dt, steps = frame_steps(settings["time"])
    state = State([ball["position"]])
    return Motion(
        model, state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def ball_filming(settings: dict[str, Any], device: str) -> MeshFilming:
    """Return the camera on the ball."""
    ball = ball_tets(SHELLS, settings["ball"]["radius"])
    surface = ball.surface()
    # One colour without shade: faces that change their order in depth leave no trace.
    colors = np.broadcast_to(COLOR, (len(surface.nodes), 3))
    drawn = Mesh(surface.local_faces, vertex_colors=colors, material=Material(1.0, 0.0))
    at_node = np.zeros(len(surface.nodes), int)
    carried = Skin.of_nodes(at_node, 1, offset=ball.points[surface.nodes])
    return make_filming(settings, {"ball": (drawn, carried)}, device=device)
