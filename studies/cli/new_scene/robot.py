"""A robot of a URDF file as tables of a scene: a rigid body for each link, and its joints."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.joints.driven import HingeJoint, SliderJoint
from adjsim.joints.joint import WeldJoint
from adjsim.joints.urdf import Robot, read_urdf
from adjsim.meshes.surfaces import blocks
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.rigid.mass_properties import from_six
from studies.cli.new_scene.commented_toml import Row, table_text
from studies.runs.errors import StudyError
from studies.scene.checking import RESERVED
from studies.scene.declared import WORLD


# By class: the kind in a scene file, and the keys that a URDF file gives, with their units.
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
START, BOUNDS = 0.01, [1e-4, 1.0]  # of a friction [N m s] or [N s/m]
BARE = 0.02  # edge of the cube that is drawn of a link without a shape [m]


@dataclass(frozen=True, eq=False)
class RobotTables:
    """A robot as text, and what the text needs."""

    text: str
    points: np.ndarray  # of all that is drawn, (n, 3) [m]
    meshes: dict[str, TriangleMesh]  # by the name of the file
    free: dict[str, dict[str, Any]]  # by path: the friction of the first joint


def robot_tables(path: Path, folder: str) -> RobotTables:
    """Return the tables of a robot, whose meshes are to be in a folder beside the scene file."""
    try:
        robot = read_urdf(path)
    except (OSError, ValueError) as error:
        raise StudyError(str(error).replace("`path`", "`--urdf`")) from error
    names: dict[str | None, str] = {None: WORLD}
    for link, body in robot.links.items():
        names.setdefault(body, _identifier(link))
    turns = _turns(robot)
    tables, meshes, points = [], {}, []
    for k, shape in enumerate(robot.bodies.meshes):
        name, center, turn = names[f"robot.{k}"], robot.bodies.centers[k], turns[k]
        mesh, comment = shape, "what the link has for collisions, or else what is drawn"
        if not len(shape.faces):
            mesh = blocks([x + BARE * np.array([-0.5, 0.5]) for x in center], np.ones((1, 1, 1)))
            comment = "guess: a small cube, since the link has no shape"
        position = robot.state.position[k] - turn @ center
        meshes[f"{name}.ply"] = mesh
        points.append(position + mesh.points @ turn.T)
        rows: list[Row] = [
            ("kind", "rigid", f"a link of {path.name}"),
            ("mesh", f"{folder}/{name}.ply", comment),
            ("mass", float(robot.bodies.masses[k]), "[kg]"),
            ("inertia", from_six(robot.bodies.inertias[k]), "about the centre of mass [kg m2]"),
            ("center_of_mass", center, "from the link's origin, along its axes [m]"),
            ("position", position, "of the link's origin [m]"),
            ("rotation", np.degrees(Rotation.from_matrix(turn).as_rotvec()), "axis times angle [deg]"),
        ]
        tables.append(table_text(f"[bodies.{name}]", rows))
    free: dict[str, dict[str, Any]] = {}
    for key, joint in robot.forces.items():
        name = _identifier(key, "_joint" if _identifier(key) in names.values() else "")
        _, units = KINDS[type(joint)]
        if units and not free:
            start = {} if joint.viscous_friction is not None else {"start": START, "bounds": BOUNDS}
            free = {f"{name}.viscous_friction": start}
        tables.append(table_text(f"[joints.{name}]", _joint_rows(robot, joint, names)))
    base = names["robot.0"]
    if not any(joint.to_world for joint in robot.forces.values()):
        rows = [("kind", "weld", "guess: the base stands still"), ("between", [WORLD, base], "")]
        rows.append(("anchor", robot.state.position[0], "any point of the base [m]"))
        tables.append(table_text(f"[joints.{base}_to_world]", rows))
    return RobotTables("\n".join(tables), np.concatenate(points), meshes, free)


def _joint_rows(robot: Robot, joint: Any, names: dict[str | None, str]) -> list[Row]:
    """Return the rows of a joint, whose frame is that of its second body at the start."""
    kind, units = KINDS[type(joint)]
    ((_, child),) = joint.ends
    turn = _turns(robot)[child.number]
    anchor = robot.state.position[child.number] + turn @ joint.anchor_b.reshape(3)
    rows: list[Row] = [
        ("kind", kind, "stiffness and damping are chosen where they are left out"),
        ("between", [names[end] for end in joint.bodies], "the second moves against the first"),
        ("anchor", anchor, "[m]"),
    ]
    if units:
        rows.append(("axis", np.round(turn @ joint.axes("b")[0, :, 2], 9), "in the scene"))
    for key, unit in units.items():
        if (value := getattr(joint, key)) is not None:
            number = float(np.degrees(value) if unit == "[deg]" else value)
            rows.append((key, number, unit))
    return rows


def _turns(robot: Robot) -> np.ndarray:
    """Return the axes of bodies as columns, (n_bodies, 3, 3)."""
    return Rotation.from_quat(np.array(robot.state.orientation)).as_matrix()


def _identifier(name: str, end: str = "") -> str:
    """Return a name of a URDF file as one of a scene file."""
    plain = re.sub(r"\W", "_", name) + end
    return plain if plain.isidentifier() and plain not in RESERVED else f"link_{plain}"
