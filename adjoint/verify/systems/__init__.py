"""The systems of the coverage table, in the order in which they are checked."""

from adjoint.verify.problem import System
from adjoint.verify.systems import chain, losses, pixels, shells, solids, springs


SYSTEMS: tuple[System, ...] = (
    *solids.SYSTEMS,
    *springs.SYSTEMS,
    *shells.SYSTEMS,
    *pixels.SYSTEMS,
    *losses.SYSTEMS,
    *chain.SYSTEMS,
)
