"""Rigid bodies thrown onto a floor and hit by a known impulse, like tables 1 and 2 of gradSim.

Scene k has shape k in turn. Its density, its contact, how it is stretched, where it begins and
how it moves are drawn by the seed and k. With the contact's scalars the mass is known up to a
common factor from the motion alone; the impulse, in newtons and the same in all scenes, sets it.

Source of the ranges: gradSim (ICLR 2021) app. G.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim.rigid.mass_properties import from_six
from adjsim.rigid.pose import vertices
from render.scene import Mesh
from studies.datasets import thrown
from studies.datasets.scene import Field, Scene
from studies.datasets.thrown import CONTACT, model_of
from studies.filming import Hulls, make_filming
from studies.motion import Motion
from studies.registry import RunOptions
from studies.rigid import BODY, FLOOR, PUSH, check_body, make_motion, stretched
from studies.settings import draw_each


DRAWN = ("density", *CONTACT)
FIELDS: dict[str, Field] = {
    **thrown.FIELDS,
    "parameters/density": Field("kg/m3", "density, uniform"),
    "parameters/mass": Field("kg", "mass: density times the volume of the mesh"),
    "push/force": Field("N", "known force on a vertex, in world axes"),
    "push/vertex": Field("-", "the vertex it acts on, -1 for the centre of mass"),
    "initial/angular_velocity": Field("rad/s", "at t = 0, in body axes"),
    "states/rotation": Field("-", "unit quaternion (x, y, z, w) from body to world axes"),
    "states/angular_velocity": Field("rad/s", "in body axes"),
    "mesh/vertices": Field("m", "vertices about the centre of mass, in body axes"),
    "mesh/inertia": Field("kg m2", "moments xx, yy, zz and products xy, xz, yz, in body axes"),
}


def fields(settings: dict[str, Any]) -> dict[str, Field]:
    """Return what is kept of a scene, by name."""
    del settings
    return FIELDS


seen = thrown.seen


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    check_body(settings)
    thrown.check_thrown(settings, DRAWN)


def draw_scene(settings: dict[str, Any], options: RunOptions, number: int) -> Scene:
    """Return scene `number`: a body in a random pose, thrown, hit and filmed."""
    rng = np.random.default_rng([options.seed, number])
    names = settings["body"]["shapes"]
    name = names[number % len(names)]
    mesh = stretched(settings, name, rng)
    drawn = draw_each(rng, settings, "drawn", DRAWN)
    place = draw_each(rng, settings, "place", thrown.PLACE)
    color = thrown.draw_color(rng, settings)
    values = {**drawn, "mass": drawn["density"] * mesh.volume}
    at = [place["x"], 0.0, place["z"]]
    floor = {"exists": True, "at": at, "clearance": place["clearance"]}

    def motion(steps: int) -> Motion:
        pose = np.random.default_rng([options.seed, number, 1])  # the same with any step
        time = thrown.with_steps(settings["time"], steps)
        given = {**settings, "floor": floor, "time": time}
        return make_motion(given, mesh, values, pose, options=options)

    first = motion(1)
    drawing = Mesh(mesh.faces, vertex_colors=np.broadcast_to(color, mesh.points.shape))
    return Scene(
        motion,
        make_filming(settings, {BODY: (drawing, Hulls(BODY))}, device=options.device),
        {
            "shape": np.array(name),
            **{f"parameters/{key}": np.array(value) for key, value in values.items()},
            "parameters/color": np.array(color),
            **push_values(settings, first),
            **initial_values(first),
        },
        frame_states,
        partial(_gain, settings["push"]["seconds"][1]),
    )


def push_values(settings: dict[str, Any], motion: Motion) -> dict[str, np.ndarray]:
    """Return what is kept of the known force."""
    push = settings["push"]
    force = model_of(motion).forces.get(PUSH)
    loaded: Any = [-1] if force is None else force.load_nodes  # pyright: ignore[reportAttributeAccessIssue]
    vertex = -1 if isinstance(loaded[0], str) else int(loaded[0])
    return {
        "push/force": np.array(push["force"]),
        "push/seconds": np.array(push["seconds"]),
        "push/vertex": np.array(vertex),
    }


def initial_values(motion: Motion) -> dict[str, np.ndarray]:
    """Return where the body begins, and its mesh."""
    bodies, state = model_of(motion).bodies[BODY], motion.state.bodies[BODY]
    names = ("position", "rotation", "velocity", "angular_velocity")
    return {
        **{f"initial/{name}": getattr(state, name)[0] for name in names},
        "mesh/vertices": bodies.arms[bodies.hull],
        "mesh/faces": bodies.faces,
        "mesh/inertia": bodies.inertias[0],
    }


def frame_states(motion: Motion, run: Any) -> dict[str, np.ndarray]:
    """Return the poses and speeds at the frames."""
    del motion
    return {f"states/{name}": value[:, 0] for name, value in vars(run.bodies[BODY]).items()}


def _gain(pushed: float, motion: Motion, run: Any) -> float:
    """Return the largest relative rise of the energy from frame to frame after the push."""
    return thrown.energy_gain(motion, _energy(motion, run), pushed)


def _energy(motion: Motion, run: Any) -> np.ndarray:
    r"""Return the energy at the frames, (n_frames,) [J].

        E = m |v|^2/2 + w.I w/2 - m g.x + k_e/2 sum c^2

    of the motion, of gravity, and stored in the contact at depths c.
    """
    model, poses = model_of(motion), run.bodies[BODY]
    bodies, floor = model.bodies[BODY], model.forces[FLOOR]
    x, v, w = poses.position[:, 0], poses.velocity[:, 0], poses.angular_velocity[:, 0]
    depth = np.maximum(0.0, -vertices(bodies, poses)[..., 1])
    mass, inertia = bodies.masses[0], from_six(bodies.inertias)[0]
    moving = 0.5 * mass * np.square(v).sum(axis=1) + 0.5 * np.einsum("fi,ij,fj->f", w, inertia, w)
    stored = 0.5 * float(floor.parameters()["stiffness"]) * np.square(depth).sum(axis=1)
    return moving - mass * (x @ np.asarray(model.gravity)) + stored
