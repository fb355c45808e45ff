"""How heavy is a rigid body, and what are its contacts with the floor like?

    adjsim run rigid-mass
    adjsim run rigid-contact

A correct run of the first ends with the mass within 1e-7 of the hidden value, one of the second
within 1e-6 with the contact's scalars beside it, both with a certificate that passed. A force
known in newtons acts. Without it, mass and all scalars of the contact scale together and leave
the motion as it is: then one direction of the spectrum in the report is at rounding.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from adjsim import checks
from adjsim.element import Force
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.meshes.shapes import SHAPES, shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import BodyPoint, RigidBodies
from adjsim.rigid.pose import BodyState, BodyTrajectory, vertices
from render.scene import Material, Mesh
from studies.errors import StudyError
from studies.filming import Hulls, MeshFilming, make_filming
from studies.fit import Fit
from studies.instances import Bar, make_job
from studies.motion import Motion
from studies.parameters import Parameters, positive_block
from studies.registry import Job, RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import (
    bounds_of,
    draw,
    draw_each,
    require_chosen,
    require_positive,
    require_vectors,
)
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.truth import Truth
from studies.video_problem import VideoProblem


BODY, FLOOR, PUSH = "body", "floor", "push"
PATHS = {
    "mass": f"{BODY}.mass",
    "stiffness": f"{FLOOR}.stiffness",
    "damping": f"{FLOOR}.damping",
    "friction_stiffness": f"{FLOOR}.friction_stiffness",
    "friction": f"{FLOOR}.friction",
}
UNITS = {
    "body.mass": "kg", "floor.stiffness": "N/m", "floor.damping": "N s/m",
    "floor.friction_stiffness": "N s/m", "floor.friction": "-",
}  # fmt: skip
ALONE = {"body.mass": Bar(1e-7, 9.0e-5)}
JOINTLY = {
    "body.mass": Bar(1e-6, 2.9e-4),
    "floor.stiffness": Bar(1e-4, 2.6e-3),
    "floor.damping": Bar(1e-2, 0.4),
    "floor.friction_stiffness": Bar(1e-4, 1.7e-3),
    "floor.friction": Bar(1e-4, 7.3e-3),
}
COLOR = (0.85, 0.4, 0.25)
AXES = ("x", "y", "z")


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check_settings(settings)
    bars = ALONE if settings["free"] == ["mass"] else JOINTLY
    return make_job(settings, options, partial(make_fit, settings, options), bars)


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    free = settings["free"]
    known = tuple(PATHS) if settings["floor"]["exists"] else ("mass",)
    require_chosen("free", free, known)
    check_body(settings)
    require_positive(settings, "floor", "clearance")
    require_vectors(settings, "floor", "at")
    bounds_of(settings, free)
    for table in ("hidden", "start", "bounds"):
        require_positive(settings, table, *free)


def check_body(settings: dict[str, Any]) -> None:
    """Complain of the tables `body` and `push`, by key."""
    body, push = settings["body"], settings["push"]
    if not body["shapes"]:
        raise StudyError(f"`body.shapes` must name at least one of {', '.join(SHAPES)}.")
    for name in body["shapes"]:
        checks.known_key("shape in `body.shapes`", name, SHAPES)
    require_positive(settings, "body", "radius")
    checks.positive("body.stretch", checks.array("body.stretch", body["stretch"], (2,)))
    check_push(push)
    checks.known_key("place in `push.at`", push["at"], ("centre", "lowest"))


def check_push(push: dict[str, Any]) -> None:
    """Complain of a known force or its time, by key."""
    checks.array("push.force", push["force"], (3,))
    first, last = checks.array("push.seconds", push["seconds"], (2,))
    if not 0.0 <= first < last:
        raise StudyError(f"`push.seconds` must be [first, last] from 0 on, got {[first, last]}.")


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, render its video, and return the search for its values."""
    rng = np.random.default_rng([options.seed, instance])
    name, mesh, motion, hidden, start = draw_thrown(settings, options, instance, rng)
    blocks = [
        positive_block(PATHS[key], start[key], {PATHS[key]: settings["bounds"][key]})
        for key in settings["free"]
    ]
    filming = body_filming(settings, mesh, options.device)
    images = film(filming, motion, {})
    problem = VideoProblem(motion, filming, Parameters(blocks), make_loss(settings["loss"]), images)
    with_floor = settings["floor"]["exists"]
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title=f"A rigid body{' and its contacts' if with_floor else ''}, identified from video",
        units=UNITS,
        what=f"{name}, a rigid body of {len(mesh.points)} vertices",
        truth=Truth({PATHS[key]: hidden[key] for key in settings["free"]}, images),
        instance=instance,
    )


def body_filming(settings: dict[str, Any], mesh: TriangleMesh, device: str) -> MeshFilming:
    """Return the camera on the body."""
    drawing = Mesh(
        mesh.faces,
        # One colour without shade: faces that change their order in depth leave no trace.
        vertex_colors=np.broadcast_to(COLOR, mesh.points.shape),
        material=Material(1.0, 0.0),
    )
    return make_filming(settings, {BODY: (drawing, Hulls(BODY))}, device=device)


class Thrown(NamedTuple):
    """A body as it was drawn: its shape, and its motion at the hidden values."""

    name: str
    mesh: TriangleMesh
    motion: Motion
    hidden: dict[str, float]
    start: dict[str, float]


def draw_thrown(
    settings: dict[str, Any], options: RunOptions, instance: int, rng: np.random.Generator
) -> Thrown:
    """Draw the body of an instance, its pose and velocity, the truth and the start."""
    names = settings["body"]["shapes"]
    name = names[instance % len(names)]
    hidden, start = drawn(settings, "hidden", rng), drawn(settings, "start", rng)
    mesh = stretched(settings, name, rng)
    motion = make_motion(settings, mesh, hidden, rng, options=options)
    return Thrown(name, mesh, motion, hidden, start)


def drawn(settings: dict[str, Any], table: str, rng: np.random.Generator) -> dict[str, float]:
    """Return the values drawn from a table; of `start` and `bounds` only free ones count."""
    names = PATHS if settings["floor"]["exists"] else ("mass",)
    return draw_each(rng, settings, table, names)


def stretched(settings: dict[str, Any], name: str, rng: np.random.Generator) -> TriangleMesh:
    """Return a shape stretched along each axis by a factor of its own."""
    mesh = shape(name, settings["body"]["radius"])
    factors = [draw(rng, "body.stretch", settings["body"]["stretch"]) for _ in AXES]
    return TriangleMesh(mesh.points * factors, mesh.faces)


def make_motion(
    settings: dict[str, Any],
    mesh: TriangleMesh,
    values: dict[str, float],
    rng: np.random.Generator,
    *,
    options: RunOptions,
) -> Motion:
    """Return the body in a random pose, thrown, with the known force and maybe a floor."""
    thrown, push, floor = settings["thrown"], settings["push"], settings["floor"]
    dt, steps = frame_steps(settings["time"])
    pose = BodyState(
        np.zeros((1, 3)),
        rng.standard_normal((1, 4)),
        [*draw_each(rng, settings, "thrown", AXES).values()],
        [draw(rng, "thrown.spin", thrown["spin"]) for _ in AXES],
    )
    bodies = RigidBodies(mesh, mass=values["mass"], points={"centre": BodyPoint()})
    heights = hull_heights(bodies, pose)
    lift = np.array([0.0, floor["clearance"] - heights.min(), 0.0])
    where = np.array(floor["at"]) + lift
    state = State(bodies={BODY: pose.with_values({"position": where[None]})})
    at = ["centre"] if push["at"] == "centre" else [int(np.argmin(heights))]
    first, last = (round(second / dt) for second in push["seconds"])
    forces: dict[str, Force] = {}
    if np.any(push["force"]):
        forces[PUSH] = ExternalForces(at, push["force"], (first, max(last, first + 1)), body=BODY)
    if floor["exists"]:
        scalars = {name: values[name] for name in PATHS if name != "mass"}
        forces[FLOOR] = HalfSpaceContact(**scalars, body=BODY)
    model = Model(forces=forces, gravity=settings["gravity"], bodies={BODY: bodies})
    return Motion(
        model, state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def hull_heights(bodies: RigidBodies, pose: BodyState) -> np.ndarray:
    """Return the heights of the vertices over the centre of mass, (n_vertices,) [m]."""
    return vertices(bodies, BodyTrajectory.unpack(pose.pack()[None]))[0, :, 1]
