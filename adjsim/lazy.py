"""Public names of a package that are loaded on first use."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are under `TYPE_CHECKING`.

    Type checkers read these imports; here they say in which module each name lives.
    """
    loader: Any = sys.modules[package].__loader__
    parts = ast.parse(loader.get_source(package)).body
    lines: Any = [line for node in parts if isinstance(node, ast.If) for line in node.body]
    home_of = {name.name: line.module for line in lines for name in line.names}

    def load(name: str) -> Any:
        """Import a public name from the module where it lives."""
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    return load, lambda: sorted(home_of)
