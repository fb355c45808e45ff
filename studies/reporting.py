"""The report of a folder, whatever is in it: a run, a scan or a data set."""

from pathlib import Path

from studies.registry import find_study
from studies.run_folder import SCAN, SPEC, RunFolder


def rebuild(folder: RunFolder) -> Path:
    """Write the report of a folder; return its path.

    Raises
    ------
    StudyError
        If what is in it has not ended.
    """
    if folder.has(SPEC):
        from studies.datasets.pages import write_report as write_dataset_report

        return write_dataset_report(folder)[0]
    if folder.has(SCAN):
        from studies.scans.report import write_report as write_scan_report

        return write_scan_report(folder)
    return find_study(folder.study_name()).write_report(folder)
