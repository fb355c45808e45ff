"""Files that appear complete or not at all, and logs of one JSON record a line with a checksum.

A kill may cut the last line of a log short: it is dropped and computed again. Any other damage is
an error.
"""

import errno
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from studies.runs.errors import StudyError


CHECK = "crc32"  # key of a record: its checksum
PART = re.compile(r"\.part-\d+-.+")  # the name of a file that is not complete yet
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
            f"{path} cannot be written: {error.strerror}. Make room on that drive; a run "
            "keeps what is written, and `--resume` goes on with it."
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a file to write to, which takes the place of `path` when the block ends well."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        with explained(path):
            yield temporary
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def files_of(path: Path) -> list[Path] | None:
    """Return the files of a folder, or those like "depth/*.png", by name; None of a single file.

    Numbers in names count as numbers: 2.png is before 10.png. Hidden files are left out.
    """
    if path.is_dir():
        files = path.iterdir()
    elif set(path.name).isdisjoint("*?[") or path.exists():
        return None
    else:
        files = path.parent.glob(path.name)
    return sorted((file for file in files if file.is_file() and file.name[0] != "."), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort key: runs of digits count as numbers."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(run), "") if run.isdecimal() else (-1, run) for run in parts]


def read_records(
    path: Path, kind: type | None = None, *, cut: bool = False
) -> list[dict[str, Any]]:
    """Return the records of a log, without a last line that was cut short by a kill.

    With `cut` that is cut off the file too, so that complete lines follow. `kind` is the dataclass
    whose fields a record must have.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if cut and end < len(data):
        with explained(path):
            os.truncate(path, end)
    records = []
    for number, line in enumerate(data[:end].splitlines(), start=1):
        try:
            records.append(unsealed(line, CHECK, _crc32, kind))
        except ValueError as error:
            raise StudyError(
                f"Line {number} of {path} is damaged: something else has changed it ({error}). "
                "Delete the file, and `--resume` computes its contents again."
            ) from error
    return records


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record to a log, and wait until it is on the disk."""
    append_line(path, line_of(record))


def line_of(record: Mapping[str, Any]) -> str:
    """Return the line of a record, without its end; a number that is not finite is an error."""
    return json.dumps({**record, CHECK: _crc32(record)})


def append_line(path: Path, line: str) -> None:
    """Append a line to a file, all of it or nothing, and wait until it is on the disk."""
    data = (line + "\n").encode()
    with explained(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            try:
                while data:  # a disk that is nearly full takes a part
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)


def unsealed(
    data: bytes, key: str, digest: Callable[[Any], str], kind: type | None = None
) -> dict[str, Any]:
    """Return a JSON table without its checksum; raise ValueError with what is wrong with it."""
    try:
        table = json.loads(data)
        is_whole = table.pop(key) == digest(table)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        table, is_whole = {}, False
    if not is_whole:
        raise ValueError("its checksum is wrong")
    if kind is not None:
        from studies.runs.contents import require_contents  # it brings Pydantic

        require_contents(data, kind)
    return table


def _crc32(record: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(record, allow_nan=False).encode()):08x}"
