"""A pendulum, or two that hang on each other: alone in a scene.

It swings in the plane z = const through its pivot, angles from the vertical down. The values
"B.angle" and "B.rate" are in degrees, as in the scene file; "world.gravity" is one number, the
acceleration downwards. "B.torque" is constant, or has a row for each time of its file.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import Pendulum as PendulumSystem, PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from render.pendulum import RodsAndBobs
from render.scene import Mesh
from studies.runs.errors import StudyError
from studies.scene.bodies.part import linear, positive
from studies.scene.declared import Pendulum
from studies.scene.filming import HangingRods
from studies.scene.looks import material_of
from studies.scene.maps import ParameterMap, Scaled, Value, all_targets, values_of
from studies.scene.mesh_source import tried
from studies.scene.series import FreeSeries, read_series


DEGREE = np.pi / 180.0
WHITE = (1.0, 1.0, 1.0)


def make_pendulum(
    name: str, body: Pendulum, gravity: tuple[float, float, float]
) -> tuple[PendulumSystem, PendulumState, dict[str, Value], list[ParameterMap], dict[str, Any]]:
    """Return the system, its state, its values and maps, and its series by path."""
    key = f"bodies.{name}"
    links = len(body.length)
    if gravity[0] or gravity[2]:
        raise StudyError(
            f"`world.gravity` must be along y for a pendulum, got {list(gravity)}: it swings in "
            "the plane of x and y."
        )

    def of_links(given: tuple[float, ...] | None, default: float) -> np.ndarray:
        full = np.array([default] * links if given is None else given, np.float64)
        return full[0] if links == 1 else full

    values = {
        f"{name}.length": positive(of_links(body.length, 1.0), "m", 10.0),
        f"{name}.mass": positive(of_links(body.mass, 1.0), "kg"),
        f"{name}.damping": positive(
            of_links(body.damping, 0.0), "kg/s" if links == 1 else "N m s", 100.0
        ),
        f"{name}.inertia": positive(of_links(body.inertia, 0.0), "kg m2"),
        f"{name}.friction": positive(of_links(body.friction, 0.0), "N m", 100.0),
        f"{name}.angle": linear(of_links(body.angle, 0.0), "deg", 90.0),
        f"{name}.rate": linear(of_links(body.rate, 0.0), "deg/s", 360.0),
        "world.gravity": positive(-gravity[1], "m/s2", 10.0),
    }
    if body.center_of_mass is not None:  # else it is at the end of the link
        values[f"{name}.center_of_mass"] = positive(of_links(body.center_of_mass, 1.0), "m", 10.0)
    links_have = ("length", "mass", "center_of_mass", "inertia", "damping", "friction")
    weight = float(np.sum(body.mass or links) * gravity[1] * np.sum(body.length))  # [N m]
    if isinstance(body.torque, str):
        series = {"torque": FreeSeries(*read_series(f"{key}.torque", body.torque, {links}))}
        torque = series["torque"].values
    else:
        series, torque = {}, of_links(body.torque, 0.0)
    largest = 10.0 * float(np.abs(torque).max())
    values[f"{name}.torque"] = linear(torque, "N m", largest or abs(weight) or 1.0)
    own_names = [which for which in links_have if f"{name}.{which}" in values]
    maps: list[ParameterMap] = [Scaled(f"{name}.{which}", {which: 1.0}) for which in own_names]
    maps += [
        Scaled("world.gravity", {"gravity": 1.0}),
        Scaled(f"{name}.torque", {"torque": 1.0}),
        Scaled(f"{name}.angle", {"state.angle": DEGREE}),
        Scaled(f"{name}.rate", {"state.rate": DEGREE}),
    ]
    targets = all_targets(maps, values_of(values))
    arguments: dict[str, Any] = {
        which: targets[which] for which in (*own_names, "gravity", "torque")
    }
    arguments |= {which: varying.course(1.0) for which, varying in series.items()}
    arguments["friction_width"] = DEGREE * body.friction_width
    kind: Any = SimplePendulum if links == 1 else DoublePendulum
    system = tried(key, lambda: kind(**arguments))
    state = PendulumState(targets["state.angle"], targets["state.rate"])
    return system, state, values, maps, series


def drawn_pendulum(name: str, body: Pendulum) -> tuple[Mesh, HangingRods]:
    """Return rods and bobs in their colours, and where their vertices are."""
    key = f"bodies.{name}"
    if body.look.texture is not None or body.look.vertex_colors is not None:
        raise StudyError(
            f"`{key}.look` must have a `color` for a pendulum, whose parts may also have "
            f"`{key}.rod_color` and `{key}.bob_color`."
        )
    n_links, look = len(body.length), body.look
    radii = np.broadcast_to(body.bob_radius, n_links)
    shape = tried(key, lambda: RodsAndBobs(radii, body.rod_radius, body.pivot, body.link_gap))
    colors = None
    if body.rod_color is not None or body.bob_color is not None:
        rods, bobs = (
            np.broadcast_to(look.color if given is None else given, (n_links, 3))
            for given in (body.rod_color, body.bob_color)
        )
        colors, look = shape.colors(rods, bobs), replace(look, color=WHITE)
    mesh = Mesh(
        shape.faces, vertex_colors=colors, material=material_of(look), smooth_normals=look.smooth
    )
    return mesh, HangingRods(shape)
