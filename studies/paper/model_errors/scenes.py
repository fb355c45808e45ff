"""A body drawn by seed and number, its video, and a model that is not quite that of the video.

A body is thrown onto a floor, where it bounces and slides, and a known force pushes it all the
time: that one is in newtons, so the mass can be told. Its shape, pose, velocity, contact and that
force are known, the mass is not. What the model of the fit has otherwise than the video:

    perfect                 nothing
    perfect-deformable      nothing; both soft
    no-friction             mu = 0
    no-elasticity           k_d so large that next to nothing bounces, `floor.dead_damping`
    rigid-as-deformable     a soft body in place of a rigid one
    deformable-as-rigid     a rigid body in place of a soft one
    photorealistic          one colour without shade in place of light, shadows and a floor
    path-traced             the same; the video is drawn by Mitsuba in place of VTK

The force of a contact is k_e c + k_d max(0, -u_n): what its spring has stored comes back, and
the damper takes its part on the way in. One vertex with damping ratio z = k_d/(2 sqrt(k_e m)) > 1
leaves with about 1/(2 z) of the speed it came with, for it never gets deeper than m u/k_d.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model
from adjsim.rigid.pose import vertices
from render.scene import Material, Mesh
from studies import rigid
from studies.errors import StudyError
from studies.filming import Hulls, MeshFilming, Skin, Subject, make_filming
from studies.motion import Motion
from studies.paper.model_errors import photo, soft, traced
from studies.parameters import Parameters, positive_block
from studies.registry import RunOptions
from studies.rigid import BODY, PATHS
from studies.search.local import make_loss
from studies.settings import bounds_of, draw, require_positive
from studies.synthetic import film
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Outer, Wire, Wires


MASS, FRICTION, DAMPING = PATHS["mass"], PATHS["friction"], PATHS["damping"]


class Kind(StrEnum):
    """What the model of the fit has otherwise than the video."""

    PERFECT = "perfect"
    PERFECT_DEFORMABLE = "perfect-deformable"
    NO_FRICTION = "no-friction"
    NO_ELASTICITY = "no-elasticity"
    RIGID_AS_DEFORMABLE = "rigid-as-deformable"
    DEFORMABLE_AS_RIGID = "deformable-as-rigid"
    PHOTOREALISTIC = "photorealistic"
    PATH_TRACED = "path-traced"


WITH_TETS = (Kind.PERFECT_DEFORMABLE, Kind.RIGID_AS_DEFORMABLE, Kind.DEFORMABLE_AS_RIGID)
SOFT_VIDEOS = (Kind.PERFECT_DEFORMABLE, Kind.DEFORMABLE_AS_RIGID)
SOFT_FITS = (Kind.PERFECT_DEFORMABLE, Kind.RIGID_AS_DEFORMABLE)
# What draws a video that is not ours: a module with `missing` and `photograph`.
PHOTOGRAPHERS = {Kind.PHOTOREALISTIC: photo, Kind.PATH_TRACED: traced}


@dataclass(frozen=True, eq=False)
class Body:
    """A body as it was drawn.

    Attributes
    ----------
    what : str
        Its shape.
    surface : TriangleMesh
    tets : TetMesh, optional
        What is inside it, where it may be soft; the surface is theirs.
    motion : Motion
        Of the rigid body of the true mass, contacts as they are.
    mass, start : float
        Hidden, and where the search begins [kg].
    """

    what: str
    surface: TriangleMesh
    tets: TetMesh | None
    motion: Motion
    mass: float
    start: float


@dataclass(frozen=True, eq=False)
class Case:
    """One body, its video, and the problem of a model.

    Attributes
    ----------
    kind : Kind
    body : Body
    problem : VideoProblem
        Of the model of the fit; its theta is the logarithm of the mass. Its targets, RGB, are
        the video.
    own : VideoProblem
        Of the video's own model and, where that is photorealistic, of the same motion as our
        renderer shows it: its loss is 0 at the truth.
    """

    kind: Kind
    body: Body
    problem: VideoProblem
    own: VideoProblem


def check_settings(settings: Mapping[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    checks.known_key("kind in `kind`", settings["kind"], tuple(map(str, Kind)))
    rigid.check_settings(scene_settings(settings))
    require_positive(settings, "floor", "dead_damping")
    if not settings["soft"]["shapes"]:
        raise StudyError(f"`soft.shapes` must name at least one of {', '.join(soft.SHAPES)}.")
    for name in settings["soft"]["shapes"]:
        checks.known_key("shape in `soft.shapes`", name, soft.SHAPES)
    require_positive(settings, "soft", *soft.MATERIAL)
    if not np.any(settings["push"]["force"]):
        raise StudyError(
            "`push.force` must not be 0: without a force known in newtons no video tells a mass."
        )
    photo.check_photo(settings)


def scene_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as `studies.rigid` takes them: a floor, and one free number."""
    return {
        **settings,
        "free": ["mass"],
        "floor": {**settings["floor"], "exists": True},
        "push": {**settings["push"], "at": "centre"},
        "start": {**settings["hidden"], **settings["start"]},
    }


def draw_body(settings: Mapping[str, Any], options: RunOptions, k: int, *, with_tets: bool) -> Body:
    """Draw body k: shape, stretch, mass, contact, pose, velocity and the start of the search."""
    scene, rng = scene_settings(settings), np.random.default_rng([options.seed, k])
    if not with_tets:
        name, surface, motion, hidden, start = rigid.draw_thrown(scene, options, k, rng)
        return Body(name, surface, None, motion, hidden["mass"], start["mass"])
    names = settings["soft"]["shapes"]
    name = names[k % len(names)]
    hidden, start = rigid.drawn(scene, "hidden", rng), rigid.drawn(scene, "start", rng)
    mesh = soft.soft_shape(name, settings["body"]["radius"])
    stretch = [draw(rng, "body.stretch", settings["body"]["stretch"]) for _ in rigid.AXES]
    tets = TetMesh(mesh.points * stretch, mesh.tets)
    surface = soft.skin(tets)
    motion = rigid.make_motion(scene, surface, hidden, rng, options=options)
    return Body(name, surface, tets, motion, hidden["mass"], start["mass"])


def make_case(settings: Mapping[str, Any], options: RunOptions, kind: Kind, k: int) -> Case:
    """Draw body k, make its video, and pose the problem of the model that is not quite its own.

    Raises
    ------
    StudyError
        If the camera sees next to nothing, or the truth lies outside the bounds.
    NotFiniteError
        If the motion of the video diverges.
    """
    body = draw_body(settings, options, k, with_tets=kind in WITH_TETS)
    target, fitted = body.motion, body.motion
    if body.tets is not None:
        softened = soft.soften(body.motion, body.tets, material(settings))
        target = softened if kind in SOFT_VIDEOS else target
        fitted = softened if kind in SOFT_FITS else fitted
    if kind is Kind.NO_FRICTION:
        fitted = fitted.with_values({FRICTION: 0.0})
    if kind is Kind.NO_ELASTICITY:
        fitted = fitted.with_values({DAMPING: settings["floor"]["dead_damping"]})
    seen = make_view(settings, options, body, is_soft=kind in SOFT_VIDEOS)
    ours = film(seen, target, {})[..., :3]
    own = posed(settings, body, target, (seen, ours))
    if kind in PHOTOGRAPHERS:
        draw_it = PHOTOGRAPHERS[kind].photograph
        taken = photographed(settings, body, target, seen=seen, photograph=draw_it)
        problem = posed(settings, body, fitted, taken)
    else:
        view = make_view(settings, options, body, is_soft=kind in SOFT_FITS)
        problem = posed(settings, body, fitted, (view, ours))
    Truth({MASS: body.mass}, ours).require_reachable(problem.parameters)
    return Case(kind, body, problem, own)


def posed(
    settings: Mapping[str, Any], body: Body, motion: Motion, seen: tuple[MeshFilming, np.ndarray]
) -> VideoProblem:
    """Return the problem whose model is this motion, its mass free; `seen` is view and video."""
    wires, model = None, motion.system
    assert isinstance(model, Model)
    if not model.bodies and body.tets is not None:
        wires = Wires((Wire(MASS, soft.MASS, Outer(soft.node_shares(body.tets))),))
    start = positive_block(MASS, body.start, {MASS: bounds_of(settings, ("mass",))["mass"]})
    loss = make_loss(settings["loss"])
    return VideoProblem(motion, seen[0], Parameters([start], wires), loss, seen[1])


def material(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return mu, lam and viscosity of soft bodies."""
    return {key: settings["soft"][key] for key in soft.MATERIAL}


def photographed(
    settings: Mapping[str, Any],
    body: Body,
    target: Motion,
    *,
    seen: MeshFilming,
    photograph: Callable[..., tuple[np.ndarray, np.ndarray]],
) -> tuple[MeshFilming, np.ndarray]:
    """Return the view of the fit, its background the empty scene, and the photorealistic video."""
    assert isinstance(target.system, Model)
    x = vertices(target.system.bodies[BODY], target.run().bodies[BODY])
    video, empty = photograph(
        body.surface.faces, x, color=rigid.COLOR, camera=seen.camera, size=seen.size,
        settings=settings,
    )  # fmt: skip
    return replace(seen, rasterizer=replace(seen.rasterizer, background=empty)), video


def make_view(
    settings: Mapping[str, Any], options: RunOptions, body: Body, *, is_soft: bool
) -> MeshFilming:
    """Return our renderer's view of a body: one colour without shade."""
    drawing = Mesh(
        body.surface.faces,
        vertex_colors=np.broadcast_to(rigid.COLOR, body.surface.points.shape),
        material=Material(1.0, 0.0),
    )
    subject: Subject = Hulls(BODY)
    if is_soft and body.tets is not None:
        subject = Skin.of_nodes(body.tets.surface().nodes, body.tets.n_points)
    return make_filming(settings, {BODY: (drawing, subject)}, device=options.device)
