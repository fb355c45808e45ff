"""What studies ask of the tables of their settings, and draw from them; mistakes by their key."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from adjsim import checks
from render.scene import DirectionalLight
from studies.errors import StudyError


def require_positive(settings: Mapping[str, Any], table: str, *keys: str) -> None:
    """Complain of numbers of a table that are not positive."""
    for key in keys:
        checks.positive(f"{table}.{key}", settings[table][key])


def require_not_negative(settings: Mapping[str, Any], table: str, *keys: str) -> None:
    """Complain of numbers of a table that are negative."""
    for key in keys:
        checks.non_negative(f"{table}.{key}", settings[table][key])


def require_vectors(settings: Mapping[str, Any], table: str, *keys: str) -> None:
    """Complain of what of a table is no vector of three numbers."""
    for key in keys:
        checks.array(f"{table}.{key}", settings[table][key], (3,))


def require_directions(settings: Mapping[str, Any], table: str, *keys: str) -> None:
    """Complain of vectors of a table that are zero."""
    require_vectors(settings, table, *keys)
    for key in keys:
        if not np.any(settings[table][key]):
            raise StudyError(f"`{table}.{key}` must not be zero: it is a direction.")


def require_chosen(name: str, given: Sequence[str], known: Iterable[str]) -> None:
    """Complain of a list of names that is empty, or names something twice or unknown."""
    known = tuple(known)
    if not given or len(set(given)) < len(given):
        raise StudyError(
            f"`{name}` must name at least one of {', '.join(known)}, each once, got {list(given)}."
        )
    for one in given:
        checks.known_key(f"name in `{name}`", one, known)


def require_ball_above_floor(settings: Mapping[str, Any]) -> None:
    """Complain of a ball that does not begin above the plane y = 0."""
    radius = settings["ball"]["radius"]
    position = checks.array("ball.position", settings["ball"]["position"], (3,))
    if not position[1] > radius:
        raise StudyError(
            f"`ball.position` must be above the floor by more than `ball.radius` = {radius:g}, "
            f"got a height of {position[1]:g}."
        )


def sun(image: Mapping[str, Any]) -> DirectionalLight:
    """Return the white light of the settings' table `image`, from the direction `light`."""
    direction = checks.array("image.light", image["light"], (3,))
    if not direction.any():
        raise StudyError("`image.light` must not be zero: it points towards the light.")
    return DirectionalLight(direction)


def ends(settings: Mapping[str, Any], table: str, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return what a table has as `[low, high]`, by name."""
    return {name: checks.array(f"{table}.{name}", settings[table][name], (2,)) for name in names}


def bounds_of(settings: Mapping[str, Any], names: Iterable[str]) -> dict[str, np.ndarray]:
    """Return what the table `bounds` has as `[low, high]`, by name, the one below the other."""
    found = ends(settings, "bounds", names)
    for name, (low, high) in found.items():
        if not low < high:
            raise StudyError(
                f"`bounds.{name}` must be [low, high] with low < high, got [{low:g}, {high:g}]."
            )
    return found


def draw(rng: np.random.Generator, name: str, between: Any) -> float:
    """Return a number drawn evenly from `[low, high]`; equal ends are the number itself."""
    low, high = checks.array(name, between, (2,))
    if low > high:
        raise ValueError(f"`{name}` must be [low, high], got [{low:g}, {high:g}].")
    return float(low + (high - low) * rng.uniform())


def draw_each(
    rng: np.random.Generator, settings: Mapping[str, Any], table: str, names: Iterable[str]
) -> dict[str, float]:
    """Return a number of a table for each name, drawn in this order."""
    return {name: draw(rng, f"{table}.{name}", settings[table][name]) for name in names}
