"""Numbers that a scene may lack: each as a problem in which it is free beside the others."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from studies.problem.free import more_values
from studies.problem.parameters import FreeParameter, Parameters, Scaled
from studies.problem.problem import SceneProblem
from studies.scene import declared
from studies.scene.building import build
from studies.scene.maps import Value


INSIDE = 1e-6  # of its size: how far from a bound a number begins


class Term:
    """A number of a scene that is not free, but may be."""

    def __init__(self, file: declared.SceneFile, path: str) -> None:
        self.file, self.path = file, path

    def value(self, problem: SceneProblem) -> Value | None:
        """Return the number as it is declared; None if the scene cannot have it."""
        built = build(self.file, at_rest=problem.is_still, more=[self.path])
        return {**built.values, **more_values(problem.observers)}.get(self.path)

    def added_to(self, problem: SceneProblem, start: np.ndarray | None = None) -> SceneProblem:
        """Return the problem in which it is the last free number.

        It begins where it is declared, without bounds; or at `start`, within its own.
        """
        built = build(self.file, at_rest=problem.is_still, more=[self.path])
        value = {**built.values, **more_values(problem.observers)}[self.path]
        at, bounds, unit = value.value, (-np.inf, np.inf), np.ones(())
        if start is not None:
            bounds, unit = value.bounds, np.maximum(np.abs(start - at), INSIDE)
            at = np.clip(start, bounds[0] + INSIDE * unit, bounds[1] - INSIDE * unit)
        term = FreeParameter(self.path, at, bounds, Scaled(unit), value.unit, is_answer=False)
        own = problem.parameters
        parameters = Parameters((*own.free, term), own.ties, own.wholes)
        return replace(problem, built=built, parameters=parameters)


def terms_of(file: declared.SceneFile, parameters: Parameters) -> list[Term]:
    """Return numbers that a scene may lack and that are not free.

    These are dry and viscous friction of hinges, sliders and pendula, drag of bodies, what contacts
    lose, and start times.
    """
    free = {path.partition("[")[0] for path in (*parameters.paths, *parameters.ties)}
    return [Term(file, path) for path in _paths(file) if path not in free]


def _paths(file: declared.SceneFile) -> Iterator[str]:
    for name, body in file.bodies.items():
        match body:
            case declared.Pendulum():
                yield from (f"{name}.friction", f"{name}.damping")
            case declared.Soft() | declared.Cloth() | declared.Rigid() | declared.Springs():
                yield f"{name}.drag_rate"
    for name in file.joints:
        yield from (f"{name}.dry_friction", f"{name}.viscous_friction")
    for name in (*file.obstacles, *file.contacts):
        yield from (f"{name}.restitution", f"{name}.dissipation")
    for name in file.observations:
        yield f"observations.{name}.start"
