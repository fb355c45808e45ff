"""What `adjsim check` prints."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from studies.answer.verdict import combination, percent
from studies.fitting.checking import check_scene_file
from studies.reports.numbers import count, number


WIDEST = 10.0  # relative half-width from which on a number is none


def check_command(path: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Print what the observations of a scene can determine, at its start values."""
    summary = check_scene_file(path, overrides)
    if as_json:
        print(json.dumps(summary, indent=2, allow_nan=False))
        return
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    if summary["numbers"]:
        table = Table("free", "start", "expected 95 % interval", "", box=None, pad_edge=False)
        for name, interval in summary["numbers"].items():
            word = "" if interval["is_determined"] else "not determined"
            start = f"{number(interval['start'])} {interval['unit']}".rstrip()
            relative, half_width = interval["relative_half_width"], interval["half_width"]
            width = "any value"
            if relative is not None and relative <= WIDEST:
                width = f"± {half_width:.2g} {interval['unit']}".rstrip()
                if half_width < abs(interval["start"]):  # else percents say nothing
                    width += f", {percent(relative)}"
            table.add_row(name, start, width, word)
        console.print(table)
        console.print(
            "assumed: the model explains the data; a run's intervals grow with the misfit"
        )
    for line in facts(summary):
        console.print(line)
    for line in summary["advice"]:
        console.print(f"advice: {line}", soft_wrap=True)


def facts(summary: dict[str, Any]) -> list[str]:
    """Return what else is known, in lines."""
    lines = []
    if summary["rank"] is not None:
        lines.append(
            f"rank: {summary['rank']} of {count(summary['asked'], 'direction')} determined"
        )
        if summary["asked"] > 1:
            lines.append(f"determined worst: {combination(summary['worst_direction'])}")
    for name, budget in summary["budget"].items():
        largest = budget["parts"][0]
        lines.append(
            f"largest part of the interval of {name}: {percent(largest['half_width'])} of "
            f"{percent(budget['half_width'])}, for {largest['name']}"
        )
    if summary["beside"]:
        lines.append(
            f"fitted beside: {count(summary['beside'], 'number')} of cameras, looks, shapes and "
            "start times"
        )
    lines.append(f"bodies: {summary['elements']}")
    if summary["n_steps"] is not None:
        frames, steps = count(summary["frames"], "frame"), count(summary["n_steps"], "step")
        lines.append(f"time: {frames}, {steps} of {summary['dt']:.3g} s")
    if (growth := summary["growth"]) is not None:
        lines.append(
            f"growth of the gradient: {growth['times']:.2g} times in {growth['seconds']:.3g} s"
        )
    if (seconds := summary["seconds_per_evaluation"]) is not None:
        lines.append(f"one evaluation: {seconds:.2g} s")
    return lines
