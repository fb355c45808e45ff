r"""How must a soft gear swell and shrink, so that it rolls to where a picture shows it?

    adjsim run control-fem

A correct run ends with the centre of mass within 0.2 m of the target's, and a certificate that
passed. The gear falls onto a floor with friction; each tetrahedron is a muscle, driven by a policy
of its own over time,

    a_e(t) = scale tanh(sum_j W_ej sin(omega t + 2 pi j/N)),

whose weights W are what is sought, by the last picture of the motion alone.

Source of the scene: gradSim (ICLR 2021), section 4.3 and app. E; the gear is our own.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.courses import Policy
from adjsim.forces.half_space import HalfSpaceContact
from adjsim.forces.neo_hookean import NeoHookeanTets
from adjsim.meshes.gears import gear_tets
from adjsim.meshes.tet_mesh import TetMesh
from adjsim.model import Model, State
from render.orbit_camera import OrbitCamera
from render.scene import Material, Mesh
from studies.control.case import Case, make_case, policy
from studies.control.comparison import preparing, require_policy
from studies.filming import MeshFilming, Skin, make_filming
from studies.instances import Bar
from studies.motion import Motion
from studies.registry import RunOptions
from studies.settings import draw, require_not_negative, require_positive
from studies.timeline import frame_steps


NAME = "gear"
WEIGHTS = f"{NAME}.actuation"
BARS = {"distance": Bar(0.2, 0.57)}


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    require_positive(settings, "gear", "density", "mu", "lam")
    require_not_negative(settings, "gear", "viscosity")
    require_policy(settings)
    mesh = gear(settings)
    if not mesh.points[:, 1].min() > 0.0:
        raise ValueError(
            f"`gear.position` must be above the floor by more than the gear reaches, "
            f"{settings['gear']['position'][1] - mesh.points[:, 1].min():.4g}, got a height of "
            f"{settings['gear']['position'][1]:g}."
        )


def gear(settings: dict[str, Any]) -> TetMesh:
    """Return the gear where it begins."""
    table = settings["gear"]
    mesh = gear_tets(table["teeth"], rings=table["rings"])
    return TetMesh(mesh.points + checks.array("gear.position", table["position"], (3,)), mesh.tets)


def make(settings: dict[str, Any], options: RunOptions, instance: int) -> Case:
    """Draw where the gear of an instance shall be, and return the search for its policy.

    Instance k of seed s is instance 0 of seed s + k.
    """
    rng = np.random.default_rng([options.seed + instance, 0])
    x = draw(rng, "target.x", settings["target"]["x"])
    mesh = gear(settings)
    motion = make_motion(settings, mesh, options)
    return make_case(
        settings,
        options,
        policy(settings, rng, motion, WEIGHTS),
        motion=motion,
        filming=make_camera(settings, mesh, options),
        goal=goal(settings, motion, x),
        title="A soft gear, controlled towards a picture",
        what=f"{mesh.n_tets} tetrahedra, each a muscle, and {mesh.n_points} nodes",
        instance=instance,
    )


def make_motion(settings: dict[str, Any], mesh: TetMesh, options: RunOptions) -> Motion:
    """Return the gear that is thrown onto the floor, its policy at rest."""
    body, policy = settings["gear"], settings["policy"]
    dt, steps = frame_steps(settings["time"])
    rest = np.zeros((mesh.n_tets, policy["sines"]))
    solid = NeoHookeanTets(
        mesh.tets,
        mesh.points,
        body["mu"],
        body["lam"],
        viscosity=body["viscosity"] or None,
        actuation=Policy(rest, policy["frequency"] * dt, policy["scale"]),
    )
    floor = HalfSpaceContact(**settings["floor"])
    model = Model(solid.lumped_mass(body["density"]), {NAME: solid, "floor": floor})
    velocity = checks.array("gear.velocity", body["velocity"], (3,))
    state = State(mesh.points, np.broadcast_to(velocity, mesh.points.shape))
    return Motion(
        model, state, dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def goal(settings: dict[str, Any], motion: Motion, x: float) -> Any:
    """Return the gear as it begins, not deformed, moved along x: what the picture is drawn of."""
    along = np.array([x - settings["gear"]["position"][0], 0.0, 0.0])
    any_state = motion.at(np.ones(1, int)).run()
    return replace(any_state, x=(motion.state.x + along)[None])


def make_camera(settings: dict[str, Any], mesh: TetMesh, options: RunOptions) -> MeshFilming:
    """Return the camera on the gear, which is of one colour, half of it shaded."""
    surface, table = mesh.surface(), settings["camera"]
    color = checks.array("gear.color", settings["gear"]["color"], (3,))
    colors = np.broadcast_to(color, (len(surface.nodes), 3))
    drawn = Mesh(surface.local_faces, vertex_colors=colors, material=Material(0.5, 0.5))
    skin = Skin.of_nodes(surface.nodes, mesh.n_points)
    camera = OrbitCamera(
        table["distance"],
        table["elevation"],
        table["azimuth"],
        target=table["target"],
        fov_y=table["fov_y"],
    )
    return make_filming(settings, {NAME: (drawn, skin)}, device=options.device, camera=camera)


prepare = preparing(check_settings, make, BARS)
