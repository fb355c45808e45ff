"""A robot of a URDF file as bodies and joints of a scene file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import WeldJoint
from adjsim.joints.urdf import Robot, read_urdf
from adjsim.meshes.surfaces import blocks
from adjsim.rigid.mass_properties import from_six
from studies.runs.errors import renamed
from studies.scene.checking import RESERVED
from studies.scene.declared import WORLD


# By class: the kind in a scene file, and the keys that a URDF file may give, with their units.
KINDS: dict[type, tuple[str, dict[str, str]]] = {
    HingeJoint: ("hinge", {
        "viscous_friction": "[N m s/rad]", "dry_friction": "[N m]", "lower": "[deg]",
        "upper": "[deg]",
    }),
    SliderJoint: ("slider", {
        "viscous_friction": "[N s/m]", "dry_friction": "[N]", "lower": "[m]", "upper": "[m]",
    }),
    WeldJoint: ("weld", {}),
}  # fmt: skip
FREE, START = "viscous_friction", 0.01  # what is asked for; [N m s/rad] or [N s/m]
BARE = 0.02  # edge of the cube that is drawn of a link without a shape [m]


def robot_of(path: Path, folder: str) -> dict[str, Any]:
    """Return what the template says of a robot, whose meshes are to be in a folder.

    Beside it are `surfaces`, by the names of their files, and the `points` of all, (n, 3) [m].
    """
    with renamed({"`path`": "`--urdf`"}):
        robot = read_urdf(path)
    names: dict[str | None, str] = {None: WORLD}
    for link, body in robot.links.items():
        names.setdefault(body, _identifier(link))
    turns = _turns(robot)
    links, surfaces, points = [], {}, []
    for k, shape in enumerate(robot.bodies.meshes):
        center, turn, file = robot.bodies.centers[k], turns[k], f"{names[f'robot.{k}']}.ply"
        cube = [x + BARE * np.array([-0.5, 0.5]) for x in center]
        has_shape = len(shape.faces) > 0
        surfaces[file] = shape if has_shape else blocks(cube, np.ones((1, 1, 1)))
        position = robot.state.position[k] - turn @ center
        points.append(position + surfaces[file].points @ turn.T)
        links.append({
            "name": names[f"robot.{k}"],
            "mesh": f"{folder}/{file}",
            "has_shape": has_shape,
            "mass": float(robot.bodies.masses[k]),
            "inertia": from_six(robot.bodies.inertias[k]),
            "center": center,
            "position": position,
            "rotation": np.degrees(Rotation.from_matrix(turn).as_rotvec()),
        })  # fmt: skip
    joints = [_joint(robot, key, names) for key in robot.forces]
    if not any(joint.to_world for joint in robot.forces.values()):
        base = {"kind": "weld", "is_guess": True, "between": [WORLD, names["robot.0"]], "more": []}
        name = f"{names['robot.0']}_to_world"
        joints.append({"name": name, "anchor": robot.state.position[0], **base})
    moving = next((joint for joint in joints if joint["kind"] != "weld"), None)
    frictions = (value for key, value, _ in moving["more"] if key == FREE) if moving else ()
    return {
        "file": path.name, "links": links, "joints": joints, "surfaces": surfaces,
        "points": np.concatenate(points), "free": moving and f"{moving['name']}.{FREE}",
        "start": next(iter(frictions), START),
    }  # fmt: skip


def _joint(robot: Robot, key: str, names: dict[str | None, str]) -> dict[str, Any]:
    """Return what the template says of a joint; its frame is that of its second body."""
    joint: Any = robot.forces[key]
    kind, units = KINDS[type(joint)]
    ((_, child),) = joint.ends
    turn = _turns(robot)[child.number]
    more = [("axis", np.round(turn @ joint.axes("b")[0, :, 2], 9), "in the scene")] if units else []
    for name, unit in units.items():
        if (value := getattr(joint, name)) is not None:
            more.append((name, float(np.degrees(value) if unit == "[deg]" else value), unit))
    return {
        "name": _identifier(key, "_joint" if _identifier(key) in names.values() else ""),
        "kind": kind,
        "is_guess": False,
        "between": [names[end] for end in joint.bodies],
        "anchor": robot.state.position[child.number] + turn @ joint.anchor_b.reshape(3),
        "more": more,
    }


def _turns(robot: Robot) -> np.ndarray:
    """Return the axes of bodies as columns, (n_bodies, 3, 3)."""
    return Rotation.from_quat(np.array(robot.state.orientation)).as_matrix()


def _identifier(name: str, end: str = "") -> str:
    """Return a name of a URDF file as one of a scene file."""
    plain = re.sub(r"\W", "_", name) + end
    return plain if plain.isidentifier() and plain not in RESERVED else f"link_{plain}"
