"""Writing a file so that it appears complete or not at all, and saying why where it cannot be."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from studies.runs.errors import StudyError


PART = ".part-"  # what the name of a file begins with that is not complete yet
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise what goes wrong with a file within the block as one message with its way out."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise StudyError(f"{path} cannot be written: {error.strerror or error}.") from error
        raise StudyError(
            f"{path} cannot be written: {error.strerror}. Make room on that drive; what is "
            "written there already is kept, and `--resume` goes on with it."
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to, which takes the place of `path` when the block ends well."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART}{os.getpid()}-{path.name}")
    try:
        with explained(path):
            yield part
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink()
