"""From the pixels alone: the search of the scene's own study, as `adjsim run` makes it."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from studies.paper.tables.table import Case, Estimate, Settings
from studies.progress import EvaluationProgress
from studies.runs.folder import RunFolder


@dataclass(frozen=True)
class FromVideo:
    """An estimator: the study's fit, its settings and budget as they are."""

    name: str = "video"
    label: str = "ours, from video"

    def about(self, settings: Settings) -> str:
        """Return what it does."""
        del settings
        return (
            "The search of the study from the pixels alone, with its method, budget and starts: "
            "the table optimizer in the settings of the scene."
        )

    def check(self, settings: Settings) -> None:
        """Accept all settings: they are the study's."""
        del settings

    def estimate(self, case: Case) -> Estimate:
        """Search, and say how well the video determines what was found."""
        # A record is kept whole or not at all: the logs of its search are of no further use.
        with tempfile.TemporaryDirectory() as place:
            found, spread = case.fit.solve(RunFolder(Path(place)), silent(case))
        return Estimate(
            found.best.theta,
            found.best.status.name,
            found.best.loss,
            found.evaluations,
            len(found.all),
            spread.to_dict(case.problem.parameters.theta_labels),
        )


def silent(case: Case) -> EvaluationProgress:
    """Return what shows nothing of a search: a table shows its instances."""
    return EvaluationProgress(case.fit.search.max_evaluations, Console(quiet=True))


VIDEO = FromVideo()
