"""What is raised for mistakes that one message explains, and where a search has no number."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


class StudyError(ValueError):
    """A mistake in a study's settings, folder or command: shown without a traceback."""

    mistakes: tuple[str, ...] = ()  # where the message lists several


def error_of(mistakes: Sequence[str], source: str) -> StudyError:
    """Return the error of one mistake, or of several that were found in `source`."""
    if len(mistakes) == 1:
        return StudyError(mistakes[0])
    error = StudyError("\n".join([f"{len(mistakes)} mistakes in {source}:", *mistakes]))
    error.mistakes = tuple(mistakes)
    return error


@contextmanager
def renamed(words: Mapping[str, str]) -> Iterator[None]:
    """Replace words in messages of mistakes and files: those of a scene file by a command's."""
    try:
        yield
    except (ValueError, OSError) as error:
        text = str(error)
        for word, other in words.items():
            text = text.replace(word, other)
        raise StudyError(text) from error


class MissingTimesError(StudyError):
    """A file does not say when its frames were taken, and `fps` or `times` would."""


class FailedSearchError(StudyError):
    """A search that found no finite loss: of many instances, the others are still of use."""


class NotFiniteError(ValueError):
    """The loss cannot be evaluated at a theta: the rollout left the finite numbers."""
