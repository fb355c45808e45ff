"""What the classes and losses themselves declare as differentiable.

Forces, bodies, pendula and smoke list their parameters; every field of what is rendered counts
unless it is listed here as fixed; a loss counts by its adjoint. So a parameter that is added
somewhere is missed by the coverage table until a system has it.
"""

import dataclasses
import inspect

import adjoint.losses
from adjoint.forces.registry import forces as public_forces
from adjoint.render.losses import TWINS as IMAGE_TWINS
from adjoint.render.shape_losses import TWINS as SHAPE_TWINS
from adjsim.reduced.double_pendulum import DoublePendulum
from adjsim.reduced.pendulum import PendulumState
from adjsim.reduced.simple_pendulum import SimplePendulum
from adjsim.reduced.smoke import SmokeState
from adjsim.rigid.bodies import RigidBodies
from adjsim.rigid.pose import BodyState
from render.blending import DIBR
from render.camera import Camera
from render.lenses import Intrinsics, Orthographic
from render.posed_camera import PosedCamera
from render.scene import DirectionalLight, Material, Mesh, SphericalHarmonics
from render.soft_raster import SoftRasterizer
from render.textures import Texture


STATE = {("Model", "mass"), ("Model", "gravity"), ("State", "x"), ("State", "v")}
OTHERS = (RigidBodies, BodyState, SimplePendulum, DoublePendulum, PendulumState, SmokeState)
# Given beside what is drawn, not in it.
VERTICES = {("Mesh", "vertices"), ("RodsAndBobs", "angle"), ("RodsAndBobs", "length")}
VERTICES |= {("BodyTrajectory", "position"), ("BodyTrajectory", "orientation")}
DENSITY = {("smoke_images", "density")}
PLANES = {("AnyCamera", "near"), ("AnyCamera", "far")}  # of every camera alike
CAMERAS = (Camera, PosedCamera, Intrinsics, Orthographic)
LIGHTS = (DirectionalLight, SphericalHarmonics)
RENDERED = (*CAMERAS, *LIGHTS, SoftRasterizer, DIBR, Material, Mesh, Texture)
FIXED = {"near", "far", "lens", "nominal", "size", "blend", "cull", "supersample", "seamless"}
FIXED |= {"color_faces", "faces", "material", "smooth_normals", "texture", "uv_faces", "wrap"}
LOSS_SUFFIX = "_mse_vjp"


def declared_parameters() -> set[tuple[str, str]]:
    """Return every (class or loss, parameter) that has a derivative."""
    forces = {(force.__name__, p.name) for force in public_forces() for p in force.PARAMETERS}
    others = {(kind.__name__, p.name) for kind in OTHERS for p in kind.PARAMETERS}
    rendered = {
        (kind.__name__, field.name) for kind in RENDERED for field in dataclasses.fields(kind)
    }
    image_losses = {(loss.__name__, "images") for loss in IMAGE_TWINS}
    image_losses |= {(loss.__name__, "x") for loss in SHAPE_TWINS}
    state_losses = {
        (name.removesuffix("_vjp"), parameter)
        for name, vjp in vars(adjoint.losses).items()
        if name.endswith(LOSS_SUFFIX)
        for parameter in inspect.signature(vjp).parameters
        if not parameter.startswith(("target", "adj"))
    }
    declared = forces | others | rendered | image_losses | state_losses
    declared = {(owner, name) for owner, name in declared if name not in FIXED}
    return declared | STATE | VERTICES | DENSITY | PLANES
