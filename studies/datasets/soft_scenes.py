"""Soft bodies thrown onto a floor: balls and beams of tetrahedra, and cloths.

Scene k has kind k in turn. Its density, material and contact, how it is stretched, where it begins
and how it moves are drawn by the seed and k. A cloth is a sheet of the same material, so thick as
the settings say: its density and moduli per area are those drawn times the thickness. As with
rigid bodies, mass, moduli and contact scale together and leave the motion as it is; a known force
in newtons, which turns nothing, sets the mass.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim.element import Force
from adjsim.forces.external import ExternalForces
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.ball import ball_tets
from adjsim.meshes.grid import box_tets
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from render.scene import Mesh
from studies.datasets import thrown
from studies.datasets.scene import Field, Scene
from studies.datasets.soft_energy import energy
from studies.datasets.thrown import CONTACT, model_of
from studies.errors import StudyError
from studies.filming import Skin, make_filming
from studies.motion import Motion
from studies.registry import RunOptions
from studies.rigid import AXES, check_push
from studies.settings import (
    draw,
    draw_each,
    require_chosen,
    require_not_negative,
    require_positive,
)
from studies.timeline import frame_steps


BODY, FLOOR, PUSH = "body", "floor", "push"
MATERIAL = ("density", "mu", "lam", "viscosity")
DRAWN = (*MATERIAL, *CONTACT)
FIELDS: dict[str, Field] = {
    **thrown.FIELDS,
    "shape": Field("-", "ball, beam or cloth"),
    "thickness": Field("m", "of a cloth; 0 of a solid"),
    "parameters/density": Field("kg/m3", "density, uniform; of a cloth: mass per area/thickness"),
    "parameters/mass": Field("kg", "mass of the whole body"),
    "parameters/mu": Field("Pa", "neo-Hookean mu; of a cloth: that per area/thickness"),
    "parameters/lam": Field("Pa", "neo-Hookean lam; of a cloth: that per area/thickness"),
    "parameters/viscosity": Field("Pa s", "Kelvin-Voigt; of a cloth: that per area/thickness"),
    "push/force": Field("N", "known force in all, in world axes, on each node by its mass"),
    "initial/angular_velocity": Field("rad/s", "at t = 0, in world axes"),
    "mesh/vertices": Field("m", "nodes at rest about the centre of mass, in body axes"),
    "mesh/faces": Field("-", "nodes of each triangle that is drawn; of a solid outwards"),
    "mesh/tets": Field("-", "nodes of each tetrahedron; none in a cloth"),
    "mesh/masses": Field("kg", "mass of each node"),
    "mesh/positions": Field("m", "of each node at every frame, frames first; float32"),
}


def fields(settings: dict[str, Any]) -> dict[str, Field]:
    """Return what is kept of a scene, by name."""
    del settings
    return FIELDS


seen = thrown.seen


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    require_chosen("body.kinds", settings["body"]["kinds"], MESHES)
    require_positive(settings, "body", "stretch")
    require_positive(settings, "ball", "shells", "radius")
    require_positive(settings, "beam", "cells", "size")
    require_positive(settings, "cloth", "cells", "size", "thickness")
    require_not_negative(settings, "cloth", "bending", "drag")
    check_push(settings["push"])
    thrown.check_thrown(settings, DRAWN)
    (low, _), (_, high) = settings["drawn"]["lam"], settings["drawn"]["mu"]
    if not low > high / 8.0:
        raise StudyError(
            f"`drawn.lam` must be above drawn.mu/8 = {high / 8.0:g} for a stable rest shape, got "
            f"{low:g}."
        )


def ball(settings: dict[str, Any]) -> TetMesh:
    """Return a ball of tetrahedra."""
    return ball_tets(settings["ball"]["shells"], settings["ball"]["radius"])


def beam(settings: dict[str, Any]) -> TetMesh:
    """Return a box of tetrahedra."""
    return box_tets(settings["beam"]["cells"], settings["beam"]["size"])


def cloth(settings: dict[str, Any]) -> TriangleMesh:
    """Return a flat sheet."""
    return sheet(settings["cloth"]["cells"], settings["cloth"]["size"])


MESHES: dict[str, Callable[[dict[str, Any]], TetMesh | TriangleMesh]] = {
    "ball": ball, "beam": beam, "cloth": cloth,
}  # fmt: skip


def draw_scene(settings: dict[str, Any], options: RunOptions, number: int) -> Scene:
    """Return scene `number`: a body in a random pose, thrown, pushed and filmed."""
    rng = np.random.default_rng([options.seed, number])
    kinds = settings["body"]["kinds"]
    kind = kinds[number % len(kinds)]
    factors = [draw(rng, "body.stretch", settings["body"]["stretch"]) for _ in AXES]
    drawn = draw_each(rng, settings, "drawn", DRAWN)
    mesh, forces, mass = make_body(settings, kind, np.array(factors), drawn)
    place = draw_each(rng, settings, "place", thrown.PLACE)
    color = thrown.draw_color(rng, settings)
    turn = Rotation.from_quat(rng.standard_normal(4))
    velocity = np.array([*draw_each(rng, settings, "thrown", AXES).values()])
    spin = np.array([draw(rng, "thrown.spin", settings["thrown"]["spin"]) for _ in AXES])
    arms = mesh.points @ turn.as_matrix().T
    where = np.array([place["x"], place["clearance"] - arms[:, 1].min(), place["z"]])
    scalars: dict[str, Any] = {name: drawn[name] for name in CONTACT}
    forces[FLOOR] = HalfSpaceContact(**scalars)
    state = State(where + arms, velocity + np.cross(spin, arms))
    faces, nodes = drawn_surface(mesh)
    drawing = Mesh(np.searchsorted(nodes, faces), vertex_colors=np.tile(color, (len(nodes), 1)))
    skin = Skin.of_nodes(nodes, len(mesh.points))
    return Scene(
        partial(_motion, settings, options, (forces, mass, state)),
        make_filming(settings, {BODY: (drawing, skin)}, device=options.device),
        {
            "shape": np.array(kind),
            "thickness": np.array(settings["cloth"]["thickness"] if kind == "cloth" else 0.0),
            **{f"parameters/{key}": np.array(value) for key, value in drawn.items()},
            "parameters/mass": np.array(mass.sum()),
            "parameters/color": np.array(color),
            **{f"push/{key}": np.array(settings["push"][key]) for key in ("force", "seconds")},
            "initial/position": where,
            "initial/rotation": turn.as_quat(),
            "initial/velocity": velocity,
            "initial/angular_velocity": spin,
            "mesh/vertices": mesh.points,
            "mesh/faces": faces,
            "mesh/tets": mesh.tets if isinstance(mesh, TetMesh) else np.empty((0, 4), np.int64),
            "mesh/masses": mass,
        },
        _states,
        partial(_gain, settings["push"]["seconds"][1]),
    )


def make_body(
    settings: dict[str, Any], kind: str, factors: np.ndarray, drawn: dict[str, float]
) -> tuple[TetMesh | TriangleMesh, dict[str, Force], np.ndarray]:
    """Return a stretched mesh about its centre of mass, what holds it together, and its masses."""
    mesh = MESHES[kind](settings)
    points = mesh.points * factors
    mu, lam, viscosity = drawn["mu"], drawn["lam"], drawn["viscosity"]
    if isinstance(mesh, TetMesh):
        solid = NeoHookeanTets(mesh.tets, points, mu, lam, viscosity=viscosity)
        mass = solid.lumped_mass(drawn["density"])
        centred = TetMesh(points - mass @ points / mass.sum(), mesh.tets)
        return centred, {BODY: solid}, mass
    table = settings["cloth"]
    h = table["thickness"]
    skin = NeoHookeanTriangles(mesh.faces, points, mu * h, lam * h, viscosity=viscosity * h)
    mass = skin.lumped_mass(drawn["density"] * h)
    forces: dict[str, Force] = {
        BODY: skin,
        "hinges": Hinges(mesh_hinges(mesh.faces), points, table["bending"]),
        "air": LiftDrag(mesh.faces, 0.0, table["drag"]),
    }
    return TriangleMesh(points - mass @ points / mass.sum(), mesh.faces), forces, mass


def drawn_surface(mesh: TetMesh | TriangleMesh) -> tuple[np.ndarray, np.ndarray]:
    """Return the triangles that are drawn, by the nodes of the mesh, and these nodes."""
    if isinstance(mesh, TetMesh):
        surface = mesh.surface()
        return surface.faces, surface.nodes
    return mesh.faces, np.arange(len(mesh.points))


def _motion(
    settings: dict[str, Any],
    options: RunOptions,
    body: tuple[dict[str, Force], np.ndarray, State],
    steps: int,
) -> Motion:
    """Return the motion of a body, its forces, masses and state, with so many steps a frame."""
    forces, mass, state = body
    push = settings["push"]
    dt, frames = frame_steps(thrown.with_steps(settings["time"], steps))
    own = dict(forces)
    if np.any(push["force"]):
        first, last = (round(second / dt) for second in push["seconds"])
        shared = np.outer(mass / mass.sum(), push["force"])
        own[PUSH] = ExternalForces(np.arange(len(mass)), shared, (first, max(last, first + 1)))
    model = Model(mass, own, gravity=settings["gravity"])
    return Motion(model, state, dt, frames, options.dtype, device=options.device)


def _states(motion: Motion, run: Any) -> dict[str, np.ndarray]:
    """Return the centre of mass at the frames, and all nodes."""
    mass = np.asarray(model_of(motion).mass)
    part = mass / mass.sum()
    return {
        "states/position": np.einsum("n,fni->fi", part, run.x),
        "states/velocity": np.einsum("n,fni->fi", part, run.v),
        "mesh/positions": run.x.astype(np.float32),  # half the file
    }


def _gain(pushed: float, motion: Motion, run: Any) -> float:
    """Return the largest relative rise of the energy from frame to frame after the push."""
    return thrown.energy_gain(motion, energy(motion, run), pushed)
