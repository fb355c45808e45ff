"""A scene at its start values beside its films: `studies.reports.preview.showing.preview`."""
