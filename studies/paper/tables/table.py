"""What a table is made of: scenes with the columns they fill, and estimators, one for each row.

A table is data. `tasks.py` does one instance of one row, `job.py` runs them all, `summary.py` sums
them up.
"""

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from studies import config
from studies.errors import StudyError
from studies.image_fit import ImageFit
from studies.looks import Look
from studies.registry import RunOptions
from studies.video_problem import VideoProblem


Prior = dict[str, tuple[np.ndarray, np.ndarray]]
Settings = dict[str, Any]


class Statistic(enum.StrEnum):
    """What of the errors of all instances is held against a bar."""

    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True)
class Column:
    """One quantity whose errors a table lists.

    Attributes
    ----------
    path : str
        Of the free parameter, as the scene's fit names it.
    label : str
        Its heading.
    bar : float, optional
        The relative error that estimates from video are held against.
    by : Statistic
        What of them is.
    published : mapping
        The mean relative errors that the gradSim paper prints, by the name of the estimator; those
        of methods that are not run here stand under a name of their own.
    """

    path: str
    label: str
    bar: float | None = None
    by: Statistic = Statistic.MEAN
    published: Mapping[str, float] = field(default_factory=dict)


class Scene(ABC):
    """What is filmed: random instances of a study, and the columns that they fill.

    Attributes
    ----------
    name : str
        Its table in the settings; that has `settings`, overrides of the study's own.
    study : str
        As `adjsim run` knows it.
    columns : tuple of Column
    """

    name: str
    study: str
    columns: tuple[Column, ...]

    def resolved(self, settings: Settings) -> config.StudySettings:
        """Return the study's settings, those of the table applied.

        Raises
        ------
        StudyError
            If the table names a key that the study has not.
        """
        try:
            return config.resolve(self.study, settings[self.name]["settings"])
        except StudyError as error:
            raise StudyError(f"`{self.name}.settings`: {error}") from error

    def require_columns(self, free: Iterable[str]) -> None:
        """Complain of free parameters that leave a column empty."""
        paths = set(free)
        if missing := [column.path for column in self.columns if column.path not in paths]:
            raise StudyError(
                f"`free` must hold {', '.join(missing)} too, since the table has a column of it; "
                f"got {', '.join(sorted(paths))}."
            )

    @abstractmethod
    def check(self, settings: Settings, values: Settings) -> None:
        """Complain of settings out of range."""

    @abstractmethod
    def make_fit(
        self, settings: Settings, values: Settings, options: RunOptions, k: int
    ) -> ImageFit:
        """Draw instance k, and return its fit from video."""

    @abstractmethod
    def prior(self, settings: Settings, values: Settings, fit: ImageFit) -> Prior:
        """Return by path between what ends hidden values are drawn evenly.

        The ends have the shape of the values, or one that broadcasts to it.
        """

    def look(self, case: "Case", theta: np.ndarray) -> Look | None:
        """Return a picture of an instance and of what its search found, for the report; or none."""
        del case, theta
        return None


@dataclass(frozen=True, eq=False)
class Case:
    """One instance of a scene, as an estimator sees it.

    Attributes
    ----------
    settings : dict
        Of the whole table.
    scene : Scene
    options : RunOptions
    k : int
        Number of the instance.
    """

    settings: Settings
    scene: Scene
    options: RunOptions
    k: int

    @cached_property
    def values(self) -> Settings:
        """The study's settings."""
        return self.scene.resolved(self.settings).values

    @cached_property
    def fit(self) -> ImageFit:
        """The fit from video: the problem, where its search starts, and the truth."""
        return self.scene.make_fit(self.settings, self.values, self.options, self.k)

    @cached_property
    def problem(self) -> VideoProblem:
        """The problem of that fit; a scene of a table is a video."""
        assert isinstance(self.fit.problem, VideoProblem)
        return self.fit.problem

    @cached_property
    def prior(self) -> Prior:
        """Between what ends hidden values are drawn evenly, by path."""
        return self.scene.prior(self.settings, self.values, self.fit)

    @cached_property
    def truth(self) -> np.ndarray:
        """The hidden values, flat."""
        assert self.fit.truth is not None
        return self.fit.truth.flat(self.fit.problem.parameters.paths)

    def flat(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return values by path as one vector, each broadcast to the shape of the truth."""
        assert self.fit.truth is not None
        shapes = {path: np.shape(self.fit.truth.values[path]) for path in values}
        paths = self.fit.problem.parameters.paths
        return np.concatenate([np.broadcast_to(values[p], shapes[p]).ravel() for p in paths])

    def rng(self, stream: int) -> np.random.Generator:
        """Return the generator of an estimator; each has a stream of its own."""
        return np.random.default_rng([self.options.seed, self.k, stream])


@dataclass(frozen=True, eq=False)
class Estimate:
    """What an estimator found.

    Attributes
    ----------
    theta : numpy.ndarray
        In the coordinates of the scene's search.
    status : str
        How it ended.
    loss : float, optional
        What was lowered, at its end; None where nothing was.
    evaluations, starts : int
        Rollouts spent, and from how many starts.
    spectrum : dict, optional
        As `Uncertainty.to_dict` gives it.
    expected : mapping
        The analytic expectation of the relative error by path, where there is one.
    """

    theta: np.ndarray
    status: str
    loss: float | None = None
    evaluations: int = 0
    starts: int = 0
    spectrum: dict[str, Any] | None = None
    expected: Mapping[str, float] = field(default_factory=dict)


class Estimator(Protocol):
    """A row of a table: how the hidden values of an instance are estimated."""

    @property
    def name(self) -> str:
        """What `methods` in the settings calls it."""
        ...

    @property
    def label(self) -> str:
        """What heads its row."""
        ...

    def about(self, settings: Settings) -> str:
        """Return a sentence of how it estimates, with what it may spend."""
        ...

    def check(self, settings: Settings) -> None:
        """Complain of settings of its own that are out of range."""
        ...

    def estimate(self, case: Case) -> Estimate:
        """Estimate the hidden values of an instance."""
        ...


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the paper.

    Attributes
    ----------
    name : str
        As `adjsim run` knows it.
    title : str
    scenes : tuple of Scene
    estimators : tuple of Estimator
        Every row that its settings may ask for.
    names : mapping
        Headings of rows that are published only.
    differs : str
        How the scenes differ from those of the paper, in sentences.
    """

    name: str
    title: str
    scenes: tuple[Scene, ...]
    estimators: tuple[Estimator, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    differs: str = ""

    def scene(self, name: str) -> Scene:
        """Return a scene by name."""
        return next(one for one in self.scenes if one.name == name)

    def estimator(self, name: str) -> Estimator:
        """Return an estimator by name."""
        return next(one for one in self.estimators if one.name == name)
