"""What `adjsim track` does."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.problem.observations.film_tracker import LEAST, Spot, Tracked, has_hue, marked, usual
from studies.problem.observations.films import film_frames
from studies.runs import media
from studies.runs.errors import StudyError, renamed
from studies.runs.files import replacing
from studies.runs.progress import FrameProgress
from studies.scene.declared import Film


ALIKE = 0.1  # part of what has a hue that is as bright as the colour, below which it is doubtful
WIDER, WIDEST = 1.5, 10.0  # times the pixels at twice the tolerance: more of a body, and all else
COUNTS = {"color": 3, "frames": 2, "region": 4}
LARGEST = 1e9  # of these numbers
IN_WORDS_OF_THE_COMMAND = {
    "`FILM.video`": "`FILM`", "`FILM.fps`": "`--fps`", "`FILM.frames`": "`--frames`",
    "Declare": "Give",
}  # fmt: skip
FASTEST = 1e7  # frames per second, as of a film in a scene file


def track_command(  # noqa: PLR0913 -- the options of a command
    film: Path, table: Path, numbers: Mapping[str, str | None], *,
    background: bool, tolerance: float, fps: float | None, point: str, force: bool = False,
    hue: bool | None = None,
) -> list[str]:  # fmt: skip
    """Write the table of what is tracked and its picture; return what to say.

    `numbers` are the options of several numbers, as texts. `hue` says whether brightness does not
    count; None chooses that where the colour is no grey within the tolerance.
    """
    color, frames, region = (_numbers(name, numbers[name]) for name in COUNTS)
    _check(color, tolerance, background=background, fps=fps, hue=hue)
    _check_table(table, force=force)
    first, end = (int(frames[0]), int(frames[1])) if frames else (0, None)
    if end is not None and not 0 <= first < end:
        raise StudyError(f"`--frames` must be FIRST END with 0 <= FIRST < END, got {first} {end}.")
    film_settings = Film(video=str(film), fps=fps, frames=None if end is None else (first, end))
    limits = None if region is None else _limits(region)
    with FrameProgress() as progress:
        plate = None
        if background:
            plate = usual(_opened(film_settings)[0], lambda n: progress(n, "background: frame"))
        wanted = None if color is None else np.array(color)
        by_hue = wanted is not None and (has_hue(wanted, tolerance) if hue is None else hue)
        tracked = Tracked(wanted, plate, tolerance, limits, by_hue)
        pictures, times_of = _opened(film_settings)
        spots: list[Spot] = []
        lost, picture, advice = None, table.with_suffix(".png"), []
        try:
            for n, frame in enumerate(pictures):
                here = tracked.find(frame)
                if here is None:
                    lost = n
                    break
                if not spots:
                    like = replace(tracked, by_hue=False).weights(frame) > 0.0
                    media.write_png(picture, marked(frame, here, like if by_hue else None))
                    advice = _advice_on_tolerance(tracked, frame, here, like)
                spots.append(here)
                progress(n + 1, "frame")
        finally:
            if spots:
                with renamed(IN_WORDS_OF_THE_COMMAND):
                    times = times_of(len(spots))
                _write(table, point, times, spots)
    what = f"like {numbers['color']}" if color else "that differ from the background"
    if lost is not None:
        _refuse_loss(
            f"`{film}`: frame {first + lost} has no pixels {what} within {tolerance:g}", lost, table
        )
    if not spots:
        raise StudyError(f"`--frames`: {film} ends before frame {first}.")
    if end is not None and first + len(spots) < end:
        raise StudyError(
            f"`--frames` must lie within the {first + len(spots)} frames of {film}, got {first} "
            f"{end}. They are in {table}."
        )
    cut = [first + k for k, here in enumerate(spots) if here.is_cut]
    notes = advice if not cut else [
        *advice,
        f"In {len(cut)} frames, first in {cut[0]}, what is tracked touches the edge of the "
        "picture, so its middle is that of a part. Leave them out by `--frames` or in the table."
    ]  # fmt: skip
    return [*notes, str(table.resolve()), str(picture.resolve())]


def _advice_on_tolerance(
    tracked: Tracked, frame: np.ndarray, spot: Spot, like: np.ndarray
) -> list[str]:
    """Return what to do where a colour marks a part of something, or by its hue much more.

    `like` (H, W) is where the first frame is like the colour itself.
    """
    if tracked.color is None:
        return []
    area, tolerance = int(spot.pixels.sum()), tracked.tolerance
    if tracked.by_hue:
        share = (spot.pixels & like).sum() / area
        return [] if share > ALIKE else [
            f"Only {100 * share:.0f} % of what has this hue is as bright as the colour (pink in "
            "the picture, the rest blue). If the rest is not what you track, give `--no-hue`; else "
            "take the colour from its middle."
        ]  # fmt: skip
    wider = replace(tracked, tolerance=min(2.0 * tolerance, 1.0)).find(frame)
    if wider is None or not WIDER < wider.pixels.sum() / area < WIDEST:
        return []
    return [
        f"With `--tolerance` {min(2.0 * tolerance, 1.0):g}, {wider.pixels.sum() / area:.1f} times "
        "as many pixels hang together: what is marked may be the lit part only. Raise it until all "
        "of it is pink in the picture."
    ]


def _limits(region: tuple[float, ...]) -> tuple[int, ...]:
    u0, v0, u1, v1 = limits = tuple(int(number) for number in region)
    if not (0 <= u0 < u1 and 0 <= v0 < v1):
        raise StudyError(
            f"`--region` must be U0 V0 U1 V1 with U0 < U1 and V0 < V1, got {u0} {v0} {u1} {v1}."
        )
    return limits


def _refuse_loss(what: str, rows: int, table: Path) -> None:
    """Raise with what is lost, and what was found before."""
    if not rows:
        raise StudyError(
            f"{what}, or fewer than {LEAST:g} that hang together. Take the colour from a picture "
            "of the film, or change `--tolerance` or `--region`."
        )
    raise StudyError(
        f"{what}. The {rows} rows before it are in {table}. Change `--tolerance` or `--region`, or "
        "end before it with `--frames`."
    )


def _opened(film: Film) -> Any:
    """Return frames and times of a film, with mistakes in the words of the command."""
    with renamed(IN_WORDS_OF_THE_COMMAND):
        return film_frames(film, "FILM")


def _check(
    color: tuple[float, ...] | None, tolerance: float, *,
    background: bool, fps: float | None, hue: bool | None,
) -> None:  # fmt: skip
    if (color is None) == (not background):
        raise StudyError("Give one of `--color 'R G B'` and `--background`.")
    if color is not None and not all(0.0 <= channel <= 1.0 for channel in color):
        raise StudyError(
            "`--color` must be three numbers from 0 to 1, got "
            f"{' '.join(f'{channel:g}' for channel in color)}. Divide levels up to 255 by 255."
        )
    if hue and (color is None or not np.ptp(color)):
        raise StudyError("`--hue` needs a `--color` that is no grey: greys have no hue.")
    if not 0.0 < tolerance <= 1.0:
        raise StudyError(f"`--tolerance` must be above 0 and up to 1, got {tolerance:g}.")
    if fps is not None and not 0.0 < fps <= FASTEST:
        raise StudyError(f"`--fps` must be above 0 and up to {FASTEST:g}, got {fps:g}.")


def _check_table(table: Path, *, force: bool) -> None:
    """Raise if the table is no CSV file, has no folder, or is there already without `force`."""
    if table.suffix.lower() != ".csv":
        raise StudyError(f"`--out` must end in .csv, got {table}.")
    if not table.parent.is_dir():
        raise StudyError(f"`--out`: there is no folder {table.parent}.")
    if table.exists() and not force:
        raise StudyError(
            f"`--out`: {table} is there already. Name another, or give `--force` to replace it."
        )


def _numbers(name: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        values = tuple(float(word) for word in text.replace(",", " ").split())
    except ValueError:
        values = ()
    if len(values) != COUNTS[name] or not all(abs(value) <= LARGEST for value in values):
        raise StudyError(f"`--{name}` must be {COUNTS[name]} numbers in quotes, got {text[:60]!r}.")
    return values


def _write(table: Path, point: str, times: np.ndarray, spots: list[Spot]) -> None:
    with replacing(table) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "point", "u", "v"])
        for time, here in zip(times, spots, strict=True):
            writer.writerow([f"{time:.6f}", point, f"{here.u:.3f}", f"{here.v:.3f}"])
