"""Packages that only some users need, and how they are installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


CLONE = Path(__file__).parent.parent / "pyproject.toml"
SCENES, MESH, SCANS = "scenes", "mesh", "scans"  # extras of `pyproject.toml`
EXTRA_OF = {  # which extra brings a module
    **dict.fromkeys(("PIL", "av", "jinja2", "loky", "matplotlib", "pydantic"), SCENES),
    **dict.fromkeys(("rich", "threadpoolctl", "tomlkit", "typer"), SCENES),
    **dict.fromkeys(("meshio", "pytetwild", "pyvista", "vtkmodules"), MESH),
    **dict.fromkeys(("h5netcdf", "h5py", "xarray"), SCANS),
}


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of `pyproject.toml`, in a clone or a release."""
    if CLONE.exists():
        return f"pip install -e '.[{extra}]' in your clone of adjsim"
    return f"pip install 'adjointsim[{extra}]'"


def missing_package(error: ModuleNotFoundError) -> str | None:
    """Return how to install the package that an import needs; None if it is no optional one."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    return (
        f"This needs the package {package}, which is missing: {how_to_install(EXTRA_OF[package])}."
    )


def optional(name: str) -> Any:
    """Return an optional module; the error without it says how to install it."""
    with named_extras():
        return import_module(name)


@contextmanager
def named_extras() -> Iterator[None]:
    """Have the error of a missing optional package say how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing_package(error) or str(error), name=error.name) from None
