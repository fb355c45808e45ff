"""What the tables of a scene must agree on: names, references, cameras, films, bounds and ties."""

import dataclasses
from typing import Any

import numpy as np

from studies.runs.errors import StudyError, error_of
from studies.scene import declared
from studies.scene.declared import Scene, SceneFile
from studies.scene.joining import check_contact, check_joined, check_joint
from studies.scene.likely_units import notes_on_units
from studies.scene.overrides import OWNERS
from studies.scene.shared_checks import check_direction, check_held, check_law, check_reference
from studies.scene.tables import joined


# Keys of observations that say how a file is read.
OF_FILES = (
    "masks", "fps", "times", "frames", "downsample", "points", "units", "rotation", "position",
    "box", "most_points", "scale",
)  # fmt: skip
LEAST_CELLS = 6  # of a hull along its longest side
RESERVED = ("mass", "gravity", "state", "camera", "rasterizer", "world", *OWNERS)
# Ends of paths of what acts on what moves alone.
OF_MOTION = (
    ".viscosity", ".damping", ".bending_damping", ".drag_rate", ".velocity", ".spin",
    ".node_velocity", ".friction", ".friction_stiffness", ".dissipation", ".restitution",
)  # fmt: skip
ORTHONORMAL = 1e-3  # largest entry of R R^T - 1
PARALLEL = 1e-6  # sine of the angle between view and up
Check = tuple[Any, ...]  # a function that raises on a mistake, and what it is given


def check_scene(scene: Scene, source: str = "the scene") -> None:
    """Raise a StudyError on all things in a scene, or scene file, that do not fit.

    Where there are several, the error says that they are in `source`.
    """
    _check_names(scene)
    checks = _world_checks(scene)
    if isinstance(scene, SceneFile):
        checks += _file_checks(scene)
    _raise_all(checks, source)


def check_world(scene: Scene) -> None:
    """Raise on all things that do not fit of what is there to move and to see."""
    _check_names(scene)
    _raise_all(_world_checks(scene), "the scene")


def _raise_all(checks: list[Check], source: str) -> None:
    mistakes: dict[str, None] = {}  # two checks may find the same
    for check, *given in checks:
        try:
            check(*given)
        except StudyError as error:
            mistakes[str(error)] = None
    if mistakes:
        raise error_of(list(mistakes), source)


def _world_checks(scene: Scene) -> list[Check]:
    """Return the checks of bodies, obstacles, contacts, joints, pushes, cameras and lights."""
    checks: list[Check] = [
        (_check_body, joined("bodies", name), body) for name, body in scene.bodies.items()
    ]
    for name, obstacle in scene.obstacles.items():
        key = f"obstacles.{name}"
        checks += [
            (check_reference, f"{key}.bodies", "body", body, scene.bodies)
            for body in obstacle.bodies or ()
        ]
        checks.append((_check_obstacle, key, obstacle, scene))
    if scene.world.motion == declared.EQUILIBRIUM:
        pinned = {name for joint in scene.joints.values() for name in joint.between}
        pinned |= {grip.body for grip in scene.grips.values()}
        checks += [(_check_settles, name, body, pinned) for name, body in scene.bodies.items()]
    if scene.world.step != declared.SEMI_IMPLICIT:
        checks.append((_check_step, scene.world))
        checks += [(_check_steps, name, body, scene.world) for name, body in scene.bodies.items()]
    carriers = {name for joint in scene.joints.values() for name in joint.between}
    carriers |= {obstacle.fixed_to for obstacle in scene.obstacles.values()}
    checks += [
        (_check_vertex_masses, name, body, carriers)
        for name, body in scene.bodies.items()
        if isinstance(getattr(body, "vertex_mass", None), tuple)
    ]
    checks += [(check_contact, name, scene) for name in scene.contacts]
    checks += [(check_joint, name, scene) for name in scene.joints]
    checks += [(_check_grip, name, grip, scene) for name, grip in scene.grips.items()]
    checks += [(_check_push, f"pushes.{name}", push, scene) for name, push in scene.pushes.items()]
    with_mesh = [name for name, body in scene.bodies.items() if hasattr(body, "mesh")]
    checks += [
        (check_reference, f"forces.{name}.body", "body with a mesh", force.body, with_mesh)
        for name, force in scene.forces.items()
    ]
    checks += [(_check_camera, f"cameras.{name}", camera) for name, camera in scene.cameras.items()]
    for name, light in scene.lights.items():
        if isinstance(light, declared.Sky):
            checks.append((_check_sky, f"lights.{name}", light, scene))
        else:
            checks.append((check_direction, f"lights.{name}.direction", light.direction))
    return checks


def _file_checks(scene: SceneFile) -> list[Check]:
    """Return the checks of observations, truth and what is free."""
    checks: list[Check] = [
        (_check_observation, f"observations.{name}", observation, scene)
        for name, observation in scene.observations.items()
    ]
    for path, free in scene.free.items():
        checks.append((_check_free, path, free, scene))
        checks.append((check_joined, joined("free", path), path, scene))
        checks.append((_check_drawn, f"{joined('free', path)}.start", free.start))
    for path, value in scene.truth.items():
        checks.append((_check_truth, path, value, scene))
        checks.append((_check_drawn, joined("truth", path), value))
    return [*checks, (_check_simulated, scene)]


def _check_truth(path: str, value: Any, scene: SceneFile) -> None:
    key, (head, *names) = joined("truth", path), path.split(".")
    if head != "bodies" or not names:
        if isinstance(value, str):
            raise StudyError(f"`{key}` must be a number, or several, got {value!r}.")
        _check_path(key, path, scene)
        return
    name, *keys = names
    check_reference(key, "body", name, scene.bodies)
    if len(keys) != 1:
        raise StudyError(f"`{key}` must name one key, such as bodies.{name}.mesh, got {path!r}.")
    known = [field.name for field in dataclasses.fields(scene.bodies[name])]
    check_reference(key, "key", keys[0], known)


def _check_simulated(scene: SceneFile) -> None:
    of_views = {
        f"bodies.{name}.mesh"
        for name, body in scene.bodies.items()
        if getattr(body, "mesh", None) == declared.FROM_VIEWS
    }
    hidden = [
        path for path, value in scene.truth.items()
        if (path.startswith("bodies.") and path not in of_views)
        or isinstance(value, declared.Drawn)
    ]  # fmt: skip
    is_only_compared = scene.truth and not scene.is_simulated
    if is_only_compared and (hidden or scene.purpose == "control"):
        what = f'`truth."{hidden[0]}"`' if hidden else "`truth`"
        raise StudyError(
            f"{what} needs an observation that is simulated: give one a table `simulate`, or leave "
            "it out. What was measured otherwise is a number."
        )
    if scene.blind and not dataclasses.replace(scene, blind=False).is_twin:
        raise StudyError(
            "`blind` must be false where an observation is footage, whose truth nobody knows; "
            "leave out `--blind`, or give every observation a table `simulate`."
        )
    if scene.blind and scene.purpose == "control":
        raise StudyError('`blind` must be false where `purpose` is "control": a goal is given.')


def _check_names(scene: Scene) -> None:
    """Raise if there is no body, or a name is no identifier, reserved, or taken."""
    taken: dict[str, str] = {}
    if not scene.bodies:
        raise StudyError(
            "`bodies` must hold at least one body: add a table [bodies.NAME] with its kind."
        )
    for table in OWNERS:
        for name in getattr(scene, table, {}):
            key = joined(table, name)
            if not name.isidentifier():
                raise StudyError(
                    f"`{key}`: a name must be letters, digits and _, not first a digit, got "
                    f"{name!r}."
                )
            if table == "observations":
                continue
            if name in RESERVED:
                raise StudyError(f"`{key}`: the name {name!r} has a meaning of its own. Rename it.")
            if name in taken:
                raise StudyError(
                    f"`{key}`: the name {name!r} is that of `{taken[name]}.{name}` already. Rename "
                    "one of the two."
                )
            taken[name] = table


def camera_of(key: str, camera: str | None, scene: Scene) -> str:
    """Return the name of the camera of an observation: the one that it names, or the only one."""
    if camera is not None:
        check_reference(f"{key}.camera", "camera", camera, scene.cameras)
        return camera
    if not scene.cameras:
        raise StudyError(
            f"`{key}` needs a camera: add a table [cameras.NAME] with eye, target and fov_y, or "
            "with K, R and t."
        )
    if len(scene.cameras) > 1:
        raise StudyError(
            f"`{key}.camera` is missing: with several cameras, say which of "
            f"{', '.join(scene.cameras)} it is."
        )
    return next(iter(scene.cameras))


def _check_camera(key: str, camera: declared.Camera) -> None:
    """Raise if pose or lens of a camera is missing or there twice, or its axes are none."""
    ways = "Give eye, target and fov_y, or K, R and t."
    at = [name for name in ("eye", "target") if getattr(camera, name) is not None]
    cv = [name for name in ("R", "t") if getattr(camera, name) is not None]
    lens = [name for name in ("fov_y", "K") if getattr(camera, name) is not None]
    for first, second in ((at, cv), (lens[:1], lens[1:])):
        if first and second:
            both = f"{' and '.join(first)} as well as {' and '.join(second)}"
            raise StudyError(f"`{key}` has {both}: one is enough. {ways}")
    pose = ("R", "t") if cv else ("eye", "target")
    missing = [name for name in pose if name not in at + cv]
    missing += [] if lens else ["K" if cv else "fov_y"]
    if missing:
        given = f"it has only {', '.join(at + cv + lens)}" if at + cv + lens else "it has none"
        raise StudyError(f"`{key}` needs {' and '.join(missing)}: {given}. {ways}")
    _check_opencv(key, camera)
    if camera.position_error == 0.0 < camera.angle_error:
        raise StudyError(
            f"`{key}.position_error` must be above 0 where `angle_error` is, got 0 and "
            f"{camera.angle_error:g}. Set both to 0 if the pose is known exactly."
        )
    if camera.eye is not None and camera.target is not None:
        view, up = np.subtract(camera.target, camera.eye), np.array(camera.up)
        if not view.any():
            raise StudyError(f"`{key}.target` must differ from eye, got {list(camera.target)}.")
        check_direction(f"{key}.up", camera.up)
        across = np.linalg.norm(np.cross(view, up))
        if across < PARALLEL * np.linalg.norm(view) * np.linalg.norm(up):
            raise StudyError(
                f"`{key}.up` must not be along the view from eye to target, got {list(camera.up)}."
            )


def _check_settles(name: str, body: Any, joined_ones: set[str]) -> None:
    if not isinstance(body, declared.Soft | declared.Cloth | declared.Springs):
        raise StudyError(
            f"`bodies.{name}` must be soft, cloth or springs where `world.motion` is "
            f'"equilibrium", got {body.kind}. Take it out, or let it move.'
        )
    if (body.velocity, body.spin) != ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)):
        raise StudyError(
            f"`bodies.{name}.velocity` and `spin` must be left out where `world.motion` is "
            '"equilibrium", since nothing moves.'
        )
    if body.held is None and name not in joined_ones:
        raise StudyError(
            f"`bodies.{name}.held` is missing: where `world.motion` is "
            '"equilibrium" something must hold every body, or a pin to another. On what it touches '
            "it could slide, since friction does not act at rest."
        )


def _check_step(world: declared.World) -> None:
    if world.step != declared.IMPLICIT and ":" not in world.step:
        raise StudyError(
            f'`world.step` must be "{declared.SEMI_IMPLICIT}", "{declared.IMPLICIT}" or '
            f"module:Class, got {world.step!r}."
        )
    if world.motion == declared.EQUILIBRIUM:
        raise StudyError(
            '`world.step` must be left out where `world.motion` is "equilibrium", got '
            f'"{world.step}": what rests takes no steps.'
        )


def _check_steps(name: str, body: Any, world: declared.World) -> None:
    if not isinstance(body, declared.Soft | declared.Cloth | declared.Springs | declared.Rigid):
        raise StudyError(
            f"`bodies.{name}` must be soft, cloth, springs or rigid where `world.step` is "
            f'"{world.step}", got {body.kind}. Take it out, or leave `world.step` out.'
        )


def _check_body(key: str, body: Any) -> None:
    """Raise if a body has no mesh, or is held where it cannot be."""
    if hasattr(body, "mesh"):
        if body.mesh is None:
            raise StudyError(
                f"`{key}.mesh` is missing: give a file, "
                '"pyvista:NAME", "shape:NAME", or a generator such as "box".'
            )
        if body.mesh == declared.FROM_VIEWS:
            _check_from_views(key, body)
        if body.held is not None:
            if isinstance(body, declared.Rigid):
                raise StudyError(
                    f"`{key}.held`: a rigid body has no nodes to hold. Leave it out, or make an "
                    "obstacle of it."
                )
            check_held(f"{key}.held", body.held, may_move=True)
        if isinstance(body, declared.Rigid) and isinstance(body.velocity, str):
            raise StudyError(
                f"`{key}.velocity` must be a vector for a rigid body, got {body.velocity!r}: its "
                "points move as one. Give `spin` too if it turns."
            )
    for name in ("actuation", "bending_actuation"):
        policy = getattr(body, name, None)
        if isinstance(policy, declared.Policy) and policy.where is not None:
            check_held(f"{key}.{name}.where", policy.where)
    if isinstance(body, declared.Pendulum):
        _check_pendulum(key, body)


def _check_vertex_masses(name: str, body: declared.Rigid, carriers: set[str | None]) -> None:
    if name in carriers or body.touches == "ball":
        raise StudyError(
            f"`bodies.{name}.vertex_mass` must be one number for a body that joints link, that "
            "carries an obstacle or that touches as a ball: with one for each vertex its centre of "
            "mass moves in the mesh."
        )


def _check_from_views(key: str, body: Any) -> None:
    for field in dataclasses.fields(body):
        is_given = getattr(body, field.name) != field.default
        if is_given and field.name in ("size", "scale", "position", "rotation"):
            raise StudyError(
                f"`{key}.{field.name}` must be left out where `{key}.mesh` is "
                f'"{declared.FROM_VIEWS}": the body is where the cameras see it.'
            )
    if body.cells is not None and (len(body.cells) != 1 or body.cells[0] < LEAST_CELLS):
        raise StudyError(
            f"`{key}.cells` must be one whole number of at least {LEAST_CELLS}, along the longest "
            f"side of the hull, got {list(body.cells)}."
        )
    if body.take and hasattr(body, "shape_error"):
        raise StudyError(
            f'`{key}.mesh` must not be "{declared.FROM_VIEWS}" where there are takes: each would '
            "build the body anew, with other modes of its shape. Give a mesh, or make a scene file "
            "for each take."
        )


def _check_obstacle(key: str, obstacle: Any, scene: Scene) -> None:
    check_law(key, obstacle)
    if obstacle.fixed_to is not None:
        rigid = [k for k, body in scene.bodies.items() if isinstance(body, declared.Rigid)]
        check_reference(f"{key}.fixed_to", "rigid body", obstacle.fixed_to, rigid)
        named = list(obstacle.bodies or ())
        if obstacle.fixed_to in named or len(scene.bodies) < 2:
            raise StudyError(
                f"`{key}.bodies` must be other bodies than `{obstacle.fixed_to}`, which carries "
                f"the obstacle, got {named or list(scene.bodies)}."
            )
        if obstacle.path is not None:
            raise StudyError(f"`{key}` must have `fixed_to` or `path`: it moves with its body.")
    if hasattr(obstacle, "normal"):
        check_direction(f"{key}.normal", obstacle.normal)


def _check_push(key: str, push: declared.Push, scene: Scene) -> None:
    with_mesh = [name for name, body in scene.bodies.items() if hasattr(body, "mesh")]
    check_reference(f"{key}.body", "body with a mesh", push.body, with_mesh)
    if push.nodes and push.at != "centre":
        raise StudyError(f"`{key}` must have `at` or `nodes`, got both.")
    if push.seconds is None:
        return
    if isinstance(push.force, str):
        raise StudyError(f"`{key}.seconds` must be left out beside a series, which has its times.")
    if not push.seconds[0] < push.seconds[1]:
        raise StudyError(
            f"`{key}.seconds` must be [first, last] with first < last, got {list(push.seconds)}."
        )


def _check_grip(name: str, grip: declared.Grip, scene: Scene) -> None:
    kinds = declared.Soft | declared.Cloth | declared.Springs
    soft = [key for key, body in scene.bodies.items() if isinstance(body, kinds)]
    check_reference(f"grips.{name}.body", "soft body, cloth or body of springs", grip.body, soft)
    check_held(f"grips.{name}.where", grip.where)


def _check_pendulum(key: str, body: declared.Pendulum) -> None:
    n_links = len(body.length)
    if n_links not in (1, 2):
        raise StudyError(f"`{key}.length` must have one or two links, got {n_links}.")
    lists = ("angle", "rate", "mass", "center_of_mass", "inertia", "damping", "friction", "torque")
    for name in (*lists, "bob_radius", "rod_radius", "bob_color", "rod_color"):
        values = getattr(body, name)
        is_for_all = not isinstance(values, tuple) or (
            name.endswith("color") and values and not isinstance(values[0], tuple)
        )
        if not is_for_all and len(values) != n_links:
            raise StudyError(
                f"`{key}.{name}` must have one value for each link, {n_links} as `length` has, got "
                f"{len(values)}."
            )


def _check_opencv(key: str, camera: declared.Camera) -> None:
    if camera.K is not None:
        (fx, _, _), (k10, fy, _), last = camera.K
        if not (fx > 0.0 and fy > 0.0 and k10 == 0.0 and last == (0.0, 0.0, 1.0)):
            raise StudyError(
                f"`{key}.K` must read [[fx, s, cx], [0, fy, cy], [0, 0, 1]] with positive fx and "
                f"fy, got {[list(row) for row in camera.K]}."
            )
    if camera.R is not None:
        R = np.array(camera.R)
        off = np.abs(R @ R.T - np.eye(3)).max()
        if off > ORTHONORMAL or np.linalg.det(R) < 0.0:
            raise StudyError(
                f"`{key}.R` must be a rotation: its rows orthogonal, of length 1 and right-handed, "
                f"got {[list(row) for row in camera.R]}."
            )


def _check_source(key: str, spec: declared.Observation) -> None:
    if not spec.SOURCE:
        return
    if (getattr(spec, spec.SOURCE) is None) == (spec.simulate is None):
        given = "both" if spec.simulate else "neither"
        raise StudyError(f"`{key}` must have `{spec.SOURCE}` or a table `simulate`, got {given}.")
    if spec.simulate is None:
        return
    for name in OF_FILES:
        value = getattr(spec, name, None)
        if value and value != getattr(type(spec), name, None):  # its default
            raise StudyError(f"`{key}.{name}` must be left out of what is simulated.")


def _check_drawn(key: str, value: Any) -> None:
    if isinstance(value, tuple):
        for entry in value:
            _check_drawn(key, entry)
    if not isinstance(value, declared.Drawn):
        return
    if (value.between is None) == (value.normal is None):
        raise StudyError(f"`{key}` must be drawn by `between` or `normal`, one of the two.")
    if value.between and value.between[0] > value.between[1]:
        raise StudyError(
            f"`{key}.between` must be [low, high], got [{value.between[0]:g}, "
            f"{value.between[1]:g}]."
        )


def _check_cell(key: str, spec: declared.Force, scene: SceneFile) -> None:
    if (spec.grip is None) == (spec.obstacle is None):
        raise StudyError(f"`{key}` must have a `grip` or an `obstacle`, whose force it is: one.")
    if spec.obstacle is None:
        grips = scene.every_grip
        check_reference(f"{key}.grip", "grip or body with `held`", str(spec.grip), grips)
        if spec.body is not None:
            raise StudyError(f"`{key}.body` must be left out: it is for the force of an obstacle.")
        return
    check_reference(f"{key}.obstacle", "obstacle", spec.obstacle, scene.obstacles)
    touching = scene.obstacles[spec.obstacle].bodies
    if spec.body is not None and touching is not None:
        what = f"body that may touch `obstacles.{spec.obstacle}`"
        check_reference(f"{key}.body", what, spec.body, touching)


def _check_observation(key: str, spec: Any, scene: SceneFile) -> None:
    """Raise if an observation names a body or camera that is not there, or frames that are none."""
    _check_source(key, spec)
    frames = getattr(spec, "frames", None)
    if frames and (not 0 <= frames[0] < frames[1] or min(frames[2:], default=1) < 1):
        raise StudyError(
            f"`{key}.frames` must be [first, end], or of a film [first, end, step], with "
            f"0 <= first < end and a step of at least 1, got {list(frames)}."
        )
    if getattr(spec, "body", None) is not None:
        check_reference(f"{key}.body", "body", spec.body, scene.bodies)
    if isinstance(spec, declared.Force):
        _check_cell(key, spec, scene)
        if spec.axis is not None:
            check_direction(f"{key}.axis", spec.axis)
    if isinstance(spec, declared.Encoder):
        check_reference(f"{key}.joint", "joint", spec.joint, scene.joints)
    for body in getattr(spec, "bodies", None) or ():
        check_reference(f"{key}.bodies", "body", body, scene.bodies)
    is_smoke = all(isinstance(body, declared.Smoke) for body in scene.bodies.values())
    camera = getattr(spec, "camera", None)
    if camera is not None or (spec.NEEDS_CAMERA and not is_smoke):
        camera_of(key, camera, scene)
    background = getattr(spec, "background", None)
    if background and background.color is not None and background.picture is not None:
        raise StudyError(f"`{key}.background` has both color and picture: give one of them.")


def _check_free(path: str, free: declared.Free, scene: SceneFile) -> None:
    """Raise if a free path leads nowhere or changes nothing, or bounds, start or tie do not fit."""
    key = joined("free", path)
    _check_path(key, path, scene)
    if scene.world.motion == declared.EQUILIBRIUM and path.endswith(OF_MOTION):
        raise StudyError(
            f"`{key}` must be left out: it has no effect where `world.motion` is "
            '"equilibrium", since nothing moves.'
        )
    if path == "world.gravity_direction" and "world.gravity" in scene.free:
        raise StudyError(
            f'`{key}` must be left out beside `free."world.gravity"`, whose direction is free '
            "already."
        )
    try:
        _check_bounds(key, free, _start_in_scene(path, scene) if free.start is None else free.start)
    except StudyError as error:
        keys = (f"`bodies.{path}`", f"`{path}`")
        hints = [note for note in notes_on_units(scene) if note.startswith(keys)]
        raise StudyError(" ".join([str(error), *hints])) from None
    if free.tied_to is not None:
        _check_tie(key, path, free.tied_to, scene)


def _check_path(key: str, path: str, scene: SceneFile) -> None:
    """Raise if the first names of a scene path, which `key` gives, lead nowhere."""
    head, *rest = path.split(".")
    tables = ("pushes", "forces", "cameras", "lights", "observations")
    named = {table: getattr(scene, table) for table in tables} | {"grips": scene.every_grip}
    if not rest:
        raise StudyError(
            f"`{key}` must be a path such as duck.E or cameras.front.position, got {path!r}."
        )
    if head in named:
        check_reference(key, f"name in `{head}`", rest[0], named[head])
    elif head != "world":
        owners = (*scene.bodies, *scene.obstacles, *scene.contacts, *scene.joints)
        check_reference(key, "body or obstacle", head, (*owners, "world", *named))


def _check_bounds(key: str, free: declared.Free, start: Any) -> None:
    """Raise if the bounds are none, or exclude the start."""
    if free.bounds is None:
        return
    low, high = free.bounds
    if not low < high:
        raise StudyError(
            f"`{key}.bounds` must be [low, high] with low < high, got [{low:g}, {high:g}]."
        )
    if free.transform == "log" and not low > 0.0:
        raise StudyError(
            f'`{key}.bounds` must be positive where transform is "log", got [{low:g}, {high:g}].'
        )
    numbers = start if isinstance(start, tuple) else (start,)
    for number in numbers:
        if isinstance(number, float | int) and not low <= number <= high:
            where = "`start`" if free.start is not None else "the scene's value"
            raise StudyError(
                f"`{key}.bounds` must hold {where}, {number:g}, got [{low:g}, {high:g}]. Widen "
                "them, or start elsewhere."
            )


def _start_in_scene(path: str, scene: SceneFile) -> Any:
    """Return the value that the scene file has at a path, None if it has none there."""
    swings = any(isinstance(body, declared.Pendulum) for body in scene.bodies.values())
    if path == "world.gravity" and swings:
        return -scene.world.gravity[1]  # of a pendulum it is one number, downwards
    here: Any = scene
    parts = path.split(".")
    for table in (scene.bodies, scene.obstacles, scene.contacts, scene.joints):
        if parts[0] in table:
            here = table
    for key in parts:
        here = here.get(key) if isinstance(here, dict) else getattr(here, key, None)
    return here


def _check_tie(key: str, path: str, other: str, scene: SceneFile) -> None:
    others = [name for name in scene.free if name != path]
    check_reference(f"{key}.tied_to", "free path", other, others)
    if scene.free[other].tied_to is not None:
        raise StudyError(
            f"`{key}.tied_to`: {other} is tied to {scene.free[other].tied_to} itself. Tie both to "
            "that one."
        )
    if scene.free[path].factor == 0.0:
        raise StudyError(f"`{key}.factor` must not be 0, which ties {path} to nothing.")


def _check_sky(key: str, light: declared.Sky, scene: Scene) -> None:
    if len(scene.lights) > 1:
        raise StudyError(
            f"`{key}` is a sky, which stands for all light at once, but there are also "
            f"{', '.join(name for name in scene.lights if key != f'lights.{name}')}. Leave them "
            "out."
        )
    if light.coefficients is not None and len(light.coefficients) != 9:
        raise StudyError(
            f"`{key}.coefficients` must be nine rows of red, green and blue, got "
            f"{len(light.coefficients)}."
        )
