"""Table 4, left, of the gradSim paper: the mass from video where the model of the fit is wrong.

    adjsim run table4-models count=5

A correct run ends with a mean relative error below 1e-6 where the model is perfect. Where it is
not, the error is that of the model; the report shows it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies import config
from studies.image_fit import ImageFit
from studies.looks import Look
from studies.paper.model_errors import looks, scenes, study
from studies.paper.model_errors.scenes import MASS, Kind
from studies.paper.tables.baselines import AVERAGE, RANDOM
from studies.paper.tables.from_video import VIDEO
from studies.paper.tables.job import prepare_table
from studies.paper.tables.scan import SCAN
from studies.paper.tables.table import Case, Column, Prior, Scene, Settings, Statistic, Table
from studies.registry import Job, RunOptions
from studies.settings import require_chosen


# The mean relative errors of the paper; the last kind is ours.
PUBLISHED = {
    Kind.NO_FRICTION: 0.1866,
    Kind.NO_ELASTICITY: 0.2281,
    Kind.RIGID_AS_DEFORMABLE: 0.3462,
    Kind.DEFORMABLE_AS_RIGID: 0.4974,
    Kind.PHOTOREALISTIC: 0.1793,
    Kind.PATH_TRACED: 0.1793,
    Kind.PERFECT: 0.1071,
}
PERFECT = (Kind.PERFECT, Kind.PERFECT_DEFORMABLE)
BAR = 1e-6  # of a perfect model


@dataclass(frozen=True, eq=False)
class ModelErrorScene(Scene):
    """Bodies of `adjsim run model-error`, with one kind of model."""

    name: str
    study: str = "model-error"

    @property
    def kind(self) -> Kind:
        """What the fit has otherwise than the video."""
        return Kind(self.name)

    @property
    def columns(self) -> tuple[Column, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The one column: the mass."""
        published = PUBLISHED.get(self.kind)
        return (
            Column(
                MASS,
                self.name.replace("-", " "),
                bar=BAR if self.kind in PERFECT else None,
                by=Statistic.MEAN,
                published={} if published is None else {VIDEO.name: published},
            ),
        )

    def resolved(self, settings: Settings) -> config.StudySettings:
        """Return the study's settings with this kind."""
        found = super().resolved(settings)
        return replace(found, values={**found.values, "kind": self.name})

    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of the study's settings out of range, or of what VTK lacks to draw."""
        del settings
        study.check(values)

    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Return the study's instance k."""
        del settings
        return study.make_fit(values, options, k)

    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return the ends of the hidden mass."""
        del settings, fit
        low, high = values["hidden"]["mass"]
        return {MASS: (np.array(low), np.array(high))}

    def look(self, case: Case, theta: np.ndarray) -> Look:
        """Return the landscape of an instance, and its video beside the fit."""
        made = scenes.make_case(case.values, case.options, self.kind, case.k)
        return looks.draw(made, theta, case.settings["scan"]["points"])


TABLE = Table(
    "table4-models",
    "Table 4, left: the mass from video under model error",
    tuple(ModelErrorScene(str(kind)) for kind in (*PUBLISHED, Kind.PERFECT_DEFORMABLE)),
    (VIDEO, SCAN, AVERAGE, RANDOM),
    differs=(
        "The mass of a body is one free number; shape, pose, velocity, contact and the force that "
        "pushes it are known, and that force, in newtons, tells the mass. Without elasticity means "
        "a damper of the contact that lets next to nothing bounce, without friction a coefficient "
        "of 0. A soft body has the surface and the mass of the rigid one and is of tetrahedra "
        "inside; these bodies have simple shapes. Photorealistic videos are drawn by VTK, or "
        "traced by Mitsuba, the paper's by PBRT. The paper's error of a perfect model says that "
        "its searches stop short of the truth; ours, with exact gradients, reach it."
    ),
)


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return what runs the kinds that they name.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    require_chosen("kinds", settings["kinds"], [scene.name for scene in TABLE.scenes])
    chosen = tuple(scene for scene in TABLE.scenes if scene.name in settings["kinds"])
    return prepare_table(replace(TABLE, scenes=chosen), settings, options)
