"""The reports of runs of every kind, written once more from what is in their folders."""

from pathlib import Path

from studies.runs.errors import StudyError
from studies.runs.folder import MANIFEST, REPORT, SCAN, SPEC, RunFolder
from studies.scene.files import SCENE


def rebuild(folder: RunFolder, formats: tuple[str, ...] = ()) -> Path:
    """Write the report of a folder, and its figures in these formats; return its path."""
    try:
        if folder.has(SPEC):
            from studies.datasets.pages import write_report as write_dataset_report

            return write_dataset_report(folder)[0]
        if folder.has(SCAN):
            from studies.scans.report import write_report as write_scan_report

            return write_scan_report(folder, formats)
        if folder.read_json(MANIFEST)["study"] != SCENE:
            raise StudyError(f"{folder.path} holds no run of a scene, a scan or a data set.")
        from studies.reports.scene_run import write_report

        return write_report(folder, formats)
    except StudyError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        page = folder.file(REPORT)
        kept = f" The page that they were made for is still there: {page}." if page.exists() else ""
        raise StudyError(
            f"{folder.path} has files that do not hold what a report needs "
            f"({type(error).__name__}: {error}). Another version of adjsim wrote them, or "
            f"something else has changed them: run it again in another folder.{kept}"
        ) from error
