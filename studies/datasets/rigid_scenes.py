"""Rigid bodies thrown onto a floor and hit by a known impulse, like tables 1 and 2 of gradSim.

Scene k has shape k in turn. Its density, its contact, how it is stretched, where it begins and
how it moves are drawn by the seed and k. With the contact's scalars the mass is known up to a
common factor from the motion alone; the impulse, in newtons and the same in all scenes, sets it.

Source of the ranges: gradSim (ICLR 2021) app. G.
"""

from functools import partial
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.model import Model
from adjsim.rigid.mass_properties import from_six
from adjsim.rigid.pose import vertices
from render.scene import Mesh
from studies.datasets.scene import Field, Scene
from studies.filming import Hulls, make_filming
from studies.motion import Motion
from studies.registry import RunOptions
from studies.rigid import BODY, FLOOR, PATHS, PUSH, check_body, make_motion, stretched
from studies.settings import draw, draw_each, ends, require_positive


DRAWN = ("density", *(name for name in PATHS if name != "mass"))
PLACE = ("x", "z", "clearance")
FIELDS: dict[str, Field] = {
    "shape": Field("-", "name of the shape"),
    "parameters/density": Field("kg/m3", "density, uniform"),
    "parameters/mass": Field("kg", "mass: density times the volume of the mesh"),
    "parameters/stiffness": Field("N/m", "k_e of the contact of a vertex with the floor"),
    "parameters/damping": Field("N s/m", "k_d of it, while the vertex goes down"),
    "parameters/friction_stiffness": Field("N s/m", "k_f of it, friction per speed in stick"),
    "parameters/friction": Field("-", "mu, the cone of friction"),
    "parameters/color": Field("-", "RGB of the body"),
    "push/force": Field("N", "known force on a vertex, in world axes"),
    "push/seconds": Field("s", "from when to when it acts"),
    "push/vertex": Field("-", "the vertex it acts on, -1 for the centre of mass"),
    "initial/position": Field("m", "centre of mass at t = 0; y is up, the floor y = 0"),
    "initial/rotation": Field("-", "unit quaternion (x, y, z, w) from body to world axes at t = 0"),
    "initial/velocity": Field("m/s", "of the centre of mass at t = 0"),
    "initial/angular_velocity": Field("rad/s", "at t = 0, in body axes"),
    "states/position": Field("m", "centre of mass at every frame"),
    "states/rotation": Field("-", "unit quaternion (x, y, z, w) from body to world axes"),
    "states/velocity": Field("m/s", "of the centre of mass"),
    "states/angular_velocity": Field("rad/s", "in body axes"),
    "mesh/vertices": Field("m", "vertices about the centre of mass, in body axes"),
    "mesh/inertia": Field("kg m2", "moments xx, yy, zz and products xy, xz, yz, in body axes"),
}


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    check_body(settings)
    ends(settings, "drawn", (*DRAWN, "color"))
    require_positive(settings, "drawn", *DRAWN)
    checks.non_negative("drawn.color", settings["drawn"]["color"])
    ends(settings, "place", PLACE)
    require_positive(settings, "place", "clearance")


def draw_scene(settings: dict[str, Any], options: RunOptions, number: int) -> Scene:
    """Return scene `number`: a body in a random pose, thrown, hit and filmed."""
    rng = np.random.default_rng([options.seed, number])
    names = settings["body"]["shapes"]
    name = names[number % len(names)]
    mesh = stretched(settings, name, rng)
    drawn = draw_each(rng, settings, "drawn", DRAWN)
    place = draw_each(rng, settings, "place", PLACE)
    color = [draw(rng, "drawn.color", settings["drawn"]["color"]) for _ in range(3)]
    values = {**drawn, "mass": drawn["density"] * mesh.volume}
    at = [place["x"], 0.0, place["z"]]
    floor = {"exists": True, "at": at, "clearance": place["clearance"]}
    time = settings["time"]

    def motion(steps: int) -> Motion:
        own = {
            "dt": 1.0 / (time["fps"] * steps),
            "steps": time["frames"] * steps,
            "frames": time["frames"],
        }
        pose = np.random.default_rng([options.seed, number, 1])  # the same with any step
        given = {**settings, "floor": floor, "time": own}
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
            **_push(settings, first),
            **_initial(first),
        },
        _states,
        partial(_gain, settings["push"]["seconds"][1]),
    )


def _push(settings: dict[str, Any], motion: Motion) -> dict[str, np.ndarray]:
    """Return what is kept of the known force."""
    push = settings["push"]
    force = _model(motion).forces.get(PUSH)
    loaded: Any = [-1] if force is None else force.load_nodes  # pyright: ignore[reportAttributeAccessIssue]
    vertex = -1 if isinstance(loaded[0], str) else int(loaded[0])
    return {
        "push/force": np.array(push["force"]),
        "push/seconds": np.array(push["seconds"]),
        "push/vertex": np.array(vertex),
    }


def _initial(motion: Motion) -> dict[str, np.ndarray]:
    """Return where the body begins, and its mesh."""
    bodies, state = _model(motion).bodies[BODY], motion.state.bodies[BODY]
    names = ("position", "rotation", "velocity", "angular_velocity")
    return {
        **{f"initial/{name}": getattr(state, name)[0] for name in names},
        "mesh/vertices": bodies.arms[bodies.hull],
        "mesh/faces": bodies.faces,
        "mesh/inertia": bodies.inertias[0],
    }


def _states(motion: Motion, run: Any) -> dict[str, np.ndarray]:
    """Return the poses and speeds at the frames."""
    del motion
    return {f"states/{name}": value[:, 0] for name, value in vars(run.bodies[BODY]).items()}


def _gain(pushed: float, motion: Motion, run: Any) -> float:
    """Return the largest relative rise of the energy from frame to frame after the push."""
    energy = _energy(motion, run)[motion.frames * motion.dt >= pushed - 1e-9]
    if len(energy) < 2:
        return 0.0
    largest = float(np.abs(energy).max())
    rise = float((energy[1:] - np.minimum.accumulate(energy)[:-1]).max())
    return max(0.0, rise) / largest if largest > 0.0 else 0.0


def _energy(motion: Motion, run: Any) -> np.ndarray:
    r"""Return the energy at the frames, (n_frames,) [J].

        E = m |v|^2/2 + w.I w/2 - m g.x + k_e/2 sum c^2

    of the motion, of gravity, and stored in the contact at depths c.
    """
    model, poses = _model(motion), run.bodies[BODY]
    bodies, floor = model.bodies[BODY], model.forces[FLOOR]
    x, v, w = poses.position[:, 0], poses.velocity[:, 0], poses.angular_velocity[:, 0]
    depth = np.maximum(0.0, -vertices(bodies, poses)[..., 1])
    mass, inertia = bodies.masses[0], from_six(bodies.inertias)[0]
    moving = 0.5 * mass * np.square(v).sum(axis=1) + 0.5 * np.einsum("fi,ij,fj->f", w, inertia, w)
    stored = 0.5 * float(floor.parameters()["stiffness"]) * np.square(depth).sum(axis=1)
    return moving - mass * (x @ np.asarray(model.gravity)) + stored


def _model(motion: Motion) -> Model:
    assert isinstance(motion.system, Model)
    return motion.system
