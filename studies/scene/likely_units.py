"""Numbers of a scene that are possible, but more likely in another unit than the one asked for.

Nothing is refused: a note says what was given, what it would be, and what was probably meant.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from studies.scene.declared import Scene, SceneFile


LIGHTEST = 15.0  # kg/m3: foams begin here; below, a density is likely one in g/cm3
SOFTEST = 50.0  # Pa: gels begin here; below, a modulus is likely one in MPa, or in kPa
STRONGEST = 1e3  # m/s2: above, gravity is likely in mm/s2
NARROWEST = math.pi  # deg: below, a field of view is likely in radians
LONGEST = 10.0  # m: what is longer is likely in millimetres


def notes_on_units(scene: SceneFile) -> list[str]:
    """Return a sentence for each number that was probably meant in another unit.

    A control has none: tasks that come from graphics have units of their own.
    """
    if scene.purpose == "control":
        return []
    notes = [note for name, body in scene.bodies.items() for note in _of_body(name, body)]
    notes += [
        f"`cameras.{name}.fov_y` is {camera.fov_y:g} degrees, narrower than a telescope's finder. "
        f"If it is in radians, write {math.degrees(camera.fov_y):.3g}."
        for name, camera in scene.cameras.items()
        if camera.fov_y is not None and camera.fov_y < NARROWEST
    ]
    strength = float(np.linalg.norm(scene.world.gravity))
    if strength > STRONGEST:
        notes.append(
            f"`world.gravity` is {strength:g} m/s², which is {strength / 9.81:.0f} times that of "
            "the earth. If it is in mm/s², divide it by 1000."
        )
    return notes


def _of_body(name: str, body: object) -> Iterator[str]:
    """Yield what is unlikely of density and moduli of a body."""
    density = getattr(body, "density", None)
    if isinstance(density, float) and density < LIGHTEST:
        yield (
            f"`bodies.{name}.density` is {density:g} kg/m³; air has 1.2 and water 1000. If it is "
            f"in g/cm³, write {1000.0 * density:g}."
        )
    for key in ("E", "mu"):
        modulus = getattr(body, key, None)
        if isinstance(modulus, float) and modulus < SOFTEST:
            yield (
                f"`bodies.{name}.{key}` is {modulus:g} Pa, softer than gels, which have 100 Pa. If "
                f"it is in MPa, write {modulus:g}e6; if in kPa, {modulus:g}e3."
            )


def notes_on_lengths(scene: Scene, lengths: Mapping[str, float]) -> list[str]:
    """Return a sentence for each mesh that is too long [m] where nothing scales it."""
    notes = []
    for name, length in lengths.items():
        body: Any = scene.bodies[name]
        if length > LONGEST and body.scale == 1.0:
            key, what, advice = "mesh", "the file", f"write `bodies.{name}.scale` = 0.001"
            if body.size is not None:
                key, what, advice = "size", "it", "divide it by 1000"
            notes.append(
                f"`bodies.{name}.{key}` makes a body {length:.4g} m long. If {what} is in "
                f"millimetres, {advice}."
            )
    return notes
