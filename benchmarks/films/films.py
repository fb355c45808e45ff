"""All test films, and the variations that tell how often the intervals hold the truth."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.films.film import Film, read_film
from benchmarks.films.solver_soft import ENERGIES


FILMS = tuple(map(read_film, sorted(Path(__file__).parent.glob("scenes/*.toml"))))
VARIED = {"beam-clamped": 20, "hexbeam-pushed": 15, "ball-drop": 15}


def variations() -> list[Film]:
    """Return 50 films: three of the others with other noise, codec, energy, light and rate."""
    films = {film.name: film for film in FILMS}
    return [varied(films[name], k) for name, count in VARIED.items() for k in range(count)]


def varied(film: Film, k: int) -> Film:
    """Return variation k of a film of a soft body, with another error of its camera too.

    In contact the energies are those that a third of strain leaves alike, with lumped masses.
    """
    rng = np.random.default_rng([k, len(film.name)])
    angle, height = rng.uniform(-1.0, 1.5), rng.uniform(1.0, 3.0)
    rate = rng.choice([2 / 3, 1.0, 4 / 3])
    shot = replace(
        film.shot,
        fps=round(film.shot.fps * rate),
        n_frames=round((film.shot.n_frames - 1) * rate) + 1,
        noise=float(rng.choice([0.0, 2.0, 5.0, 8.0])),
        crf=int(rng.choice([18, 23, 28, 32])),
        light=(float(2 * np.sin(angle)), float(height), float(2 * np.cos(angle))),
        ambient=float(rng.uniform(0.2, 0.5)),
    )
    touches = "obstacles" in film.scene
    energies = ["log", "volume"] if touches else [*ENERGIES]
    solver = {
        "energy": str(rng.choice(energies)),
        "consistent": bool(rng.integers(2)) and not touches,
    }
    return replace(film, name=f"{film.name}-{k:02d}", shot=shot, solver=solver)
