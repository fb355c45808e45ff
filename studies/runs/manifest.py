"""What a run was made with, and a hash of everything its numbers depend on.

The hash covers the settings, seed, precision, device, contents of input files, versions of
libraries, the processor that kernels are compiled for, and the code. Its parts are in the manifest
too, so that `--resume` can say which of them differs.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from studies.runs.files import files_of
from studies.runs.folder import digest_of


LIBRARIES = (
    "numba", "numpy", "scipy", "pyvista", "matplotlib", "av", "xarray", "h5netcdf",
    "h5py",
)  # fmt: skip
NUMERICAL = ("numpy", "scipy", "numba", "llvmlite", "av", "pillow", "h5py")
PACKAGES = ("adjsim", "render", "adjoint", "studies")
LONG = 400  # characters of a value that is kept; of a longer one its digest
SHOWN = 5  # differences that a message names
MISSING = "nothing"


def _code_hash() -> str:
    """Return 16 hex digits of the Python sources of all packages."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


CODE = _code_hash()  # of the sources that this process has loaded, not of those there later


@cache
def environment() -> dict[str, Any]:
    """Return what the numbers of this process depend on, whatever it computes."""
    from adjsim.jit import backend

    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "code": CODE,
        "kernels": "as Python" if backend.JIT_DISABLED else "compiled",
        "processor": _processor_kind(),
        "versions": {"python": python, **{name: version(name) for name in NUMERICAL}},
    }


def _processor_kind() -> str:
    """Return the kind of processor that kernels and linear algebra are made for."""
    import scipy.linalg  # noqa: F401  loads SciPy's linear algebra beside NumPy's
    from llvmlite import binding
    from threadpoolctl import threadpool_info

    from adjsim.jit.backend import config

    name = config.CPU_NAME or binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = "" if config.CPU_NAME else binding.get_host_cpu_features().flatten()
    # not that of OpenCV, which computes nothing here
    blas = {
        library.get("architecture") or ""
        for library in threadpool_info()
        if library["user_api"] == "blas" and "opencv" not in library["filepath"]
    }
    return f"{name} {digest_of(features.encode())[:4]} {' '.join(sorted(blas))}".strip()


def flattened(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested tables by dotted key; of a long value its digest."""
    if isinstance(value, Mapping) and value:
        rows: dict[str, Any] = {}
        for key, item in value.items():
            rows |= flattened(item, f"{prefix}.{key}" if prefix else str(key))
        return rows
    text = json.dumps(value, default=str)
    is_short = len(text) <= LONG
    return {prefix: json.loads(text) if is_short else f"a long value, {digest_of(text.encode())}"}


def input_files(value: Any, key: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the texts of nested settings that are absolute paths of files or folders, by key."""
    if isinstance(value, str):
        path = Path(value)
        if value.startswith(os.sep) and "\0" not in value and (path.exists() or files_of(path)):
            yield key, path
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            yield from input_files(entry, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for number, entry in enumerate(value):
            yield from input_files(entry, f"{key}[{number}]")


def contents(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder or pattern with their names."""
    digest, files = hashlib.sha256(), files_of(path)
    for file in [path] if files is None else files:
        digest.update(b"" if files is None else file.name.encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def dependencies(
    settings: Mapping[str, Any], *, seed: int, dtype: str, device: str
) -> dict[str, Any]:
    """Return everything the numbers of a run depend on, by dotted key.

    Settings name input files by absolute paths. They count by their contents, not by where they
    are.
    """
    parts = {
        "settings": _without_folders(settings),
        "seed": seed,
        "dtype": dtype,
        "device": device,
        "inputs": {key: contents(path) for key, path in input_files(settings)},
        **environment(),
    }
    return flattened(parts)


def _without_folders(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_folders(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_folders(entry) for entry in value]
    return next((path.name for _, path in input_files(value)), value)


def hash_of(parts: Mapping[str, Any]) -> str:
    """Return the hash of what `dependencies` returns."""
    return digest_of(json.dumps(parts, sort_keys=True).encode())


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return what differs between two sets of dependencies, each in a few words."""
    lines = []
    for key in {**before, **now}:
        values = before.get(key, MISSING), now.get(key, MISSING)
        kind, _, name = key.partition(".")
        if values[0] == values[1]:
            continue
        if kind == "code":
            lines.append("the code of adjsim has changed")
        elif kind == "inputs" and MISSING not in values:
            lines.append(f"the file of `{name}` has changed")
        else:
            name = f"--{kind}" if kind in ("seed", "dtype", "device") else name
            what = f"`{name}`" if kind == "settings" or name.startswith("--") else name or kind
            was, is_ = (value if isinstance(value, str) else json.dumps(value) for value in values)
            lines.append(f"{what} was {was}, is {is_}")
    return lines


def listed(texts: Iterable[str]) -> str:
    """Return differences as one text; the first few of many."""
    texts = list(texts)
    more = f", and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def versions() -> dict[str, str | None]:
    """Return the versions of Python and the libraries; None for what is not installed."""
    from adjsim import __version__

    libraries = {name: version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), "adjsim": __version__, **libraries}


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """Return what the numbers were computed on."""
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = re.search(r"^model name\s*:(.*)$", text, re.MULTILINE)
        processor = model[1].strip() if model else platform.machine()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": processor,
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


def git_commit() -> str | None:
    """Return the commit of the sources, with "+" if they were changed; None outside git."""
    root = Path(__file__).resolve().parent

    def git(*args: str) -> str:
        command = ["git", "-C", str(root), *args]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
