"""The systems of the coverage table, in the order in which they are checked.

They are the catalogue of scenes: CUDA is checked on them too.
"""

from typing import Any

from adjoint.examples import Example
from adjoint.forces.registry import examples
from adjoint.verify.problem import System, systems
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
    support_forces,
    surfaces,
    views,
    worlds,
)
from adjsim.model import Model


SYSTEMS: tuple[System, ...] = (
    *solids.SYSTEMS,
    *systems("solids", solids.rollout_problem, examples()),
    *springs.SYSTEMS,
    *shells.SYSTEMS,
    *density.SYSTEMS,
    *equilibria.SYSTEMS,
    *implicit.SYSTEMS,
    *support_forces.SYSTEMS,
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


def scenes(n_steps: int) -> dict[str, Example]:
    """Return the scenes of all systems that are rollouts of models, by name."""
    makes: dict[str, Any] = {system.name: system.make for system in SYSTEMS}
    by_name = {
        name: make.args[0](n_steps)
        for name, make in makes.items()
        if getattr(make, "func", None) is solids.rollout_problem
    }
    return {name: scene for name, scene in by_name.items() if isinstance(scene.model, Model)}
