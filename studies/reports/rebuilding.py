"""The report of a folder, whatever is in it: a run, a scan or a data set."""

from pathlib import Path

from studies.registry import find_study
from studies.runs.folder import SCAN, SPEC, RunFolder


FORMATS = ("pdf", "svg")


def rebuild(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Write the report of a folder, and its figures in these formats; return its path.

    Raises
    ------
    StudyError
        If what is in it has not ended, or is damaged.
    """
    if folder.has(SPEC):
        from studies.datasets.pages import write_report as write_dataset_report

        return write_dataset_report(folder, formats)[0]
    if folder.has(SCAN):
        from studies.scans.report import write_report as write_scan_report

        return write_scan_report(folder, formats)
    return find_study(folder.study_name()).write_report(folder, formats)
