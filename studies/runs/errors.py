"""The one exception for mistakes that a single message explains."""


class StudyError(ValueError):
    """A mistake in a study's settings, folder or command: shown without a traceback."""


class FailedSearchError(StudyError):
    """A search that found no finite loss: of many instances, the others are still of use."""
