r"""How must a flat walker move its muscles, so that it stands where a picture shows it?

    adjsim run control-walker

A correct run ends with a picture that covers the target's by nine tenths or more, and a
certificate that passed. The walker is an elastic sheet with two legs on a floor with friction; each
triangle is a muscle, driven by a policy of its own over time,

    a_e(t) = scale tanh(sum_j W_ej sin(omega t + 2 pi j/N)),

whose weights W are what is sought, by the last picture of the motion alone.

Source of the scene: gradSim (ICLR 2021), section 4.3 and app. E; the walker is our own.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.courses import Policy
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.control.case import Case, make_case, policy
from studies.control.comparison import preparing, require_policy
from studies.filming import MeshFilming, Skin, make_filming
from studies.instances import Bar
from studies.motion import Motion
from studies.registry import RunOptions
from studies.settings import require_not_negative, require_positive
from studies.timeline import frame_steps


NAME = "walker"
WEIGHTS = f"{NAME}.actuation"
LENGTH, TOP, LEG = 10, 7, 3  # cells: of the back, from floor to back, across a leg
KNEE = 4  # cells of a leg below the trunk
GRAVITY = 9.81  # m/s2
BARS = {"cover": Bar(0.9)}


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    require_positive(settings, "walker", "cell", "mass", "mu", "lam")
    require_positive(settings, "floor", "stiffness")
    require_not_negative(settings, "walker", "viscosity")
    require_policy(settings)


def make(settings: dict[str, Any], options: RunOptions, instance: int) -> Case:
    """Draw the weights that an instance begins with, and return the search for its policy.

    Instance k of seed s is instance 0 of seed s + k.
    """
    mesh = standing(walker(settings["walker"]["cell"]), settings)
    motion = make_motion(settings, mesh, options)
    return make_case(
        settings,
        options,
        policy(settings, np.random.default_rng([options.seed + instance, 0]), motion, WEIGHTS),
        motion=motion,
        filming=make_camera(settings, mesh, options),
        goal=stand(settings, motion),
        title="A walker, controlled towards a picture",
        what=f"{len(mesh.faces)} triangles, each a muscle, and {len(mesh.points)} nodes",
        instance=instance,
    )


def walker(cell: float) -> TriangleMesh:
    """Return a trunk on two legs in the plane z = 0, its soles at y = 0, about x = 0."""
    legs = [*range(LEG), *range(LENGTH - LEG, LENGTH)]
    cells = [(i, j) for i in range(LENGTH) for j in range(KNEE, TOP)]
    cells += [(i, j) for i in legs for j in range(KNEE)]
    numbers: dict[tuple[int, int], int] = {}
    faces = []
    for i, j in sorted(cells):
        a, b, c, d = (
            numbers.setdefault(corner, len(numbers))
            for corner in ((i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1))
        )
        faces += [(a, b, c), (a, c, d)] if (i + j) % 2 else [(a, b, d), (b, c, d)]
    flat = cell * (np.array(list(numbers), float) - [LENGTH / 2, 0.0])
    return TriangleMesh(np.c_[flat, np.zeros(len(flat))], np.array(faces))


def standing(mesh: TriangleMesh, settings: dict[str, Any]) -> TriangleMesh:
    """Return the walker as deep in the floor as its weight presses it, not just touching."""
    soles = int((mesh.points[:, 1] == 0.0).sum())
    depth = settings["walker"]["mass"] * GRAVITY / (soles * settings["floor"]["stiffness"])
    return TriangleMesh(mesh.points - [0.0, depth, 0.0], mesh.faces)


def make_motion(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> Motion:
    """Return the walker that stands on the floor, its policy at rest."""
    body, policy = settings["walker"], settings["policy"]
    dt, steps = frame_steps(settings["time"])
    rest = np.zeros((len(mesh.faces), policy["sines"]))
    skin = NeoHookeanTriangles(
        mesh.faces,
        mesh.points,
        body["mu"],
        body["lam"],
        viscosity=body["viscosity"] or None,
        actuation=Policy(rest, policy["frequency"] * dt, policy["scale"]),
    )
    floor = HalfSpaceContact(**settings["floor"])
    n = len(mesh.points)
    model = Model(np.full(n, body["mass"] / n), {NAME: skin, "floor": floor})
    return Motion(
        model, State(mesh.points), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def make_camera(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> MeshFilming:
    """Return the camera on the walker, which has one colour: only where it is shows."""
    color = checks.array("walker.color", settings["walker"]["color"], (3,))
    colors = np.broadcast_to(color, mesh.points.shape)
    drawn = Mesh(mesh.faces, vertex_colors=colors, material=Material(1.0, 0.0))
    skin = Skin.of_nodes(np.arange(len(mesh.points)), len(mesh.points))
    return make_filming(settings, {NAME: (drawn, skin)}, device=options.device)


def stand(settings: dict[str, Any], motion: Motion) -> Any:
    """Return the walker at rest where it shall be: as it stands in the end, moved along x."""
    run = motion.run()
    along = np.array([settings["target"]["distance"], 0.0, 0.0])
    return replace(run, x=run.x + along)


prepare = preparing(check_settings, make, BARS)
