"""What is raised for mistakes that one message explains, and where a search has no number."""


class StudyError(ValueError):
    """A mistake in a study's settings, folder or command: shown without a traceback."""


class FailedSearchError(StudyError):
    """A search that found no finite loss: of many instances, the others are still of use."""


class NotFiniteError(ValueError):
    """The loss cannot be evaluated at a theta: the rollout left the finite numbers."""
