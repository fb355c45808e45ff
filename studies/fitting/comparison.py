"""Controls of many instances: by picture, told of states, and at random, on equal terms.

Instance k of seed s is the single run of seed s + k. All three kinds of supervision begin
with the same bodies, have the same budget, and are measured alike (`studies/control/goal.py`).
The curves are raw: an evaluation counts with its own distance, not with the best before it. What a
search returns is its evaluation of the lowest loss, which it knows; the distance it does not know.

Tests: `tests/studies/fitting/test_comparison.py`.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from studies.answer.reached import bars_of
from studies.control import results
from studies.control.goal import make_target
from studies.fitting.fit import SceneFit, make_fit
from studies.fitting.instances import (
    Instances,
    Records,
    csv_text,
    failure_lines,
    inside,
    parted,
    place,
)
from studies.reports.numbers import count as counted
from studies.runs.errors import FailedSearchError
from studies.runs.evaluations import read_log
from studies.runs.folder import CURVES_CSV, INSTANCES_CSV, ITERATIONS, STUDY, RunFolder
from studies.runs.progress import EvaluationProgress
from studies.scene.drawing import instance_of
from studies.scene.reading import to_toml


KINDS = ("picture", "states", "random")


class Comparison(Instances):
    """Search every instance under each supervision, then compare the ends."""

    @property
    def kinds(self) -> list[str]:
        """The supervisions; the one that the file names comes first: by it instances are judged."""
        first = self.file.goal.supervision
        return [first, *(kind for kind in KINDS if kind != first)]

    def make(self, k: int) -> SceneFit:
        """Return the search of instance k under the file's kind of supervision."""
        options = replace(self.options, seed=self.options.seed + k)
        file = instance_of(self.file, options.seed)
        return make_fit(file, options, title=self.title, say=lambda _text: None)

    def search(self, folder: RunFolder, progress: EvaluationProgress, k: int) -> dict[str, Any]:
        """Search under every kind of supervision; leave logs, last pictures and the scene."""
        fit = self.make(k)
        folder.write_text(f"{place(k)}/{STUDY}", to_toml(fit.file))
        ends, pictures = {}, {}
        for kind in self.kinds:
            progress.begin(kind)
            within = inside(folder, f"{place(k)}/{kind}")
            file = replace(fit.file, goal=replace(fit.file.goal, supervision=kind))
            solved = replace(fit, file=file).solve(within, progress)
            log = read_log(within.file(ITERATIONS))
            if not any(np.isfinite(evaluation.loss) for evaluation in log):
                raise FailedSearchError(f"{kind}: no rollout stayed finite.")
            ends[kind] = results.curve(solved.result.status.name, log)
            ends[kind]["verdict"] = str(solved.verdict.kind)
            problem = solved.problem
            for observer, rows in problem.by_observer(problem.images(solved.result.theta)):
                if observer.IS_PICTURE:  # the last picture of the first film
                    pictures[f"picture.{kind}"] = observer.as_images(rows)[-1]
                    break
        name = f"{place(k)}/last-pictures.npz"
        outline = make_target(fit.made, "picture")[1].silhouette
        if outline is not None:
            folder.write_npz(name, outline=outline.astype(np.float64), **pictures)
        return {"instance": k, "searches": ends, "pictures": None if outline is None else name}

    def sum_up(self, folder: RunFolder, records: Records) -> tuple[list[str], int, str]:
        """Write numbers and curves; return the table in lines, and the worst instance."""
        records, failed = parted(records)
        first = self.kinds[0]
        worst = results.worst(records, first)
        compared = {
            "kinds": self.kinds,
            "instances": self.file.instances,
            "bars": bars_of(self.file.goal, make_target(self.make(worst).made, first)[1].size),
            "shown": worst,
            "table": results.summed_up(records),
            "records": records,
            "failed": failed,
        }
        folder.write_json(results.COMPARISON, compared)
        folder.write_text(INSTANCES_CSV, csv_text(results.ends_lines(records, failed)))
        folder.write_text(CURVES_CSV, csv_text(results.curves_lines(records)))
        return _table_lines(compared), worst, f"{place(worst)}/{first}"


def _table_lines(compared: dict[str, Any]) -> list[str]:
    count, failed = compared["instances"], compared["failed"]
    ended = count - len(failed)
    lines = [
        "distance of the centre of mass from the goal's, gain on where it begins, and cover of the "
        f"picture (IoU), over {counted(ended, 'instance')}:"
    ]
    for row in compared["table"]:
        parts = []
        for name, measure in results.MEASURES.items():
            if name not in row:
                continue
            form = "{:.3g} m" if measure.is_length else "{:.3f}"
            mean, median, worst = (form.format(row[name][k]) for k in ("mean", "median", "worst"))
            parts.append(
                f"{name} mean {mean}, median {median}, worst {worst} "
                f"(instance {row[name]['worst_instance']})"
            )
        lines.append(
            f"  {row['kind']}: reached {row['reached']} of {ended}; {'; '.join(parts)}; "
            f"{row['seconds']:.2g} s an evaluation"
        )
    return lines + failure_lines(failed, count)
