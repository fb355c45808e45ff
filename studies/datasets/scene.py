"""A scene as it was drawn, before it is simulated, and what is kept of it by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.filming import MeshFilming
from studies.motion import Motion


@dataclass(frozen=True)
class Field:
    """What a number of a data set is.

    Attributes
    ----------
    unit : str
        "-" where it has none.
    text : str
    """

    unit: str
    text: str


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene.

    Attributes
    ----------
    make_motion : callable
        make_motion(steps) is its motion with so many time steps a frame.
    filming : MeshFilming
        How it is seen.
    values : mapping of str to array
        What was drawn, by the names of the data set's fields.
    states : callable
        states(motion, run) is what is kept of a trajectory, by name, frames first.
    gain : callable, optional
        gain(motion, run) is the largest relative rise of the energy while nothing pushes: what
        a time step too long for the contact does. None: it is not watched.
    """

    make_motion: Callable[[int], Motion]
    filming: MeshFilming
    values: Mapping[str, np.ndarray]
    states: Callable[[Motion, Any], dict[str, np.ndarray]]
    gain: Callable[[Motion, Any], float] | None = None


MESH = "mesh/"  # begins the names of what differs in size from scene to scene
COMMON: dict[str, Field] = {
    "images": Field(
        "1/255",
        "video, RGBA of 8 bits: RGB is over the background already, A is what the body covers",
    ),
    "scene": Field("-", "number of the scene"),
    "split": Field("-", "train or test"),
    "quality/steps": Field("-", "time steps from frame to frame"),
    "quality/energy_gain": Field(
        "-", "largest rise of the energy while nothing pushes, relative to the largest energy"
    ),
    "quality/diverged": Field(
        "-", "time step in which the motion left the finite numbers, -1 if it did not; later "
        "frames are 0, later states NaN"
    ),
    "quality/coverage": Field("-", "part of each frame that the body covers, 0 out of sight"),
    "mesh/vertices": Field("m", "vertices of the body at rest"),
    "mesh/faces": Field("-", "vertices of each triangle, outwards"),
}  # fmt: skip
