"""Memory that is freed stays with the process, on systems with glibc.

It gives blocks of more than 32 MB back to the system when they are freed, which hands the next ones
out page by page, filled with zeros: with arrays of all pixels of a film that took a third of a
search. Elsewhere nothing changes.
"""

import ctypes
from contextlib import suppress


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # as in malloc.h
LARGEST, LARGEST_OF_OLD = 1 << 28, 1 << 25  # bytes of a block that is kept
MOST = (1 << 31) - 1  # bytes that are kept: the largest int


def keep_freed_memory() -> None:
    """Let this process keep blocks that it frees, of all films but very large ones."""
    with suppress(AttributeError, OSError, TypeError):  # no `mallopt`, or no C library by itself
        mallopt = ctypes.CDLL(None).mallopt
        # glibc before 2.35 takes at most half of a heap; other calls end its own choice
        if mallopt(M_MMAP_THRESHOLD, LARGEST) or mallopt(M_MMAP_THRESHOLD, LARGEST_OF_OLD):
            mallopt(M_TRIM_THRESHOLD, MOST)
            mallopt(M_ARENA_MAX, 1)  # those of other threads hold small blocks only
