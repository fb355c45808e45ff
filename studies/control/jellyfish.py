r"""How must a jellyfish beat its bell, to swim upwards as far as it can?

    adjsim run control-jellyfish

A correct run ends well above where it began, and with a certificate that passed. The jellyfish is a
sheet in the shape of a bell, as heavy as the water that it is in; nothing moves it but the lift of
the water on its triangles. Every hinge of the bell is a muscle: its angle of rest moves by a policy
of its own,

    phi_e(t) = phi0_e - 2 a_e(t),  a_e(t) = scale tanh(sum_j W_ej sin(omega t + 2 pi j/N)),

and the weights W are sought. The hinges of the lappets below its margin are not muscles.

By default no picture is compared, but states: the squared distance of the centre of mass, at the
end, from a goal straight above that is out of reach. The sum of the upward momentum over all steps,
what gradSim raises, is the rise of the centre of mass but for a factor; the goal also keeps it from
drifting aside. `supervision="picture"` shows it the jellyfish at rest at the goal instead. Weights
of 0 leave it at rest in still water, where no derivative of the force of the water is other than 0:
the search must begin elsewhere.

Source of the scene: gradSim (ICLR 2021), released example; the bell is our own.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.courses import Policy
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from render.orbit_camera import OrbitCamera
from render.scene import Mesh
from studies.control.case import Case, make_case, policy
from studies.control.comparison import preparing, require_policy
from studies.filming import MeshFilming, Skin, make_filming
from studies.motion import Motion
from studies.registry import RunOptions
from studies.settings import require_not_negative, require_positive
from studies.timeline import frame_steps


NAME, MUSCLES = "jellyfish", "muscles"
WEIGHTS = f"{MUSCLES}.actuation"
RINGS = (8, 16, 24, 24, 24)  # points of each, from the top to the margin


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    require_positive(settings, NAME, "radius", "height", "lappet", "density", "mu", "lam")
    require_not_negative(settings, NAME, "viscosity")
    require_not_negative(settings, "hinges", "stiffness", "damping")
    require_not_negative(settings, "water", "lift", "drag")
    require_positive(settings, "target", "height")
    require_policy(settings)


def make(settings: dict[str, Any], options: RunOptions, instance: int) -> Case:
    """Draw the weights that an instance begins with, and return the search for its policy.

    Instance k of seed s is instance 0 of seed s + k.
    """
    table = settings[NAME]
    mesh, n_bell = bell(table["radius"], table["height"], table["lappet"])
    motion = make_motion(settings, mesh, n_bell, options)
    n_muscles = len(motion.system.parameters()[WEIGHTS])
    return make_case(
        settings,
        options,
        policy(settings, np.random.default_rng([options.seed + instance, 0]), motion, WEIGHTS),
        motion=motion,
        filming=make_camera(settings, mesh, options),
        goal=goal(settings, motion),
        title="A jellyfish that swims up",
        what=f"{len(mesh.faces)} triangles, {n_muscles} hinges that are muscles, and "
        f"{len(mesh.points)} nodes",
        instance=instance,
    )


def bell(radius: float, height: float, lappet: float) -> tuple[TriangleMesh, int]:
    """Return half an ellipsoid, open below, with a lappet under each edge of its margin.

    Parameters
    ----------
    radius, height : float
        Of the half-ellipsoid, whose margin is in the plane y = 0 [m].
    lappet : float
        How far each lappet hangs down [m].

    Returns
    -------
    tuple of TriangleMesh and int
        The mesh, facing outwards, and the number of its points that are of the bell, which come
        first.
    """
    rows, points = [np.array([0])], [np.array([[0.0, height, 0.0]])]
    for ring, n in enumerate(RINGS, 1):
        down = 0.5 * np.pi * ring / len(RINGS)
        around = 2.0 * np.pi * (np.arange(n) + 0.5 * (ring % 2)) / n
        wide, up = radius * np.sin(down), height * np.cos(down) if ring < len(RINGS) else 0.0
        rows.append(rows[-1][-1] + 1 + np.arange(n))
        points.append(np.c_[wide * np.cos(around), np.full(n, up), wide * np.sin(around)])
    placed = np.concatenate(points)
    faces = [
        face for ring in range(len(RINGS)) for face in band(rows[ring], rows[ring + 1], placed)
    ]
    margin, beside = rows[-1], np.roll(rows[-1], -1)
    tips = 0.5 * (placed[margin] + placed[beside]) - [0.0, lappet, 0.0]
    lappets = np.c_[margin, beside, len(placed) + np.arange(len(tips))]
    return TriangleMesh(np.concatenate([placed, tips]), np.r_[np.array(faces), lappets]), len(
        placed
    )


def band(inner: np.ndarray, outer: np.ndarray, points: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the triangles between two rings, the next point of which is taken by its angle."""
    n_inner, n_outer = len(inner), len(outer)
    if n_inner == 1:
        return [(inner[0], outer[(j + 1) % n_outer], outer[j]) for j in range(n_outer)]
    at, out = _angles(points[inner]), _angles(points[outer])
    faces = []
    i = j = 0
    while i < n_inner or j < n_outer:
        a, b = inner[i % n_inner], outer[j % n_outer]
        if i == n_inner or (j < n_outer and out[j] + out[j + 1] <= at[i] + at[i + 1]):
            j += 1
            faces.append((a, outer[j % n_outer], b))
        else:
            i += 1
            faces.append((a, inner[i % n_inner], b))
    return faces


def _angles(points: np.ndarray) -> np.ndarray:
    """Return the angles of a ring about y, the first one again a turn later [rad]."""
    angles = np.unwrap(np.arctan2(points[:, 2], points[:, 0]))
    return np.append(angles, angles[0] + 2.0 * np.pi)


def make_motion(
    settings: dict[str, Any], mesh: TriangleMesh, n_bell: int, options: RunOptions
) -> Motion:
    """Return the jellyfish at rest in still water, its policy too."""
    body, bending, beat = settings[NAME], settings["hinges"], settings["policy"]
    dt, steps = frame_steps(settings["time"])
    skin = NeoHookeanTriangles(
        mesh.faces, mesh.points, body["mu"], body["lam"], viscosity=body["viscosity"] or None
    )
    hinges = mesh_hinges(mesh.faces)
    is_muscle = (hinges < n_bell).all(axis=1)
    rest = np.zeros((int(is_muscle.sum()), beat["sines"]))
    forces = {
        NAME: skin,
        MUSCLES: Hinges(
            hinges[is_muscle],
            mesh.points,
            bending["stiffness"],
            bending["damping"],
            actuation=Policy(rest, beat["frequency"] * dt, beat["scale"]),
        ),
        "lappets": Hinges(
            hinges[~is_muscle], mesh.points, bending["stiffness"], bending["damping"]
        ),
        "water": LiftDrag(mesh.faces, settings["water"]["lift"], settings["water"]["drag"]),
    }
    model = Model(skin.lumped_mass(body["density"]), forces, gravity=(0.0, 0.0, 0.0))
    return Motion(
        model, State(mesh.points), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def goal(settings: dict[str, Any], motion: Motion) -> Any:
    """Return the jellyfish as it begins, moved up: what the picture is drawn of."""
    up = np.array([0.0, settings["target"]["height"], 0.0])
    any_state = motion.at(np.ones(1, int)).run()
    return replace(any_state, x=(motion.state.x + up)[None])


def make_camera(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> MeshFilming:
    """Return the camera on the jellyfish, which has one colour and is shaded."""
    table = settings["camera"]
    color = checks.array("jellyfish.color", settings[NAME]["color"], (3,))
    drawn = Mesh(mesh.faces, vertex_colors=np.broadcast_to(color, mesh.points.shape))
    skin = Skin.of_nodes(np.arange(len(mesh.points)), len(mesh.points))
    camera = OrbitCamera(
        table["distance"],
        table["elevation"],
        table["azimuth"],
        target=table["target"],
        fov_y=table["fov_y"],
    )
    return make_filming(settings, {NAME: (drawn, skin)}, device=options.device, camera=camera)


prepare = preparing(check_settings, make, {}, measures=("rise", "distance"))
