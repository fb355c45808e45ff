"""Forces, one kind a file. Names below `TYPE_CHECKING` are loaded on first use."""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjsim.forces.box import BoxContact as BoxContact
    from adjsim.forces.capsule import CapsuleContact as CapsuleContact
    from adjsim.forces.element import Force as Force
    from adjsim.forces.external import ExternalForces as ExternalForces
    from adjsim.forces.grip import Grip as Grip
    from adjsim.forces.half_space import HalfSpaceContact as HalfSpaceContact
    from adjsim.forces.hinges import Hinges as Hinges
    from adjsim.forces.lift_drag import LiftDrag as LiftDrag
    from adjsim.forces.linear_drag import LinearDrag as LinearDrag
    from adjsim.forces.log_neo_hookean import LogNeoHookeanTets as LogNeoHookeanTets
    from adjsim.forces.neo_hookean import NeoHookeanTets as NeoHookeanTets
    from adjsim.forces.neo_hookean_triangles import NeoHookeanTriangles as NeoHookeanTriangles
    from adjsim.forces.sphere import SphereContact as SphereContact
    from adjsim.forces.springs import Springs as Springs
    from adjsim.forces.tracks import (
        path_angular_velocity as path_angular_velocity,
        path_velocity as path_velocity,
    )
    from adjsim.tiles.element_kind import ElementKind as ElementKind

__getattr__, __dir__ = lazy_names(__name__)
