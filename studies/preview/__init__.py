"""A scene at its start values beside its films: `studies.preview.showing.preview`."""
