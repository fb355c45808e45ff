"""Values and comments of a TOML file as text."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.scene.tables import BARE


MARK = "  # "
WIDEST = 44  # columns before a comment


def value_text(value: Any) -> str:
    """Return a value as TOML has it, numbers to six digits."""
    if isinstance(value, Mapping):
        items = (f"{_key_text(key)} = {value_text(item)}" for key, item in value.items())
        return f"{{ {', '.join(items)} }}"
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, float):
        text = f"{value + 0.0:.6g}"  # no minus before a zero
        return text if {".", "e"} & set(text) else f"{text}.0"
    return json.dumps(value, ensure_ascii=False)


def aligned(text: str) -> str:
    """Return a text in whose blocks of lines the comments stand below each other."""
    blocks = []
    for block in text.split("\n\n"):
        lines = [line.rpartition(MARK) for line in block.split("\n")]
        width = min(max(len(head) for head, _, _ in lines), WIDEST)
        blocks.append(
            "\n".join(f"{head:{width}}{MARK}{end}" if mark else end for head, mark, end in lines)
        )
    return "\n\n".join(blocks)


def _key_text(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
