"""What scenes of bodies thrown onto a floor share: what is drawn, and how energy is watched."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adjsim import checks
from adjsim.model import Model
from studies.datasets.scene import Field
from studies.motion import Motion
from studies.settings import draw, ends, require_positive


CONTACT = ("stiffness", "damping", "friction_stiffness", "friction")
PLACE = ("x", "z", "clearance")
FIELDS: dict[str, Field] = {
    "shape": Field("-", "name of the shape"),
    "parameters/stiffness": Field("N/m", "k_e of the contact of a vertex with the floor"),
    "parameters/damping": Field("N s/m", "k_d of it, while the vertex goes down"),
    "parameters/friction_stiffness": Field("N s/m", "k_f of it, friction per speed in stick"),
    "parameters/friction": Field("-", "mu, the cone of friction"),
    "parameters/color": Field("-", "RGB of the body"),
    "push/seconds": Field("s", "from when to when it acts"),
    "initial/position": Field("m", "centre of mass at t = 0; y is up, the floor y = 0"),
    "initial/rotation": Field("-", "unit quaternion (x, y, z, w) from body to world axes at t = 0"),
    "initial/velocity": Field("m/s", "of the centre of mass at t = 0"),
    "states/position": Field("m", "centre of mass at every frame"),
    "states/velocity": Field("m/s", "of the centre of mass"),
}


def check_thrown(settings: Mapping[str, Any], drawn: tuple[str, ...]) -> None:
    """Complain of the tables `drawn`, with these numbers and a colour, and `place`, by key."""
    ends(settings, "drawn", (*drawn, "color"))
    require_positive(settings, "drawn", *drawn)
    checks.non_negative("drawn.color", settings["drawn"]["color"])
    ends(settings, "place", PLACE)
    require_positive(settings, "place", "clearance")


def draw_color(rng: np.random.Generator, settings: Mapping[str, Any]) -> list[float]:
    """Return R, G and B, each drawn evenly from `drawn.color`."""
    return [draw(rng, "drawn.color", settings["drawn"]["color"]) for _ in range(3)]


def with_steps(time: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Return the table `time` as `studies.timeline.frame_steps` reads it, so many steps a frame."""
    return {
        "dt": 1.0 / (time["fps"] * steps),
        "steps": time["frames"] * steps,
        "frames": time["frames"],
    }


def seen(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the tables time, image and camera: its own."""
    return settings


def model_of(motion: Motion) -> Model:
    """Return what moves."""
    assert isinstance(motion.system, Model)
    return motion.system


def energy_gain(motion: Motion, energy: np.ndarray, pushed: float) -> float:
    """Return the largest rise of the energy from frame to frame, over the largest energy [-].

    Parameters
    ----------
    motion : Motion
    energy : numpy.ndarray
        At the frames, (n_frames,) [J].
    pushed : float
        When nothing pushes any more [s]; what comes before does not count.
    """
    energy = energy[motion.frames * motion.dt >= pushed - 1e-9]
    if len(energy) < 2:
        return 0.0
    largest = float(np.abs(energy).max())
    rise = float((energy[1:] - np.minimum.accumulate(energy)[:-1]).max())
    return max(0.0, rise) / largest if largest > 0.0 else 0.0
