"""A declared scene as something that runs and can be drawn: `build(scene)`.

All bodies made of nodes and all rigid bodies of a scene are in one `Model`; nodes are in the order
of the bodies. Forces have the names of their bodies: "flag", its hinges "flag_bending" and its air
"flag_air"; contacts are named after obstacle and body, "floor_flag", and pushes have their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.element import Force
from adjsim.forces.lift_drag import LiftDrag
from adjsim.model import Model, State
from adjsim.system import System
from render.harmonics import N_HARMONICS, Y0
from render.scene import DirectionalLight, Mesh, SphericalHarmonics
from studies.runs.errors import StudyError
from studies.scene.at_rest import Resting, make_resting
from studies.scene.bodies.cloth import make_cloth
from studies.scene.bodies.part import NodePart, linear, motion_values
from studies.scene.bodies.pendulum import drawn_pendulum, make_pendulum
from studies.scene.bodies.rigid import RigidPart, make_rigid
from studies.scene.bodies.smoke import make_smoke
from studies.scene.bodies.soft import make_soft
from studies.scene.bodies.springs import make_springs
from studies.scene.checking import check_world
from studies.scene.contacts import Touching
from studies.scene.declared import Cloth, Light, Pendulum, Rigid, Scene, Sky, Smoke, Soft, Springs
from studies.scene.filming import Hulls, Skin, Still, Subject
from studies.scene.maps import ParameterMap, Placed, Scaled, Value, all_targets
from studies.scene.motion import AtRest, NoState
from studies.scene.motions import NodeMotion
from studies.scene.obstacles import drawn_obstacle, make_contacts, notes_on_start
from studies.scene.pushes import make_pushes
from studies.scene.series import Varying


Lit = DirectionalLight | SphericalHarmonics
APART = "Bodies do not touch each other, only obstacles."


@dataclass(frozen=True, eq=False)
class Built:
    """A scene at its own values."""

    system: System[Any, Any] | AtRest  # what `adjsim.rollout` advances, and where it begins
    state: Any
    meshes: dict[str, Mesh]  # what is drawn, by body or drawn obstacle
    subjects: dict[str, Subject]  # where its vertices are
    lights: Mapping[str, Lit]
    values: dict[str, Value]  # what may be free, by scene path
    # From the values to the parameters of the system; where several end at one, they add up.
    maps: tuple[ParameterMap, ...]
    held: np.ndarray | None  # mask of held nodes, (n_nodes,); None without nodes
    nodes: dict[str, slice]  # rows of each body's nodes
    notes: list[str] = field(default_factory=list)  # what was chosen and should be known
    # Parameters of the system that vary in time, by path; `system` has them for steps of 1 s.
    varying: dict[str, Varying] = field(default_factory=dict)
    dt: float | None = None  # the step of a system that has a fixed one [s]: smoke

    def targets(self) -> dict[str, np.ndarray]:
        """Return the system's parameters by path at the scene's own values."""
        return all_targets(self.maps, {path: v.value for path, v in self.values.items()})


def build(scene: Scene, *, at_rest: bool = False) -> Built:
    """Return a scene ready to run and to draw.

    With `at_rest` nothing moves: bodies with a mesh are no more than that. Of a `SceneFile`, the
    paths under `free` add parameters that are left out of a model where they are 0: viscosity,
    bending damping, lift, drag and actuation.
    """
    free = frozenset(getattr(scene, "free", {}))
    check_world(scene)
    for name, body in scene.bodies.items():
        if isinstance(body, Pendulum | Smoke):
            return _alone(scene, name, body)
    return _in_sky(scene, _at_rest(scene) if at_rest else _moving(scene, free))


def _moving(scene: Scene, free: frozenset[str]) -> Built:
    """Return bodies, obstacles and the world as one model."""
    gravity = float(np.linalg.norm(scene.world.gravity))
    nodes: list[NodePart] = []
    rigid: list[RigidPart] = []
    for name, body in scene.bodies.items():
        match body:
            case Soft():
                nodes.append(make_soft(name, body, free))
            case Cloth():
                nodes.append(make_cloth(name, body, free))
            case Springs():
                nodes.append(make_springs(name, body))
            case Rigid():
                rigid.append(make_rigid(name, body, gravity))
    return _assembled(_Parts(scene, nodes, rigid, gravity))


def _at_rest(scene: Scene) -> Built:
    """Return bodies with a mesh as they are seen where nothing moves."""
    meshes, subjects, maps = {}, {}, []
    values: dict[str, Value] = {}
    for name, body in scene.bodies.items():
        own, pose, meshes[name] = make_resting(name, body)
        subjects[name] = Resting(name)
        values |= own
        maps.append(pose)
    _draw_obstacles(scene, meshes, subjects)
    system = AtRest(all_targets(maps, {path: value.value for path, value in values.items()}))
    lights = lights_of(scene)
    return Built(system, NoState(), meshes, subjects, lights, values, tuple(maps), None, {})


def _in_sky(scene: Scene, built: Built) -> Built:
    """Return a scene whose flat colours are those of faces, if a sky lights it.

    The sky takes the place of the material, in which they are otherwise.
    """
    if not any(isinstance(light, Sky) for light in scene.lights.values()):
        return built
    meshes = dict(built.meshes)
    for name, mesh in meshes.items():
        if mesh.vertex_colors is None and mesh.texture is None:
            own: Any = scene.bodies.get(name) or scene.obstacles[name]
            meshes[name] = replace(mesh, face_colors=np.tile(own.look.color, (len(mesh.faces), 1)))
    return replace(built, meshes=meshes)


def _alone(scene: Scene, name: str, body: Pendulum | Smoke) -> Built:
    """Return a pendulum or smoke."""
    if len(scene.bodies) > 1:
        other = next(key for key in scene.bodies if key != name)
        raise StudyError(
            f"`bodies.{name}` is a {body.kind}, which must be alone in its scene: take out "
            f"`bodies.{other}`."
        )
    if scene.obstacles:
        raise StudyError(
            f"`obstacles` must be left out of a scene of a {body.kind}, which touches nothing."
        )
    if isinstance(body, Smoke):
        system, state, values, maps = make_smoke(name, body)
        dt = 1.0 / body.steps_per_second
        return Built(system, state, {}, {}, {}, values, tuple(maps), None, {}, dt=dt)
    swinging, start, values, maps, series = make_pendulum(name, body, scene.world.gravity)
    mesh, subject = drawn_pendulum(name, body)
    return Built(
        swinging,
        start,
        {name: mesh},
        {name: subject},
        lights_of(scene),
        values,
        tuple(maps),
        None,
        {},
        varying=series,
    )


def lights_of(scene: Scene) -> dict[str, Lit]:
    """Return the lights of a scene; "sun", the default one, where there is none."""
    given = scene.lights or {"sun": Light()}
    return {name: _light(one) for name, one in given.items()}


def _light(light: Light | Sky) -> Lit:
    if isinstance(light, Light):
        return DirectionalLight(light.direction, light.color)
    even = np.zeros((N_HARMONICS, 3))
    even[0] = 1.0 / Y0
    return SphericalHarmonics(even if light.coefficients is None else light.coefficients)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The bodies of a scene, and which rows of the model are whose nodes."""

    scene: Scene
    nodes: Sequence[NodePart]
    rigid: Sequence[RigidPart]
    gravity: float  # its length [m/s2]

    @cached_property
    def rows(self) -> dict[str, slice]:
        """Rows of each body's nodes."""
        ends = np.cumsum([0, *(len(part.points) for part in self.nodes)]).tolist()
        return {part.name: slice(*ends[k : k + 2]) for k, part in enumerate(self.nodes)}

    @property
    def n(self) -> int:
        """Number of nodes."""
        return sum(len(part.points) for part in self.nodes)

    def joined(self, key: str, *row: int, kind: type = float) -> np.ndarray:
        """Return an array of all nodes from those of the bodies."""
        return np.concatenate([np.zeros((0, *row), kind), *(getattr(p, key) for p in self.nodes)])


def _assembled(parts: _Parts) -> Built:
    """Return bodies, obstacles and the world as one model."""
    scene, rows = parts.scene, parts.rows
    rest, held = parts.joined("points", 3), parts.joined("held", kind=bool)
    forces: dict[str, Force] = {}
    for part in parts.nodes:
        forces |= part.forces(rest, rows[part.name].start)
    touching = _touching(parts, _stiffness(forces, parts.n))
    contacts = make_contacts(scene.obstacles, touching, parts.gravity)
    values, maps = _values(parts, forces)
    pushes = make_pushes(scene.pushes, parts.nodes, rows, parts.rigid)
    values |= contacts.values | pushes.values
    maps += [*contacts.maps, *pushes.maps]
    model = Model(
        parts.joined("mass"),
        _joined(forces | pushes.forces, contacts.forces),
        gravity=scene.world.gravity,
        pinned=held,
        bodies={part.name: part.bodies for part in parts.rigid},
    )
    start = State(rest if parts.n else None, bodies={p.name: p.state for p in parts.rigid})
    targets = all_targets(maps, {path: value.value for path, value in values.items()})
    system, state = model.with_values(start, targets)
    meshes, subjects = _drawn(parts)
    bodies = (*parts.nodes, *parts.rigid)
    return Built(
        system,
        state,
        meshes,
        subjects,
        lights_of(scene),
        values,
        tuple(maps),
        held if parts.n else None,
        rows,
        [
            *(note for part in bodies for note in part.notes),
            *([APART] if len(bodies) > 1 else []),
            *notes_on_start(scene.obstacles, touching),
        ],
        {k: v for part in (*parts.nodes, pushes) for k, v in part.varying.items()},
    )


def _values(parts: _Parts, forces: dict[str, Force]) -> tuple[dict[str, Value], list[ParameterMap]]:
    """Return the values and maps of the bodies and the world."""
    world = parts.scene.world
    values: dict[str, Value] = {"world.gravity": linear(world.gravity, "m/s2", 10.0)}
    maps: list[ParameterMap] = [Scaled("world.gravity", {"gravity": 1.0})]
    windy = [name for name, force in forces.items() if isinstance(force, LiftDrag)]
    if windy:
        values["world.wind"] = linear(world.wind, "m/s", 20.0)
        maps.append(Scaled("world.wind", {f"{name}.wind": 1.0 for name in windy}))
    for part in parts.nodes:
        body: Any = parts.scene.bodies[part.name]
        rows, position = parts.rows[part.name], np.asarray(body.position)
        values |= part.values | motion_values(part.name, body, part.size, parts.gravity)
        maps += part.maps(rows, parts.n)
        is_free = ~part.held
        maps.append(
            NodeMotion(part.name, part.points, part.center, position, is_free, rows, parts.n)
        )
        own = rows.start + np.flatnonzero(is_free)
        path, velocity = f"{part.name}.node_velocity", values[f"{part.name}.velocity"]
        values[path] = replace(velocity, value=np.zeros((len(own), 3)))
        maps.append(Placed(path, "state.v", own, parts.n))
    for part in parts.rigid:
        values |= part.values
        maps += part.maps
    return values, maps


def _stiffness(forces: dict[str, Force], n: int) -> np.ndarray:
    """Return what the elements of each node hold it with, (n_nodes,) [N/m]."""
    k = np.zeros(n)
    for force in forces.values():
        each = force.nodes.shape[1]
        k += np.bincount(force.nodes.ravel(), np.repeat(force.stiffness_bound(), each), n)
    return k


def _touching(parts: _Parts, stiffness: np.ndarray) -> list[Touching]:
    """Return all bodies as contacts see them, in the order of the scene."""
    bodies: dict[str, Any] = dict(parts.scene.bodies)
    found = {}

    def add(part: NodePart | RigidPart, **more: Any) -> None:
        speed = float(np.linalg.norm(bodies[part.name].velocity))
        found[part.name] = Touching(name=part.name, size=part.size, speed=speed, **more)

    for part in parts.nodes:
        own = part.touching
        rows = parts.rows[part.name].start + own
        mass, held_with = part.mass[own], stiffness[rows]
        add(part, nodes=rows, points=part.points[own], mass=mass, held_with=held_with)
    for part in parts.rigid:
        points, mass = part.bodies.meshes[0].points, part.bodies.masses[0]
        add(part, is_rigid=True, points=points, mass=mass)
    return [found[name] for name in bodies]


def _joined(forces: Mapping[str, Force], contacts: Mapping[str, Force]) -> dict[str, Force]:
    """Return all forces; raise if two have one name."""
    for name in contacts:
        if name in forces:
            raise StudyError(
                f"`obstacles` and `bodies` must not make one name, but {name!r} is that of a body "
                "or push, and of the contact between an obstacle and another body. Rename one."
            )
    return {**forces, **contacts}


def _drawn(parts: _Parts) -> tuple[dict[str, Mesh], dict[str, Subject]]:
    """Return what is drawn, and where its vertices are, by name."""
    meshes: dict[str, Mesh] = {part.name: part.mesh for part in (*parts.nodes, *parts.rigid)}
    subjects: dict[str, Subject] = {part.name: Hulls(part.name) for part in parts.rigid}
    for part in parts.nodes:
        own = scipy.sparse.coo_array(part.skin)
        row, column = own.coords
        placed = (own.data, (row, parts.rows[part.name].start + column))
        skin = scipy.sparse.csr_array(placed, shape=(len(part.vertices), parts.n))
        subjects[part.name] = Skin(skin, part.offset)
    _draw_obstacles(parts.scene, meshes, subjects)
    return meshes, subjects


def _draw_obstacles(scene: Scene, meshes: dict[str, Mesh], subjects: dict[str, Subject]) -> None:
    """Add the obstacles that are drawn."""
    for name, obstacle in scene.obstacles.items():
        if obstacle.draw:
            meshes[name], points = drawn_obstacle(name, obstacle)
            subjects[name] = Still(points)
