"""How optional packages are installed: adjsim comes as a clone, not from a package index."""


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of `pyproject.toml`, run in the clone."""
    return f"pip install -e '.[{extra}]' in your clone of adjsim"
