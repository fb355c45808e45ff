"""The folder of a run: files that appear complete or not at all, and are checked when read.

One command writes to a folder at a time; it holds a lock on the file `.lock` in it until it ends,
however that ends. JSON carries its own checksum, npz has checksums anyway, and logs have one a line
(`studies/runs/files.py`), so that a damaged file is named and never mixed with what is computed.
"""

import errno
import hashlib
import io
import json
import shlex
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from studies.runs.errors import StudyError
from studies.runs.files import PART, explained, replacing, unsealed


if TYPE_CHECKING:
    import numpy as np
    import xarray
    from filelock import BaseFileLock


STUDY, MANIFEST, ITERATIONS = "study.toml", "manifest.json", "iterations.jsonl"
PARAMETERS, RESULT, CERTIFICATE = "parameters.npz", "result.json", "certificate.json"
SCAN, SPEC = "scan.json", "dataset.json"  # what a folder is of that holds no plain run
MESHES = "meshes.npz"  # tetrahedra that were made from surfaces
TRAJECTORY = "trajectory.npz"
REPORT, REPORT_DATA = "report.html", "report.json"  # the page, and what it is rendered from
INSTANCES, INSTANCES_CSV = "instances.json", "instances.csv"
FIGURES = "figures"
LOCK = ".lock"
FIT = "fit problem"  # the command of a folder that a program in Python writes
CHECK = "sha256"  # key of a JSON file: digest of the rest
ELSEWHERE = "Name a folder in a place that you may write to"
AGAIN = "Delete it, and `{}` makes it again"
# What libraries raise where a file of arrays is damaged.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, ValueError, KeyError, EOFError, OSError, NotImplementedError,
    MemoryError, SyntaxError, TypeError, OverflowError,
)  # fmt: skip


class RunFolder:
    """A run folder; every name is relative to it and cannot lead out of it."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        self._lock: BaseFileLock | None = None  # of a folder that this process writes to

    def release(self) -> None:
        """Let other commands write to it."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Return a new, empty run folder, to which no other command may write."""
        cls.require_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(
                f"`--out` {path} cannot be made: {error.strerror}. {ELSEWHERE}."
            ) from error
        folder = cls(path)
        folder.lock()
        cls.require_free(path)  # another command may have been quicker, and ended
        folder.clear_parts()
        return folder

    @staticmethod
    def require_free(path: Path | None) -> None:
        """Raise if there are files already; call it before anything that takes long."""
        if path is None:
            return
        if path.exists() and not path.is_dir():
            raise StudyError(f"`--out` {path} is a file. Name a folder, new or empty.")
        if is_free(path):
            return
        if (path / MANIFEST).is_file():
            raise StudyError(
                f"`--out` {path} holds another run. Add `--resume` to go on with it, or choose "
                "another folder."
            )
        raise StudyError(f"`--out` {path} is not empty. Choose another folder.")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Return the folder of a run that was started before."""
        if not (path / MANIFEST).is_file():
            why = f"it has no {MANIFEST}"
            if not path.is_dir():
                why = "it is a file" if path.exists() else "there is nothing of that name"
            raise StudyError(
                f"{path} is not a run folder: {why}. "
                "Name one that `adjsim run`, `adjsim scan` or `adjsim dataset` made with `--out`."
            )
        return cls(path)

    @classmethod
    def reopen(cls, path: Path) -> "RunFolder":
        """Return the folder of a run to go on with, to which no other command may write."""
        folder = cls.open(path)
        folder.lock()
        return folder

    def lock(self) -> None:
        """Keep other commands out until `release`, or the end of this process."""
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK, is_singleton=True)  # a process may lock it again
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StudyError(
                f"`--out` {self.path} is being written by another command. Wait until that has "
                "ended, or choose another folder."
            ) from None
        except OSError as error:
            if error.errno in (errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS):
                return  # a drive without locks
            with explained(self.path / LOCK):
                raise
        self._lock = lock

    def file(self, name: str) -> Path:
        """Return the path of a file of the run."""
        path = (self.path / name).resolve()
        if self.path != path and self.path not in path.parents:
            raise StudyError(f"{name!r} leads out of the run folder {self.path}.")
        if not path.parent.is_dir():
            with explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def has(self, name: str) -> bool:
        """Whether the run has this file."""
        return (self.path / name).is_file()

    def replacing(self, name: str) -> AbstractContextManager[Path]:
        """Give a name to write to; the file takes its place when the block ends well."""
        return replacing(self.file(name))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file."""
        with self.replacing(name) as temporary:
            temporary.write_bytes(data)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        self.write_bytes(name, text.encode())

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write JSON with its checksum; a number that is not finite is an error."""
        sealed = {**value, CHECK: _digest_of_table(value)}
        self.write_text(name, json.dumps(sealed, indent=2) + "\n")

    def write_npz(self, name: str, **arrays: "np.ndarray") -> None:
        """Write named arrays of plain numbers or texts."""
        import numpy as np

        if any(np.asarray(array).dtype.hasobject for array in arrays.values()):
            raise TypeError("An npz of a run holds numbers and texts only, no objects.")
        with self.replacing(name) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # pyright: ignore[reportArgumentType]

    def write_dataset(self, name: str, data: "xarray.Dataset") -> None:
        """Write a data set. It is made in memory: HDF5 crashes where a disk is full."""
        made = io.BytesIO()
        data.to_netcdf(made, engine="h5netcdf")
        self.write_bytes(name, made.getvalue())

    def read_json(self, name: str, kind: type | None = None) -> dict[str, Any]:
        """Return the tables of a JSON file, which must have the fields of the dataclass `kind`."""
        with self.reading(name) as path:
            data = path.read_bytes()
        try:
            return unsealed(data, CHECK, _digest_of_table, kind)
        except ValueError as error:
            raise StudyError(self._damaged(name, f" ({error})")) from error

    def read_study(self) -> str:
        """Return the resolved settings as TOML."""
        data = self._existing(STUDY).read_bytes()
        if digest_of(data) != self.read_json(MANIFEST).get("toml"):
            raise StudyError(self._damaged(STUDY))
        return data.decode()

    def read_npz(self, name: str, *keys: str) -> "dict[str, np.ndarray]":
        """Return the arrays of an npz file, loaded without pickle; `keys` must be among them."""
        import numpy as np

        with (
            self.reading(name) as path,
            path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as arrays,
        ):
            loaded = dict(arrays)
        if missing := [key for key in keys if key not in loaded]:
            raise StudyError(f"{self._damaged(name)} It has no `{missing[0]}`.")
        return loaded

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        """Give a file to read; what a library raises on a damaged one becomes one message."""
        path = self._existing(name)
        try:
            yield path
        except DAMAGED as error:
            raise StudyError(self._damaged(name)) from error

    def _damaged(self, name: str, why: str = "") -> str:
        way_out = "Start again in another folder"
        if name != MANIFEST:
            way_out = AGAIN.format(self.how_to_go_on())
        return f"{self.path / name} is damaged: something else has changed it{why}. {way_out}."

    def _existing(self, name: str) -> Path:
        if not self.has(name):
            raise StudyError(
                f"The run {self.path} has no {name} yet. Finish it with `{self.how_to_go_on()}`."
            )
        return self.file(name)

    def how_to_go_on(self) -> str:
        """Return the command that goes on with the run, as a shell takes it."""
        command = self.command()
        if command == FIT:
            return f"fit(problem, out={str(self.path)!r})"
        return f"adjsim {command} --out {shlex.quote(str(self.path))} --resume"

    def command(self) -> str:
        """Return what makes the run, as the command line names it: `scan figure-4a`."""
        if not self.has(MANIFEST):
            return "run SCENE"
        manifest = self.read_json(MANIFEST)
        return f"{manifest['verb']} {shlex.quote(manifest['target'])}"

    def clear_parts(self) -> None:
        """Remove files that a killed command left half-written."""
        for path in [*self.path.rglob(".part-*")]:
            if PART.fullmatch(path.name) and path.is_file():
                path.unlink(missing_ok=True)


def is_free(path: Path) -> bool:
    """Whether a folder does not exist, or holds no more than a killed start leaves."""
    try:
        names = [entry.name for entry in path.iterdir()] if path.exists() else []
    except OSError as error:
        message = f"`--out` {path} cannot be read: {error.strerror}. {ELSEWHERE}."
        raise StudyError(message) from error
    return all(name == LOCK or PART.fullmatch(name) for name in names)


def digest_of(data: bytes) -> str:
    """Return 16 hex digits that depend on every byte."""
    return hashlib.sha256(data).hexdigest()[:16]


def _digest_of_table(table: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(table, indent=2, allow_nan=False).encode())


def new_folder(study: str) -> Path:
    """Make the first folder `runs/NAME-001`, `-002`, ... that does not exist, and return it."""
    number = 1
    while True:
        path = Path("runs") / f"{study}-{number:03d}"
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1
        except OSError as error:
            raise StudyError(
                f"{path} cannot be made: {error.strerror}. Name another folder by `--out`."
            ) from error
