"""All test films."""

from benchmarks.films.other_films import CLOTH_FILMS, PENDULUM_FILMS, RIGID_FILMS
from benchmarks.films.soft_films import FLOOR_FILMS, HELD_FILMS


FILMS = (*HELD_FILMS, *FLOOR_FILMS, *CLOTH_FILMS, *RIGID_FILMS, *PENDULUM_FILMS)
