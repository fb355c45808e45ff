"""Films of a body that falls on a floor, from many views, whose scene file has no mesh.

The protocol is that of PAC-NeRF (Li et al., ICLR 2023): 14 frames at 24 Hz from 11 calibrated
views, a torus and a bird. Silhouettes are what is unlike the plain background.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from benchmarks.films import drawing, meshes
from benchmarks.films.drawing import Shot
from benchmarks.films.films import Film
from benchmarks.films.making import Surface, simulate


COUNTS = (11, 3)  # of views
ELEVATIONS = (8.0, 32.0, 56.0)  # of the views, one after the other [deg]
DISTANCE, TARGET, FIELD = 3.0, (0.0, 0.36, 0.0), 24.0  # [m], [m], [deg]
EDGE_LENGTH = 0.04  # of tetrahedra, over the diagonal: too stiff by a bit, so E comes out too low
CELLS = 32  # along the longest side of a hull
FLOOR = {"kind": "plane", "point": [0.0, 0.0, 0.0], "friction": 0.3}
# The protocol's floor, cameras and times are exact.
EXACT = {"distance_error": 0.0, "tilt_error": 0.0, "friction_error": 0.0}
SHOT = Shot(size=(320, 240), fps=24, n_frames=14, ambient=0.5, crf=12)
BODIES: dict[str, dict[str, Any]] = {
    "torus": {
        "E": 2e5, "nu": 0.3, "position": [0.0, 0.52, 0.0], "rotation": [25.0, 30.0, 0.0],
        "velocity": [0.2, -1.5, 0.1],
    },
    "bird": {
        "E": 1e5, "nu": 0.3, "position": [0.0, 0.42, 0.0], "rotation": [20.0, -25.0, 0.0],
        "velocity": [-0.2, -1.5, 0.2],
    },
}  # fmt: skip
# Where the search begins, and its bounds.
FREE: dict[str, dict[str, Any]] = {
    "E": {"start": 5e5, "bounds": [1e4, 1e7]},
    "nu": {"start": 0.4, "bounds": [0.05, 0.48]},
    "velocity": {"start": [0.0, -1.0, 0.0], "bounds": [-4.0, 4.0]},
}


def arm(k: float, views: int, height: int) -> np.ndarray:
    """Return the way from what camera k of a ring looks at to its eye, (3,) [m].

    The ring of so many `views` is about the vertical; `height` is an index into `ELEVATIONS`.
    """
    around, up = 2.0 * np.pi * k / views, np.radians(ELEVATIONS[height % len(ELEVATIONS)])
    across = np.cos(up)
    return DISTANCE * np.array([across * np.sin(around), np.sin(up), across * np.cos(around)])


def ring(views: int) -> list[dict[str, Any]]:
    """Return cameras around the vertical, evenly, at heights that take turns."""
    cameras = []
    for k in range(views):
        eye = np.round(np.add(TARGET, arm(k, views, k)), 6)
        cameras.append({"eye": eye.tolist(), "target": list(TARGET), "fov_y": FIELD, "fit": False})
    return cameras


def motion_of(name: str, **changes: Any) -> tuple[dict[str, Any], Surface]:
    """Return the true table of a body, and its vertices and faces in every frame."""
    body = {"kind": "soft", "mesh": f"{name}-fine.vtu", "density": 1000.0, **BODIES[name]}
    body |= changes
    scene = {"bodies": {name: body}, "obstacles": {"floor": FLOOR}}
    film = Film(name=name, scene=scene, free={}, shot=SHOT, solver={"energy": "log"})
    return body, simulate(film)[name]


def write(folder: Path, name: str, motion: tuple[dict[str, Any], Surface]) -> None:
    """Write a film of each view, the true surface, truth.json, and scene-N.toml for N views."""
    folder.mkdir(parents=True, exist_ok=True)
    body, moved = motion
    for n in COUNTS:
        cameras = ring(n)
        for k, camera in enumerate(cameras):
            look = {"color": (0.8, 0.35, 0.2)}
            path = folder / f"view-{n}-{k + 1}.mp4"
            drawing.write(path, drawing.draw([moved], [look], camera, SHOT, seed=k), SHOT)
        text = tomlkit.dumps(scene_of(name, body, cameras, f"view-{n}"))
        (folder / f"scene-{n}.toml").write_text(text)
    x, faces = moved
    used, local = np.unique(faces, return_inverse=True)
    meshes.save(folder / f"{name}.ply", x[0][used], local.reshape(-1, 3))
    truth = {f"{name}.{key}": body[key] for key in FREE}
    start = {f"{name}.{key}": entry["start"] for key, entry in FREE.items()}
    record = {"parameters": truth, "start": start, "law": "same"}
    (folder / "truth.json").write_text(json.dumps(record, indent=1))


def scene_of(
    name: str, body: dict[str, Any], cameras: Sequence[dict[str, Any]], films: str
) -> dict[str, Any]:
    """Return the scene of a user who has the films, the cameras and the density."""
    start = {key: entry["start"] for key, entry in FREE.items()}
    plain = {"color": list(SHOT.background)}
    return {
        "title": f"{name}, {len(cameras)} views",
        "bodies": {
            name: {
                "kind": "soft", "mesh": "from-views", "cells": [CELLS], "law": "log",
                "edge_length": EDGE_LENGTH, "density": body["density"], "mass_error": 0.0, **start,
            }
        },
        "world": {"gravity_error": 0.0},
        "obstacles": {"floor": {**FLOOR, **EXACT}},
        "cameras": {f"view{k + 1}": camera for k, camera in enumerate(cameras)},
        "observations": {
            f"film{k + 1}": {
                "video": f"{films}-{k + 1}.mp4", "camera": f"view{k + 1}",
                "compare": "silhouette", "background": plain, "fps_error": 0.0,
            }
            for k in range(len(cameras))
        },
        # From the declared start; a Jacobian of all numbers takes 50 evaluations.
        "search": {"coarse": 0, "max_evaluations": 1000},
        "truth": {f"bodies.{name}.mesh": f"{name}.ply"},
        "free": {
            **{f"{name}.{key}": {"bounds": entry["bounds"]} for key, entry in FREE.items()},
            f"{name}.shape": {},
        },
    }  # fmt: skip


def make(name: str, folder: Path) -> None:
    """Simulate a body and write all that a user would have, and the truth."""
    write(folder, name, motion_of(name))
