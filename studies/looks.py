"""Further pictures of a report: what a study shows beside targets and fits."""

from dataclasses import dataclass

from studies.runs import folder as run_folder
from studies.runs.folder import RunFolder


@dataclass(frozen=True)
class Look:
    """A picture with its heading and what it shows; `name` is its file's."""

    name: str
    title: str
    caption: str
    data: bytes


def write_looks(folder: RunFolder, looks: list[Look]) -> None:
    """Write the pictures, and what the report says of them."""
    folder.write_figures({look.name: look.data for look in looks})
    told = [{"name": k.name, "title": k.title, "caption": k.caption} for k in looks]
    folder.write_json(run_folder.LOOKS, {"looks": told})
