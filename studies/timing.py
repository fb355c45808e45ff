"""The timing study: how fast the loops are here, beside the paper and other packages."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjoint.schedules import size_in_bytes
from adjsim import backend, checks
from studies import config
from studies.errors import StudyError
from studies.manifest import machine
from studies.peers.racing import Race, find_peers, peer_laps
from studies.registry import RunOptions
from studies.run_folder import ITERATIONS, RESULT, RunFolder
from studies.timing_clock import Lap, Round, run_round, warm_up
from studies.timing_images import BLENDS, image_laps
from studies.timing_laps import checkpoint_laps, cloth_laps, smoke_laps, tet_laps, world_laps
from studies.timing_results import collect
from studies.timing_scenes import LOOKS, ball_mesh


LEAST = {"sizes": 5, "peer.sizes": 5, "cloth.triangles": 2, "smoke.cells": 2}
LEAST |= {"worlds.counts": 1, "worlds.tets": 5}
MAY_BE_EMPTY = ("cloth.triangles", "smoke.cells", "worlds.counts")
MIN_ROUNDS = 2  # even if `limit` is over


def prepare(settings: dict[str, Any], options: RunOptions) -> "Timing":
    """Check the settings and return the study.

    Raises
    ------
    ValueError
        If a setting is out of range; the message names its key.
    """
    for key, least in LEAST.items():
        low = min(config.get(settings, key), default=least if key in MAY_BE_EMPTY else 0)
        if low < least:
            raise StudyError(f"`{key}` must hold numbers of at least {least}, got {low}.")
    for part in ("smoke", "worlds"):
        checks.positive(f"{part}.steps", settings[part]["steps"])
    for key in ("threads", "repeats", "sample", "limit"):
        checks.positive(key, _not_empty(key, settings[key]))
    _not_empty("viscosity", settings["viscosity"])
    for dtype in _not_empty("dtypes", settings["dtypes"]):
        checks.known_key("entry of `dtypes`", dtype, ("float64", "float32"))
    budget = settings["checkpoint"]["budget"]
    if budget:
        size_in_bytes(budget)
    checks.positive("checkpoint.horizon", settings["checkpoint"]["horizon"])
    _check_images(settings)
    return Timing(settings, options)


def _check_images(settings: dict[str, Any]) -> None:
    for key in ("images", "peer"):
        table = settings[key]
        checks.positive(f"{key}.pixels", _not_empty(f"{key}.pixels", table["pixels"]))
        faces = table["faces"]
        for n_faces in faces if isinstance(faces, list) else [faces]:
            ball_mesh(n_faces)
    growth = settings["images"]["growth"]
    checks.positive("images.growth.pixels", [*growth["pixels"], growth["at_pixels"]])
    for n_faces in (*growth["faces"], growth["at_faces"]):
        ball_mesh(n_faces)
    for blend in settings["images"]["blends"]:
        checks.known_key("entry of `images.blends`", blend, BLENDS)
    for look in settings["images"]["looks"]:
        checks.known_key("entry of `images.looks`", look, LOOKS)


def _not_empty(key: str, value: Any) -> Any:
    if isinstance(value, list) and not value:
        raise StudyError(f"`{key}` must not be empty.")
    return value


@dataclass(frozen=True)
class Timing:
    """The study with checked settings."""

    settings: dict[str, Any]
    options: RunOptions

    def run(self, folder: RunFolder) -> str:
        """Time rounds, or go on where the log ends; write numbers, figures and report."""
        from rich.console import Console

        from studies.timing_report import print_tables, write_report

        console = Console(stderr=True)
        before = os.getloadavg()
        path = folder.file(ITERATIONS)
        rounds = read_rounds(path)
        with Ticker(console) as tick:
            laps, races = self._laps(tick)
            tick("compiling", total=len(laps))
            warm_up(laps, lambda: tick("compiling"))
            for race in races:
                race.compare()
            self._measure(path, rounds, laps, tick)
        result = {
            "title": "Timing",
            "machine": {**machine(), "gpu": self._gpu(), **_threading()},
            "load": {"before": before, "after": os.getloadavg()},
            "rounds": len(rounds),
            **collect(rounds, laps, races, find_peers()),
        }
        folder.write_json(RESULT, result)
        print_tables(result)
        report = write_report(folder)
        return f"report: {report}"

    def _measure(
        self, path: Path, rounds: list[Round], laps: list[Lap], tick: Callable[..., None]
    ) -> None:
        """Add rounds to `rounds` and to the log."""
        began = time.monotonic()
        for number in range(len(rounds), self.settings["repeats"]):
            if len(rounds) >= MIN_ROUNDS and time.monotonic() - began > self.settings["limit"]:
                break
            what = f"round {number + 1} of {self.settings['repeats']}"
            tick(what, total=sum(number % lap.every == 0 for lap in laps))
            times = run_round(laps, number, lambda what=what: tick(what))
            with path.open("a", encoding="utf-8") as stream:
                line = {"round": number, "load": os.getloadavg()[0], "seconds": times}
                stream.write(json.dumps(line) + "\n")
            rounds.append(times)

    def _laps(self, tick: Callable[..., None]) -> tuple[list[Lap], list[Race]]:
        settings, device = self.settings, self.options.device
        on_gpu = device == backend.Device.CUDA
        cores = os.cpu_count() or 1
        usable = sorted({n for n in settings["threads"] if n <= cores} or {1})
        threads = [0] if on_gpu else usable
        dtypes = settings["dtypes"] if self.options.dtype == "float64" else [self.options.dtype]
        laps = list(
            tet_laps(
                settings["sizes"],
                dtypes,
                threads,
                viscosity=settings["viscosity"],
                sample=settings["sample"] / 1e3,
                device=device,
            )
        )
        laps += cloth_laps(
            settings["cloth"]["triangles"],
            dtypes,
            threads,
            sample=settings["sample"] / 1e3,
            device=device,
        )
        laps += smoke_laps(
            settings["smoke"]["cells"],
            dtypes,
            threads,
            n_steps=settings["smoke"]["steps"],
            device=device,
        )
        laps += world_laps(settings["worlds"], threads, device=device)
        checkpoint = settings["checkpoint"]
        if checkpoint["budget"]:
            size = max(settings["sizes"])
            laps += checkpoint_laps(
                size, checkpoint["budget"], checkpoint["horizon"], device=device
            )
        if settings["renderer"] and not on_gpu:
            laps += image_laps(settings["images"], dtypes, threads, self.options.seed)
        races: list[Race] = []
        if settings["peers"] and not on_gpu:
            tick("preparing other packages")
            more, races = peer_laps(settings, max(threads), self.options.seed)
            laps += more
        return laps, races

    def _gpu(self) -> str | None:
        if self.options.device != backend.Device.CUDA:
            return None
        name = backend.cuda_module().get_current_device().name
        return name.decode() if isinstance(name, bytes) else str(name)


def read_rounds(path: Path) -> list[Round]:
    """Return the rounds of a log; a line that was cut off is dropped from the file."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        path.write_text("".join(whole), encoding="utf-8")
    return [json.loads(line)["seconds"] for line in whole]


def _threading() -> dict[str, Any]:
    import numba

    return {"numba_threads": numba.get_num_threads(), "numba_layer": _layer(numba)}


def _layer(numba: Any) -> str | None:
    try:
        return numba.threading_layer()
    except ValueError:  # nothing ran in parallel
        return None


class Ticker:
    """A bar, as a context manager that gives `tick(what, total=None)`."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("preparing", total=None)
        self._console = console

    def __enter__(self) -> Callable[..., None]:
        self._bar.start()
        return self.tick

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tick(self, what: str, *, total: int | None = None) -> None:
        """Show one lap done, or a new stage if `total` is given."""
        if total is None:
            self._bar.update(self._task, description=what, advance=1)
            return
        self._bar.reset(self._task, description=what, total=total)
        if not self._console.is_terminal:
            self._console.print(what, highlight=False)
