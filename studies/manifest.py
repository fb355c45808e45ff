"""Versions and machine, under the name that older modules import; see `studies/runs/manifest.py`."""

from studies.runs.manifest import machine, now, version, versions


__all__ = ["machine", "now", "version", "versions"]
