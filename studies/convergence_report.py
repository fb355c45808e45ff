"""The part of a report that shows the search: curves over evaluations, and the stages it took."""

import html
from typing import Any

from studies import figures, run_folder
from studies.optimizers.evaluations import Evaluation
from studies.report_parts import counted
from studies.run_folder import RunFolder
from studies.search.local import read_search


SHOWN_PARAMETERS = 6


def drawn(folder: RunFolder, result: dict[str, Any], log: list[Evaluation]) -> dict[str, bytes]:
    """Return the figures of the search by name; `log` is that of the start that is shown."""
    arrays = folder.read_npz(run_folder.PARAMETERS)
    others = [
        read_search(folder, names) for k, names in enumerate(result["logs"]) if k != result["start"]
    ]
    ends = [spent for _, spent in stages(log)[:-1]]
    images = {
        "loss": figures.loss(log, others, ends),
        "gradient_norm": figures.gradient_norm(log, ends),
    }
    for i, row in enumerate(result["parameters"][:SHOWN_PARAMETERS]):
        if row["count"] > 1:
            images[f"parameter_{i + 1}"] = figures.many(arrays, row)
        elif row["index"] is not None:
            images[f"parameter_{i + 1}"] = figures.parameter(arrays, row, ends)
    if arrays["singular_values"].size > 1:
        images["spectrum"] = figures.spectrum(arrays["singular_values"])
    return images


def stages(log: list[Evaluation]) -> list[tuple[str, int]]:
    """Return the names of a search's stages, and the evaluations spent when each had ended.

    None where one has no name, as in logs of earlier versions.
    """
    ends = {one.stage: one.spent for one in log}  # the last one of each
    return [] if "" in ends else list(ends.items())


def told(log: list[Evaluation]) -> str:
    """Return what the stages of a search were, as HTML; nothing of a search that has one."""
    found = stages(log)
    if len(found) < 2:
        return ""
    begins = [0, *(end for _, end in found)]
    parts = "; ".join(
        f"{html.escape(name)}, {counted(end - begin, 'evaluation')}"
        for (name, end), begin in zip(found, begins, strict=False)
    )
    return (
        f" The search had {len(found)} stages, with grey dashed lines between them: {parts}. Each "
        "began anew where the one before it had ended. Losses of different stages compare "
        "different images; what was identified, its intervals and the certificate are of the last."
    )
