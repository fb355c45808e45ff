"""Numbers that a scene may lack: each as a problem in which it is free beside the others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from studies.problem.declared_errors import copies_of
from studies.problem.free import more_values
from studies.problem.parameters import FreeParameter, Parameters, Scaled
from studies.problem.problem import SceneProblem
from studies.scene import declared
from studies.scene.building import build
from studies.scene.maps import Value


INSIDE = 1e-6  # of its size: how far from a bound a number begins


@dataclass(frozen=True)
class Term:
    """A number of a scene that is not free, but may be."""

    file: declared.SceneFile
    path: str
    copies: tuple[str, ...] = ()  # paths of the same number of bodies in other takes

    def added_to(
        self, problem: SceneProblem, start: np.ndarray | None = None
    ) -> tuple[SceneProblem, Value] | None:
        """Return the problem in which it is the last free number, and the number as declared.

        It begins there, without bounds; or at `start`, within its own. None if the scene cannot
        have it.
        """
        built = build(self.file, at_rest=problem.is_still, more=[self.path, *self.copies])
        value = {**built.values, **more_values(problem.observers)}.get(self.path)
        if value is None:
            return None
        at, bounds, unit = value.value, (-np.inf, np.inf), np.ones(())
        if start is not None:
            bounds, unit = value.bounds, np.maximum(np.abs(start - at), INSIDE)
            at = np.clip(start, bounds[0] + INSIDE * unit, bounds[1] - INSIDE * unit)
        term = FreeParameter(self.path, at, bounds, Scaled(unit), value.unit, is_answer=False)
        others = problem.parameters
        ties = {**others.ties, **dict.fromkeys(self.copies, (self.path, 1.0))}
        parameters = Parameters((*others.free, term), ties, others.wholes)
        return replace(problem, built=built, parameters=parameters), value


def terms_of(file: declared.SceneFile, parameters: Parameters) -> list[Term]:
    """Return numbers that a scene may lack and that are not free.

    These are dry and viscous friction of hinges, sliders and pendula, drag of bodies, what contacts
    lose, and start times.
    """
    free = {path.partition("[")[0] for path in (*parameters.paths, *parameters.ties)}
    return [
        Term(file, paths[0], tuple(paths[1:])) for paths in _paths(file) if free.isdisjoint(paths)
    ]


def _paths(file: declared.SceneFile) -> Iterator[list[str]]:
    for names in copies_of(file.bodies).values():
        match file.bodies[names[0]]:
            case declared.Pendulum():
                yield from ([f"{names[0]}.friction"], [f"{names[0]}.damping"])
            case declared.Soft() | declared.Cloth() | declared.Rigid() | declared.Springs():
                yield [f"{name}.drag_rate" for name in names]
    for name in file.joints:
        yield from ([f"{name}.dry_friction"], [f"{name}.viscous_friction"])
    for name in (*file.obstacles, *file.contacts):
        yield from ([f"{name}.restitution"], [f"{name}.dissipation"])
    for name in file.observations:
        yield [f"observations.{name}.start"]
