"""From a scene file to a problem: read what was observed, fit what is not asked for, put together.

Cameras, lights and colours are nuisances: they are fitted to the first frames, where every body is
where the scene has it, and cameras go on being fitted with the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.errors import StudyError
from studies.observations.advice import advice_on_film, check_lengths
from studies.observations.films import read_film
from studies.problem.films import FilmObserver
from studies.problem.first_frames import fit_first_frames, fitted_first
from studies.problem.free import FreeParameters, make_free
from studies.problem.nuisances import (
    camera_nuisances,
    look_nuisances,
    more_values,
    seen_cameras,
    views,
)
from studies.problem.observers import Observer
from studies.problem.observing import camera_of, make_observers
from studies.problem.own import OwnResiduals, own_observer
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.problem.start import start_surfaces
from studies.problem.steps import Steps, first_steps
from studies.scene import declared
from studies.scene.building import Built, build


INTERVAL = 1.0 / 30.0  # between instants where there is no film [s]

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Made:
    """A problem, and what was found on the way to it.

    Attributes
    ----------
    everything : SceneProblem
        Of all observations.
    kept : frozenset of str
        Names of the observations that are predicted before they are fitted.
    notes : list of str
        What a user should know: defaults that were taken, what the first frame shows.
    refitted : callable
        refitted(problem) is a problem whose backgrounds, cameras and looks are fitted to the first
        frames again, with bodies where its start has them.
    """

    everything: SceneProblem
    kept: frozenset[str]
    notes: list[str]
    refitted: Callable[[SceneProblem], SceneProblem]

    @property
    def problem(self) -> SceneProblem:
        """The problem of the observations that are fitted from the first."""
        return self.searched(self.everything)

    def searched(self, everything: SceneProblem) -> SceneProblem:
        """Return the problem of the observations that are not kept for a prediction."""
        if not self.kept:
            return everything
        fitted = [one for one in everything.observers if one.name not in self.kept]
        return on_one_timeline(everything, fitted)


def make_problem(
    file: declared.SceneFile,
    own: Mapping[str, OwnResiduals] | None = None,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    checkpoint: str = "1GB",
    say: Say = lambda _text: None,
) -> Made:
    """Return the problem of a scene file.

    Parameters
    ----------
    file : SceneFile
    own : mapping of str to OwnResiduals, optional
        Residuals of the user's own, by name.
    dtype, device, checkpoint : str
        As the command line takes them.
    say : callable
        Gets a line about what is done.

    Raises
    ------
    ValueError
        If something in it does not fit; the message names its key.
    FileNotFoundError
        If a file is missing.
    """
    own = own or {}
    if not file.observations and not own:
        raise StudyError(
            "`observations` must hold at least one film, table of points or states, got none."
        )
    declared_films = {
        name: one for name, one in file.observations.items() if isinstance(one, declared.Film)
    }
    films = {
        name: read_film(one, camera_of(file, one), f"observations.{name}")
        for name, one in declared_films.items()
    }
    built = build(file)
    notes = list(built.notes)
    for name, data in films.items():
        notes += advice_on_film(data, f"observations.{name}")
    check_lengths(
        {f"observations.{name}": (one, films[name]) for name, one in declared_films.items()}
    )
    observers = make_observers(file, built, films)
    observers = [
        replace(one, device=device) if isinstance(one, FilmObserver) else one for one in observers
    ]
    observers += [own_observer(name, one, start_surfaces(built)) for name, one in own.items()]
    kept = frozenset(k for k, one in {**file.observations, **own}.items() if one.validate)
    if len(kept) == len(observers):
        raise StudyError("`observations` must hold one without `validate`, to be fitted.")
    cameras = seen_cameras(file, observers)
    values = {**built.values, **more_values(observers)}
    every_camera = camera_nuisances(cameras)
    fitted_beside = tuple(
        one for one in every_camera if cameras[one.path.rpartition(".")[0]][0].fit
    )
    parameters = make_free(file.free, values, fitted_beside, views(every_camera, values))
    shared = {"dtype": dtype, "device": device, "checkpoint": checkpoint}
    problem = _problem(file, built, observers, parameters, **shared)
    problem = problem.with_steps_for(problem.parameters.start)
    looks = look_nuisances(file, built, observers)

    def refitted(problem: SceneProblem) -> SceneProblem:
        return fit_first_frames(problem, films, file, looks)

    if what := fitted_first(problem, looks):
        say(f"fitting {what} to the first frame")
    return Made(refitted(problem), kept, notes, refitted)


def _problem(
    file: declared.SceneFile,
    built: Built,
    observers: Sequence[Observer],
    parameters: FreeParameters,
    **shared: Any,
) -> SceneProblem:
    gaps = [np.diff(one.times).min() for one in observers if len(one.times) > 1]
    steps = first_steps(float(min(gaps, default=INTERVAL)), file.world.dt)
    if built.dt is not None:  # of smoke
        steps = Steps(built.dt, 1, is_given=True)
    return on_one_timeline(
        SceneProblem(built, tuple(observers), parameters, steps, **shared), observers
    )
