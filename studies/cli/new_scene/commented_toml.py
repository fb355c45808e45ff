"""Tables of a TOML file with a comment behind every line, as text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from studies.scene.tables import BARE


Row = tuple[str, Any, str]  # key, value and comment
WIDEST = 44  # columns before a comment


def table_text(header: str, rows: Sequence[Row]) -> str:
    """Return a table; a header or a key that begins with # is written as a comment."""
    mark = "# " if header.startswith("#") else ""
    lines = [f"{mark}{key} = {value_text(value)}" for key, value, _ in rows]
    width = min(max(map(len, lines), default=0), WIDEST)
    comments = [f"  # {comment}" if comment else "" for _, _, comment in rows]
    texts = [f"{line:{width}}{end}".rstrip() for line, end in zip(lines, comments, strict=True)]
    return "\n".join([header, *texts, ""])


def value_text(value: Any) -> str:
    """Return a value as TOML has it, numbers to six digits."""
    if isinstance(value, Mapping):
        items = (f"{_key_text(key)} = {value_text(item)}" for key, item in value.items())
        return f"{{ {', '.join(items)} }}" if value else "{}"
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, float):
        text = f"{value + 0.0:.6g}".replace("e+0", "e").replace("e-0", "e-")
        return text if {".", "e"} & set(text) else f"{text}.0"
    return json.dumps(value, ensure_ascii=False)


def _key_text(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
