"""Films whose scene files declare a scale, a frame rate or a camera wrongly.

No answer that is far off may be *found* for them: a wrong length or time can be made up for by a
stiffness, a velocity or a camera that looks right.
"""

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import tomlkit


Scene = dict[str, Any]
Change = Callable[[Scene, float], bool]  # gets the frame rate; False: nothing to declare wrongly
FILMS = ("ball-thrown", "beam-clamped", "duck-wall", "pendulum", "puck-slide", "rigid-throw")


def _scaled(by: float) -> Change:
    def change(scene: Scene, _rate: float) -> bool:
        (body,) = scene["bodies"].values()
        if body["kind"] == "pendulum":
            return False
        body["scale"] = by * np.asarray(body.get("scale", 1.0))
        body["scale"] = body["scale"].tolist()
        return True

    return change


def _slower(by: float) -> Change:
    def change(scene: Scene, rate: float) -> bool:
        scene["observations"]["film"]["fps"] = by * rate
        return True

    return change


def _wider(by: float) -> Change:
    def change(scene: Scene, _rate: float) -> bool:
        for camera in scene["cameras"].values():
            camera["fov_y"] = by * camera["fov_y"]
        return True

    return change


WRONG = {
    "scale-1.12": _scaled(1.12),
    "scale-1.3": _scaled(1.3),
    "scale-2": _scaled(2.0),
    "fps-0.8": _slower(0.8),
    "fps-2": _slower(2.0),
    "fov-1.15": _wider(1.15),
}


def make_wrong(made: Path, out: Path) -> Iterator[str]:
    """Copy films that were made, declare one thing wrongly in each copy, and yield their names."""
    for film in FILMS:
        with av.open(made / film / "film.mp4") as video:
            rate = float(video.streams.video[0].average_rate or 0.0)
        for name, change in WRONG.items():
            scene = tomllib.loads((made / film / "scene.toml").read_text())
            if not change(scene, rate):
                continue
            folder = out / f"{film}-{name}"
            ignored = shutil.ignore_patterns("run-*")
            shutil.copytree(made / film, folder, ignore=ignored, dirs_exist_ok=True)
            (folder / "scene.toml").write_text(tomlkit.dumps(scene))
            truth = json.loads((folder / "truth.json").read_text())
            (folder / "truth.json").write_text(json.dumps({**truth, "wrong": name}))
            yield folder.name
