"""The folder of a run, under the name that older modules import; see `studies/runs/folder.py`."""

from studies.runs.folder import *  # noqa: F403
from studies.runs.folder import RunFolder, new_folder


__all__ = ["RunFolder", "new_folder"]
