"""How optional packages are installed."""

from pathlib import Path


CLONE = Path(__file__).parent.parent / "pyproject.toml"


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of `pyproject.toml`, in a clone or a release."""
    if CLONE.exists():
        return f"pip install -e '.[{extra}]' in your clone of adjsim"
    return f"pip install 'adjointsim[{extra}]'"
