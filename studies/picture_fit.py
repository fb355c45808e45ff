"""Fit free parameters to pictures of a scene at rest."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from render.blending import Hard
from studies import run_folder
from studies.image_fit import ImageFit
from studies.looks import Look, diagnosis, gradient_look, write_looks
from studies.outcome import accepted
from studies.picture_problem import PictureProblem
from studies.run_folder import RunFolder
from studies.search.local import Found, read_search


@dataclass(frozen=True, eq=False)
class PictureFit(ImageFit):
    """A `studies.registry.Job`: fit a picture problem.

    Attributes
    ----------
    problem : PictureProblem
    names : tuple of str
        Of the pictures.
    felt : str, optional
        Object whose place or shape is looked for: the report says why it feels the loss.
    """

    problem: PictureProblem
    names: tuple[str, ...] = field(kw_only=True)
    felt: str = field(default="", kw_only=True)

    def facts(self) -> dict[str, Any]:
        """Return number and size of the pictures, and what the start feels."""
        problem, stages = self.problem, self.search.stages
        start = problem.parameters.start
        is_hard = isinstance(problem.scenery.rasterizer.blend, Hard)
        rows, advice = diagnosis(problem, self.felt, start, stages) if self.felt else ([], [])
        return {
            "pictures": len(self.names),
            "size": list(problem.scenery.size),
            "softness": [] if is_hard else [problem.softness(stage) for stage in stages],
            "diagnosis": rows,
            "advice": advice,
        }

    def draw_looks(self, theta: np.ndarray, history: np.ndarray) -> list[Look]:
        """Draw more for the report, from the optimum and from all theta that were evaluated."""
        del theta, history
        return []

    def write_seen(self, folder: RunFolder, found: Found) -> None:
        """Write the pictures of start, target and fit, and the further looks."""
        problem, theta = self.problem, found.best.theta
        start = problem.parameters.start
        folder.write_npz(
            run_folder.PICTURES,
            names=np.array(self.names),
            target=problem.targets.astype(np.float32),
            fitted=problem.images(theta).astype(np.float32),
            start=problem.images(start).astype(np.float32),
        )
        history = accepted(read_search(folder, found.logs[found.start]))
        looks = self.draw_looks(theta, np.array([one.theta for one in history]))
        if self.felt:
            looks.append(gradient_look(problem, self.felt, start, self.search.stages))
        write_looks(folder, looks)
