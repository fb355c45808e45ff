"""Draws the gallery, and measures what others draw differently."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from studies import media
from studies.errors import StudyError
from studies.gallery.entries import ENTRIES
from studies.gallery.others import OTHERS, Other
from studies.gallery.page import write_page
from studies.gallery.shots import Entry, Size


ASPECT = 4 / 3
SMALLEST = 16  # pixels high
ROUNDING = 1.5 / 255  # difference of two pictures of 8 bits that counts as none
GAIN = 4.0  # of the pictures of differences, about grey


@dataclass(frozen=True, eq=False)
class Picture:
    """Another package's picture of an entry.

    Attributes
    ----------
    image : numpy.ndarray
        RGB, (height, width, 3).
    differing : float
        Share of the pixels that differ by more than rounding to 8 bits.
    median : float
        Of the largest differences of the channels of a pixel [-].
    """

    image: np.ndarray
    differing: float
    median: float


@dataclass(frozen=True, eq=False)
class Exhibit:
    """An entry, drawn by us and by others (by name)."""

    entry: Entry
    ours: np.ndarray
    theirs: dict[str, Picture]


def make_gallery(out: Path, height: int, say: Callable[[str], object] = print) -> Path:
    """Write PNG files and `index.html` into a folder; return the path of the page.

    Raises
    ------
    StudyError
        If the height is too small.
    """
    if height < SMALLEST:
        raise StudyError(f"`--height` must be at least {SMALLEST} pixels, got {height}.")
    out.mkdir(parents=True, exist_ok=True)
    exhibits, absent = draw_all(ENTRIES, (height, round(ASPECT * height)), OTHERS, say)
    for shown in exhibits:
        media.write_png(out / f"{shown.entry.name}.png", shown.ours)
        for name, picture in shown.theirs.items():
            stem = f"{shown.entry.name}-{name.lower()}"
            media.write_png(out / f"{stem}.png", picture.image)
            media.write_png(out / f"{stem}-difference.png", difference(shown.ours, picture.image))
    return write_page(out / "index.html", exhibits, absent)


def draw_all(
    entries: Iterable[Entry],
    size: Size,
    others: Sequence[Other] = OTHERS,
    say: Callable[[str], object] = print,
) -> tuple[list[Exhibit], dict[str, str]]:
    """Return every entry drawn, and why others do not draw, by name."""
    absent: dict[str, str] = {}
    here: dict[str, Any] = {}
    for other in others:
        module = other.load()
        if problem := module.missing():
            absent[other.name] = problem
            say(f"{other.name} does not draw: {problem}")
        else:
            here[other.name] = module
    exhibits = []
    for entry in entries:
        shot = entry.make(size)
        ours, theirs = shot.draw(), {}
        for name, module in here.items():
            image = None if shot.alpha else module.draw(shot)  # soft alpha is ours alone
            if image is not None:
                theirs[name] = compare(ours, image)
        exhibits.append(Exhibit(entry, ours, theirs))
        say(f"{entry.name:20}" + "".join(f"  {n}: {numbers(p)}" for n, p in theirs.items()))
    return exhibits, absent


def compare(ours: np.ndarray, theirs: np.ndarray) -> Picture:
    """Measure what another picture differs by."""
    largest = abs(ours.clip(0.0, 1.0) - theirs).max(axis=-1)
    return Picture(theirs, float((largest > ROUNDING).mean()), float(np.median(largest)))


def numbers(picture: Picture) -> str:
    """Return what a picture differs by, in words."""
    return f"{100 * picture.differing:.2f} % of pixels differ"


def difference(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the picture of a difference, `GAIN` times, grey where there is none."""
    return 0.5 + GAIN * (ours.clip(0.0, 1.0) - theirs)
