"""Of two commands that would write to one folder, the second is refused.

A folder is claimed by an advisory lock on itself, which leaves no file behind and ends with the
process, however that ends. Where there are no such locks, on Windows and on some network drives,
every claim is granted.

Tests: `tests/studies/test_claims.py`.
"""

import os
from pathlib import Path

from studies.errors import StudyError


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_held: dict[Path, int] = {}  # by folder: what this process has open of it


def claim(path: Path) -> None:
    """Keep other commands out of a folder until it is released, or this process ends.

    What this process holds already it may claim again.

    Raises
    ------
    StudyError
        If another process writes to it.
    """
    path = path.resolve()
    if fcntl is None or path in _held:
        return
    place = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(place)
        raise StudyError(
            f"`--out` {path} is being written by another command. Wait until that has ended, or "
            "choose another folder."
        ) from error
    except OSError:  # no locks on this drive
        os.close(place)
        return
    _held[path] = place


def release(path: Path) -> None:
    """Let other commands write to a folder again."""
    place = _held.pop(path.resolve(), None)
    if place is not None:
        os.close(place)
