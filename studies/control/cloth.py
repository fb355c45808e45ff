r"""How must a cloth be thrown, so that it gets where a picture shows it?

    adjsim run control-cloth

A correct run ends with the middle of the cloth less than a tenth of a metre from where the target's
is, and a certificate that passed. The cloth falls freely; nothing holds it but the air, whose lift
and drag carry it aside. All its nodes begin with one velocity, which is what is sought. The target
is a picture of the same cloth, thrown with a hidden velocity: it can be reached.

By default the last frame alone is compared, the only one that the target is of. With more of
`time.frames` each of them is held against the same picture, as gradSim does; the cloth cannot be
there all the time, so that the least loss is not at the hidden velocity.

The cloth does not overlap its picture at first. Sharp pictures are then made more alike only by
making the cloth small, that is by throwing it away from the camera; so are the fine levels of a
pyramid. The coarse ones, which blur both until they touch, lead it: `loss.growth` gives them the
weight.

Source of the scene: gradSim (ICLR 2021), section 4.3; rotation and target are our own.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from adjsim import checks
from adjsim.forces.hinges import Hinges
from adjsim.forces.lift_drag import LiftDrag
from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles
from adjsim.meshes.hinges import mesh_hinges
from adjsim.meshes.sheets import sheet
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from render.scene import Material, Mesh
from studies.control.case import Case, Sought, make_case
from studies.control.comparison import preparing
from studies.filming import MeshFilming, Skin, make_filming
from studies.instances import Bar
from studies.motion import Motion
from studies.parameters import Parameters, block
from studies.registry import RunOptions
from studies.settings import bounds_of, draw_each, require_not_negative, require_positive
from studies.timeline import frame_steps
from studies.transforms import Identity
from studies.wires import Outer, Wire, Wires


NAME, VELOCITY = "cloth", "velocity"
AXES = ("x", "y", "z")
BARS = {"distance": Bar(0.1, 0.77)}  # what is published as metres is a mean of squares, m2


def check_settings(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, by key."""
    require_positive(settings, NAME, "cell", "mass", "mu", "lam")
    require_not_negative(settings, NAME, "viscosity", "bending")
    require_not_negative(settings, "air", "lift", "drag")
    low, high = checks.integers("cloth.cells", settings[NAME]["cells"], (2,))
    if not 1 <= low <= high:
        raise ValueError(
            f"`cloth.cells` must be [low, high], both at least 1, got [{low}, {high}]."
        )
    if not np.any(checks.array("cloth.axis", settings[NAME]["axis"], (3,))):
        raise ValueError("`cloth.axis` must not be 0: it is what the cloth is turned about.")
    bounds_of(settings, (VELOCITY,))


def make(settings: dict[str, Any], options: RunOptions, instance: int) -> Case:
    """Draw a cloth, where it begins and how the target was thrown; return the search for that.

    Instance k of seed s is instance 0 of seed s + k.
    """
    rng = np.random.default_rng([options.seed + instance, 0])
    mesh = thrown(settings, rng)
    velocity = throw(settings, rng, len(mesh.points))
    motion = make_motion(settings, mesh, options)
    return make_case(
        settings,
        options,
        velocity,
        motion=motion,
        filming=make_camera(settings, mesh, options),
        goal=goal(motion, velocity),
        title="A cloth, thrown towards a picture",
        what=f"{len(mesh.faces)} triangles, {len(mesh.points)} nodes",
        instance=instance,
    )


def throw(settings: dict[str, Any], rng: np.random.Generator, n_nodes: int) -> Sought:
    """Draw the hidden velocity, and where the search for it begins; both are for all nodes."""
    hidden, begin = (
        np.array([*draw_each(rng, settings, table, AXES).values()]) for table in ("hidden", "start")
    )
    wires = Wires((Wire(VELOCITY, "state.v", Outer(np.ones(n_nodes))),))
    bounds = {VELOCITY: settings["bounds"][VELOCITY]}
    free = Parameters([block((VELOCITY,), Identity(), [begin], bounds)], wires)

    def drawn(rng: np.random.Generator) -> np.ndarray:
        return np.array([*draw_each(rng, settings, "hidden", AXES).values()])

    return Sought(free, "m/s", drawn, {VELOCITY: hidden})


def goal(motion: Motion, velocity: Sought) -> Any:
    """Return where the hidden velocity brings the cloth in the end, once for every frame."""
    assert velocity.hidden is not None
    values = velocity.parameters.rollout_values(velocity.hidden[VELOCITY])
    run = motion.at(motion.frames[-1:]).with_values(values).run()
    return replace(run, x=run.x.repeat(len(motion.frames), axis=0))


def thrown(settings: dict[str, Any], rng: np.random.Generator) -> TriangleMesh:
    """Return a square cloth that faces up, its size and first corner drawn, turned about that."""
    cloth = settings[NAME]
    low, high = cloth["cells"]
    count = int(rng.integers(low, high + 1))
    flat = sheet((count, count), (count * cloth["cell"],) * 2)
    axis = checks.array("cloth.axis", cloth["axis"], (3,))
    turn = Rotation.from_rotvec(np.radians(cloth["angle"]) * axis / np.linalg.norm(axis))
    corner = [*draw_each(rng, settings, "corner", AXES).values()]
    return TriangleMesh(flat.points @ turn.as_matrix().T + corner, flat.faces[:, ::-1])


def make_motion(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> Motion:
    """Return the cloth in the air; its velocity comes by wire."""
    cloth, air = settings[NAME], settings["air"]
    skin = NeoHookeanTriangles(
        mesh.faces, mesh.points, cloth["mu"], cloth["lam"], viscosity=cloth["viscosity"] or None
    )
    hinges = Hinges(mesh_hinges(mesh.faces), mesh.points, cloth["bending"])
    wind = LiftDrag(mesh.faces, air["lift"], air["drag"])
    mass = np.full(len(mesh.points), cloth["mass"])
    model = Model(mass, {NAME: skin, "hinges": hinges, "air": wind})
    dt, steps = frame_steps(settings["time"])
    return Motion(
        model, State(mesh.points), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def make_camera(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> MeshFilming:
    """Return the camera on the cloth, which has one colour and is shaded."""
    color = checks.array("cloth.color", settings[NAME]["color"], (3,))
    colors = np.broadcast_to(color, mesh.points.shape)
    drawn = Mesh(mesh.faces, vertex_colors=colors, material=Material(0.5, 0.5))
    skin = Skin.of_nodes(np.arange(len(mesh.points)), len(mesh.points))
    return make_filming(settings, {NAME: (drawn, skin)}, device=options.device)


prepare = preparing(check_settings, make, BARS)
