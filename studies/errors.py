"""The one exception for mistakes that a single message explains."""


class StudyError(ValueError):
    """A mistake in a study's settings, folder or command: shown without a traceback."""
