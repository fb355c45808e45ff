"""From rounds of times to the numbers that are shown."""

from collections.abc import Sequence
from typing import Any

from studies.peers.racing import Race
from studies.timing_clock import Lap, Round, ratio, summary, time_off_core
from studies.timing_images import covered_share
from studies.timing_laps import BOTH, BUDGETED, STORED, WHOLE, WORLDS
from studies.timing_paper import BACKWARD, FORWARD, HARDWARE
from studies.timing_scenes import FLAT


def collect(
    rounds: Sequence[Round], laps: list[Lap], races: list[Race], peers: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the results of all parts as plain numbers.

    Tetrahedra in ns per tetrahedron and step, and steps/s at the minimum; cloth in us per step;
    smoke and images in ms.
    Laps that no round timed, as of a package installed since, are left out.
    """
    timed = {name for times in rounds for name in times}
    laps = [lap for lap in laps if lap.name in timed]
    return {
        "off_core": time_off_core(rounds, laps),
        "tets": [_tets(rounds, lap) for lap in _part(laps, "tets")],
        "cloth": [_cloth(rounds, lap) for lap in _part(laps, "cloth")],
        "smoke": [_milliseconds(rounds, lap) for lap in _part(laps, "smoke")],
        "worlds": _worlds(rounds, _part(laps, "worlds")),
        "checkpoint": _checkpoint(rounds, _part(laps, "checkpoint")),
        "images": [_milliseconds(rounds, lap) for lap in _part(laps, "images")],
        "looks": _looks(rounds, _part(laps, "looks")),
        "growth": [_covering(rounds, lap) for lap in _part(laps, "growth")],
        "peers": [row for race in races for row in _race(rounds, race, laps)],
        "packages": peers,
        "paper": {
            "hardware": HARDWARE,
            "forward": {str(n): rate for n, rate in FORWARD.items()},
            "backward": {str(n): rate for n, rate in BACKWARD.items()},
        },
    }


def _part(laps: list[Lap], part: str) -> list[Lap]:
    return [lap for lap in laps if lap.labels["part"] == part]


def _labels(lap: Lap) -> dict[str, Any]:
    return {key: value for key, value in lap.labels.items() if key != "part"}


def _tets(rounds: Sequence[Round], lap: Lap) -> dict[str, Any]:
    each = summary(rounds, lap)
    return {
        **_labels(lap),
        "ns_min": 1e9 * each["min"],
        "ns_median": 1e9 * each["median"],
        "ns_on_core": 1e9 * each["on_core"] if lap.labels["threads"] == 1 else None,
        "steps_per_s": 1.0 / (each["min"] * lap.labels["tets"]),
    }


def _cloth(rounds: Sequence[Round], lap: Lap) -> dict[str, Any]:
    each = summary(rounds, lap)
    return {
        **_labels(lap),
        "us_min": 1e6 * each["min"],
        "us_median": 1e6 * each["median"],
        "us_on_core": 1e6 * each["on_core"] if lap.labels["threads"] == 1 else None,
        "steps_per_s": 1.0 / each["min"],
    }


def _worlds(rounds: Sequence[Round], laps: list[Lap]) -> list[dict[str, Any]]:
    """Return a row for each batch: its time per tetrahedron as a ratio to that of one block."""
    rows = []
    for lap in (lap for lap in laps if lap.labels["system"] == WORLDS):
        other = {**lap.labels, "system": WHOLE}
        whole = next((found for found in laps if found.labels == other), None)
        if whole is not None:
            each, alone = summary(rounds, lap), summary(rounds, whole)
            row = {key: value for key, value in _labels(lap).items() if key != "system"}
            row |= {"ns_min": 1e9 * each["min"], "ns_median": 1e9 * each["median"]}
            row |= {"whole_ns_min": 1e9 * alone["min"], "whole_ns_median": 1e9 * alone["median"]}
            on_core = each["on_core"] / alone["on_core"] if lap.labels["threads"] == 1 else None
            rows.append({**row, "ratio": ratio(rounds, lap, whole), "ratio_on_core": on_core})
    return rows


def _milliseconds(rounds: Sequence[Round], lap: Lap) -> dict[str, Any]:
    each = summary(rounds, lap)
    return {
        **_labels(lap),
        "ms_min": 1e3 * each["min"],
        "ms_median": 1e3 * each["median"],
        "ms_on_core": 1e3 * each["on_core"] if lap.labels["threads"] == 1 else None,
    }


def _covering(rounds: Sequence[Round], lap: Lap) -> dict[str, Any]:
    covered = covered_share(lap.labels["faces"]) * lap.labels["pixels"] ** 2
    return {**_milliseconds(rounds, lap), "covered": covered}


def _looks(rounds: Sequence[Round], laps: list[Lap]) -> list[dict[str, Any]]:
    """Return a row for each look of the ball, its time as a ratio to that of flat shading too."""
    rows = []
    for lap in laps:
        same = {**lap.labels, "look": FLAT}
        flat = next((other for other in laps if other.labels == same), None)
        found = None if flat is None else ratio(rounds, lap, flat)
        rows.append({**_milliseconds(rounds, lap), "ratio": found})
    return rows


def _checkpoint(rounds: Sequence[Round], laps: list[Lap]) -> dict[str, Any] | None:
    if not laps:
        return None
    by = {lap.labels["checkpoint"]: lap for lap in laps}
    stored, budgeted = by[STORED], by[BUDGETED]
    return {
        "tets": stored.labels["tets"],
        "steps": stored.labels["steps"],
        "bytes": {name: lap.labels["bytes"] for name, lap in by.items()},
        "forward_steps": {name: lap.labels["forward_steps"] for name, lap in by.items()},
        "seconds": {name: summary(rounds, lap)["min"] * lap.units for name, lap in by.items()},
        "ratio": ratio(rounds, budgeted, stored),
    }


def _race(rounds: Sequence[Round], race: Race, laps: list[Lap]) -> list[dict[str, Any]]:
    """Return a row for each lap of a race, as a ratio to our fastest at the same."""
    rows = []
    for lap in (lap for lap in race.laps if lap in laps):
        each, ours = summary(rounds, lap), _ours(rounds, lap, laps)
        row: dict[str, Any] = {
            **_labels(lap),
            "agrees": race.agrees,
            "difference": race.difference,
            "grad_difference": race.grad_difference if lap.labels["pass"] == BOTH else None,
            "ratio": None if ours is None else ratio(rounds, lap, ours),
        }
        if "tets" in lap.labels:
            row |= {"ns_min": 1e9 * each["min"], "ns_median": 1e9 * each["median"]}
            row["steps_per_s"] = 1.0 / (each["min"] * lap.labels["tets"])
        else:
            row |= {"ms_min": 1e3 * each["min"], "ms_median": 1e3 * each["median"]}
        rows.append(row)
    return rows


def _ours(rounds: Sequence[Round], lap: Lap, laps: list[Lap]) -> Lap | None:
    """Return our fastest lap at what a peer's lap does, over the numbers of threads."""
    same = ("tets", "dtype", "pass") if "tets" in lap.labels else ("faces", "pixels", "pass")
    mine = [
        other
        for other in laps
        if other.labels["part"] in ("tets", "images")
        and not other.labels.get("viscosity", False)
        and other.labels.get("blend", "over") == "over"
        and all(other.labels.get(key) == lap.labels[key] for key in same)
    ]
    return min(mine, key=lambda other: summary(rounds, other)["min"], default=None)
