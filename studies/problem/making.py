"""From a scene file to a problem: read what was observed, fit what is not asked for, put together.

Cameras, lights and colours are nuisances: they are fitted to the first frames, where every body is
where the scene has it, and cameras go on being fitted with the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.optimizers.problem import NOT_FINITE
from studies.problem import refining
from studies.problem.contact_steps import tried_steps
from studies.problem.declared_errors import DeclaredNumber, declared_numbers, notes_on_errors
from studies.problem.first_frames import fit_first_frames
from studies.problem.forward import start_surfaces
from studies.problem.free import (
    camera_nuisances,
    look_nuisances,
    make_free,
    more_values,
    shape_losses,
    views,
)
from studies.problem.from_views import with_hulls
from studies.problem.observations.films import (
    FilmData,
    advice_on_film,
    blank_film,
    read_film,
)
from studies.problem.observations.frames import check_lengths
from studies.problem.observers import Observer
from studies.problem.observing import check_forces, frame_times, make_observers
from studies.problem.own import OwnResiduals, declared_own, own_observer
from studies.problem.parameters import FreeParameter, Parameters
from studies.problem.problem import SceneProblem, on_one_timeline
from studies.problem.steps import TimeSteps, first_steps, shortest_interval
from studies.problem.terms import Term, terms_of
from studies.problem.texels import TEXELS, felt_by, texel_units
from studies.problem.truth import Truth
from studies.problem.twin import hidden_scene, true_values, truth_of, with_simulated
from studies.runs.errors import StudyError
from studies.scene import declared
from studies.scene.building import BuiltScene, build
from studies.scene.exif import notes_on_fields_of_view
from studies.scene.maps import Value
from studies.scene.motion import SETTLING, Settled
from studies.scene.seams import notes_on_seams
from studies.scene.steps import longest_step


OF_LAW = ".law"
OF_MESH = (".mesh", ".cells", ".edge_length")  # ends of keys of a body that change its mesh
INTERVAL = 1.0 / 30.0  # between instants where there is no film [s]
MANY = 2_000_000  # steps of a motion that take long enough for a word before them

Say = Callable[[str], None]
Values = Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class PreparedProblem:
    """A problem, what was found on the way to it, and the same problem with other assumptions."""

    everything: SceneProblem  # of all observations
    kept: frozenset[str]  # names of the observations that are predicted before they are fitted
    # what a user should know: defaults that were taken, what the first frame shows
    notes: list[str]
    file: declared.SceneFile  # without free paths of residuals of one's own
    films: Mapping[str, FilmData]
    looks: tuple[FreeParameter, ...]  # that are fitted to the first frames
    truth: Truth | None = None  # hidden values of what is free, where observations are simulated
    # values by path that differ from the scene's in what is simulated
    true_values: Mapping[str, np.ndarray] | None = None
    hidden: SceneProblem | None = None  # the same observations of the scene that is simulated
    declared: Sequence[DeclaredNumber] = ()  # numbers that are neither free nor exact
    terms: Sequence[Term] = ()  # numbers that the scene may lack

    @property
    def is_twin(self) -> bool:
        """Whether all observations are simulated."""
        return self.file.is_twin

    @property
    def has_mesh_error(self) -> bool:
        """Whether what was observed has another mesh, so that a finer one tells of an error."""
        return not self.is_twin or any(path.endswith(OF_MESH) for path in self.file.truth)

    @property
    def has_law_error(self) -> bool:
        """Whether what was observed may have another law of solids."""
        return not self.is_twin or any(path.endswith(OF_LAW) for path in self.file.truth)

    @property
    def contacts(self) -> Mapping[str, Any]:
        """What may touch bodies, by name."""
        return {**self.file.obstacles, **self.file.contacts}

    def refitted(self, problem: SceneProblem) -> SceneProblem:
        """Return a problem with backgrounds, cameras and looks fitted to the first frames again."""
        return fit_first_frames(problem, self.films, self.file, self.looks, again=True)

    def refined(self, problem: SceneProblem) -> SceneProblem:
        """Return a problem on a mesh twice as fine."""
        return refining.refined_problem(problem, self.file)

    def harder(self, problem: SceneProblem) -> SceneProblem | None:
        """Return a problem with stiffer contacts; None where adjsim chose none."""
        return refining.with_harder_contacts(problem, self.contacts)

    def lossier(self, problem: SceneProblem) -> SceneProblem | None:
        """Return a problem with contacts that lose more; None where adjsim chose none."""
        return refining.with_lossier_contacts(problem, self.contacts)

    def held_if_larger(self, problem: SceneProblem, deviations: float) -> SceneProblem | None:
        """Return a problem that holds the nodes of larger bodies; None where these are the same."""
        return refining.with_held_if_larger(
            problem, deviations, scene=self.file, numbers=self.declared
        )

    def other_law(self, problem: SceneProblem) -> SceneProblem | None:
        """Return a problem with the other law of solids; None without solids, or if it is known."""
        return refining.with_other_law(problem, self.file) if self.has_law_error else None

    @property
    def problem(self) -> SceneProblem:
        """The problem of the observations that are fitted from the first."""
        return self.searched(self.everything)

    def without_truth(self) -> "PreparedProblem":
        """Return the problem as it would be of footage, whose truth nobody knows."""
        return replace(self, truth=None, true_values=None, hidden=None)

    def searched(self, everything: SceneProblem) -> SceneProblem:
        """Return the problem of the observations that are not kept for a prediction."""
        if not self.kept:
            return everything
        fitted = [observer for observer in everything.observers if observer.name not in self.kept]
        return on_one_timeline(everything, fitted)


def _announce(end: float, dt: float, say: Say) -> None:
    """Say before a motion until `end` [s] if it takes very many steps."""
    if end > MANY * dt:
        say(
            f"a motion of {end:.3g} s takes {end / dt:,.0f} steps, which may take minutes: anchors "
            "far from their bodies, small elements and stiff contacts need many"
        )


def make_problem(
    file: declared.SceneFile,
    residuals: Mapping[str, OwnResiduals] | None = None,
    *,
    dtype: str = "float64",
    device: str = "cpu",
    checkpoint: str = "1GB",
    fits_first: bool = True,
    say: Say = lambda _text: None,
) -> PreparedProblem:
    """Return the problem of a scene file.

    `residuals` are the user's own, by name. `dtype`, `device` and `checkpoint` are those of the
    command line. Without `fits_first` backgrounds, cameras and looks are not fitted to the
    first frames: everything is only checked. `say` gets a line about what is done.
    """
    every_own = {**declared_own(file), **(residuals or {})}
    if not file.observations and not every_own:
        raise StudyError(
            "`observations` must hold at least one film, table of points, states, or residuals of "
            "your own, got none."
        )
    real = {name: film for name, film in file.films.items() if film.simulate is None}
    films = {
        name: read_film(film, file.camera_of(film), f"observations.{name}")
        if name in real
        else blank_film(film, frame_times(film, file.world, key), key)
        for name, film in file.films.items()
        for key in [f"observations.{name}"]
    }
    check_forces(file)
    file = with_hulls(file, films, say)
    lone = without_own(file, every_own)
    built = build(lone, at_rest=not every_own and is_still(file, films))
    if isinstance(built.system, Settled):
        say(SETTLING)
    notes = (
        built.notes
        + notes_on_fields_of_view(file)
        + notes_on_errors(file)
        + notes_on_seams(file, built, file.films)
    )
    for name in real:
        notes += advice_on_film(films[name], f"observations.{name}")
    observers = make_observers(file, built, films, device=device)
    recorded = {
        f"observations.{observer.name}": (observer.start, observer.times)
        for observer in observers
        for spec in [file.observations[observer.name]]
        if observer.name in real or (spec.simulate is None and getattr(spec, "fps", None))
    }
    check_lengths(recorded)
    notes += [note for observer in observers for note in observer.notes]
    observers += [
        own_observer(name, terms, start_surfaces(built)) for name, terms in every_own.items()
    ]
    kept = frozenset(
        k for k, observation in {**file.observations, **every_own}.items() if observation.validate
    )
    if len(kept) == len(observers):
        raise StudyError("`observations` must hold one without `validate`, to be fitted.")
    values = {**built.values, **more_values(observers)}
    values |= _texel_values(file, built, observers, values)
    every_camera = camera_nuisances(file, observers)
    fitted_beside = tuple(
        free for free in every_camera if file.is_fitted(file.cameras[free.path.split(".")[1]])
    )
    parameters = make_free(file.free, values, fitted_beside, views(every_camera, values))
    problem = _problem(
        file, built, observers, parameters, dtype=dtype, device=device, checkpoint=checkpoint
    )
    end = max(float(observer.times.max()) for observer in observers)
    at_start = parameters.scene_values(parameters.start)
    steps, short = tried_steps(problem.steps, built, at_start, end)
    _announce(end, steps.suited_to(built.system).dt, say)
    problem, notes = replace(problem, steps=steps), notes + short
    last = max(observer.start + float(observer.times.max()) for observer in observers)
    for path in built.paths:
        path.check(last, steps.dt)
    truth, hidden = true_values(file, values), None
    if truth is not None:
        hidden_file = hidden_scene(file)
        simulated = build(hidden_file, at_rest=problem.is_still)
        hidden = replace(
            problem, built=simulated, observers=tuple(make_observers(hidden_file, simulated, films))
        )
        problem = with_simulated(problem, hidden, file, truth)
        values |= simulated.values
    problem = problem.with_steps_for(problem.parameters.start)
    for observer in observers:
        observer.check(problem)
    looks = look_nuisances(file, built, observers)
    if fits_first:
        notes += _doubts_at_start(problem, file)
        problem = fit_first_frames(problem, films, file, looks, say=say)
    is_goal = file.purpose == "control" and not set(parameters.paths) <= set(file.truth)
    return PreparedProblem(
        problem,
        kept,
        notes,
        lone,
        films,
        looks,
        truth=None if is_goal else truth_of(parameters, truth, values),
        true_values=truth,
        hidden=hidden,
        declared=declared_numbers(lone, built, films, parameters),
        terms=[] if file.is_twin or is_goal else terms_of(lone, parameters),
    )


def _doubts_at_start(problem: SceneProblem, file: declared.SceneFile) -> list[str]:
    """Return what is doubtful about load cells beside the forces at the start values."""
    cells = [
        cell
        for cell in problem.observers
        if cell.sensor and file.observations[cell.name].simulate is None
    ]
    if not cells or file.purpose == "control":
        return []
    alone = on_one_timeline(problem, cells)
    values = alone.parameters.scene_values(alone.parameters.start)
    with suppress(*NOT_FINITE):  # which is said elsewhere
        rows = alone.predictions({**alone.fixed, **values})
        return [
            note for cell, force in zip(cells, rows, strict=True) for note in cell.doubts(force)
        ]
    return []


def without_own(
    file: declared.SceneFile, residuals: Mapping[str, OwnResiduals]
) -> declared.SceneFile:
    """Return a scene file without free paths of residuals of one's own, which no file can have."""
    of_own = tuple(f"observations.{name}." for name in residuals)
    free = {path: row for path, row in file.free.items() if not path.startswith(of_own)}
    return replace(file, free=free)


def _texel_values(
    file: declared.SceneFile, built: BuiltScene, observers: Sequence[Observer], values: Values
) -> dict[str, Value]:
    """Return the free texels in the units in which the first frames feel all of them alike."""
    out = {}
    for path in file.free:
        if path in values and path.endswith(TEXELS):
            shape = values[path].value.shape
            matrices = felt_by(observers, start_surfaces(built), path)
            out[path] = replace(values[path], scale=texel_units(matrices, shape[:2]))
    return out


def is_still(file: declared.SceneFile, films: Mapping[str, FilmData]) -> bool:
    """Return whether nothing moves or settles: single pictures at time 0 of bodies with a mesh."""
    return (
        all(hasattr(body, "mesh") for body in file.bodies.values())
        and file.world.motion != declared.EQUILIBRIUM
        and all(
            name in films
            and observation.start == 0.0
            and films[name].times.tolist() == [0.0]
            and f"observations.{name}.start" not in file.free
            for name, observation in file.observations.items()
        )
    )


def _problem(
    file: declared.SceneFile,
    built: BuiltScene,
    observers: Sequence[Observer],
    parameters: Parameters,
    **shared: Any,
) -> SceneProblem:
    simulated = {
        name for name, observation in file.observations.items() if observation.simulate is not None
    }
    gaps = [shortest_interval(observer.times) for observer in observers if len(observer.times) > 1]
    gaps += [
        observer.times[0]
        for observer in observers
        if observer.name in simulated and observer.times[0] > 0.0
    ]
    interval = float(min(gaps, default=INTERVAL))
    steps = first_steps(interval, longest_step(file.world), built.longest_dt)
    if built.dt is not None:  # of smoke
        steps = TimeSteps(built.dt, 1, is_given=True)
    shapes = shape_losses(file.free, built)
    problem = SceneProblem(built, tuple(observers), parameters, steps, shapes=shapes, **shared)
    return on_one_timeline(problem, observers)
