"""How wrong is the mass that a video tells where the model of the fit is not that of the video?

    adjsim run model-error kind=no-friction

A correct run ends where the loss of a wrong model is lowest: beside the truth, by as much as the
model is wrong, with a certificate that passed. With `kind=perfect` it ends at the truth.
`adjsim run table4-models` has all kinds and many bodies.
"""

from functools import partial
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.fit import Fit
from studies.instances import make_job
from studies.paper.model_errors import scenes
from studies.paper.model_errors.scenes import MASS, Case, Kind
from studies.registry import Job, RunOptions
from studies.search.local import make_search
from studies.truth import Truth


PHOTOGRAPH = (
    "The video has light from everywhere, shadows and a floor; the fit has one colour before a "
    "picture of the empty scene."
)
# What a kind does to the fit, as a sentence of the report.
TOLD = {
    Kind.PERFECT: "The fit has the model of the video.",
    Kind.PERFECT_DEFORMABLE: "Video and fit have the same soft body.",
    Kind.NO_FRICTION: "The floor of the video is rough, that of the fit is not.",
    Kind.NO_ELASTICITY: "The body of the video bounces, that of the fit hardly does.",
    Kind.RIGID_AS_DEFORMABLE: "The body of the video is rigid, that of the fit is soft.",
    Kind.DEFORMABLE_AS_RIGID: "The body of the video is soft, that of the fit is rigid.",
    Kind.PHOTOREALISTIC: PHOTOGRAPH,
    Kind.PATH_TRACED: PHOTOGRAPH,
}


def prepare(settings: dict[str, Any], options: RunOptions) -> Job:
    """Check the settings and return the search, or the searches of all instances.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    check(settings)
    return make_job(settings, options, partial(make_fit, settings, options))


def check(settings: dict[str, Any]) -> None:
    """Complain of settings out of range, and of a kind that cannot be drawn here."""
    scenes.check_settings(settings)
    kind = Kind(settings["kind"])
    draws = scenes.PHOTOGRAPHERS.get(kind)
    if draws is not None and (problem := draws.missing()):
        raise StudyError(f"`kind` {kind} is drawn by {draws.NAME}. {problem}")


def make_fit(settings: dict[str, Any], options: RunOptions, instance: int) -> Fit:
    """Draw an instance, make its video, and return the search for its mass."""
    case = scenes.make_case(settings, options, Kind(settings["kind"]), instance)
    return Fit(
        case.problem,
        make_search(settings["optimizer"]),
        options,
        title=f"The mass of a body from video, the model of the fit: {case.kind}",
        units={MASS: "kg"},
        what=what(case),
        truth=Truth({MASS: case.body.mass}, case.problem.targets),
        findings=partial(findings, case),
        instance=instance,
    )


def what(case: Case) -> str:
    """Return what is looked at."""
    tets = case.body.tets
    inside = "" if tets is None else f", {tets.n_tets} tetrahedra where it is soft"
    return f"{case.body.what}, {len(case.body.surface.points)} vertices{inside}"


def findings(case: Case, theta: np.ndarray) -> list[str]:
    """Return what the kind does, and how the loss at the hidden mass compares with the lowest."""
    truth = case.problem.loss_at(np.log([case.body.mass]))
    found = case.problem.loss_at(theta)
    return [
        f"{TOLD[case.kind]} At the hidden mass the loss of this model is {truth:.2e}, here "
        f"{found:.2e}; with the model of the video it is 0 at the hidden mass."
    ]
