"""Which twin undoes which force. Adding a force adds one line here."""

from adjoint.forces import (
    box as box_adjoint,
    capsule as capsule_adjoint,
    external as external_adjoint,
    half_space as half_space_adjoint,
    hinges as hinges_adjoint,
    lift_drag as lift_drag_adjoint,
    linear_drag as linear_drag_adjoint,
    neo_hookean as neo_hookean_adjoint,
    neo_hookean_triangles as triangles_adjoint,
    sphere as sphere_adjoint,
    springs as springs_adjoint,
)
from adjoint.forces.contact import ContactTwin
from adjoint.forces.element import ForceTwin
from adjsim.forces import (
    box,
    capsule,
    external,
    half_space,
    hinges,
    lift_drag,
    linear_drag,
    neo_hookean,
    neo_hookean_triangles,
    sphere,
    springs,
)
from adjsim.forces.element import Force


FORCE_TWINS: dict[type[Force], ForceTwin] = {
    external.ExternalForces: external_adjoint.ExternalForcesTwin(),
    box.BoxContact: ContactTwin(box_adjoint.BOX_TWIN),
    capsule.CapsuleContact: ContactTwin(capsule_adjoint.CAPSULE_TWIN),
    half_space.HalfSpaceContact: ContactTwin(half_space_adjoint.HALF_SPACE_TWIN),
    lift_drag.LiftDrag: lift_drag_adjoint.LiftDragTwin(),
    linear_drag.LinearDrag: linear_drag_adjoint.LinearDragTwin(),
    hinges.Hinges: hinges_adjoint.HingesTwin(),
    neo_hookean.NeoHookeanTets: neo_hookean_adjoint.NeoHookeanTetsTwin(),
    neo_hookean_triangles.NeoHookeanTriangles: triangles_adjoint.NeoHookeanTrianglesTwin(),
    sphere.SphereContact: ContactTwin(sphere_adjoint.SPHERE_TWIN),
    springs.Springs: springs_adjoint.SpringsTwin(),
}


def twin_of(force: Force) -> ForceTwin:
    """Return the twin of a force.

    Raises
    ------
    TypeError
        If no adjoint is registered for its class.
    """
    try:
        return FORCE_TWINS[type(force)]
    except KeyError:
        name = type(force).__name__
        raise TypeError(
            f"No adjoint is registered for `{name}`. Write `adjoint/forces/<its file>.py` and "
            "add one line to `adjoint/forces/registry.py`."
        ) from None
