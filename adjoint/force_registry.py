"""Which twin undoes which force. Adding a force to the package adds one line here."""

from collections.abc import Callable

from adjoint.forces import (
    box as box_adjoint,
    capsule as capsule_adjoint,
    external as external_adjoint,
    half_space as half_space_adjoint,
    hinges as hinges_adjoint,
    lift_drag as lift_drag_adjoint,
    linear_drag as linear_drag_adjoint,
    log_neo_hookean as log_neo_hookean_adjoint,
    neo_hookean as neo_hookean_adjoint,
    neo_hookean_triangles as triangles_adjoint,
    sphere as sphere_adjoint,
    springs as springs_adjoint,
)
from adjoint.forces.contact import ContactTwin
from adjoint.forces.element import ForceTwin
from adjoint.joints import laws as laws_adjoint, pins as pins_adjoint
from adjoint.joints.joint import DrivenJointTwin, FramedJointTwin, JointTwin
from adjoint.pairs import surface_contact as surface_contact_adjoint
from adjsim import checks
from adjsim.forces import (
    box,
    capsule,
    external,
    half_space,
    hinges,
    lift_drag,
    linear_drag,
    log_neo_hookean,
    neo_hookean,
    neo_hookean_triangles,
    sphere,
    springs,
)
from adjsim.forces.contact import Contact
from adjsim.forces.element import Force
from adjsim.joints import driven, joint, pins
from adjsim.pairs import surface_contact


GAP_ADJOINTS: dict[type[Contact], Callable] = {
    box.BoxContact: box_adjoint.box_gap_vjp,
    capsule.CapsuleContact: capsule_adjoint.capsule_gap_vjp,
    half_space.HalfSpaceContact: half_space_adjoint.half_space_gap_vjp,
    sphere.SphereContact: sphere_adjoint.sphere_gap_vjp,
}
FORCE_TWINS: dict[type[Force], ForceTwin] = {
    **{shape: ContactTwin(shape, gap_vjp) for shape, gap_vjp in GAP_ADJOINTS.items()},
    external.ExternalForces: external_adjoint.ExternalForcesTwin(external_adjoint.EXTERNAL_TWIN),
    lift_drag.LiftDrag: lift_drag_adjoint.LiftDragTwin(lift_drag_adjoint.LIFT_DRAG_TWIN),
    linear_drag.LinearDrag: linear_drag_adjoint.LinearDragTwin(
        linear_drag_adjoint.LINEAR_DRAG_TWIN
    ),
    hinges.Hinges: hinges_adjoint.HingesTwin(),
    log_neo_hookean.LogNeoHookeanTets: log_neo_hookean_adjoint.LogNeoHookeanTetsTwin(),
    neo_hookean.NeoHookeanTets: neo_hookean_adjoint.NeoHookeanTetsTwin(),
    neo_hookean_triangles.NeoHookeanTriangles: triangles_adjoint.NeoHookeanTrianglesTwin(),
    springs.Springs: ForceTwin(springs_adjoint.SPRING_TWIN),
    surface_contact.SurfaceContact: surface_contact_adjoint.SurfaceContactTwin(),
    pins.Pins: ForceTwin(pins_adjoint.PIN_TWIN),
    joint.BallJoint: JointTwin(laws_adjoint.ball_vjp),
    joint.WeldJoint: FramedJointTwin(laws_adjoint.weld_vjp),
    driven.HingeJoint: DrivenJointTwin(laws_adjoint.hinge_vjp),
    driven.SliderJoint: DrivenJointTwin(laws_adjoint.slider_vjp),
}


_OWN: dict[type[Force], ForceTwin] = {}  # of forces outside the package


def register(force: type[Force], twin: ForceTwin) -> None:
    """Let a class of forces outside the package have gradients: `twin` undoes it.

    Call it beside the class: processes that import the class then have its twin too.

    Raises
    ------
    TypeError
        If `force` is no class of forces, or `twin` no object of a `ForceTwin`.
    """
    if not (isinstance(force, type) and issubclass(force, Force)):
        raise TypeError(f"`force` must be a subclass of Force, got {force!r}.")
    _OWN[force] = checks.instance("twin", twin, ForceTwin)


def twin_of(force: Force) -> ForceTwin:
    """Return the twin of a force.

    Raises
    ------
    TypeError
        If no adjoint is registered for its class.
    """
    kind = type(force)
    found = FORCE_TWINS.get(kind, _OWN.get(kind))
    if found is None:
        raise TypeError(
            f"No adjoint is registered for `{kind.__name__}`. Write its twin, and call "
            f"`adjoint.force_registry.register({kind.__name__}, twin)` beside the class."
        )
    return found
