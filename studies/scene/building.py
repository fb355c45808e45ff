"""A declared scene as something that runs and can be drawn: `build(scene)`.

All bodies made of nodes and all rigid bodies of a scene are in one `Model`; nodes are in the order
of the bodies. Forces have the names of their bodies: "flag", its hinges "flag_bending", its air
"flag_air" and its drag per mass "flag_drag"; those of obstacles are named after obstacle and body,
"floor_flag"; contacts between bodies, joints, pushes and forces of the user's own have their own.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse

from adjsim.forces.element import Force
from adjsim.forces.lift_drag import LiftDrag
from adjsim.model import Model, State
from adjsim.rigid.pose import BodyState
from adjsim.steps.semi_implicit import SEMI_IMPLICIT
from adjsim.support_force import GripForce, ObstacleForce
from adjsim.system import System, TimeStep
from render.scene import DirectionalLight, Mesh, SphericalHarmonics
from render.shaders.harmonics import N_HARMONICS, Y0
from studies.runs.errors import StudyError
from studies.scene.bodies.cloth import make_cloth
from studies.scene.bodies.part import (
    NodePart,
    linear,
    motion_values,
    node_stiffness,
    uniform_velocity,
)
from studies.scene.bodies.pendulum import drawn_pendulum, make_pendulum
from studies.scene.bodies.rigid import RigidPart, make_rigid
from studies.scene.bodies.shape import RestShape, Shape
from studies.scene.bodies.smoke import make_smoke
from studies.scene.bodies.soft import make_soft
from studies.scene.bodies.springs import make_springs
from studies.scene.body_contacts import (
    PER_LONG_STEP,
    PER_STEP,
    check_apart,
    longest_step,
    make_body_contacts,
    notes_on_pairs,
)
from studies.scene.checking import check_world
from studies.scene.contacts import Touching
from studies.scene.declared import (
    EQUILIBRIUM,
    Cloth,
    Light,
    Pendulum,
    Rigid,
    Scene,
    Sky,
    Smoke,
    Soft,
    Springs,
)
from studies.scene.filming import Carried, Hulls, Skin, Sliding, Still, Subject
from studies.scene.force_sensor import FORCE, OBSTACLE, ForceSensor
from studies.scene.gravity import DIRECTION, GRAVITY, Turned
from studies.scene.grips import Led, make_grips, paths_in, with_grips
from studies.scene.joints import JointMaker, JointMark, joint_marks, with_pin_points
from studies.scene.likely_units import notes_on_lengths
from studies.scene.looks import drawn_mesh
from studies.scene.maps import ParameterMap, Scaled, Value, all_targets, values_of
from studies.scene.mesh_source import read_source, surface_of
from studies.scene.motion import AtRest, Settled
from studies.scene.motions import NodeMotion, RestingPose
from studies.scene.obstacle_shapes import shape_of
from studies.scene.obstacles import blows_on, chosen, make_contacts, notes_on_paths, notes_on_start
from studies.scene.own_code import make_own_forces
from studies.scene.pushes import make_pushes
from studies.scene.series import Varying
from studies.scene.steps import step_of
from studies.scene.struck import struck_mass


Lit = DirectionalLight | SphericalHarmonics
MOST_TILT = 45.0  # how far gravity may lean by default [deg]
TOUCHES = 0.02  # of a body's size: what is nearer to an obstacle at the start touches it
IN_WORDS = {"ball": "ball joint"}  # kinds of joints


@dataclass(frozen=True, eq=False)
class BuiltScene:
    """A scene at its own values."""

    # What `adjsim.rollout` advances, or what rests, and where it begins.
    system: System[Any, Any] | AtRest | Settled
    state: Any
    values: dict[str, Value]  # what may be free, by scene path
    # From the values to the parameters of the system; where several end at one, they add up.
    maps: Sequence[ParameterMap]
    meshes: dict[str, Mesh] = field(default_factory=dict)  # what is drawn, by body or obstacle
    subjects: dict[str, Subject] = field(default_factory=dict)  # where its vertices are
    lights: Mapping[str, Lit] = field(default_factory=dict)
    held: np.ndarray | None = None  # mask of held nodes, (n_nodes,); None without nodes
    nodes: dict[str, slice] = field(default_factory=dict)  # rows of each body's nodes
    notes: list[str] = field(default_factory=list)  # what was chosen and should be known
    # Parameters of the system that vary in time, by path; `system` has them for steps of 1 s.
    varying: dict[str, Varying] = field(default_factory=dict)
    dt: float | None = None  # the step of a system that has a fixed one [s]: smoke
    longest_dt: float = np.inf  # in which surfaces that meet do not pass each other [s]
    joints: dict[str, JointMark] = field(default_factory=dict)  # where they are drawn
    sensors: dict[str, ForceSensor] = field(default_factory=dict)  # what observations may read
    links: tuple[str, ...] = ()  # contacts between bodies, and joints, in words
    step: TimeStep = SEMI_IMPLICIT
    shapes: dict[str, Shape] = field(default_factory=dict)  # of bodies that may differ from meshes

    def held_counts(self) -> dict[str, str]:
        """Return how many nodes are held, "12 of 240 nodes held", by body that has any."""
        counts = {} if self.held is None else {k: self.held[rows] for k, rows in self.nodes.items()}
        return {
            name: f"{held.sum()} of {len(held)} nodes held"
            for name, held in counts.items() if held.any()
        }  # fmt: skip

    @property
    def paths(self) -> list[Led]:
        """The paths of grips and obstacles."""
        return [*paths_in(self.varying).values()]

    def targets(self) -> dict[str, np.ndarray]:
        """Return the system's parameters by path at the scene's own values."""
        return all_targets(self.maps, values_of(self.values))


def build(
    scene: Scene,
    *,
    at_rest: bool = False,
    refined: bool = False,
    sizes: Mapping[str, float] | None = None,
    more: Iterable[str] = (),
) -> BuiltScene:
    """Return a scene ready to run and to draw.

    With `at_rest` nothing moves: bodies with a mesh are no more than that. With `refined` soft
    bodies and cloth have meshes twice as fine, and are drawn as before. `sizes` are factors by
    which bodies are larger than declared, by name (`_fixed_point`). Of a `SceneFile`, the
    paths under `free`, and those of `more`, add parameters that are left out of a model where they
    are 0: viscosity, bending damping, lift, drag, drag per mass and actuation.
    """
    free = frozenset((*getattr(scene, "free", {}), *more))
    check_world(scene)
    for name, body in scene.bodies.items():
        if isinstance(body, Pendulum | Smoke):
            return _alone(scene, name, body)
    sizes = sizes or {}
    built = _at_rest(scene, sizes) if at_rest else _moving(scene, free, refined, sizes)
    return _dressed(scene, built)


def _moving(
    scene: Scene, free: frozenset[str], refined: bool, sizes: Mapping[str, float]
) -> BuiltScene:
    """Return bodies, obstacles and the world as one model."""
    gravity = float(np.linalg.norm(scene.world.gravity))
    nodes, rigid = _parts(scene, free, gravity, refined=refined, sizes=sizes)
    rigid = with_pin_points(scene.joints, nodes, rigid)
    rest, forces, touching = _shapes(scene, nodes, rigid)
    if refined:
        before = _shapes(scene, *_parts(scene, free, gravity, refined=False, sizes={}))[2]
        touching = _with_before(touching, before, nodes)
    n = len(rest)
    held = np.concatenate([np.zeros(0, bool), *(body.held for body in nodes)])
    contacts = make_contacts(scene.obstacles, touching, gravity, scene.world)
    between = make_body_contacts(scene.contacts, touching, rest, scene.world.gravity)
    blows = blows_on(scene.obstacles, touching, gravity)
    joints = JointMaker(nodes, rigid, gravity, free, blows).make(scene.joints)
    pushes = make_pushes(scene.pushes, nodes, rigid)
    own_forces = make_own_forces(scene.forces, nodes)
    values, maps = _of_world(scene, forces)
    motions: dict[str, NodeMotion] = {}
    for body in nodes:
        own_values, material, motion = _of_nodes(body, scene.bodies[body.name], gravity, rest)
        values |= own_values
        maps += [*material, motion]
        motions[body.name] = motion
    grips, gripped = make_grips(scene.every_grip, nodes, motions, free)
    for addition in (*rigid, contacts, between, joints, grips, pushes, own_forces):
        values |= addition.values
        maps += addition.maps
    model = Model(
        np.concatenate([np.zeros(0), *(body.mass for body in nodes)]),
        _joined(
            forces | between.forces | joints.forces | pushes.forces | own_forces.forces,
            contacts.forces | grips.forces,
        ),
        gravity=scene.world.gravity,
        pinned=held,
        bodies={body.name: body.bodies for body in rigid},
    )
    at_rest = {body.name: BodyState(body.center) for body in rigid}  # the maps give its values
    start = State(rest if n else None, bodies=at_rest)
    system: Model | Settled
    system, state = model.with_values(start, all_targets(maps, values_of(values)))
    check_apart(scene.contacts, system, state)
    added = (*nodes, contacts, joints, grips, pushes)
    varying = {k: v for addition in added for k, v in addition.varying.items()}
    if scene.world.motion == EQUILIBRIUM:
        if loads := [path for path in varying if path not in paths_in(varying)]:
            raise StudyError(
                f"`{loads[0]}` must be constant where `world.motion` is "
                f'"{EQUILIBRIUM}": what rests has no time. Leave out `seconds`, series and '
                "policies."
            )
        system = Settled(system)
    step = step_of(scene.world)
    per_step = PER_LONG_STEP if step.IS_STABLE else PER_STEP
    bodies = (*nodes, *rigid)
    notes = [note for body in bodies for note in body.notes]
    notes += notes_on_lengths(scene, {body.name: body.size for body in bodies})
    notes += notes_on_pairs(scene.contacts, touching)
    notes += _apart(scene)
    notes += notes_on_paths(scene.obstacles, [*paths_in(grips.varying).values()])
    return BuiltScene(
        system,
        state,
        values,
        maps,
        {body.name: body.mesh for body in bodies},
        {body.name: _subject(body, n) for body in (*rigid, *nodes)},
        held=held if n else None,
        nodes={body.name: body.rows for body in nodes},
        notes=notes + notes_on_start(scene.obstacles, touching),
        varying=varying,
        longest_dt=longest_step(scene.contacts, touching, scene.world.gravity, per_step),
        joints=joint_marks(scene.joints, nodes, rigid),
        sensors=_sensors(scene, touching, gripped),
        links=_links(scene),
        step=step,
        shapes={body.name: body.shape for body in nodes if body.shape is not None},
    )


def _sensors(
    scene: Scene, touching: Sequence[Touching], gripped: Mapping[str, np.ndarray]
) -> dict[str, ForceSensor]:
    """Return what reads the forces of grips, of obstacles, and of obstacles on each body."""
    sensors = {f"{FORCE}{name}": ForceSensor(GripForce, rows) for name, rows in gripped.items()}
    for name, obstacle in scene.obstacles.items():
        pairs = {body.name: f"{name}_{body.name}" for body in chosen(name, obstacle, touching)}
        sensors[f"{OBSTACLE}{name}"] = ForceSensor(ObstacleForce, tuple(pairs.values()))
        for body, pair in pairs.items():
            sensors[f"{OBSTACLE}{name}.{body}"] = ForceSensor(ObstacleForce, (pair,))
    return sensors


def _links(scene: Scene) -> tuple[str, ...]:
    """Return obstacles that bodies carry, contacts between bodies, and joints, in words."""
    pairs = [(name, "contact", contact.between) for name, contact in scene.contacts.items()]
    pairs += [
        (name, IN_WORDS.get(joint.kind, joint.kind), joint.between)
        for name, joint in scene.joints.items()
    ]
    carried = [
        f"{name}: {obstacle.kind} on {obstacle.fixed_to}"
        for name, obstacle in scene.obstacles.items()
        if obstacle.fixed_to
    ]
    linked = [
        f"{name}: {kind} of {f'{a} with itself' if a == b else f'{a} and {b}'}"
        for name, kind, (a, b) in pairs
    ]
    return (*carried, *linked)


def _apart(scene: Scene) -> list[str]:
    """Return a note that names two bodies of a take that neither joints nor contacts link.

    Bodies are linked through others too: an arm need not touch with every part.
    """
    pairs = [link.between for link in (*scene.contacts.values(), *scene.joints.values())]
    for obstacle in scene.obstacles.values():
        if obstacle.fixed_to:
            pairs += [(obstacle.fixed_to, body) for body in obstacle.bodies or scene.bodies]
    linked = {name: {name} for name in scene.bodies}
    for a, b in pairs:
        if a in linked and b in linked:  # one end of a joint may be the world
            linked |= dict.fromkeys(linked[a] | linked[b], linked[a] | linked[b])
    takes = {name: getattr(body, "take", "") for name, body in scene.bodies.items()}
    for a, b in itertools.combinations(takes, 2):
        if takes[a] == takes[b] and b not in linked[a]:
            return [
                "Bodies touch each other only where a table [contacts.NAME] names both of them; "
                f"none names `{a}` and `{b}`."
            ]
    return []


def _shapes(
    scene: Scene, nodes: Sequence[NodePart], rigid: Sequence[RigidPart]
) -> tuple[np.ndarray, dict[str, Force], list[Touching]]:
    """Return all nodes at rest, (n, 3) [m], the bodies' forces, and bodies as contacts see them."""
    rest = np.concatenate([np.zeros((0, 3)), *(body.points for body in nodes)])
    forces = {name: force for body in nodes for name, force in body.forces(rest).items()}
    return rest, forces, _touching(scene, nodes, rigid, node_stiffness(forces, len(rest)))


def _with_before(
    touching: Sequence[Touching], before: Sequence[Touching], nodes: Sequence[NodePart]
) -> list[Touching]:
    """Return bodies with what they were before their meshes were made twice as fine."""
    means = {}
    for body in nodes:
        if body.finer is not None:  # nodes of its surface lie between nodes of the surface before
            old_nodes = body.touching[body.touching < body.finer.n_before]
            means[body.name] = body.finer.means[body.touching][:, old_nodes]
    return [
        replace(body, before=other, means=means[body.name]) if body.name in means else body
        for body, other in zip(touching, before, strict=True)
    ]


def _parts(
    scene: Scene,
    free: frozenset[str],
    gravity: float,
    *,
    refined: bool,
    sizes: Mapping[str, float],
) -> tuple[list[NodePart], list[RigidPart]]:
    """Return the bodies made of nodes, with their places in the model, and the rigid ones."""
    nodes: list[NodePart] = []
    rigid: list[RigidPart] = []
    for name, body in scene.bodies.items():
        match body:
            case Soft():
                nodes.append(make_soft(name, body, free, refined=refined))
            case Cloth():
                nodes.append(make_cloth(name, body, free, refined=refined))
            case Springs():
                nodes.append(make_springs(name, body))
            case Rigid():
                rigid.append(make_rigid(name, body, gravity, free))
                if name in sizes:
                    points = rigid[-1].bodies.meshes[0].points
                    resized = sizes[name], _fixed_point(scene, name, points)
                    rigid[-1] = make_rigid(name, body, gravity, free, resized=resized)
    grips = scene.every_grip
    nodes = [with_grips(body.with_drag(scene.bodies[body.name], free), grips) for body in nodes]
    nodes = [
        body.resized(sizes[body.name], body.points[_stays(scene, body)].mean(axis=0))
        if body.name in sizes
        else body
        for body in nodes
    ]
    nodes = [
        body if body.shape is None else replace(body, shape=body.shape.about(_stays(scene, body)))
        for body in nodes
    ]
    ends = np.cumsum([0, *(len(body.points) for body in nodes)]).tolist()
    return [replace(body, first=end) for body, end in zip(nodes, ends, strict=False)], rigid


def _fixed_point(scene: Scene, name: str, points: np.ndarray) -> np.ndarray:
    """Return the point of a body that stays where it is declared if it is larger, (3,) [m]."""
    return points[_touching_or_all(scene, name, points)].mean(axis=0)


def _stays(scene: Scene, body: NodePart) -> np.ndarray:
    """Return the nodes whose middle stays where it is declared if a body is larger, a mask.

    Those are the ones that are held, or touch an obstacle, or all; of a mesh that was made finer
    those of the mesh before, so that the middle is the same.
    """
    n = len(body.points) if body.finer is None else body.finer.n_before
    held = body.held[:n]
    stays = held if held.any() else _touching_or_all(scene, body.name, body.points[:n])
    return np.pad(stays, (0, len(body.points) - n))


def _touching_or_all(scene: Scene, name: str, points: np.ndarray) -> np.ndarray:
    """Return which points of a body touch an obstacle, (n,); all where none does."""
    near = TOUCHES * float(np.ptp(points, axis=0).max())
    for key, obstacle in scene.obstacles.items():
        if obstacle.fixed_to is None and name in (obstacle.bodies or scene.bodies):
            touches = shape_of(key, obstacle).distance(points) < near
            if touches.any():
                return touches
    return np.ones(len(points), bool)


def _at_rest(scene: Scene, sizes: Mapping[str, float]) -> BuiltScene:
    """Return bodies with a mesh as they are seen where nothing moves: as their surfaces."""
    meshes, subjects, maps = {}, {}, []
    values: dict[str, Value] = {}
    for name, body in scene.bodies.items():
        with_mesh: Any = body
        key, path = f"bodies.{name}", f"{name}.vertices"
        source = read_source(key, with_mesh)
        surface = surface_of(key, source)
        if name in sizes:
            fixed = _fixed_point(scene, name, surface.points)
            surface = replace(surface, points=fixed + sizes[name] * (surface.points - fixed))
        low, high = surface.points.min(axis=0), surface.points.max(axis=0)
        size = float((high - low).max())
        moved = motion_values(name, with_mesh, size, 0.0)
        values[path] = Value(surface.points, "m", "linear", (-np.inf, np.inf), scale=size / 2.0)
        values |= {path: moved[path] for path in (f"{name}.position", f"{name}.rotation")}
        maps.append(RestingPose(name, 0.5 * (low + high), np.asarray(with_mesh.position)))
        meshes[name] = drawn_mesh(f"{key}.look", with_mesh.look, surface, source)
        subjects[name] = Still(path=path)
    system = AtRest(all_targets(maps, values_of(values)))
    return BuiltScene(system, SimpleNamespace(), values, maps, meshes, subjects)


def _dressed(scene: Scene, built: BuiltScene) -> BuiltScene:
    """Return a scene with its lights and the obstacles that are drawn.

    Under a sky flat colours are those of faces: it takes the place of the material, in which they
    are otherwise.
    """
    meshes, subjects = dict(built.meshes), dict(built.subjects)
    for name, obstacle in scene.obstacles.items():
        if obstacle.draw:
            shape = shape_of(name, obstacle)
            meshes[name], points = shape.drawn()
            subjects[name] = Still(points)
            moving = getattr(built.system, "bodies", {})
            track, along = shape.track
            path = f"{name}_{next(iter(obstacle.bodies or scene.bodies))}.{track}"
            if led := paths_in(built.varying).get(path):
                subjects[name] = Sliding(points, path, shape.pose[track], led.times, along)
            if obstacle.fixed_to and obstacle.fixed_to in moving:
                (center,) = moving[obstacle.fixed_to].centers
                subjects[name] = Carried.by(obstacle.fixed_to, points - center)
    if any(isinstance(light, Sky) for light in scene.lights.values()):
        for name, mesh in meshes.items():
            if mesh.vertex_colors is None and mesh.texture is None:
                owner: Any = scene.bodies.get(name) or scene.obstacles[name]
                colors = np.tile(owner.look.color, (len(mesh.faces), 1))
                meshes[name] = replace(mesh, face_colors=colors)
    return replace(built, meshes=meshes, subjects=subjects, lights=_lights_of(scene))


def _alone(scene: Scene, name: str, body: Pendulum | Smoke) -> BuiltScene:
    """Return a pendulum or smoke."""
    if len(scene.bodies) > 1:
        other = next(key for key in scene.bodies if key != name)
        raise StudyError(
            f"`bodies.{name}` is a {body.kind}, which must be alone in its scene: take out "
            f"`bodies.{other}`."
        )
    for table in ("obstacles", "contacts", "joints"):
        if getattr(scene, table):
            raise StudyError(
                f"`{table}` must be left out of a scene of a {body.kind}, which touches nothing."
            )
    if isinstance(body, Smoke):
        return BuiltScene(*make_smoke(name, body), dt=1.0 / body.steps_per_second)
    system, state, values, maps, series = make_pendulum(name, body, scene.world.gravity)
    mesh, rods = drawn_pendulum(name, body)
    return BuiltScene(
        system, state, values, maps, {name: mesh}, {name: rods}, _lights_of(scene), varying=series
    )


def _lights_of(scene: Scene) -> dict[str, Lit]:
    """Return the lights of a scene; "sun", the default one, where there is none."""
    lights = scene.lights or {"sun": Light()}
    return {name: _light(light) for name, light in lights.items()}


def _light(light: Light | Sky) -> Lit:
    if isinstance(light, Light):
        return DirectionalLight(light.direction, light.color)
    even = np.zeros((N_HARMONICS, 3))
    even[0] = 1.0 / Y0
    return SphericalHarmonics(even if light.coefficients is None else light.coefficients)


def _of_world(
    scene: Scene, forces: Mapping[str, Force]
) -> tuple[dict[str, Value], list[ParameterMap]]:
    """Return gravity, its direction and wind as values, and their maps."""
    gravity = np.array(scene.world.gravity)
    values: dict[str, Value] = {GRAVITY: linear(gravity, "m/s2", 10.0)}
    maps: list[ParameterMap] = [Scaled(GRAVITY, {"gravity": 1.0})]
    if gravity.any():
        values[DIRECTION] = linear(np.zeros(2), "deg", MOST_TILT)
        maps = [Turned(gravity)]
    windy = [name for name, force in forces.items() if isinstance(force, LiftDrag)]
    if windy:
        values["world.wind"] = linear(scene.world.wind, "m/s", 20.0)
        maps.append(Scaled("world.wind", {f"{name}.wind": 1.0 for name in windy}))
    return values, maps


def _of_nodes(
    node_part: NodePart, body: Any, gravity: float, rest: np.ndarray
) -> tuple[dict[str, Value], list[ParameterMap], NodeMotion]:
    """Return the values of a body among all nodes, their maps, and that to where it starts.

    `rest` are the rest positions of all nodes, (n, 3) [m].
    """
    name, is_free, n = node_part.name, ~node_part.held, len(rest)
    values = node_part.values | motion_values(name, body, node_part.size, gravity)
    bounds = values[f"{name}.velocity"].bounds
    velocities = node_part.node_velocity
    fastest = float(np.abs(velocities).max())
    values[f"{name}.node_velocity"] = Value(
        velocities[is_free], "m/s", "linear", (bounds[0] - fastest, bounds[1] + fastest)
    )
    shape = node_part.shape
    motion = NodeMotion(
        name, node_part.points, node_part.center, np.asarray(body.position),
        is_free=is_free, rows=node_part.rows, n=n, shape=shape,
    )  # fmt: skip
    maps = [*node_part.material, node_part.mass_map(node_part.rows, n)]
    if shape is not None:
        maps.append(RestShape(shape, rest, node_part.rows))
    return values, maps, motion


def _touching(
    scene: Scene, nodes: Sequence[NodePart], rigid: Sequence[RigidPart], stiffness: np.ndarray
) -> list[Touching]:
    """Return all bodies as contacts see them, in the order of the scene."""
    bodies: dict[str, Any] = dict(scene.bodies)
    velocities = {name: np.array(uniform_velocity(body)) for name, body in bodies.items()}
    speeds = {name: float(np.linalg.norm(velocity)) for name, velocity in velocities.items()}
    by_name = {}
    for body in nodes:
        touching = body.touching
        rows = body.first + touching
        speed = speeds[body.name] + float(np.linalg.norm(body.node_velocity, axis=1).max())
        by_name[body.name] = Touching(
            body.name, body.points[touching], body.mass[touching], body.size, speed,
            nodes=rows, held_with=stiffness[rows], velocity=velocities[body.name],
            faces=None if body.faces is None else body.first + body.faces,
            is_solid=not isinstance(bodies[body.name], Cloth),
        )  # fmt: skip
    for body in rigid:
        mesh, mass = body.bodies.meshes[0], body.bodies.masses[0]
        struck = struck_mass(body.name, body.bodies, scene.joints) if body.ball is None else mass
        by_name[body.name] = Touching(
            body.name, mesh.points, mass, body.size, speeds[body.name], is_rigid=True,
            struck=float(struck), ball=body.ball,
            faces=mesh.faces, n_rows=len(body.bodies.arms), velocity=velocities[body.name],
            center=body.center,
        )  # fmt: skip
    return [by_name[name] for name in bodies]


def _joined(forces: Mapping[str, Force], contacts: Mapping[str, Force]) -> dict[str, Force]:
    """Return all forces; raise if two have one name."""
    for name in contacts:
        if name in forces:
            raise StudyError(
                f"`obstacles` and `bodies` must not make one name, but {name!r} is that of a body "
                "or push, and of the contact between an obstacle and another body. Rename one."
            )
    return {**forces, **contacts}


def _subject(body: NodePart | RigidPart, n: int) -> Subject:
    """Return where the drawn vertices of a body are; the model has n nodes."""
    if isinstance(body, RigidPart):
        return Hulls(body.name, body.has_vertex_masses)
    skin = scipy.sparse.coo_array(body.skin)
    row, column = skin.coords
    entries, shape = (skin.data, (row, body.first + column)), (len(body.skin.indptr) - 1, n)
    return Skin(scipy.sparse.csr_array(entries, shape=shape), body.offset)
