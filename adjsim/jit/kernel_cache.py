"""The folder of compiled kernels, which is private, and files in it that are checked when read.

What is read from the cache is run. So the folder belongs to this user, and others cannot write to
it. Numba writes and reads the files, which `adjsim/jit/numba_private.py` has it check.

Tests: `tests/jit/test_kernel_cache.py`.
"""

import logging
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path


UNUSED_DAYS = 30
USED = ".used"  # the end of the name of an empty file, which tells when a kernel was used
KEY_DIGITS = 16  # with which the names of kernels end, and a "-" behind them in names of files
LOGGER = logging.getLogger("adjsim")
_warned: list[str] = []


def cache_base() -> Path:
    """Return the folder under which compiled code is kept, which only this user can write to."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    with suppress(OSError, RuntimeError):  # platformdirs': without HOME and a name of the user
        base = Path(named) if named else user_cache_path("adjsim", appauthor=False)
        make_private(base)
        if is_private(base) and os.access(base, os.W_OK):
            return base
        warn_once(
            "folder",
            f"others own {base} or can write to it, so no kernels are kept there: name a folder "
            "of yours in NUMBA_CACHE_DIR, or remove it and it is made again",
        )
    return private_folder(_last_resort())


def _last_resort() -> Path:
    return Path(tempfile.gettempdir()) / f"adjsim-{os.getuid()}"


def make_private(path: Path) -> None:
    """Make a folder, and those that it lies in, for this user alone."""
    if not path.parent.exists():
        make_private(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)


def is_private(path: Path) -> bool:
    """Whether this is a folder of this user that nobody else can write to."""
    status = path.stat()
    mode = status.st_mode
    return stat.S_ISDIR(mode) and status.st_uid == os.getuid() and not mode & 0o022


def private_folder(path: Path) -> Path:
    """Return a folder that only this user can write to: `path`, or a new one beside it.

    In a shared folder anyone can make `path` first. On a full disk it is in the system's folder
    for temporary files.
    """
    with suppress(OSError):
        make_private(path)
        if not path.is_symlink() and is_private(path):
            return path
    try:
        return Path(tempfile.mkdtemp(prefix=f"{path.name}-", dir=path.parent))
    except OSError as error:
        if path.parent == _last_resort():
            raise
        warn_once("disk", f"compiled kernels are not kept where they were before: {error}")
        return private_folder(_last_resort() / path.name)


def mark(folder: Path, key: str) -> None:
    """Note that the kernel with this key is used now.

    Nothing here and in `prune` may fail or wait: another process may do the same, or read only.
    """
    with suppress(OSError):
        (folder / f"{key}{USED}").touch()


def prune(base: Path) -> None:
    """Remove the files of kernels that nobody used for a month; they are looked for once a day."""
    looked, now = base / "pruned", time.time()

    def is_older(path: Path, days: float) -> bool:
        return path.lstat().st_mtime < now - days * 86400.0

    with suppress(OSError):
        if looked.exists() and not is_older(looked, 1.0):
            return
        looked.touch()
        old = {path for path in base.glob("*/*") if is_older(path, UNUSED_DAYS)}
        keys = {path.name.removesuffix(USED) for path in set(base.glob(f"*/*{USED}")) - old}
        for path in old:
            with suppress(OSError):
                if path.name.split("-")[0][-KEY_DIGITS:] not in keys:
                    path.unlink()


def warn_once(kind: str, text: str) -> None:
    """Print a warning, the first of its kind."""
    if kind not in _warned:
        _warned.append(kind)
        LOGGER.warning("warning: %s", text)
