"""The systems of the coverage table, in the order in which they are checked."""

from adjoint.verify.problem import System
from adjoint.verify.systems import (
    bodies,
    chain,
    contacts,
    density,
    equilibria,
    hinges,
    implicit,
    joints,
    loads,
    losses,
    pixel_outputs,
    pixels,
    reduced,
    shells,
    solids,
    springs,
    surfaces,
    views,
    worlds,
)


SYSTEMS: tuple[System, ...] = (
    *solids.SYSTEMS,
    *springs.SYSTEMS,
    *shells.SYSTEMS,
    *density.SYSTEMS,
    *equilibria.SYSTEMS,
    *implicit.SYSTEMS,
    *reduced.SYSTEMS,
    *hinges.SYSTEMS,
    *loads.SYSTEMS,
    *contacts.SYSTEMS,
    *bodies.SYSTEMS,
    *joints.SYSTEMS,
    *surfaces.SYSTEMS,
    *worlds.SYSTEMS,
    *pixels.SYSTEMS,
    *pixel_outputs.SYSTEMS,
    *views.SYSTEMS,
    *losses.SYSTEMS,
    *chain.SYSTEMS,
)
