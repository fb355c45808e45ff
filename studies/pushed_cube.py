r"""How heavy are the corners of a cube that is pushed at two of them?

    adjsim run pushed-cube

A correct run ends with the mass within 1e-9 of the hidden value and a certificate that passed. The
cube is eight equal masses m at its corners r_i, so with m scale both

    the body's mass   8 m,     and its inertia   m sum_i (|r_i|^2 1 - r_i r_i^T).

Source of the scene: gradSim (ICLR 2021), figure 4a; `adjsim scan figure-4a` is its landscape.
"""

from typing import Any

import numpy as np

from adjsim import checks
from adjsim.forces.external import ExternalForces
from adjsim.meshes.shapes import shape
from adjsim.meshes.triangle_mesh import TriangleMesh
from adjsim.model import Model, State
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from render.scene import Material, Mesh
from studies.filming import Hulls, make_filming
from studies.fit import Fit
from studies.motion import Motion
from studies.parameters import Parameters, positive_block
from studies.registry import RunOptions
from studies.search.local import make_loss, make_search
from studies.settings import bounds_of, require_positive
from studies.synthetic import film
from studies.timeline import frame_steps
from studies.truth import Truth
from studies.video_problem import VideoProblem
from studies.wires import Outer, Wire, Wires


CUBE, PUSH, MASS = "cube", "push", "mass"


def prepare(settings: dict[str, Any], options: RunOptions) -> Fit:
    """Check the settings, render the target video, and return the search for the mass.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    require_positive(settings, "cube", "mass", "radius")
    for table in ("start", "bounds"):
        checks.positive(f"{table}.mass", settings[table][MASS])
    mesh = shape("cube", settings["cube"]["radius"])
    motion = cube_motion(settings, mesh, options)
    color = checks.array("cube.color", settings["cube"]["color"], (3,))
    drawing = Mesh(
        mesh.faces,
        vertex_colors=np.broadcast_to(color, mesh.points.shape),
        material=Material(0.5, 0.5),
    )
    filming = make_filming(settings, {CUBE: (drawing, Hulls(CUBE))}, device=options.device)
    images = film(filming, motion, {})
    bounds = bounds_of(settings, (MASS,))
    block = positive_block(MASS, settings["start"][MASS], bounds)
    unit = corner_inertia(mesh.points)
    wires = (
        Wire(MASS, f"{CUBE}.mass", Outer(float(len(mesh.points)))),
        Wire(MASS, f"{CUBE}.inertia", Outer(unit)),
    )
    problem = VideoProblem(
        motion, filming, Parameters([block], Wires(wires)), make_loss(settings["loss"]), images
    )
    return Fit(
        problem,
        make_search(settings["optimizer"]),
        options,
        title="A pushed cube, weighed from video",
        units={MASS: "kg"},
        truth=Truth({MASS: settings["cube"]["mass"]}, images),
        what="a rigid cube, eight equal masses",
    )


def cube_motion(settings: dict[str, Any], mesh: TriangleMesh, options: RunOptions) -> Motion:
    """Return the cube at rest at the origin, pushed from the first step on."""
    mass, push = settings["cube"]["mass"], settings["push"]
    dt, steps = frame_steps(settings["time"])
    n = len(mesh.points)
    body = RigidBodies(mesh, mass=n * mass, inertia=mass * corner_inertia(mesh.points))
    corners = checks.integers("push.corners", push["corners"], ("n_corners",))
    if not corners.size or corners.min() < 0 or corners.max() >= n:
        raise ValueError(f"`push.corners` must name corners, 0 to {n - 1}, got {push['corners']}.")
    force = checks.array("push.force", push["force"], (3,))
    model = Model(
        forces={PUSH: ExternalForces(corners, force, body=CUBE)},
        gravity=(0.0, 0.0, 0.0),
        bodies={CUBE: body},
    )
    pose = BodyState(np.zeros((1, 3)))
    return Motion(
        model, State(bodies={CUBE: pose}), dt, steps, options.dtype,
        device=options.device, checkpoint=options.checkpoint,
    )  # fmt: skip


def corner_inertia(points: np.ndarray) -> np.ndarray:
    """Return the inertia of masses of 1 kg at points: xx, yy, zz, xy, xz, yz [kg m^2]."""
    x, y, z = points.T
    rows = [y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z]
    return np.array([row.sum() for row in rows])
