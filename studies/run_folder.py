"""The folder of a run: what is in it, written whole or not at all."""

import itertools
import json
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from studies.claims import Claim, claim
from studies.errors import StudyError


STUDY, MANIFEST, ITERATIONS = "study.toml", "manifest.json", "iterations.jsonl"
PARAMETERS, RESULT, CERTIFICATE = "parameters.npz", "result.json", "certificate.json"
SCAN, SPEC = "scan.json", "dataset.json"  # what a folder is of that holds no plain run
FILLINGS = "fillings.npz"
BEGINNING = (MANIFEST, SCAN, SPEC, FILLINGS)  # written before the study, with which a run has begun
PART = ".part-"  # what the name of a file begins with that is not whole yet
TRAJECTORY, FRAMES = "trajectory.npz", "frames.npz"
REPORT, SUMMARY = "report.html", "report.json"  # the page, and what an index of pages says of it
PICTURES, LOOKS = "pictures.npz", "looks.json"
TEXTURE, TEXTURE_PICTURE = "texture.npz", "texture.png"
POLICIES, TARGET_PICTURE = "policies.npz", "target.png"
INSTANCES, INSTANCES_CSV, CURVES_CSV = "instances.json", "instances.csv", "curves.csv"
TARGET_VIDEO, FITTED_VIDEO, FIGURES = "target.mp4", "fitted.mp4", "figures"


class RunFolder:
    """A run folder; every name is relative to it and cannot lead out of it."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).resolve()
        self.claim: Claim | None = None  # of a folder that this process writes to

    def release(self) -> None:
        """Let other commands write to it."""
        if self.claim is not None:
            self.claim.release()

    @classmethod
    def create(cls, path: Path) -> "RunFolder":
        """Return a new, empty run folder, to which no other command may write.

        Raises
        ------
        StudyError
            If something is there already, or it cannot be made, or another command has it.
        """
        cls.require_free(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(
                f"`--out` {path} cannot be made: {error.strerror}. Name a folder in a place that "
                "you may write to."
            ) from error
        folder = cls(path)
        folder.claim = claim(path)
        cls.require_free(path)  # another command may have been quicker, and ended
        return folder

    @staticmethod
    def require_free(path: Path | None) -> None:
        """Complain if something is there already; to be asked before anything takes long."""
        if path is None:
            return
        if path.exists() and not path.is_dir():
            raise StudyError(f"`--out` {path} is a file. Name a folder, new or empty.")
        if path.is_dir() and any(path.iterdir()):
            what = "holds another run" if (path / MANIFEST).exists() else "is not empty"
            resume = " with `--resume` to go on with it," if "run" in what else ""
            raise StudyError(
                f"`--out` {path} {what}. Run{resume} or choose another folder."
                if resume
                else f"`--out` {path} {what}. Choose another folder."
            )

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Return the folder of a run that was started before."""
        if not (path / MANIFEST).is_file() or not (path / STUDY).is_file():
            why = f"it has no {MANIFEST} or no {STUDY}"
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
        folder.claim = claim(folder.path)
        return folder

    @staticmethod
    def clear_unbegun(path: Path, what: str) -> bool:
        """Make room where nothing is to resume, and say so; return whether that is the case.

        That is so without a folder and in one that holds no more than a start that was killed
        leaves, which is removed. `what` names what would be there. A start that is not killed
        but still at work is left alone: that it has the folder is an error.
        """
        if path.exists() and not path.is_dir():
            return False
        if path.is_dir() and all(map(is_of_a_start, path.iterdir())):
            held = claim(path)  # before it is asked what is to be removed: a start may just end
            left = list(path.iterdir())
            if all(map(is_of_a_start, left)):
                for one in left:
                    remove(one)
            held.release()
        if path.is_dir() and any(path.iterdir()):
            return False
        print(f"{path} holds no {what} to resume: a new one begins", flush=True)
        return True

    def file(self, name: str) -> Path:
        """Return the path of a file of the run."""
        path = (self.path / name).resolve()
        if self.path != path and self.path not in path.parents:
            raise StudyError(f"{name!r} leads out of the run folder {self.path}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def has(self, name: str) -> bool:
        """Whether the run has this file."""
        return self.file(name).is_file()

    @contextmanager
    def replacing(self, name: str) -> Iterator[Path]:
        """Give a name to write to; the file takes its place when the block ends well."""
        path = self.file(name)
        part = path.with_name(f"{PART}{os.getpid()}-{path.name}")
        try:
            yield part
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        with self.replacing(name) as part, part.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())

    def write_json(self, name: str, value: Any) -> None:
        """Write JSON; a number that is not finite is an error."""
        self.write_text(name, json.dumps(value, indent=2, allow_nan=False) + "\n")

    def write_npz(self, name: str, **arrays: np.ndarray) -> None:
        """Write named arrays of plain numbers or texts."""
        if any(np.asarray(array).dtype.hasobject for array in arrays.values()):
            raise TypeError("An npz of a run holds numbers and texts only, no objects.")
        with self.replacing(name) as part, part.open("wb") as stream:
            np.savez_compressed(stream, **arrays)  # pyright: ignore[reportArgumentType]

    def read_json(self, name: str) -> Any:
        """Return what a JSON file holds."""
        path = self._existing(name)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise StudyError(
                f"{path} is not valid JSON: {error}. Something else has changed it: restore it, or "
                "start again in another folder."
            ) from error

    def finished(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what a report is made of: result, certificate and manifest.

        Raises
        ------
        StudyError
            If the run is not finished.
        """
        result, certified, manifest = map(self.read_json, (RESULT, CERTIFICATE, MANIFEST))
        return result, certified, manifest

    def write_figures(self, images: Mapping[str, bytes]) -> None:
        """Write PNGs by name, without the ending."""
        for name, data in images.items():
            with self.replacing(f"{FIGURES}/{name}.png") as part:
                part.write_bytes(data)

    def read_npz(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of an npz file, loaded without pickle."""
        with np.load(self._existing(name), allow_pickle=False) as arrays:
            return dict(arrays)

    def study_name(self) -> str:
        """Return what study the run is of."""
        return str(self.read_json(MANIFEST)["study"])

    def _existing(self, name: str) -> Path:
        path = self.file(name)
        if not path.is_file():
            raise StudyError(
                f"The run {self.path} has no {name} yet. Finish it with `{self.how_to_go_on()}`."
            )
        return path

    def how_to_go_on(self) -> str:
        """Return the command that goes on with the run, as a shell takes it."""
        return f"adjsim {self.command()} --out {shlex.quote(str(self.path))} --resume"

    def command(self) -> str:
        """Return what makes the run, as the command line names it: `scan figure-4a`."""
        if self.has(SCAN):
            return f"scan {self.read_json(SCAN)['scan']}"
        study = self.study_name() if self.has(MANIFEST) else "STUDY"
        return f"dataset {study}" if self.has(SPEC) else f"run {study}"

    def clear_parts(self) -> None:
        """Remove what a killed run left half-written."""
        for path in [*self.path.rglob(f"{PART}*")]:
            remove(path)


def is_of_a_start(path: Path) -> bool:
    """Whether this is what a start leaves that is killed: half-written, or before the study."""
    return path.name.startswith(PART) or (path.name in BEGINNING and path.is_file())


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def new_folder(study: str) -> Path:
    """Make the first folder `runs/STUDY-001`, `-002`, ... that does not exist, and return it.

    Of two commands that ask at the same time, each has its own.

    Raises
    ------
    StudyError
        If it cannot be made.
    """
    for number in itertools.count(1):
        path = Path("runs") / f"{study}-{number:03d}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise StudyError(
                f"{path} cannot be made: {error.strerror}. Name another folder by `--out`."
            ) from error
        return path
    raise AssertionError
