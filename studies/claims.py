"""Of two commands that would write to one folder, the second is refused.

A folder is claimed by an advisory lock on itself, which leaves no file behind and ends with the
process, however that ends. Where there are no such locks, on Windows and on some network drives,
every claim is granted.

Tests: `tests/studies/test_claims.py`.
"""

import os
from pathlib import Path
from weakref import WeakValueDictionary, finalize

from studies.errors import StudyError


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Claim:
    """Keeps other commands out of a folder while it is held, until it is released."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._end = finalize(self, _unlock, place)

    def release(self) -> None:
        """Let other commands write to the folder again."""
        self._end()

    def is_of(self, path: Path) -> bool:
        """Whether the folder is still there, and held; another may have its name by now."""
        return self._end.alive and os.path.samestat(os.fstat(self._place), path.stat())

    def forget(self) -> None:
        """Close in a child what its parent holds."""
        if self._end.detach():
            os.close(self._place)


def _unlock(place: int) -> None:
    """End a lock, for a child that was forked meanwhile too, and close."""
    if fcntl is not None and place >= 0:
        fcntl.flock(place, fcntl.LOCK_UN)
        os.close(place)


_held: WeakValueDictionary[Path, Claim] = WeakValueDictionary()  # of this process, by folder


def _forget() -> None:
    """Close in a forked child what is its parent's."""
    for held in list(_held.values()):
        held.forget()
    _held.clear()


if fcntl is not None:
    os.register_at_fork(after_in_child=_forget)


def claim(path: Path) -> Claim:
    """Keep other commands out of a folder while what is returned is held, at most this process.

    What this process holds already it may claim again, and shares it.

    Raises
    ------
    StudyError
        If another process writes to it.
    """
    path = path.resolve()
    if fcntl is None:
        return Claim(-1)
    held = _held.get(path)
    if held is not None and held.is_of(path):
        return held
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
        return Claim(-1)
    _held[path] = held = Claim(place)
    return held
