"""What a run was made with: versions, machine, commit."""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any


LIBRARIES = (
    "adjsim", "numba", "numpy", "scipy", "pyvista", "matplotlib", "av", "xarray", "h5netcdf",
    "h5py",
)  # fmt: skip


def versions() -> dict[str, str | None]:
    """Return the versions of Python and the libraries; None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in LIBRARIES:
        found[name] = version(name)
    return found


def version(name: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """Return what the numbers were computed on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


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


def manifest(kind: str, options: dict[str, Any], command: str) -> dict[str, Any]:
    """Return the manifest of a run that starts now."""
    return {
        "study": kind,
        **options,
        "command": command,
        "started": now(),
        "resumed": [],
        "versions": versions(),
        "machine": machine(),
        "commit": git_commit(),
    }
