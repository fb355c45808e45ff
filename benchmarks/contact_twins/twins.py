"""The twins: what moves, what it touches, what is free, for how long and by which law."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from studies.scene.building import build
from studies.scene.reading import scene_from_dict


Table = dict[str, Any]

BODIES: dict[str, Table] = {
    "box": {
        "kind": "rigid", "mesh": "box", "size": [0.2, 0.15, 0.25], "density": 500.0,
        "position": [0.0, 0.22, 0.0], "rotation": [15.0, 10.0, 20.0],
    },
    "sphere": {
        "kind": "rigid", "mesh": "ball", "size": [0.1], "cells": [3], "density": 500.0,
        "position": [0.0, 0.18, 0.0], "rotation": [15.0, 10.0, 20.0],
    },
    "cube": {
        "kind": "soft", "mesh": "box", "size": [0.2, 0.2, 0.2], "cells": [3, 3, 3],
        "density": 1000.0, "E": 2e4, "nu": 0.4, "viscosity": 5.0,
        "position": [0.0, 0.2, 0.0], "rotation": [10.0, 0.0, 15.0],
    },
    "cloth": {
        "kind": "cloth", "mesh": "sheet", "size": [0.4, 0.4], "cells": [8, 8],
        "thickness": 2e-3, "density": 500.0, "E": 2e4, "viscosity": 20.0, "drag": 0.2,
        "position": [0.03, 0.2, 0.02], "rotation": [80.0, 0.0, 0.0],
    },
}  # fmt: skip
FLOOR = {"kind": "plane"}
BALL = {"kind": "sphere", "center": [0.0, 0.0, 0.0], "radius": 0.12, "draw": True}
VELOCITY, SPIN = [-0.35, -0.3, 0.14], [1.0, 2.0, -1.5]  # of all bodies [m/s], [rad/s]
# Free, with where the search starts and its bounds.
FREE = {
    "velocity": ("{body}.velocity", [-0.3, -0.2, 0.1], None),
    "spin": ("{body}.spin", [0.7, 1.4, -1.0], None),
    "friction": ("floor.friction", 0.6, [0.02, 2.0]),
    "material": ("{body}.E", 6e4, [2e3, 2e5]),
}
LAWS = ("dissipation", "damping")
LENGTHS = {"short": (0.3, 8), "long": (0.6, 24)}  # duration [s] and frames


@dataclass(frozen=True)
class Twin:
    """A scene file and what is known of its answer."""

    name: str
    law: str
    scene: Table
    path: str
    truth: Any
    start: Any


def twins() -> Iterator[Twin]:
    """Yield all twins."""
    for law in LAWS:
        for length in LENGTHS:
            for body in BODIES:
                for free in FREE:
                    if (body, free) != ("cloth", "spin"):
                        yield _twin(body, free, length, law)


def _twin(body: str, free: str, length: str, law: str) -> Twin:
    duration, frames = LENGTHS[length]
    look = {"color": [0.85, 0.4, 0.25]}
    moving = {} if body == "cloth" else {"spin": SPIN}
    scene: Table = {
        "bodies": {body: {**BODIES[body], "velocity": VELOCITY, **moving, "look": look}},
        "obstacles": {"floor": dict(BALL if body == "cloth" else FLOOR)},
        "cameras": {"front": {"eye": [0.4, 0.5, 1.4], "target": [0.0, 0.1, 0.0], "fov_y": 35.0}},
        "lights": {"sun": {"direction": [1.0, 2.0, 1.5]}},
    }
    chosen = build(scene_from_dict({**scene, "observations": {}, "free": {}}))
    if law == "damping":
        scene["obstacles"]["floor"]["damping"] = _number(chosen, "floor.friction_stiffness")
    path, start, bounds = FREE[free]
    path = path.format(body=body)
    if free == "material" and body in ("box", "sphere"):  # that of the contact
        path = f"floor.{law}"
        value = scene["obstacles"]["floor"].get(law) or _number(chosen, path)
        scene["obstacles"]["floor"][law] = value
        start, bounds = 2.0 * value, [0.1 * value, 10.0 * value]
    section, key = path.split(".")
    owner = scene["obstacles"]["floor"] if section == "floor" else scene["bodies"][body]
    truth = owner.get(key, 0.3)
    scene["observations"] = {
        "film": {
            "simulate": {"height": 48, "width": 64, "frames": frames, "duration": duration},
            "background": {"color": [0.45, 0.47, 0.5]},
        }
    }
    scene["free"] = {path: {"start": start} | ({"bounds": bounds} if bounds else {})}
    return Twin(f"{law}-{length}-{body}-{free}", law, scene, path, truth, start)


def _number(built: Any, path: str) -> float:
    return float(f"{float(built.values[path].value):.3g}")
